"""How good predicted chunks are, such as entities and phrases; counted as conlleval counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..utils.tables import percent
from ..utils.types import Bools, Ints, Ints32
from .scoring import (
    Averages,
    TypeScores,
    flat_labels,
    flatten,
    listed,
    macro_average,
    score_table,
    scores_of,
)

__all__ = [
    "ChunkScores",
    "are_chunk_tags",
    "chunk_counts",
    "chunk_f1",
    "chunk_f1_scorer",
    "chunk_scores",
    "chunks",
    "is_chunk_tag",
]

_OUTSIDE, _BEGIN, _INSIDE, _END, _SINGLE = range(5)
# L and U are the names of E and S in the BILOU scheme.
_PREFIXES = {"B": _BEGIN, "I": _INSIDE, "E": _END, "L": _END, "S": _SINGLE, "U": _SINGLE}


class ChunkScores(NamedTuple):
    """Scores of predicted chunks.

    Attributes
    ----------
    precision, recall, f1 : float
        Over the chunks of all types, between 0 and 1; 0 where there is nothing to divide by.
    accuracy : float
        Share of tokens with the right tag.
    per_type : dict of str to TypeScores
        The same for each type, with the numbers of chunks, in alphabetical order.
    """

    precision: float
    recall: float
    f1: float
    accuracy: float
    per_type: dict[str, TypeScores]

    @property
    def macro(self) -> Averages:
        """Plain means of the scores of the types."""
        return macro_average(self.per_type)

    def __repr__(self) -> str:
        shares = ", ".join(
            f"{name}={value:.4f}" for name, value in zip(self._fields[:4], self[:4], strict=True)
        )
        return f"ChunkScores({shares}, {len(self.per_type)} types)"

    def table(self) -> str:
        """Precision, recall and F1 of each type, and their averages, in per cent."""
        return score_table("chunks", self.per_type, Averages(*self[:3]))

    def __str__(self) -> str:
        return f"{self.table()}\n\ntoken accuracy  {percent(self.accuracy)} %"


class _Spans(NamedTuple):
    """Chunks in flat token positions: first token, one past the last token, type number."""

    starts: Ints
    ends: Ints
    types: Ints


def chunks(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Chunks of one tag sequence, read as conlleval reads them.

    A chunk begins at a B- or S- tag, and at an I- or E- tag that follows O, an E- or S- tag, or
    another type; it goes on as long as no other chunk and no O begins. So IOB1, IOB2 and IOBES
    tags are all understood, and ill-formed sequences have a meaning too.

    Parameters
    ----------
    tags : sequence of str
        "O", or B, I, E, S (or L for E, U for S), followed by "-type".

    Returns
    -------
    list of (type, start, end)
        ``tags[start:end]`` is the chunk.

    Examples
    --------
    >>> chunks(["B-NP", "I-NP", "O", "I-VP", "B-VP"])
    [('NP', 0, 2), ('VP', 3, 4), ('VP', 4, 5)]
    """
    values = flatten([listed(tags, "tags", "tags")])
    if not values:
        return []
    offsets = np.array([0, len(values)])
    codes, distinct = _code_tags(values, offsets, 1)
    spans, names = _find_chunks(codes, distinct, offsets)
    columns = (spans.types.tolist(), spans.starts.tolist(), spans.ends.tolist())
    return [(names[kind], start, end) for kind, start, end in zip(*columns, strict=True)]


