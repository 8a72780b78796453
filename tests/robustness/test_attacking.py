"""Attacks: what they return, what they leave alone, what they refuse."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from classifiers import NORMS, Counting, batch, linear, relu_network
from torch import nn

import facetwalk as fw
from facetwalk.robustness import attack
from facetwalk.solvers import Sign


class TestWhatIsReturned:
    def test_it_is_what_the_model_says_of_the_points(self):
        net = relu_network()
        images, labels = batch(net, features=4, wrong=5)
        found = attack(net, images, labels, 0.1, budget=100)
        logits = net(found.adversarial).detach()
        others = logits.scatter(1, labels[:, None], -torch.inf).amax(1)
        margin = others - logits.gather(1, labels[:, None]).squeeze(1)
        torch.testing.assert_close(found.margin, margin)
        assert torch.equal(found.predicted, logits.argmax(1))
        assert torch.equal(found.success, found.predicted != labels)
        expected = F.cross_entropy(logits, labels, reduction="none")
        torch.testing.assert_close(found.loss, expected)
        torch.testing.assert_close(found.confidence, logits.softmax(1).amax(1))
        assert not found.depends_on_batch.any()
        assert (found.gradients <= 100).all()
        assert (found.gradients[~found.success] >= 90).all()
        assert found.seconds > 0

    def test_what_is_wrong_already_needs_no_attack(self):
        net = linear()
        images, labels = batch(net, wrong=7)
        found = attack(net, images, labels, 0.1, budget=50)
        assert torch.equal(found.adversarial[:7], images[:7])
        assert found.success[:7].all()
        assert found.gradients[:7].tolist() == [0] * 7
        assert (found.gradients[7:] > 0).all()

    @pytest.mark.parametrize("norm", NORMS)
    def test_without_any_room_the_images_come_back(self, norm):
        net = linear()
        images, labels = batch(net)
        found = attack(net, images, labels, 0.0, norm=norm, budget=20)
        torch.testing.assert_close(found.adversarial, images)
        assert not found.success.any()

    def test_no_images_are_no_points(self):
        net = linear()
        found = attack(net, torch.zeros(0, 5), torch.zeros(0, dtype=torch.long), 0.1)
        assert found.adversarial.shape == (0, 5)
        for column in (found.success, found.margin, found.loss, found.predicted, found.gradients):
            assert column.shape == (0,)


class Noisy(nn.Module):
    """Draws from the global generator, and keeps running means that eval mode must not move."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.out = nn.BatchNorm1d(4), nn.Linear(4, 3)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        torch.rand(1)
        return self.out(self.act(self.norm(x)))


