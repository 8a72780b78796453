"""Attacks find the same in batches, chunks, shapes and on devices of any kind."""

import pytest
import torch
from classifiers import NORMS, batch, linear, relu_network
from torch import nn

from facetwalk.robustness import attack
from facetwalk.solvers import ActivationDescent, Apgd, Sign


class TestSameResults:
    @pytest.mark.parametrize("norm", NORMS)
    def test_image_by_image_and_together(self, norm):
        net = relu_network()
        images, labels = batch(net, 12, features=4, wrong=2)
        together = attack(net, images, labels, 0.1, norm=norm, budget=100, seed=5)
        for b in range(12):
            row = slice(b, b + 1)
            options = {"norm": norm, "budget": 100, "seed": 5 + b}
            alone = attack(net, images[row], labels[row], 0.1, **options)
            torch.testing.assert_close(alone.adversarial[0], together.adversarial[b])
            assert alone.success[0] == together.success[b]
            assert alone.gradients[0] == together.gradients[b]

    @pytest.mark.parametrize("batch_size", [1, 7, 1000])
    def test_for_any_number_of_rows_at_once(self, batch_size):
        net = relu_network()
        images, labels = batch(net, 12, features=4)
        options = {"solver": Sign(steps=20)}
        whole = attack(net, images, labels, 0.1, **options)
        parts = attack(net, images, labels, 0.1, batch_size=batch_size, **options)
        torch.testing.assert_close(parts.adversarial, whole.adversarial)

    def test_each_image_may_have_its_own_seed(self):
        net = relu_network()
        images, labels = batch(net, 12, features=4, wrong=3)
        plain = attack(net, images, labels, 0.1, budget=100, seed=9)
        order = torch.arange(11, -1, -1)
        turned = attack(net, images[order], labels[order], 0.1, budget=100, seed=9 + order)
        torch.testing.assert_close(turned.adversarial[order], plain.adversarial)

    @pytest.mark.parametrize("shape", [(4,), (1, 2, 2), (2, 2), (1, 1, 2, 2)])
    def test_images_of_any_shape(self, shape):
        flat = relu_network()
        images, labels = batch(flat, 12, features=4)
        net = nn.Sequential(nn.Flatten(), flat).eval()
        plain = attack(flat, images, labels, 0.1, budget=100)
        shaped = attack(net, images.reshape(12, *shape), labels, 0.1, budget=100)
        assert shaped.adversarial.shape == (12, *shape)
        torch.testing.assert_close(shaped.adversarial.flatten(1), plain.adversarial)

    @pytest.mark.parametrize("solver", [Sign(steps=100), Apgd(steps=100), ActivationDescent()])
    def test_with_any_solver(self, solver):
        net = relu_network()
        images, labels = batch(net, features=4)
        found = attack(net, images, labels, 0.2, solver=solver)
        assert found.success.any()
        assert torch.equal(found.success, net(found.adversarial).argmax(1) != labels)

    def test_labels_may_be_small_integers_or_a_list(self):
        net = linear()
        images, labels = batch(net)
        plain = attack(net, images, labels, 0.1, budget=50).adversarial
        for given in (labels.to(torch.uint8), labels.int(), labels.tolist()):
            assert torch.equal(attack(net, images, given, 0.1, budget=50).adversarial, plain)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("norm", NORMS)
def test_a_gpu_finds_what_a_cpu_finds(norm):
    net = relu_network()
    images, labels = batch(net, 30, features=4, wrong=3)
    plain = attack(net, images, labels, 0.1, norm=norm, budget=100)
    random = torch.cuda.get_rng_state()
    found = attack(net.cuda(), images, labels, 0.1, norm=norm, budget=100)
    assert found.adversarial.is_cuda
    assert torch.equal(found.success.cpu(), plain.success)
    assert torch.equal(torch.cuda.get_rng_state(), random)
