"""Figures without matplotlib's global state: no window, no current figure, no style is changed."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from facetwalk.types import InputError, MissingExtraError
from facetwalk.writing import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 160


def check_drawable(path: Path) -> None:
    """Refuse a figure that cannot be drawn or written, before the work that it would show."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise MissingExtraError("drawing figures", "demo") from error
    formats = FigureCanvasAgg.get_supported_filetypes()
    if path.suffix.removeprefix(".") not in formats:
        raise InputError(f"{path} must end with .{', .'.join(formats)}")


def blank_figure(width: float, height: float) -> Figure:
    """A figure of this size in inches, whose parts find room beside each other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure, whole, in the format that the file's name ends with, `.png` for most uses.

    A PDF has fonts that publishers accept, and no date: the same figure makes the same file.
    """
    from matplotlib import rc_context

    kind, content = path.suffix.removeprefix(".").lower(), BytesIO()
    undated = {"CreationDate": None} if kind == "pdf" else None
    with rc_context({"pdf.fonttype": 42}):
        figure.savefig(content, format=kind, dpi=DOTS_PER_INCH, metadata=undated)
    write_whole(path, content.getbuffer())
