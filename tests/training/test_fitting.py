import pytest
import torch
import torch.nn.functional as F
from small_problems import dark_and_bright, same_weights, tiny
from torch import Generator, Tensor, nn

from facetwalk.training import methods, train
from facetwalk.training.perturbing import perturb
from facetwalk.types import InputError, ModelError
from facetwalk.zoo import fresh_net

METHODS = ["natural", "fgsm", "pgd", "free"]


def robust_loss(net: nn.Module, radius: float) -> float:
    images, labels = dark_and_bright(300)
    x = perturb(net, images, labels, radius, 10, Generator().manual_seed(1))
    return F.cross_entropy(net(x), labels).item()


@pytest.mark.parametrize("method", METHODS)
def test_training_lowers_the_loss(method, capsys):
    recipe = tiny(method=method)
    radius = 0.0 if method == "natural" else recipe.radius
    before = robust_loss(fresh_net("tiny", recipe.seed).eval(), radius)
    trained = train(recipe, *dark_and_bright(300))
    assert not trained.net.training
    assert robust_loss(trained.net, radius) < before - 0.3
    assert trained.history[-1]["loss"] < trained.history[0]["loss"]
    assert trained.history[-1]["accuracy"] > 0.9
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_decides_the_network_and_the_global_generator_is_untouched(method):
    images, labels = dark_and_bright(100)
    before = torch.get_rng_state()
    nets = []
    for seed in (0, 0, 1):
        torch.rand(1)  # what came before must not matter
        state = torch.get_rng_state()
        nets.append(train(tiny(method=method, seed=seed, epochs=2), images, labels).net)
        assert torch.equal(torch.get_rng_state(), state)
    torch.set_rng_state(before)
    first, same, other = nets
    assert same_weights(first, same)
    assert not same_weights(first, other)


@pytest.mark.parametrize("method", ["fgsm", "pgd"])
def test_perturbations_are_made_in_eval_mode(method, monkeypatch):
    name = {"fgsm": "perturb_once", "pgd": "perturb"}[method]
    function, modes = getattr(methods, name), []

    def watched(net, *arguments):
        modes.append(net.training)
        return function(net, *arguments)

    monkeypatch.setattr(methods, name, watched)
    net = train(tiny(method=method, epochs=2), *dark_and_bright(100)).net
    assert modes == [False] * 4
    assert net[1].num_batches_tracked == 4  # pyright: ignore[reportIndexIssue]


def test_free_training_sees_each_batch_again_and_divides_its_passes():
    recipe = tiny(method="free", epochs=7, replays=3)
    assert recipe.passes == 3
    trained = train(recipe, *dark_and_bright(100))
    assert len(trained.history) == 3
    assert trained.net[1].num_batches_tracked == 3 * 3 * 2  # pyright: ignore[reportIndexIssue]


def test_the_report_gets_shares_that_grow_and_words_on_the_last_pass():
    said = []
    recipe = tiny(epochs=2)
    history = train(recipe, *dark_and_bright(100), report=lambda *now: said.append(now)).history
    assert [share for share, _ in said] == [0, 0.25, 0.5, 0.75]
    assert said[0][1] == "pass 1 of 2"
    loss, accuracy = history[0].values()
    assert said[2][1] == f"pass 2 of 2, loss {loss:.3f}, accuracy {accuracy:.1%}"


def test_mnist_is_not_shifted_and_the_weights_are_those_of_steps_written_out():
    images, labels = dark_and_bright(10, 1, 28)
    recipe = tiny(data="mnist", architecture="mnist-strided", method="natural", epochs=2)
    net = fresh_net("mnist-strided", 0)
    optimizer = torch.optim.Adam(net.parameters())
    for rate in (0.0, 0.5 / 0.8 * recipe.learning_rate):  # at the beginning, and half-way
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        optimizer.step()
    trained = train(recipe, images, labels).net
    for name, value in net.state_dict().items():
        torch.testing.assert_close(trained.state_dict()[name], value, rtol=1e-4, atol=1e-6)


