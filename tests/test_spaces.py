from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import beta, kstest
from scipy.stats import uniform as uniform_law
from torch import Tensor

from facetwalk.projections import solve_rising, solve_shortening
from facetwalk.spaces import Box, Intersection, L1Ball, L2Ball, LinfBall, Space
from facetwalk.streams import Streams
from facetwalk.types import InputError

EXACT = [
    "Box",
    "LinfBall",
    "L2Ball",
    "L1Ball",
    "LinfBall in bounds",
    "L2Ball in bounds",
    "L1Ball in bounds",
    "LinfBall & Box",
]
DYKSTRA = ["L2Ball & Box", "L1Ball & Box", "L1Ball & L2Ball", "L2Ball & L2Ball"]
BALLS = {"LinfBall": (LinfBall, math.inf), "L2Ball": (L2Ball, 2), "L1Ball": (L1Ball, 1)}


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
    names = kind.removesuffix(" in bounds").split(" & ")
    low, high = centers - room[0], centers + room[1]
    shape = centers.shape[1:]
    members, balls = [], []
    for i, name in enumerate(names):
        if name == "Box":
            members.append(Box(low, high, shape=shape))
            continue
        ball, p = BALLS[name]
        at = centers + i * eps[:, None] / (2 * math.sqrt(shape[0]))
        members.append(ball(at, eps, bounds=(low, high) if "bounds" in kind else None))
        balls.append((p, at, eps))
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


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    """Thousandths: ties and zeros are likely, and no square underflows."""
    return st.integers(round(1000 * low), round(1000 * high)).map(lambda k: k / 1000)


@st.composite
def cases(draw: st.DrawFn, kinds: list[str] = EXACT + DYKSTRA) -> Case:
    kind = draw(st.sampled_from(kinds))
    problems, n = draw(st.integers(1, 3)), draw(st.integers(1, 4))

    def tensor(rows: int, columns: int, entries: st.SearchStrategy[float]) -> Tensor:
        row = st.lists(entries, min_size=columns, max_size=columns)
        values = draw(st.lists(row, min_size=rows, max_size=rows))
        return torch.tensor(values, dtype=torch.float64)

    least = 0.2 if kind in DYKSTRA else 0.0
    rooms = numbers(least, 2)
    if "bounds" in kind:
        rooms |= st.just(math.inf)
    centers = tensor(problems, n, numbers(-2, 2))
    eps = tensor(1, problems, numbers(least, 2))[0]
    room = (tensor(problems, n, rooms), tensor(problems, n, rooms))
    reach = 3 * eps[:, None] if kind in DYKSTRA else 6
    x = centers + reach * tensor(problems, n, numbers(-1, 1))
    return build(kind, centers, eps, room, x)


property_based = settings(max_examples=60, deadline=None, derandomize=True)


@property_based
@given(cases())
def test_projection_is_feasible(case):
    projected = case.space.project(case.x)
    assert case.violation(projected) <= 1e-6
    assert case.space.contains(projected).all()


@property_based
@given(cases())
def test_projecting_twice_is_projecting_once(case):
    once = case.space.project(case.x)
    torch.testing.assert_close(case.space.project(once), once, rtol=0, atol=1e-6)


@property_based
@given(cases())
def test_feasible_points_stay_where_they_are(case):
    inside = case.feasible_towards(case.x)
    assert case.violation(inside) <= 0
    torch.testing.assert_close(case.space.project(inside), inside, rtol=0, atol=1e-9)
    assert case.space.contains(inside).all()


@property_based
@given(cases(), st.integers(0, 1000))
def test_no_feasible_point_lies_beyond_the_projection(case, seed):
    projected = case.space.project(case.x)
    random = torch.Generator().manual_seed(seed)
    for _ in range(5):
        direction = torch.randn(case.x.shape, generator=random, dtype=torch.float64)
        other = case.feasible_towards(case.anchor + 10 * direction)
        assert ((case.x - projected) * (other - projected)).sum(1).max() <= 1e-4


@property_based
@given(cases())
def test_contains_agrees_with_the_inequalities_away_from_the_boundary(case):
    for i in range(len(case.x)):
        row = case.row(i)
        if row.violation(row.x) > 1e-3:
            assert not row.space.contains(row.x).any()
        elif row.violation(row.x) <= 0:
            assert row.space.contains(row.x).all()


