"""Training data of which some labels are not known: what is taken for such, and the training."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

from .._warn import warn_user
from ..defaults import TOL
from ..solvers.cccp import CCCP, PartialProblem, Round, alternate
from ..types import Bools, Floats
from ..validation import is_one_of
from ..weight_constraints import WeightConstraints
from .base import MaxMarginEstimator, warn_unless_converged
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

    def _train_partial(
        self,
        problem: PartialProblem,
        sample_weight: Floats | None,
        constraints: WeightConstraints | None = None,
    ) -> CCCP:
        """Complete and train in turn, and set ``coef_``, ``result_`` and ``rounds_``."""
        if self.slack == "none":
            raise ValueError("labels that are known in part need slacks: set slack='l1' or 'l2'")
        if self._path_request is not None:
            raise ValueError("paths of C are for labels that are all known")
        if self._choice is not None:
            raise ValueError("weights are chosen by held-out data where all labels are known")
        if self.checkpoint is not None and self.cluster is not None:
            raise ValueError("checkpoint: labels known in part are not kept on a cluster")
        solver = self._make_solver()
        self._show_size(problem)
        with self._shown(solver, problem.n_examples, float(self.C), sample_weight) as callbacks:
            found = alternate(
                problem,
                solver,
                self._formulation(constraints),
                float(self.C),
                sample_weight=sample_weight,
                max_rounds=1 if self.partial == "convex" else int(self.max_rounds),
                tol=TOL if self.tol is None else float(self.tol),
                callbacks=callbacks,
            )
        result = self._with_kept_weights([found.result])[0]
        self._set_weights(result.w)
        self.result_ = dataclasses.replace(result, state=None)
        self.rounds_: list[Round] = found.rounds
        for name in ("_online", "_stream", "_kept"):
            self.__dict__.pop(name, None)
        warn_unless_converged(found.result, solver)
        is_told = not found.result.converged or found.result.status == "interrupted"
        if self.partial == "alternate" and not found.settled and not is_told:
            from sklearn.exceptions import ConvergenceWarning

            n_rounds = len(found.rounds)
            limit = "max_rounds" if n_rounds >= self.max_rounds else "max_time"
            warn_user(
                f"completions still changed the objective after {n_rounds} rounds; raise "
                f"{limit}={getattr(self, limit)}",
                ConvergenceWarning,
            )
        return found

    def _forget_rounds(self) -> None:
        """All labels are known: remove what an earlier fit has left."""
        self.__dict__.pop("rounds_", None)


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
