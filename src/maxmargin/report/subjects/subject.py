"""What reports need to know of predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ...features.containers import as_list
from ...features.packing import PackedSequences
from ...features.tokens import tokens_of, word_of
from ...formats import ConlluTreebank, TokenColumns
from ...metrics.tallies import Tally
from ...utils.tables import percent
from ...utils.types import Floats

__all__ = [
    "ORDERS",
    "Errors",
    "LabelCounts",
    "Labels",
    "Subject",
    "Worst",
    "as_rows",
    "confidences_of",
    "count_labels",
    "known_labels",
    "row_in_words",
    "score_gaps",
    "sequence_at",
    "words_of",
    "worst_first",
]

SHOWN = 30  # worst examples
ORDERS = ("rate", "margin", "count")  # by which examples are the worst


class Labels(NamedTuple):
    """True and found labels of all positions, for confusions."""

    true: list[Any]
    found: list[Any]
    note: str = ""


class LabelCounts(NamedTuple):
    """For every label: how many there are, were found, and are right, example by example."""

    title: str
    note: str  # what is right
    names: list[Any]
    counts: list[tuple[Floats, Floats, Floats]]


class Errors(NamedTuple):
    """How wrong every example is.

    Attributes
    ----------
    counts : array of shape (n_examples,)
        Errors; 0 where all is right.
    sizes : array of shape (n_examples,), optional
        How many there could be; without it, ``counts`` is the rate itself.
    margins : callable, optional
        By how much the model prefers what it found to the truth; where that is not known, NaN.
    """

    counts: ArrayLike
    sizes: ArrayLike | None = None
    margins: Callable[[], Floats] | None = None


class Worst(NamedTuple):
    """An example that went wrong: its number, heading, and drawing."""

    example: int
    title: str
    drawing: str


class Subject(NamedTuple):
    """Predictions of a model on examples whose outputs are known.

    Attributes
    ----------
    tally : Tally
        Scores, unit by unit.
    errors : Errors
        How wrong each example is.
    draw : callable
        Heading and drawing of the example of this number.
    by_label : list of LabelCounts
        For scores of each label; none where outputs have no labels.
    labels : Labels or None
        For confusions; None where labels are not confused one for another.
    confidences : pair of arrays, or None
        How sure the model was of what it found, and whether it was right, position by position.
    order : list or None
        Labels from the lowest to the highest, if they have an order.
    example_at : callable or None
        Of the example of this number the input and the true output, for explanations; where there
        is no comparing with the truth, None instead of it.
    """

    tally: Tally
    errors: Errors
    draw: Callable[[int], tuple[str, str]]
    by_label: Sequence[LabelCounts] = ()
    labels: Labels | None = None
    confidences: tuple[Floats, Floats] | None = None
    order: list[Any] | None = None
    example_at: Callable[[int], tuple[Any, Any]] | None = None


def worst_first(subject: Subject, order: str) -> list[Worst]:
    """Draw the examples that went wrong, the worst first, by one of `ORDERS`."""
    counts, sizes, find_margins = subject.errors
    errors = np.asarray(counts, np.float64)
    rates = errors if sizes is None else errors / np.maximum(np.asarray(sizes, np.float64), 1.0)
    if order == "margin" and find_margins is None:
        raise ValueError(
            "worst='margin': this model does not score given outputs; choose 'rate' or 'count'"
        )
    # Outputs of one decision are all as wrong as each other but for their margins.
    has_margins = find_margins is not None and (order == "margin" or sizes is None)
    margins = find_margins() if has_margins and find_margins else np.zeros(len(errors))
    margins = np.where(np.isfinite(margins), margins, -np.inf)
    keys = {
        "rate": (-margins, -errors, -rates),
        "count": (-margins, -rates, -errors),
        "margin": (-rates, -margins),
    }
    worst = [i for i in np.lexsort(keys[order]).tolist() if errors[i] > 0.0][:SHOWN]
    found = []
    for i in worst:
        title, drawing = subject.draw(i)
        title += "" if sizes is None else f" ({percent(rates[i])} %)"
        title += f", margin {margins[i]:.4g}" if order == "margin" and margins[i] > -np.inf else ""
        found.append(Worst(i, title, drawing))
    return found


def count_labels(
    title: str,
    true: Sequence[Any],
    found: Sequence[Any],
    items: Callable[[Any], Iterable[tuple[Any, ...]]] = list,
    note: str = "",
) -> LabelCounts:
    """Count the items of each output, such as (place, label), by the label, which comes last."""
    both = [[set(items(own)) for own in each] for each in (true, found)]
    both.append([a & b for a, b in zip(*both, strict=True)])
    names = sorted({item[-1] for each in both for own in each for item in own}, key=str)
    number = {name: k for k, name in enumerate(names)}
    tables = [np.zeros((len(names), len(true))) for _ in both]
    for table, each in zip(tables, both, strict=True):
        for i, own in enumerate(each):
            for item in own:
                table[number[item[-1]], i] += 1.0
    return LabelCounts(title, note, names, list(zip(*tables, strict=True)))


def score_gaps(
    estimator: Any,
    X: Any,
    true: Sequence[Any],
    found: Sequence[Any],
    is_known: Callable[[Any], bool] = lambda output: True,
) -> Floats:
    """By how much a model's scores of what it found are above those of the truth.

    The truth of an example may have labels that the model does not know: it gets NaN.
    """
    known = [is_known(output) for output in true]
    given = [a if k else b for a, b, k in zip(true, found, known, strict=True)]
    gaps: Floats = estimator.score_outputs(X, found) - estimator.score_outputs(X, given)
    return np.where(known, gaps, np.nan)


def known_labels(y: Any, positions: str = "token") -> list[list[Any]]:
    """Labels of all positions of all examples, of Python's own types; ValueError for unknown ones.

    Labels may be tuples, which numpy would take apart.
    """
    rows = [own.tolist() if isinstance(own, np.ndarray) else list(own) for own in as_list(y, "y")]
    for i, own in enumerate(rows):
        for t, label in enumerate(own):
            parts = label if isinstance(label, (tuple, list)) else (label,)
            if any(part is None or isinstance(part, (set, frozenset)) for part in parts):
                raise ValueError(
                    f"y[{i}], {positions} {t}: {label!r:.40} is not known for sure; a report needs "
                    "outputs that are all known"
                )
    return rows


def confidences_of(
    estimator: Any, X: Any, true: Sequence[Any], found: Sequence[Any]
) -> tuple[Floats, Floats] | None:
    """How sure a calibrated model is of the labels found, position by position, in order."""
    if not hasattr(estimator, "calibration_"):
        return None
    tables = estimator.predict_proba(X)
    flat = np.vstack(tables) if isinstance(tables, list) else np.asarray(tables)
    number = {label: k for k, label in enumerate(np.asarray(estimator.classes_).tolist())}
    columns = np.array([number[label] for label in found])
    right = np.array([a == b for a, b in zip(true, found, strict=True)], np.float64)
    return flat[np.arange(len(columns)), columns], right


MOST_VALUES = 12


def sequence_at(X: Any, i: int) -> Any:
    """The i-th sequence of whatever taggers take."""
    if isinstance(X, TokenColumns):
        start, stop = X.offsets[i], X.offsets[i + 1]
        return list(zip(*(column[start:stop] for column in X.columns), strict=True))
    if isinstance(X, PackedSequences):
        return X.tokens[X.offsets[i] : X.offsets[i + 1]]
    if isinstance(X, ConlluTreebank):
        return X.select([i])
    return X[i]


def words_of(sequence: Any) -> list[str]:
    """What stands for each token of a sequence: its word, if it can be told."""
    if isinstance(sequence, (np.ndarray, sp.sparray, sp.spmatrix)):
        return [str(t + 1) for t in range(sequence.shape[0])]
    words = [word_of(token) for token in tokens_of(sequence) or sequence]
    return [str(t + 1) if word is None else word for t, word in enumerate(words)]


def as_rows(X: Any) -> Any:
    """Rows of features that can be taken one by one."""
    return X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)


def row_in_words(row: Any, names: Sequence[str] | None) -> str:
    """The largest values of a row of features, by name."""
    values = np.asarray(row.todense() if sp.issparse(row) else row, np.float64).ravel()
    order = np.argsort(-np.abs(values), kind="stable")[:MOST_VALUES]
    shown = [
        f"{names[f] if names is not None else f'x{f}'} = {values[f]:.4g}"
        for f in order.tolist()
        if values[f]
    ]
    return ", ".join(shown) or "all features are 0"
