"""Spaces of points in 16 bits: the points lie in the space as it was given."""

import pytest
import torch
from space_cases import DYKSTRA, EXACT, seeded_case
from torch import Tensor

import facetwalk as fw
from facetwalk.spaces import Box, Intersection, L1Ball, L2Ball, LinfBall, Space
from facetwalk.spaces.rounding import rounded_towards
from facetwalk.streams import Streams

CPU = torch.device("cpu")
HALVES = [torch.bfloat16, torch.float16]
IMAGES = torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
SHAPE = IMAGES.shape[1:]
NEAR_IMAGES = {
    "Linf": LinfBall(IMAGES, 8 / 255, bounds=(0, 1)),
    "Linf in bounds that no half has": LinfBall(IMAGES.clamp(0.1, 0.9), 8 / 255, bounds=(0.1, 0.9)),
    "L2": L2Ball(IMAGES, 0.5, bounds=(0, 1)),
    "L2 without bounds": L2Ball(IMAGES, 0.5),
    "L1": L1Ball(IMAGES, 12.0, bounds=(0, 1)),
    "L1 without bounds": L1Ball(IMAGES, 12.0),
    "Box": Box(IMAGES - 0.03, IMAGES + 0.07, shape=SHAPE),
    "L2 & L1": Intersection(L2Ball(IMAGES, 0.5, bounds=(0, 1)), L1Ball(IMAGES, 12.0)),
    "L2 & L1 & Linf": Intersection(
        L2Ball(IMAGES, 0.5), L1Ball(IMAGES, 12.0), LinfBall(IMAGES, 8 / 255), Box(0, 1, shape=SHAPE)
    ),
    "L2 & Linf": Intersection(L2Ball(IMAGES, 0.5), LinfBall(IMAGES, 8 / 255, bounds=(0, 1))),
}


def points(space: Space, dtype: torch.dtype) -> dict[str, Tensor]:
    """Points that a space gives, near it and far away."""
    random = torch.Generator().manual_seed(1)
    noise = torch.randn(4, *SHAPE, generator=random)
    given = {"center": space.center, "sample": space.sample(Streams(torch.arange(4)))}
    for size in (0.001, 0.03, 1.0, 100.0):
        given[f"noise of {size}"] = space.project((IMAGES + size * noise).to(dtype))
    stepped = given["sample"] + 2 * space.ascent(noise.to(dtype))
    return {**given, "step": space.project(stepped), "float": space.project(IMAGES + noise)}


def violation(name: str, x: Tensor) -> float:
    """By how much the inequalities are broken that make up a space around the images."""
    low, high = (0.1, 0.9) if "that no half has" in name else (0.0, 1.0)
    if name == "Box":
        return float(torch.maximum(IMAGES - 0.03 - x, x - IMAGES - 0.07).max())
    offset = (x.double() - IMAGES.clamp(low, high).double()).flatten(1)
    broken = []
    if "without" not in name:
        broken += [low - x.double().min(), x.double().max() - high]
    if "Linf" in name:
        broken.append((offset.abs().max() - 8 / 255) / (8 / 255))
    if "L2" in name:
        broken.append((offset.norm(dim=1).max() - 0.5) / 0.5)
    if "L1" in name:
        broken.append((offset.abs().sum(1).max() - 12) / 12)
    return float(torch.stack([torch.as_tensor(each) for each in broken]).max())


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", NEAR_IMAGES)
def test_every_point_lies_in_the_space_that_was_given(name, dtype):
    space = NEAR_IMAGES[name]
    for which, x in points(space.to(CPU, dtype), dtype).items():
        assert x.dtype == dtype
        assert violation(name, x.float()) <= 1e-6, which
        assert space.contains(x.float()).all(), which


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", NEAR_IMAGES)
def test_points_that_lie_inside_stay(name, dtype):
    space = NEAR_IMAGES[name].to(CPU, dtype)
    for which, x in points(space, dtype).items():
        assert torch.equal(space.project(x), x), which


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("kind", EXACT + DYKSTRA)
def test_so_it_is_for_spaces_of_all_kinds(kind, dtype):
    for seed in range(10):
        case = seeded_case(kind, seed, problems=8)
        space = case.space.to(CPU, dtype)
        projected = space.project(case.x.to(dtype))
        for x in (space.center, projected, space.sample(Streams(torch.arange(8)))):
            assert x.dtype == dtype
            assert case.violation(x.double()) <= 2e-5
        exact = case.space.project(case.x.to(dtype).double())
        torch.testing.assert_close(projected.double(), exact, rtol=0, atol=0.03)
        for i in range(8):
            alone = case.row(i).space.to(CPU, dtype).project(case.x[i : i + 1].to(dtype))
            assert torch.equal(alone, projected[i : i + 1])


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("ball", [LinfBall, L2Ball, L1Ball])
def test_around_centres_of_16_bits_a_point_is_the_nearest_one_rounded_down(ball, dtype):
    random = torch.Generator().manual_seed(2)
    centers = torch.rand(4, 500, generator=random).to(dtype)
    x = (centers.float() + 0.1 * torch.randn(4, 500, generator=random)).to(dtype)
    own, exact = ball(centers, 0.3), ball(centers.double(), 0.3)
    nearest = exact.project(x.double())
    lost = (nearest - own.project(x).double()) * (nearest - centers.double()).sign()
    assert lost.min() >= -1e-6
    assert (lost <= torch.finfo(dtype).eps * nearest.abs() + 1e-6).all()
    torch.testing.assert_close(ball(centers.float(), 0.3).project(x).double(), nearest)


