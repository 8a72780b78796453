"""Attacks on models whose answers depend on the batch."""

import pytest
import torch
import torch.nn.functional as F
from classifiers import Calls, batch, linear
from torch import nn

from facetwalk.robustness import attack, evaluate
from facetwalk.types import ModelError


class TestBatches:
    """What fools a model only in a batch does not fool it."""

    def test_success_must_hold_alone(self):
        images, labels = batch(linear(), 60)
        rounding = Calls(
            linear(), lambda net, x: net(x) + 1e-3 * (len(x) > 1) * F.one_hot(labels[:1], 4)
        )
        found = attack(rounding, images, labels, 0.1, budget=100)
        alone = torch.cat([rounding(x[None]).argmax(1) for x in found.adversarial])
        assert torch.equal(found.success, (alone != labels) & (found.margin > 0))
        assert torch.equal(found.depends_on_batch, (found.margin > 0) & ~found.success)

    def test_images_on_the_edge_flip_by_rounding_and_are_no_success(self):
        net = Calls(
            nn.Identity(),
            lambda net, x: torch.stack(
                [x[:, 0] - x[:, 0], -1e-4 + 1e-3 * (len(x) > 1) + 0 * x[:, 0]], 1
            ),
        )
        found = attack(net, torch.rand(5, 3), torch.zeros(5, dtype=torch.long), 0.1, budget=20)
        assert (found.margin > 0).all()
        assert not found.success.any()
        assert found.depends_on_batch.all()

    def test_a_model_that_mixes_its_batch(self):
        net = linear()
        images, labels = batch(net, 40)
        mixing = Calls(net, lambda net, x: net(x - (x.mean(0) - 0.5) * (len(x) > 1) * 3))
        found = attack(mixing, images, labels, 0.05, budget=50)
        alone = torch.cat([mixing(x[None]) for x in found.adversarial]).argmax(1)
        assert found.depends_on_batch.any()
        assert (alone[found.depends_on_batch] == labels[found.depends_on_batch]).all()
        assert (alone[found.success] != labels[found.success]).all()
        assert not (found.success & found.depends_on_batch).any()


def test_a_model_that_cannot_see_an_image_alone_is_refused_in_a_sentence():
    net = linear()
    images, labels = batch(net, 12)
    together = Calls(net, lambda net, x: net(x) / (len(x) > 1 or None))
    for look in (attack, evaluate):
        with pytest.raises(ModelError, match=r"fails on images of shape \(1, 5\)"):
            look(together, images, labels, 0.5, budget=20)


@pytest.mark.parametrize("gap", [0.1, 1e-3])
def test_what_a_batch_helped_to_break_is_attacked_until_it_breaks_alone(gap):
    """A linear model with two classes, of which the second gains a little in batches."""

    class Helped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            generator = torch.Generator().manual_seed(0)
            self.weight = nn.Parameter(torch.randn(6, generator=generator))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            score = x @ self.weight + gap * (len(x) > 1)
            return torch.stack([-score / 2, score / 2], 1)

    net, eps = Helped().eval(), 0.1
    x = torch.randn(300, 6, generator=torch.Generator().manual_seed(1))
    x = x[x @ net.weight.detach() < 0]
    worst = (x @ net.weight + eps * net.weight.abs().sum()).detach()
    found = attack(net, x, torch.zeros(len(x), dtype=torch.int64), eps, bounds=None, budget=100)
    clear = worst.abs() > 1e-5
    assert torch.equal(found.success[clear], worst[clear] > 0)
    assert ((worst > -gap) & (worst < 0)).sum() == found.depends_on_batch.sum()
