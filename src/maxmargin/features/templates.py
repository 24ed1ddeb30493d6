"""Feature templates: short strings that say which parts of a token's surroundings make a feature.

A template is one atom, or several joined by ``|``. An atom names a column and a position relative
to the token, ``w[-1]``, optionally under a transform of the string found there:

    w[0]              the word
    p[-1]|p[0]        the POS tag before together with the one here
    lower(w[0])       in lower case
    shape(w[0])       capitals X, small letters x, digits d, runs cut to two: "Xxx", "dd-dd"
    prefix3(w[0])     first three letters (the whole word where it is shorter)
    suffix2(w[1])     last two letters of the next word
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

__all__ = ["chunking_templates", "ner_templates", "words_templates"]

_ATOM = re.compile(
    r"(?:(?P<transform>lower|shape|prefix(?=[1-9])|suffix(?=[1-9]))(?P<length>[0-9]{0,4})\()?"
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
            "or that within lower(), shape(), prefixN() or suffixN()"
        )
    transform, length = match["transform"] or "", match["length"] or "0"
    if length != "0" and transform in ("lower", "shape"):
        raise ValueError(f"template {template!r:.60}: {transform} takes no length")
    return Atom(match["column"], transform, int(length), int(match["offset"]))


def transform_function(transform: str, length: int) -> Callable[[str], str]:
    """Give the function of strings that a transform stands for."""
    if transform == "lower":
        return str.lower
    if transform == "shape":
        return word_shape
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


def _affixes(longest: int) -> list[str]:
    """Prefixes and suffixes of the word up to a length."""
    lengths = range(1, longest + 1)
    return [f"{kind}{length}(w[0])" for length in lengths for kind in ("prefix", "suffix")]


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


def words_templates() -> list[str]:
    """Templates for plain words: column w only.

    Word in a window of two tokens to each side; lower-case word, shape, prefixes and suffixes up
    to three letters of the word itself.

    Returns
    -------
    list of str
    """
    return [*_window("w[{}]", range(-2, 3)), "lower(w[0])", "shape(w[0])", *_affixes(3)]
