"""Feature templates: short strings that say which parts of a token's surroundings make a feature.

A template is one atom, or several joined by ``|``. An atom names a column and a position relative
to the token, ``w[-1]``, optionally under a transform of the string found there:

    w[0]              the word
    p[-1]|p[0]        the POS tag before together with the one here
    lower(w[0])       in lower case
    shape(w[0])       capitals X, small letters x, digits d, runs cut to two: "Xxx", "dd-dd"
    prefix3(w[0])     first three letters (the whole word where it is shorter)
    suffix2(w[1])     last two letters of the next word
    length(w[0])      number of letters
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ...formats.opening import PathLike, open_text

__all__ = [
    "CrfTemplates",
    "choose_templates",
    "chunking_templates",
    "is_crf_template",
    "name_joiner",
    "ner_templates",
    "parse_any",
    "parse_crf_template",
    "pos_templates",
    "read_templates",
    "shown_code",
    "words_templates",
]

_ATOM = re.compile(
    r"(?:(?P<transform>lower|shape|length|prefix(?=[1-9])|suffix(?=[1-9]))(?P<length>[0-9]{0,4})\()?"
    r"(?P<column>[^\W\d]\w*)\[(?P<offset>[+-]?[0-9]{1,4})\](?P<close>\))?"
)
_LONG_RUN = re.compile(r"(.)\1{2,}", re.DOTALL)


class Atom(NamedTuple):
    """One part of a template: a view of a column, and where to look.

    With ``edges`` positions outside the sequence are told apart by how far outside they are.
    """

    column: str
    transform: str
    length: int
    offset: int
    edges: bool = False

    @property
    def view(self) -> tuple[str, str, int]:
        """What tells which strings the atom sees, wherever it looks."""
        return self.column, self.transform, self.length

    def __str__(self) -> str:
        inner = f"{self.column}[{self.offset}]"
        size = self.length or ""
        return f"{self.transform}{size}({inner})" if self.transform else inner


def parse_template(template: str) -> tuple[Atom, ...]:
    """Read a template; ValueError says what is wrong with it."""
    if not isinstance(template, str):
        raise ValueError(f"template {template!r:.60} is not a string such as 'w[-1]|w[0]'")
    return tuple(_parse_atom(part.strip(), template) for part in template.split("|"))


def _parse_atom(text: str, template: str) -> Atom:
    """Read one atom."""
    match = _ATOM.fullmatch(text)
    if match is None or (match["transform"] is None) != (match["close"] is None):
        raise ValueError(
            f"template {template!r:.60}: cannot read {text!r:.60}, expected column[offset], "
            "or that within lower(), shape(), length(), prefixN() or suffixN()"
        )
    transform, length = match["transform"] or "", match["length"] or "0"
    if length != "0" and transform in ("lower", "shape", "length"):
        raise ValueError(f"template {template!r:.60}: {transform} takes no length")
    return Atom(match["column"], transform, int(length), int(match["offset"]))


def transform_function(transform: str, length: int) -> Callable[[str], str]:
    """Give the function of strings that a transform stands for."""
    if transform == "lower":
        return str.lower
    if transform == "shape":
        return word_shape
    if transform == "length":
        return lambda word: str(len(word))
    if transform == "prefix":
        return lambda word: word[:length]
    if transform == "suffix":
        return lambda word: word[-length:]
    return str


def word_shape(word: str) -> str:
    """Capitals to X, small letters to x, digits to d; runs of more than two are cut to two."""
    signs = (
        "X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word
    )
    return _LONG_RUN.sub(r"\1\1", "".join(signs))


def _window(pattern: str, offsets: Iterable[int]) -> list[str]:
    """Put each offset into a pattern such as ``w[{}]``."""
    return [pattern.format(offset) for offset in offsets]


def _affixes(longest: int, at: int = 0) -> list[str]:
    """Prefixes and suffixes of a word up to a length."""
    lengths = range(1, longest + 1)
    return [f"{kind}{length}(w[{at}])" for length in lengths for kind in ("prefix", "suffix")]


def chunking_templates() -> list[str]:
    """Templates for chunking: columns w (word) and p (POS tag).

    Word and POS in a window of two tokens to each side, POS bigrams in it, the two word bigrams
    around the token, prefixes and suffixes of the word up to three letters: 22 in all.

    Returns
    -------
    list of str
    """
    window = range(-2, 3)
    return [
        *_window("w[{}]", window),
        *_window("p[{}]", window),
        *(f"p[{k}]|p[{k + 1}]" for k in range(-2, 2)),
        *(f"w[{k}]|w[{k + 1}]" for k in (-1, 0)),
        *_affixes(3),
    ]


def ner_templates() -> list[str]:
    """Templates for named entities: columns w (word) and p (POS tag).

    Word, lower-case word, shape and POS in a window of two tokens to each side, prefixes and
    suffixes of the word up to four letters.

    Returns
    -------
    list of str
    """
    window = range(-2, 3)
    return [
        *_window("w[{}]", window),
        *_window("lower(w[{}])", window),
        *_window("shape(w[{}])", window),
        *_window("p[{}]", window),
        *_affixes(4),
    ]


def pos_templates(longest: int = 10) -> list[str]:
    """Templates for parts of speech: column w (word), as Joachims et al. (2009) have them.

    Prefixes and suffixes of the word, the one before and the one after, and the word's length.

    Parameters
    ----------
    longest : int
        Letters of the longest ones; the paper has all that occur.

    Returns
    -------
    list of str
    """
    return [*(affix for at in (0, -1, 1) for affix in _affixes(longest, at)), "length(w[0])"]


def words_templates() -> list[str]:
    """Templates for plain words: column w only.

    Word in a window of two tokens to each side; lower-case word, shape, prefixes and suffixes up
    to three letters of the word itself.

    Returns
    -------
    list of str
    """
    return [*_window("w[{}]", range(-2, 3)), "lower(w[0])", "shape(w[0])", *_affixes(3)]


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
    """Tell whether a template is one of CRF++, not of `maxmargin.features.window.templates`."""
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


# ----- templates of both kinds -------------------------------------------------------------------


def name_joiner(
    template: str, atoms: Sequence[Atom], columns: Sequence[str]
) -> Callable[[Sequence[str]], str]:
    """What makes the name of a template's feature out of the strings of its atoms."""
    if not is_crf_template(template):
        return lambda part: "|".join(f"{a}={text}" for a, text in zip(atoms, part, strict=True))
    texts, _ = parse_crf_template(template, columns)
    return lambda part: "".join(chain(*zip(texts, (*part, ""), strict=True)))


