"""Training data of which some labels are not known: what is taken for such, and the training."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

from ..types import Bools
from ..validation import is_one_of
from .base import MaxMarginEstimator
from .known_labels import is_choice
from .labels import CodedLabels, FlatLabels, Wording, is_hashable

__all__ = ["PartialLabels", "check_something_known", "has_unknown", "listed_labels"]


@dataclass(kw_only=True, eq=False, repr=False)
class PartialLabels(MaxMarginEstimator):
    """For estimators that train on labels which are known in part.

    Parameters
    ----------
    partial : {"alternate", "convex"}, default="alternate"
        How to train where ``y`` has None or sets of labels in place of labels: any label that
        agrees with what is known counts as right. The objective is then no longer convex.
        "alternate" completes labels by the model and trains on them in turn, beginning with a
        model of the known labels alone; its objective falls from round to round, to a local
        optimum. "convex" makes one such round: it minimises an upper bound on the objective, the
        one with the first completion. ``result_`` has the certificate of the last training, with
        completions as they were then, and not one of the whole.
    max_rounds : int, default=10
        How often "alternate" trains at most.
    """

    partial: Literal["alternate", "convex"] = "alternate"
    max_rounds: int = 10

    def _check_partial(self) -> None:
        """Raise ValueError for parameters that are none."""
        if not is_one_of(self.partial, ("alternate", "convex")):
            raise ValueError(f"partial must be 'alternate' or 'convex', got {self.partial!r:.40}")
        if not isinstance(self.max_rounds, Integral) or self.max_rounds < 1:
            raise ValueError(f"max_rounds must be a whole number >= 1, got {self.max_rounds!r:.40}")


def check_something_known(says_something: Bools, wording: Wording) -> None:
    """Raise ValueError where every label of every example is as right as any other."""
    if not says_something.any():
        raise ValueError(
            f"y says nothing: any {wording.label} of any {wording.part} of all "
            f"{len(says_something)} {wording.example}s would be right"
        )


def has_unknown(labels: FlatLabels) -> bool:
    """Whether some labels are not known, or known to be one of several."""
    if isinstance(labels.values, CodedLabels):
        return False
    return any(value is None or is_choice(value) for value in labels.values)


def listed_labels(labels: FlatLabels, first: int = 0, step: int = 1) -> FlatLabels:
    """All labels that are known of any token, for a `LabelEncoder`; errors name the token.

    Only every ``step``-th token counts, from the first on: one node of trees, say.
    """
    found: dict[Any, None] = {}
    for t in range(first, len(labels.values), step):
        value = labels.values[t]
        if value is None:
            continue
        if not is_hashable(value) and not is_choice(value):
            raise ValueError(f"{labels.place(t)}: label {value!r:.40} is not hashable")
        for label in value if is_choice(value) else (value,):
            if label is None or label != label:
                raise ValueError(f"{labels.place(t)}: {label} is not a label")
            found[label] = None
    if not found:
        of = "" if step == 1 else f" of {labels.wording.part} {first}"
        raise ValueError(f"y has no label{of}: every one is None")
    return labels._replace(values=list(found))
