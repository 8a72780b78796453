"""That each method gives what it is for, on a problem where the easy answer is not robust."""

import pytest
import torch
from small_problems import tiny
from torch import Generator, Tensor, nn

from facetwalk.robustness import evaluate
from facetwalk.training import train
from facetwalk.zoo import ARCHITECTURES

RADIUS = 0.2


class Dense(nn.Sequential):
    input_shape = (1, 28, 28)

    def __init__(self) -> None:
        super().__init__(nn.Flatten(), nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 2))


def weak_and_strong(count: int) -> tuple[Tensor, Tensor]:
    """A few pixels tell the classes apart by 0.8, the others together, by 0.1 each.

    A linear function of all of them is best without perturbations, and fails at 0.2.
    """
    generator = Generator().manual_seed(0)
    labels = torch.arange(count) % 2
    signs = (2.0 * labels - 1)[:, None, None, None]
    images = torch.rand(count, 1, 28, 28, generator=generator) * 0.3 + 0.35 + 0.05 * signs
    images[:, :, :6, :6] = 0.5 + 0.4 * signs
    flipped = torch.rand(count, generator=generator) < 0.05
    images[flipped, :, :6, :6] = 1 - images[flipped, :, :6, :6]
    return images.clamp(0, 1), labels


@pytest.mark.filterwarnings("ignore::facetwalk.robustness.RobustnessWarning")
def test_every_adversarial_method_is_more_robust_than_natural_training(monkeypatch):
    monkeypatch.setitem(ARCHITECTURES, "dense", Dense)
    images, labels = weak_and_strong(300)
    robust = {}
    for method in ("natural", "fgsm", "pgd", "free"):
        recipe = tiny(
            data="mnist", architecture="dense", method=method, radius=RADIUS, epochs=80, replays=8
        )
        net = train(recipe, images[:250], labels[:250]).net
        report = evaluate(net, images[250:], labels[250:], RADIUS, budget=50)
        robust[method] = report.robust_accuracy
    assert robust["natural"] < 0.3
    assert min(robust[method] for method in ("fgsm", "pgd", "free")) > 0.8
