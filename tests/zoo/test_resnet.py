import pytest
import torch
import torch.nn.functional as F
from random_weights import draw, randomised
from torch import Tensor, nn

import facetwalk as fw
from facetwalk.sites import Sites, audit, discover, pattern_of
from facetwalk.solvers import AdrGd
from facetwalk.types import NotAffineWarning
from facetwalk.zoo import ResNet18, WideResNet50_2

BATCH_NORM_ENTRIES = ("weight", "bias", "running_mean", "running_var")
Entries = list[tuple[str, tuple[int, ...]]]


def batch_norm(name: str, channels: int) -> Entries:
    entries: Entries = [(f"{name}.{entry}", (channels,)) for entry in BATCH_NORM_ENTRIES]
    return [*entries, (f"{name}.num_batches_tracked", ())]


def stem(size: int) -> Entries:
    return [("conv1.weight", (64, 3, size, size)), *batch_norm("bn1", 64)]


def shortcut(name: str, inputs: int, outputs: int) -> Entries:
    name = f"{name}.downsample"
    return [(f"{name}.0.weight", (outputs, inputs, 1, 1)), *batch_norm(f"{name}.1", outputs)]


def published_resnet18(classes: int, small_images: bool) -> Entries:
    entries = stem(3 if small_images else 7)
    inputs = 64
    for stage, channels in ((1, 64), (2, 128), (3, 256), (4, 512)):
        for block in (0, 1):
            name = f"layer{stage}.{block}"
            entries.append((f"{name}.conv1.weight", (channels, inputs, 3, 3)))
            entries += batch_norm(f"{name}.bn1", channels)
            entries.append((f"{name}.conv2.weight", (channels, channels, 3, 3)))
            entries += batch_norm(f"{name}.bn2", channels)
            if stage > 1 and block == 0:
                entries += shortcut(name, inputs, channels)
            inputs = channels
    return [*entries, ("fc.weight", (classes, 512)), ("fc.bias", (classes,))]


def published_wide_resnet50_2(classes: int) -> Entries:
    entries = stem(7)
    inputs = 64
    for stage, blocks, narrow, wide in (
        (1, 3, 128, 256),
        (2, 4, 256, 512),
        (3, 6, 512, 1024),
        (4, 3, 1024, 2048),
    ):
        for block in range(blocks):
            name = f"layer{stage}.{block}"
            entries.append((f"{name}.conv1.weight", (narrow, inputs, 1, 1)))
            entries += batch_norm(f"{name}.bn1", narrow)
            entries.append((f"{name}.conv2.weight", (narrow, narrow, 3, 3)))
            entries += batch_norm(f"{name}.bn2", narrow)
            entries.append((f"{name}.conv3.weight", (wide, narrow, 1, 1)))
            entries += batch_norm(f"{name}.bn3", wide)
            if block == 0:
                entries += shortcut(name, inputs, wide)
            inputs = wide
    return [*entries, ("fc.weight", (classes, 2048)), ("fc.bias", (classes,))]


class Recomputed:
    """The logits of a residual network from its state dict alone."""

    def __init__(self, net: nn.Module) -> None:
        self.state = net.state_dict()

    def layer(self, conv: str, norm: str, x: Tensor, stride: int = 1) -> Tensor:
        kernel = self.state[f"{conv}.weight"]
        x = F.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2)
        weight, bias, mean, variance = (self.state[f"{norm}.{e}"] for e in BATCH_NORM_ENTRIES)
        return F.batch_norm(x, mean, variance, weight, bias)

    def beside(self, name: str, x: Tensor, stride: int) -> Tensor:
        if f"{name}.downsample.0.weight" not in self.state:
            return x
        return self.layer(f"{name}.downsample.0", f"{name}.downsample.1", x, stride)

    def basic(self, name: str, x: Tensor, stride: int) -> Tensor:
        inside = F.relu(self.layer(f"{name}.conv1", f"{name}.bn1", x, stride))
        inside = self.layer(f"{name}.conv2", f"{name}.bn2", inside)
        return F.relu(inside + self.beside(name, x, stride))

    def bottleneck(self, name: str, x: Tensor, stride: int) -> Tensor:
        inside = F.relu(self.layer(f"{name}.conv1", f"{name}.bn1", x))
        inside = F.relu(self.layer(f"{name}.conv2", f"{name}.bn2", inside, stride))
        inside = self.layer(f"{name}.conv3", f"{name}.bn3", inside)
        return F.relu(inside + self.beside(name, x, stride))

    def logits(self, x: Tensor) -> Tensor:
        is_deep = "layer1.0.conv3.weight" in self.state
        if self.state["conv1.weight"].shape[-1] == 7:
            x = F.relu(self.layer("conv1", "bn1", x, stride=2))
            x = F.max_pool2d(x, 3, 2, padding=1)
        else:
            x = F.relu(self.layer("conv1", "bn1", x))
        for stage, blocks in enumerate((3, 4, 6, 3) if is_deep else (2, 2, 2, 2), 1):
            for block in range(blocks):
                stride = 2 if stage > 1 and block == 0 else 1
                step = self.bottleneck if is_deep else self.basic
                x = step(f"layer{stage}.{block}", x, stride)
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return F.linear(x, self.state["fc.weight"], self.state["fc.bias"])


def entries_of(net: nn.Module) -> Entries:
    return [(name, tuple(value.shape)) for name, value in net.state_dict().items()]


