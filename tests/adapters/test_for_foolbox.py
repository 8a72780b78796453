"""Our attack among those of Foolbox."""

import copy

import foolbox as fb
import pytest
import torch
from digit_networks import (
    MEAN,
    RADII,
    STD,
    Normalised,
    Watched,
    inside,
    modes,
    partly_training,
    wrong,
)
from foolbox.attacks.base import FixedEpsilonAttack
from torch import nn

import facetwalk.trial
from facetwalk.adapters.for_foolbox import FoolboxAttack
from facetwalk.robustness import attack
from facetwalk.solvers import Sign
from facetwalk.types import InputError, ModelError

BUDGET = 100
PGD = {"inf": fb.attacks.LinfPGD, "2": fb.attacks.L2PGD, "1": fb.attacks.L1PGD}


def wrapped(net, bounds=(0, 1), **options):
    return fb.PyTorchModel(net, bounds=bounds, device="cpu", **options)


@pytest.mark.parametrize("norm", RADII)
class TestNorms:
    def test_it_stays_in_the_set_and_breaks_more_than_pgd_at_equal_gradients(
        self, net, images, labels, norm
    ):
        eps, fmodel = RADII[norm], wrapped(net)
        points, clipped, success = FoolboxAttack(norm=norm, budget=BUDGET)(
            fmodel, images, labels, epsilons=eps
        )
        _, _, theirs = PGD[norm](steps=BUDGET)(fmodel, images, labels, epsilons=eps)
        _, _, restarts = PGD[norm](steps=20).repeat(5)(fmodel, images, labels, epsilons=eps)
        assert inside(points, images, eps, norm)
        assert inside(clipped, images, eps, norm)
        assert torch.equal(success, wrong(net, clipped, labels))
        assert max(theirs.sum(), restarts.sum()) <= success.sum() < 100

    @pytest.mark.parametrize("solver", [None, Sign(steps=20)])
    def test_it_finds_what_a_direct_call_finds(self, net, images, labels, norm, solver):
        options = {"norm": norm, "budget": BUDGET, "solver": solver, "seed": 7}
        direct = attack(net, images, labels, RADII[norm], **options)
        points, _, success = FoolboxAttack(**options)(
            wrapped(net), images, labels, epsilons=RADII[norm]
        )
        assert torch.equal(points, direct.adversarial)
        assert torch.equal(success, direct.success)

    def test_its_distance_is_that_of_the_norm(self, images, norm):
        expected = torch.full((100,), {"inf": 0.1, "2": 0.8, "1": 6.4}[norm])
        for name in (float(norm), f"L{norm}"):
            measured = FoolboxAttack(norm=name).distance(images, images + 0.1)
            torch.testing.assert_close(measured, expected)


def test_a_list_of_epsilons_and_their_accuracy(net, images, labels):
    fmodel, epsilons = wrapped(net), [0.0, 0.05, 0.2, 0.4]
    found, clipped, success = FoolboxAttack(budget=BUDGET)(
        fmodel, images, labels, epsilons=epsilons
    )
    assert success.shape == (4, 100)
    for eps, points, within, broken in zip(epsilons, found, clipped, success, strict=True):
        direct = attack(net, images, labels, eps, budget=BUDGET)
        assert torch.equal(points, direct.adversarial)
        assert torch.equal(broken, direct.success)
        accuracy = fb.accuracy(fmodel, within, labels)
        assert accuracy == pytest.approx(1 - broken.float().mean().item())
    assert fb.accuracy(fmodel, clipped[0], labels) == fb.accuracy(fmodel, images, labels)


class TestCriteria:
    def test_labels_may_be_a_criterion(self, net, images, labels):
        ours, fmodel = FoolboxAttack(budget=20), wrapped(net)
        plain, _, _ = ours(fmodel, images, labels, epsilons=0.2)
        named, _, _ = ours(fmodel, images, fb.Misclassification(labels), epsilons=0.2)
        assert torch.equal(plain, named)

    def test_targets_are_reached(self, net, images, labels):
        targets = (labels + 3) % 10
        points, clipped, success = FoolboxAttack(budget=BUDGET)(
            wrapped(net), images, fb.TargetedMisclassification(targets), epsilons=0.5
        )
        direct = attack(net, images, labels, 0.5, targets=targets, budget=BUDGET)
        assert torch.equal(points, direct.adversarial)
        assert torch.equal(success, ~wrong(net, clipped, targets))
        assert success.sum() > 90

    def test_others_are_refused(self, net, images, labels):
        both = fb.Misclassification(labels) & fb.Misclassification(labels)
        with pytest.raises(InputError, match="Misclassification or TargetedMisclassification"):
            FoolboxAttack()(wrapped(net), images, both, epsilons=0.2)


class TestPreprocessing:
    def test_epsilons_are_in_pixels(self, net, images, labels):
        eps, model = RADII["inf"], Normalised(net).eval()
        options = {"mean": torch.tensor([MEAN]), "std": torch.tensor([STD]), "axis": -3}
        fmodel = wrapped(model, preprocessing=options)
        points, _, success = FoolboxAttack(budget=BUDGET)(fmodel, images, labels, epsilons=eps)
        _, _, theirs = fb.attacks.LinfPGD(steps=BUDGET)(fmodel, images, labels, epsilons=eps)
        assert inside(points, images, eps)
        assert (points - images).abs().max() == pytest.approx(eps, rel=1e-4)
        assert theirs.sum() <= success.sum() < 100
        assert torch.equal(success, wrong(model, (points - MEAN) / STD, labels))

    @pytest.mark.parametrize("wrapper", [True, False])
    def test_bounds_may_be_others(self, net, images, labels, wrapper):
        fmodel = wrapped(net).transform_bounds((0, 255), wrapper=wrapper)
        points, clipped, success = FoolboxAttack(budget=BUDGET)(
            fmodel, 255 * images, labels, epsilons=255 * RADII["inf"]
        )
        assert inside(points / 255, images, RADII["inf"])
        assert points.max() > 2
        assert torch.equal(success, fmodel(clipped).argmax(1) != labels)
        direct = attack(net, images, labels, RADII["inf"], budget=BUDGET)
        assert abs(success.sum() - direct.success.sum()) <= 2


