"""The toy network against its graph written out by hand."""

from itertools import product

import pytest
import torch

import facetwalk as fw
from facetwalk.experiments.toy.network import (
    PEAK,
    SEGMENTS,
    START,
    TARGET,
    Segment,
    ToyNetwork,
    extension,
    line,
)
from facetwalk.sites import pattern

BY_HAND = {
    "f1": lambda x: 1 + 0.2 * x,
    "f2": lambda x: 1 + x,
    "f3": lambda x: 0.2 - x,
    "f4": lambda x: 0.2 + 2.2 * x,
}


@pytest.mark.parametrize("segment", SEGMENTS, ids=lambda segment: segment.name)
def test_a_segment_is_the_line_written_by_hand(segment):
    formula = BY_HAND[segment.name]
    x = torch.linspace(segment.low, segment.high, 51, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(ToyNetwork()(x[:, None])[:, 0], formula(x))
    for anywhere in (-1.0, START, 0.3, 1.0):
        assert extension(segment, anywhere) == pytest.approx(formula(anywhere), abs=1e-12)


@pytest.mark.parametrize("segment", SEGMENTS, ids=lambda segment: segment.name)
def test_a_segment_is_one_pattern(segment):
    x = torch.linspace(segment.low + 1e-6, segment.high - 1e-6, 21, dtype=torch.float64)
    u, v = pattern(ToyNetwork(), x[:, None]).live
    assert set(zip(u[:, 0].long().tolist(), v[:, 0].long().tolist(), strict=True)) == {
        segment.gates
    }


def test_segments_cover_the_line_and_all_patterns():
    assert [s.low for s in SEGMENTS[1:]] == [s.high for s in SEGMENTS[:-1]]
    assert (SEGMENTS[0].low, SEGMENTS[-1].high) == (-1, 1)
    assert {s.gates for s in SEGMENTS} == set(product((0, 1), repeat=2))


def test_the_captions_inequality_holds_at_the_start():
    at = {name: formula(START) for name, formula in BY_HAND.items()}
    assert at["f1"] > at["f3"] > at["f4"]
    assert SEGMENTS[0].low < START < SEGMENTS[0].high
    every = [Segment("", 0, 0, gates) for gates in product((0, 1), repeat=2)]
    best = max(every, key=lambda each: extension(each, START))
    assert best.gates == TARGET.gates


def test_the_peak_is_a_local_maximum_below_the_proven_one():
    problem = fw.Problem(ToyNetwork(), fw.objectives.Output(0), line())
    peak = torch.tensor([PEAK], dtype=torch.float64)
    assert fw.exact.local_certificate(problem, peak, 0.5).holds
    proof = fw.exact.maximize(
        ToyNetwork(), line(), fw.objectives.Output(0), gap=1e-6, engine="boxes"
    )
    assert proof.proven
    assert (proof.x.item(), proof.value) == pytest.approx((1.0, 1.2), abs=1e-6)
