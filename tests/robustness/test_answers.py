"""A folder keeps the answers of one model, whose weights are not all that it is."""

import pytest
import torch
from classifiers import Calls, batch, linear
from evaluation_cases import EPS, STRONG, WEAK, case, contents
from torch import nn

import facetwalk as fw
from facetwalk.robustness import RobustnessWarning, evaluate


class Scaled(nn.Module):
    """A network of images that are multiplied first, by a number that is no weight."""

    def __init__(self, net: nn.Module, factor: float) -> None:
        super().__init__()
        self.net, self.factor = net, factor
        self.eval()

    def forward(self, x):
        return self.net(x * self.factor)


@pytest.mark.parametrize("done", [20, 5, 1])
@pytest.mark.parametrize("factor", [0.5, 0.95])
def test_another_forward_is_another_model(tmp_path, factor, done):
    """Where no class is another one, margins are others."""
    net, images, labels = case()
    evaluate(Scaled(net, 1.0), images, labels, EPS, budget=60, folder=tmp_path)
    file = tmp_path / "samples.jsonl"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:done]))
    before = contents(tmp_path)
    with pytest.raises(fw.InputError, match=r"another model, though of the same weights") as caught:
        evaluate(Scaled(net, factor), images, labels, EPS, budget=60, folder=tmp_path)
    assert "\n" not in str(caught.value)
    assert contents(tmp_path) == before


def test_another_class_with_the_same_margin_is_another_model(tmp_path):
    net, images, _ = case()
    labels = torch.zeros(20, dtype=torch.int64)
    swapped = Calls(net, lambda net, x: net(x)[:, [0, 2, 1]])
    options = {"attacks": {"weak": WEAK}, "folder": tmp_path}
    evaluate(net, images, labels, EPS, **options)
    with pytest.raises(
        fw.InputError, match=r"class 1 with margin (\S*), and here class 2 with margin \1;"
    ):
        evaluate(swapped, images, labels, EPS, **options)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("chunks", [(1, 20), (20, 1)])
def test_rounding_makes_no_other_model(tmp_path, dtype, chunks):
    net, images, _ = case()
    net = net.to(dtype)
    rounding = Calls(net, lambda net, x: net(x) * (1 + 1e-4 * (len(x) > 1)))
    labels = net(images.to(dtype)).argmax(1)
    first, again = (
        evaluate(rounding, images, labels, EPS, budget=60, folder=tmp_path, chunk=chunk)
        for chunk in chunks
    )
    assert again.samples == first.samples


@pytest.mark.parametrize("chunks", [(1, 20), (20, 1)])
def test_rounding_may_decide_between_classes_that_are_equal(tmp_path, chunks):
    equal = Calls(
        linear(5, 2), lambda net, x: net(x)[:, [0, 0]] + 1e-9 * (len(x) > 1) * torch.arange(2)
    )
    images, labels = torch.rand(20, 5, dtype=torch.float64), torch.ones(20, dtype=torch.int64)
    options = {"attacks": {"weak": WEAK}, "folder": tmp_path}
    with pytest.warns(RobustnessWarning):  # the gradient of a difference that is constant
        first, again = (
            evaluate(equal, images, labels, EPS, chunk=chunk, **options) for chunk in chunks
        )
    assert again.samples == first.samples


def test_infinite_logits_are_the_same_again(tmp_path):
    net, images, labels = case()
    masked = Calls(net, lambda net, x: net(x).index_fill(1, torch.tensor([2]), -torch.inf))
    labels = masked(images).argmax(1)
    labels[0] = 2
    first, again = (evaluate(masked, images, labels, EPS, budget=60, folder=tmp_path) for _ in "ab")
    assert again.samples == first.samples
    assert first.samples[0].clean_margin == torch.inf


@pytest.mark.parametrize(
    ("forward", "finding"),
    [
        (lambda net, x: net(x) + torch.randn(len(x), 4), "randomised"),
        (lambda net, x: net(x - (x.mean(0) - 0.5) * (len(x) > 1) * 3), "batch"),
    ],
)
def test_models_that_never_say_the_same_go_on(tmp_path, forward, finding):
    net = linear()
    images, labels = batch(net, 20)
    model = Calls(net, forward)
    options = {"attacks": {"strong": STRONG}, "folder": tmp_path}
    with pytest.warns(RobustnessWarning):
        first = evaluate(model, images, labels, EPS, chunk=1, **options)
    with pytest.warns(RobustnessWarning):
        again = evaluate(model, images, labels, EPS, **options)
    assert finding in {found.name for found in again.findings}
    assert again.samples == first.samples


def test_samples_say_how_wrong_the_model_is_at_the_image_itself():
    net, images, labels = case()
    logits = net(images).detach()
    others = logits.scatter(1, labels[:, None], -torch.inf).amax(1)
    expected = others - logits.gather(1, labels[:, None]).squeeze(1)
    found = evaluate(net, images, labels, EPS, budget=60).samples
    assert [s.clean_margin for s in found] == pytest.approx(expected.tolist())
