"""The gradient is the derivative of the loss; a recording of it follows images and weights."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from facetwalk.training import loss_gradients
from facetwalk.training.loss_gradients import RecordedGradient, _Recording, loss_gradient

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def net_and_batches(device: str = "cpu") -> tuple[nn.Module, list[tuple[Tensor, Tensor]]]:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5)
    )
    batches = [(torch.rand(7, 3, 6, 6), torch.arange(7) % 5) for _ in range(3)]
    return net.to(device).eval(), [(x.to(device), y.to(device)) for x, y in batches]


def move_weights(net: nn.Module) -> None:
    with torch.no_grad():
        for weight in net.parameters():
            weight.mul_(-0.7)


def test_the_gradient_is_that_of_finite_differences():
    net, ((images, labels), *_) = net_and_batches()
    net, images = net.double(), images.double()
    found = loss_gradient(net, images, labels)
    direction, width = torch.randn_like(images), 1e-6
    ends = [
        F.cross_entropy(net(images + side * width * direction), labels, reduction="sum")
        for side in (1, -1)
    ]
    slope = ((ends[0] - ends[1]) / (2 * width)).item()
    assert (found * direction).sum().item() == pytest.approx(slope, rel=1e-6)


def test_no_gradient_is_left_on_weights_and_images():
    net, ((images, labels), *_) = net_and_batches()
    loss_gradient(net, images, labels)
    assert images.grad is None
    assert all(weight.grad is None for weight in net.parameters())


def test_what_is_recorded_reads_the_images_and_weights_of_each_call(monkeypatch):
    def imitated(work, device):
        work()
        return work

    monkeypatch.setattr(loss_gradients, "recorded", imitated)
    net, batches = net_and_batches()
    recording = _Recording(net, *batches[0])
    for images, labels in batches:
        move_weights(net)
        assert torch.equal(recording.replayed(images, labels), loss_gradient(net, images, labels))


@on_gpu
@pytest.mark.parametrize("mixed", [False, True], ids=["float32", "bfloat16"])
def test_a_gpu_replays_the_same_gradient(mixed):
    net, batches = net_and_batches("cuda")
    recorded = RecordedGradient()
    for images, labels in batches:
        move_weights(net)
        with torch.autocast("cuda", torch.bfloat16, enabled=mixed):
            found = recorded(net, images, labels).clone()
            expected = loss_gradient(net, images, labels)
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    assert found.abs().max() > 0
