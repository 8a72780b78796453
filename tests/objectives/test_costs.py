"""Objectives on what decisions cost, beside loops over the formulas."""

import math

import torch
from objective_cases import CLASSES, COSTS, KINDS, draw

from facetwalk.objectives import DecisionCost, ExpectedCost, MixedCosts

LOGITS = 3 * draw(5, CLASSES, seed=6)
LOGITS[3, COSTS[3].argmin()] = 9


def by_hand(logits, costs):
    """The expected cost, minus the log-probability of what is free, and the cost of deciding."""
    total = sum(math.exp(v) for v in logits)
    expected = sum(math.exp(v) / total * c for v, c in zip(logits, costs, strict=True))
    free = sum(math.exp(v) for v, c in zip(logits, costs, strict=True) if c == 0) / total
    cost = costs[logits.index(max(logits))]
    lead = max(v for v, c in zip(logits, costs, strict=True) if c == 0)
    lead -= max(v for v, c in zip(logits, costs, strict=True) if c > 0)
    return math.log(expected), -math.log(free), cost if cost > 0 else -lead


def test_costs_are_those_of_the_formulas():
    rows = [by_hand(*row) for row in zip(LOGITS.tolist(), COSTS.tolist(), strict=True)]
    expected, away, decided = (torch.tensor(column).double() for column in zip(*rows, strict=True))
    assert {cost > 0 for cost in decided.tolist()} == {True, False}
    torch.testing.assert_close(ExpectedCost(COSTS)(LOGITS), expected)
    torch.testing.assert_close(DecisionCost(COSTS)(LOGITS), decided)
    mixed = torch.where(KINDS % 2 == 0, expected, away)
    torch.testing.assert_close(MixedCosts(COSTS, KINDS % 2)(LOGITS), mixed)


def test_a_decision_that_costs_climbs_the_expected_cost_and_another_one_the_margin():
    logits = LOGITS.clone().requires_grad_()
    value = DecisionCost(COSTS)(logits)
    (slope,) = torch.autograd.grad(value.sum(), logits)
    (expected,) = torch.autograd.grad(ExpectedCost(COSTS)(logits).sum(), logits)
    costs = value > 0
    torch.testing.assert_close(slope[costs], expected[costs])
    margin = torch.zeros_like(slope)
    dear = LOGITS.masked_fill(COSTS == 0, -torch.inf).argmax(1)
    rows = torch.arange(5)
    margin[rows, dear], margin[rows, COSTS.argmin(1)] = 1.0, -1.0
    torch.testing.assert_close(slope[~costs], margin[~costs])


def test_members_climb_the_expected_cost_and_away_from_what_is_free_in_turn():
    turn = torch.arange(5)
    climbed = DecisionCost(COSTS).alternative(LOGITS, turn)(LOGITS)
    torch.testing.assert_close(climbed, MixedCosts(COSTS, turn % 2)(LOGITS))
