"""What scores share: true and predicted outputs, checked; precision, recall and F1 from counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from numbers import Number
from typing import Any, NamedTuple

import numpy as np

from ..features.containers import as_list
from ..utils.tables import columns, percent
from ..utils.types import Ints
from ..utils.validation import is_list

__all__ = [
    "NAMES",
    "Averages",
    "TypeScores",
    "check_labels",
    "flat_labels",
    "flat_pair",
    "flatten",
    "listed",
    "macro_average",
    "paired",
    "score_table",
    "scores_of",
    "sorted_labels",
    "sums_of",
]

NAMES = ("y_true", "y_pred")


def listed(values: Any, name: str, what: str) -> Any:
    """What is given for each example, as something with a length; ValueError unless it is a list.

    A generator becomes a list. A string, a mapping or a set has an iterator too, but no examples.
    """
    found = as_list(values, name)
    if not is_list(found) or hasattr(found, "toarray"):
        raise ValueError(f"{name} is {_shown(found)}, expected a list of {what}")
    return found


def paired(
    y_true: Any, y_pred: Any, what: str = "sequences", names: tuple[str, str] = NAMES
) -> tuple[Any, Any]:
    """Two lists of the same length, which is 1 at least; ValueError otherwise."""
    true, predicted = (listed(y, n, what) for y, n in zip((y_true, y_pred), names, strict=True))
    if len(true) != len(predicted):
        raise ValueError(
            f"{names[0]} has {len(true)} {what}, {names[1]} has {len(predicted)}; expected the "
            "same number"
        )
    if len(true) == 0:
        raise ValueError(f"{names[0]} has no {what}, expected at least one")
    return true, predicted


def flat_pair(
    y_true: Sequence[Any], y_pred: Sequence[Any], names: tuple[str, str] = NAMES
) -> tuple[list[Any], list[Any], Ints]:
    """Check that two lists of sequences have the same lengths and flatten both."""
    pair = paired(y_true, y_pred, names=names)
    sequences = [_as_sequences(y, name) for y, name in zip(pair, names, strict=True)]
    lengths = [list(map(len, found)) for found in sequences]
    if lengths[0] != lengths[1]:
        for i, (n_true, n_predicted) in enumerate(zip(*lengths, strict=True)):
            if n_true != n_predicted:
                raise ValueError(
                    f"sequence {i} has {n_true} labels in {names[0]}, {n_predicted} in {names[1]}"
                )
    offsets = np.zeros(len(lengths[0]) + 1, dtype=np.int64)
    np.cumsum(lengths[0], out=offsets[1:])
    if offsets[-1] == 0:
        raise ValueError("all sequences are empty, expected at least one label")
    return flatten(sequences[0]), flatten(sequences[1]), offsets


def _as_sequences(y: Any, name: str) -> list[Any]:
    """Sequences, each with a length and an order; ValueError for others."""
    found = []
    for i, given in enumerate(y):
        sequence = given if type(given) is list else as_list(given, name)
        if type(sequence) is not list and not is_list(sequence):
            raise ValueError(
                f"sequence {i} of {name} is {_shown(given)}, expected a sequence of labels"
            )
        found.append(sequence)
    return found


def flat_labels(y_true: Sequence[Any], y_pred: Sequence[Any]) -> tuple[list[Any], list[Any], Ints]:
    """Labels of the tokens of two lists of sequences, flat, checked by `check_labels`."""
    true, predicted, offsets = flat_pair(y_true, y_pred)

    def location(k: int) -> str:
        i = int(np.searchsorted(offsets, k, side="right")) - 1
        return f"sequence {i}, token {k - int(offsets[i])}"

    check_labels(true, predicted, location)
    return true, predicted, offsets


def check_labels(
    true: Sequence[Any], predicted: Sequence[Any], location: Callable[[int], str]
) -> None:
    """Raise ValueError for what is no label, and for labels that can never match.

    ``None`` and NaN mean that a label is not known. A list in the place of a label means that
    sequences are nested once too often. Text and numbers are never equal: ``"1"`` is not ``1``.
    """
    kinds: list[dict[str, type]] = []
    for name, labels in zip(NAMES, (true, predicted), strict=True):
        types = _types(labels)
        for kind in types:
            may_be_nan = issubclass(kind, (float, np.floating))
            if may_be_nan or issubclass(kind, (type(None), list, dict, set, frozenset, np.ndarray)):
                for k, label in enumerate(labels):
                    if type(label) is kind and (not may_be_nan or label != label):
                        raise ValueError(
                            f"{name}, {location(k)}: expected a label, got {_shown(label)}"
                        )
        kinds.append({_kind(kind): kind for kind in types})
    if kinds[0] and kinds[1] and not kinds[0].keys() & kinds[1].keys():
        first, second = (
            f"{name} has labels such as {labels[0]!r:.40} ({type(labels[0]).__name__})"
            for name, labels in zip(NAMES, (true, predicted), strict=True)
        )
        raise ValueError(
            f"{first}, {second}; these never match: convert one to the type of the other"
        )


def _types(labels: Sequence[Any]) -> set[type]:
    """Types of labels."""
    try:
        return set(map(type, set(labels)))
    except TypeError:  # those that are no labels may not be hashable
        return set(map(type, labels))


def _kind(kind: type) -> str:
    """What labels of a type can be equal to."""
    if issubclass(kind, str):
        return "text"
    return "number" if issubclass(kind, (Number, np.bool_)) else kind.__name__


def _shown(value: Any) -> str:
    """A value and its type, for messages."""
    return f"{value!r:.40} ({type(value).__name__})"


def sums_of(values: Ints, offsets: Ints) -> Ints:
    """Sum over each sequence; 0 of an empty one."""
    totals = np.zeros(len(values) + 1, values.dtype)
    np.cumsum(values, out=totals[1:])
    sums: Ints = np.diff(totals[offsets])
    return sums


def flatten(sequences: Sequence[Any]) -> list[Any]:
    """Labels of all sequences in one list, as Python values."""
    plain = (s.tolist() if isinstance(s, np.ndarray) else s for s in sequences)
    return list(chain.from_iterable(plain))


def sorted_labels(labels: set[Any]) -> list[Any]:
    """Labels in their own order, or in that of their names where they are of several types."""
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=str)


class Averages(NamedTuple):
    """Precision, recall and F1 over several types or labels."""

    precision: float
    recall: float
    f1: float


class TypeScores(NamedTuple):
    """Scores of the chunks of one type, or of one label."""

    precision: float
    recall: float
    f1: float
    n_true: int
    n_predicted: int
    n_correct: int


def scores_of(n_true: int, n_predicted: int, n_correct: int) -> TypeScores:
    """Precision, recall and F1 from counts; 0 where there is nothing to divide by."""
    precision = n_correct / n_predicted if n_predicted else 0.0
    recall = n_correct / n_true if n_true else 0.0
    f1 = 2 * n_correct / (n_true + n_predicted) if n_correct else 0.0
    return TypeScores(precision, recall, f1, n_true, n_predicted, n_correct)


def macro_average(each: Mapping[Any, TypeScores]) -> Averages:
    """Plain means, in which all types or labels count the same."""
    n = max(len(each), 1)
    return Averages(*(sum(scores[k] for scores in each.values()) / n for k in range(3)))


def score_table(title: str, each: Mapping[Any, TypeScores], micro: Averages) -> str:
    """A row for each type or label, then the averages; shares in per cent."""
    number = sum(scores.n_true for scores in each.values())
    rows = [(str(name), scores[:3], scores.n_true) for name, scores in each.items()]
    rows += [("micro average", micro, number), ("macro average", macro_average(each), number)]
    heading = (title, "precision", "recall", "F1", "number")
    return columns([heading, *((name, *map(percent, s), str(n)) for name, s, n in rows)])
