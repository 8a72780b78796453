import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from facetwalk.sites import discover
from facetwalk.types import InputError
from facetwalk.zoo import StackedNetworks, random_network

NETS = [random_network((3, 6, 5, 2), seed).double() for seed in range(4)]
ASSIGNMENTS = {
    "all in order": [0, 1, 2, 3],
    "backwards": [3, 2, 1, 0],
    "neighbours": [1, 2],
    "with a gap": [0, 2],
    "even runs": [0, 0, 1, 1, 2, 2],
    "uneven runs": [0, 0, 0, 1, 2, 2],
    "uneven runs out of order": [3, 0, 0, 0, 2, 2],
    "alternating": [0, 1, 0, 1, 0],
    "one comes back": [1, 1, 2, 1],
    "one network": [2, 2, 2],
    "one row": [3],
}

each_assignment = pytest.mark.parametrize("networks", ASSIGNMENTS.values(), ids=list(ASSIGNMENTS))


def draw(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def stacked(networks: list[int]) -> StackedNetworks:
    return StackedNetworks(NETS).select(torch.tensor(networks))


def row_by_row(networks: list[int], x: Tensor) -> Tensor:
    """Each row through its own network; rows beyond the last begin again with the first."""
    rows = [NETS[networks[i % len(networks)]](row[None]) for i, row in enumerate(x)]
    return torch.cat(rows)


def assert_same(networks: list[int], rows: int) -> None:
    x, direction = draw(rows, 3).requires_grad_(), draw(rows, 2)
    found, expected = stacked(networks)(x), row_by_row(networks, x)
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(y, x, direction)[0] for y in (found, expected)]
    torch.testing.assert_close(*gradients)


@each_assignment
@pytest.mark.parametrize("copies", [1, 3])
def test_each_row_goes_through_its_own_network(networks, copies):
    assert_same(networks, copies * len(networks))


@each_assignment
def test_fewer_rows_belong_to_the_first_networks(networks):
    for rows in range(1, len(networks)):
        assert_same(networks, rows)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(networks=st.lists(st.integers(0, 3), min_size=1, max_size=9), rows=st.integers(1, 20))
def test_any_rows_of_any_networks(networks, rows):
    assert_same(networks, rows)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(networks=st.lists(st.integers(0, 3), min_size=1, max_size=6), data=st.data())
def test_a_selection_of_a_selection(networks, data):
    indices = st.integers(0, len(networks) - 1)
    rows = data.draw(st.lists(indices, min_size=1, max_size=6))
    chosen, x = stacked(networks).select(torch.tensor(rows)), draw(len(rows), 3)
    assert chosen.count == len(rows)
    torch.testing.assert_close(chosen(x), row_by_row([networks[row] for row in rows], x))


@each_assignment
def test_gradients_of_weights_are_sums_over_the_rows_of_each_network(networks):
    model, x = stacked(networks), draw(2 * len(networks), 3)
    model(x).square().sum().backward()
    loss = row_by_row(networks, x).square().sum()
    for depth, place in enumerate((0, 2, 4)):
        layers = [net[place] for net in NETS]
        for ours, theirs in (
            (model.weights[depth].grad.mT, [layer.weight for layer in layers]),
            (model.biases[depth].grad[:, 0], [layer.bias for layer in layers]),
        ):
            expected = torch.autograd.grad(
                loss, theirs, retain_graph=True, allow_unused=True, materialize_grads=True
            )
            torch.testing.assert_close(ours, torch.stack(expected))


@each_assignment
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_derivatives_in_either_mode_are_finite_differences(networks):
    x = draw(2 * len(networks), 3).requires_grad_()
    assert torch.autograd.gradcheck(stacked(networks), x, check_forward_ad=True, fast_mode=True)


def test_no_rows_give_no_outputs():
    for networks in ASSIGNMENTS.values():
        assert stacked(networks)(draw(0, 3)).shape == (0, 2)


def test_sites_are_the_hidden_layers_of_one_network():
    for model in (StackedNetworks(NETS), stacked([0, 0, 1])):
        assert not any(part.training for part in model.modules())
        sites = discover(model, draw(model.count, 3))
        assert [site.shape for site in sites] == [(6,), (5,)]


def test_the_stack_is_a_copy_that_training_of_one_network_leaves_alone():
    net = random_network((3, 4, 1), seed=0)
    model, x = StackedNetworks([net]), torch.ones(1, 3)
    before = model(x)
    nn.init.zeros_(net[0].weight)
    assert torch.equal(model(x), before)


@pytest.mark.parametrize(
    "sizes", [[], [(3, 4, 1), (3, 5, 1)], [(3, 4, 1), (3, 4, 4, 1)]], ids=["none", "width", "depth"]
)
def test_networks_of_different_sizes_are_refused(sizes):
    with pytest.raises(InputError, match="of the same sizes"):
        StackedNetworks([random_network(size, seed=0) for size in sizes])


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)], "one is Linear, Tanh, Linear"),
        ([nn.Linear(2, 3), nn.ReLU()], "one is Linear, ReLU"),
        ([nn.Linear(2, 3), nn.Linear(3, 1)], "one is Linear, Linear"),
        ([nn.Linear(2, 3, bias=False), nn.ReLU(), nn.Linear(3, 1)], "must have biases"),
        ([], "must be Linear"),
    ],
)
def test_networks_of_another_kind_are_refused(layers, message):
    with pytest.raises(InputError, match=message):
        StackedNetworks([nn.Sequential(*layers)])


def test_state_dicts_hold_weights_and_nothing_of_the_rows():
    stack = StackedNetworks([random_network((3, 4, 1), seed) for seed in range(3)])
    turned = stack.select(torch.tensor([1, 0, 2]))
    x = torch.rand(3, 3)
    before = turned(x)
    turned.load_state_dict(stack.state_dict())
    assert torch.equal(turned(x), before)
