"""Attacks against worst cases that are known, and what they leave alone."""

import copy

import pytest
import torch
import torch.nn.functional as F
from classifiers import Calls, Counting, batch, gains, linear, relu_network, worst_margin
from torch import nn

import facetwalk as fw
from facetwalk.robustness import attack
from facetwalk.solvers import ActivationDescent, Apgd, Sign

NORMS = {"inf": 0.1, "2": 0.2, "1": 0.4}
CLEAR = 1e-3
"""Worst cases nearer to zero than this are a matter of rounding."""


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
        expected = F.cross_entropy(logits, labels, reduction="none").float()
        torch.testing.assert_close(found.loss.float(), expected)
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

    def test_with_infinite_logits_for_classes_that_are_left_out(self):
        net = linear(classes=4)
        masked = Calls(net, lambda net, x: net(x).index_fill(1, torch.tensor([3]), -torch.inf))
        images, labels = batch(masked)
        found = attack(masked, images, labels, 0.1, budget=100)
        assert found.success.any()
        assert (found.predicted != 3).all()


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
        ({"norm": "Linf"}, "norm must be one of inf, 2, 1; it is 'Linf'"),
        ({"norm": 3}, "norm must be one of inf, 2, 1; it is 3"),
        ({"norm": [2]}, r"norm must be one of inf, 2, 1; it is \[2\]"),
        ({"eps": -0.1}, "eps must be a finite number, not negative; it is -0.1"),
        ({"eps": float("nan")}, "eps must be a finite number"),
        ({"eps": None}, "eps must be a finite number"),
        ({"eps": torch.rand(3)}, "eps must be a finite number"),
        ({"bounds": (0, 1, 2)}, "bounds must be two"),
        ({"bounds": 1}, "bounds must be two"),
        ({"seed": 0.5}, "seed must be a whole number"),
        ({"seed": torch.arange(3)}, "one for each of the 6 images; it is torch.int64"),
        ({"seed": torch.zeros(6)}, "seed must be a whole number"),
        ({"budget": 0}, "at least 1; it is 0"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
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


def test_passes_hold_no_more_rows_than_were_asked_for():
    counting = Counting(relu_network())
    images, labels = batch(counting.net, 12, features=4)
    attack(counting, images, labels, 0.01, solver=Sign(steps=5), batch_size=3)
    sizes = [len(x) for x in counting.passes]
    first, last = sizes.index(3), len(sizes) - 1 - sizes[::-1].index(3)
    assert max(sizes[first:last]) == 3


def test_progress_is_silent_by_default(capsys):
    net = linear()
    images, labels = batch(net)
    attack(net, images, labels, 0.1, budget=20)
    assert capsys.readouterr() == ("", "")


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
