"""Models of any precision and habit under attack."""

import copy
import warnings

import pytest
import torch
from classifiers import CLEAR, Calls, batch, linear, relu_network, worst_margin
from torch import nn

import facetwalk as fw
from facetwalk.robustness import attack
from facetwalk.solvers import Sign


class TestModels:
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
    def test_work_in_their_own_precision(self, dtype):
        net = linear()
        images, labels = batch(net, 60)
        worst = worst_margin(net, images, labels, "inf", 0.1)
        clear = worst.abs() > 0.1
        low = copy.deepcopy(net).to(dtype)
        found = attack(low, images, labels, 0.1, bounds=None, budget=100)
        assert found.adversarial.dtype == dtype
        assert torch.equal(found.success[clear], worst[clear] > 0)

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
    def test_without_weights_follow_the_images(self, dtype):
        net = Calls(nn.Identity(), lambda net, x: torch.stack([x.sum(1), 2 - x.sum(1)], 1))
        images = torch.tensor([[0.9, 0.9, 0.9], [0.4, 0.4, 0.4]], dtype=dtype)
        found = attack(net, images, torch.tensor([0, 0]), 0.2, budget=50)
        assert found.adversarial.dtype == dtype
        assert found.success.tolist() == [False, True]
        assert found.predicted.tolist() == [0, 1]

    def test_may_work_in_place(self):
        net = relu_network()
        images, labels = batch(net, features=4)
        own = Calls(net, lambda net, x: net(x.sub_(0.5).add_(0.5)))
        plain = attack(net, images, labels, 0.1, budget=50)
        again = attack(own, images, labels, 0.1, budget=50)
        assert torch.equal(plain.success, again.success)

    @pytest.mark.parametrize("scale", [1e3, 1e6])
    def test_with_a_saturated_cross_entropy_fall_too(self, scale):
        net = linear().float()
        net.weight.data *= scale
        net.bias.data *= scale
        images, labels = batch(linear(), 60)
        worst = worst_margin(linear(), images, labels, "inf", 0.1)
        clear = worst.abs() > CLEAR
        found = attack(net, images, labels, 0.1, bounds=None, budget=100)
        assert torch.equal(found.success[clear], worst[clear] > 0)

    def test_whose_images_are_rounded_give_no_gradient_and_no_error(self):
        net = Calls(linear(), lambda net, x: net((x * 4).round() / 4))
        images, labels = batch(net)
        found = attack(net, images, labels, 0.2, budget=100)
        assert torch.equal(found.success, net(found.adversarial).argmax(1) != labels)
        assert found.success.any()

    def test_that_are_frozen_must_say_that_they_are_in_eval_mode(self):
        net = relu_network()
        images, labels = batch(net, features=4)
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            frozen = torch.jit.freeze(torch.jit.script(net))
        with pytest.raises(fw.ModelError, match=r"frozen TorchScript .* call model.eval\(\) first"):
            attack(frozen, images, labels, 0.1)
        found = attack(frozen.eval(), images, labels, 0.1, solver=Sign(steps=20))
        plain = attack(net, images, labels, 0.1, solver=Sign(steps=20))
        assert torch.equal(found.success, plain.success)

    def test_with_infinite_logits_for_classes_that_are_left_out(self):
        net = linear(classes=4)
        masked = Calls(net, lambda net, x: net(x).index_fill(1, torch.tensor([3]), -torch.inf))
        images, labels = batch(masked)
        found = attack(masked, images, labels, 0.1, budget=100)
        assert found.success.any()
        assert (found.predicted != 3).all()
