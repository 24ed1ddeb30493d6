"""How good predicted trees are: dependencies, and constituents as EVALB counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from numbers import Integral
from operator import eq, itemgetter
from typing import Any, NamedTuple

import numpy as np

from ..formats.trees import Tree, as_tree
from ..utils.tables import named_values, percent
from ..utils.types import Bools, Ints
from .scoring import (
    NAMES,
    Averages,
    TypeScores,
    check_labels,
    flat_pair,
    paired,
    score_table,
    scores_of,
    sums_of,
)

__all__ = [
    "Arcs",
    "AttachmentScores",
    "BracketScores",
    "RelationScores",
    "attachment_scores",
    "bracket_counts",
    "bracket_scores",
    "read_arcs",
    "relation_scores",
]


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

    def __str__(self) -> str:
        rows = [("unlabelled attachment", self.uas), ("labelled attachment", self.las)]
        rows.append(("sentences right", self.exact))
        return named_values((name, f"{percent(x)} %") for name, x in rows if x is not None)


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
        Lengths differ, only some trees have labels, or something is no head or label; the message
        names the first bad sentence.

    Examples
    --------
    >>> attachment_scores([[(2, "det"), (0, "root")]], [[(2, "amod"), (0, "root")]])
    AttachmentScores(uas=1.0, las=0.5, exact=0.0)
    """
    arcs = read_arcs(y_true, y_pred)
    counts = np.ones(len(arcs.right), dtype=bool)
    if ignore is not None:
        counts = ~_ignored(y_true, ignore)
        if not counts.any():
            raise ValueError("all tokens are ignored, expected at least one that counts")
    las = None if arcs.true is None else float(arcs.right[counts].mean())
    wrong = sums_of((~arcs.right & counts).astype(np.int64), arcs.offsets)
    return AttachmentScores(float(arcs.right_heads[counts].mean()), las, float(np.mean(wrong == 0)))


class Arcs(NamedTuple):
    """Arcs of true and predicted trees, flat: which are right, and their labels."""

    right_heads: Bools
    right: Bools  # head and label; heads alone where there are no labels
    true: list[Any] | None  # labels
    predicted: list[Any] | None
    offsets: Ints


def read_arcs(y_true: Sequence[Any], y_pred: Sequence[Any]) -> Arcs:
    """Compare trees; ValueError unless they are heads, or pairs (head, label)."""
    *both, offsets = flat_pair(y_true, y_pred)
    labeled = {issubclass(kind, (tuple, list)) for arcs in both for kind in set(map(type, arcs))}
    if len(labeled) == 2:
        raise ValueError("expected trees with labels, or trees without, found both")
    if labeled == {False}:
        right = _heads(both[0], NAMES[0], offsets) == _heads(both[1], NAMES[1], offsets)
        return Arcs(right, right, None, None, offsets)
    for name, arcs in zip(NAMES, both, strict=True):
        if set(map(len, arcs)) != {2}:
            k = next(k for k, arc in enumerate(arcs) if len(arc) != 2)
            raise ValueError(
                f"{name}, {_location(k, offsets)}: expected a pair (head, label), got "
                f"{arcs[k]!r:.40}"
            )
    heads = (
        _heads(list(map(itemgetter(0), arcs)), n, offsets)
        for arcs, n in zip(both, NAMES, strict=True)
    )
    right_heads = np.equal(*heads)
    true, predicted = (list(map(itemgetter(1), arcs)) for arcs in both)
    check_labels(true, predicted, lambda k: _location(k, offsets))
    right = right_heads & np.fromiter(map(eq, true, predicted), np.bool_, len(true))
    return Arcs(right_heads, right, true, predicted, offsets)


def _heads(given: list[Any], name: str, offsets: Ints) -> Ints:
    """Heads as numbers; ValueError for what is no number of a word of the sentence."""
    lengths = np.repeat(np.diff(offsets), np.diff(offsets))
    if all(map(_is_number, set(map(type, given)))):
        heads = np.fromiter(given, np.float64, len(given))
        is_head = (heads >= 0) & (heads <= lengths) & (heads == np.floor(heads))
    else:
        is_head = np.array([_is_number(type(head)) for head in given])
    if is_head.all():
        return heads.astype(np.int64)
    k = int(np.argmin(is_head))
    raise ValueError(
        f"{name}, {_location(k, offsets)}: the head is {given[k]!r:.40}, expected a whole number "
        f"from 0 (root) to {lengths[k]}"
    )


def _is_number(kind: type) -> bool:
    """Whether a type is that of numbers that can be heads."""
    return issubclass(kind, (Integral, float)) and kind is not bool


def _location(k: int, offsets: Ints) -> str:
    """Where an arc is."""
    i = int(np.searchsorted(offsets, k, side="right")) - 1
    return f"sentence {i}, word {k - int(offsets[i]) + 1}"


def _ignored(y_true: Sequence[Any], ignore: Sequence[Sequence[bool]]) -> Bools:
    """Which tokens do not count."""
    _, given, offsets = flat_pair(y_true, ignore, ("y_true", "ignore"))
    for k, value in enumerate(given):
        if not isinstance(value, (Integral, np.bool_)) or value not in (0, 1):
            raise ValueError(
                f"ignore, {_location(k, offsets)}: expected True or False, got {value!r:.40}"
            )
    return np.array(given, dtype=np.bool_)


class RelationScores(NamedTuple):
    """Scores of labelled arcs.

    Attributes
    ----------
    las : float
        Share of tokens with the right head and relation.
    per_relation : dict of relation to TypeScores
        Precision, recall and F1 of the arcs of each relation, sorted by their names.
    """

    las: float
    per_relation: dict[Any, TypeScores]

    def __str__(self) -> str:
        return score_table("arcs by relation", self.per_relation, Averages(*[self.las] * 3))


def relation_scores(y_true: Sequence[Any], y_pred: Sequence[Any]) -> RelationScores:
    """Precision, recall and F1 of the arcs of each relation; an arc is right if its head is too.

    Parameters
    ----------
    y_true, y_pred : list of trees
        Pairs (head, relation) of the tokens of each sentence.

    Returns
    -------
    RelationScores
        It prints as a table.

    Examples
    --------
    >>> scores = relation_scores([[(2, "det"), (0, "root")]], [[(2, "amod"), (0, "root")]])
    >>> scores.per_relation["root"].f1, scores.per_relation["det"].recall
    (1.0, 0.0)
    """
    arcs = read_arcs(y_true, y_pred)
    if arcs.true is None or arcs.predicted is None:
        raise ValueError("expected pairs (head, relation), found heads alone")
    right = Counter(label for label, ok in zip(arcs.true, arcs.right, strict=True) if ok)
    counts = [Counter(arcs.true), Counter(arcs.predicted)]
    return RelationScores(
        right.total() / len(arcs.true),
        {
            name: scores_of(counts[0][name], counts[1][name], right[name])
            for name in sorted(counts[0] | counts[1], key=str)
        },
    )


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
    scores = scores_of(n_true, n_predicted, n_correct)
    return BracketScores(
        *scores[:3],
        float(np.mean(exact)),
        *scores[3:],
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
