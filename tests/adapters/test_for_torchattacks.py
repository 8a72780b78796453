"""Our attack among those of torchattacks."""

import copy

import pytest
import torch
import torchattacks
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
from torch.utils.data import DataLoader, TensorDataset

from facetwalk.adapters.for_torchattacks import TorchAttack
from facetwalk.robustness import attack
from facetwalk.solvers import Sign
from facetwalk.types import InputError

BUDGET = 100


class TestBesideTheirPgd:
    def test_it_stays_in_the_set_and_breaks_more_at_equal_gradients(self, net, images, labels):
        eps = RADII["inf"]
        ours = TorchAttack(net, eps=eps, budget=BUDGET)(images, labels)
        theirs = torchattacks.PGD(net, eps=eps, alpha=eps / 10, steps=BUDGET)(images, labels)
        assert inside(ours, images, eps)
        assert wrong(net, theirs, labels).sum() <= wrong(net, ours, labels).sum() < 100

    def test_in_l2_too(self, net, images, labels):
        eps = RADII["2"]
        ours = TorchAttack(net, eps=eps, norm="2", budget=BUDGET)(images, labels)
        theirs = torchattacks.PGDL2(net, eps=eps, alpha=eps / 10, steps=BUDGET)(images, labels)
        assert inside(ours, images, eps, "2")
        assert wrong(net, theirs, labels).sum() <= wrong(net, ours, labels).sum() < 100


@pytest.mark.parametrize("norm", RADII)
@pytest.mark.parametrize("solver", [None, Sign(steps=20)])
def test_it_finds_what_a_direct_call_finds(net, images, labels, norm, solver):
    options = {"norm": norm, "budget": BUDGET, "solver": solver, "seed": 7}
    direct = attack(net, images, labels, RADII[norm], **options)
    found = TorchAttack(net, RADII[norm], **options)(images, labels)
    assert torch.equal(found, direct.adversarial)


class TestTargets:
    EPS = 0.5

    def test_by_label(self, net, images, labels):
        targets = (labels + 3) % 10
        atk = TorchAttack(net, eps=self.EPS, budget=BUDGET)
        atk.set_mode_targeted_by_label(quiet=True)
        found = atk(images, targets)
        direct = attack(net, images, labels, self.EPS, targets=targets, budget=BUDGET)
        assert torch.equal(found, direct.adversarial)
        assert inside(found, images, self.EPS)
        assert wrong(net, found, targets).sum() < 10

    def test_the_least_likely_class(self, net, images, labels):
        with torch.no_grad():
            targets = net(images).scatter(1, labels[:, None], torch.inf).argmin(1)
        atk = TorchAttack(net, eps=self.EPS, budget=BUDGET)
        atk.set_mode_targeted_least_likely(quiet=True)
        assert wrong(net, atk(images, labels), targets).sum() < 30
        atk.set_mode_default()
        found = atk(images, labels)
        assert torch.equal(found, attack(net, images, labels, self.EPS, budget=BUDGET).adversarial)

    def test_random_classes(self, net, images, labels):
        atk = TorchAttack(net, eps=self.EPS, budget=BUDGET)
        atk.set_mode_targeted_random(quiet=True)
        with torch.random.fork_rng():
            found = atk(images, labels)
        targets = atk.get_random_target_label(images, labels)
        assert (targets != labels).all()
        assert wrong(net, found, targets).sum() < 10

    def test_without_labels_they_are_the_classes_that_the_model_sees(self, net, images):
        with torch.no_grad():
            seen = net(images).argmax(1)
        atk = TorchAttack(net, eps=self.EPS, budget=20)
        atk.set_mode_targeted_least_likely(quiet=True)
        assert torch.equal(atk(images), atk(images, seen))


class TestNormalisedImages:
    def test_eps_is_in_pixels(self, net, images, labels):
        eps = RADII["inf"]
        model, given = Normalised(net).eval(), (images - MEAN) / STD
        ours = TorchAttack(model, eps=eps, budget=BUDGET)
        theirs = torchattacks.PGD(model, eps=eps, alpha=eps / 10, steps=BUDGET)
        for atk in (ours, theirs):
            atk.set_normalization_used(mean=[MEAN], std=[STD])
        found = ours(given, labels)
        pixels = found.double() * STD + MEAN
        assert (pixels - images).abs().max() == pytest.approx(eps, rel=1e-4)
        assert (found - given).abs().max() == pytest.approx(eps / STD, rel=1e-4)
        assert pixels.min() > -1e-6
        assert pixels.max() < 1 + 1e-6
        broken = wrong(model, found, labels).sum()
        assert wrong(model, theirs(given, labels), labels).sum() <= broken < 100

    def test_targets_are_found_in_pixels_too(self, net, images, labels):
        model, given = Normalised(net).eval(), (images - MEAN) / STD
        atk = TorchAttack(model, eps=0.5, budget=BUDGET)
        atk.set_normalization_used(mean=[MEAN], std=[STD])
        atk.set_mode_targeted_by_label(quiet=True)
        targets = (labels + 3) % 10
        assert wrong(model, atk(given, targets), targets).sum() < 10

    def test_an_error_leaves_the_next_call_as_it_would_have_been(self, net, images, labels):
        atk = TorchAttack(Normalised(net), eps=0.1, budget=20)
        atk.set_normalization_used(mean=[MEAN], std=[STD])
        given = (images - MEAN) / STD
        before = atk(given, labels)
        with pytest.raises(InputError, match="there are 100 images and 99 labels"):
            atk(given, labels[:99])
        assert torch.equal(atk(given, labels), before)

    def test_without_being_told_they_are_refused(self, net, images, labels):
        with pytest.raises(InputError, match=r"set_normalization_used\(mean, std\)"):
            TorchAttack(net, budget=20)((images - MEAN) / STD, labels)


