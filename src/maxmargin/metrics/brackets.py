"""How good predicted trees are: labelled constituents as EVALB counts them, and exact matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ..formats.trees import Tree, as_tree
from ..tables import named_values, percent

__all__ = ["BracketScores", "bracket_scores"]

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
        The lists differ in length, or a pair of trees in the number of words.

    Examples
    --------
    >>> true = ["(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)) (. .))"]
    >>> flat = ["(S (DT the) (NN cat) (VP (VBZ sleeps)) (. .))"]
    >>> scores = bracket_scores(true, flat)
    >>> scores.precision, round(scores.recall, 3), scores.f1
    (1.0, 0.667, 0.8)
    """
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} trees, y_pred has {len(y_pred)}")
    if len(y_true) == 0:
        raise ValueError("expected at least one tree, found none")
    n_true = n_predicted = n_correct = n_exact = n_fallbacks = 0
    for i, (a, b) in enumerate(zip(y_true, y_pred, strict=True)):
        true, predicted = as_tree(a), as_tree(b)
        tags = true.tags()
        n_words = len(predicted.words())
        if len(tags) != n_words:
            raise ValueError(f"tree {i} has {len(tags)} words in y_true, {n_words} in y_pred")
        places = [0]  # how many words that count precede each word
        for tag in tags:
            places.append(places[-1] + (tag not in ignored_tags))
        mine = _brackets(predicted, places, ignored_labels, equal_labels)
        right = _brackets(true, places, ignored_labels, equal_labels)
        common = (mine & right).total()
        n_true += right.total()
        n_predicted += mine.total()
        n_correct += common
        n_exact += mine == right
        n_fallbacks += predicted.is_fallback
    return BracketScores(
        n_correct / n_predicted if n_predicted else 0.0,
        n_correct / n_true if n_true else 0.0,
        2 * n_correct / (n_true + n_predicted) if n_correct else 0.0,
        n_exact / len(y_true),
        n_true,
        n_predicted,
        n_correct,
        n_fallbacks,
    )


def _brackets(
    tree: Tree, places: list[int], ignored: Collection[str], equal: Mapping[str, str]
) -> Counter[tuple[str, int, int]]:
    """Labelled constituents in terms of the words that count."""
    return Counter(
        (equal.get(label, label), places[start], places[end])
        for label, start, end in tree.spans()
        if label not in ignored and places[end] > places[start]
    )
