"""Tagged sentences from a random grammar: as many as one likes, made while they are read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..formats.columns import TokenColumns
from ..types import Floats, Ints

__all__ = ["make_sentences"]

_N_TAGS = 12
_N_WORDS = 60_000  # of all tags together
_SHORTEST, _LONGEST = 4, 36
_AT_A_TIME = 5_000
_MISPLACED = 0.03  # share of words that are those of another tag
_LETTERS = "etaonrishdlucm"


def make_sentences(n_sentences: int, *, random_state: int = 0) -> Iterator[TokenColumns]:
    """Make tagged sentences, a few thousand at a time.

    Tags follow a Markov chain in which most steps lead to one of four successors of a tag. Words
    are drawn by the tag, the r-th most frequent about as often as 1 / r; the last letters of most
    tell their tag, and some are those of another. A sentence has 20 words on average.

    Parameters
    ----------
    n_sentences : int
        How many there are to be. The first of many are the same as those of few.
    random_state : int, default=0
        Seed.

    Yields
    ------
    TokenColumns
        Up to 5,000 sentences, with words in the first column and tags in the second.

    Examples
    --------
    >>> part = next(make_sentences(100))
    >>> part.n_sequences, len(part.columns)
    (100, 2)
    """
    if n_sentences < 1:
        raise ValueError(f"expected at least one sentence, got n_sentences={n_sentences}")
    grammar = np.random.default_rng([random_state, 0])
    steps = _random_steps(grammar)
    words, frequencies = _random_words(grammar)
    tags = [f"T{k}" for k in range(_N_TAGS)]
    for part, first in enumerate(range(0, n_sentences, _AT_A_TIME), 1):
        # A whole part is drawn also where a piece of it is wanted: the first are always the same.
        rng = np.random.default_rng([random_state, part])
        lengths = rng.integers(_SHORTEST, _LONGEST + 1, _AT_A_TIME)
        drawn = _random_tags(rng, steps, lengths)
        seen_as = np.where(
            rng.random(len(drawn)) < _MISPLACED, rng.integers(_N_TAGS, size=len(drawn)), drawn
        )
        ranks = np.searchsorted(frequencies, rng.random(len(drawn)))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        offsets = offsets[: min(_AT_A_TIME, n_sentences - first) + 1]
        n_tokens = int(offsets[-1])
        chosen = (ranks * _N_TAGS + seen_as)[:n_tokens].tolist()
        columns = [[words[i] for i in chosen], [tags[k] for k in drawn[:n_tokens].tolist()]]
        yield TokenColumns(columns, offsets)


def _random_steps(rng: np.random.Generator) -> Floats:
    """Sums of the probabilities of each tag's successors; the last row is for first tags."""
    shares = np.full((_N_TAGS + 1, _N_TAGS), 0.01)
    for row in shares:
        row[rng.permutation(_N_TAGS)[:4]] += rng.dirichlet(np.ones(4))
    return np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)


def _random_words(rng: np.random.Generator) -> tuple[list[str], Floats]:
    """Words, those of equal rank side by side; and sums of the frequencies of the ranks."""
    per_tag = _N_WORDS // _N_TAGS
    letters = list(_LETTERS)
    endings = ["".join(rng.choice(letters, 2)) for _ in range(_N_TAGS)]
    words = []
    for rank in range(per_tag):
        stem, rest = "", rank + 1
        while rest:
            rest, digit = divmod(rest, len(letters))
            stem += letters[digit]
        for tag in range(_N_TAGS):
            ending = endings[tag if rng.random() < 0.7 else int(rng.integers(_N_TAGS))]
            words.append(f"{stem}{letters[tag]}{ending}")
    frequencies = 1.0 / np.arange(1, per_tag + 1)
    return words, np.cumsum(frequencies / frequencies.sum())


def _random_tags(rng: np.random.Generator, steps: Floats, lengths: Ints) -> Ints:
    """Tags of sentences of these lengths, one after the other."""
    table = np.empty((len(lengths), _LONGEST), np.int64)
    tag = np.full(len(lengths), _N_TAGS)
    for t in range(_LONGEST):
        tag = (steps[tag] < rng.random(len(lengths))[:, None]).sum(axis=1)
        tag = np.minimum(tag, _N_TAGS - 1)  # sums may end a little below 1
        table[:, t] = tag
    return table[np.arange(_LONGEST) < lengths[:, None]]
