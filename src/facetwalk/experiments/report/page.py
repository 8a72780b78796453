"""The page: what each experiment is, what came out beside what the paper says, and how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from facetwalk.experiments.drawing import DOTS_PER_INCH
from facetwalk.experiments.report.finished import Finished
from facetwalk.experiments.report.markup import inline, table_in_html
from facetwalk.experiments.report.style import STYLE
from facetwalk.experiments.reproducing import FIGURES, Outcome

_TITLE = "The paper's experiments again"
_MANY = 8
"""Sentences that are set in two columns."""
_FINER = round(DOTS_PER_INCH / 96, 2)
"""Dots of a figure for each of a page, whose inch has 96: so letters have the size of the text."""


def page(finished: Sequence[Finished], commands: Sequence[str]) -> str:
    """A document of HTML that needs nothing but the figures beside it."""
    body = "\n".join(
        [
            f"<h1>{escape(_TITLE)}</h1>",
            *_introduction(commands),
            *_contents(finished),
            *(line for each in finished for line in _section(each)),
        ]
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(_TITLE)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _introduction(commands: Sequence[str]) -> Iterator[str]:
    yield (
        "<p>Activation-Descent Regularization for Input Optimization of ReLU Networks (Yu and "
        "Gao, ICML 2024), run again with facetwalk. Numbers that the paper prints stand in shaded "
        "columns beside ours. The command that makes a section stands above its results.</p>"
    )
    if any("--quick" in command for command in commands):
        yield (
            '<p class="left-out">These are the quick forms: they show that everything runs, on few '
            "and small networks and with few gradients. Their numbers say little.</p>"
        )
    yield from _made_by(commands)


def _contents(finished: Sequence[Finished]) -> Iterator[str]:
    yield "<nav><ol>"
    for each in finished:
        name, title = each.experiment.name, escape(each.experiment.title)
        kind = ' class="failed"' if each.failed else ""
        yield f'<li><a href="#{name}">{title}</a> <span{kind}>{each.state}</span></li>'
    yield "</ol></nav>"


def _section(each: Finished) -> Iterator[str]:
    name = each.experiment.name
    yield f'<section id="{name}">'
    yield f"<h2>{escape(each.experiment.title)}</h2>"
    if each.failed:
        yield f'<p class="failed">This experiment failed: {inline(each.failed)}.</p>'
    elif each.outcome is None:
        yield f'<p class="left-out">Left out: {inline(each.left_out)}.</p>'
    yield from (f"<p>{inline(sentence)}</p>" for sentence in each.experiment.about)
    if each.outcome is not None:
        yield from _results(name, each.experiment.title, each.outcome)
    yield "</section>"


def _results(name: str, title: str, outcome: Outcome) -> Iterator[str]:
    yield from _made_by(outcome.commands)
    picture, print_form = FIGURES
    if picture in outcome.files:
        yield f'''<figure><a href="{name}/{print_form}"><picture>
<source srcset="{name}/{picture} {_FINER}x">
<img src="{name}/{picture}" alt="Figure: {escape(title)}">
</picture></a></figure>'''
    yield from map(table_in_html, outcome.tables)
    yield from _listed("What the records show", outcome.comment)
    yield from _listed("Left out", outcome.left_out)
    links = ", ".join(f'<a href="{name}/{file}">{file}</a>' for file in outcome.files)
    yield f'<p class="files">Files: {links}</p>'


def _listed(head: str, sentences: Sequence[str]) -> Iterator[str]:
    if sentences:
        many = ' class="many"' if len(sentences) > _MANY else ""
        yield f"<h3>{head}</h3>\n<ul{many}>"
        yield from (f"<li>{inline(sentence)}</li>" for sentence in sentences)
        yield "</ul>"


def _made_by(commands: Sequence[str]) -> Iterator[str]:
    if commands:
        yield "<pre>" + "\n".join(map(escape, commands)) + "</pre>"
