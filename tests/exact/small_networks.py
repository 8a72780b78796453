"""Networks that are small enough to know everything about, and an oracle that does."""

from itertools import product

import numpy as np
import torch
from scipy.optimize import linprog
from torch import nn

from facetwalk.zoo import uniform_network


def brute_force(net: nn.Sequential, low: float, high: float, goal: np.ndarray) -> float:
    """The maximum of `goal @ net(x)` over a box: a linear program for each activation pattern."""
    layers = [layer for layer in net if isinstance(layer, nn.Linear)]
    weights = [layer.weight.detach().double().numpy() for layer in layers]
    biases = [layer.bias.detach().double().numpy() for layer in layers]
    inputs = weights[0].shape[1]
    best = -np.inf
    for pattern in product([0, 1], repeat=sum(map(len, biases[:-1]))):
        slope, offset, rows, sides, used = np.eye(inputs), np.zeros(inputs), [], [], 0
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            slope, offset = weight @ slope, weight @ offset + bias
            on = np.array(pattern[used : used + len(bias)])
            used += len(bias)
            sign = 1 - 2 * on
            rows.append(sign[:, None] * slope)
            sides.append(-sign * offset)
            slope, offset = on[:, None] * slope, on * offset
        slope, offset = weights[-1] @ slope, weights[-1] @ offset + biases[-1]
        found = linprog(
            -(goal @ slope),
            A_ub=np.concatenate(rows),
            b_ub=np.concatenate(sides),
            bounds=[(low, high)] * inputs,
        )
        if found.status == 0:
            best = max(best, -found.fun + goal @ offset)
    return best


def network(*sizes: int, seed: int = 0) -> nn.Sequential:
    return uniform_network(sizes, seed)


class Residual(nn.Module):
    """A convolution, batch norm, a shortcut with in-place ReLUs, average pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 3, 3, padding=1)
        self.norm = nn.BatchNorm2d(3)
        self.second = nn.Conv2d(3, 3, 3, padding=1)
        self.pool = nn.AvgPool2d(2)
        self.out = nn.Linear(12, 3)

    def forward(self, x):
        x = torch.relu_(self.norm(self.first((x - 0.3) / 0.5)))
        x = torch.relu(x + self.second(x))
        return self.out(self.pool(x).flatten(1))


def residual() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = Residual()
        net.norm.running_mean.normal_()
        net.norm.running_var.uniform_(0.5, 2)
        return net.eval()