class TestModes:
    def test_the_model_is_attacked_in_eval_mode_and_left_as_it_was(self, net, images, labels):
        model = partly_training(net)
        before, state = modes(model), copy.deepcopy(model.state_dict())
        found = TorchAttack(model, eps=0.2, budget=BUDGET)(images, labels)
        assert modes(model) == before
        assert all(torch.equal(state[name], now) for name, now in model.state_dict().items())
        again = TorchAttack(model.eval(), eps=0.2, budget=BUDGET)(images, labels)
        assert torch.equal(found, again)

    def test_also_after_an_error(self, net, images, labels):
        model = partly_training(net)
        before = modes(model)
        with pytest.raises(InputError, match="norm must be one of"):
            TorchAttack(model, norm="L3")(images, labels)
        assert modes(model) == before

    def test_train_mode_may_be_asked_for(self, net, images, labels):
        model = Watched(net)
        atk = TorchAttack(model, eps=0.2, budget=20)
        atk(images, labels)
        assert model.modes == {False}
        model.modes.clear()
        atk.set_model_training_mode(model_training=True)
        atk(images, labels)
        assert model.modes == {True}


class TestTheirTools:
    @pytest.mark.parametrize("ours_first", [True, False])
    def test_multi_attack_breaks_what_either_breaks(self, net, images, labels, ours_first):
        eps = RADII["inf"]
        ours = TorchAttack(net, eps=eps, budget=BUDGET)
        theirs = torchattacks.FGSM(net, eps=eps)
        attacks = [ours, theirs] if ours_first else [theirs, ours]
        first = wrong(net, attacks[0](images, labels), labels)
        found = torchattacks.MultiAttack(attacks)(images, labels)
        assert inside(found, images, eps)
        assert (wrong(net, found, labels) >= first).all()
        assert wrong(net, found, labels).sum() >= wrong(net, ours(images, labels), labels).sum()

    def test_save_attacks_a_loader(self, net, images, labels, tmp_path):
        atk = TorchAttack(net, eps=0.2, budget=20)
        loader = DataLoader(TensorDataset(images, labels), batch_size=40)
        path = tmp_path / "adversarial.pt"
        accuracy, _, _ = atk.save(loader, path, verbose=False, return_verbose=True)
        found = torch.cat([atk(part, of_part) for part, of_part in loader])
        assert torch.equal(torch.load(path)["adv_inputs"], found)
        assert accuracy == pytest.approx(100 - wrong(net, found, labels).sum().item())

    def test_it_says_what_it_is(self, net):
        atk = TorchAttack(net, eps=0.5, seed=3)
        assert isinstance(atk, torchattacks.attack.Attack)
        text = repr(atk)
        assert text.startswith("TorchAttack(")
        assert "eps=0.5, norm=inf, budget=1000, solver=None, seed=3" in text


def test_labels_may_be_integers_of_any_kind(net, images, labels):
    atk = TorchAttack(net, eps=0.2, budget=20)
    plain = atk(images, labels)
    for given in (labels.numpy(), labels.tolist(), labels.int()):
        assert torch.equal(atk(images, given), plain)
        atk.set_mode_targeted_least_likely(quiet=True)
        targeted = atk(images, labels)
        assert torch.equal(atk(images, given), targeted)
        atk.set_mode_default()


@pytest.mark.parametrize("targeted", [False, True])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y: (x.numpy(), y), "images must be a tensor"),
        (lambda x, y: ((255 * x).byte(), y), "images are torch.uint8: pass floats"),
        (lambda x, y: (x, y + 1), "labels run from 1 to 10, and the model has classes 0 to 9"),
        (lambda x, y: (x, y.double()), "labels must be class indices"),
        (lambda x, y: (x, y[:7]), "there are 100 images and 7 labels"),
    ],
)
def test_what_does_not_fit_gets_one_clear_sentence(net, images, labels, targeted, change, message):
    atk = TorchAttack(net, budget=20)
    if targeted:
        atk.set_mode_targeted_least_likely(quiet=True)
    with pytest.raises(InputError, match=message) as caught:
        atk(*change(images, labels))
    assert "\n" not in str(caught.value)


def test_labels_are_needed(net, images):
    with pytest.raises(InputError, match="the attack needs labels"):
        TorchAttack(net)(images)


def test_what_was_passed_is_not_changed(net, images, labels):
    kept = copy.deepcopy((images, labels, net.state_dict()))
    found = TorchAttack(net, eps=0.2, budget=20)(images.requires_grad_(), labels)
    assert torch.equal(kept[0], images)
    assert torch.equal(kept[1], labels)
    assert all(torch.equal(kept[2][name], now) for name, now in net.state_dict().items())
    assert all(weight.grad is None and weight.requires_grad for weight in net.parameters())
    assert not found.requires_grad
