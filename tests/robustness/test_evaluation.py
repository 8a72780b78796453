"""Evaluations: figures that are known, and the worst case over attacks."""

import copy

import numpy as np
import pytest
import torch
from classifiers import Counting, batch, linear, worst_margin
from evaluation_cases import EPS, STRONG, WEAK, Lazy, assert_same, case, contents

import facetwalk as fw
from facetwalk.robustness import attack, evaluate
from facetwalk.solvers import Sign


class TestFigures:
    @pytest.mark.parametrize("norm", ["inf", "2", "1"])
    def test_of_a_linear_classifier_are_those_of_the_closed_form(self, norm):
        net = linear()
        images, labels = batch(net, 60, wrong=9)
        worst = worst_margin(net, images, labels, norm, EPS)
        assert (worst.abs() > 1e-3).all()
        report = evaluate(net, images, labels, EPS, norm=norm, bounds=None, budget=300)
        assert report.accuracy == pytest.approx(51 / 60)
        assert report.robust_accuracy == pytest.approx((worst < 0).double().mean().item())
        assert [s.broken_by is None for s in report.samples] == (worst < 0).tolist()
        assert all(s.margin <= w + 1e-9 for s, w in zip(report.samples, worst, strict=True))

    @pytest.mark.parametrize("norm", ["inf", "2", "1"])
    def test_robust_accuracy_never_rises_with_eps(self, norm):
        net = linear()
        images, labels = batch(net, 60, wrong=5)
        robust = [
            evaluate(net, images, labels, eps, norm=norm, budget=100).robust_accuracy
            for eps in (0.0, 0.02, 0.05, 0.1, 0.2, 0.5)
        ]
        assert robust == sorted(robust, reverse=True)
        assert robust[0] == pytest.approx(55 / 60)
        assert robust[-1] < 0.2

    def test_samples_say_what_attack_says(self):
        net, images, labels = case()
        report = evaluate(net, images, labels, EPS, budget=100, seed=4)
        found = attack(net, images, labels, EPS, budget=100, seed=4)
        for b, sample in enumerate(report.samples):
            assert sample.index == b
            assert sample.label == labels[b]
            assert sample.predicted == net(images[b : b + 1]).argmax()
            assert (sample.broken_by is not None) == found.success[b]
            assert (sample.broken_by == "clean") == (b < 3)
            assert sample.adversarial_class == found.predicted[b]
            assert sample.gradients == found.gradients[b]
            assert sample.margin == pytest.approx(found.margin[b].item())
        expected = found.gradients.double().mean().item()
        assert report.mean_gradients == pytest.approx(expected)
        assert report.broken == {"clean": 3, "default": int(found.success.sum()) - 3}
        assert report.seconds > 0

    def test_no_images_have_no_figures(self, tmp_path):
        for _ in range(2):
            report = evaluate(linear(), torch.zeros(0, 5), [], EPS, folder=tmp_path)
            assert report.samples == []
            assert report.broken == {}
            figures = (report.accuracy, report.robust_accuracy, report.mean_gradients)
            assert all(figure != figure for figure in figures)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
    def test_in_any_precision_of_the_model(self, dtype, tmp_path):
        net, images, _ = case()
        net = net.to(dtype)
        labels = net(images.to(dtype)).argmax(1)
        first = evaluate(net, images, labels, EPS, budget=60, folder=tmp_path)
        again = evaluate(net, images, labels, EPS, budget=60, folder=tmp_path)
        assert again.samples == first.samples
        assert first.accuracy == 1


class TestSeveralAttacks:
    def test_broken_is_the_worst_case_over_attacks_run_alone(self):
        net, images, labels = case(40)
        both = evaluate(net, images, labels, EPS, attacks={"weak": WEAK, "strong": STRONG})
        weak, strong = (attack(net, images, labels, EPS, solver=s).success for s in (WEAK, STRONG))
        assert (strong & ~weak).any()
        assert [s.broken_by is not None for s in both.samples] == (weak | strong).tolist()
        named = [
            "weak" if w else "strong" if s else None for w, s in zip(weak, strong, strict=True)
        ]
        assert [s.broken_by for s in both.samples][3:] == named[3:]
        assert sum(both.broken.values()) == 40 - round(40 * both.robust_accuracy)
        assert set(both.broken) == {"clean", "weak", "strong"}

    def test_each_sees_only_what_is_left(self):
        net, images, labels = case(40)
        report = evaluate(net, images, labels, EPS, attacks={"a": WEAK, "b": Sign(steps=7)})
        for sample in report.samples:
            spent = {"clean": {0}, "a": {1}, "b": set(range(2, 9)), None: {8}}[sample.broken_by]
            assert sample.gradients in spent

    def test_margins_are_the_largest_of_all(self):
        net, images, labels = case(40)
        options = {"weak": WEAK, "strong": STRONG}
        both = evaluate(net, images, labels, EPS / 4, attacks=options)
        alone = [evaluate(net, images, labels, EPS / 4, attacks={n: a}) for n, a in options.items()]
        for sample, *others in zip(both.samples, *(r.samples for r in alone), strict=True):
            if sample.broken_by is None:
                assert sample.margin == pytest.approx(max(other.margin for other in others))

    @pytest.mark.parametrize("attacks", [{}, {"clean": WEAK}])
    def test_none_and_reserved_names_are_refused(self, attacks):
        with pytest.raises(fw.InputError, match="at least one, and none may be called"):
            evaluate(*case(), EPS, attacks=attacks)