class TestRepeating:
    def test_each_time_has_other_seeds(self, net, images, labels):
        fmodel, ours = wrapped(net), FoolboxAttack(solver=Sign(steps=2))
        _, _, once = ours(fmodel, images, labels, epsilons=0.2)
        points, _, often = ours.repeat(3).repeat(2)(fmodel, images, labels, epsilons=0.2)
        assert inside(points, images, 0.2)
        assert (often >= once).all()
        assert often.sum() > once.sum()
        assert ours.times == 1

    @pytest.mark.parametrize("times", [0, 1.5, None])
    def test_so_many_times_must_be_a_whole_number(self, times):
        with pytest.raises(InputError, match=f"times must be a whole number.* it is {times}"):
            FoolboxAttack().repeat(times)


class TestModes:
    def test_the_model_is_used_in_the_mode_in_which_it_is(self, net, images, labels):
        model = Watched(partly_training(net))
        before = modes(model)
        with pytest.warns(UserWarning, match="in training mode"):
            fmodel = wrapped(model)
        for one in (fb.attacks.LinfPGD(steps=2), FoolboxAttack(budget=20)):
            model.modes.clear()
            one(fmodel, images, labels, epsilons=0.2)
            assert model.modes == {True}
            assert modes(model) == before

    def test_a_model_that_cannot_see_an_input_alone_is_refused(self):
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
        inputs, labels = torch.rand(6, 4), torch.zeros(6, dtype=torch.long)
        with pytest.warns(UserWarning, match="in training mode"):
            fmodel = wrapped(model)
        with pytest.raises(ModelError, match=r"fails on one input alone.*more than 1 value"):
            FoolboxAttack()(fmodel, inputs, labels, epsilons=0.2)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_inputs_of_another_type_than_the_weights_are_named(net, images, labels, dtype):
    fmodel, name = wrapped(copy.deepcopy(net).to(dtype)), str(dtype)
    match = f"inputs are torch.float32 and the model's weights {name}: pass inputs of the weights' "
    with pytest.raises(InputError, match=match):
        FoolboxAttack(budget=20)(fmodel, images, labels, epsilons=0.2)
    points, _, _ = FoolboxAttack(budget=20)(fmodel, images.to(dtype), labels, epsilons=0.2)
    assert points.dtype == dtype


def test_only_torch_is_attacked(net, images, labels):
    def logits(x):
        with torch.no_grad():
            return net(torch.from_numpy(x)).numpy()

    fmodel = fb.NumPyModel(logits, bounds=(0, 1))
    with pytest.raises(InputError, match=r"torch tensors for a foolbox.PyTorchModel.*ndarray"):
        FoolboxAttack()(fmodel, images.numpy(), labels.numpy(), epsilons=0.2)


def test_as_many_rows_run_at_once_as_in_a_direct_call(net, images, labels, monkeypatch):
    """Foolbox hides the network's weights, and weights are no memory of a row."""
    monkeypatch.setattr(facetwalk.trial, "_CPU_BYTES", 1_000_000)
    direct, through = Watched(net).eval(), Watched(net).eval()
    options = {"solver": Sign(steps=5)}
    attack(direct, images, labels, 0.01, **options)
    FoolboxAttack(**options)(wrapped(through), images, labels, epsilons=0.01)
    of_a_step = max(set(direct.rows) - {100})
    assert 3 < of_a_step < 50
    assert through.rows.count(of_a_step) == direct.rows.count(of_a_step)


def test_it_says_what_it_is():
    ours = FoolboxAttack(norm=2, seed=3)
    assert isinstance(ours, FixedEpsilonAttack)
    assert repr(ours) == "FoolboxAttack(norm=2, budget=1000, solver=None, seed=3, times=1)"


def test_what_does_not_fit_gets_one_clear_sentence(net, images, labels):
    with pytest.raises(InputError, match="there are 100 images and 99 labels"):
        FoolboxAttack()(wrapped(net), images, labels[:99], epsilons=0.2)
    with pytest.raises(InputError, match="norm must be one of inf, 2, 1"):
        FoolboxAttack(norm="L3")
    with pytest.raises(TypeError, match="unexpected keyword argument 'steps'"):
        FoolboxAttack()(wrapped(net), images, labels, epsilons=0.2, steps=3)


def test_what_was_passed_is_not_changed(net, images, labels):
    kept = copy.deepcopy((images, labels, net.state_dict()))
    points, _, _ = FoolboxAttack(budget=20)(wrapped(net), images, labels, epsilons=0.2)
    assert torch.equal(kept[0], images)
    assert torch.equal(kept[1], labels)
    assert all(torch.equal(kept[2][name], now) for name, now in net.state_dict().items())
    assert all(weight.grad is None and weight.requires_grad for weight in net.parameters())
    assert not nn.modules.module._global_forward_pre_hooks
    assert not points.requires_grad
