"""Evaluations: the worst case over attacks, and going on after an interruption."""

import copy
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from classifiers import Calls, Counting, batch, linear, relu_network, worst_margin
from torch import nn

import facetwalk as fw
from facetwalk.robustness import RobustnessWarning, attack, evaluate
from facetwalk.solvers import Auto, Sign
from facetwalk.zoo import Normalize

EPS = 0.1
WEAK, STRONG = Sign(steps=1, step_size=0.2), Auto(evaluations=200)


def case(count: int = 20, wrong: int = 3):
    net = relu_network()
    return net, *batch(net, count, features=4, wrong=wrong)


def assert_same(samples, others):
    assert len(samples) == len(others)
    for one, other in zip(samples, others, strict=True):
        assert one.margin == pytest.approx(other.margin, rel=1e-9, abs=1e-12)
        names = ("index", "label", "predicted", "broken_by", "adversarial_class", "gradients")
        assert [getattr(one, n) for n in names] == [getattr(other, n) for n in names]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Lazy:
    """Images that are loaded when they are sliced."""

    def __init__(self, images):
        self.images, self.loaded = images, []

    def __len__(self):
        return len(self.images)

    def __getitem__(self, part):
        self.loaded.append(range(*part.indices(len(self))))
        return self.images[part]


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


class TestGoingOn:
    def test_from_a_file_cut_anywhere_gives_the_same_samples(self, tmp_path):
        net, images, labels = case(6, wrong=1)
        options = {"attacks": {"sign": Sign(steps=8)}, "folder": tmp_path}
        whole = evaluate(net, images, labels, EPS / 10, **options)
        file = tmp_path / "samples.jsonl"
        content = file.read_bytes()
        ends = [0, *(i + 1 for i, byte in enumerate(content) if byte == ord("\n"))]
        for length in (*ends, *range(ends[-3], len(content))):
            file.write_bytes(content[:length])
            again = evaluate(net, images, labels, EPS / 10, **options)
            assert_same(again.samples, whole.samples)
            done = sum(end <= length for end in ends)
            assert file.read_bytes().startswith(content[: ends[done - 1]])
            assert file.read_bytes().count(b"\n") == 6

    @pytest.mark.parametrize("done", [[], [0, 1, 2], [1, 4, 5], [0, 1, 2, 3, 4]])
    def test_only_attacks_what_is_missing(self, tmp_path, done):
        net, images, labels = case(6, wrong=0)
        counting = Counting(net)
        options = {"attacks": {"sign": Sign(steps=200)}, "folder": tmp_path, "chunk": 4}
        evaluate(counting, images, labels, 1e-4, **options)
        file = tmp_path / "samples.jsonl"
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(lines[i] for i in done))
        counting.passes.clear()
        report = evaluate(counting, images, labels, 1e-4, **options)
        assert len(report.samples) == 6
        points = torch.cat(counting.passes)
        near = ((points[:, None] - images).abs() <= 1.1e-4).all(2).sum(0)
        assert [i for i in range(6) if near[i] < 150] == done

    def test_an_evaluation_that_fails_keeps_what_is_done(self, tmp_path):
        net, images, labels = case()
        whole = evaluate(net, images, labels, EPS, budget=60)
        broken = images.clone()
        broken[17] = torch.nan
        options = {"budget": 60, "chunk": 4, "folder": tmp_path}
        with pytest.raises(fw.InputError, match="NaN"):
            evaluate(net, Lazy(broken), labels, EPS, **options | {"folder": None})

        class Unplugged(Lazy):
            def __getitem__(self, part):
                if part.start == 12:
                    raise OSError("unplugged")
                return super().__getitem__(part)

        with pytest.raises(OSError, match="unplugged"):
            evaluate(net, Unplugged(images), labels, EPS, **options)
        assert (tmp_path / "samples.jsonl").read_bytes().count(b"\n") == 12
        again = evaluate(net, images, labels, EPS, **options)
        assert_same(again.samples, whole.samples)

    def test_after_being_killed(self, tmp_path):
        script = tmp_path / "run.py"
        script.write_text(
            f"import sys, time; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
            "from classifiers import Calls, batch, relu_network\n"
            "from facetwalk.robustness import evaluate\n"
            "net = relu_network()\n"
            "images, labels = batch(net, 20, features=4, wrong=3)\n"
            "slow = Calls(net, lambda net, x: time.sleep(0.01) or net(x))\n"
            f"evaluate(slow, images, labels, {EPS}, budget=60, chunk=2, folder=sys.argv[1])\n"
        )
        folder = tmp_path / "records"
        lines = folder / "samples.jsonl"
        process = subprocess.Popen([sys.executable, script, folder])
        try:
            deadline = time.monotonic() + 60
            while not lines.exists() or lines.read_bytes().count(b"\n") < 4:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.02)
            os.kill(process.pid, signal.SIGKILL)
        finally:
            process.kill()
            process.wait()
        kept = lines.read_bytes()
        assert kept.count(b"\n") < 20
        net, images, labels = case()
        again = evaluate(net, images, labels, EPS, budget=60, folder=folder)
        assert lines.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
        whole = evaluate(net, images, labels, EPS, budget=60)
        assert_same(again.samples, whole.samples)
        assert again.robust_accuracy == whole.robust_accuracy
        assert again.broken == whole.broken


