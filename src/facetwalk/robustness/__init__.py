"""Classifiers under attack: adversarial examples, and how robust a classifier is.

attack(model, images, labels, eps=8/255)     adversarial examples for these images
evaluate(model, images, labels, eps=8/255)   accuracy, robust accuracy, a record of each image
check(model, images, labels)                 what would make such numbers wrong
"""

from facetwalk.robustness.attacking import Attack, attack
from facetwalk.robustness.checks import Finding, RobustnessWarning, check
from facetwalk.robustness.evaluation import evaluate
from facetwalk.robustness.report import Report, Sample

__all__ = [
    "Attack",
    "Finding",
    "Report",
    "RobustnessWarning",
    "Sample",
    "attack",
    "check",
    "evaluate",
]
