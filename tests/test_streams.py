from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, kstest

from facetwalk.streams import Streams

DRAWS = {
    "uniform": lambda streams, shape: streams.uniform(shape),
    "uniform float64": lambda streams, shape: streams.uniform(shape, torch.float64),
    "normal": lambda streams, shape: streams.normal(shape),
    "signs": lambda streams, shape: streams.signs(shape),
}
every_draw = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())


def streams(count: int, seed: int = 0) -> Streams:
    return Streams.from_seeds(torch.full((count,), seed), torch.arange(count))


def many_numbers(layout: str) -> Streams:
    """20 000 rows, or one, whose numbers a statistical test should not tell from chance."""
    if layout == "one long stream":
        return streams(1)
    if layout == "starts":
        return streams(20_000)
    if layout == "seeds":
        return Streams.from_seeds(torch.arange(20_000), torch.zeros(20_000))
    return Streams(torch.cat([streams(1).fold(step).keys for step in range(5000)]))


LAYOUTS = ["one long stream", "starts", "seeds", "folds"]


@every_draw
@pytest.mark.parametrize("shape", [(7,), (2, 3, 4)])
def test_a_row_draws_alone_what_it_draws_in_a_batch(draw, shape):
    seeds, starts = torch.tensor([7, -8, 7, 2**40]), torch.tensor([0, 3, 1, 9])
    together = draw(Streams.from_seeds(seeds, starts), shape)
    assert together.shape == (4, *shape)
    for i in range(4):
        alone = draw(Streams.from_seeds(seeds[i : i + 1], starts[i : i + 1]), shape)
        assert torch.equal(alone[0], together[i])


def hash32(key: int, position: int) -> int:
    mask = 2**32 - 1
    bits = (position * 0x9E3779B9 + key) & mask
    bits = ((bits ^ (bits >> 16)) * 0x7FEB352D) & mask
    bits ^= (key >> 32) & mask
    bits = ((bits ^ (bits >> 15)) * 0x846CA68B) & mask
    return bits ^ (bits >> 16)


@pytest.mark.parametrize("key", [0, 1, -1, 2**63 - 1, -(2**63), 123456789])
def test_uniform_numbers_are_the_top_bits_of_a_hash_in_plain_python(key):
    got = Streams(torch.tensor([key])).uniform((5,), torch.float64)[0].tolist()
    assert got == [((hash32(key, i) >> 9) + 0.5) / 2**23 for i in range(5)]


def test_streams_of_different_seeds_and_starts_are_different():
    seeds, starts = torch.meshgrid(torch.arange(-50, 50), torch.arange(100), indexing="ij")
    keys = Streams.from_seeds(seeds.flatten(), starts.flatten()).keys
    assert len(keys.unique()) == 10_000


def test_making_streams_leaves_the_seeds_alone():
    seeds, starts = torch.tensor([5, 6]), torch.tensor([1, 2])
    Streams.from_seeds(seeds, starts).fold(3).uniform((4,))
    assert (seeds.tolist(), starts.tolist()) == ([5, 6], [1, 2])


@every_draw
def test_drawing_twice_gives_the_same_numbers(draw):
    both = streams(3)
    assert torch.equal(draw(both, (50,)), draw(both, (50,)))


@every_draw
def test_fold_changes_the_numbers_of_every_row(draw):
    both = streams(3)
    drawn = [draw(s, (50,)) for s in (both, both.fold(0), both.fold(1), both.fold(0, 0))]
    for i in range(4):
        for j in range(i):
            assert (drawn[i] != drawn[j]).any(1).all()


def test_the_order_of_folded_numbers_matters():
    base = streams(3)
    assert (base.fold(1, 2).keys != base.fold(2, 1).keys).all()


def test_folding_one_after_the_other_gives_other_streams_than_folding_at_once():
    base = streams(3)
    assert (base.fold(1, 2).keys != base.fold(1).fold(2).keys).all()


