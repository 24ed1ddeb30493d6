"""How good predictions are: chunks (as conlleval counts), labels of tokens, sequences, trees."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AttachmentScores",
    "ChunkScores",
    "TypeScores",
    "attachment_scores",
    "chunk_scores",
    "chunks",
    "hamming",
    "sequence_accuracy",
    "token_accuracy",
]

_OUTSIDE, _BEGIN, _INSIDE, _END, _SINGLE = range(5)
# L and U are the names of E and S in the BILOU scheme.
_PREFIXES = {"B": _BEGIN, "I": _INSIDE, "E": _END, "L": _END, "S": _SINGLE, "U": _SINGLE}


class TypeScores(NamedTuple):
    """Scores of the chunks of one type."""

    precision: float
    recall: float
    f1: float
    n_true: int
    n_predicted: int
    n_correct: int


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


class _Spans(NamedTuple):
    """Chunks in flat token positions: first token, one past the last token, type number."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    types: NDArray[np.int64]


class AttachmentScores(NamedTuple):
    """Scores of predicted dependency trees, between 0 and 1.

    Attributes
    ----------
    uas : float
        Share of tokens with the right head.
    las : float or None
        Share of tokens with the right head and label; None for trees without labels.
    exact : float
        Share of sentences without an error in heads (or labels).
    """

    uas: float
    las: float | None
    exact: float


def attachment_scores(
    y_true: Sequence[Any], y_pred: Sequence[Any], *, ignore: Sequence[Sequence[bool]] | None = None
) -> AttachmentScores:
    """Unlabelled and labelled attachment score of dependency trees.

    Parameters
    ----------
    y_true, y_pred : list of trees
        Heads of the tokens of each sentence, or pairs (head, label).
    ignore : list of sequences of bool, optional
        Tokens that do not count, such as punctuation; by default all count.

    Returns
    -------
    AttachmentScores

    Raises
    ------
    ValueError
        Lengths differ, or only some trees have labels; the message names the first bad sentence.

    Examples
    --------
    >>> attachment_scores([[(2, "det"), (0, "root")]], [[(2, "amod"), (0, "root")]])
    AttachmentScores(uas=1.0, las=0.5, exact=0.0)
    """
    true, predicted, offsets = _flat_pair(y_true, y_pred)
    labeled = {isinstance(arc, tuple) for arc in (*true, *predicted)}
    if len(labeled) == 2:
        raise ValueError("expected trees with labels, or trees without, found both")
    counts = np.ones(len(true), dtype=bool)
    if ignore is not None:
        counts = ~np.array(_flat_pair(y_true, ignore)[1], dtype=bool)
        if not counts.any():
            raise ValueError("all tokens are ignored, expected at least one that counts")
    right = np.array([a == b for a, b in zip(true, predicted, strict=True)])
    heads, las = right, None
    if labeled == {True}:
        heads = np.array([a[0] == b[0] for a, b in zip(true, predicted, strict=True)])
        las = float(right[counts].mean())
    wrong = np.add.reduceat((~right & counts).astype(np.int64), offsets[:-1])
    return AttachmentScores(float(heads[counts].mean()), las, float(np.mean(wrong == 0)))


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
    values = _flatten([tags])
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
    true, predicted, offsets = _flat_pair(y_true, y_pred)
    both = true + predicted
    twice = np.concatenate([offsets, offsets[1:] + offsets[-1]])
    codes, distinct = _code_tags(both, twice, len(y_true))
    spans, names = _find_chunks(codes, distinct, twice)

    n_tokens = int(offsets[-1])
    is_true = spans.starts < n_tokens
    n_true = np.bincount(spans.types[is_true], minlength=len(names))
    n_predicted = np.bincount(spans.types[~is_true], minlength=len(names))
    # The true chunk that starts at a token, if any, as (end, type), to compare with the predicted.
    end_at, type_at = np.full(n_tokens, -1), np.full(n_tokens, -1)
    end_at[spans.starts[is_true]] = spans.ends[is_true]
    type_at[spans.starts[is_true]] = spans.types[is_true]
    starts, types = spans.starts[~is_true] - n_tokens, spans.types[~is_true]
    correct = (end_at[starts] == spans.ends[~is_true] - n_tokens) & (type_at[starts] == types)
    n_correct = np.bincount(types[correct], minlength=len(names))

    per_type = {
        names[k]: _scores(int(n_true[k]), int(n_predicted[k]), int(n_correct[k]))
        for k in sorted(range(len(names)), key=names.__getitem__)
        if n_true[k] + n_predicted[k] > 0
    }
    total = _scores(int(n_true.sum()), int(n_predicted.sum()), int(n_correct.sum()))
    accuracy = float(np.mean(codes[:n_tokens] == codes[n_tokens:]))
    return ChunkScores(total.precision, total.recall, total.f1, accuracy, per_type)


