"""What users of attacks stumble over is found and named before anything is measured."""

import copy

import pytest
import torch
import torch.nn.functional as F
from classifiers import Calls, Counting, batch, linear, relu_network
from torch import nn

import facetwalk as fw
from facetwalk.robustness import Finding, check


def names(*arguments, **options) -> list[str]:
    return [finding.name for finding in check(*arguments, **options)]


def scaled(scale: float) -> nn.Linear:
    net = linear()
    net.weight.data *= scale
    net.bias.data *= scale
    return net


def mixing(net, x):
    return net(x - x.mean(0) + 0.5)


def constant(net, x):
    return net(x) * 0 + F.one_hot(torch.tensor(1), 4)


FOUND = {
    "a plain classifier": (linear(), []),
    "ReLUs": (relu_network(features=5), []),
    "log-softmax": (nn.Sequential(linear(), nn.LogSoftmax(1)).eval(), []),
    "noise": (Calls(linear(), lambda net, x: net(x) + torch.randn(len(x), 4)), ["randomised"]),
    "noise on images": (Calls(linear(), lambda net, x: net(x + torch.randn_like(x))), None),
    "dropout": (Calls(linear(), lambda net, x: net(F.dropout(x, 0.2, training=True))), None),
    "mixed rows": (Calls(linear(), mixing), ["batch"]),
    "rounding of rows": (Calls(linear(), lambda net, x: net(x) + 1e-4 * (len(x) > 1)), []),
    "softmax": (nn.Sequential(linear(), nn.Softmax(1)).eval(), ["softmax"]),
    "saturated": (scaled(1e5), ["zero-gradients"]),
    "saturated softmax": (
        nn.Sequential(scaled(1e5), nn.Softmax(1)).eval(),
        ["softmax", "zero-gradients"],
    ),
    "rounded images": (
        Calls(linear(), lambda net, x: net((x * 9).round() / 9)),
        ["zero-gradients"],
    ),
    "rounded logits": (Calls(linear(), lambda net, x: (99 * net(x)).round()), ["zero-gradients"]),
    "in place": (Calls(relu_network(features=5), lambda net, x: net(x.sub_(0.5).add_(0.5))), []),
}


def test_passes_hold_no_more_rows_than_were_asked_for():
    counting = Counting(nn.Sequential(scaled(1e5), nn.Softmax(1)))
    images, labels = batch(counting.net, 64)
    assert names(counting, images, labels, batch_size=7) == ["softmax", "zero-gradients"]
    assert max(len(x) for x in counting.passes) == 7
    mixed = Calls(linear(), mixing)
    assert names(mixed, *batch(linear(), 64), batch_size=7) == names(mixed, *batch(linear(), 64))


@pytest.mark.parametrize(("net", "expected"), FOUND.values(), ids=FOUND)
def test_findings(net, expected):
    images, labels = batch(net, 64)
    expected = ["randomised"] if expected is None else expected
    found = [name for name in names(net, images, labels) if name != "accuracy"]
    assert found == expected


class TestGradientsThatAreNotFinite:
    def test_behind_a_branch_that_is_never_taken_are_named(self):
        net = Calls(linear(), lambda net, x: net(torch.where(x > -1, x, x * torch.nan)))
        images, labels = batch(linear(), 64)
        assert torch.equal(net(images), net.net(images))
        (finding,) = check(net, images, labels)
        assert finding.name == "nan-gradients"
        assert finding.words.startswith("for 64 of 64 images some of the gradient")
        assert "torch.where one side of which is NaN" in finding.words

    def test_at_a_single_pixel_of_a_single_image_are_named(self):
        net = Calls(linear(), lambda net, x: net(x.sqrt() ** 2))
        images, labels = batch(linear(), 64)
        assert names(net, images, labels) == []
        images[40, 2] = 0
        torch.testing.assert_close(net(images), net.net(images))
        (finding,) = check(net, images, labels, batch_size=7)
        assert finding.name == "nan-gradients"
        assert finding.words.startswith("for 1 of 64 images some of the gradient")

    def test_may_be_infinite(self):
        net = Calls(linear(), lambda net, x: net(x + x.sqrt()))
        images, _ = batch(linear(), 64)
        images[:3, 1] = 0
        (finding,) = check(net, images, net(images).argmax(1))
        assert finding.words.startswith("for 3 of 64 images some of the gradient")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_low_precision_is_no_finding(dtype):
    net = relu_network(features=5).to(dtype)
    images, _ = batch(relu_network(features=5))
    assert names(net, images, net(images.to(dtype)).argmax(1)) == []


@pytest.mark.parametrize(
    ("classes", "right", "expected"),
    [
        (10, 0, ["accuracy"]),
        (10, 5, ["accuracy"]),
        (10, 20, []),
        (2, 20, ["accuracy"]),
        (2, 28, []),
        (2, 40, []),
    ],
)
def test_accuracy_like_that_of_guessing_is_a_finding(classes, right, expected):
    net = linear(classes=classes)
    images, labels = batch(net, 40, wrong=40 - right)
    assert names(net, images, labels) == expected


def test_few_images_say_nothing_of_accuracy():
    net = linear()
    assert names(net, *batch(net, 7, wrong=7)) == []


def test_one_image_is_enough_for_the_rest():
    net = nn.Sequential(linear(), nn.Softmax(1)).eval()
    assert names(net, *batch(net, 1)) == ["softmax"]


def test_no_images_have_no_findings():
    assert check(linear(), torch.zeros(0, 5), torch.zeros(0, dtype=torch.long)) == []


def test_words_say_what_to_do():
    net = nn.Sequential(linear(), nn.Softmax(1)).eval()
    (finding,) = check(net, *batch(net))
    assert isinstance(finding, Finding)
    assert "without its last softmax" in finding.words


def test_nothing_of_the_users_is_changed():
    net = Calls(nn.Dropout(), lambda net, x: F.dropout(x, 0.5, training=True))
    images = torch.rand(20, 5)
    kept, random = copy.deepcopy(images), torch.get_rng_state()
    assert names(net, images, torch.zeros(20, dtype=torch.long))[0] == "randomised"
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.equal(images, kept)


@pytest.mark.parametrize(
    "function",
    [
        lambda net, x: net(x.detach()),
        lambda net, x: net(x).detach(),
        lambda net, x: torch.no_grad()(net)(x),
        lambda net, x: torch.inference_mode()(net)(x),
        lambda net, x: F.one_hot(net(x).argmax(1), 4).double(),
    ],
    ids=["detached images", "detached outputs", "no_grad", "inference_mode", "argmax"],
)
def test_a_model_without_a_gradient_is_an_error(function):
    net = Calls(linear(), function)
    with pytest.raises(fw.ModelError, match="no gradient passes from the model's outputs"):
        check(net, *batch(net))


@pytest.mark.parametrize("wrong", [0, 50, 200])
def test_labels_beyond_those_that_it_looks_at_must_fit_too(wrong):
    net = linear()
    images, labels = batch(net, 201)
    labels[wrong] = 4
    with pytest.raises(fw.InputError, match="labels run from 0 to 4, and the model has classes"):
        check(net, images, labels)