def test_folding_does_not_collide():
    keys = torch.cat([streams(20).fold(i, j).keys for i in range(20) for j in range(20)])
    assert len(keys.unique()) == 8000


def test_a_longer_draw_continues_a_shorter_one():
    both = streams(2)
    assert torch.equal(both.uniform((9,))[:, :4], both.uniform((4,)))
    assert torch.equal(both.uniform((3, 3)).flatten(1), both.uniform((9,)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_uniform_numbers_are_uniform(layout):
    source = many_numbers(layout)
    numbers = source.uniform((20_000 // len(source.keys),), torch.float64).flatten().numpy()
    error = 5 / np.sqrt(len(numbers))
    assert numbers.mean() == pytest.approx(1 / 2, abs=error * np.sqrt(1 / 12))
    assert numbers.var() == pytest.approx(1 / 12, abs=error * np.sqrt(1 / 180))
    assert kstest(numbers, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("layout", LAYOUTS)
def test_normal_numbers_are_normal(layout):
    source = many_numbers(layout)
    numbers = source.normal((20_000 // len(source.keys),)).double().flatten().numpy()
    error = 5 / np.sqrt(len(numbers))
    assert numbers.mean() == pytest.approx(0, abs=error)
    assert numbers.var() == pytest.approx(1, abs=error * np.sqrt(2))
    assert kstest(numbers, "norm").pvalue > 1e-3


@pytest.mark.parametrize("layout", LAYOUTS)
def test_signs_are_fair(layout):
    source = many_numbers(layout)
    signs = source.signs((20_000 // len(source.keys),)).flatten()
    assert signs.unique().tolist() == [-1.0, 1.0]
    assert binomtest(int((signs > 0).sum()), len(signs)).pvalue > 1e-3


@pytest.mark.parametrize(
    "source",
    [streams(40), Streams(torch.cat([streams(1).fold(step).keys for step in range(40)]))],
    ids=["starts", "folds"],
)
def test_rows_are_uncorrelated(source):
    numbers = source.uniform((5000,), torch.float64).numpy()
    correlation = np.corrcoef(numbers) - np.eye(40)
    assert np.abs(correlation).max() < 5 / np.sqrt(5000)


@pytest.mark.parametrize("lag", [1, 2, 64])
def test_numbers_of_a_row_are_uncorrelated(lag):
    numbers = streams(1).uniform((20_000,), torch.float64)[0].numpy()
    assert abs(np.corrcoef(numbers[:-lag], numbers[lag:])[0, 1]) < 5 / np.sqrt(20_000)


@every_draw
def test_the_global_generator_is_neither_used_nor_moved(draw):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = draw(streams(2).fold(1), (10,))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    assert torch.equal(draw(streams(2).fold(1), (10,)), first)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_uniform_numbers_lie_strictly_between_0_and_1(dtype):
    numbers = streams(10).uniform((20_000,), dtype)
    assert numbers.dtype == dtype
    assert (numbers > 0).all()
    assert (numbers < 1).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_normal_numbers_and_signs_come_in_the_dtype_asked_for(dtype):
    normal, signs = streams(3).normal((500,), dtype), streams(3).signs((500,), dtype)
    assert normal.dtype == signs.dtype == dtype
    torch.testing.assert_close(
        normal.double(), streams(3).normal((500,)).double(), rtol=1e-3, atol=1e-4
    )
    assert torch.equal(signs.float(), streams(3).signs((500,)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_every_dtype_draws_the_same_uniform_numbers_up_to_rounding(dtype):
    numbers = streams(3).uniform((500,), dtype).double()
    torch.testing.assert_close(
        numbers, streams(3).uniform((500,)).double(), rtol=0, atol=torch.finfo(torch.float16).eps
    )


def test_normal_numbers_are_finite_at_the_ends_of_the_range():
    numbers = streams(50).normal((200_000,))
    assert torch.isfinite(numbers).all()
    assert 4 < numbers.max() < 6
    assert -6 < numbers.min() < -4
