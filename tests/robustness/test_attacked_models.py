"""Models of any precision and habit under attack."""

import copy
import math
import warnings

import pytest
import torch
import torch.nn.functional as F
from classifiers import CLEAR, Calls, batch, linear, relu_network, worst_margin
from torch import nn

import facetwalk as fw
from facetwalk.robustness import attack, check, evaluate
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

    @pytest.mark.parametrize(
        ("dtype", "counted"),
        [
            (torch.float64, torch.float64),
            (torch.float32, torch.float32),
            (torch.float16, torch.float32),
            (torch.bfloat16, torch.float32),
        ],
    )
    def test_have_losses_that_are_not_rounded_further(self, dtype, counted):
        net = linear().to(dtype)
        found = attack(net, *batch(linear(), 6), 0.0, budget=5)
        assert (found.loss.dtype, found.confidence.dtype) == (counted, counted)

    def test_that_are_sure_in_double_precision_have_a_small_loss_and_not_none(self):
        gap = 25.0
        net = Calls(linear(), lambda net, x: gap * F.one_hot(net(x).argmax(1), 4) + 0 * net(x))
        images, _ = batch(linear(), 6)
        found = attack(net, images, net(images).argmax(1), 0.1, budget=5)
        of_each = math.log1p(3 * math.exp(-gap))
        assert found.loss.tolist() == pytest.approx([of_each] * 6, rel=1e-4)
        assert (1 - found.confidence).tolist() == pytest.approx([of_each] * 6, rel=1e-4)

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

    @pytest.mark.parametrize("way", [attack, evaluate])
    def test_that_fail_away_from_the_images_say_so_in_a_sentence(self, way):
        images, labels = batch(linear(), 12)

        def careful(net, x):
            if (x[:, None] - images).abs().amax(2).amin(1).amax() > 0.0999:
                raise ValueError("boom")
            return net(x)

        with pytest.raises(fw.ModelError, match=r"a point within 0\.1 of .*: ValueError: boom"):
            way(Calls(linear(), careful), images, labels, 0.1, budget=20)

    @pytest.mark.parametrize("way", [attack, evaluate, check])
    def test_that_cannot_go_back_say_so_in_a_sentence(self, way):
        net = Calls(linear(), lambda net, x: net(torch.from_numpy(x.numpy()) + 0 * x))
        options = {} if way is check else {"eps": 0.1}
        with pytest.raises(fw.ModelError, match=r"its gradient is asked for.*Can't call numpy"):
            way(net, *batch(linear(), 6), **options)

    def test_with_infinite_logits_for_classes_that_are_left_out(self):
        net = linear(classes=4)
        masked = Calls(net, lambda net, x: net(x).index_fill(1, torch.tensor([3]), -torch.inf))
        images, labels = batch(masked)
        found = attack(masked, images, labels, 0.1, budget=100)
        assert found.success.any()
        assert (found.predicted != 3).all()


class TestInferenceMode:
    def test_changes_nothing(self):
        net = relu_network(features=5)
        images, labels = batch(net, 12)
        found = attack(net, images, labels, 0.1, budget=50)
        report = evaluate(net, images, labels, 0.1, budget=50)
        with torch.inference_mode():
            made = images.clone(), labels.clone()
            within = attack(net, *made, 0.1, budget=50)
            assert evaluate(net, *made, 0.1, budget=50).samples == report.samples
            assert check(net, *made) == []
        assert torch.equal(within.adversarial, found.adversarial)
        assert not within.adversarial.is_inference()
        assert evaluate(net, *made, 0.1, budget=50).samples == report.samples

    def test_leaves_weights_behind_that_pass_no_gradient(self):
        with torch.inference_mode():
            net = copy.deepcopy(linear())
        images, labels = batch(linear(), 12)
        for way in (attack, evaluate):
            with pytest.raises(fw.ModelError, match=r"gradient is asked for.*Inference tensors"):
                way(net, images, labels, 0.1)
