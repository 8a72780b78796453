"""A small classifier under attack, and a quick solver."""

import torch
from torch import nn

import facetwalk as fw
from facetwalk.solvers import Sign
from facetwalk.zoo import random_network

QUICK = Sign(steps=20)


def classifier(seed=0) -> nn.Sequential:
    return random_network((6, 16, 12, 3), seed).double()


def batch(count=7):
    generator = torch.Generator().manual_seed(2)
    x = torch.rand(count, 6, generator=generator, dtype=torch.float64)
    labels = torch.arange(count) % 3
    space = fw.LinfBall(x, eps=0.3, bounds=(0, 1))
    return fw.Problem(classifier(), fw.objectives.Margin(labels), space)