def changed_model():
    net = relu_network()
    net[0].bias.data[0] += 1e-9
    return net


class TestFolders:
    """Other questions than the first are refused."""

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"eps": 0.11}, "eps 0.1 and not 0.11"),
            ({"norm": "2"}, "norm inf and not 2"),
            ({"bounds": None}, r"bounds \(0.0, 1.0\) and not None"),
            ({"seed": 1}, "seed 0 and not 1"),
            ({"budget": 61}, "attacks .*60.* and not .*61"),
            ({"attacks": {"other": WEAK}}, "attacks .* and not .*other: Sign"),
            ({"model": changed_model()}, "model [0-9a-f]+ and not"),
            ({"model": relu_network().float()}, "model [0-9a-f]+ and not"),
            ({"labels": case(wrong=2)[2]}, "labels [0-9a-f]+ and not"),
            ({"images": case()[1].flip(0)}, "first image [0-9a-f]+ and not"),
            ({"images": case(19)[1], "labels": case(19)[2]}, "images 20 and not 19"),
        ],
        ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
    )
    def test_what_differs_is_named_and_nothing_is_changed(self, changes, message, tmp_path):
        net, images, labels = case()
        asked = {"model": net, "images": images, "labels": labels, "eps": EPS, "budget": 60}
        evaluate(**asked, folder=tmp_path)
        file = tmp_path / "samples.jsonl"
        file.write_bytes(file.read_bytes()[:-9])
        before = contents(tmp_path)
        with pytest.raises(fw.InputError, match=message) as caught:
            evaluate(**asked | changes, folder=tmp_path)
        assert "\n" not in str(caught.value)
        assert contents(tmp_path) == before

    def test_another_order_of_attacks_is_another_question(self, tmp_path):
        evaluate(*case(), EPS, attacks={"a": WEAK, "b": STRONG}, folder=tmp_path)
        with pytest.raises(fw.InputError, match=r"attacks .* and not"):
            evaluate(*case(), EPS, attacks={"b": STRONG, "a": WEAK}, folder=tmp_path)

    def test_another_normalisation_is_another_model(self, tmp_path):
        images = torch.rand(10, 1, 2, 2, generator=torch.Generator().manual_seed(0))
        head = nn.Sequential(nn.Flatten(), relu_network().float())
        nets = [nn.Sequential(Normalize([m], [0.5]), head).eval() for m in (0.5, 0.51)]
        labels = nets[0](images).argmax(1)
        evaluate(nets[0], images, labels, EPS, budget=20, folder=tmp_path)
        with pytest.raises(fw.InputError, match=r"model [0-9a-f]+ and not"):
            evaluate(nets[1], images, labels, EPS, budget=20, folder=tmp_path)

    def test_another_chunk_or_kind_of_images_is_the_same_question(self, tmp_path):
        net, images, labels = case()
        first = evaluate(net, images, labels, EPS, budget=60, folder=tmp_path, chunk=3)
        again = evaluate(net, Lazy(images), labels.int(), EPS, budget=60, folder=str(tmp_path))
        assert again.samples == first.samples


class TestFindings:
    def test_are_warnings_and_in_the_report(self):
        net = nn.Sequential(linear(), nn.Softmax(1)).eval()
        with pytest.warns(RobustnessWarning, match="probabilities, not logits") as caught:
            report = evaluate(net, *batch(net), EPS, budget=20)
        assert [finding.name for finding in report.findings] == ["softmax"]
        assert [warning.filename for warning in caught] == [__file__]

    def test_are_none_where_all_is_well(self):
        assert evaluate(*case(), EPS, budget=20).findings == []

    def test_come_with_samples_from_a_folder_too(self, tmp_path):
        net = nn.Sequential(linear(), nn.Softmax(1)).eval()
        for _ in range(2):
            with pytest.warns(RobustnessWarning):
                report = evaluate(net, *batch(net), EPS, budget=20, folder=tmp_path)
            assert len(report.findings) == 1

    def test_a_randomised_model_is_evaluated_with_a_warning(self):
        net = Calls(linear(), lambda net, x: net(x) + 0.1 * torch.randn(len(x), 4))
        random = torch.get_rng_state()
        with pytest.warns(RobustnessWarning, match="other outputs for the same images"):
            evaluate(net, *batch(linear()), EPS, budget=20)
        assert torch.equal(torch.get_rng_state(), random)

    def test_what_only_a_batch_breaks_is_robust_and_marked(self):
        net = linear()
        images, labels = batch(net, 60)
        robust = worst_margin(net, images, labels, "inf", 0.02).argmin()
        image, label = images[robust], labels[robust]

        def forward(net, x):
            moved = (len(x) > 1) * (x[:, :1] - image[:1])
            return net(x) - 1e4 * moved * F.one_hot(label, 4)

        given = image.expand(4, 5), label.expand(4)
        report = evaluate(Calls(net, forward), *given, 0.02, bounds=None, budget=60)
        assert report.robust_accuracy == 1
        assert all(sample.depends_on_batch for sample in report.samples)
        assert evaluate(net, *given, 0.02, bounds=None, budget=60).robust_accuracy == 1


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


def test_a_chunk_must_hold_an_image():
    with pytest.raises(fw.InputError, match="chunk must be at least 1; it is 0"):
        evaluate(*case(), EPS, chunk=0)
