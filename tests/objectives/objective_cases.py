"""Outputs of five problems, and objectives on them."""

import torch
from scores_by_hand import CLASSIFICATION, classify
from torch import Tensor

from facetwalk.objectives import (
    DLR,
    CrossEntropy,
    Custom,
    DecisionCost,
    Distance,
    ExpectedCost,
    Guided,
    Linear,
    Margin,
    MixedCosts,
    MixedLosses,
    MixedTargetedLosses,
    Output,
)

CLASSES = 6
LABELS = torch.tensor([0, 1, 5, 3, 3])
TARGETS = torch.tensor([2, 0, 4, 5, 1])


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


LOGITS = 3 * draw(5, CLASSES)
LOGITS[0, 0] = 10
LOGITS[1, :2] = 10
IMAGES, REFERENCES = draw(5, 2, 3, seed=1), draw(5, 2, 3, seed=2)
WEIGHTS, OFFSETS = draw(5, 4, CLASSES, seed=3), draw(5, 4, seed=4)
COSTS = draw(5, CLASSES, seed=5).abs()
COSTS[torch.arange(5), LOGITS.argmax(1)] = 0
KINDS = torch.tensor([0, 1, 2, 2, 0])
PER_PROBLEM = {
    **{
        name: (classify(kind, LABELS, TARGETS), LOGITS)
        for name, (kind, _) in CLASSIFICATION.items()
    },
    "Distance": (Distance(REFERENCES), IMAGES),
    "Linear": (Linear(WEIGHTS, OFFSETS), IMAGES),
    "DecisionCost": (DecisionCost(COSTS), LOGITS),
    "ExpectedCost": (ExpectedCost(COSTS), LOGITS),
    "MixedCosts": (MixedCosts(COSTS, KINDS % 2), LOGITS),
    "MixedLosses": (MixedLosses(LABELS, TARGETS, KINDS), LOGITS),
    "MixedTargetedLosses": (MixedTargetedLosses(LABELS, KINDS % 2), LOGITS),
    "Guided": (Guided(Margin(LABELS), CrossEntropy(LABELS)), LOGITS),
    "Guided, one shared": (Guided(Output(1), DLR(LABELS)), LOGITS),
    "Guided, mixed": (Guided(DLR(LABELS), MixedLosses(LABELS, TARGETS, KINDS)), LOGITS),
}
SHARED = {
    "shared Distance": (Distance(REFERENCES[:1]), IMAGES),
    "shared Linear": (Linear(WEIGHTS[:1], OFFSETS[:1]), IMAGES),
    "Output": (Output(2), IMAGES),
    "Custom": (Custom(lambda y: y.flatten(1).amax(1)), IMAGES),
    "shared Guided": (Guided(Output(2), Output(0)), IMAGES),
}
