"""Spaces with the inequalities that define them, written out independently."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import torch
from scipy.optimize import minimize
from torch import Tensor

from facetwalk.spaces import Box, Intersection, L1Ball, L2Ball, LinfBall, Space

EXACT = [
    "Box",
    "LinfBall",
    "L2Ball",
    "L1Ball",
    "LinfBall in bounds",
    "L2Ball in bounds",
    "L1Ball in bounds",
    "LinfBall & Box",
    "L2Ball & L1Ball around one centre",
    "L2Ball & L1Ball & Box around one centre",
    "L2Ball & L1Ball & LinfBall around one centre",
]
DYKSTRA = ["L2Ball & Box", "L1Ball & Box", "L1Ball & L2Ball", "L2Ball & L2Ball"]
BALLS = {"LinfBall": (LinfBall, math.inf), "L2Ball": (L2Ball, 2), "L1Ball": (L1Ball, 1)}
EPS = torch.tensor([0.5, 2.0])
"""Radii of two problems."""


@dataclass
class Case:
    """A space together with the inequalities that define it, written out independently."""

    space: Space
    x: Tensor
    anchor: Tensor
    """A feasible point."""
    balls: list[tuple[float, Tensor, Tensor]] = field(default_factory=list)
    low: Tensor | float = -math.inf
    high: Tensor | float = math.inf

    def violation(self, points: Tensor) -> float:
        low, high = (torch.as_tensor(bound, dtype=points.dtype) for bound in (self.low, self.high))
        worst = [(low - points).max(), (points - high).max()]
        for p, centers, eps in self.balls:
            worst.append((torch.linalg.vector_norm(points - centers, p, dim=1) - eps).max())
        return max(float(value) for value in worst)

    def feasible_towards(self, points: Tensor) -> Tensor:
        """The last feasible point on the way from the anchor to each point, by bisection."""
        rows = []
        for i, (anchor, point) in enumerate(zip(self.anchor, points, strict=True)):
            row, inside, outside = self.row(i), 0.0, 1.0
            for _ in range(40):
                middle = (inside + outside) / 2
                if row.violation((anchor + middle * (point - anchor))[None]) <= 0:
                    inside = middle
                else:
                    outside = middle
            rows.append(anchor + inside * (point - anchor))
        return torch.stack(rows)

    def row(self, i: int) -> Case:
        one = slice(i, i + 1)
        low, high = (
            bound[one] if isinstance(bound, Tensor) else bound for bound in (self.low, self.high)
        )
        balls = [(p, centers[one], eps[one]) for p, centers, eps in self.balls]
        space = self.space.select(torch.tensor([i]))
        return Case(space, self.x[one], self.anchor[one], balls, low, high)

    def nearest_by_slsqp(self) -> Tensor:
        """The nearest feasible point to the only row, by a general optimiser."""
        x, n = self.x[0].numpy(), self.x.shape[1]
        constraints = []
        for p, centers, eps in self.balls:
            c, r = centers[0].numpy(), float(eps[0])
            if p == 2:
                constraints.append(
                    {
                        "fun": lambda z, c=c, r=r: r**2 - ((z - c) ** 2).sum(),
                        "jac": lambda z, c=c: 2 * (c - z),
                    }
                )
                continue
            if p == 1:
                faces = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=n))).double()
            else:
                faces = torch.cat([torch.eye(n), -torch.eye(n)]).double()
            normals = faces.numpy()
            constraints.append(
                {
                    "fun": lambda z, c=c, r=r, normals=normals: r - normals @ (z - c),
                    "jac": lambda z, normals=normals: -normals,
                }
            )
        low, high = (
            torch.as_tensor(bound).expand(1, n)[0].numpy() for bound in (self.low, self.high)
        )
        found = minimize(
            lambda z: ((z - x) ** 2).sum(),
            self.anchor[0].numpy(),
            jac=lambda z: 2 * (z - x),
            bounds=list(zip(low, high, strict=True)),
            constraints=[{"type": "ineq", **constraint} for constraint in constraints],
            method="SLSQP",
            options={"ftol": 1e-10, "maxiter": 500},
        )
        nearest = torch.from_numpy(found.x)[None]
        assert self.violation(nearest) <= 1e-6
        return nearest


def build(kind: str, centers: Tensor, eps: Tensor, room: tuple[Tensor, Tensor], x: Tensor) -> Case:
    shape = centers.shape[1:]
    names = kind.removesuffix(" in bounds").removesuffix(" around one centre").split(" & ")
    shift, size = 1 / (2 * math.sqrt(shape[0])), dict.fromkeys(BALLS, eps)
    if "one centre" in kind:
        shift, size = 0.0, {"LinfBall": 0.6 * eps, "L2Ball": eps, "L1Ball": 1.3 * eps}
    low, high = centers - room[0], centers + room[1]
    members, balls = [], []
    for i, name in enumerate(names):
        if name == "Box":
            members.append(Box(low, high, shape=shape))
            continue
        ball, p = BALLS[name]
        at = centers + i * shift * eps[:, None]
        members.append(ball(at, size[name], bounds=(low, high) if "bounds" in kind else None))
        balls.append((p, at, size[name]))
    space = members[0] if len(members) == 1 else Intersection(*members)
    if "bounds" in kind or "Box" in kind:
        return Case(space, x, centers, balls, low, high)
    return Case(space, x, centers, balls)


def seeded_case(kind: str, seed: int, problems: int = 3, n: int = 4, reach: float = 3.0) -> Case:
    """Points up to `reach` radii away in each coordinate."""
    random = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=random, dtype=torch.float64)

    centers, eps = 2 * draw(problems, n) - 1, 0.3 + draw(problems)
    room = (0.1 + 0.5 * draw(problems, n), 0.1 + 0.5 * draw(problems, n))
    x = centers + reach * eps[:, None] * (2 * draw(problems, n) - 1)
    return build(kind, centers, eps, room, x)