def chunk_scores(y_true: Sequence[Any], y_pred: Sequence[Any]) -> ChunkScores:
    """Precision, recall and F1 of predicted chunks; a chunk counts if ends and type are right.

    Parameters
    ----------
    y_true, y_pred : list of sequences of str
        Tags as for `chunks`, in sequences of the same lengths.

    Returns
    -------
    ChunkScores

    Raises
    ------
    ValueError
        Lengths differ, or a tag is not of the scheme; the message names the first bad sequence.

    Examples
    --------
    >>> scores = chunk_scores([["B-NP", "I-NP", "B-VP"]], [["B-NP", "B-NP", "B-VP"]])
    >>> round(scores.precision, 3), scores.recall, round(scores.f1, 3)
    (0.333, 0.5, 0.4)
    """
    found = _compared(y_true, y_pred)
    n_true, n_predicted, n_correct = found.by(found.types, len(found.names))
    names = found.names
    per_type = {
        names[k]: scores_of(int(n_true[k]), int(n_predicted[k]), int(n_correct[k]))
        for k in sorted(range(len(names)), key=names.__getitem__)
        if n_true[k] + n_predicted[k] > 0
    }
    total = scores_of(int(n_true.sum()), int(n_predicted.sum()), int(n_correct.sum()))
    return ChunkScores(total.precision, total.recall, total.f1, found.accuracy, per_type)


def chunk_counts(y_true: Sequence[Any], y_pred: Sequence[Any]) -> Ints:
    """Numbers of true, predicted and correct chunks of each sequence.

    Parameters
    ----------
    y_true, y_pred : list of sequences of str
        Tags as for `chunks`, in sequences of the same lengths.

    Returns
    -------
    ndarray of int, shape (n_sequences, 3)

    Examples
    --------
    >>> chunk_counts([["B-NP", "I-NP"], ["O", "B-NP"]], [["B-NP", "B-NP"], ["O", "B-NP"]])
    array([[1, 2, 0],
           [1, 1, 1]])
    """
    found = _compared(y_true, y_pred)
    return np.column_stack(found.by(found.sequences, found.n_sequences))


class _Compared(NamedTuple):
    """Chunks of true and predicted tags, true ones first, with what they are and where."""

    types: Ints
    names: list[str]
    sequences: Ints
    n_sequences: int
    n_true: int  # how many are true ones
    correct: Bools  # which of the predicted ones are
    accuracy: float  # of the tags

    def by(self, groups: Ints, n_groups: int) -> tuple[Ints, Ints, Ints]:
        """Numbers of true, predicted and correct chunks by the group that each is of."""
        true, predicted = groups[: self.n_true], groups[self.n_true :]
        chosen = (true, predicted, predicted[self.correct])
        first, second, third = (np.bincount(own, minlength=n_groups) for own in chosen)
        return first, second, third


def _compared(y_true: Sequence[Any], y_pred: Sequence[Any]) -> _Compared:
    """Find the chunks of both, and which of the predicted ones are right."""
    true, predicted, offsets = flat_labels(y_true, y_pred)
    both = true + predicted
    twice = np.concatenate([offsets, offsets[1:] + offsets[-1]])
    codes, distinct = _code_tags(both, twice, len(offsets) - 1)
    spans, names = _find_chunks(codes, distinct, twice)

    n_tokens = int(offsets[-1])
    n_true = int(np.searchsorted(spans.starts, n_tokens))
    # The true chunk that starts at a token, if any, as (end, type), to compare with the predicted.
    end_at, type_at = np.full(n_tokens, -1), np.full(n_tokens, -1)
    end_at[spans.starts[:n_true]] = spans.ends[:n_true]
    type_at[spans.starts[:n_true]] = spans.types[:n_true]
    starts, types = spans.starts[n_true:] - n_tokens, spans.types[n_true:]
    correct = (end_at[starts] == spans.ends[n_true:] - n_tokens) & (type_at[starts] == types)
    sequences = np.searchsorted(offsets, spans.starts % n_tokens, side="right") - 1
    accuracy = float(np.mean(codes[:n_tokens] == codes[n_tokens:]))
    return _Compared(spans.types, names, sequences, len(offsets) - 1, n_true, correct, accuracy)


def chunk_f1(y_true: Sequence[Any], y_pred: Sequence[Any]) -> float:
    """F1 of predicted chunks over all types, between 0 and 1.

    Parameters
    ----------
    y_true, y_pred : list of sequences of str
        Tags as for `chunks`, in sequences of the same lengths.

    Returns
    -------
    float
    """
    return chunk_scores(y_true, y_pred).f1


