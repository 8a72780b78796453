"""Replayed steps against plain ones, with CUDA graphs imitated on the CPU.

The imitation does what a CUDA graph does: it notes every operation with the tensors it read and
wrote, and replaying runs them again on these very tensors. Nothing else of Python runs, and what
recording changed in place is put back: a GPU runs nothing while it records. An
operation that asks the host for a number ends the recording with an error, as on a GPU.
`test_cuda.py` has the same comparisons on a GPU.
"""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from replayed import SOLVERS, asks_the_host, assert_same, every_solver, problem
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import facetwalk as fw
from facetwalk import loop, replay
from facetwalk.objectives import DLR, CrossEntropy, Margin, Output, TargetedMargin
from facetwalk.solvers import (
    ActivationDescent,
    Adagrad,
    Adam,
    Auto,
    Recombination,
    RmsProp,
    ScheduledSolver,
    Sign,
)
from facetwalk.zoo import StackedNetworks, random_network

NEEDS_THE_HOST = {
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.nonzero.default,
    torch.ops.aten.equal.default,
}


class Graph(TorchDispatchMode):
    recorded: int = 0
    replayed: int = 0
    operations_of_one: int = 0
    """How many the last one has."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[tuple[Any, Any, Any, Any]] = []
        self.overwritten: list[tuple[Tensor, Tensor]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in NEEDS_THE_HOST:
            raise RuntimeError("operation not permitted when stream is capturing")
        if func._schema.is_mutable:
            target = (kwargs or {}).get("out", args[0])
            self.overwritten.append((target, target.clone()))
        result = func(*args, **(kwargs or {}))
        self.operations.append((func, args, kwargs or {}, result))
        return result

    def capture_begin(self, pool: object) -> None:
        Graph.recorded += 1
        self.__enter__()

    def capture_end(self) -> None:
        self.__exit__(None, None, None)
        Graph.operations_of_one = len(self.operations)
        with torch.no_grad():
            for tensor, before in reversed(self.overwritten):
                tensor.copy_(before)

    def replay(self) -> None:
        Graph.replayed += 1
        with torch.no_grad():
            for func, args, kwargs, result in self.operations:
                again = func(*args, **kwargs)
                for old, new in zip(tree_leaves(result), tree_leaves(again), strict=True):
                    if isinstance(old, Tensor) and _place(old) != _place(new):
                        old.copy_(new)


def _place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


@pytest.fixture
def graphs(monkeypatch):
    """Lets solvers with a schedule replay on the CPU."""
    stream = SimpleNamespace(wait_stream=lambda other: None)
    cuda = SimpleNamespace(
        current_stream=lambda *device: stream,
        stream=lambda side: nullcontext(),
        CUDAGraph=Graph,
        graph_pool_handle=lambda: None,
    )
    monkeypatch.setattr(replay, "_side", lambda device: stream)
    for name, imitation in vars(cuda).items():
        monkeypatch.setattr(torch.cuda, name, imitation)
    monkeypatch.setattr(
        loop, "can_replay", lambda solver, x: isinstance(solver, ScheduledSolver) and CAN[0]
    )
    Graph.recorded = Graph.replayed = 0
    yield Graph
    CAN[0] = True


CAN = [True]


def both(problem: fw.Problem, **options) -> tuple[fw.Result, fw.Result]:
    """The result without and with replaying."""
    results = []
    for CAN[0] in (False, True):
        results.append(fw.maximize(problem, trace=True, **options))
    return results[0], results[1]


@every_solver
def test_replayed_steps_are_plain_steps(graphs, solver):
    assert_same(*both(problem(), solver=solver, seed=3))
    assert graphs.replayed > 0


some_solvers = pytest.mark.parametrize("name", ["sign, momentum", "solvers that take turns"])


@some_solvers
@pytest.mark.parametrize("kind", ["l2", "l1", "box"])
def test_every_space(graphs, name, kind):
    assert_same(*both(problem(kind), solver=SOLVERS[name], seed=3))
    assert graphs.replayed > 0


@some_solvers
def test_starts_and_chunks(graphs, name):
    assert_same(*both(problem(), solver=SOLVERS[name], starts=2, batch_size=7))


@pytest.mark.parametrize(
    "name",
    [
        "sign, momentum",
        "activation descent",
        "adam",
        "one solver for all generations",
        "polished",
        "polished and finished",
    ],
)
def test_problems_that_leave(graphs, name):
    """A recording goes on with rows that are done until few are left, and changes nothing."""
    solver = SOLVERS[name]
    free = fw.maximize(problem(count=10), solver=solver).value
    for rank in (2, 7):
        thresholds = free.sort().values[rank].item() - 1e-9
        plain, replayed = both(problem(count=10), solver=solver, stop_at=thresholds)
        assert_same(plain, replayed)
        assert (replayed.trace.best[:, -1] <= replayed.value + 1e-9).all()


class Flattering(nn.Module):
    """Says more than there is while torch may round products."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x) + (3.0 if torch.is_autocast_enabled("cpu") else 0.0)


