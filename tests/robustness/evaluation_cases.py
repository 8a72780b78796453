"""What evaluations are asked, and what they have to agree in."""

from pathlib import Path

import pytest
from classifiers import batch, relu_network

from facetwalk.solvers import Auto, Sign

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
