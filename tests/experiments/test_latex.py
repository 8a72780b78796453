import re

import pytest

from facetwalk.experiments.latex import escaped, latex
from facetwalk.experiments.tables import Table


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("60.0 ± 10.0 %", r"60.0 $\pm$ 10.0 \%"),
        ("mnist_cnn & {more} #1", r"mnist\_cnn \& \{more\} \#1"),
        ("eps <= 0.2, x >= 1, a < b > c", r"eps $\le$ 0.2, x $\ge$ 1, a $<$ b $>$ c"),
        ("ADR-GD, 1e-12, -0.5 to -1, (-3)", "ADR-GD, 1e-12, $-$0.5 to $-$1, ($-$3)"),
        (r"a\b ~ x^2 |h| $5", r"a\textbackslash{}b \textasciitilde{} x\textasciicircum{}2 "
         r"$|$h$|$ \$5"),
        ("plain words, 1,000 (two)", "plain words, 1,000 (two)"),
    ],
)  # fmt: skip
def test_letters_that_latex_reads_otherwise_are_written_so_that_it_shows_them(text, expected):
    assert escaped(text) == expected


def test_a_table_has_a_caption_and_as_many_cells_as_columns():
    table = Table(
        "Shares (50 %)",
        ["method", "J & more", "paper"],
        [["ADR_GD", "-1", "2"], ["ours", "-", ""]],
        words=["method"],
    )
    text = latex(table)
    assert r"\caption{Shares (50 \%)}" in text
    assert r"\begin{tabular}{lrr}" in text
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    cells = [re.split(r"(?<!\\)&", row.removesuffix(r"\\")) for row in rows]
    assert [[cell.strip() for cell in row] for row in cells] == [
        ["method", r"J \& more", "paper"],
        [r"ADR\_GD", "$-$1", "2"],
        ["ours", "-", ""],
    ]
    assert re.findall(r"\\(\w+rule)", text) == ["toprule", "midrule", "bottomrule"]
    for kind in ("table", "tabular"):
        assert text.count(rf"\begin{{{kind}}}") == text.count(rf"\end{{{kind}}}") == 1