def chunk_f1_scorer(estimator: Any, X: Any, y: Sequence[Any]) -> float:
    """F1 of the chunks that an estimator predicts, for ``scoring=`` of scikit-learn's searches.

    Parameters
    ----------
    estimator : SequenceTagger or other estimator
        Fitted, with ``predict``.
    X : list of sequences
        What it predicts from.
    y : list of sequences of str
        True tags.

    Returns
    -------
    float

    Examples
    --------
    >>> import maxmargin as mm
    >>> from sklearn.model_selection import GridSearchCV
    >>> X = [[["Oslo"], ["is"]], [["is"], ["Oslo"]]] * 4
    >>> y = [["B-LOC", "O"], ["O", "B-LOC"]] * 4
    >>> tagger = mm.SequenceTagger(random_state=0)
    >>> GridSearchCV(tagger, {"C": [0.1, 1]}, scoring=chunk_f1_scorer, cv=2).fit(X, y).best_score_
    1.0
    """
    return chunk_f1(y, estimator.predict(X))


def are_chunk_tags(labels: Iterable[Any]) -> bool:
    """Whether labels look like those of chunks: O, and B-, I- (E-, S-, L-, U-) with a type."""
    distinct = set(labels)
    return any(str(label).startswith(("B-", "I-")) for label in distinct) and all(
        map(is_chunk_tag, distinct)
    )


def is_chunk_tag(label: Any) -> bool:
    """Whether a label is O, or B-, I-, E-, S-, L- or U- with a type."""
    if not isinstance(label, str):
        return False
    return label == "O" or (label[1:2] == "-" and label[0] in _PREFIXES)


def _code_tags(tags: list[Any], offsets: Ints, n_sequences: int) -> tuple[Ints32, list[str]]:
    """Number the distinct tags, checking that they belong to the scheme."""
    index = {tag: k for k, tag in enumerate(dict.fromkeys(tags))}
    for tag in index:
        if not isinstance(tag, str) or (tag != "O" and tag.partition("-")[0] not in _PREFIXES):
            row = tags.index(tag)
            # Predicted tags may lie behind the true ones: sequence n + i is sequence i again.
            sequence = int(np.searchsorted(offsets, row, side="right") - 1) % n_sequences
            raise ValueError(
                f"sequence {sequence}: {tag!r} is not a chunk tag, "
                "expected 'O' or B, I, E or S with '-type'"
            )
    return np.fromiter(map(index.__getitem__, tags), np.int32, len(tags)), list(index)


def _find_chunks(codes: Ints32, distinct: list[str], offsets: Ints) -> tuple[_Spans, list[str]]:
    """Find the chunks of flat tag codes, with the names of their types."""
    parts = [tag.partition("-") for tag in distinct]
    names = list(dict.fromkeys(kind for head, _, kind in parts if head != "O"))
    number = {kind: k for k, kind in enumerate(names)}
    head_of = np.array([_PREFIXES.get(head, _OUTSIDE) for head, _, _ in parts], dtype=np.int8)
    type_of = np.array([number.get(kind, -1) for _, _, kind in parts], dtype=np.int64)
    heads, types = head_of[codes], type_of[codes]

    previous_heads, previous_types = np.roll(heads, 1), np.roll(types, 1)
    previous_heads[offsets[offsets < len(codes)]] = _OUTSIDE
    breaks = (
        (heads == _BEGIN)
        | (heads == _SINGLE)
        | (previous_heads == _OUTSIDE)
        | (previous_heads == _END)
        | (previous_heads == _SINGLE)
        | (previous_types != types)
    )
    inside = heads != _OUTSIDE
    starts = np.flatnonzero(inside & breaks)
    # A chunk ends where the next one begins, at the next O, or with its sequence.
    closers = np.append(np.flatnonzero(breaks | ~inside), len(codes))
    ends = closers[np.searchsorted(closers, starts, side="right")]
    return _Spans(starts, ends, types[starts]), names
