"""The tables of the experiment."""

from __future__ import annotations

from collections.abc import Sequence

from facetwalk.experiments.adversarial import paper
from facetwalk.experiments.adversarial.data_sets import DATA_SETS, STAND_IN
from facetwalk.experiments.adversarial.step_cost import TIMED
from facetwalk.experiments.adversarial.summary import Summary, costs, summarise
from facetwalk.experiments.experiment import Record
from facetwalk.experiments.tables import Table

ABOUT = (
    "Success: the share of images on which the network is wrong (targeted: says a random wrong "
    "class that is the same for all attacks), at the best point that an attack has seen; mean of "
    "the seeds ± half their spread. An image that needs no attack counts as a success of all.",
    "J: the paper's objective at that point, the cross-entropy of the label (targeted: minus that "
    "of the target), mean over images. Every attack moves in the same set, pixels in [0, 1] and "
    "within eps of the image, and has the same number of gradients an image; FGSM needs one, "
    "AutoAttack takes what it wants, stops at success and has one seed. What is added to gradients "
    "are probes, forward passes that measure normals.",
)

_ATTACKS = ("attack", "success", "J", "targeted", "J", "gradients")
_COSTS = ("network", "batch", "ADR-GD", "released", "paper", "variables", "paper")


def tables(records: Sequence[Record]) -> list[Table]:
    """A table of attacks for each network, and one of costs."""
    summaries = summarise(records)
    found = [
        _attacks([each for each in summaries if each.model == model], records)
        for model in dict.fromkeys(each.model for each in summaries)
    ]
    return [*found, *([_steps(costs(records))] if costs(records) else [])]


def _attacks(summaries: Sequence[Summary], records: Sequence[Record]) -> Table:
    names = list(dict.fromkeys(each.attack for each in summaries))
    both = {(each.attack, each.targeted): each for each in summaries}
    first = summaries[0]
    data = next(record["data"] for record in records if record["model"] == first.model)
    known = DATA_SETS.get(data, STAND_IN)
    kind = "robust" if first.robust else "natural"
    before = ", ".join(
        f"{each.reached_before:.1%} {words} before any attack"
        for each, words in (
            (both.get((names[0], False)), "wrong"),
            (both.get((names[0], True)), "at the target"),
        )
        if each is not None
    )
    title = (
        f"{first.model} ({known.title}, {kind}), eps {known.radius}: {first.images} images, "
        f"{first.seeds} seed{'s' * (first.seeds > 1)}; {before}"
    )
    quoted = any((first.model, name) in paper.SUCCESS for name in names)
    rows = [
        [
            name,
            *_figures(both.get((name, False))),
            *_figures(both.get((name, True))),
            _spent(both.get((name, False)) or both[name, True]),
            *([_percent(paper.SUCCESS.get((first.model, name)))] if quoted else []),
        ]
        for name in names
    ]
    columns = [*_ATTACKS, *(["paper"] if quoted else [])]
    return Table(title, columns, rows, words=["attack"])


def _figures(found: Summary | None) -> tuple[str, str]:
    if found is None:
        return "-", "-"
    spread = f" ± {50 * found.spread:.1f}" if found.seeds > 1 else ""
    return f"{100 * found.success:.1f}{spread} %", f"{found.objective:.3f}"


def _spent(found: Summary) -> str:
    probes = f" + {found.probes:,.0f}" if found.probes else ""
    return f"{found.gradients:,.0f}{probes}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f} %"


def _steps(found: Sequence[Record]) -> Table:
    device = found[0]["device"]
    return Table(
        f"What a step of ADR-GD costs, in steps of PGD ({device})",
        _COSTS,
        [_step(record) for record in found],
        words=["network"],
    )


def _step(record: Record) -> list[str]:
    theirs = paper.cost_of(record["data"], record["model"])
    ratios = record.get("ratios", {})
    return [
        record["model"],
        str(record["batch"]),
        *(f"{ratios[name]:.2f}" if name in ratios else "-" for name in TIMED),
        f"{theirs.ratio:.1f}" if theirs else "",
        f"{record['variables']:,}",
        f"{theirs.variables:,}" if theirs else "",
    ]