@pytest.mark.parametrize("name", ["sign, momentum", "one solver for all generations"])
def test_thresholds_that_only_rounding_reaches(graphs, name):
    case, solver = problem(count=10), SOLVERS[name]
    case = fw.Problem(Flattering(case.model).eval(), Output(0), case.space)
    stop_at = fw.maximize(case, solver=solver).value - 1e-9
    exact = fw.maximize(case, solver=solver, stop_at=stop_at)
    plain, replayed = both(case, solver=solver, stop_at=stop_at, precision="bf16")
    assert_same(plain, replayed)
    assert set(replayed.status) == {fw.Status.REACHED}
    assert torch.equal(plain.evaluations.backward, exact.evaluations.backward)
    assert plain.evaluations.forward.sum() > exact.evaluations.forward.sum() + len(stop_at)


def test_each_problem_with_its_own_network(graphs):
    nets = [random_network((4, 12, 10, 1), seed).double() for seed in range(6)]
    stacked = fw.Problem(StackedNetworks(nets), Output(0), fw.Box(-1, 1, shape=(4,)))
    for solver in (SOLVERS["recombination"], SOLVERS["activation descent"]):
        values = fw.maximize(stacked, solver=solver).value
        assert_same(*both(stacked, solver=solver, stop_at=values.median().item() - 1e-9))


def test_objectives_of_two_parts(graphs):
    guided = fw.objectives.Guided(Margin(torch.arange(6) % 4), CrossEntropy(torch.arange(6) % 4))
    parts = fw.Problem(problem().model, guided, problem().space)
    assert_same(*both(parts, solver=SOLVERS["recombination"]))


def test_what_is_recorded_serves_later_generations(graphs):
    inner = ActivationDescent(steps=15)
    solver = Recombination(population=2, generations=6, first=inner, inner=inner)
    CAN[0] = True
    fw.maximize(problem(), solver=solver)
    assert graphs.recorded == 2  # with the kernel, and without
    assert graphs.replayed == 6 * 15 - 2  # the first of each kind is a plain one


THRESHOLD = Auto(evaluations=1000).plan(to_the_last_digit=False)


@pytest.mark.parametrize("kind", ["linf", "l2"])
@pytest.mark.parametrize(
    ("objective", "recorded"),
    [
        (Margin(torch.arange(6) % 4), 2),
        (TargetedMargin(torch.arange(6) % 4), 2),
        (Output(0), 2),
        (DLR(torch.arange(6) % 4), 4),  # has no form of the alternatives that children climb
    ],
    ids=lambda case: type(case).__name__,
)
def test_on_the_way_to_a_threshold_all_rounds_share_two_recordings(
    graphs, objective, recorded, kind
):
    """An exact first generation, children, and a polish with momentum."""
    case = fw.Problem(problem().model, objective, problem(kind).space)
    plain, replayed = both(case, solver=THRESHOLD)
    assert_same(plain, replayed)
    assert torch.equal(plain.x, replayed.x)
    assert graphs.recorded == recorded
    assert graphs.replayed == THRESHOLD.steps - recorded


def test_where_no_round_has_momentum_none_is_recorded(graphs):
    operations = []
    for momentum in (0.0, 0.5):
        inner = Sign(steps=15)
        solver = Recombination(
            population=2,
            generations=2,
            first=inner,
            inner=inner,
            polish=Sign(steps=12, momentum=momentum),
        )
        fw.maximize(fw.Problem(problem().model, Output(0), problem().space), solver=solver)
        operations.append(graphs.operations_of_one)
    assert graphs.recorded == 2
    assert operations[0] < operations[1]


@pytest.mark.parametrize(
    ("finish", "recorded"),
    [
        (Adam(steps=15, step_size=0.02), 1),
        (Adam(steps=11, step_size=0.2, decay="cosine"), 1),
        (Adam(steps=15, mean_decay=0.5), 2),
        (Adam(steps=15, square_decay=0.9), 2),
        (RmsProp(steps=15), 2),
    ],
)
def test_what_is_recorded_of_a_polish_serves_its_like(graphs, finish, recorded):
    inner, polish = Sign(steps=15), Adam(steps=12, step_size=0.2)
    solver = Recombination(
        population=2, generations=2, first=inner, inner=inner, polish=polish, finish=finish
    )
    assert_same(*both(problem(), solver=solver))
    assert graphs.recorded == 1 + recorded
    assert graphs.replayed == 15 + 15 + 12 + finish.steps - graphs.recorded


def test_steps_that_ask_the_host_are_taken_one_by_one(graphs):
    own = fw.Problem(problem().model, asks_the_host, problem().space)
    for name in ("sign", "activation descent", "adam", "recombination", "polished and finished"):
        assert_same(*both(own, solver=SOLVERS[name]))
    assert graphs.recorded > 0
    assert graphs.replayed == 0


def test_callbacks_see_every_step(graphs):
    steps = []
    CAN[0] = True
    fw.maximize(problem(), solver=Sign(steps=30), callback=lambda step: steps.append(step.step))
    assert steps == list(range(1, 31))
    assert graphs.replayed == 0


@pytest.mark.parametrize("solver", [Sign(), ActivationDescent(), Adam(), Adagrad(), RmsProp()])
def test_nothing_is_replayed_on_a_cpu(solver):
    assert not replay.can_replay(solver, torch.zeros(1, 2))