def shown_code(atom: Atom, strings: list[str], code: int) -> str:
    """What a code of an atom stands for."""
    if code < len(strings):
        return strings[code]
    side = "-" if atom.offset < 0 else "+"
    return f"_B{side}{code - len(strings) + 1}"


def parse_any(template: Any, columns: Sequence[str]) -> tuple[Atom, ...]:
    """Read a template of either kind."""
    if isinstance(template, str) and is_crf_template(template):
        return parse_crf_template(template, columns)[1]
    return parse_template(template)


def _check_shared_features(templates: list[str], parsed: list[tuple[Atom, ...]]) -> None:
    """Raise ValueError for templates that would make the same features."""
    seen: dict[Any, str] = {}
    for template, atoms in zip(templates, parsed, strict=True):
        key: Any = parse_crf_template(template)[0] if is_crf_template(template) else atoms
        before = seen.get(key)
        if before is not None and is_crf_template(template) and before != template:
            raise ValueError(
                f"templates {before!r} and {template!r} share their features, as bag-of-words "
                "templates do in CRF++; give them different numbers"
            )
        if before is not None:
            raise ValueError(f"template {template!r} is given twice")
        seen[key] = template


def choose_templates(
    templates: Sequence[str] | None, columns: Sequence[str] | None, n_columns: int
) -> tuple[list[str], list[str], list[tuple[Atom, ...]]]:
    """Columns, templates and parsed templates to use, once they fit each other."""
    if columns is None:
        columns = ["w", "p", *(f"c{j}" for j in range(2, n_columns))][:n_columns]
    columns = list(columns)
    if len(columns) != n_columns:
        raise ValueError(
            f"expected {len(columns)} columns ({', '.join(columns)}), found {n_columns}"
        )
    if templates is None:
        templates = words_templates() if n_columns == 1 else chunking_templates()
    templates = list(templates)
    if not templates:
        raise ValueError("expected at least one template, found none")
    parsed = [parse_any(template, columns) for template in templates]
    for template, atoms in zip(templates, parsed, strict=True):
        unknown = [atom.column for atom in atoms if atom.column not in columns]
        if unknown:
            raise ValueError(
                f"template {template!r}: no column {unknown[0]!r}, the data has "
                f"{', '.join(columns)}"
                + (" (for words alone: words_templates, or words)" if n_columns == 1 else "")
            )
    _check_shared_features(templates, parsed)
    return columns, templates, parsed