def test_sgd_has_momentum_and_decay():
    images, labels = dark_and_bright(10, 1, 28)
    recipe = tiny(
        data="mnist", architecture="mnist-strided", method="natural", epochs=4, optimizer="sgd"
    )
    net = fresh_net("mnist-strided", 0)
    velocity = {name: torch.zeros_like(value) for name, value in net.named_parameters()}
    for done in (0, 0.25, 0.5, 0.75):
        rate = recipe.learning_rate * min(done / 0.2, (1 - done) / 0.8)
        net.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        with torch.no_grad():
            for name, value in net.named_parameters():
                assert value.grad is not None
                gradient = value.grad + 5e-4 * value
                velocity[name] = 0.9 * velocity[name] + gradient
                value -= rate * (gradient + 0.9 * velocity[name])
    trained = train(recipe, images, labels).net
    for name, value in net.state_dict().items():
        torch.testing.assert_close(trained.state_dict()[name], value, rtol=1e-4, atol=1e-6)


IMAGES, LABELS = dark_and_bright(10)


def with_nan(images: Tensor) -> Tensor:
    images = images.clone()
    images[-1, 0, 3, 3] = torch.nan
    return images


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (IMAGES[:, :1], LABELS, r"tiny takes images of shape \(3, 16, 16\), and those to train"),
        (IMAGES[:0], LABELS[:0], "there are no images to train on"),
        (IMAGES.numpy(), LABELS, r"images must be a tensor \(N, \*shape\)"),
        (None, LABELS, r"images must be a tensor \(N, \*shape\)"),
        ((255 * IMAGES).byte(), LABELS, "the images are torch.uint8: pass floats"),
        (255 * IMAGES, LABELS, r"the images run from .* and must be pixels in \[0, 1\]"),
        (IMAGES - 0.5, LABELS, r"must be pixels in \[0, 1\]: pass them as they were before"),
        (with_nan(IMAGES), LABELS, "the images hold NaN or infinite values"),
        (IMAGES, LABELS + 1, "labels run from 1 to 2, and the model has classes 0 to 1"),
        (IMAGES, LABELS - 1, "labels run from -1 to 0, and the model has classes 0 to 1"),
        (IMAGES, LABELS[:9], "there are 10 images and 9 labels"),
        (IMAGES[:9], LABELS, "there are 9 images and 10 labels"),
        (IMAGES, LABELS.float(), "labels must be class indices"),
        (IMAGES, F.one_hot(LABELS), "labels must be class indices"),
        (IMAGES, None, "labels must be class indices"),
    ],
)
def test_what_cannot_be_trained_on_is_refused_before_any_work(images, labels, message):
    def report(share: float, words: str) -> None:
        raise AssertionError("it has begun")

    with pytest.raises(InputError, match=message) as caught:
        train(tiny(), images, labels, report=report)
    assert "\n" not in str(caught.value)


def test_the_name_of_a_recipe_is_no_recipe():
    with pytest.raises(InputError, match=r"recipe_of\('mnist-pgd'\) gives; it is a str"):
        train("mnist-pgd", IMAGES, LABELS)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "given",
    [
        (IMAGES, LABELS.int()),
        (IMAGES, LABELS.tolist()),
        (IMAGES, LABELS.numpy()),
        (IMAGES.double(), LABELS),
    ],
)
def test_labels_and_floats_may_be_of_any_kind(given):
    recipe = tiny(epochs=1)
    assert same_weights(train(recipe, *given).net, train(recipe, IMAGES, LABELS).net)


def test_it_may_be_called_where_gradients_are_off():
    recipe = tiny(epochs=1)
    expected = train(recipe, IMAGES, LABELS)
    with torch.no_grad():
        assert same_weights(train(recipe, IMAGES, LABELS).net, expected.net)


def test_a_loss_that_is_no_number_ends_the_training_in_a_sentence():
    with pytest.raises(ModelError, match=r"training tiny diverged in pass 3: .* smaller learning"):
        train(tiny(learning_rate=1e30, optimizer="sgd", epochs=9), *dark_and_bright(50))