@property_based
@given(cases())
def test_a_batch_projects_as_its_rows_do_alone(case):
    together = case.space.project(case.x)
    alone = torch.cat([case.row(i).space.project(case.x[i : i + 1]) for i in range(len(case.x))])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", EXACT + DYKSTRA)
def test_projection_is_as_near_as_slsqp_finds(kind, seed):
    case = seeded_case(kind, seed)
    distance = (case.space.project(case.x) - case.x).norm(dim=1)
    for i, got in enumerate(distance.tolist()):
        row = case.row(i)
        assert got == pytest.approx(float((row.nearest_by_slsqp() - row.x).norm()), abs=1e-4)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", EXACT + DYKSTRA)
def test_rows_of_a_larger_batch_project_as_they_do_alone(kind, seed):
    case = seeded_case(kind, seed, problems=20)
    together = case.space.project(case.x)
    for i in range(20):
        alone = case.row(i).space.project(case.x[i : i + 1])
        torch.testing.assert_close(together[i : i + 1], alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("ball", [L2Ball, L1Ball])
def test_intersection_with_a_box_is_the_ball_in_bounds(ball):
    case = seeded_case(f"{ball.__name__} & Box", seed=5, problems=40, n=8, reach=2.0)
    (_, centers, eps), *_ = case.balls
    exact = ball(centers, eps, bounds=(case.low, case.high)).project(case.x)
    torch.testing.assert_close(case.space.project(case.x), exact, rtol=0, atol=1e-4)


@pytest.mark.parametrize("radii_away", [2, 100, 1000])
@pytest.mark.parametrize("high", [math.inf, 1.0])
@pytest.mark.parametrize("ball", [LinfBall, L2Ball, L1Ball])
def test_far_points_project_into_the_set_in_float32(ball, high, radii_away):
    random = torch.Generator().manual_seed(0)
    centers, eps = 0.03 * torch.rand(20, 10, generator=random), 0.1
    space = ball(centers, eps, bounds=(0.0, high))
    x = centers + radii_away * eps * torch.randn(20, 10, generator=random)
    projected = space.project(x)
    p = BALLS[ball.__name__][1]
    lengths = torch.linalg.vector_norm((projected - centers).double(), p, dim=1)
    assert lengths.max() <= eps * (1 + 1e-4)
    assert projected.min() >= 0
    assert projected.max() <= high
    assert space.contains(projected).all()


@pytest.mark.parametrize("ball", [LinfBall, L2Ball, L1Ball])
@pytest.mark.parametrize("bounds", [None, (-0.2, 0.3)])
def test_one_set_serves_every_row(ball, bounds):
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    shared, own = ball(torch.zeros(1, 4), 0.5, bounds), ball(torch.zeros(5, 4), 0.5, bounds)
    torch.testing.assert_close(shared.project(x), own.project(x))
    assert torch.equal(shared.contains(0.1 * x), own.contains(0.1 * x))
    streams = Streams(torch.arange(5))
    torch.testing.assert_close(shared.sample(streams), own.sample(streams))
    torch.testing.assert_close(shared.ascent(x), own.ascent(x))
    repeated = shared.select(torch.zeros(5, dtype=torch.int64))
    torch.testing.assert_close(repeated.project(x), own.project(x))


@pytest.mark.parametrize("ball", [LinfBall, L2Ball, L1Ball])
def test_image_shaped_points_project_as_flat_ones(ball):
    random = torch.Generator().manual_seed(0)
    centers, x = torch.rand(2, 3, 4, 2, generator=random), torch.randn(2, 3, 4, 2, generator=random)
    eps = torch.tensor([0.5, 2.0])
    image = ball(centers, eps, bounds=(0, 1))
    flat = ball(centers.flatten(1), eps, bounds=(0, 1))
    assert image.shape == (3, 4, 2)
    torch.testing.assert_close(image.project(x).flatten(1), flat.project(x.flatten(1)))
    torch.testing.assert_close(image.ascent(x).flatten(1), flat.ascent(x.flatten(1)))
    streams = Streams(torch.arange(2))
    torch.testing.assert_close(image.sample(streams).flatten(1), flat.sample(streams))


@pytest.mark.parametrize("ball", [LinfBall, L2Ball, L1Ball])
def test_a_ball_of_radius_zero_is_its_centre(ball):
    centers = torch.tensor([[0.3, -4.0], [1e4, 0.0]])
    space = ball(centers, 0.0)
    assert torch.equal(space.project(centers + 5), centers)
    assert torch.equal(space.sample(Streams(torch.arange(2))), centers)


@pytest.mark.parametrize("kind", EXACT + DYKSTRA)
def test_samples_lie_inside_and_follow_their_streams(kind):
    case = seeded_case(kind, seed=1)
    streams = Streams.from_seeds(torch.arange(3), torch.zeros(3))
    points = case.space.sample(streams)
    assert points.shape == (3, 4)
    assert case.violation(points) <= 1e-6
    assert torch.equal(points, case.space.sample(streams))
    others = case.space.sample(streams.fold(1))
    assert (points != others).any(1).all()
    for i in range(3):
        alone = case.row(i).space.sample(Streams(streams.keys[i : i + 1]))
        torch.testing.assert_close(alone, points[i : i + 1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", EXACT + DYKSTRA)
def test_samples_of_one_set_differ_between_streams(kind):
    row = seeded_case(kind, seed=2).row(0)
    points = row.space.sample(Streams.from_seeds(torch.arange(50), torch.zeros(50)))
    assert len(points.unique(dim=0)) > 40
    assert (points.std(0) > 0.01).all()


@pytest.mark.parametrize("n", [2, 3, 10])
@pytest.mark.parametrize(("ball", "p"), [(L2Ball, 2), (L1Ball, 1)])
def test_ball_samples_follow_the_uniform_law(ball, p, n):
    center = torch.full((1, n), 3.0, dtype=torch.float64)
    streams = Streams.from_seeds(torch.arange(3000), torch.zeros(3000))
    offset = ball(center, 0.5).sample(streams) - center
    radius = torch.linalg.vector_norm(offset, p, dim=1) / 0.5
    assert kstest(radius.pow(n).numpy(), "uniform").pvalue > 1e-3
    share = (offset[:, 0] / (0.5 * radius)).abs()
    law = beta(0.5, (n - 1) / 2) if p == 2 else beta(1, n - 1)
    assert kstest(share.pow(p).numpy(), law.cdf).pvalue > 1e-3
    assert (offset > 0).double().mean(0).tolist() == pytest.approx([0.5] * n, abs=0.05)


@pytest.mark.parametrize(
    ("space", "low", "high"),
    [
        (Box(torch.tensor([-1.0, 2.0]), torch.tensor([1.0, 7.0])), [-1, 2], [1, 7]),
        (LinfBall(torch.tensor([[0.0, 5.0]]), 2.0), [-2, 3], [2, 7]),
        (LinfBall(torch.tensor([[0.0, 5.0]]), 2.0, bounds=(-1.0, 6.0)), [-1, 3], [2, 6]),
    ],
    ids=["Box", "LinfBall", "LinfBall in bounds"],
)
def test_box_samples_are_uniform_in_every_coordinate(space, low, high):
    points = space.sample(Streams.from_seeds(torch.arange(3000), torch.zeros(3000)))
    for column, a, b in zip(points.T, low, high, strict=True):
        assert kstest(column.numpy(), uniform_law(a, b - a).cdf).pvalue > 1e-3


EPS = torch.tensor([0.5, 2.0])


@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e15])
@pytest.mark.parametrize(
    ("space", "dual_norm"),
    [
        (LinfBall(torch.zeros(2, 6), EPS), lambda g: EPS.double() * g.abs().sum(1)),
        (L2Ball(torch.zeros(2, 6), EPS), lambda g: EPS.double() * g.square().sum(1).sqrt()),
        (
            Box(torch.full((6,), -1.0), torch.arange(6.0)),
            lambda g: (g.abs() * (torch.arange(6.0) + 1) / 2).sum(1),
        ),
    ],
    ids=["LinfBall", "L2Ball", "Box"],
)
def test_ascent_attains_the_maximum_of_a_linear_function(space, dual_norm, scale):
    gradient = scale * torch.randn(2, 6, generator=torch.Generator().manual_seed(3))
    gain = (gradient.double() * space.ascent(gradient).double()).sum(1)
    torch.testing.assert_close(gain, dual_norm(gradient.double()), rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    "gradient",
    [
        torch.randn(2, 50, generator=torch.Generator().manual_seed(4)),
        1e-30 * torch.randn(2, 3, generator=torch.Generator().manual_seed(4)),
        torch.tensor([[1.0, -1.0, 1.0, 0.5], [0.0, 0.0, -3.0, 0.0]]),
        torch.zeros(2, 60).index_fill(1, torch.tensor([7]), -1.0),
    ],
    ids=["many entries", "tiny", "ties", "fewer entries than the share"],
)
def test_l1_ascent_goes_up_and_has_length_eps(gradient):
    step = L1Ball(torch.zeros_like(gradient), EPS).ascent(gradient)
    torch.testing.assert_close(step.abs().sum(1), EPS)
    assert ((step.double() * gradient.double()).sum(1) > 0).all()


def test_l1_ascent_moves_the_twentieth_of_the_entries_with_the_largest_gradient():
    gradient = torch.arange(1.0, 61.0)[None] * torch.tensor([1.0, -1.0]).repeat(30)
    step = L1Ball(torch.zeros(1, 60), 3.0).ascent(gradient)
    assert step[0, -3:].tolist() == [-1.0, 1.0, -1.0]
    assert not step[0, :-3].any()


@pytest.mark.parametrize("kind", EXACT + DYKSTRA)
def test_ascent_of_a_zero_gradient_is_zero(kind):
    assert not seeded_case(kind, seed=0).space.ascent(torch.zeros(3, 4)).any()


@pytest.mark.parametrize("kind", EXACT + DYKSTRA)
def test_ascent_of_a_batch_is_the_ascent_of_its_rows(kind):
    case = seeded_case(kind, seed=6, problems=8)
    together = case.space.ascent(case.x)
    assert ((together * case.x).sum(1) > 0).all()
    for i in range(8):
        torch.testing.assert_close(case.row(i).space.ascent(case.x[i : i + 1])[0], together[i])


def test_ascent_of_an_intersection_uses_the_smaller_set_of_each_problem():
    gradient = torch.tensor([[3.0, 4.0], [3.0, 4.0]])
    ball = L2Ball(torch.zeros(2, 2), torch.tensor([0.1, 10.0]))
    space = Intersection(ball, Box(-1, 1, shape=(2,)))
    torch.testing.assert_close(space.ascent(gradient), torch.tensor([[0.06, 0.08], [1.0, 1.0]]))


def test_center_and_radius_of_a_box():
    box = Box(torch.tensor([-1.0, 0.0]), torch.tensor([3.0, 0.5]))
    assert box.center.tolist() == [[1.0, 0.25]]
    assert box.radius.tolist() == [[2.0, 0.25]]
    assert (box.shape, box.count) == ((2,), 1)


def test_a_box_of_each_problem():
    box = Box(torch.tensor([[-1.0], [0.0]]), 2, shape=(3,))
    assert (box.shape, box.count) == ((3,), 2)
    assert box.project(torch.full((2, 3), -9.0)).tolist() == [[-1.0] * 3, [0.0] * 3]


def test_bounds_of_each_problem_and_coordinate():
    low = torch.tensor([[0.0, -1.0], [-2.0, -3.0]])
    ball = LinfBall(torch.zeros(2, 2), 10.0, bounds=(low, torch.tensor([1.0, 2.0])))
    assert torch.equal(ball.project(torch.full((2, 2), -50.0)), low)
    assert ball.project(torch.full((2, 2), 50.0)).tolist() == [[1.0, 2.0]] * 2


def test_intersection_reaches_as_far_as_its_smallest_member():
    space = Intersection(L2Ball(torch.zeros(2, 3), EPS), Box(-1, 1, shape=(3,)))
    assert space.radius.expand(2, 3).tolist() == [[0.5] * 3, [1.0] * 3]
    assert (space.shape, space.count) == ((3,), 2)


CORNERS = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=4)))
TIPS = torch.cat([torch.eye(4), -torch.eye(4)])
ALL_AROUND = Streams(torch.arange(50)).normal((4,))
SCALED = {
    "Box": (Box(torch.tensor([-1.0, 0.0, 2.0, 0.0]), torch.tensor([3.0, 0.5, 2.5, 9.0])), CORNERS),
    "Box of each": (Box(torch.tensor([[-1.0], [0.0]]), 2, shape=(4,)), CORNERS),
    "LinfBall": (LinfBall(torch.zeros(2, 4), torch.tensor([0.1, 3.0])), CORNERS),
    "L2Ball": (L2Ball(torch.ones(2, 4), torch.tensor([0.1, 3.0])), ALL_AROUND),
    "L2Ball of images": (L2Ball(torch.ones(1, 2, 2), 3.0), ALL_AROUND),
    "L1Ball": (L1Ball(torch.ones(2, 4), torch.tensor([0.1, 3.0])), TIPS),
}


