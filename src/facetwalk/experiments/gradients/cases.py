"""What is climbed: random networks, and classifiers of images, all in float64."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from facetwalk.experiments.adversarial.data_sets import DATA_SETS, STAND_IN
from facetwalk.experiments.adversarial.victims import Victim, find_victims
from facetwalk.experiments.random_networks import Outputs, random_networks
from facetwalk.problem import Problem
from facetwalk.sites import discover


@dataclass(frozen=True)
class Case:
    """Problems of one kind: each a random network, or an image in front of one classifier."""

    name: str
    problem: Problem
    made_from: str

    @property
    def neurons(self) -> int:
        return discover(self.problem.model, self.problem.space.center).neurons


def random_case(model: str, count: int, device: str) -> Case:
    """Random networks of a model of the paper, each output to be maximised on [-1, 1]^n.

    >>> random_case("A", 2, "cpu").problem.count
    2
    """
    networks: list[nn.Sequential] = [net.double() for net in random_networks(model, count)]
    outputs = Outputs.of(networks, device=device)
    space = outputs.problem.space.to(torch.device(device), torch.float64)
    problem = Problem(outputs.problem.model, outputs.problem.objective, space)
    return Case(f"Model {model}", problem, outputs.made_from)


def image_cases(
    images: Path | None, nets: Path | None, count: int, device: str
) -> tuple[list[Case], list[str]]:
    """MNIST's classifiers that are there, and a sentence for each that is not.

    The cross-entropy of the label is maximised in the ball of the paper's section 6.1, pixels in
    [0, 1].
    """
    victims, missing = find_victims(DATA_SETS["mnist"], images, nets, count, device)
    return [_of_victim(victim) for victim in victims], missing


def stand_in(count: int, device: str) -> tuple[list[Case], list[str]]:
    """The classifier of digits that comes with the package, or why it is left out."""
    victims, missing = find_victims(STAND_IN, None, None, count, device)
    return [_of_victim(victim) for victim in victims], missing


def _of_victim(victim: Victim) -> Case:
    images = victim.images
    space = victim.space.to(images.device, torch.float64)
    problem = Problem(victim.model.double(), victim.goal(targeted=False).loss, space)
    return Case(victim.network.name, problem, victim.made_from)
