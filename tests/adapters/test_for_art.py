"""Our attack among those of the Adversarial Robustness Toolbox."""

import copy

import numpy as np
import pytest
import torch
from art.attacks import EvasionAttack
from art.attacks.evasion import AutoAttack, ProjectedGradientDescent
from art.defences.preprocessor import FeatureSqueezing
from art.defences.preprocessor.preprocessor import PreprocessorPyTorch
from art.estimators.classification import BlackBoxClassifier, PyTorchClassifier
from art.exceptions import EstimatorError
from art.utils import compute_accuracy, compute_success, to_categorical
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
from torch import nn

from facetwalk.adapters.for_art import ArtAttack
from facetwalk.robustness import attack
from facetwalk.solvers import Sign
from facetwalk.types import InputError, ModelError

BUDGET = 100


def classifier(net, clip_values=(0, 1), **options):
    loss = nn.CrossEntropyLoss()
    return PyTorchClassifier(
        net, loss, (1, 8, 8), 10, clip_values=clip_values, device_type="cpu", **options
    )


def pgd(estimator, norm="inf", eps=RADII["inf"], **options):
    return ProjectedGradientDescent(
        estimator,
        norm=float(norm),
        eps=eps,
        eps_step=eps / 10,
        max_iter=BUDGET,
        num_random_init=1,
        batch_size=100,
        verbose=False,
        **options,
    )


def generated(one, images, *y):
    return torch.from_numpy(one.generate(images.numpy(), *y))


class Doubling(PreprocessorPyTorch):
    """A step before the model, as ART has them for PyTorch."""

    def forward(self, x, y=None):
        return 2 * x, y