@pytest.mark.parametrize(("space", "extreme"), SCALED.values(), ids=SCALED)
def test_scales_are_the_axes_of_an_ellipsoid_around_the_set(space, extreme):
    """Extreme points lie on it, all others inside."""
    center, rows = space.center, (space.count, *space.shape)

    def depth(x: Tensor) -> Tensor:
        return ((x - center) / space.scale).flatten(1).norm(dim=1)

    for direction in extreme:
        far = space.project(center + 20 * direction.reshape(space.shape).expand(rows))
        torch.testing.assert_close(depth(far), torch.ones(space.count), rtol=1e-4, atol=0)
    for number in range(50):
        streams = Streams(torch.arange(space.count)).fold(number)
        assert (depth(space.sample(streams)) <= 1 + 1e-5).all()


def test_scale_of_an_intersection_is_the_smallest_in_each_coordinate():
    box = Box(torch.tensor([-1.0, -0.2]), torch.tensor([1.0, 0.2]))
    space = Intersection(L2Ball(torch.zeros(1, 2), 1.0), box)
    torch.testing.assert_close(space.scale, torch.tensor([[1.0, 0.2 * 2**0.5]]))


@pytest.mark.parametrize("kind", EXACT + DYKSTRA)
def test_scale_is_positive_and_follows_rows(kind):
    space = seeded_case(kind, seed=0).space
    everyone = space.scale.expand(space.count, *space.shape)
    assert (everyone > 0).all()
    rows = torch.tensor([2, 0])
    torch.testing.assert_close(space.select(rows).scale.expand(2, *space.shape), everyone[rows])


