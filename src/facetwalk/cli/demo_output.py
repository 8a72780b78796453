"""The demo's result as a table and as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from facetwalk.cli.output import say, say_wrapped, show_table
from facetwalk.cli.results import write_arrays, write_json
from facetwalk.experiments.digits_demo import EPS, DemoResult
from facetwalk.experiments.digits_figure import draw_digits
from facetwalk.experiments.drawing import save_figure
from facetwalk.solvers import Sign

_COLUMNS = {
    "gradients": "{:.0f}",
    "probes": "{:,.0f}",
    "success": "{:.1%}",
    "margin": "{:.3f}",
    "time": "{:.1f}",
}
_LARGEST_IS_BEST = ("success", "margin")


def rows_of(result: DemoResult) -> list[dict[str, Any]]:
    """The table as numbers: means over images, and time relative to Sign's."""
    (sign,) = (attack for attack in result.attacks if type(attack.ran) is Sign)
    return [
        {
            "method": attack.method.name,
            "gradients": attack.gradients.double().mean().item(),
            "probes": attack.probes.double().mean().item(),
            "success": attack.fooled.double().mean().item(),
            "margin": attack.margin.mean().item(),
            "time": attack.seconds / sign.seconds,
        }
        for attack in result.attacks
    ]


def show_demo(result: DemoResult) -> None:
    """Print the table and the verdict; the best of each column is bold."""
    rows = rows_of(result)
    best = {name: max(row[name] for row in rows) for name in _LARGEST_IS_BEST}
    say(
        f"{len(result.images)} test images, each pixel within {EPS} of the original.",
        "All are judged by the margin, the best wrong logit minus the true one. FGSM,",
        "Sign and APGD climb the cross-entropy, ADR-GD the margin, Auto several losses.",
        "Gradients and probes are per image; time is relative to Sign.",
    )
    cells: list[Sequence[str | Text]] = [
        [
            row["method"],
            *(
                Text(form.format(row[name]), style="bold" if row[name] == best.get(name) else "")
                for name, form in _COLUMNS.items()
            ),
        ]
        for row in rows
    ]
    show_table(["method", *_COLUMNS], cells, words=["method"])
    say_wrapped(result.verdict)


def write_demo(result: DemoResult, folder: Path) -> None:
    """Write `demo.json`, `demo.npz` (images, labels, and each method's images) and `demo.png`."""
    rows = [
        row
        | {
            "starts": attack.method.starts,
            "seconds": attack.seconds,
            "climbs": "cross-entropy" if attack.method.climbs_cross_entropy else "margin",
            "solver": attack.ran,
        }
        for row, attack in zip(rows_of(result), result.attacks, strict=True)
    ]
    write_json(
        folder / "demo.json",
        {
            "images": len(result.images),
            "eps": EPS,
            "evaluations": result.evaluations,
            "seed": result.seed,
            "methods": rows,
            "verdict": result.verdict,
        },
    )
    found = {attack.method.name: attack.x.numpy() for attack in result.attacks}
    given = {"images": result.images.numpy(), "labels": result.labels.numpy()}
    write_arrays(folder / "demo.npz", given | found)
    save_figure(draw_digits(result), folder / "demo.png")
