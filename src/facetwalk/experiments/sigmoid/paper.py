"""What the paper says in numbers about the sigmoid's sharpness: the table in appendix A."""

from __future__ import annotations

GD = {"A": 40.58, "C": 35807.10}
"""Mean values of GD by model; Model B is not in the table."""

ADR_GD = {
    (20, "A"): 25.84,
    (200, "A"): 43.75,
    (2000, "A"): 43.95,
    (20000, "A"): 44.12,
    (20, "C"): 19942.94,
    (200, "C"): 36219.05,
    (2000, "C"): 37672.04,
    (20000, "C"): 37054.31,
}
"""Mean values of ADR-GD by sharpness and model."""
