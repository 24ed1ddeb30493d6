"""How good predicted trees are: labelled constituents as EVALB counts them, and exact matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..formats.trees import Tree, as_tree
from ..tables import named_values, percent
from ..types import Bools, Ints
from .sequences import paired

__all__ = ["BracketScores", "bracket_counts", "bracket_scores"]

#: Tags that EVALB's usual parameters (those of Collins) leave out of sentences.
PUNCTUATION = frozenset({",", ":", "``", "''", "."})
#: Labels they take for one and the same.
EQUAL_LABELS = {"PRT": "ADVP"}


class BracketScores(NamedTuple):
    """Scores of predicted trees, between 0 and 1.

    Attributes
    ----------
    precision, recall, f1 : float
        Over the labelled constituents of all sentences; 0 where there is nothing to divide by.
    exact_match : float
        Share of sentences whose constituents are all right.
    n_true, n_predicted, n_correct : int
        Numbers of constituents.
    n_fallbacks : int
        Number of predictions that a parser made up for want of a derivation.
    """

    precision: float
    recall: float
    f1: float
    exact_match: float
    n_true: int
    n_predicted: int
    n_correct: int
    n_fallbacks: int

    def __str__(self) -> str:
        names = ("precision", "recall", "F1", "trees right")
        rows = [(name, f"{percent(x)} %") for name, x in zip(names, self[:4], strict=True)]
        rows.append(("constituents", f"{self.n_true} true, {self.n_predicted} predicted"))
        if self.n_fallbacks:
            rows.append(("without a derivation", str(self.n_fallbacks)))
        return named_values(rows)


def bracket_scores(
    y_true: Sequence[Any],
    y_pred: Sequence[Any],
    *,
    ignored_tags: Collection[str] = PUNCTUATION,
    ignored_labels: Collection[str] = ("TOP",),
    equal_labels: Mapping[str, str] = EQUAL_LABELS,
) -> BracketScores:
    """Precision, recall and F1 of labelled constituents, as EVALB computes them.

    A constituent counts if its label and both ends are right; constituents that occur twice count
    twice. Tags are no constituents. By default punctuation is left out of the sentences, by the
    tags of the true tree, and constituents without any other word are dropped.

    Parameters
    ----------
    y_true, y_pred : list of trees
        Trees of any kind that `maxmargin.formats.as_tree` takes, over the same words.
    ignored_tags : collection of str
        Tags of words that do not count; give ``()`` to count all.
    ignored_labels : collection of str
        Labels that do not count.
    equal_labels : mapping of str to str
        Labels to be replaced by others first.

    Returns
    -------
    BracketScores

    Raises
    ------
    ValueError
        The lists differ in length, or a pair of trees in its words.

    Examples
    --------
    >>> true = ["(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)) (. .))"]
    >>> flat = ["(S (DT the) (NN cat) (VP (VBZ sleeps)) (. .))"]
    >>> scores = bracket_scores(true, flat)
    >>> scores.precision, round(scores.recall, 3), scores.f1
    (1.0, 0.667, 0.8)
    """
    y_true, y_pred = paired(y_true, y_pred, "trees")
    counts, exact = bracket_counts(
        y_true,
        y_pred,
        ignored_tags=ignored_tags,
        ignored_labels=ignored_labels,
        equal_labels=equal_labels,
    )
    n_true, n_predicted, n_correct = counts.sum(axis=0).tolist()
    return BracketScores(
        n_correct / n_predicted if n_predicted else 0.0,
        n_correct / n_true if n_true else 0.0,
        2 * n_correct / (n_true + n_predicted) if n_correct else 0.0,
        float(np.mean(exact)),
        n_true,
        n_predicted,
        n_correct,
        sum(as_tree(tree).is_fallback for tree in y_pred),
    )


def bracket_counts(
    y_true: Sequence[Any],
    y_pred: Sequence[Any],
    *,
    ignored_tags: Collection[str] = PUNCTUATION,
    ignored_labels: Collection[str] = ("TOP",),
    equal_labels: Mapping[str, str] = EQUAL_LABELS,
) -> tuple[Ints, Bools]:
    """True, predicted and right constituents of each tree in rows, and which trees are all right.

    See `bracket_scores` for the parameters.
    """
    y_true, y_pred = paired(y_true, y_pred, "trees")
    for name, given in (("ignored_tags", ignored_tags), ("ignored_labels", ignored_labels)):
        if isinstance(given, str):
            raise ValueError(f"{name} is {given!r:.40}, expected a collection, such as {{'TOP'}}")
    ignored_tags, ignored_labels = set(ignored_tags), set(ignored_labels)
    counts = np.empty((len(y_true), 3), np.int64)
    exact = np.empty(len(y_true), np.bool_)
    for i, (a, b) in enumerate(zip(y_true, y_pred, strict=True)):
        true, predicted = as_tree(a), as_tree(b)
        tags, words, found = true.tags(), true.words(), predicted.words()
        if len(words) != len(found):
            raise ValueError(f"tree {i} has {len(words)} words in y_true, {len(found)} in y_pred")
        if found not in (words, tags):  # a parser that is given tags has no words
            k = [a == b for a, b in zip(words, found, strict=True)].index(False)
            raise ValueError(
                f"tree {i}: word {k + 1} is {words[k]!r:.40} in y_true, {found[k]!r:.40} in "
                "y_pred; expected trees over the same words"
            )
        places = [0]  # how many words that count precede each word
        for tag in tags:
            places.append(places[-1] + (tag not in ignored_tags))
        mine = _brackets(predicted, places, ignored_labels, equal_labels)
        right = _brackets(true, places, ignored_labels, equal_labels)
        counts[i] = right.total(), mine.total(), (mine & right).total()
        exact[i] = mine == right
    return counts, exact


def _brackets(
    tree: Tree, places: list[int], ignored: Collection[str], equal: Mapping[str, str]
) -> Counter[tuple[str, int, int]]:
    """Labelled constituents in terms of the words that count."""
    return Counter(
        (equal.get(label, label), places[start], places[end])
        for label, start, end in tree.spans()
        if label not in ignored and places[end] > places[start]
    )
