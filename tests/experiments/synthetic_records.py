"""Records of attacks whose outcome is known."""

from typing import Any


def attack(name: str, success: float, **changes: Any) -> dict[str, Any]:
    """What one seed of an attack on `mnist-fgsm` found."""
    return {
        "kind": "attack",
        "data": "mnist",
        "model": "mnist-fgsm",
        "attack": name,
        "targeted": False,
        "seed": 0,
        "made_from": "0",
        "eps": 0.2,
        "robust": True,
        "images": 100,
        "reached_before": 0.01,
        "success": success,
        "objective": 10 * success,
        "margin": 0.0,
        "gradients": 500.0,
        "forwards": 501.0,
        "probes": 0.0,
        "seconds": 1.0,
        "device": "cpu",
        **changes,
    }


def cost(batch: int, paper: float, released: float, **changes: Any) -> dict[str, Any]:
    """What a step of ADR-GD costs."""
    return {
        "kind": "cost",
        "data": "mnist",
        "model": "mnist-fgsm",
        "batch": batch,
        "made_from": "0",
        "inputs": 784,
        "variables": 9180,
        "device": "CPU, 1 thread",
        "ratios": {"ADR-GD (paper)": paper, "ADR-GD (released)": released},
        **changes,
    }
