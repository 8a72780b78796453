"""ADR-GD's settings as data: the presets, and the five parameter tables of the appendix."""

from __future__ import annotations

from typing import Any

_RELEASED: dict[str, Any] = {
    "penalty_reduction": "max",
    "gate_margin": 0.01,
    "gate_bounds": (0.3, 0.7),
    "weight_bounds": (0.2, 10.0),
    "normalize_gradients": "above-one",
}

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "released": {**_RELEASED, "output_scale": "normal"},
    "released-attack": {
        **_RELEASED,
        "output_scale": "logits",
        "gate_reset_every": 16,
        "own_gate_in_normal": True,
        "normal_floor": 1.0,
        "accumulate_weight_gradient": True,
        "record_only_noise_steps": True,
    },
}
"""Fields in which the authors' code differs from the paper: once as it optimises random networks,
once as it attacks classifiers."""

_COLUMNS = (
    "steps",
    "penalty_weight",
    "step_size",
    "gate_step",
    "weight_step",
    "noise_scale",
    "gate_tolerance",
    "weight_tolerance",
    "noise_period",
)

_TABLES: dict[str, tuple[float, ...]] = {
    "mnist-untargeted": (250, 2.0, 1.0, 0.25, 0.001, 0.1, 0.0001, 0.1, 5),
    "cifar10-untargeted": (500, 0.5, 0.1, 0.5, 0.001, 0.2, 0.001, 0.1, 5),
    "imagenet-untargeted": (500, 0.5, 0.1, 0.5, 0.001, 0.1, 0.01, 0.05, 5),
    "mnist-targeted": (250, 2.0, 0.5, 0.1, 0.001, 0.01, 0.0001, 0.1, 5),
    "cifar10-targeted": (500, 1.0, 0.1, 0.5, 0.001, 0.1, 0.001, 0.05, 5),
    "imagenet-targeted": (500, 0.5, 0.1, 0.5, 0.0001, 0.01, 0.01, 0.05, 5),
    "ddpg": (100, 0.5, 0.2, 0.1, 0.01, 0.05, 0.001, 0.1, 10),
    "td3": (100, 0.5, 0.2, 0.1, 0.01, 0.05, 0.001, 0.1, 10),
    "fruitbot": (100, 0.5, 0.4, 0.25, 0.001, 0.01, 0.0001, 0.1, 10),
    "coinrun": (100, 0.5, 0.4, 0.25, 0.001, 0.01, 0.0001, 0.1, 10),
    "model-a": (3000, 1.0, 0.5, 1.0, 0.01, 0.1, 0.0001, 0.001, 25),
    "model-b": (3000, 1.0, 0.5, 1.0, 0.005, 0.2, 0.001, 0.01, 25),
    "model-c": (3000, 1.0, 0.5, 1.25, 0.0001, 0.35, 0.01, 0.01, 25),
}

_ATTACKS = ("-untargeted", "-targeted")

EXPERIMENTS: dict[str, dict[str, Any]] = {
    name: dict(zip(_COLUMNS, row, strict=True))
    | {"weight_decay": 0.001 if name.endswith(_ATTACKS) else 0.01}
    for name, row in _TABLES.items()
}
"""The appendix's tables (a) to (e), one entry a column. The paper does not give gamma; the
released code sets it to 0.001 in its attacks and to 0.01 elsewhere."""