class Doubled(nn.Module):
    """The same step as part of the model."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(2 * x)


@pytest.fixture
def y(labels):
    return labels.numpy()


@pytest.mark.parametrize("norm", RADII)
class TestNorms:
    def test_it_stays_in_the_set_and_breaks_more_than_pgd_at_equal_gradients(
        self, net, images, labels, y, norm
    ):
        estimator, eps = classifier(net), RADII[norm]
        ours = generated(ArtAttack(estimator, eps, norm, BUDGET), images, y)
        theirs = generated(pgd(estimator, norm, eps), images, y)
        assert inside(ours, images, eps, norm)
        assert wrong(net, theirs, labels).sum() <= wrong(net, ours, labels).sum() < 100

    @pytest.mark.parametrize("solver", [None, Sign(steps=20)])
    def test_it_finds_what_a_direct_call_finds(self, net, images, labels, y, norm, solver):
        options = {"norm": norm, "budget": BUDGET, "solver": solver, "seed": 7}
        direct = attack(net, images, labels, RADII[norm], **options)
        found = ArtAttack(classifier(net), RADII[norm], **options).generate(images.numpy(), y)
        assert found.dtype == np.float32
        assert np.array_equal(found, direct.adversarial.numpy())


class TestLabels:
    def test_may_be_indices_or_one_hot(self, net, images, y):
        ours = ArtAttack(classifier(net), 0.2, budget=20)
        plain = generated(ours, images, y)
        for same in (to_categorical(y, 10), y[:, None], y.tolist()):
            assert torch.equal(generated(ours, images, same), plain)

    def test_without_them_the_model_is_taken_at_its_word(self, net, images):
        ours = ArtAttack(classifier(net), 0.05, budget=20)
        with torch.no_grad():
            seen = net(images).argmax(1)
        found = generated(ours, images)
        assert torch.equal(found, generated(ours, images, seen.numpy()))
        assert compute_success(classifier(net), images.numpy(), None, found.numpy()) == (
            pytest.approx(wrong(net, found, seen).float().mean().item())
        )

    def test_images_may_be_doubles(self, net, images, y):
        ours = ArtAttack(classifier(net), 0.2, budget=20)
        assert torch.equal(generated(ours, images.double(), y), generated(ours, images, y))

    @pytest.mark.parametrize("kind", [np.float64, np.int32, np.uint8])
    def test_may_be_numbers_of_any_kind(self, net, images, y, kind):
        ours = ArtAttack(classifier(net), 0.2, budget=20)
        assert torch.equal(generated(ours, images, y.astype(kind)), generated(ours, images, y))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda y: y + 5, "labels run from 5 to 14, and the model has classes 0 to 9"),
            (lambda y: y - 1, "labels run from -1 to 8, and the model has classes 0 to 9"),
            (lambda y: y[:5], "there are 100 images and 5 labels"),
            (lambda y: y + 0.5, "y must be class indices"),
            (lambda y: np.where(y == 0, np.nan, y), "y must be class indices"),
            (lambda y: np.where(y == 0, np.inf, y), "y must be class indices"),
            (lambda y: y.astype(str), "y must be class indices"),
        ],
    )
    def test_that_are_no_classes_get_one_clear_sentence(self, net, images, y, change, message):
        with pytest.raises(InputError, match=message) as caught:
            generated(ArtAttack(classifier(net), budget=20), images, change(y))
        assert "\n" not in str(caught.value)

    def test_targets_are_reached(self, net, images, labels):
        targets = (labels + 3) % 10
        ours = ArtAttack(classifier(net), 0.5, budget=BUDGET, targeted=True)
        found = generated(ours, images, to_categorical(targets.numpy(), 10))
        direct = attack(net, images, labels, 0.5, targets=targets, budget=BUDGET)
        assert torch.equal(found, direct.adversarial)
        assert wrong(net, found, targets).sum() < 10

    def test_targets_must_be_there(self, net, images):
        with pytest.raises(InputError, match="a targeted attack needs its targets: pass y"):
            ArtAttack(classifier(net), targeted=True).generate(images.numpy())


class TestArrays:
    """Images however numpy holds them."""

    @pytest.mark.parametrize("view", [lambda x: x[:, :, ::-1], np.asfortranarray, list])
    def test_of_any_layout(self, net, images, y, view):
        ours, given = ArtAttack(classifier(net), 0.2, budget=20), view(images.numpy())
        plain = np.array(given, order="C")
        for labels in (y, None):
            assert np.array_equal(ours.generate(given, labels), ours.generate(plain, labels))

    @pytest.mark.parametrize("labels", [None, np.zeros(0, np.int64)])
    def test_without_any_image(self, net, labels):
        x = np.zeros((0, 1, 8, 8), np.float32)
        found = ArtAttack(classifier(net)).generate(x, labels)
        assert found.shape == x.shape
        assert found.dtype == x.dtype


class TestPreprocessing:
    def test_eps_is_in_pixels(self, net, images, labels, y):
        model = Normalised(net).eval()
        estimator = classifier(model, preprocessing=(MEAN, STD))
        found = generated(ArtAttack(estimator, RADII["inf"], budget=BUDGET), images, y)
        assert inside(found, images, RADII["inf"])
        assert (found - images).abs().max() == pytest.approx(RADII["inf"], rel=1e-4)
        broken = wrong(model, (found - MEAN) / STD, labels).sum()
        theirs = (generated(pgd(estimator), images, y) - MEAN) / STD
        assert wrong(model, theirs, labels).sum() <= broken < 100

    def test_defences_of_pytorch_are_attacked_with_the_model(self, net, images, labels, y):
        estimator = classifier(net, preprocessing_defences=Doubling(device_type="cpu"))
        points = ArtAttack(estimator, 0.05, budget=BUDGET).generate(images.numpy() / 2, y)
        direct = attack(Doubled(net).eval(), images / 2, labels, 0.05, budget=BUDGET)
        assert np.array_equal(points, direct.adversarial.numpy())
        accuracy, _ = compute_accuracy(estimator.predict(points), to_categorical(y, 10))
        assert accuracy == pytest.approx(1 - direct.success.float().mean().item())

    def test_defences_of_numpy_are_refused(self, net, images, y):
        estimator = classifier(
            net, preprocessing_defences=FeatureSqueezing(bit_depth=4, clip_values=(0, 1))
        )
        with pytest.raises(ModelError, match="preprocessing works on numpy arrays"):
            ArtAttack(estimator).generate(images.numpy(), y)


class TestClipValues:
    def test_may_differ_between_pixels(self, net, images, y):
        high = np.ones((1, 8, 8), np.float32)
        high[:, :, 4:] = 0.6
        low = np.zeros_like(high)
        given = torch.minimum(images, torch.from_numpy(high))
        found = generated(ArtAttack(classifier(net, (low, high)), 0.3, budget=BUDGET), given, y)
        assert inside(found, given, 0.3)
        assert found[..., 4:].max() == pytest.approx(0.6)
        assert found[..., :4].max() > 0.6

    def test_may_be_missing(self, net, images, labels, y):
        found = generated(ArtAttack(classifier(net, None), 0.2, budget=BUDGET), images, y)
        direct = attack(net, images, labels, 0.2, bounds=None, budget=BUDGET)
        assert torch.equal(found, direct.adversarial)
        assert found.min() < 0


class TestModes:
    def test_the_model_is_attacked_in_eval_mode_and_left_as_it_was(self, net, images, y):
        model = partly_training(net)
        ours = ArtAttack(classifier(model), 0.2, budget=BUDGET)
        before, state = modes(model), copy.deepcopy(model.state_dict())
        found = generated(ours, images, y)
        generated(ours, images)
        assert modes(model) == before
        assert all(torch.equal(state[name], now) for name, now in model.state_dict().items())
        model.eval()
        assert torch.equal(generated(ours, images, y), found)

    def test_no_pass_is_in_train_mode(self, net, images):
        model = Watched(net).train()
        generated(ArtAttack(classifier(model), 0.2, budget=20), images)
        assert model.modes == {False}

    def test_also_after_an_error(self, net, images, y):
        model = partly_training(net)
        before = modes(model)
        with pytest.raises(InputError, match="outside the bounds"):
            generated(ArtAttack(classifier(model)), images + 1, y)
        assert modes(model) == before


class TestTheirTools:
    def test_success_as_they_compute_it(self, net, images, labels, y):
        estimator = classifier(net)
        found = attack(net, images, labels, 0.2, budget=BUDGET)
        points = ArtAttack(estimator, 0.2, budget=BUDGET).generate(images.numpy(), y)
        right = ~wrong(net, images, labels).numpy()
        share = compute_success(estimator, images.numpy()[right], y[right], points[right])
        assert share == pytest.approx(found.success[torch.from_numpy(right)].float().mean().item())

    def test_their_auto_attack_runs_it_after_others(self, net, images, labels, y):
        estimator = classifier(net)
        ours = ArtAttack(estimator, RADII["inf"], budget=BUDGET)
        ensemble = AutoAttack(estimator, eps=RADII["inf"], attacks=[pgd(estimator), ours])
        found = generated(ensemble, images, y)
        assert inside(found, images, RADII["inf"])
        assert 1 in ensemble.best_attacks
        theirs = wrong(net, generated(pgd(estimator), images, y), labels)
        assert wrong(net, found, labels).sum() > theirs.sum()

    def test_their_auto_attack_also_gives_it_targets(self, net, images, labels, y):
        estimator, few = classifier(net), slice(0, 20)
        ours = ArtAttack(estimator, RADII["inf"], budget=20)
        before = wrong(net, generated(ours, images[few], y[few]), labels[few])
        ensemble = AutoAttack(estimator, eps=RADII["inf"], attacks=[ours], targeted=True)
        found = generated(ensemble, images[few], y[few])
        assert ours.targeted
        assert inside(found, images[few], RADII["inf"])
        assert (wrong(net, found, labels[few]) >= before).all()

    def test_parameters_are_set_as_theirs_are(self, net, images, labels, y):
        ours = ArtAttack(classifier(net))
        assert isinstance(ours, EvasionAttack)
        ours.set_params(eps=0.2, norm=2, budget=50, seed=3, solver=None, targeted=False)
        assert repr(ours) == (
            "ArtAttack(eps=0.2, norm=2, budget=50, solver=None, seed=3, targeted=False, )"
        )
        direct = attack(net, images, labels, 0.2, norm="2", budget=50, seed=3)
        assert torch.equal(generated(ours, images, y), direct.adversarial)
        with pytest.raises(ValueError, match='"steps" cannot be set'):
            ours.set_params(steps=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eps": -1}, "eps must be a finite number, not negative; it is -1"),
        ({"eps": np.ones(3)}, "eps must be a finite number"),
        ({"norm": 3}, "norm must be one of inf, 2, 1; it is 3"),
        ({"budget": 0}, "budget must be a whole number, at least 1; it is 0"),
        ({"budget": None}, "budget must be a whole number, at least 1; it is None"),
        ({"targeted": "yes"}, "targeted must be True or False; it is 'yes'"),
    ],
)
def test_bad_options_get_one_clear_sentence(net, options, message):
    with pytest.raises(InputError, match=message):
        ArtAttack(classifier(net), **options)
    ours = ArtAttack(classifier(net))
    with pytest.raises(InputError, match=message):
        ours.set_params(**options)


def test_a_mask_is_not_ignored(net, images, y):
    ours = ArtAttack(classifier(net), 0.2, budget=20)
    with pytest.raises(InputError, match="this attack has no option 'mask'"):
        ours.generate(images.numpy(), y, mask=np.ones((8, 8)))
    assert ours.generate(images.numpy(), y, mask=None).shape == images.shape


def test_only_classifiers_of_pytorch_are_attacked():
    other = BlackBoxClassifier(lambda x: np.zeros((len(x), 10)), (1, 8, 8), 10)
    with pytest.raises(EstimatorError, match=r"ArtAttack requires .* derived from .*PyTorch"):
        ArtAttack(other)


def test_what_was_passed_is_not_changed(net, images, y):
    x, kept = images.numpy().copy(), copy.deepcopy((images.numpy(), y, net.state_dict()))
    ArtAttack(classifier(net), 0.2, budget=20).generate(x, y)
    assert np.array_equal(x, kept[0])
    assert np.array_equal(y, kept[1])
    assert all(torch.equal(kept[2][name], now) for name, now in net.state_dict().items())
    assert all(weight.grad is None and weight.requires_grad for weight in net.parameters())
