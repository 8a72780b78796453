"""Maxima and their proofs, against brute force, each other, and what can be found by search."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import brute_force, network, residual
from torch import nn

import facetwalk as fw
from facetwalk import exact
from facetwalk.exact import dense, milp, proving
from facetwalk.exact.backward_bounds import backward_bounds
from facetwalk.exact.dense import Dense
from facetwalk.exact.graph import Graph
from facetwalk.objectives import Linear, Margin, Output, TargetedMargin
from facetwalk.zoo import MODEL_A, notebook_network, uniform_network

ENGINES = ("boxes", "milp")


def box(inputs, low=-1.0, high=1.0):
    return fw.Box(low, high, shape=(inputs,))


def goals_of(objective, classes):
    """Rows whose largest product with the output is the objective."""
    if isinstance(objective, Output):
        return [objective.sign * np.eye(classes)[objective.index]]
    label = int(objective.labels)
    return [np.eye(classes)[i] - np.eye(classes)[label] for i in range(classes) if i != label]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("sizes", "objective"),
    [
        ((2, 5, 3, 1), Output(0)),
        ((3, 7, 2), Output(1, sign=-1)),
        ((2, 4, 3, 3), Margin(torch.tensor([1]))),
    ],
)
def test_the_maximum_is_that_over_all_activation_patterns(engine, sizes, objective):
    for seed in range(2):
        net = network(*sizes, seed=seed)
        proof = exact.maximize(net, box(sizes[0]), objective, gap=1e-4, engine=engine)
        right = max(brute_force(net, -1, 1, goal) for goal in goals_of(objective, sizes[-1]))
        assert proof.proven
        assert proof.engine == engine
        assert proof.value <= right + 1e-6
        assert right <= proof.bound + 1e-9
        assert proof.bound - proof.value <= 1e-4


@settings(max_examples=50, derandomize=True, deadline=None, database=None)
@given(
    seed=st.integers(0, 10**6),
    inputs=st.integers(1, 4),
    widths=st.lists(st.integers(1, 7), min_size=1, max_size=3),
    low=st.floats(-1.5, 0.2),
    kind=st.sampled_from([Output, Margin, TargetedMargin]),
)
def test_the_engines_agree_and_no_point_is_above_their_bounds(seed, inputs, widths, low, kind):
    net = network(inputs, *widths, 3, seed=seed)
    objective = Output(2) if kind is Output else kind(torch.tensor([1]))
    space = fw.Box(low, 1.0, shape=(inputs,))
    proofs = [
        exact.maximize(net, space, objective, gap=1e-3, engine=e, time_limit=20) for e in ENGINES
    ]
    random = torch.rand(5000, inputs, generator=torch.Generator().manual_seed(seed)).double()
    points = torch.cat([space.low + (1 - space.low) * random, *(p.x[None] for p in proofs)])
    best = objective(net(points)).max().item()
    for proof in proofs:
        assert proof.proven
        assert bool(space.contains(proof.x[None]))
        assert objective(net(proof.x[None])).item() == pytest.approx(proof.value, abs=1e-9)
        assert best <= proof.bound
    assert abs(proofs[0].value - proofs[1].value) <= 1e-3 + 1e-6


@pytest.mark.parametrize("engine", ENGINES)
def test_a_specification_is_the_smallest_of_its_rows(engine):
    net = network(2, 6, 2, seed=3)
    weights = torch.tensor([[[1.0, -1.0], [0.5, 1.0], [-1.0, 0.0]]], dtype=torch.float64)
    unsafe = Linear(weights, torch.tensor([[0.1, -0.2, 1.0]], dtype=torch.float64))
    proof = exact.maximize(net, box(2), unsafe, gap=1e-3, engine=engine)
    grid = torch.cartesian_prod(*[torch.linspace(-1, 1, 300, dtype=torch.float64)] * 2)
    best = unsafe(net(grid)).max().item()
    assert proof.proven
    assert proof.value - 0.05 <= best <= proof.bound


@pytest.mark.parametrize("engine", ENGINES)
def test_when_time_is_up_the_bound_still_holds(engine):
    net = network(10, 40, 40, 1, seed=1)
    proof = exact.maximize(net, box(10), Output(0), engine=engine, time_limit=2)
    found = fw.maximize(fw.Problem(net, Output(0), box(10)))
    assert proof.seconds < 6
    assert not proof.proven
    assert max(found.value.item(), proof.value) <= proof.bound < np.inf
    seconds, values, bounds = zip(*proof.trace, strict=True)
    assert list(seconds) == sorted(seconds)
    assert list(values) == sorted(values)
    assert list(bounds) == sorted(bounds, reverse=True)


class Images(nn.Module):
    """Two convolutions with so many neurons that bounding them all takes a minute and more."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 8, 5, padding=2), nn.Conv2d(8, 12, 3, padding=1)
        self.out = nn.Linear(12 * 28 * 28, 10)

    def forward(self, x):
        return self.out(torch.relu(self.second(torch.relu(self.first(x)))).flatten(1))


