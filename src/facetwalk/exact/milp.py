"""A mixed-integer program, solved by HiGHS: for networks with few neurons that may change."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from facetwalk.exact.backward_bounds import Bounds
from facetwalk.exact.dense import Dense
from facetwalk.exact.proof import Search
from facetwalk.types import MissingExtraError, ModelError

_SAFETY = 1e-6
"""HiGHS meets constraints up to tolerances of 1e-6 and less; its bound is raised by this share."""
_SMALLEST = 1e-12
"""Smaller coefficients count as zero: the least that HiGHS allows."""
_MOST_NUMBERS = 2**27
"""Entries that the rows of all neurons together may have, a gigabyte in float64."""
_TIGHTENING = 0.2
"""The share of the time that goes to tightening the bounds of neurons."""


def require_highs() -> None:
    """Raise `MissingExtraError` unless HiGHS is installed."""
    try:
        import highspy  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("solving mixed-integer programs", "exact") from error


@dataclass
class _Rows:
    """Linear constraints `low <= row @ variables <= high`, of which the entries are kept."""

    places: list[np.ndarray] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def add(self, row: np.ndarray, low: float, high: float) -> None:
        self.places.append(np.flatnonzero(row))
        self.values.append(row[self.places[-1]])
        self.low.append(low)
        self.high.append(high)


class Program:
    """The network as a program in its inputs, and two variables for each unstable neuron.

    One is the neuron's output, the other, 0 or 1, says whether it is on. Stable neurons are
    linear functions of these and need no variable. Inputs are counted from the middle of the box in
    halves of its sides, and outputs of neurons in the largest there may be: the tolerances of HiGHS
    are numbers, and what is 1e-6 in the network's own units may be all of it.
    """

    def __init__(self, dense: Dense, low: Tensor, high: Tensor, bounds: Bounds) -> None:
        self.dense = dense
        self.inputs = dense.inputs
        self.low = [site.cpu().numpy().copy() for site in bounds.low]
        self.high = [site.cpu().numpy().copy() for site in bounds.high]
        self.unstable = [
            np.flatnonzero((below < 0) & (above > 0))
            for below, above in zip(self.low, self.high, strict=True)
        ]
        self.neurons = sum(map(len, self.unstable))
        self.columns = self.inputs + 2 * self.neurons
        self.box = low.cpu().numpy(), high.cpu().numpy()
        self.center = ((low + high) / 2).cpu().numpy()
        self.radius = ((high - low) / 2).cpu().numpy()
        pairs = list(zip(self.low, self.high, self.unstable, strict=True))
        self.units = [above[which] for _, above, which in pairs]
        self.ranges = [above[which] - below[which] for below, above, which in pairs]
        self._express()

    def _express(self) -> None:
        """Pre-activations and outputs as rows over the variables, and their constants."""
        self.rows: list[np.ndarray] = []
        self.constants: list[np.ndarray] = []
        self.first = np.cumsum([self.inputs, *map(len, self.unstable)])
        after: list[tuple[np.ndarray, np.ndarray]] = []
        for number, layer in enumerate(self.dense.layers):
            row = np.zeros((len(layer.bias), self.inputs + self.neurons))
            constant = layer.bias[:, 0].cpu().numpy().copy()
            if layer.input is not None:
                of_input = layer.input.cpu().numpy()
                row[:, : self.inputs] += of_input * self.radius
                constant += of_input @ self.center
            for site, block in layer.hidden.items():
                matrix = block.cpu().numpy()
                row += matrix @ after[site][0]
                constant += matrix @ after[site][1]
            self.rows.append(row)
            self.constants.append(constant)
            if number < len(self.unstable):
                on = (self.low[number] >= 0).astype(float)
                after_row, which = on[:, None] * row, self.unstable[number]
                after_row[which, self.first[number] + np.arange(len(which))] = self.units[number]
                after.append((after_row, on * constant))

    def constraints(self, sites: int) -> _Rows:
        """What ties the variables of the first `sites` sites together."""
        rows = _Rows()
        for site in range(sites):
            for k, neuron in enumerate(self.unstable[site]):
                unit, size = self.units[site][k], self.ranges[site][k]
                below, above = self.low[site][neuron] / size, self.high[site][neuron] / unit
                constant = self.constants[site][neuron] / size
                out = self.first[site] + k
                on = out + self.neurons
                over = np.zeros(self.columns)
                over[: self.inputs + self.neurons] = -self.rows[site][neuron] / size
                over[out] += unit / size
                rows.add(over, constant, np.inf)
                under = over.copy()
                under[on] -= below
                rows.add(under, -np.inf, constant - below)
                off = np.zeros(self.columns)
                off[out], off[on] = 1, -above
                rows.add(off, -np.inf, 0)
        return rows

    def start(self, x: Tensor) -> np.ndarray:
        """The variables at a point `(inputs,)`."""
        values = np.zeros(self.columns)
        offset, wide = x.cpu().numpy() - self.center, self.radius > 0
        values[: self.inputs][wide] = offset[wide] / self.radius[wide]
        for site, which in enumerate(self.unstable):
            z = self.rows[site][which] @ values[: self.inputs + self.neurons]
            z += self.constants[site][which]
            place = self.first[site] + np.arange(len(which))
            values[place] = np.maximum(z, 0) / self.units[site]
            values[place + self.neurons] = z > 0
        return values

    def point(self, values: Sequence[float]) -> Tensor:
        """The point `(inputs,)` of some variables, in the box whatever rounding does."""
        inputs = np.array(values[: self.inputs])
        return torch.from_numpy(np.clip(self.center + self.radius * inputs, *self.box))

    def solver(self, sites: int, integers: bool) -> Any:
        """HiGHS with the variables and the constraints of the first sites."""
        import highspy

        rows = self.constraints(sites)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = self.columns, len(rows.low)
        lp.col_cost_ = np.zeros(self.columns)
        ones = np.ones(self.inputs)
        lp.col_lower_ = np.concatenate([-ones, np.zeros(2 * self.neurons)])
        lp.col_upper_ = np.concatenate([ones, np.ones(2 * self.neurons)])
        lp.row_lower_, lp.row_upper_ = np.array(rows.low), np.array(rows.high)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.cumsum([0, *map(len, rows.places)])
        lp.a_matrix_.index_ = np.concatenate([*rows.places, np.zeros(0, dtype=np.int64)])
        lp.a_matrix_.value_ = np.concatenate([*rows.values, np.zeros(0)])
        lp.sense_ = highspy.ObjSense.kMaximize
        if integers:
            kinds = [highspy.HighsVarType.kContinuous] * (self.columns - self.neurons)
            lp.integrality_ = kinds + [highspy.HighsVarType.kInteger] * self.neurons
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("small_matrix_value", _SMALLEST)
        if solver.passModel(lp) == highspy.HighsStatus.kError:
            raise ModelError("HiGHS does not accept the program of this network")
        return solver

    def aim(self, solver: Any, row: np.ndarray) -> float:
        """Have `row` over the variables maximised, and give the unit in which that is counted."""
        unit = float(np.abs(row).max(initial=0)) or 1.0
        cost = np.zeros(self.columns)
        cost[: len(row)] = row / unit
        solver.changeColsCost(self.columns, np.arange(self.columns, dtype=np.int32), cost)
        return unit

    def tighten(self, deadline: float) -> None:
        """Bound the unstable neurons of later sites by linear programs, while there is time."""
        import highspy

        for site in range(1, len(self.unstable)):
            if time.perf_counter() > deadline:
                return
            solver = self.solver(site, integers=False)
            for neuron in self.unstable[site]:
                for sign in (1, -1):
                    left = deadline - time.perf_counter()
                    if left <= 0:
                        return
                    solver.setOptionValue("time_limit", solver.getRunTime() + left)
                    unit = self.aim(solver, sign * self.rows[site][neuron])
                    solver.run()
                    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                        continue
                    constant = self.constants[site][neuron]
                    best = sign * unit * solver.getObjectiveValue() + constant
                    best += sign * _SAFETY * (unit + abs(best) + abs(constant))
                    if sign == 1:
                        self.high[site][neuron] = min(self.high[site][neuron], max(best, 0.0))
                    else:
                        self.low[site][neuron] = max(self.low[site][neuron], min(best, 0.0))


def fits(inputs: int, bounds: Bounds) -> bool:
    """Whether the program of a network with so many inputs fits in memory."""
    rows = sum(map(len, bounds.low)) + len(bounds.outputs)
    return rows * (inputs + bounds.unstable) <= _MOST_NUMBERS


def search_milp(dense: Dense, low: Tensor, high: Tensor, bounds: Bounds, search: Search) -> None:
    """Lower the bound of `search` over the box from `low` to `high`, each `(inputs,)`.

    Goals are taken one after the other, those with the largest bounds first.
    """
    program = Program(dense, low, high, bounds)
    slacks = dense.slack(low, high).tolist()
    program.tighten(time.perf_counter() + _TIGHTENING * search.left)
    ceilings = bounds.outputs.tolist()
    order = sorted(range(len(ceilings)), key=lambda goal: -ceilings[goal])
    nodes = 0
    for goal in order:
        others = max([b for k, b in enumerate(ceilings) if k != goal], default=-torch.inf)
        if ceilings[goal] <= search.aim or search.late or search.done:
            continue
        bound, nodes = _solve(program, goal, slacks[goal], others, search, nodes)
        ceilings[goal] = min(ceilings[goal], bound)
        search.note(max(ceilings), nodes)


def _solve(
    program: Program, goal: int, slack: float, others: float, search: Search, nodes: int
) -> tuple[float, int]:
    """A bound on one goal, infinite if none was found, and the nodes of all trees so far."""
    import highspy

    solver = program.solver(len(program.unstable), integers=True)
    unit = program.aim(solver, program.rows[-1][goal])
    constant = float(program.constants[-1][goal])
    solver.setOptionValue("time_limit", search.left)
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("mip_abs_gap", 0.5 * search.gap / unit)
    start = highspy.HighsSolution()
    start.col_value = program.start(search.x).tolist()
    solver.setSolution(start)

    def safe(bound: float) -> float:
        bound = unit * bound + constant
        raised = bound + slack + _SAFETY * (unit + abs(bound) + abs(constant))
        return raised if math.isfinite(raised) else math.inf

    def watch(event: Any) -> None:
        found = event.data_out
        bound = safe(found.mip_dual_bound)
        search.note(max(bound, others), nodes + int(found.mip_node_count))
        reached = search.threshold is not None and (
            unit * (found.mip_primal_bound - _SAFETY) + constant > search.threshold
        )
        event.data_in.user_interrupt = bound <= search.aim or reached or search.late

    def take(event: Any) -> None:
        values = event.data_out.mip_solution
        if len(values) == program.columns:  # in early versions of HiGHS it has three entries
            search.offer(program.point(values).to(search.x.device)[None])

    solver.cbMipInterrupt += watch
    solver.cbMipImprovingSolution += take
    solver.run()
    solution = solver.getSolution()
    info = solver.getInfo()
    if solution.value_valid:
        search.offer(program.point(solution.col_value).to(search.x.device)[None])
    if program.neurons:
        return safe(info.mip_dual_bound), nodes + max(0, info.mip_node_count)
    solved = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return safe(info.objective_function_value) if solved else math.inf, nodes