def token_accuracy(y_true: Sequence[Any], y_pred: Sequence[Any]) -> float:
    """Share of tokens with the right label.

    Parameters
    ----------
    y_true, y_pred : list of sequences of labels
        Of the same lengths; labels of any type.

    Returns
    -------
    float
    """
    wrong, lengths = _count_wrong(y_true, y_pred)
    return float(1.0 - wrong.sum() / lengths.sum())


def sequence_accuracy(y_true: Sequence[Any], y_pred: Sequence[Any]) -> float:
    """Share of sequences with all labels right.

    Parameters
    ----------
    y_true, y_pred : list of sequences of labels
        Of the same lengths; labels of any type.

    Returns
    -------
    float
    """
    wrong, _ = _count_wrong(y_true, y_pred)
    return float(np.mean(wrong == 0))


def hamming(
    y_true: Sequence[Any], y_pred: Sequence[Any], *, normalize: bool = False
) -> NDArray[np.float64]:
    """Hamming loss of each sequence: the number of wrong labels.

    Parameters
    ----------
    y_true, y_pred : list of sequences of labels
        Of the same lengths; labels of any type.
    normalize : bool, default=False
        Divide by the length of the sequence.

    Returns
    -------
    ndarray of float64, shape (n_sequences,)
    """
    wrong, lengths = _count_wrong(y_true, y_pred)
    return wrong / lengths if normalize else wrong.astype(np.float64)


def _scores(n_true: int, n_predicted: int, n_correct: int) -> TypeScores:
    """Precision, recall and F1 from counts."""
    precision = n_correct / n_predicted if n_predicted else 0.0
    recall = n_correct / n_true if n_true else 0.0
    f1 = 2 * n_correct / (n_true + n_predicted) if n_correct else 0.0
    return TypeScores(precision, recall, f1, n_true, n_predicted, n_correct)


def _flat_pair(
    y_true: Sequence[Any], y_pred: Sequence[Any]
) -> tuple[list[Any], list[Any], NDArray[np.int64]]:
    """Check that two lists of sequences have the same lengths and flatten both."""
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sequences, y_pred has {len(y_pred)}")
    if len(y_true) == 0:
        raise ValueError("expected at least one sequence, found none")
    for i, (true, predicted) in enumerate(zip(y_true, y_pred, strict=True)):
        for name, sequence in (("y_true", true), ("y_pred", predicted)):
            if isinstance(sequence, (str, bytes)) or not hasattr(sequence, "__len__"):
                raise ValueError(
                    f"sequence {i} of {name} is {sequence!r:.40}, expected a sequence of labels"
                )
        if len(true) != len(predicted):
            raise ValueError(
                f"sequence {i} has {len(true)} labels in y_true, {len(predicted)} in y_pred"
            )
        if len(true) == 0:
            raise ValueError(f"sequence {i} is empty, expected at least one label")
    offsets = np.zeros(len(y_true) + 1, dtype=np.int64)
    np.cumsum([len(sequence) for sequence in y_true], out=offsets[1:])
    return _flatten(y_true), _flatten(y_pred), offsets


def _flatten(sequences: Sequence[Any]) -> list[Any]:
    """Labels of all sequences in one list, as Python values."""
    plain = (s.tolist() if isinstance(s, np.ndarray) else s for s in sequences)
    return list(chain.from_iterable(plain))


def _count_wrong(
    y_true: Sequence[Any], y_pred: Sequence[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number of wrong labels and of all labels in each sequence."""
    true, predicted, offsets = _flat_pair(y_true, y_pred)
    differs = np.fromiter(
        (a != b for a, b in zip(true, predicted, strict=True)), np.int64, len(true)
    )
    return np.add.reduceat(differs, offsets[:-1]), np.diff(offsets)


def _code_tags(
    tags: list[Any], offsets: NDArray[np.int64], n_sequences: int
) -> tuple[NDArray[np.int32], list[str]]:
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


def _find_chunks(
    codes: NDArray[np.int32], distinct: list[str], offsets: NDArray[np.int64]
) -> tuple[_Spans, list[str]]:
    """Find the chunks of flat tag codes, with the names of their types."""
    parts = [tag.partition("-") for tag in distinct]
    names = list(dict.fromkeys(kind for head, _, kind in parts if head != "O"))
    number = {kind: k for k, kind in enumerate(names)}
    head_of = np.array([_PREFIXES.get(head, _OUTSIDE) for head, _, _ in parts], dtype=np.int8)
    type_of = np.array([number.get(kind, -1) for _, _, kind in parts], dtype=np.int64)
    heads, types = head_of[codes], type_of[codes]

    previous_heads, previous_types = np.roll(heads, 1), np.roll(types, 1)
    previous_heads[offsets[:-1]] = _OUTSIDE
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
