"""How good predicted sets of labels are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from ..tables import named_values, percent
from .counts import Averages, TypeScores, macro_average, score_table, scores_of

__all__ = ["SetScores", "set_scores"]


class SetScores(NamedTuple):
    """Scores of predicted sets of labels, between 0 and 1.

    Attributes
    ----------
    subset_accuracy : float
        Share of examples whose labels are all right, and no others.
    hamming_loss : float
        Share of wrong decisions, over all examples and labels.
    example_f1 : float
        F1 of the labels of an example, mean over the examples; two empty sets have an F1 of 1.
    micro : Averages
        Precision, recall and F1 over the labels of all examples together.
    per_label : dict of label to TypeScores
        The same for each label.
    """

    subset_accuracy: float
    hamming_loss: float
    example_f1: float
    micro: Averages
    per_label: dict[Any, TypeScores]

    @property
    def macro(self) -> Averages:
        """Plain means of the scores of the labels."""
        return macro_average(self.per_label)

    def __str__(self) -> str:
        shares = [
            ("labels all right", self.subset_accuracy),
            ("Hamming loss", self.hamming_loss),
            ("F1 of examples", self.example_f1),
        ]
        head = named_values((name, f"{percent(share)} %") for name, share in shares)
        return f"{head}\n\n{score_table('labels', self.per_label, self.micro)}"


def set_scores(
    y_true: Sequence[Collection[Any]],
    y_pred: Sequence[Collection[Any]],
    *,
    labels: Iterable[Any] = (),
) -> SetScores:
    """Compare predicted sets of labels with the true ones.

    Parameters
    ----------
    y_true, y_pred : list of collections of labels
        The labels of each example, of any hashable type.
    labels : iterable, optional
        Labels that count although no example has them.

    Returns
    -------
    SetScores
        It prints as a table.

    Examples
    --------
    >>> scores = set_scores([{"a", "b"}, {"b"}], [{"a"}, {"b"}])
    >>> scores.subset_accuracy, scores.hamming_loss, scores.micro.f1
    (0.5, 0.25, 0.8)
    """
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sets of labels, y_pred has {len(y_pred)}")
    if len(y_true) == 0:
        raise ValueError("expected at least one set of labels, found none")
    pairs = [(set(a), set(b)) for a, b in zip(y_true, y_pred, strict=True)]
    n_true, n_predicted, n_correct = (
        Counter(label for found in sets for label in found)
        for sets in ([a for a, _ in pairs], [b for _, b in pairs], [a & b for a, b in pairs])
    )
    names = sorted({*n_true, *n_predicted, *labels}, key=_order)
    wrong = sum(len(a ^ b) for a, b in pairs)
    total = scores_of(n_true.total(), n_predicted.total(), n_correct.total())
    return SetScores(
        sum(a == b for a, b in pairs) / len(pairs),
        wrong / (len(pairs) * max(len(names), 1)),
        sum(2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0 for a, b in pairs) / len(pairs),
        Averages(*total[:3]),
        {name: scores_of(n_true[name], n_predicted[name], n_correct[name]) for name in names},
    )


def _order(label: Any) -> tuple[str, Any]:
    """Numbers by value, all else by name."""
    is_number = isinstance(label, (int, float))
    return ("", label) if is_number else (type(label).__name__, str(label))
