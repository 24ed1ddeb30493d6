"""What a report says of rows of features: classes, grades, sets of labels, rankings."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ...metrics import swapped_pairs
from ...metrics.scoring import check_labels
from ...metrics.sets import as_indicators
from ...metrics.tallies import (
    tally_of_grades,
    tally_of_labels,
    tally_of_positives,
    tally_of_rankings,
    tally_of_sets,
)
from ...utils.types import Floats
from ..drawings import ranking
from .subject import Errors, Labels, Subject, as_rows, confidences_of, count_labels, row_in_words

__all__ = ["describe_classes", "describe_measures", "describe_rankings", "describe_sets"]


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