@pytest.mark.parametrize("engine", ENGINES)
def test_bounding_ends_with_the_time_limit(engine):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = Images().eval()
    space, margin = fw.Box(0, 1, shape=(1, 28, 28)), Margin(torch.tensor([3]))
    proof = exact.maximize(net, space, margin, time_limit=0.5, engine=engine)
    assert proof.seconds < 20
    assert proof.nodes == 0
    random = torch.rand(200, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    assert margin(net(random)).max() <= proof.bound < np.inf
    assert margin(net.double()(proof.x[None])).item() == pytest.approx(proof.value, abs=1e-9)


class AllOnAfterwards(nn.Module):
    """A site without a neuron that may change comes last, after a reshape that needs rows."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1)
        self.second, self.out = nn.Linear(64, 8), nn.Linear(8, 2)
        self.second.bias.data.fill_(30.0)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        return self.out(torch.relu(self.second(hidden.view(hidden.size(0), -1))))


def test_a_site_where_no_neuron_changes_may_come_after_one_where_many_do():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = AllOnAfterwards().eval()
    space = fw.Box(-1, 1, shape=(1, 4, 4))
    proof = exact.maximize(net, space, Output(0), engine="milp", time_limit=5)
    found = fw.maximize(fw.Problem(net, Output(0), space), evaluations=500).value.item()
    assert found <= proof.bound + 1e-5


def test_matrices_that_are_late_or_too_large_are_not_made(monkeypatch):
    graph = Graph.of(network(3, 40, 40, 1), (3,))
    assert Dense.of(graph) is not None
    assert Dense.of(graph, deadline=0.0) is None
    monkeypatch.setattr(dense, "_MOST_NUMBERS", 1000)
    assert Dense.of(graph) is None


def test_a_program_that_is_too_large_leaves_the_linear_bounds(monkeypatch):
    net, space = network(20, 30, 20, 1), box(20)
    monkeypatch.setattr(milp, "_MOST_NUMBERS", 1000)
    proof = exact.maximize(net, space, Output(0), engine="milp", time_limit=20)
    found = fw.maximize(fw.Problem(net, Output(0), space), evaluations=2000).value.item()
    assert proof.nodes == 0
    assert found <= proof.bound < np.inf


@pytest.mark.parametrize("engine", ENGINES)
def test_a_point_that_is_known_is_where_the_search_begins(engine):
    net = network(10, 40, 40, 1, seed=1)
    known = fw.maximize(fw.Problem(net, Output(0), box(10)))
    proof = exact.maximize(net, box(10), Output(0), engine=engine, time_limit=1e-9, x0=known.x)
    assert proof.value >= net(known.x.double()).item()


@pytest.mark.parametrize("engine", ENGINES)
def test_without_a_time_limit_the_search_goes_on_to_the_end(engine):
    net = network(3, 16, 12, 1, seed=1)
    proof = exact.maximize(net, box(3), Output(0), engine=engine, time_limit=None, gap=1e-3)
    limited = exact.maximize(net, box(3), Output(0), engine=engine, time_limit=600, gap=1e-3)
    assert proof.proven
    assert proof.value == pytest.approx(limited.value, abs=1e-3)


@pytest.mark.parametrize("engine", ENGINES)
def test_where_no_neuron_changes_the_maximum_is_at_a_corner(engine):
    net, space = network(3, 6, 4, 1, seed=4), box(3, 0.5, 0.500001)
    proof = exact.maximize(net, space, Output(0), gap=1e-7, engine=engine)
    corners = torch.cartesian_prod(*[torch.stack([space.low, space.high]).double()[:, 0, 0]] * 3)
    best = net(corners).max().item()
    assert proof.value == pytest.approx(best, abs=2e-7)
    assert best <= proof.bound <= best + 1e-5


@pytest.mark.parametrize("engine", ENGINES)
def test_a_ball_with_bounds_and_a_convolutional_network(engine):
    net = residual()
    center = torch.full((1, 1, 4, 4), 0.02)
    space = fw.LinfBall(center, eps=0.05, bounds=(0, 1))
    proof = exact.maximize(net, space, Margin(torch.tensor([0])), engine=engine, gap=1e-2)
    assert proof.x.shape == (1, 4, 4)
    assert bool(space.contains(proof.x[None]))
    assert proof.x.min() >= 0
    assert proof.proven
    random = torch.rand(5000, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    assert Margin(torch.tensor([0]))(net(0.07 * random)).max() <= proof.bound


def test_a_threshold_ends_the_search_early():
    net = network(6, 30, 30, 1, seed=2)
    whole = exact.maximize(net, box(6), Output(0), engine="boxes", gap=0.5)
    assert whole.proven
    below = exact.maximize(net, box(6), Output(0), threshold=whole.value - 1, engine="boxes")
    assert below.value > whole.value - 1
    assert below.nodes == 0
    above = exact.maximize(net, box(6), Output(0), threshold=whole.bound + 20, engine="boxes")
    assert whole.bound <= above.bound <= whole.bound + 20
    assert above.nodes < whole.nodes


def test_optimised_slopes_leave_the_proven_maximum_as_it_is():
    net = network(4, 20, 12, 3, seed=5)
    proofs = [
        exact.maximize(net, box(4), Margin(torch.tensor([0])), gap=1e-3, engine=engine)
        for engine in ENGINES
    ]
    assert all(proof.proven for proof in proofs)
    assert proofs[0].value == pytest.approx(proofs[1].value, abs=1e-3)


@pytest.mark.parametrize("less", [1.0, 1.7], ids=["of the goals", "of the neurons too"])
def test_optimised_slopes_settle_a_threshold_without_a_program(monkeypatch, less):
    net, space = network(20, 30, 20, 1, seed=0), box(20, -0.1, 0.1)
    graph = Graph.of(net, (20,))
    plain = backward_bounds(graph, space.low.double()[0], space.high.double()[0])

    def no_program(*_):
        raise AssertionError("the slopes should have been enough")

    monkeypatch.setattr(proving, "search_milp", no_program)
    threshold = plain.outputs.item() - less
    proof = exact.maximize(net, space, Output(0), engine="milp", threshold=threshold)
    assert plain.unstable > 24
    assert proof.value < proof.bound <= threshold
    assert proof.nodes == 0


def test_auto_takes_boxes_for_few_inputs_and_a_program_otherwise():
    small, wide = network(3, 40, 20, 1), network(20, 12, 1)
    assert exact.maximize(small, box(3), Output(0), gap=0.1).engine == "boxes"
    assert exact.maximize(wide, box(20), Output(0)).engine == "milp"
    few = exact.maximize(small, box(3, 0.0, 0.01), Output(0))
    assert few.engine == "milp"
    assert few.proven


def test_the_network_is_left_alone():
    net = network(3, 5, 1).float()
    before = [weight.clone() for weight in net.parameters()]
    state = torch.get_rng_state()
    exact.maximize(net, box(3), Output(0), engine="boxes")
    assert all(map(torch.equal, before, net.parameters()))
    assert all(weight.requires_grad for weight in net.parameters())
    assert torch.equal(state, torch.get_rng_state())
    assert not net.training


@pytest.mark.parametrize(
    ("space", "objective", "options", "match"),
    [
        (fw.L2Ball(torch.zeros(1, 3), 1.0), Output(0), {}, "over a Box or an LinfBall"),
        (fw.LinfBall(torch.zeros(2, 3), 1.0), Output(0), {}, "the space describes 2"),
        (box(3), Margin(torch.tensor([0, 1])), {}, "the objective describes 2"),
        (box(3), fw.objectives.DLR(torch.tensor([0])), {}, "maximum of DLR cannot be proven"),
        (box(3), lambda y: y[:, 0], {}, "maximum of Custom cannot be proven"),
        (box(3), Output(0), {"gap": 0}, "gap must be positive; it is 0"),
        (box(3), Output(0), {"time_limit": -1}, "time_limit must be positive; it is -1"),
        (box(3), Output(0), {"gap": float("nan")}, "gap must be a number; it is nan"),
        (box(3), Output(0), {"time_limit": "1"}, "time_limit must be a number; it is '1'"),
        (box(3), Output(0), {"threshold": "0"}, "threshold must be a number; it is '0'"),
        (box(3), Output(0), {"threshold": float("nan")}, "threshold must be a number; it is nan"),
        (box(3), Output(0), {"engine": "lp"}, "auto, boxes, milp; it is 'lp'"),
        (box(3), Output(0), {"seed": "a"}, "seed must be a whole number; it is 'a'"),
        (box(3), Output(0), {"x0": torch.zeros(3)}, r"x0 has shape \(3,\): pass \(1, 3\)"),
        (box(3), Output(0), {"x0": torch.full((1, 3), 2.0)}, "lie outside the space"),
    ],
)
def test_what_cannot_be_proven_is_refused(space, objective, options, match):
    with pytest.raises(fw.InputError, match=match):
        exact.maximize(network(3, 4, 3), space, objective, **options)


def test_without_highs_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "highspy", None)
    with pytest.raises(fw.MissingExtraError, match=r"facetwalk\[exact\]"):
        exact.maximize(network(3, 4, 1), box(3), Output(0), engine="milp")


def test_train_mode_is_refused():
    with pytest.raises(fw.ModelError, match="train mode"):
        exact.maximize(nn.Sequential(nn.Linear(2, 1), nn.ReLU()).train(), box(2), Output(0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("net", "least"),
    [(lambda: uniform_network(MODEL_A, 0), 54.811), (notebook_network, 24.8431)],
    ids=["model A", "notebook"],
)
def test_model_a_is_solved_to_a_hundredth(net, least):
    proof = exact.maximize(net(), box(10), Output(0), gap=0.01, time_limit=7200)
    assert proof.proven
    assert proof.value >= least


@pytest.mark.parametrize("engine", ENGINES)
def test_a_network_that_decides_by_its_input_is_found_out(engine):
    """It is bounded as it is in the middle of the box, and larger elsewhere."""

    class Decides(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network(3, 12, 12, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.network(x) + 100 * (len(x) == 1 and bool(x.mean() > 0.3))

    with pytest.raises(fw.ModelError, match="depends on the data in other ways"):
        exact.maximize(Decides().eval(), box(3), Output(0), engine=engine)
