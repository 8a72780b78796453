import pytest
import torch

from facetwalk.types import InputError
from facetwalk.zoo import ARCHITECTURES, ResNet18, Vgg19, fresh_net

SHAPES = {name: (1, 28, 28) if "mnist" in name else (3, 32, 32) for name in ARCHITECTURES}
MEAN, STD = torch.tensor([0.4914, 0.4822, 0.4465]), torch.tensor([0.247, 0.2435, 0.2616])


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_each_gives_ten_logits_and_tells_its_shape(name):
    net = fresh_net(name).eval()
    assert net.input_shape == SHAPES[name]
    assert net(torch.rand(2, *SHAPES[name])).shape == (2, 10)


def test_the_seed_decides_the_weights_and_the_global_state_is_untouched():
    before = torch.get_rng_state()
    first, same, other = (fresh_net("mnist-strided", seed).state_dict() for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(first[key], same[key]) for key in first)
    assert not torch.equal(first["0.weight"], other["0.weight"])


@pytest.mark.parametrize(
    ("name", "inner"),
    [
        ("cifar-vgg19", Vgg19(batch_norm=True)),
        ("cifar-vgg19-plain", Vgg19()),
        ("cifar-resnet18", ResNet18()),
    ],
)
def test_large_networks_for_cifar_take_pixels_and_normalise_them(name, inner):
    net = fresh_net(name).eval()
    weights = net.state_dict()
    assert {key.partition(".")[0] for key in weights} == {"1"}
    inner.load_state_dict({key.removeprefix("1."): value for key, value in weights.items()})
    pixels = torch.rand(2, 3, 32, 32)
    normalised = (pixels - MEAN[:, None, None]) / STD[:, None, None]
    with torch.no_grad():
        torch.testing.assert_close(net(pixels), inner.eval()(normalised))


def test_an_unknown_name_is_refused():
    with pytest.raises(InputError, match="'vgg' names no architecture: use one of mnist-cnn, mnis"):
        fresh_net("vgg")