def parameters_of(net: nn.Module) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


@pytest.fixture(scope="module")
def small() -> ResNet18:
    with torch.device("meta"):
        net = ResNet18()
    return randomised(net)


@pytest.fixture(scope="module")
def wide() -> WideResNet50_2:
    with torch.device("meta"):
        net = WideResNet50_2(classes=5)
    return randomised(net)


@pytest.fixture(scope="module")
def wide_sites(wide) -> Sites:
    return discover(wide, draw(1, 3, 33, 33))


@pytest.mark.parametrize(
    ("classes", "small_images", "count"),
    [(1000, False, 11_689_512), (10, True, 11_173_962)],
    ids=["imagenet", "cifar"],
)
def test_resnet18_has_torchvisions_names_shapes_and_parameters(classes, small_images, count):
    with torch.device("meta"):
        net = ResNet18(classes, small_images)
    assert entries_of(net) == published_resnet18(classes, small_images)
    assert parameters_of(net) == count


def test_wide_resnet_has_torchvisions_names_shapes_and_parameters():
    with torch.device("meta"):
        net = WideResNet50_2()
    assert entries_of(net) == published_wide_resnet50_2(1000)
    assert parameters_of(net) == 68_883_240


@pytest.mark.parametrize("small_images", [True, False], ids=["small", "large"])
def test_resnet18s_logits_are_those_computed_from_the_state_dict_alone(small_images):
    with torch.device("meta"):
        net = ResNet18(7, small_images)
    images = draw(2, 3, 37, 32)
    with torch.no_grad():
        logits = randomised(net)(images)
        assert logits.std() > 0.01
        torch.testing.assert_close(logits, Recomputed(net).logits(images))


def test_wide_resnets_logits_are_those_computed_from_the_state_dict_alone(wide):
    images = draw(2, 3, 37, 64)
    with torch.no_grad():
        logits = wide(images)
        assert logits.std() > 0.01
        torch.testing.assert_close(logits, Recomputed(wide).logits(images))


def test_resnet18s_sites_are_its_relus_and_between_them_it_is_affine(small):
    a, b = draw(2, 3, 32, 32).split(1)
    sites = discover(small, a)
    shapes = [(64, 32, 32)] * 5 + [(128, 16, 16)] * 4 + [(256, 8, 8)] * 4 + [(512, 4, 4)] * 4
    assert [site.shape for site in sites] == shapes
    assert audit(sites, a, b) is None


def test_the_gates_of_an_image_give_its_logits(wide, wide_sites):
    images = draw(1, 3, 33, 33)
    with torch.no_grad():
        logits, pre_activations = wide_sites.pre_activations(images)
        gates = pattern_of(wide_sites, pre_activations).gates(images.dtype)
        torch.testing.assert_close(wide_sites.gated(images, gates)[0], logits)
        torch.testing.assert_close(wide(images), logits)


def test_wide_resnets_sites_are_its_relus_and_only_its_max_pool_is_not_affine(wide, wide_sites):
    a, b = draw(2, 3, 33, 33).split(1)
    assert len(wide_sites) == 49
    assert wide_sites.sites[0].shape == (64, 17, 17)
    with pytest.warns(NotAffineWarning):
        assert audit(wide_sites, a, b) == "layer1.0.relu#0"
    pool, wide.maxpool = wide.maxpool, nn.AvgPool2d(3, 2, padding=1)
    try:
        assert audit(wide_sites, a, b) is None
    finally:
        wide.maxpool = pool


def test_the_last_block_of_wide_resnet_makes_the_papers_number_of_variables(wide_sites):
    chosen = wide_sites.select("layer4.2")
    assert [site.name for site in chosen] == [f"layer4.2.relu#{number}" for number in range(3)]
    assert [site.shape for site in chosen] == [(1024, 2, 2), (1024, 2, 2), (2048, 2, 2)]
    shapes: list[tuple[int, ...]] = []
    with torch.device("meta"):
        net, image = WideResNet50_2().eval(), torch.zeros(1, 3, 224, 224)
    net.get_submodule("layer4.2.relu").register_forward_pre_hook(
        lambda _, args: shapes.append(tuple(args[0].shape))
    )
    net(image)
    assert shapes == [(1, 1024, 7, 7), (1, 1024, 7, 7), (1, 2048, 7, 7)]
    neurons = sum(channels * height * width for _, channels, height, width in shapes)
    assert neurons == 200_704
    assert image.numel() + neurons == 351_232


@pytest.mark.parametrize("small_images", [True, False])
def test_relus_work_in_place_as_torchvisions_do(small_images):
    with torch.device("meta"):
        nets = [ResNet18(10, small_images), WideResNet50_2()]
    for net in nets:
        assert all(part.inplace for part in net.modules() if isinstance(part, nn.ReLU))


def test_adr_gd_with_gates_in_the_last_block_raises_the_loss(small):
    images, labels = draw(2, 3, 8, 8).sigmoid(), torch.tensor([2, 0])
    space = fw.LinfBall(images, eps=0.05, bounds=(0, 1))
    problem = fw.Problem(small, fw.objectives.CrossEntropy(labels), space)
    solver = AdrGd(steps=10, sites="layer4.1", normals="probed", probes=2)
    result = fw.maximize(problem, solver=solver)
    assert (result.value > result.initial_value + 1e-3).all()
    assert space.contains(result.x).all()
