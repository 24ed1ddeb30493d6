"""Matplotlib's figure, which is an extra, with a word to those who lack it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..formats.opening import PathLike
from ..formats.writing import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_class() -> type[Figure]:
    """Return `matplotlib.figure.Figure`, or raise an ImportError that says how to get it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            'drawing needs matplotlib: python -m pip install "maxmargin[plot]"'
        ) from error
    return Figure


def picture_format(path: PathLike) -> str:
    """The format that the ending of a picture's name stands for; PNG without one."""
    known = figure_class()().canvas.get_supported_filetypes()
    ending = Path(path).suffix[1:].lower() or "png"
    if ending not in known:
        names = ", ".join(sorted(known))
        raise ValueError(f"{path}: no picture can be written as {ending!r}, but as {names}")
    return ending


def save_figure(figure: Figure, path: PathLike) -> None:
    """Write a picture, which appears complete or not at all."""
    kind = picture_format(path)
    with write_atomically(path) as stream:
        figure.savefig(stream, format=kind)
