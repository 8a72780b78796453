from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
import torch.nn.functional as F
from random_weights import draw, randomised
from torch import Tensor, nn

from facetwalk.sites import Sites, audit, discover, pattern_of
from facetwalk.types import NotAffineWarning
from facetwalk.zoo import Vgg19

CHANNELS = [64, 64, 128, 128] + [256] * 4 + [512] * 8
CONVOLUTIONS = {
    False: [0, 2, 5, 7, 10, 12, 14, 16, 19, 21, 23, 25, 28, 30, 32, 34],
    True: [0, 3, 7, 10, 14, 17, 20, 23, 27, 30, 33, 36, 40, 43, 46, 49],
}
"""Numbers of the convolutions in torchvision's `vgg19` and `vgg19_bn`."""
BEFORE_POOLS = [1, 3, 7, 11, 15]
BATCH_NORM_ENTRIES = ("weight", "bias", "running_mean", "running_var")

with_and_without_batch_norm = pytest.mark.parametrize(
    "batch_norm", [False, True], ids=["plain", "batch norm"]
)


def published(batch_norm: bool, classes: int) -> list[tuple[str, tuple[int, ...]]]:
    entries: list[tuple[str, tuple[int, ...]]] = []
    inputs = 3
    for number, outputs in zip(CONVOLUTIONS[batch_norm], CHANNELS, strict=True):
        entries.append((f"features.{number}.weight", (outputs, inputs, 3, 3)))
        entries.append((f"features.{number}.bias", (outputs,)))
        if batch_norm:
            norm = f"features.{number + 1}"
            entries += [(f"{norm}.{name}", (outputs,)) for name in BATCH_NORM_ENTRIES]
            entries.append((f"{norm}.num_batches_tracked", ()))
        inputs = outputs
    for number, outputs in ((1, 512), (4, 512), (6, classes)):
        entries.append((f"classifier.{number}.weight", (outputs, 512)))
        entries.append((f"classifier.{number}.bias", (outputs,)))
    return entries


def recomputed(state: dict[str, Tensor], batch_norm: bool, x: Tensor) -> Tensor:
    for position, number in enumerate(CONVOLUTIONS[batch_norm]):
        name = f"features.{number}"
        x = F.conv2d(x, state[f"{name}.weight"], state[f"{name}.bias"], padding=1)
        if batch_norm:
            norm = f"features.{number + 1}"
            weight, bias, mean, variance = (state[f"{norm}.{e}"] for e in BATCH_NORM_ENTRIES)
            x = F.batch_norm(x, mean, variance, weight, bias)
        x = F.relu(x)
        if position in BEFORE_POOLS:
            x = F.max_pool2d(x, 2)
    x = x.flatten(1)
    for name in ("classifier.1", "classifier.4"):
        x = F.relu(F.linear(x, state[f"{name}.weight"], state[f"{name}.bias"]))
    return F.linear(x, state["classifier.6.weight"], state["classifier.6.bias"])


@contextmanager
def mean_pools(net: Vgg19) -> Iterator[None]:
    pools = {i: layer for i, layer in enumerate(net.features) if isinstance(layer, nn.MaxPool2d)}
    for i in pools:
        net.features[i] = nn.AvgPool2d(2)
    try:
        yield
    finally:
        for i, pool in pools.items():
            net.features[i] = pool


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "batch norm"])
def both(request) -> tuple[Vgg19, bool]:
    with torch.device("meta"):
        net = Vgg19(batch_norm=request.param)
    return randomised(net), request.param


@pytest.fixture(scope="module")
def sites(both) -> Sites:
    return discover(both[0], draw(1, 3, 32, 32))


@with_and_without_batch_norm
@pytest.mark.parametrize("classes", [10, 7])
def test_names_and_shapes_are_those_of_the_public_network(batch_norm, classes):
    with torch.device("meta"):
        net = Vgg19(classes, batch_norm)
    found = [(name, tuple(value.shape)) for name, value in net.state_dict().items()]
    assert found == published(batch_norm, classes)


@pytest.mark.parametrize(("batch_norm", "count"), [(False, 20_554_826), (True, 20_565_834)])
def test_it_has_the_public_networks_number_of_parameters(batch_norm, count):
    with torch.device("meta"):
        net = Vgg19(batch_norm=batch_norm)
    assert sum(parameter.numel() for parameter in net.parameters()) == count


def test_logits_are_those_computed_from_the_state_dict_alone(both):
    net, batch_norm = both
    images = draw(2, 3, 32, 32)
    with torch.no_grad():
        logits = net(images)
        assert logits.std() > 0.01
        torch.testing.assert_close(logits, recomputed(net.state_dict(), batch_norm, images))


def test_its_sites_are_its_relus_which_work_in_place(both, sites):
    net, batch_norm = both
    images = draw(2, 3, 32, 32)
    widths = [32] * 2 + [16] * 2 + [8] * 4 + [4] * 4 + [2] * 4
    expected = [(n, w, w) for n, w in zip(CHANNELS, widths, strict=True)]
    assert [site.shape for site in sites] == [*expected, (512,), (512,)]
    after = 2 if batch_norm else 1
    names = [f"features.{number + after}#0" for number in CONVOLUTIONS[batch_norm]]
    assert [site.name for site in sites] == [*names, "classifier.2#0", "classifier.5#0"]
    assert all(part.inplace for part in net.modules() if isinstance(part, nn.ReLU))
    with torch.no_grad():
        logits, pre_activations = sites.pre_activations(images)
        gates = pattern_of(sites, pre_activations).gates(images.dtype)
        torch.testing.assert_close(sites.gated(images, gates)[0], logits)
        torch.testing.assert_close(net(images), logits)


def test_between_its_relus_only_its_max_pools_are_not_affine(both, sites):
    net, batch_norm = both
    a, b = draw(2, 3, 32, 32).split(1)
    after_the_first_pool = "features.9#0" if batch_norm else "features.6#0"
    with pytest.warns(NotAffineWarning):
        assert audit(sites, a, b) == after_the_first_pool
    with mean_pools(net):
        assert audit(sites, a, b) is None


def test_new_weights_pass_on_what_torchs_own_would_lose():
    images = draw(4, 3, 32, 32).float()

    def spread(net: Vgg19) -> Tensor:
        with torch.no_grad():
            return net.features(images).std(0).mean()

    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = Vgg19().eval()
        ours = spread(net)
        for part in net.features:
            if isinstance(part, nn.Conv2d):
                part.reset_parameters()
        assert ours > 1000 * spread(net)
