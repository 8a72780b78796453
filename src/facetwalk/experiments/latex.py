"""Tables in LaTeX, for papers."""

from __future__ import annotations

import re

from facetwalk.experiments.tables import Table

_SIGN = re.compile(r"<=|>=|(?<!\w)-(?=\d)|[^\w\s-]|_")
"""Whatever may need other letters; of hyphens, those before numbers."""
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "`": r"\textasciigrave{}",
    '"': "''",
    "±": r"$\pm$",
    "<=": r"$\le$",
    ">=": r"$\ge$",
    **{letter: f"${letter}$" for letter in "-<>|"},
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}


def escaped(text: str) -> str:
    """Plain text as LaTeX shows it.

    >>> print(escaped("50 % ± 2 of a_b <= 3, ADR-GD -1"))
    50 \\% $\\pm$ 2 of a\\_b $\\le$ 3, ADR-GD $-$1
    """
    return _SIGN.sub(lambda found: _LATEX.get(found[0], found[0]), text)


def latex(table: Table) -> str:
    """A `table` with a caption and a `tabular` in the manner of booktabs, no wider than the text.

    >>> print(latex(Table("Speed", ["method", "steps"], [["A", "12"]], words=["method"])))
    \\begin{table}
      \\centering
      \\caption{Speed}
      \\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%
      \\begin{tabular}{lr}
        \\toprule
        method & steps \\\\
        \\midrule
        A & 12 \\\\
        \\bottomrule
      \\end{tabular}}
    \\end{table}
    """
    head, *body = (
        "    " + " & ".join(map(escaped, line)) + r" \\" for line in (table.columns, *table.rows)
    )
    sides = "".join("l" if name in table.words else "r" for name in table.columns)
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{escaped(table.title)}}}",
            r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"  \begin{{tabular}}{{{sides}}}",
            r"    \toprule",
            head,
            r"    \midrule",
            *body,
            r"    \bottomrule",
            r"  \end{tabular}}",
            r"\end{table}",
        ]
    )
