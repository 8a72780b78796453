"""Attacks against worst cases that are known."""

import pytest
import torch
from classifiers import CLEAR, NORMS, batch, gains, linear, relu_network, worst_margin

from facetwalk.robustness import attack


def distances(a, b, norm):
    return torch.linalg.vector_norm((a - b).flatten(1), float(norm), dim=1)


class TestLinearClassifiers:
    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize(("classes", "budget"), [(2, 200), (3, 200), (10, 3000)])
    @pytest.mark.parametrize("norm", NORMS)
    def test_success_is_where_the_closed_form_says(self, norm, classes, budget, seed):
        net = linear(classes=classes, seed=seed)
        images, labels = batch(net, 60, seed=seed + 100)
        worst = worst_margin(net, images, labels, norm, NORMS[norm])
        clear = worst.abs() > CLEAR
        assert clear.sum() > 40
        found = attack(net, images, labels, NORMS[norm], norm=norm, bounds=None, budget=budget)
        assert torch.equal(found.success[clear], worst[clear] > 0)
        assert 0 < found.success.sum() < 60
        assert (found.margin <= worst + 1e-9).all()
        assert (distances(found.adversarial, images, norm) <= NORMS[norm] * (1 + 1e-9)).all()

    @pytest.mark.parametrize("norm", NORMS)
    def test_where_it_fails_the_margin_is_the_largest_there_is(self, norm):
        net = linear()
        images, labels = batch(net)
        eps = NORMS[norm] / 4
        worst = worst_margin(net, images, labels, norm, eps)
        found = attack(net, images, labels, eps, norm=norm, bounds=None, budget=600)
        robust = ~found.success
        assert robust.sum() > 10
        torch.testing.assert_close(found.margin[robust], worst[robust], rtol=0, atol=2e-3)

    @pytest.mark.parametrize("norm", NORMS)
    def test_targets_are_reached_where_they_can_be(self, norm):
        net = linear(classes=2)
        images, labels = batch(net, 60)
        targets = 1 - labels
        worst = gains(net, images, targets, labels, norm, NORMS[norm])
        clear = worst.abs() > CLEAR
        options = {"norm": norm, "bounds": None, "budget": 200}
        found = attack(net, images, labels, NORMS[norm], targets=targets, **options)
        assert torch.equal(found.success[clear], worst[clear] > 0)
        assert torch.equal(found.predicted[found.success], targets[found.success])

    def test_another_wrong_class_is_no_success_of_a_targeted_attack(self):
        net = linear(classes=4)
        images, labels = batch(net, wrong=20)
        targets = (labels + 2) % 4
        found = attack(net, images, labels, 0.1, targets=targets, bounds=None, budget=200)
        assert (found.predicted != labels)[~found.success].any()
        assert torch.equal(found.success, found.predicted == targets)

    @pytest.mark.parametrize("norm", ["inf", float("inf"), "2", 2, 2.0, "1", 1])
    def test_norms_may_be_names_or_numbers(self, norm):
        net = linear()
        images, labels = batch(net)
        plain = attack(net, images, labels, 0.1, norm=str(norm).removesuffix(".0"), budget=50)
        again = attack(net, images, labels, 0.1, norm=norm, budget=50)
        assert torch.equal(plain.adversarial, again.adversarial)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.1, 0.9), (torch.zeros(2), torch.ones(2))])
def test_two_inputs_with_bounds_are_as_robust_as_a_grid_says(norm, bounds):
    net = relu_network(features=2, seed=3)
    images, _ = batch(net, 40, features=2)
    low, high = (torch.as_tensor(b, dtype=torch.float64).expand(2) for b in bounds)
    images = low + (high - low) * images
    labels, eps = net(images).argmax(1), 0.15
    axis = torch.linspace(-eps, eps, 201, dtype=torch.float64)
    offsets = torch.cartesian_prod(axis, axis)
    offsets = offsets[torch.linalg.vector_norm(offsets, float(norm), dim=1) <= eps]
    found = attack(net, images, labels, eps, norm=norm, bounds=bounds, budget=300)
    wrong = []
    for image, label in zip(images, labels, strict=True):
        points = torch.minimum(torch.maximum(image + offsets, low), high)
        wrong.append((net(points).argmax(1) != label).any())
    assert 0 < sum(wrong) < 40
    assert (found.success >= torch.stack(wrong)).all()
    assert (found.success == torch.stack(wrong)).float().mean() > 0.9
    assert ((found.adversarial >= low) & (found.adversarial <= high)).all()
    assert (distances(found.adversarial, images, norm) <= eps * (1 + 1e-9)).all()
