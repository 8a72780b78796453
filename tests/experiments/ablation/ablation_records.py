"""Records of methods whose values are known."""

from typing import Any

PROVEN = "A, proven"


def record(method: str, values: list[list[float]], **changes: Any) -> dict[str, Any]:
    """What the seeds of one method found on the networks of Model A."""
    return {
        "model": "A",
        "method": method,
        "part": "equal",
        "budget": 3000,
        "made_from": "0",
        "values": values,
        "gradients": 3000.0,
        "probes": 0.0,
        **changes,
    }


def proven(method: str, values: list[list[float]], **changes: Any) -> dict[str, Any]:
    """The same on two networks whose optima are 10 and 30."""
    known = {"names": ["one", "two"], "optima": [10.0, 30.0], "bounds": [10.01, 30.01]}
    return record(method, values, **{"model": PROVEN, **known, **changes})