def test_intersection_starts_from_a_common_point():
    space = Intersection(L2Ball(torch.zeros(1, 2), 1.0), Box(0.5, 3, shape=(2,)))
    start = space.center[0]
    assert start.norm() <= 1 + 1e-6
    assert (start >= 0.5).all()


def test_select_orders_and_repeats_problems():
    case = seeded_case("L2Ball & Box", seed=0)
    rows = torch.tensor([2, 0, 2])
    torch.testing.assert_close(case.space.select(rows).center, case.space.center[rows])


@pytest.mark.parametrize("kind", EXACT + DYKSTRA)
def test_to_changes_the_precision_of_everything(kind):
    case = seeded_case(kind, seed=0)
    single = case.space.to(torch.device("cpu"), torch.float32)
    projected = single.project(case.x.float())
    assert projected.dtype == single.center.dtype == single.radius.dtype == torch.float32
    torch.testing.assert_close(projected.double(), case.space.project(case.x), rtol=0, atol=1e-4)
    assert case.space.center.dtype == torch.float64


def test_number_bounds_keep_the_precision_of_the_centres():
    ball = LinfBall(torch.full((1, 2), 0.1, dtype=torch.float64), 5.0, bounds=(0.1, 0.7))
    projected = ball.project(torch.tensor([[-9.0, 9.0]], dtype=torch.float64))
    assert projected.tolist() == [[0.1, 0.7]]


