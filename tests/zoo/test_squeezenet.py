import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from facetwalk.sites import discover
from facetwalk.zoo import Normalize, SqueezeNet

SHARED = Path(__file__).parents[3] / "shared" / "data"
IMAGENET = Path(os.environ.get("FACETWALK_DATA", SHARED)) / "imagenet"
WEIGHTS = IMAGENET / "squeezenet1_1.pt"

needs_weights = pytest.mark.skipif(
    not WEIGHTS.exists(), reason=f"no weights at {WEIGHTS}: set FACETWALK_DATA"
)
needs_images = pytest.mark.skipif(
    not (IMAGENET / "images").is_dir(), reason=f"no images in {IMAGENET}: set FACETWALK_DATA"
)


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def net() -> SqueezeNet:
    """Five classes, and weights with which signals neither fade nor grow."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = SqueezeNet(classes=5).eval()
        for part in net.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_uniform_(part.weight, nonlinearity="relu")
    return net


def test_it_has_torchvisions_number_of_parameters():
    assert sum(p.numel() for p in SqueezeNet().parameters()) == 1_235_496


def test_a_fire_module_by_hand(net):
    fire, x = net.features[3].double(), draw(2, 64, 5, 6).double()
    state = {name: value.numpy() for name, value in fire.state_dict().items()}

    def layer(name: str, x: np.ndarray) -> np.ndarray:
        weight = state[f"{name}.weight"]
        edge = weight.shape[-1] // 2
        padded = np.pad(x, ((0, 0), (0, 0), (edge, edge), (edge, edge)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], (2, 3))
        z = np.einsum("ncijuv,ocuv->noij", windows, weight)
        return np.maximum(z + state[f"{name}.bias"][:, None, None], 0)

    squeezed = layer("squeeze", x.numpy())
    expected = np.concatenate([layer("expand1x1", squeezed), layer("expand3x3", squeezed)], 1)
    np.testing.assert_allclose(fire(x).detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("size", "widths"), [(17, (8, 4, 2, 1)), (224, (111, 55, 27, 13))], ids=["ragged", "imagenet"]
)
def test_its_sites_are_its_relus_between_pools_of_three_pixels(net, size, widths):
    sites = discover(net, draw(1, 3, size, size))
    channels = [
        [64],
        [16, 64, 64] * 2,
        [32, 128, 128] * 2,
        [48, 192, 192] * 2 + [64, 256, 256] * 2 + [5],
    ]
    expected = [(n, w, w) for w, numbers in zip(widths, channels, strict=True) for n in numbers]
    assert [site.shape for site in sites] == expected
    assert {site.op for site in sites} == {"relu"}


def test_logits_are_means_over_the_image_and_never_negative(net):
    images = draw(3, 3, 40, 33)
    logits = net(images)
    assert logits.shape == (3, 5)
    before = net.classifier[1](net.features(images)).detach().clamp(min=0)
    torch.testing.assert_close(logits, before.mean((2, 3)))


@needs_weights
def test_names_and_shapes_are_those_of_torchvision():
    theirs = torch.load(WEIGHTS, "cpu", weights_only=True)
    net = SqueezeNet()
    assert {n: v.shape for n, v in net.state_dict().items()} == {
        n: v.shape for n, v in theirs.items()
    }
    net.load_state_dict(theirs)


@needs_weights
@needs_images
def test_with_torchvisions_weights_it_knows_most_of_some_real_images():
    image_of = pytest.importorskip("PIL.Image").open
    files = sorted((IMAGENET / "images").glob("*.jpg"))[::10]
    pixels = np.stack([np.array(image_of(file).convert("RGB"))[16:240, 16:240] for file in files])
    net = SqueezeNet()
    net.load_state_dict(torch.load(WEIGHTS, "cpu", weights_only=True))
    with torch.no_grad():
        logits = nn.Sequential(Normalize(), net).eval()(
            torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255
        )
    known = [
        int(file.name[:3]) == found for file, found in zip(files, logits.argmax(1), strict=True)
    ]
    assert sum(known) > len(files) / 2
