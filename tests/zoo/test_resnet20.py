import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from facetwalk.data import cifar10
from facetwalk.sites import audit, discover
from facetwalk.zoo import Normalize, ResNet20

SHARED = Path(__file__).parents[3] / "shared" / "data"
DATA = Path(os.environ.get("FACETWALK_DATA", SHARED))
CHECKPOINT = DATA / "classifiers" / "cifar10_resnet20.pt"
SPREAD_OF_NEW_BATCH_NORM = (1 + 1e-5) ** 0.5

needs_checkpoint = pytest.mark.skipif(
    not CHECKPOINT.exists(), reason=f"no weights at {CHECKPOINT}: set FACETWALK_DATA"
)
needs_images = pytest.mark.skipif(
    not (DATA / "cifar-10-batches-bin").is_dir(),
    reason=f"cifar-10-batches-bin is not in {DATA}: set FACETWALK_DATA",
)


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def net() -> ResNet20:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return ResNet20().eval()


def without_convolutions(block: nn.Module) -> nn.Module:
    for part in block.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.zeros_(part.weight)
    return block


def test_it_has_the_papers_number_of_parameters_and_layers(net):
    assert sum(p.numel() for p in net.parameters()) == 269_722
    layers = [part for part in net.modules() if isinstance(part, nn.Conv2d | nn.Linear)]
    assert len(layers) == 20


def test_a_shortcut_skips_pixels_and_puts_empty_channels_on_either_side(net):
    x = draw(2, 16, 6, 6)
    found = without_convolutions(net.layer2[0])(x).detach().numpy()
    expected = np.zeros((2, 32, 3, 3), np.float32)
    for row, column in np.ndindex(3, 3):
        expected[:, 8:24, row, column] = x[:, :, 2 * row, 2 * column].clamp(min=0)
    np.testing.assert_array_equal(found, expected)


def test_a_shortcut_within_a_stage_is_the_identity(net):
    x = draw(2, 32, 5, 5)
    assert torch.equal(without_convolutions(net.layer2[1])(x), x.clamp(min=0))


def test_with_empty_blocks_the_logits_are_of_the_mean_of_every_fourth_pixel(net):
    for stage in (net.layer1, net.layer2, net.layer3):
        without_convolutions(stage)
    nn.init.dirac_(net.conv1.weight)
    images = draw(2, 3, 8, 8)
    means = images.clamp(min=0).numpy()[:, :, ::4, ::4].mean((2, 3)) / SPREAD_OF_NEW_BATCH_NORM
    weight, bias = (p.detach().numpy() for p in net.linear.parameters())
    np.testing.assert_allclose(
        net(images).detach().numpy(), means @ weight[:, 24:27].T + bias, atol=1e-6
    )


def test_on_a_single_pixel_it_is_a_network_of_matrices(net):
    for part in net.modules():
        if isinstance(part, nn.BatchNorm2d):
            for values in (part.weight, part.bias, part.running_mean, part.running_var):
                nn.init.uniform_(values, 0.5, 1.5, generator=torch.Generator().manual_seed(0))
    state = {name: value.numpy() for name, value in net.double().state_dict().items()}

    def layer(h: np.ndarray, conv: str, norm: str) -> np.ndarray:
        weight, bias, mean, variance = (
            state[f"{norm}.{name}"] for name in ("weight", "bias", "running_mean", "running_var")
        )
        z = state[f"{conv}.weight"][:, :, 1, 1] @ h
        return (z - mean) / np.sqrt(variance + 1e-5) * weight + bias

    pixel = draw(3).double()
    h = np.maximum(layer(pixel.numpy(), "conv1", "bn1"), 0)
    for name in [f"layer{stage}.{block}" for stage in (1, 2, 3) for block in range(3)]:
        inner = np.maximum(layer(h, f"{name}.conv1", f"{name}.bn1"), 0)
        inner = layer(inner, f"{name}.conv2", f"{name}.bn2")
        h = np.maximum(inner + np.pad(h, (len(inner) - len(h)) // 2), 0)
    expected = state["linear.weight"] @ h + state["linear.bias"]
    np.testing.assert_allclose(net(pixel[None, :, None, None])[0].detach().numpy(), expected)


def test_its_sites_are_its_relus_and_between_them_it_is_affine(net):
    a, b = draw(2, 3, 32, 32).split(1)
    sites = discover(net, a)
    shapes = [(16, 32, 32)] * 7 + [(32, 16, 16)] * 6 + [(64, 8, 8)] * 6
    assert [site.shape for site in sites] == shapes
    assert audit(sites, a, b) is None


@pytest.fixture(scope="module")
def checkpoint() -> dict:
    return torch.load(CHECKPOINT, "cpu", weights_only=True)


def weights_of(checkpoint: dict) -> dict[str, Tensor]:
    return {name.removeprefix("module."): value for name, value in checkpoint["state_dict"].items()}


@needs_checkpoint
def test_names_and_shapes_are_those_of_a_public_checkpoint(net, checkpoint):
    counters = {name for name in net.state_dict() if name.endswith("num_batches_tracked")}
    ours = {name: v.shape for name, v in net.state_dict().items() if name not in counters}
    assert ours == {name: value.shape for name, value in weights_of(checkpoint).items()}
    net.load_state_dict(weights_of(checkpoint))


@needs_checkpoint
@needs_images
def test_it_classifies_real_images_as_well_as_its_checkpoint_says(net, checkpoint):
    net.load_state_dict(weights_of(checkpoint))
    images, labels = (part[:500] for part in cifar10(DATA, "test"))
    with torch.no_grad():
        found = nn.Sequential(Normalize(), net).eval()(images).argmax(1)
    percent = 100 * (found == labels).double().mean().item()
    assert percent == pytest.approx(checkpoint["best_prec1"], abs=2)
