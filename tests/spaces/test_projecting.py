"""Projections: into the set, to its nearest point, each row for itself."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from space_cases import BALLS, DYKSTRA, EXACT, Case, build, seeded_case
from torch import Tensor

from facetwalk.spaces import L1Ball, L2Ball, LinfBall


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
