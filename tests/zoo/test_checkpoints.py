import pytest
import torch
from torch import Tensor, nn

from facetwalk.types import InputError
from facetwalk.zoo import ResNet18, Vgg19, load_model, load_weights


def small_net() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True))


@pytest.fixture
def weights() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        name: torch.rand(value.shape, generator=generator)
        for name, value in small_net().state_dict().items()
        if not name.endswith("num_batches_tracked")
    }


def assert_loaded(net: nn.Module, weights: dict[str, Tensor]) -> None:
    state = net.state_dict()
    assert all(torch.equal(state[name], value) for name, value in weights.items())


def test_weights_go_into_the_network_which_is_then_ready(weights):
    net = small_net()
    assert load_weights(net, weights) is net
    assert not net.training
    assert_loaded(net, weights)
    weights["0.weight"].zero_()
    assert net.state_dict()["0.weight"].abs().sum() > 0


def test_counters_of_batches_may_be_there_or_not(weights):
    net = load_weights(small_net(), weights)
    assert net.state_dict()["1.num_batches_tracked"] == 0
    load_weights(net, weights | {"1.num_batches_tracked": torch.tensor(7)})
    assert net.state_dict()["1.num_batches_tracked"] == 7


@pytest.mark.parametrize("wrapper", ["whole", "part"])
def test_the_names_that_data_parallel_makes_are_understood(weights, wrapper):
    net = small_net()
    net.load_state_dict(weights)
    if wrapper == "whole":
        wrapped = nn.DataParallel(net)
    else:
        wrapped = nn.Sequential(nn.DataParallel(net[0]), net[1])
    assert any(".module." in f".{name}" for name in wrapped.state_dict())
    assert_loaded(load_weights(small_net(), wrapped.state_dict()), weights)


def test_a_part_that_is_called_module_keeps_its_name(weights):
    named = {f"module.{name}": value for name, value in weights.items()}
    net = nn.DataParallel(small_net())
    assert_loaded(load_weights(net, named), named)


def test_half_precision_becomes_that_of_the_network(weights):
    halves = {name: value.half() for name, value in weights.items()}
    net = load_weights(small_net(), halves)
    assert {value.dtype for value in net.parameters()} == {torch.float32}
    assert_loaded(net, {name: value.float() for name, value in halves.items()})


def changed(weights: dict[str, Tensor], kind: str) -> dict[str, Tensor]:
    if kind == "missing":
        return {name: value for name, value in weights.items() if name != "1.running_mean"}
    if kind == "unexpected":
        return weights | {"3.weight": torch.zeros(1)}
    return weights | {"0.weight": torch.zeros(4, 3, 5, 5)}


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("missing", "missing: 1.running_mean"),
        ("unexpected", "unexpected: 3.weight"),
        ("different", "different: 0.weight is (4, 3, 5, 5), not (4, 3, 3, 3)"),
    ],
)
def test_one_sentence_says_what_does_not_fit_and_nothing_is_changed(weights, kind, problem):
    net = small_net()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with pytest.raises(InputError) as caught:
        load_weights(net, changed(weights, kind))
    assert str(caught.value) == (
        f"the weights do not fit this Sequential ({problem}): "
        "pass the state dict of a network that was made with the same arguments"
    )
    assert_loaded(net, before)
    assert net.training


def test_a_value_that_is_no_tensor_is_unexpected_and_not_an_error_of_its_own(weights):
    with pytest.raises(
        InputError, match=r"missing: 0\.weight, and 5 more; unexpected: epoch, and 1"
    ):
        load_weights(small_net(), {"epoch": 3, "state_dict": weights})  # pyright: ignore
    with pytest.raises(InputError, match=r"0\.bias is a float, not \(4,\)"):
        load_weights(small_net(), weights | {"0.bias": 0.5})  # pyright: ignore


@pytest.mark.parametrize("given", ["net.pt", None, small_net(), {1: torch.ones(1)}, [1]])
def test_what_is_no_state_dict_is_refused(given):
    message = f"the weights must be a state dict.* they are a {type(given).__name__}"
    with pytest.raises(InputError, match=message) as caught:
        load_weights(small_net(), given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (torch.ones(4, 3, 3, 3, dtype=torch.int8), "torch.int8, not torch.float32"),
        (torch.ones(4, 3, 3, 3, dtype=torch.complex64), "torch.complex64, not torch.float32"),
        (torch.empty(4, 3, 3, 3, device="meta"), "torch.strided on meta, not plain numbers"),
        (torch.ones(4, 3, 3, 3).to_sparse(), "torch.sparse_coo on cpu, not plain numbers"),
    ],
)
def test_numbers_that_are_packed_otherwise_are_refused_and_nothing_is_changed(weights, value, kind):
    net = small_net()
    before = {name: each.clone() for name, each in net.state_dict().items()}
    with pytest.raises(InputError, match=rf"\(different: 0\.weight is {kind}\): ") as caught:
        load_weights(net, weights | {"0.weight": value})
    assert "\n" not in str(caught.value)
    assert_loaded(net, before)


def test_counters_may_be_floats_where_a_whole_state_dict_was_rounded(weights):
    halves = {name: value.half() for name, value in weights.items()}
    net = load_weights(small_net(), halves | {"1.num_batches_tracked": torch.tensor(7.0).half()})
    assert net.state_dict()["1.num_batches_tracked"] == 7


def test_weights_of_another_architecture_are_refused_in_one_line():
    with torch.device("meta"):
        net, other = Vgg19(), Vgg19(batch_norm=True)
        resnet, of_imagenet = ResNet18(), ResNet18(1000, small_images=False)
    with pytest.raises(InputError, match=r"Vgg19 \(different: .* more; missing: .*; unexpected: "):
        load_weights(net, other.state_dict())
    with pytest.raises(InputError) as caught:
        load_weights(resnet, of_imagenet.state_dict())
    expected = "(different: conv1.weight is (64, 3, 7, 7), not (64, 3, 3, 3), and 2 more)"
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_sentence_reaches_who_loads_a_model_from_a_file(tmp_path):
    file = tmp_path / "attacked.py"
    file.write_text(
        "from facetwalk.zoo import Vgg19, load_weights\n"
        "def make():\n"
        "    return load_weights(Vgg19(), {})\n"
    )
    with pytest.raises(InputError, match=r"Vgg19 \(missing: features\.0\.weight, and 37"):
        load_model(f"{file}:make")
