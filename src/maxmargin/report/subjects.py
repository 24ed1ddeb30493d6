"""What a report says of predictions: of rows of features here, of structures in `structures`.

describe_KIND(estimator, X, y, **of_examples) -> Subject, one function for each kind of output;
`maxmargin.registry` says which kind is whose; ``losses`` is for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..features.containers import as_list
from ..features.packing import PackedSequences
from ..features.tokens import tokens_of, word_of
from ..formats import ConlluTreebank, TokenColumns
from ..metrics import swapped_pairs
from ..metrics.scoring import check_labels
from ..metrics.sets import as_indicators
from ..metrics.tallies import (
    Tally,
    tally_of_grades,
    tally_of_labels,
    tally_of_positives,
    tally_of_rankings,
    tally_of_sets,
)
from ..registry import entry_of, import_name
from ..utils.tables import percent
from ..utils.types import Floats
from .drawings import ranking

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
    "describe",
    "describe_classes",
    "describe_measures",
    "describe_rankings",
    "describe_sets",
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


def describe_classes(estimator: Any, X: Any, y: Any) -> Subject:
    """One label for each row; examples that are wrong by far come first."""
    true, found = np.asarray(y, object).tolist(), estimator.predict(X).tolist()
    rows = as_rows(X)
    names = getattr(estimator, "feature_names_in_", None)
    classes = np.asarray(estimator.classes_).tolist()
    order = classes if hasattr(estimator, "thresholds_") else None
    tally = tally_of_labels(true, found) if order is None else tally_of_grades(true, found, order)
    check_labels(true, found, lambda i: f"example {i}")
    wrong = np.array([a != b for a, b in zip(true, found, strict=True)], np.float64)

    def draw(i: int) -> tuple[str, str]:
        title = f"example {i}: {found[i]}, but it is {true[i]}"
        return title, f"<p>{escape(row_in_words(rows[i], names))}</p>"

    confidences = confidences_of(estimator, X, true, found)
    margins = None if order else lambda: _margins(estimator, X, true, classes)
    return Subject(
        tally,
        Errors(wrong * _grades_off(true, found, order), None, margins),
        draw,
        [count_labels("Labels", true, found, lambda label: [(label,)])],
        Labels(true, found),
        confidences,
        order,
        lambda i: (rows[i : i + 1], true[i]),
    )


def _grades_off(true: list[Any], found: list[Any], order: list[Any] | None) -> Any:
    """How far apart two grades are; 1 for classes without an order."""
    if order is None:
        return 1.0
    place = {grade: k for k, grade in enumerate(order)}
    return np.array([abs(place[a] - place[b]) for a, b in zip(true, found, strict=True)])


def _margins(estimator: Any, X: Any, true: list[Any], classes: list[Any]) -> Any:
    """How far the best score is above that of the right class; NaN for unknown ones."""
    place = {label: k for k, label in enumerate(classes)}
    right = np.array([place.get(label, -1) for label in true])
    scores = np.asarray(estimator.decision_function(X), np.float64)
    if scores.ndim == 1:  # two classes: how far above the second one is
        scores = np.column_stack([-scores, scores])
    known = scores[np.arange(len(right)), right]
    return np.where(right >= 0, scores.max(axis=1) - known, np.nan)


def describe_measures(estimator: Any, X: Any, y: Any) -> Subject:
    """Rows by their scores; those far on the wrong side come first."""
    true, found = np.asarray(y).tolist(), estimator.predict(X).tolist()
    negative, positive = estimator.classes_.tolist()
    for i, label in enumerate(true):
        if label not in (negative, positive):
            raise ValueError(
                f"y[{i}] is {label!r:.40}, which is not one of the classes {[negative, positive]}"
            )
    scores = np.asarray(estimator.decision_function(X), np.float64)
    is_positive = np.array([label == positive for label in true])
    is_found = np.array([label == positive for label in found])
    rows = as_rows(X)
    names = getattr(estimator, "feature_names_in_", None)

    def draw(i: int) -> tuple[str, str]:
        title = f"row {i}: {found[i]} (score {scores[i]:.4g}), but it is {true[i]}"
        return title, f"<p>{escape(row_in_words(rows[i], names))}</p>"

    return Subject(
        tally_of_positives(is_positive, is_found),
        Errors(is_positive != is_found, None, lambda: np.abs(scores)),
        draw,
        [count_labels("Labels", true, found, lambda label: [(label,)])],
        Labels(true, found),
        example_at=lambda i: (rows[i : i + 1], true[i]),
    )


def describe_sets(estimator: Any, X: Any, y: Any) -> Subject:
    """The labels of each row."""
    predicted = estimator.predict(X)
    indicators = as_indicators(y, predicted.shape[0])
    if indicators.shape != predicted.shape:
        raise ValueError(f"y has {indicators.shape[1]} labels, the model {predicted.shape[1]}")
    predicted = predicted.toarray() if hasattr(predicted, "toarray") else np.asarray(predicted)
    true, found = (
        [np.flatnonzero(row).tolist() for row in table] for table in (indicators, predicted)
    )
    rows = as_rows(X)
    names = getattr(estimator, "feature_names_in_", None)

    def draw(i: int) -> tuple[str, str]:
        missed, extra = sorted({*true[i]} - {*found[i]}), sorted({*found[i]} - {*true[i]})
        title = f"example {i}: {len(missed)} labels missed, {len(extra)} false"
        kept = sorted({*true[i]} & {*found[i]})
        labels = (
            f"right {kept or '-'}; missed <span class='bad'>{missed or '-'}</span>; "
            f"false <span class='bad'>{extra or '-'}</span>"
        )
        return title, f"<p>{labels}</p><p>{escape(row_in_words(rows[i], names))}</p>"

    errors = [len({*a} ^ {*b}) for a, b in zip(true, found, strict=True)]
    return Subject(
        tally_of_sets(true, found, indicators.shape[1]),
        Errors(errors, [len({*a} | {*b}) for a, b in zip(true, found, strict=True)]),
        draw,
        [count_labels("Labels", true, found, lambda own: [(k,) for k in own])],
        example_at=lambda i: (rows[i : i + 1], indicators[i]),
    )


def describe_rankings(estimator: Any, X: Any, y: Any, qid: Any = None) -> Subject:
    """Places of the documents of each query."""
    relevance, scores = np.asarray(y, np.float64), estimator.predict(X)
    rows = as_rows(X)
    queries = estimator._judged_queries(qid, len(relevance))
    names, codes = np.unique(queries, return_inverse=True)
    documents = [np.flatnonzero(codes == k) for k in range(len(names))]
    swapped = [swapped_pairs(relevance[rows], scores[rows]) for rows in documents]

    n_pairs = np.array([_n_pairs(relevance[rows]) for rows in documents])
    wrong = np.nan_to_num(swapped) * n_pairs

    def margins() -> Floats:
        found = np.zeros(len(documents))
        for i, own in enumerate(documents):
            if n_pairs[i]:
                a, b = _worst_pair(relevance[own], scores[own])
                found[i] = scores[own[a]] - scores[own[b]]
        return found

    def draw(i: int) -> tuple[str, str]:
        title = f"query {names[i]}: {wrong[i]:g} of {n_pairs[i]} pairs in the wrong order"
        worth, own = relevance[documents[i]], scores[documents[i]]
        a, b = (int(k) for k in _worst_pair(worth, own))
        pair = f"worst: row {documents[i][a]} above row {documents[i][b]}"
        return title, f'{ranking(worth, own)}<p class="muted">{pair}</p>'

    def example_at(i: int) -> tuple[Any, Any]:
        a, b = _worst_pair(relevance[documents[i]], scores[documents[i]])
        return rows[[documents[i][a]]], rows[[documents[i][b]]]

    return Subject(
        tally_of_rankings(relevance, scores, queries),
        Errors(wrong, n_pairs, margins),
        draw,
        example_at=example_at,
    )


def _n_pairs(relevance: Floats) -> int:
    """Pairs of documents of different relevance."""
    _, counts = np.unique(relevance, return_counts=True)
    return int((len(relevance) ** 2 - (counts**2).sum()) // 2)


def _worst_pair(relevance: Floats, scores: Floats) -> tuple[int, int]:
    """A document and one that is worth more, but scores less, by as much as any."""
    found = []
    for worth in np.unique(relevance)[1:]:
        less, own = np.flatnonzero(relevance < worth), np.flatnonzero(relevance == worth)
        a, b = less[np.argmax(scores[less])], own[np.argmin(scores[own])]
        found.append((float(scores[a] - scores[b]), int(a), int(b)))
    return max(found)[1:]


_KINDS_OF_ROWS = ("classes", "measures", "rankings", "sets")


def describe(estimator: Any, X: Any, y: Any = None, **of_examples: Any) -> Subject:
    """Describe what an estimator predicts for examples whose outputs are known."""
    entry = entry_of(type(estimator))
    kind = "losses" if entry is None else entry.report
    module = "subjects" if kind in _KINDS_OF_ROWS else "structures"
    describe_kind = import_name(f"report.{module}", f"describe_{kind}")
    present = {name: value for name, value in of_examples.items() if value is not None}
    subject: Subject = describe_kind(estimator, X, y, **present)
    return subject
