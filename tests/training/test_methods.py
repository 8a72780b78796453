import torch
import torch.nn.functional as F
from small_problems import dark_and_bright, tiny
from torch import Generator, Tensor, nn

from facetwalk.training.methods import METHODS, Free
from facetwalk.training.perturbing import perturb, perturb_once


def gradient_of(net: nn.Module, x: Tensor, labels: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    F.cross_entropy(net(x), labels).backward()
    assert x.grad is not None
    return x.grad


def linear_net() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Flatten(), nn.Linear(3 * 16 * 16, 20), nn.ReLU(), nn.Linear(20, 2)
        ).eval()


def test_fgsm_is_the_formula_of_its_authors():
    net, radius = linear_net(), 0.1
    images, labels = dark_and_bright(6)
    images[:, :, :4], images[:, :, 4:8] = 0.02, 0.97  # near both bounds
    found = perturb_once(net, images, labels, radius, Generator().manual_seed(5))

    uniform = torch.rand(images.shape, generator=Generator().manual_seed(5))
    delta = torch.empty_like(images).copy_(uniform * 2 * radius - radius)
    delta = delta.clamp(0 - images, 1 - images)
    delta = delta + 1.25 * radius * gradient_of(net, images + delta, labels).sign()
    delta = delta.clamp(-radius, radius).clamp(0 - images, 1 - images)
    torch.testing.assert_close(found, images + delta)
    assert (found - images).abs().max() > 0.099


def test_random_starts_differ_and_steps_raise_the_loss():
    net = linear_net()
    images, labels = dark_and_bright(6)
    generator = Generator().manual_seed(0)
    clean = F.cross_entropy(net(images), labels)
    for attack in (perturb_once, lambda *some: perturb(*some[:4], 5, some[4])):
        one, other = (attack(net, images, labels, 0.1, generator) for _ in range(2))
        assert not torch.equal(one, other)
        assert F.cross_entropy(net(one), labels) > clean
        assert (one - images).abs().max() <= 0.1 + 1e-6


def test_free_training_steps_the_perturbation_with_the_gradient_of_the_weights():
    net, radius = linear_net(), 0.1
    images, labels = dark_and_bright(4)
    images[:, :, :4], images[:, :, 4:8] = 0.02, 0.97
    method = Free(tiny(batch_size=4, method="free"), Generator())
    delta = torch.zeros_like(images)
    for radius in (0.05, 0.1, 0.1):
        for count in (4, 3):  # the second batch is smaller, and goes on with the first rows
            x = method.prepare(net, images[:count], labels[:count], radius)
            torch.testing.assert_close(x, (images + delta)[:count].clamp(0, 1))
            net.zero_grad()
            F.cross_entropy(net(x), labels[:count]).backward()

            free = delta[:count].clone().requires_grad_()
            loss = F.cross_entropy(net((images[:count] + free).clamp(0, 1)), labels[:count])
            (gradient,) = torch.autograd.grad(loss, free)
            delta[:count] = (delta[:count] + radius * gradient.sign()).clamp(-radius, radius)
            method.learn(radius)
            assert method.noise is not None
            torch.testing.assert_close(method.noise, delta)
    assert all(parameter.grad is not None for parameter in net.parameters())


def test_natural_training_leaves_images_alone():
    images, labels = dark_and_bright(4)
    method = METHODS["natural"](tiny(), Generator())
    assert method.prepare(linear_net(), images, labels, 0.1) is images
