"""How good predicted dependency trees are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..tables import named_values, percent
from .counts import Averages, TypeScores, score_table, scores_of
from .sequences import flat_pair, sums_of

__all__ = ["AttachmentScores", "RelationScores", "attachment_scores", "relation_scores"]


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
        Lengths differ, or only some trees have labels; the message names the first bad sentence.

    Examples
    --------
    >>> attachment_scores([[(2, "det"), (0, "root")]], [[(2, "amod"), (0, "root")]])
    AttachmentScores(uas=1.0, las=0.5, exact=0.0)
    """
    true, predicted, offsets = flat_pair(y_true, y_pred)
    labeled = {isinstance(arc, tuple) for arc in (*true, *predicted)}
    if len(labeled) == 2:
        raise ValueError("expected trees with labels, or trees without, found both")
    counts = np.ones(len(true), dtype=bool)
    if ignore is not None:
        counts = ~np.array(flat_pair(y_true, ignore)[1], dtype=bool)
        if not counts.any():
            raise ValueError("all tokens are ignored, expected at least one that counts")
    right = np.array([a == b for a, b in zip(true, predicted, strict=True)])
    heads, las = right, None
    if labeled == {True}:
        heads = np.array([a[0] == b[0] for a, b in zip(true, predicted, strict=True)])
        las = float(right[counts].mean())
    wrong = sums_of((~right & counts).astype(np.int64), offsets)
    return AttachmentScores(float(heads[counts].mean()), las, float(np.mean(wrong == 0)))


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
        return score_table("relations", self.per_relation, Averages(*[self.las] * 3))


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
    true, predicted, _ = flat_pair(y_true, y_pred)
    right = Counter(a[1] for a, b in zip(true, predicted, strict=True) if a == b)
    counts = [Counter(arc[1] for arc in arcs) for arcs in (true, predicted)]
    return RelationScores(
        right.total() / len(true),
        {
            name: scores_of(counts[0][name], counts[1][name], right[name])
            for name in sorted(counts[0] | counts[1], key=str)
        },
    )
