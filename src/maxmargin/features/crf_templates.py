"""Templates of CRF++ and Wapiti, such as ``U05:%x[-1,0]/%x[0,0]``.

``%x[row,column]`` stands for the string of a column, both numbers from 0, so many tokens from the
current one; ``%X``, of Wapiti, for that in lower case. Text around it, above all the ``05:``, tells
features of different templates apart. A template that begins with U makes features of labels, one
with B features of pairs of labels, and one with ``*`` both; a B alone stands for plain
transitions. Before the beginning of a sequence there are ``_B-1``, ``_B-2``, ... and behind its
end ``_B+1``, ``_B+2``, ...
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..formats.opening import PathLike, open_text
from .templates import Atom

__all__ = ["CrfTemplates", "is_crf_template", "parse_crf_template", "read_templates"]

_MACRO = re.compile(r"%([a-zA-Z])\[([^\]]*)\]")
_POSITION = re.compile(r"\s*([+-]?[0-9]{1,4})\s*,\s*([0-9]{1,4})\s*")
_TRANSFORMS = {"x": "", "X": "lower"}


class CrfTemplates(NamedTuple):
    """Templates of a file.

    Attributes
    ----------
    unigram : list of str
        For `WindowFeatures`, the features of a `SequenceTagger`.
    bigram : list of str
        For another one, its ``transition_features``; none if empty.
    has_transitions : bool
        Whether the file has a plain B. `SequenceTagger` always has transitions.
    """

    unigram: list[str]
    bigram: list[str]
    has_transitions: bool


def is_crf_template(template: str) -> bool:
    """Tell whether a template is one of CRF++, not of `maxmargin.features.templates`."""
    return "%" in template


def parse_crf_template(
    template: str, columns: Sequence[str] | None = None
) -> tuple[tuple[str, ...], tuple[Atom, ...]]:
    """Read a template: the texts around its atoms, one more than there are, and the atoms.

    Without the names of the columns these are called by their numbers.
    """
    pieces = _MACRO.split(template)
    texts, commands, positions = pieces[::3], pieces[1::3], pieces[2::3]
    if template[:1] not in tuple("UuBb*") or any("%" in text for text in texts):
        raise ValueError(
            f"template {template!r:.60}: expected U, B or * first and %x[row,column], as of CRF++"
        )
    if not commands:
        raise ValueError(
            f"template {template!r:.60}: no %x[row,column]; for a constant feature there is "
            "fit_intercept=True"
        )
    atoms = []
    for command, position in zip(commands, positions, strict=True):
        found = _POSITION.fullmatch(position)
        if command not in _TRANSFORMS:
            raise ValueError(f"template {template!r:.60}: %{command} is not known, only %x and %X")
        if found is None:
            raise ValueError(
                f"template {template!r:.60}: expected %{command}[row,column], found "
                f"%{command}[{position:.60}]"
            )
        row, number = int(found[1]), int(found[2])
        if columns is not None and number >= len(columns):
            raise ValueError(
                f"template {template!r:.60}: no column {number}, the data has "
                f"{len(columns)}, from 0"
            )
        name = str(number) if columns is None else columns[number]
        atoms.append(Atom(name, _TRANSFORMS[command], 0, row, edges=True))
    return tuple(texts), tuple(atoms)


def read_templates(source: PathLike) -> CrfTemplates:
    r"""Read a template file of CRF++ or Wapiti.

    Parameters
    ----------
    source : str or path-like
        A file, or its text: what has ``%x[`` or a line end in it.

    Returns
    -------
    CrfTemplates

    Raises
    ------
    ValueError
        A line that is no template, or a file without any; the message names file and line.

    Examples
    --------
    >>> read_templates("U00:%x[-1,0]\nU01:%x[0,0]/%x[0,1]\nB\n")
    CrfTemplates(unigram=['U00:%x[-1,0]', 'U01:%x[0,0]/%x[0,1]'], bigram=[], has_transitions=True)
    """
    if isinstance(source, str) and ("\n" in source or "%x[" in source):
        name, lines = "templates", source.split("\n")
    else:
        with open_text(Path(source)) as stream:
            name, lines = str(source), list(stream)
    found = CrfTemplates([], [], False)
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        kind = text[0].lower()
        if kind == "b" and not is_crf_template(text):
            found = found._replace(has_transitions=True)
            continue
        try:
            parse_crf_template(text)
        except ValueError as error:
            raise ValueError(f"{name}:{number}: {error}") from None
        if kind in "u*":
            found.unigram.append(text)
        if kind in "b*":
            found.bigram.append(text)
    if not found.unigram:
        raise ValueError(f"{name}: no templates of labels found, expected such as U00:%x[0,0]")
    return found
