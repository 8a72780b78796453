"""`facetwalk evaluate`: how robust a classifier is."""

from __future__ import annotations

import sys
import warnings
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import torch
import typer

from facetwalk.cli import attack_options, options
from facetwalk.cli.attack_model import make_classifier
from facetwalk.cli.attack_output import show_findings
from facetwalk.cli.data_choice import DataOptions, make_data
from facetwalk.cli.output import say, say_wrapped, show_table
from facetwalk.cli.results import Output, check_outputs, write_json
from facetwalk.cli.space_choice import check_bounds, fraction
from facetwalk.cli.stopping import goes_on
from facetwalk.robustness import Report, RobustnessWarning
from facetwalk.robustness import evaluate as evaluate_model
from facetwalk.robustness.surroundings import Surroundings


def evaluate(
    model: options.Model,
    eps: attack_options.Eps,
    data: attack_options.Data = None,
    folder: attack_options.Folder = None,
    images: attack_options.Images = None,
    labels: attack_options.Labels = None,
    first: attack_options.First = 0,
    samples: attack_options.Samples = None,
    norm: attack_options.Norm = "inf",
    bounds: attack_options.Bounds = (0.0, 1.0),
    budget: attack_options.Budget = 1000,
    seed: options.Seed = 0,
    shape: options.Shape = None,
    device: attack_options.Device = "cpu",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Remember each image in this folder; run again, it goes on where it was."
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(min=1, help="Most rows to run at once; as many as memory holds without."),
    ] = None,
    json: options.Json = None,
    quiet: options.Quiet = False,
) -> None:
    """Measure the accuracy of a classifier under attack."""
    run = None if out is None else out / "run.json"
    check_outputs([Output("--json", json, ".json")], reads=[model, images, labels, run])
    check_bounds(bounds)
    where = Surroundings.of(fraction(eps), norm, bounds)
    loaded = make_classifier(model, seed, shape, device)
    chosen = make_data(DataOptions(data, folder, images, labels, first, samples), loaded)
    with warnings.catch_warnings(), goes_on() if out else nullcontext():
        warnings.simplefilter("ignore", RobustnessWarning)  # they are shown with the figures
        report = evaluate_model(
            loaded.model,
            chosen.images,
            chosen.labels,
            where.eps,
            norm=where.norm,
            bounds=bounds,
            budget=budget,
            seed=seed,
            folder=out,
            batch_size=batch_size,
            progress=sys.stderr.isatty() and not quiet,
        )
    peak_mebibytes = torch.cuda.max_memory_reserved() >> 20 if device == "cuda" else None
    title = f"{loaded.name} on {chosen.name}; within {eps} in norm {where.norm}"
    _show(report, peak_mebibytes, title)
    if json is not None:
        asked = {
            "model": loaded.name,
            "data": chosen.name,
            "eps": where.eps,
            "norm": where.norm,
            "bounds": bounds,
            "budget": budget,
            "seed": seed,
        }
        peak = {"peak_mebibytes": peak_mebibytes}
        write_json(json, asked | _as_data(report) | peak)


def _show(report: Report, peak_mebibytes: int | None, title: str) -> None:
    say(title)
    rows = [
        ["images", f"{len(report.samples):,}"],
        ["accuracy", f"{report.accuracy:.2%}"],
        ["robust accuracy", f"{report.robust_accuracy:.2%}"],
        ["gradients an image", f"{report.mean_gradients:,.0f}"],
        ["seconds", f"{report.seconds:,.1f}"],
    ]
    if peak_mebibytes is not None:
        rows.append(["peak GPU memory", f"{peak_mebibytes:,} MiB"])
    show_table(["", "value"], rows, words=[""])
    doubtful = sum(sample.depends_on_batch for sample in report.samples)
    if doubtful:
        say_wrapped(
            f"note: {doubtful} images are misclassified in a batch and not alone; they count as "
            "robust"
        )
    show_findings(report.findings)


def _as_data(report: Report) -> dict[str, object]:
    return {
        "accuracy": report.accuracy,
        "robust_accuracy": report.robust_accuracy,
        "broken": report.broken,
        "mean_gradients": report.mean_gradients,
        "seconds": report.seconds,
        "findings": [asdict(finding) for finding in report.findings],
        "samples": [asdict(sample) for sample in report.samples],
    }
