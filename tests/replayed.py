"""What `test_replay.py`, with an imitation, and `test_cuda.py`, on a GPU, both replay."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import facetwalk as fw
from facetwalk.objectives import CrossEntropy
from facetwalk.solvers import (
    ActivationDescent,
    Adagrad,
    Adam,
    AdrGd,
    Auto,
    Recombination,
    RmsProp,
    Sign,
)
from facetwalk.zoo import random_network

SOLVERS = {
    "sign": Sign(steps=30),
    "sign, constant": Sign(steps=30, decay="constant", step_size=0.3),
    "sign, momentum": Sign(steps=30, momentum=0.8),
    "activation descent": ActivationDescent(steps=40, refresh=7),
    "activation descent, exact": ActivationDescent(steps=40, normals="exact", momentum=0.5),
    "adam": Adam(steps=30),
    "adam, constant": Adam(steps=30, decay="constant", mean_decay=0.5, square_decay=0.9),
    "adagrad": Adagrad(steps=30),
    "rmsprop": RmsProp(steps=30, decay="cosine"),
    "ADR-GD": AdrGd(steps=40, noise_period=6, gate_tolerance=1.0, normals_every=7),
    "ADR-GD, probed": AdrGd(steps=40, normals="probed", normals_every=5),
    "ADR-GD, released": replace(AdrGd.preset("released"), steps=40),
    "ADR-GD, released attack": replace(
        AdrGd.preset("released-attack"), steps=40, noise_period=5, gate_tolerance=10.0
    ),
    "recombination": Recombination(
        population=3,
        generations=4,
        first=ActivationDescent(steps=15),
        inner=ActivationDescent(steps=12, step_size=0.5, decay="constant"),
    ),
    "recombination of signs": Recombination(
        population=2,
        generations=4,
        first=Sign(steps=12, decay="constant"),
        inner=Sign(steps=12, decay="constant"),
        mixed=False,
    ),
    "one solver for all generations": Recombination(
        population=3,
        generations=4,
        first=Sign(steps=12, decay="constant", step_size=0.7),
        inner=Sign(steps=12, decay="constant", step_size=0.7),
    ),
    "solvers that take turns": Recombination(
        population=2,
        generations=3,
        first=Sign(steps=12, step_size=0.5, decay="constant"),
        inner=Sign(steps=12, step_size=0.2, decay="constant", momentum=0.8),
        polish=Sign(steps=11, step_size=0.1),
    ),
    "polished": Recombination(
        population=2,
        generations=3,
        first=Sign(steps=12),
        inner=ActivationDescent(steps=12),
        polish=Adam(steps=10),
    ),
    "polished and finished": Recombination(
        population=3,
        generations=3,
        epochs=2,
        first=ActivationDescent(steps=12),
        inner=ActivationDescent(steps=12, step_size=0.5),
        polish=Adam(steps=12, step_size=0.2),
        finish=Adam(steps=10, step_size=0.02, decay="cosine"),
    ),
    "adaptive generations": Recombination(
        population=2,
        generations=3,
        first=RmsProp(steps=12),
        inner=Adagrad(steps=12),
        polish=RmsProp(steps=12, step_size=0.01),
        finish=RmsProp(steps=12, step_size=0.01, square_decay=0.5),
    ),
    "auto": Auto(evaluations=200),
}
every_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


def problem(kind: str = "linf", count: int = 6, device: str = "cpu") -> fw.Problem:
    net = random_network((8, 20, 15, 4), 1).double().to(device)
    generator = torch.Generator().manual_seed(4)
    centers = torch.rand(count, 8, generator=generator, dtype=torch.float64)
    space = {
        "linf": fw.LinfBall(centers, eps=0.3, bounds=(0, 1)),
        "l2": fw.L2Ball(centers, eps=0.5, bounds=(0, 1)),
        "l1": fw.L1Ball(centers, eps=0.8),
        "box": fw.Box(centers - 1, centers + 0.5, shape=(8,)),
    }[kind]
    return fw.Problem(net, CrossEntropy(torch.arange(count) % 4), space)


def asks_the_host(outputs: torch.Tensor) -> torch.Tensor:
    return outputs[:, 0] * (1.0 if outputs.sum().item() > -1e9 else 2.0)


def assert_same(plain: fw.Result, replayed: fw.Result) -> None:
    close = {"rtol": 1e-8, "atol": 1e-9}
    for name in ("x", "value", "initial_value"):
        torch.testing.assert_close(getattr(replayed, name), getattr(plain, name), **close)
    torch.testing.assert_close(replayed.trace.best, plain.trace.best, **close)
    assert replayed.status == plain.status
    for name in ("forward", "backward", "probe"):
        counts = (getattr(result.evaluations, name) for result in (replayed, plain))
        assert torch.equal(*counts), name
