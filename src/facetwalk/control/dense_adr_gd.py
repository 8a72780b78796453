"""ADR-GD on a fully connected critic: the steps of `AdrGd`, in numpy and without autograd.

A critic is so small that a step costs what it takes to start its operations. With the layers at
hand Algorithm 1 is a few dozen of them, and nothing has to be found or recorded first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from facetwalk import normals
from facetwalk.control.critics import ActionValue
from facetwalk.solvers import AdrGd
from facetwalk.solvers.adr_gd_settings import EXPERIMENTS
from facetwalk.streams import Streams

_SATURATED = 80.0
"""Where a sigmoid's argument is cut off: its slope there is nothing, and its exponential finite."""
_NO_DIRECTION = 1e-12
_PROBES = 16
"""Normals are measured as often as keeps the cost at so many directions a step, as in `AdrGd`."""


def serves(critic: ActionValue, solver: AdrGd) -> bool:
    """Whether `run_dense` does what `maximize` would: for one critic `Linear, ReLU, ..., Linear`
    on a CPU, and the paper's Algorithm 1 with any of its parameters."""
    if len(critic.networks) > 1 or critic.features.is_cuda:
        return False
    parts = list(critic.networks[0].children())
    kinds = [type(part) for part in parts]
    if len(kinds) < 2 or kinds != [nn.Linear, nn.ReLU] * (len(kinds) // 2) + [nn.Linear]:
        return False
    linear = [part for part in parts if isinstance(part, nn.Linear)]
    actions = linear[0].in_features - critic.features.shape[1]
    if actions > normals.EXACT_UP_TO or any(layer.bias is None for layer in linear):
        return False
    of_the_paper = next(iter(EXPERIMENTS.values()))
    return all(
        getattr(solver, field.name) == field.default
        for field in fields(solver)
        if field.name not in of_the_paper
    )


def run_dense(
    critic: ActionValue, start: Tensor, solver: AdrGd, low: Tensor, high: Tensor, seed: int
) -> Tensor:
    """The best actions `(N, actions)` between `low` and `high` on the way from `start`."""
    layers = _Layers.of(critic)
    numbers = torch.arange(len(start))
    random = Streams.from_seeds(seed + numbers, torch.zeros_like(numbers))
    bounds = low.numpy(), high.numpy()
    x = start.numpy()
    h, _ = layers.pre_activations(x)
    eta = (h > 0).astype(x.dtype)
    beta = np.full((len(x), 1), solver.penalty_weight, x.dtype)
    last_noise = np.ones((len(x), len(layers.widths)))
    norms = np.zeros_like(eta)
    best_x, best = x, np.full(len(x), -np.inf, x.dtype)
    for t in range(solver.steps):
        gate = _sigmoid(solver.sharpness * (eta - 0.5))
        if t % -(-x.shape[1] // _PROBES) == 0:
            norms = layers.normal_norms(gate).clip(solver.normal_floor)
        value, of_x, of_eta, penalty = _gradients(layers, x, eta, beta, gate, norms, solver)
        best_x = np.where((value > best)[:, None], x, best_x)
        best = np.maximum(value, best)

        lengths = np.sqrt(layers.sums(of_eta * of_eta))
        noisy = (last_noise <= t + 1 - solver.noise_period) & (lengths <= solver.gate_tolerance)
        move = of_eta / layers.spread(np.where(lengths > _NO_DIRECTION, lengths, 1))
        if noisy.any():
            drawn = random.fold(2, t // solver.noise_period).normal(eta.shape[1:], start.dtype)
            move += solver.noise_scale * drawn.numpy() * layers.spread(noisy)
            last_noise[noisy] = t + 1
        eta = (eta - solver.gate_step * move).clip(0, 1).astype(x.dtype)
        length = np.sqrt(np.square(of_x, dtype=np.float64).sum(1, keepdims=True))
        x = (x - solver.step_size * (of_x / length.clip(np.finfo(x.dtype).tiny))).astype(x.dtype)
        x = x.clip(*bounds)
        beta_move = np.where(
            penalty > solver.weight_tolerance, solver.weight_step * penalty, -solver.weight_decay
        )
        beta = (beta + beta_move).clip(0).astype(x.dtype)
    last = layers.values(layers.pre_activations(x)[1][-1])
    return torch.from_numpy(np.where((last > best)[:, None], x, best_x))


def _gradients(
    layers: _Layers,
    x: np.ndarray,
    eta: np.ndarray,
    beta: np.ndarray,
    gate: np.ndarray,
    norms: np.ndarray,
    solver: AdrGd,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Values `(N,)`, and the gradients of L* on actions, gates and the penalty's weight."""
    rows, gates = len(x), layers.parts(gate)
    h, plain = layers.pre_activations(x)
    gated = [plain[0]]
    for weight, bias, open_ in zip(layers.weights, layers.biases, gates, strict=False):
        gated.append((gated[-1] * open_) @ weight + bias)
    pull = (0.5 - eta) / norms
    pull *= h * pull > 0
    pushes = layers.parts(beta * pull)
    slopes = [np.broadcast_to(-layers.last, gated[-1].shape)]
    both = np.concatenate([pushes[-1], slopes[0] * gates[-1]])
    for i in range(len(layers.weights) - 1, -1, -1):
        of_both = both @ layers.weights[i].T
        slopes.insert(0, of_both[rows:])
        of_plain = of_both[:rows] * (plain[i] > 0) + pushes[i]
        both = np.concatenate([of_plain, slopes[0] * gates[i]])
    of_both = both @ layers.first.T
    cost = h * pull
    of_eta = np.concatenate(gated, 1) * np.concatenate(slopes, 1)
    of_eta *= solver.sharpness * gate * (1 - gate)
    of_eta -= beta * (h / norms) * (cost > 0)
    penalty = cost.sum(1, keepdims=True)
    return layers.values(plain[-1]), of_both[:rows] + of_both[rows:], of_eta, penalty


@dataclass(frozen=True)
class _Layers:
    """The layers of a critic whose states are fixed; all neurons side by side are one row."""

    first: np.ndarray
    """Of the actions, `(actions, neurons)`."""
    offset: np.ndarray
    """What the states add to the first pre-activations, `(N, neurons)`."""
    weights: Sequence[np.ndarray]
    """Between hidden layers, `(inputs, outputs)` each."""
    biases: Sequence[np.ndarray]
    last: np.ndarray
    """`(neurons,)`."""
    last_bias: np.ndarray
    ends: np.ndarray
    """The first neuron of each hidden layer, and the number of all."""

    @classmethod
    def of(cls, critic: ActionValue) -> Self:
        linear = [part for part in critic.networks[0].children() if isinstance(part, nn.Linear)]
        weights = [layer.weight.detach().numpy().T for layer in linear]
        biases = [layer.bias.detach().numpy() for layer in linear]
        features = critic.features.numpy()
        size = features.shape[1]
        return cls(
            first=np.ascontiguousarray(weights[0][size:]),
            offset=features @ weights[0][:size] + biases[0],
            weights=weights[1:-1],
            biases=biases[1:-1],
            last=weights[-1][:, 0],
            last_bias=biases[-1],
            ends=np.cumsum([0, *(len(bias) for bias in biases[:-1])]),
        )

    @property
    def widths(self) -> np.ndarray:
        return np.diff(self.ends)

    def parts(self, joined: np.ndarray) -> list[np.ndarray]:
        """Views of all neurons, one a layer."""
        return [joined[:, a:b] for a, b in zip(self.ends[:-1], self.ends[1:], strict=True)]

    def sums(self, joined: np.ndarray) -> np.ndarray:
        """Over the neurons of each layer, `(N, layers)`."""
        return np.add.reduceat(joined, self.ends[:-1], axis=1)

    def spread(self, by_layer: np.ndarray) -> np.ndarray:
        """A number for each layer, `(N, layers)`, as one for each neuron."""
        return np.repeat(by_layer, self.widths, axis=1)

    def pre_activations(self, x: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Of the plain network: of all neurons side by side, and layer by layer."""
        plain = [x @ self.first + self.offset]
        for weight, bias in zip(self.weights, self.biases, strict=True):
            plain.append(np.maximum(plain[-1], 0) @ weight + bias)
        return np.concatenate(plain, 1), plain

    def values(self, before: np.ndarray) -> np.ndarray:
        """The output `(N,)` for the last pre-activations."""
        return np.maximum(before, 0) @ self.last + self.last_bias

    def normal_norms(self, gate: np.ndarray) -> np.ndarray:
        """Of the surrogate's normals, `(N, neurons)`."""
        moves = np.broadcast_to(self.first, (len(gate), *self.first.shape))
        norms = [np.sqrt(np.square(moves).sum(1))]
        for weight, open_ in zip(self.weights, self.parts(gate), strict=False):
            moves = (moves * open_[:, None]) @ weight
            norms.append(np.sqrt(np.square(moves).sum(1)))
        return np.concatenate(norms, 1)


def _sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z.clip(-_SATURATED, _SATURATED)))
