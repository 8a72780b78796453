"""What the paper says in numbers about its ablation: table 1 (c)."""

from __future__ import annotations

_ADR_GD = (43.95, 4047.99, 37672.04)

_ROWS = {
    "GD": (40.58, 3873.76, 35807.10),
    "Adam": (41.17, 3914.07, 36531.20),
    "Adagrad": (41.72, 3884.90, 35513.52),
    "Perturbed GD": (40.62, 3903.20, 35964.02),
    "ADR-GD (paper)": _ADR_GD,
    "ADR-GD (released)": _ADR_GD,
    "M1": (43.33, 3914.25, 36609.58),
    "M2": (43.74, 3940.10, 36822.27),
    "M3": (43.90, 3995.62, 36064.52),
    "M4": (43.13, 3882.18, 36036.73),
}
"""Its one row of ADR-GD stands beside both of our presets."""

MEANS = {
    (method, model): mean
    for method, row in _ROWS.items()
    for model, mean in zip("ABC", row, strict=True)
}
"""Mean values by method and model. The paper does not say over how many networks."""
