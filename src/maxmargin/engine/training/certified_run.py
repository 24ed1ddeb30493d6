"""One call of `solve` whose result has a certificate: primal, dual, gap and when to stop."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.objective import Certificate, Stopping, primal_value
from ...core.result import Callback, Progress, Result
from ...utils.schema import Number, checked_arrays, from_values, numbers
from ...utils.types import Floats
from ...utils.validation import LARGEST
from ..oracle import Oracle
from .convergence import BoundGap, StallDetector
from .run import Limits, Run, StopTraining
from .state import OWN, Arrays, SolverState, from_file, from_text, to_text
from .verifying import (
    check_dual,
    check_oracle,
    check_planes,
    check_primal,
    check_value,
    passive_oracle,
    probes,
)

__all__ = ["CertifiedRun"]


class _Known(NamedTuple):
    """What is known of a certificate, beside the weights."""

    best: Number | None
    rounding: Number


class CertifiedRun(Run):
    """A run that ends by a certificate.

    Its primal value is the best that a full pass of true oracle calls has measured; its dual value
    is `proven_dual`, which each family keeps true.

    Parameters
    ----------
    solver : Solver
        Precision and limits.
    oracle : Oracle
        What is asked.
    C : float
        Multiplies the sum of the slacks.
    weights : array of shape (n_examples,)
        Multiplies each example's slack.
    callbacks : iterable of callable
        Called with a `Progress` after every outer iteration.
    """

    state_fields: ClassVar[Mapping[str, Any]] = {
        **Run.state_fields,
        "proven_dual": Number,
        "found_primal": Number,
        "certified": bool,
        "stall_detector": OWN,
        "bound_gap_monitor": OWN,
    }

    #: A dual value that was computed afresh, not carried along.
    proven_dual: float
    state: SolverState
    _is_resumed = False

    def __init__(
        self,
        solver: Limits,
        oracle: Oracle,
        C: float,
        weights: Floats,
        callbacks: Iterable[Callback],
    ) -> None:
        super().__init__(solver, oracle, callbacks)
        self.C = C
        self.weights = weights
        self.stopping = Stopping(solver.tol, solver.epsilon, C * float(weights.sum()))
        self.best: tuple[float, Floats] | None = None  # primal value and weights
        self.found_primal = np.inf  # the last one measured, by the candidates without bounds
        self.certified = False  # whether the primal value of the current weights is known
        self.stall_detector = StallDetector()
        self.bound_gap_monitor = BoundGap()

    def arrays(self) -> Arrays:
        """See `Checkpointable`."""
        best = {} if self.best is None else {"best_w": self.best[1]}
        bounds = {} if self.oracle.bounds is None else {"bounds": self.oracle.bounds}
        numbers = {"best": self.best and self.best[0], "rounding": self.oracle.rounding}
        return {**super().arrays(), **best, **bounds, "certificate": to_text(numbers)}

    def restore(self, arrays: Arrays) -> None:
        """See `Checkpointable`."""
        super().restore(arrays)
        known = from_values(_Known, from_text(arrays["certificate"]), "certificate")
        own = checked_arrays(
            arrays,
            {
                name: numbers(size, low=-high, high=high)
                for name, size, high in (("best_w", None, LARGEST), ("bounds", self.n, np.inf))
                if name in arrays
            },
        )
        if ("best_w" in own) != (known.best is not None):
            raise ValueError("certificate: expected the best weights with their primal value")
        if "best_w" in own and not self.are_weights(own["best_w"]):
            raise ValueError(f"best_w: expected {self.oracle.n_features} weights")
        if known.best is not None:
            self.best = known.best, own["best_w"]
        self.oracle.bounds, self.oracle.rounding = own.get("bounds"), known.rounding

    def verify(self) -> None:
        """See `Run`: the primal value by true oracle calls, the dual value from multipliers."""
        assert self._saver is not None
        self._is_resumed, path = True, self._saver.path
        with from_file(path):
            check_dual(self.proven_dual, self.state.proven_dual())
        if not self.oracle.certifies:
            return
        w, own = self.current_weights, self.own_weights
        if self.best is not None:
            w, own = self.best_weights, self.best[1]
        oracle = passive_oracle(self.oracle)
        hinges = oracle.bounded(oracle.violations(w).hinges)
        with from_file(path):
            check_oracle(self.oracle, oracle)
            if self.best is not None:
                check_primal(self.best[0], self.objective(w, hinges))
            if self._finished == "converged" and not self.converged():
                raise ValueError("the state says that training is over, but it has not converged")
        for planes in self.state.planes_at(own):
            with from_file(path):
                check_planes(planes, hinges)
            for value, most in probes(planes, oracle, own, hinges, self.expanded):
                with from_file(path):
                    check_value(value, most)

    # ----- what each family has -----------------------------------------------------------------

    @property
    def dual(self) -> float:
        """The dual value as it is now."""
        return self.proven_dual

    @property
    @abstractmethod
    def n_planes(self) -> int:
        """Planes stored."""

    @property
    @abstractmethod
    def n_support_vectors(self) -> int:
        """Those of them whose multiplier is positive."""

    @abstractmethod
    def settle(self) -> Certificate:
        """A certificate of the current weights, by a pass of true oracle calls without limits."""

    def settle_at_the_end(self, interrupted: bool) -> None:
        """The same once training is over, maybe in the middle of a change."""
        self.settle()

    @property
    def own_weights(self) -> Floats:
        """The weights as they are now, as the state has them."""
        return self.current_weights

    def expanded(self, w: Floats) -> Floats:
        """Weights of all features for those of the state."""
        return w

    def are_weights(self, w: Floats) -> bool:
        """Whether there are as many of them as the state has."""
        return len(w) == self.oracle.n_features

    @property
    def best_weights(self) -> Floats:
        """The weights of the best certified primal value, of all features."""
        assert self.best is not None
        return self.best[1]

    @abstractmethod
    def final_state(self, interrupted: bool) -> SolverState | None:
        """What a warm start may go on from."""

    # ----- bounds ---------------------------------------------------------------------------------

    @property
    def rounding(self) -> float:
        """See `Run`."""
        return self.oracle.rounding * self.stopping.total_C

    @property
    def criterion(self) -> Stopping | None:
        """What a certificate has to meet; None where a solver's own rule ended training."""
        return self.stopping

    @property
    def certificate(self) -> Certificate | None:
        """The best certified primal value and the dual value."""
        return Certificate(self.best[0], self.proven_dual) if self.best is not None else None

    @property
    def target(self) -> float:
        """Gap to reach."""
        return self.stopping.target(self.dual)

    @property
    def bound_gap(self) -> float | None:
        """See `Run`: the primal value less the lowest one by the candidates found alone."""
        return (
            None if self.certificate is None else self.bound_gap_monitor.part_of(self.certificate)
        )

    def converged(self) -> bool:
        """Whether the certificate meets the stopping criterion."""
        return self.certificate is not None and self.stopping.is_satisfied(self.certificate)

    def objective(self, w: Floats, slacks: Floats) -> float:
        """Objective at w with these slacks."""
        return primal_value(w, slacks, self.formulation, self.C, self.weights)

    def primal(self, w: Floats, slacks: Floats) -> float:
        """Primal value at w, given the slacks that a full pass has just found there.

        Where the oracle's answers have bounds, it is the bound on it that follows from them.
        """
        self.found_primal = self.objective(w, slacks)
        bounded = self.oracle.bounded(slacks)
        if self._is_resumed and self._saver is not None and self.oracle.certifies:
            with from_file(self._saver.path):
                for planes in self.state.planes_at(w):
                    check_planes(planes, bounded)
        return self.found_primal if self.oracle.bounds is None else self.objective(w, bounded)

    def offer(self, primal: float, w: Floats, *, copy: bool = True) -> None:
        """Keep the weights, or a copy, if their certified primal value is the best so far."""
        if self.best is None or primal < self.best[0]:
            self.best = (primal, w.copy() if copy else w)
        self.certified = True
        if self.oracle.bounds is not None:
            best = Certificate(self.best[0], self.proven_dual)
            self.bound_gap_monitor.note(primal, self.found_primal, best, self.stopping)

    # ----- iterations -----------------------------------------------------------------------------

    def train(self, iterate: Callable[[], str | None]) -> str:
        """See `Run`; what is gone on from may have met the limit on passes already."""

        def go_on() -> str | None:
            if self._n_saved > 0:
                self.check_passes()
            return iterate()

        return super().train(go_on)

    def is_stuck(self, gap_estimate: float) -> bool:
        """Whether neither bound moves any more."""
        negligible = gap_estimate <= self.rounding
        return self.stall_detector.seen(gap_estimate, self.dual, self.settle, negligible)

    def record(self, gap_estimate: float | None = None) -> None:
        """End an outer iteration: history, callbacks, limits."""
        stuck = gap_estimate is not None and self.is_stuck(gap_estimate)
        certificate = self.certificate if self.certified else None
        is_true = self.oracle.certifies
        if certificate is not None and not is_true:
            gap_estimate = certificate.gap
        self.note(
            Progress(
                seconds=self.seconds,
                oracle_calls=self.oracle_calls,
                primal=certificate.primal if certificate else None,
                dual=certificate.dual if certificate else self.dual,
                gap=certificate.gap if certificate and is_true else None,
                planes=self.n_planes,
                gap_estimate=gap_estimate,
                target=self.target,
                bound_gap=self.bound_gap if certificate else None,
            )
        )
        if self.bound_gap_monitor.lasts and not self.converged():
            raise StopTraining("loose bounds")
        self.check_passes(stuck)

    def end_iteration(self, gap_estimate: float | None = None) -> None:
        """`record`, where nothing is left to do before the next save point.

        The limit on passes, if it is met here, leaves what training goes on from.
        """
        try:
            self.record(gap_estimate)
        except StopTraining as stop:
            if self._saver is not None and str(stop) == "max_passes" in self._saver.may_go_on:
                self.save_point(at_once=True)
            raise

    def finish(self, status: str) -> Result:
        """Certify the last weights if need be, and gather the result."""
        if not self.certified or self.best is None:
            status = self._certify_at_the_end(status)
        assert self.certificate is not None
        if status == "stalled" and self.bound_gap_monitor.explains(self.certificate, self.stopping):
            status = "loose bounds"
        return self.result(
            self.best_weights,
            self.certificate,
            stopping=self.criterion,
            status=status,
            planes=self.n_planes,
            support_vectors=self.n_support_vectors,
            state=self.final_state(status == "interrupted"),
        )

    def _certify_at_the_end(self, status: str) -> str:
        """Certify the last weights once training is over; returns the status.

        A second Ctrl-C ends even that: what was certified before must do.
        """
        try:
            self.settle_at_the_end(status == "interrupted")
        except KeyboardInterrupt:
            if self.certificate is None:
                raise
            self._interrupts.note_arrival()
            return "interrupted"
        except StopTraining as stop:  # those who would answer are gone
            if self.certificate is None:
                raise
            return str(stop)
        try:
            self.record()
        except (StopTraining, KeyboardInterrupt):  # training is over already
            pass
        return status