def test_centres_are_detached_from_their_graph():
    centers = torch.zeros(1, 2, requires_grad=True)
    assert not L2Ball(centers, 1.0).center.requires_grad


ROW = torch.zeros(2, 3)
BAD_SPACES = {
    "box of numbers without a shape": (lambda: Box(-1, 1), "needs a shape"),
    "infinite box": (lambda: Box(0, math.inf, shape=(3,)), "must be finite"),
    "NaN box": (lambda: Box(math.nan, 1, shape=(3,)), "hold NaN"),
    "empty box": (lambda: Box(torch.tensor([0.0, 2.0]), 1.0), "low <= high"),
    "box of another size": (lambda: Box(torch.zeros(2), 1, shape=(3,)), "do not fit"),
    "box of too many dimensions": (
        lambda: Box(torch.zeros(2, 2, 3), 1, shape=(3,)),
        "do not fit",
    ),
    "bounds of another size": (
        lambda: L2Ball(ROW, 1.0, bounds=(torch.zeros(2), 1)),
        r"bounds of shape \(2,\)",
    ),
    "list of centres": (lambda: L2Ball([[0.0]], 1.0), "as a tensor"),
    "one centre without a batch": (lambda: L2Ball(torch.zeros(3), 1.0), r"pass x\[None\]"),
    "no centres": (lambda: L2Ball(torch.zeros(0, 3), 1.0), "at least one problem"),
    "integer centres": (lambda: L2Ball(ROW.byte(), 1.0), "torch.uint8: pass floats"),
    "NaN centres": (lambda: L2Ball(ROW * math.nan, 1.0), "NaN or infinite"),
    "infinite centres": (lambda: L2Ball(ROW + math.inf, 1.0), "NaN or infinite"),
    "too many eps": (lambda: L2Ball(ROW, torch.ones(3)), "each of the 2 problems"),
    "eps with two dimensions": (lambda: L2Ball(ROW, torch.ones(2, 1)), r"has shape \(2, 1\)"),
    "negative eps": (lambda: L2Ball(ROW, -0.1), "not negative"),
    "one negative eps": (lambda: L2Ball(ROW, torch.tensor([1.0, -1.0])), "not negative"),
    "NaN eps": (lambda: L2Ball(ROW, math.nan), "finite number"),
    "infinite eps": (lambda: L2Ball(ROW, math.inf), "finite number"),
    "centre below the bounds": (
        lambda: L2Ball(torch.tensor([[0.5], [-1.0]]), 1.0, bounds=(0, 1)),
        "1 of 2 centres lie outside",
    ),
    "centres above the bounds": (
        lambda: L2Ball(ROW + 255, 1.0, bounds=(0, 1)),
        "2 of 2 centres lie outside",
    ),
    "intersection of nothing": (lambda: Intersection(), "one or more spaces"),
    "intersection of shapes": (
        lambda: Intersection(Box(0, 1, shape=(2,)), Box(0, 1, shape=(3,))),
        "of the same shape",
    ),
    "intersection of counts": (
        lambda: Intersection(L2Ball(ROW, 1.0), L2Ball(torch.zeros(4, 3), 1.0)),
        r"numbers of problems: \[2, 4\]",
    ),
    "disjoint boxes": (
        lambda: Intersection(Box(0, 1, shape=(3,)), LinfBall(ROW + 5, 1.0)),
        "boxes of the intersection have no common point",
    ),
    "disjoint ball and box": (
        lambda: Intersection(Box(1, 2, shape=(3,)), L2Ball(ROW, 1.0)),
        "spaces have no common point",
    ),
    "one problem disjoint": (
        lambda: Intersection(L2Ball(ROW, EPS), L1Ball(ROW[:1] + 0.6, 0.5)),
        "spaces have no common point",
    ),
}


