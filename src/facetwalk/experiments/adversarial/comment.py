"""What the records show, in short sentences that are computed from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from facetwalk.experiments.adversarial import paper
from facetwalk.experiments.adversarial.attacks import ADR_GD, AUTOATTACK, OURS, PGD, STRONG_PGD
from facetwalk.experiments.adversarial.summary import Summary, costs, summarise
from facetwalk.experiments.experiment import Record

_LOW_RATIO = 3.0
"""A step of ADR-GD should cost less than so many of PGD."""


def comment(records: Sequence[Record]) -> list[str]:
    """A few sentences for each network, then those about costs."""
    summaries = summarise(records)
    sentences: list[str] = []
    for key in dict.fromkeys((each.model, each.targeted) for each in summaries):
        sentences += _on([each for each in summaries if (each.model, each.targeted) == key])
    return [*sentences, *_on_costs(costs(records))]


def _on(group: Sequence[Summary]) -> Iterator[str]:
    """About the attacks on one network with one kind of goal."""
    by_name = {each.attack: each for each in group}
    where = f"{group[0].model}, {'targeted' if group[0].targeted else 'untargeted'}"
    equals = [each for each in group if each.attack != AUTOATTACK]
    top = max(each.success for each in equals)
    winners = [each for each in equals if each.success == top]
    if len(winners) == 1:
        yield f"{where}: {winners[0].attack} has the highest success, {_rate(winners[0])}."
    elif len(winners) == len(equals):
        yield f"{where}: all attacks have the same success, {_rate(winners[0])}."
    else:
        names = _listed([each.attack for each in winners])
        yield f"{where}: {names} share the highest success, {_rate(winners[0])}."
    highest = max(equals, key=lambda each: each.objective)
    yield f"{where}: {highest.attack} has the highest mean J, {highest.objective:.3f}."
    yield from _on_ours(where, by_name)
    yield from _on_adr_gd(where, by_name)
    for each in group:
        quoted = None if each.targeted else paper.SUCCESS.get((each.model, each.attack))
        if quoted is not None:
            yield (
                f"{where}: {each.attack} has a success of {_rate(each)}; the paper says "
                f"{100 * quoted:.2f} %."
            )


def _on_ours(where: str, by_name: dict[str, Summary]) -> Iterator[str]:
    ours = by_name.get(OURS)
    if ours is None:
        return
    for name, other in by_name.items():
        if other.success > ours.success:
            yield (
                f"{where}: ours loses to {name}, {_rate(ours)} against {_rate(other)}"
                f"{_within(ours, other)}."
            )


def _on_adr_gd(where: str, by_name: dict[str, Summary]) -> Iterator[str]:
    versions = [each for name, each in by_name.items() if name.startswith(ADR_GD)]
    rivals = [by_name[name] for name in (PGD, STRONG_PGD) if name in by_name]
    if not versions:
        return
    best = max(versions, key=lambda each: each.strength)
    for rival in rivals:
        gap = best.success - rival.success
        verb = "beats" if gap > 0 else "loses to" if gap < 0 else "equals"
        yield (
            f"{where}: the best ADR-GD, {best.attack}, {verb} {rival.attack}, "
            f"{_rate(best)} against {_rate(rival)}{_within(best, rival)}."
        )


def _within(one: Summary, other: Summary) -> str:
    """Whether seeds alone may make such a difference."""
    gap = abs(one.success - other.success)
    return ", less than seeds differ" if 0 < gap <= max(one.spread, other.spread) else ""


def _on_costs(found: Sequence[Record]) -> Iterator[str]:
    for record in found:
        if "ratios" not in record:
            yield (
                f"{record['model']}, batch {record['batch']}: the cost was not measured, "
                f"{record['left_out']}."
            )
            continue
        highest = max(record["ratios"].values())
        side = "under" if highest < _LOW_RATIO else "not under"
        figures = " and ".join(f"{ratio:.2f}" for ratio in record["ratios"].values())
        theirs = paper.cost_of(record["data"], record["model"])
        beside = f" (the paper: {theirs.ratio:.1f})" if theirs else ""
        yield (
            f"{record['model']}, batch {record['batch']}: a step of ADR-GD costs {figures} steps "
            f"of PGD, {side} {_LOW_RATIO:g}{beside}."
        )


def _rate(each: Summary) -> str:
    return f"{100 * each.success:.1f} %"


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
