"""A mixed-integer program, solved by HiGHS: for networks with few neurons that may change."""

from __future__ import annotations

import math
import time
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
    linear functions of these and need no variable.
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
                row[:, : self.inputs] += layer.input.cpu().numpy()
            for site, block in layer.hidden.items():
                matrix = block.cpu().numpy()
                row += matrix @ after[site][0]
                constant += matrix @ after[site][1]
            self.rows.append(row)
            self.constants.append(constant)
            if number < len(self.unstable):
                on = (self.low[number] >= 0).astype(float)
                after_row, which = on[:, None] * row, self.unstable[number]
                after_row[which, self.first[number] + np.arange(len(which))] = 1
                after.append((after_row, on * constant))

    def constraints(self, sites: int) -> _Rows:
        """What ties the variables of the first `sites` sites together."""
        rows = _Rows()
        for site in range(sites):
            for k, neuron in enumerate(self.unstable[site]):
                below, above = self.low[site][neuron], self.high[site][neuron]
                z = np.zeros(self.columns)
                z[: self.inputs + self.neurons] = self.rows[site][neuron]
                constant = self.constants[site][neuron]
                out = self.first[site] + k
                on = out + self.neurons
                over = -z
                over[out] += 1
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
        values[: self.inputs] = x.cpu().numpy()
        for site, which in enumerate(self.unstable):
            z = self.rows[site][which] @ values[: self.inputs + self.neurons]
            z += self.constants[site][which]
            place = self.first[site] + np.arange(len(which))
            values[place] = np.maximum(z, 0)
            values[place + self.neurons] = z > 0
        return values

    def solver(self, sites: int, integers: bool) -> Any:
        """HiGHS with the variables and the constraints of the first sites."""
        import highspy

        rows = self.constraints(sites)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = self.columns, len(rows.low)
        lp.col_cost_ = np.zeros(self.columns)
        pairs = zip(self.high, self.unstable, strict=True)
        highs = [high[which] for high, which in pairs]
        lp.col_lower_ = np.concatenate([self.box[0], np.zeros(2 * self.neurons)])
        lp.col_upper_ = np.concatenate([self.box[1], *highs, np.ones(self.neurons)])
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
        if solver.passModel(lp) == highspy.HighsStatus.kError:
            raise ModelError("HiGHS does not accept the program of this network")
        return solver

    def tighten(self, deadline: float) -> None:
        """Bound the unstable neurons of later sites by linear programs, while there is time."""
        import highspy

        places = np.arange(self.columns, dtype=np.int32)
        for site in range(1, len(self.unstable)):
            solver = self.solver(site, integers=False)
            for neuron in self.unstable[site]:
                cost = np.zeros(self.columns)
                cost[: self.inputs + self.neurons] = self.rows[site][neuron]
                for sign in (1, -1):
                    left = deadline - time.perf_counter()
                    if left <= 0:
                        return
                    solver.setOptionValue("time_limit", solver.getRunTime() + left)
                    solver.changeColsCost(self.columns, places, sign * cost)
                    solver.run()
                    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                        continue
                    best = sign * solver.getObjectiveValue() + self.constants[site][neuron]
                    best += sign * _SAFETY * (1 + abs(best))
                    if sign == 1:
                        self.high[site][neuron] = min(self.high[site][neuron], max(best, 0.0))
                    else:
                        self.low[site][neuron] = max(self.low[site][neuron], min(best, 0.0))


def search_milp(dense: Dense, low: Tensor, high: Tensor, bounds: Bounds, search: Search) -> None:
    """Lower the bound of `search` over the box from `low` to `high`, each `(inputs,)`.

    Goals are taken one after the other, those with the largest bounds first.
    """
    program = Program(dense, low, high, bounds)
    program.tighten(time.perf_counter() + _TIGHTENING * search.left)
    ceilings = bounds.outputs.tolist()
    order = sorted(range(len(ceilings)), key=lambda goal: -ceilings[goal])
    nodes = 0
    for goal in order:
        others = max([b for k, b in enumerate(ceilings) if k != goal], default=-torch.inf)
        if ceilings[goal] <= search.aim or search.late or search.done:
            continue
        ceilings[goal], nodes = _solve(program, goal, ceilings[goal], others, search, nodes)
        search.note(max(ceilings), nodes)


def _solve(
    program: Program, goal: int, ceiling: float, others: float, search: Search, nodes: int
) -> tuple[float, int]:
    """A bound on one goal, and the nodes of all trees so far."""
    import highspy

    solver = program.solver(len(program.unstable), integers=True)
    cost = np.zeros(program.columns)
    cost[: program.inputs + program.neurons] = program.rows[-1][goal]
    solver.changeColsCost(program.columns, np.arange(program.columns, dtype=np.int32), cost)
    constant = float(program.constants[-1][goal])
    solver.setOptionValue("time_limit", search.left)
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("mip_abs_gap", 0.5 * search.gap)
    start = highspy.HighsSolution()
    start.col_value = program.start(search.x).tolist()
    solver.setSolution(start)

    def safe(bound: float) -> float:
        if not math.isfinite(bound):
            return ceiling
        bound += constant
        return min(ceiling, bound + _SAFETY * (1 + abs(bound) + abs(constant)))

    def watch(event: Any) -> None:
        found = event.data_out
        bound = safe(found.mip_dual_bound)
        search.note(max(bound, others), nodes + int(found.mip_node_count))
        reached = search.threshold is not None and (
            found.mip_primal_bound + constant > search.threshold + _SAFETY
        )
        event.data_in.user_interrupt = bound <= search.aim or reached or search.late

    solver.cbMipInterrupt += watch
    solver.run()
    solution = solver.getSolution()
    info = solver.getInfo()
    if solution.value_valid:
        x = torch.tensor(solution.col_value[: program.inputs], dtype=torch.float64)
        inside = x.clamp(torch.from_numpy(program.box[0]), torch.from_numpy(program.box[1]))
        search.offer(inside.to(search.x.device)[None])
    bound = info.mip_dual_bound if program.neurons else info.objective_function_value
    return safe(bound), nodes + max(0, info.mip_node_count)
