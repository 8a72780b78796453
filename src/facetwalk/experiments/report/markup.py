"""Text and tables in HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from facetwalk.experiments.tables import Table

_CODE = re.compile(r"`([^`]+)`")


def inline(text: str) -> str:
    """Plain text, in which backticks mark code.

    >>> inline("`a_b` < 1 & more")
    '<code>a_b</code> &lt; 1 &amp; more'
    """
    return _CODE.sub(r"<code>\1</code>", escape(text))


def table_in_html(table: Table) -> str:
    """Columns with numbers of the paper have a class of their own.

    >>> print(table_in_html(Table("T", ["a", "paper"], [["x", "1"]], words=["a"])))
    <h4>T</h4>
    <div class="wide"><table>
    <thead><tr><th class="word">a</th><th class="paper">paper</th></tr></thead>
    <tbody>
    <tr><td class="word">x</td><td class="paper">1</td></tr>
    </tbody>
    </table></div>
    """
    classes = [_class(name, table) for name in table.columns]

    def row(kind: str, cells: Sequence[str]) -> str:
        pairs = zip(cells, classes, strict=True)
        return "".join(f"<{kind}{css}>{inline(cell)}</{kind}>" for cell, css in pairs)

    lines = [
        f'<h4>{inline(table.title)}</h4>\n<div class="wide"><table>',
        f"<thead><tr>{row('th', table.columns)}</tr></thead>\n<tbody>",
        *(f"<tr>{row('td', cells)}</tr>" for cells in table.rows),
        "</tbody>\n</table></div>",
    ]
    return "\n".join(lines)


def _class(column: str, table: Table) -> str:
    words = ["word"] * (column in table.words)
    words += ["paper"] * (column == "paper" or "the paper" in column)
    return f' class="{" ".join(words)}"' if words else ""