class TestSameResults:
    @pytest.mark.parametrize("chunk", [1, 3, 7, 20, 1000])
    @pytest.mark.parametrize("folder", [True, False])
    def test_for_any_chunk_with_and_without_a_folder(self, chunk, folder, tmp_path):
        options = {"attacks": {"weak": WEAK, "strong": STRONG}, "seed": 7}
        whole = evaluate(*case(), EPS, **options)
        place = tmp_path / "records" if folder else None
        parts = evaluate(*case(), EPS, chunk=chunk, folder=place, **options)
        assert_same(parts.samples, whole.samples)

    @pytest.mark.parametrize("chunk", [3, 256])
    def test_for_images_that_are_loaded_lazily(self, chunk):
        net, images, labels = case()
        plain = evaluate(net, images, labels, EPS, budget=60)
        lazy = Lazy(images)
        assert_same(evaluate(net, lazy, labels, EPS, budget=60, chunk=chunk).samples, plain.samples)
        assert lazy.loaded[1:] == [range(i, min(i + chunk, 20)) for i in range(0, 20, chunk)]

    def test_again_from_the_folder_without_an_attack(self, tmp_path):
        net, images, labels = case()
        first = evaluate(net, images, labels, EPS, budget=60, folder=tmp_path)
        before, counting = contents(tmp_path), Counting(net)
        again = evaluate(counting, images, labels, EPS, budget=60, folder=tmp_path)
        assert again.samples == first.samples
        assert contents(tmp_path) == before
        assert len(counting.passes) < 10


def test_nothing_of_the_users_is_changed(tmp_path):
    net, images, labels = case()
    net[0].weight.grad = torch.ones_like(net[0].weight)
    kept, random = copy.deepcopy((net.state_dict(), images, labels)), torch.get_rng_state()
    evaluate(net, images, labels, EPS, budget=40, folder=tmp_path)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(kept[0][name], value) for name, value in net.state_dict().items())
    assert torch.equal(images, kept[1])
    assert torch.equal(labels, kept[2])
    assert torch.equal(net[0].weight.grad, torch.ones_like(net[0].weight))
    assert net[2].weight.grad is None
    assert all(p.requires_grad for p in net.parameters())


def test_labels_of_the_last_images_are_checked_before_anything_is_attacked(tmp_path):
    net, images, labels = case(300)
    labels[299] = 3
    with pytest.raises(fw.InputError, match="labels run from 0 to 3, and the model has classes"):
        evaluate(net, images, labels, EPS, folder=tmp_path / "records")
    assert not (tmp_path / "records").exists()


def test_passes_hold_no_more_rows_than_were_asked_for(tmp_path):
    net, images, labels = case(300)
    counting = Counting(net)
    options = {"attacks": {"weak": WEAK}, "folder": tmp_path}
    found = evaluate(counting, images, labels, EPS, batch_size=3, **options)
    evaluate(counting, images, labels, EPS, batch_size=3, **options)
    assert max(len(x) for x in counting.passes) == 3
    assert_same(found.samples, evaluate(net, images, labels, EPS, attacks={"weak": WEAK}).samples)


@pytest.mark.parametrize("whole", [np.int64, torch.tensor])
def test_whole_numbers_of_other_libraries_are_whole_numbers(whole, tmp_path):
    plain = evaluate(*case(), EPS, budget=60, seed=3, chunk=7, folder=tmp_path)
    options = {"budget": whole(60), "seed": whole(3), "chunk": whole(7), "batch_size": whole(99)}
    assert evaluate(*case(), EPS, **options).samples == plain.samples
    assert evaluate(*case(), EPS, folder=tmp_path, **options).samples == plain.samples


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chunk": 0}, "chunk must be a whole number, at least 1; it is 0"),
        ({"chunk": 2.5}, "chunk must be a whole number, at least 1; it is 2.5"),
        ({"chunk": None}, "chunk must be a whole number, at least 1; it is None"),
        ({"batch_size": 0}, "batch_size must be a whole number, at least 1; it is 0"),
        ({"budget": 0.5}, "budget must be a whole number, at least 1; it is 0.5"),
        ({"seed": None}, "seed must be a whole number; it is None"),
        ({"seed": torch.arange(20)[:4]}, "seed must be a whole number"),
        ({"attacks": [WEAK]}, "attacks must be solvers by name, as in {'sign'"),
        ({"attacks": {"weak": Sign}}, "attacks must be solvers by name"),
        ({"attacks": {1: WEAK}}, "attacks must be solvers by name"),
        ({"bounds": (None, 1)}, "bounds must be two numbers or tensors"),
        ({"images": None}, "images must be a tensor .* or anything that has a length"),
        ({"images": iter([])}, "images must be a tensor .* or anything that has a length"),
    ],
)
def test_bad_options_get_one_clear_sentence(options, message, tmp_path):
    net, images, labels = case()
    asked = {"model": net, "images": images, "labels": labels, "eps": EPS}
    with pytest.raises(fw.InputError, match=message) as caught:
        evaluate(**asked | options, folder=tmp_path / "records")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "records").exists()
