"""What the records show, in short sentences that are computed from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from facetwalk.experiments.ablation import paper
from facetwalk.experiments.ablation.methods import (
    ADR_GD,
    BASELINES,
    GD,
    OURS,
    PERTURBED_GD,
    SIGN,
    VARIANTS,
)
from facetwalk.experiments.ablation.summary import (
    APPENDIX,
    EQUAL,
    LONG,
    PROVEN,
    Summary,
    summarise,
)
from facetwalk.experiments.experiment import Record
from facetwalk.experiments.machines import measured_on
from facetwalk.experiments.random_networks import written

_CLOSE = 0.03
"""A mean so near to the paper's is called the same."""
_SURE = 2
"""Standard errors that a mean may lie off by chance."""
_GAP = 0.01
"""A proven optimum is reached so near to it."""

_Found = dict[tuple[str, str], Summary]
"""By part and method."""


def comment(records: Sequence[Record]) -> list[str]:
    """Sentences on each model, and on the networks whose optimum is proven."""
    summaries = summarise(records)
    sentences: list[str] = []
    for model in dict.fromkeys(each.model for each in summaries if each.model != PROVEN):
        found = {(each.part, each.method): each for each in summaries if each.model == model}
        sentences += [f"Model {model}: {sentence}" for sentence in _on(found)]
    known = next((record for record in records if record["model"] == PROVEN), None)
    if known is not None:
        found = {(each.part, each.method): each for each in summaries if each.model == PROVEN}
        sentences += _on_proven(known, found)
    return [*sentences, *measured_on(records)]


def _on(found: _Found) -> Iterator[str]:
    equal = {method: each for (part, method), each in found.items() if part == EQUAL}
    if equal:
        yield _highest(list(equal.values()))
    yield from _on_adr_gd(equal)
    yield from _on_noise(equal)
    yield from _on_variants(found)
    for part, method in ((EQUAL, GD), (APPENDIX, ADR_GD)):
        if (part, method) in found:
            yield _beside_paper(found[part, method])


def _highest(equal: Sequence[Summary]) -> str:
    best = max(equal, key=lambda each: each.mean)
    near = [
        each.method
        for each in equal
        if each is not best and best.mean - each.mean <= max(best.spread, each.spread)
    ]
    beside = f", and {_listed(near)} less below it than seeds differ" if near else ""
    return (
        f"{best.method} has the highest mean at {best.budget:,} gradients, "
        f"{written(best.mean)}{beside}."
    )


def _on_adr_gd(equal: dict[str, Summary]) -> Iterator[str]:
    whole = equal.get(ADR_GD)
    if whole is None:
        return
    start = f"at {whole.budget:,} gradients {ADR_GD} ({written(whole.mean)})"
    for rivals in (BASELINES, (SIGN,)):
        there = [equal[name] for name in rivals if name in equal]
        beaten = [each for each in there if whole.mean > each.mean]
        others = [each for each in there if whole.mean <= each.mean]
        for verb, group in (("beats", beaten), ("does not beat", others)):
            if group:
                names = _listed([f"{each.method} ({written(each.mean)})" for each in group])
                yield f"{start} {verb} {names}."


def _on_noise(equal: dict[str, Summary]) -> Iterator[str]:
    """Whether the noise of Perturbed GD changes what GD finds."""
    if GD not in equal or PERTURBED_GD not in equal:
        return
    differs = equal[GD].values != equal[PERTURBED_GD].values
    yield (
        f"{PERTURBED_GD} ends at another value than {GD} in {differs.sum()} of "
        f"{_count(differs.size, 'run')}."
    )


def _on_variants(found: _Found) -> Iterator[str]:
    """Whether each part of ADR-GD is worth something, with the appendix's number of steps."""
    whole = found.get((APPENDIX, ADR_GD))
    there = [found[APPENDIX, name] for name in VARIANTS if (APPENDIX, name) in found]
    if whole is None or not there:
        return
    changes = [f"{each.method} {100 * (each.mean / whole.mean - 1):+.1f} %" for each in there]
    higher = [each.method for each in there if each.mean >= whole.mean]
    verdict = f"{_listed(higher)} not below it" if higher else "all below it, as in the paper"
    yield (
        f"set against {ADR_GD} with {whole.budget:,} gradients, the variants have means of "
        f"{', '.join(changes)}: {verdict}."
    )


def _beside_paper(found: Summary) -> str:
    quoted = paper.MEANS[found.method, found.model]
    off, error = found.mean / quoted - 1, found.error / found.mean
    side = "within" if abs(off) <= _CLOSE else "not within"
    share = f"{100 * error:.1f} %"
    beside = "" if np.isnan(error) else f" (standard error {written(found.error)}, {share})"
    decided = error <= _CLOSE or abs(off) - _CLOSE > _SURE * error
    doubt = "" if decided else "; so few networks cannot decide that"
    return (
        f"{found.method} with {found.budget:,} gradients has a mean of {written(found.mean)} over "
        f"{_count(found.values.shape[1], 'fresh network')}{beside}, and the paper of "
        f"{written(quoted)}: {100 * off:+.1f} %, {side} {100 * _CLOSE:.0f} %{doubt}."
    )


def _on_proven(known: Record, found: _Found) -> Iterator[str]:
    optima, names = np.array(known["optima"]), known["names"]
    equal = [each for (part, _), each in found.items() if part == EQUAL]
    if equal:
        yield from (f"Proven optima: {each}" for each in _on_noise({e.method: e for e in equal}))
        shares = {each.method: 100 * each.shares(optima).mean() for each in equal}
        best = max(shares, key=lambda name: shares[name])
        worst = min(shares, key=lambda name: shares[name])
        yield (
            f"Proven optima: at {equal[0].budget:,} gradients shares go from {shares[worst]:.2f} % "
            f"({worst}) to {shares[best]:.2f} % ({best})."
        )
    long = found.get((LONG, OURS))
    if long is not None:
        gaps = optima - long.values.min(0)
        missed = [name for name, gap in zip(names, gaps, strict=True) if gap > _GAP]
        verdict = f"all but {_listed(missed)}" if missed else "all of them with every seed"
        yield (
            f"Proven optima: with {long.budget:,} gradients our default comes within {_GAP:g} of "
            f"{verdict} ({_count(len(names), 'network')}, {_count(len(long.values), 'seed')}); the "
            f"largest gap is {max(0.0, gaps.max()):.4f}."
        )


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number > 1)}"