@pytest.mark.parametrize("dtype", HALVES)
def test_going_to_16_bits_and_back_changes_nothing(dtype):
    for space in NEAR_IMAGES.values():
        back = space.to(CPU, dtype).to(CPU, torch.float32)
        x = IMAGES + 0.1
        assert torch.equal(back.project(x), space.project(x))
        assert torch.equal(back.center, space.center)


@pytest.mark.parametrize("dtype", HALVES)
def test_steps_and_sizes_are_in_the_type_of_points(dtype):
    gradient = torch.randn(4, *SHAPE, generator=torch.Generator().manual_seed(3)).to(dtype)
    for space in NEAR_IMAGES.values():
        half = space.to(CPU, dtype)
        for given, exact in (
            (half.radius, space.radius),
            (half.scale, space.scale),
            (half.ascent(gradient), space.ascent(gradient.float())),
        ):
            assert given.dtype == dtype
            torch.testing.assert_close(given.float(), exact, rtol=0.02, atol=1e-4)


@pytest.mark.parametrize("dtype", HALVES)
def test_a_box_of_16_bits_is_within_numbers_that_are_not(dtype):
    low = torch.zeros(2, dtype=dtype)
    x = Box(low, 0.3).project(torch.ones(1, 2, dtype=dtype))
    assert x.dtype == dtype
    assert 0.298 < x.double().max() <= 0.3


@pytest.mark.parametrize("dtype", HALVES)
def test_a_centre_that_is_rounded_out_of_its_bounds_is_at_them(dtype):
    high = 1.0
    while torch.tensor(high, dtype=dtype).item() <= high:
        high -= 0.0003
    centers = torch.full((1, 3), high).to(dtype)
    ball = L2Ball(centers, 0.1, bounds=(0, high))
    assert ball.center.double().max() <= high
    assert ball.contains(ball.center.float()).all()


@pytest.mark.parametrize("dtype", HALVES)
def test_a_ball_smaller_than_16_bits_resolve_is_the_nearest_number_to_its_centre(dtype):
    centers = torch.tensor([[0.7001, -0.3333]])
    for ball in (LinfBall, L2Ball, L1Ball):
        half = ball(centers, 1e-7).to(CPU, dtype)
        assert torch.equal(half.project(torch.ones(1, 2, dtype=dtype)), centers.to(dtype))


@pytest.mark.parametrize("dtype", HALVES)
def test_rounding_towards_a_centre_stops_at_the_last_number_before_the_point(dtype):
    random = torch.Generator().manual_seed(4)
    scale = 10 ** (8 * torch.rand(20_000, generator=random) - 5)
    centers = (scale * torch.randn(20_000, generator=random)).to(dtype)
    x = centers.float() + scale * torch.randn(20_000, generator=random)
    x[:3], centers[:3] = torch.tensor([-1e-9, 1e-9, 0.0]), torch.tensor([-1.0, 1.0, 2.0])
    rounded, outwards = rounded_towards(x, centers), x >= centers.float()
    beyond = torch.nextafter(rounded, torch.where(outwards, torch.inf, -torch.inf).to(dtype))
    assert ((rounded.float() <= x) & (rounded >= centers) & (beyond.float() > x))[outwards].all()
    assert ((rounded.float() >= x) & (rounded <= centers) & (beyond.float() < x))[~outwards].all()


def test_a_start_on_the_boundary_is_rounded_into_the_set():
    ball = fw.LinfBall(torch.rand(2, 64), 0.05, bounds=(0, 1))
    start = ball.project(torch.full((2, 64), 2.0))
    model = torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    problem = fw.Problem(model.bfloat16().eval(), fw.objectives.Output(0), ball)
    found = fw.maximize(problem, solver=fw.solvers.Sign(steps=1), x0=start)
    assert ball.contains(found.x.float()).all()