@pytest.mark.parametrize(("make", "message"), BAD_SPACES.values(), ids=BAD_SPACES.keys())
def test_bad_spaces_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


UNFIT_BOUNDS = {
    "box of 2 lows and 4 highs": lambda: Box(ROW, torch.ones(4, 3), shape=(3,)),
    "box of 2-vector and 3-vector": lambda: Box(torch.zeros(2), torch.ones(3)),
    "4 bounds for 2 centres": lambda: L2Ball(ROW, 1.0, bounds=(-torch.ones(4, 3), 1)),
    "2 bounds for 1 centre": lambda: L2Ball(ROW[:1], 1.0, bounds=(-1, torch.ones(2, 3))),
    "NaN bounds": lambda: L2Ball(ROW, 1.0, bounds=(math.nan, 1)),
}


@pytest.mark.parametrize("make", UNFIT_BOUNDS.values(), ids=UNFIT_BOUNDS.keys())
def test_bounds_that_do_not_fit_are_refused(make):
    with pytest.raises(InputError):
        make()


@dataclass(frozen=True, eq=False)
class Simplex(Space):
    """Points with no negative coordinate whose sum is `total`, `(B, 1)`."""

    total: Tensor
    n: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n,)

    @property
    def center(self) -> Tensor:
        return (self.total / self.n).expand(-1, self.n)

    @property
    def radius(self) -> Tensor:
        return self.total

    def project(self, x: Tensor) -> Tensor:
        high = x.sort(dim=1, descending=True).values
        excess = (high.cumsum(1) - self.total) / torch.arange(1, self.n + 1)
        last = (high > excess).sum(1, keepdim=True) - 1
        return (x - excess.gather(1, last)).clamp_min(0)