def test_nothing_of_the_users_is_changed():
    net, images = Noisy().eval(), torch.rand(10, 4).requires_grad_()
    labels = net(images).argmax(1)
    net.out.weight.requires_grad_(False)
    net.out.bias.grad = torch.ones(3)
    seeds = torch.arange(10)
    kept = copy.deepcopy((net.state_dict(), images.detach(), labels, seeds))
    flags = [(p.requires_grad, p.grad is None, p._version) for p in net.parameters()]
    hooks = [(m.training, len(m._forward_hooks), set(vars(m))) for m in net.modules()]
    random = torch.get_rng_state()
    found = attack(net, images, labels, 0.2, budget=50, seed=seeds)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(kept[0][name], value) for name, value in net.state_dict().items())
    for before, after in zip(kept[1:], (images.detach(), labels, seeds), strict=True):
        assert torch.equal(before, after)
    assert images.grad is None
    assert images.requires_grad
    assert flags == [(p.requires_grad, p.grad is None, p._version) for p in net.parameters()]
    assert hooks == [(m.training, len(m._forward_hooks), set(vars(m))) for m in net.modules()]
    assert torch.equal(net.out.bias.grad, torch.ones(3))
    assert not found.adversarial.requires_grad
    assert found.adversarial.data_ptr() != images.data_ptr()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "L3"}, "norm must be one of inf, 2, 1; it is 'L3'"),
        ({"norm": "l"}, "norm must be one of inf, 2, 1; it is 'l'"),
        ({"norm": None}, "norm must be one of inf, 2, 1; it is None"),
        ({"norm": 3}, "norm must be one of inf, 2, 1; it is 3"),
        ({"norm": [2]}, r"norm must be one of inf, 2, 1; it is \[2\]"),
        ({"eps": -0.1}, "eps must be a finite number, not negative; it is -0.1"),
        ({"eps": float("nan")}, "eps must be a finite number"),
        ({"eps": None}, "eps must be a finite number"),
        ({"eps": torch.rand(3)}, "eps must be a finite number"),
        ({"eps": torch.rand(300)}, r"eps must be a finite number.* it is tensor\(.*\.\.\."),
        ({"bounds": (0, 1, 2)}, "bounds must be two"),
        ({"bounds": 1}, "bounds must be two"),
        ({"bounds": (0, None)}, r"two numbers or tensors.* they are \(0, None\)"),
        ({"bounds": ("a", "b")}, r"or None for no bounds; they are \('a', 'b'\)"),
        ({"bounds": (torch.zeros(300), None)}, r"they are \(tensor\(.*\.\.\."),
        ({"bounds": (0, torch.ones(3))}, r"bounds of shape \(3,\) do not fit inputs of shape"),
        ({"bounds": (0, torch.ones(6, 5))}, "the same for all images; these are for 6: attack"),
        ({"seed": 0.5}, "seed must be a whole number"),
        ({"seed": None}, "seed must be a whole number; it is None"),
        ({"seed": 2**63}, r"seed must lie within 2\^62 of 0; it is 9223372036854775808"),
        ({"seed": torch.arange(3)}, "one for each of the 6 images; it is torch.int64"),
        ({"seed": torch.zeros(6)}, "seed must be a whole number"),
        ({"budget": 0}, "budget must be a whole number, at least 1; it is 0"),
        ({"budget": 2.5}, "budget must be a whole number, at least 1; it is 2.5"),
        ({"batch_size": 0}, "batch_size must be a whole number, at least 1; it is 0"),
        ({"solver": Sign}, "the solver must be one of facetwalk.solvers"),
        ({"targets": torch.zeros(5, dtype=torch.long)}, "there are 6 images and 5 targets"),
        ({"targets": torch.zeros(6)}, "targets must be class indices"),
        ({"targets": torch.full((6,), 4)}, "targets run from 4 to 4, and the model has classes"),
    ],
)
def test_bad_options_get_one_clear_sentence(options, message):
    net = linear()
    images, labels = batch(net, 6)
    with pytest.raises(fw.InputError, match=message) as caught:
        attack(net, images, labels, **({"eps": 0.1} | options))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("whole", [np.int64, torch.tensor])
def test_whole_numbers_of_other_libraries_are_whole_numbers(whole):
    net = relu_network()
    images, labels = batch(net, 12, features=4)
    plain = attack(net, images, labels, 0.1, budget=50, seed=3, batch_size=5)
    options = {"budget": whole(50), "seed": whole(3), "batch_size": whole(5)}
    assert torch.equal(attack(net, images, labels, 0.1, **options).adversarial, plain.adversarial)


@pytest.mark.parametrize("number", [2.0, np.int64(2), np.float32(2)])
def test_a_norm_may_be_a_number_of_another_library(number):
    net = linear()
    images, labels = batch(net, 12)
    plain = attack(net, images, labels, 0.2, norm="2", budget=20)
    found = attack(net, images, labels, 0.2, norm=number, budget=20)
    assert torch.equal(found.adversarial, plain.adversarial)


@pytest.mark.parametrize(
    ("norm", "name"),
    [("Linf", "inf"), ("linf", "inf"), ("INF", "inf"), (np.inf, "inf"), ("L2", "2"), ("l1", "1")],
)
def test_a_norm_may_be_named_as_other_libraries_name_it(norm, name):
    net = linear()
    images, labels = batch(net, 12)
    plain = attack(net, images, labels, NORMS[name], norm=name, budget=20)
    found = attack(net, images, labels, NORMS[name], norm=norm, budget=20)
    assert torch.equal(found.adversarial, plain.adversarial)


def test_passes_hold_no_more_rows_than_were_asked_for():
    counting = Counting(relu_network())
    images, labels = batch(counting.net, 600, features=4)
    whole = attack(counting.net, images, labels, 0.01, solver=Sign(steps=2))
    found = attack(counting, images, labels, 0.01, solver=Sign(steps=2), batch_size=3)
    assert max(len(x) for x in counting.passes) == 3
    torch.testing.assert_close(found.adversarial, whole.adversarial)


def test_progress_is_silent_by_default(capsys):
    net = linear()
    images, labels = batch(net)
    attack(net, images, labels, 0.1, budget=20)
    assert capsys.readouterr() == ("", "")