@pytest.fixture
def simplex() -> Simplex:
    return Simplex(torch.tensor([[1.0], [4.0]], dtype=torch.float64), 3)


def test_a_space_of_ones_own_samples_inside_itself(simplex):
    streams = Streams(torch.arange(2))
    points = simplex.sample(streams)
    assert points.min() >= 0
    torch.testing.assert_close(points.sum(1), simplex.total[:, 0])
    assert (points != simplex.sample(streams.fold(1))).any(1).all()


def test_a_space_of_ones_own_knows_its_points(simplex):
    inside = torch.tensor([[0.2, 0.3, 0.5], [4.0, 0.0, 0.0]], dtype=torch.float64)
    assert simplex.contains(inside).tolist() == [True, True]
    assert simplex.contains(inside.flip(0)).tolist() == [False, False]
    assert simplex.contains(inside - 0.01).tolist() == [False, False]


def test_a_space_of_ones_own_is_selected_moved_and_counted(simplex):
    assert simplex.count == 2
    second = simplex.select(torch.tensor([1])).to(torch.device("cpu"), torch.float32)
    assert isinstance(second, Simplex)
    assert second.project(torch.zeros(1, 3)).tolist() == [pytest.approx([4 / 3] * 3)]


def test_a_space_of_ones_own_ascends_by_the_signs(simplex):
    gradient = torch.tensor([[0.1, -3.0, 0.0], [-2.0, 1.0, 5.0]])
    assert simplex.ascent(gradient).tolist() == [[1.0, -1.0, 0.0], [-4.0, 4.0, 4.0]]


def test_a_space_of_ones_own_has_the_scale_of_a_box(simplex):
    torch.testing.assert_close(simplex.scale, simplex.radius * 3**0.5)


def test_a_space_of_ones_own_intersects_with_a_box():
    simplex = Simplex(torch.ones(1, 1, dtype=torch.float64), 3)
    capped = Intersection(simplex, Box(torch.zeros(3), torch.full((3,), 0.5)))
    x = torch.tensor([[2.0, 0.1, 0.0]], dtype=torch.float64)
    expected = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64)
    torch.testing.assert_close(capped.project(x), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_solve_rising_meets_its_equation(seed):
    random = torch.Generator().manual_seed(seed)
    knots, slope = (torch.rand(6, 5, generator=random, dtype=torch.float64) for _ in range(2))
    full = (slope * knots).sum(1, keepdim=True)
    target = full * torch.linspace(0, 1.5, 6, dtype=torch.float64)[:, None]
    s = solve_rising(knots, slope, target)
    reached = (slope * torch.minimum(s[:, None], knots)).sum(1)
    torch.testing.assert_close(reached, torch.minimum(target, full)[:, 0])
    assert s[-1] == 1


@pytest.mark.parametrize("seed", range(5))
def test_solve_shortening_meets_its_equation(seed):
    random = torch.Generator().manual_seed(seed)
    size, room = (torch.rand(6, 5, generator=random, dtype=torch.float64) for _ in range(2))
    full = torch.minimum(size, room).sum(1, keepdim=True)
    target = full * torch.linspace(0, 1.5, 6, dtype=torch.float64)[:, None]
    amount = solve_shortening(size, room, target)
    left = torch.minimum((size - amount[:, None]).clamp_min(0), room).sum(1)
    torch.testing.assert_close(left, torch.minimum(target, full)[:, 0])
    assert amount[-1] == 0
