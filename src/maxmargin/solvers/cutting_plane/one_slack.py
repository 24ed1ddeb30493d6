"""The one-slack cutting-plane method (Joachims, Finley & Yu 2009, Alg. 3 and 4).

Problem solved: the n slacks of the l1 formulation are replaced by their weighted sum,

    min  1/2 |w|^2 + C xi    s.t.  xi >= sum_i s_i (b_i - <a_i, w>)  for every choice of one plane
                                   (b_i, a_i) of each example,  xi >= 0.

Each constraint is one *aggregated* plane, the sum of one plane per example. The master problem
over the aggregated planes found so far is a small QP; its minimiser w proposes where to look for
the next plane, and its value is a lower bound on the optimum.

How this goes beyond the paper: planes are not taken at the master's minimiser, which jumps about,
but near the best point known, the *center*. The candidates at hand - the cache, or all outputs
where they can be listed - give the objective along the line from the center to the minimiser at no
cost, so the center moves to the minimum on that line, and the next plane is taken a little further
on (Franc & Sonnenburg's optimised cutting planes, carried over to structured outputs). It takes a
third of the iterations. With ``reach=1`` planes are taken at the minimiser, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ...core.formulation import Formulation
from ...core.objective import NEGLIGIBLE, Certificate, DualTerms, Stopping
from ...core.problem import Problem
from ...core.result import Callback
from ...engine.cuts.bounded_cuts import BoundedBundle
from ...engine.cuts.bundle import Bundle
from ...engine.cuts.master import blend
from ...engine.cuts.pool import CandidatePool, Pool, make_pool
from ...engine.oracle import Oracle
from ...engine.steps.bound_multipliers import BoundMultipliers
from ...engine.training.certified_run import CertifiedRun
from ...engine.training.state import (
    OWN,
    Arrays,
    Checkpointable,
    SolverState,
    StoredPlanes,
    add_prefix,
    declare_state,
    of_kind,
    strip_prefix,
)
from ...utils.schema import Count, Number, checked_arrays, numbers
from ...utils.types import Floats, Ints
from ...utils.validation import check_choice
from ..base import Solver, TrainingRequest

__all__ = ["OneSlack"]


BUNDLE_SHARE, LEAST_ROOM = 0.25, 2**20  # of the budget, for aggregated planes; and bytes
FORGET_AFTER = 30  # planes without it after which a cached candidate is dropped; it costs time
# Planes in a row from the cache, and those in a row that do not raise the dual value, after which
# the oracle is asked all the same. (One of the latter may be needed to get to another that does.)
MOST_CACHED, MOST_USELESS = 300, 3


class OneSlackState(SolverState):
    """Candidates, aggregated planes, and the weights of the examples in those."""

    kind = "one_slack"

    def __init__(self, pool: Pool, bundle: Bundle, weights: Floats) -> None:
        self.pool = pool
        self.bundle = bundle
        self.weights = weights
        self.oracle = pool.oracle

    def dual_terms(self) -> DualTerms:
        """See `SolverState`."""
        w, linear = self.bundle.weights(), self.bundle.linear()
        return DualTerms(linear, float(w @ w), 0.0, capped=True)

    def arrays(self) -> Arrays:
        """See `SolverState`."""
        return {
            **add_prefix("pool", self.pool.arrays()),
            **add_prefix("bundle", self.bundle.arrays()),
            "weights": self.weights,
        }

    def restore(self, arrays: Arrays) -> None:
        """See `SolverState`."""
        own = checked_arrays(arrays, {"weights": numbers(len(self.weights), low=0.0)})
        if not np.array_equal(own["weights"], self.weights):
            raise ValueError("weights: expected the weights of the examples")
        self.pool.restore(strip_prefix("pool", arrays))
        self.bundle.widen(self.pool.n_weights)
        self.bundle.restore(strip_prefix("bundle", arrays))

    def proven_dual(self) -> float:
        """See `SolverState`."""
        return self.bundle.dual(self.bundle.weights())

    def planes_at(self, w: Floats) -> list[StoredPlanes]:
        """See `SolverState`."""
        longer = np.zeros(self.bundle.n_features)  # features may have come since
        longer[: len(w)] = w
        return [*self.pool.planes_at(longer), self.bundle.planes_at(longer, self.weights)]


class OneSlackRun(CertifiedRun):
    """A run of the method: pool, bundle, the best point known and the bounds."""

    state_fields = declare_state(
        CertifiedRun.state_fields,
        state=OWN,
        center=lambda own: numbers(own.pool.n_weights),
        table=lambda own: numbers(*own.pool.values(own.center).shape),
        n_cached=Count,
        n_useless=Count,
        within_violation=bool,
    )
    state: OneSlackState

    def __init__(
        self, solver: OneSlack, state: OneSlackState, C: float, callbacks: Iterable[Callback]
    ) -> None:
        super().__init__(solver, state.oracle, C, state.weights, callbacks)
        self.state = state
        self.pool, self.bundle = state.pool, state.bundle
        self.bundle.widen(self.pool.n_weights)
        self.center: Floats = self.bundle.weights()
        self.minimiser: Floats = np.empty(0)  # of the master, until the center has moved
        self.table: Floats = np.empty((self.n, 0))  # of the candidates' values at the center
        self.proven_dual = self.bundle.dual(self.center)
        self.n_cached = 0  # planes since the oracle was last asked
        self.n_useless = 0  # those in a row that did not raise the dual value
        self.violation = solver.violation
        self.within_violation = False  # whether the last pass met the paper's own stopping rule

    @property
    def current_weights(self) -> Floats:
        """See `Run`."""
        return self.pool.expand(self.center)

    @property
    def own_weights(self) -> Floats:
        """See `CertifiedRun`."""
        return self.center

    def expanded(self, w: Floats) -> Floats:
        """See `CertifiedRun`."""
        return self.pool.expand(w)

    def are_weights(self, w: Floats) -> bool:
        """See `CertifiedRun`; features may have come since."""
        return len(w) <= self.pool.n_weights if self.pool.grows else super().are_weights(w)

    @property
    def n_planes(self) -> int:
        """Aggregated planes."""
        return self.bundle.size

    @property
    def n_support_vectors(self) -> int:
        """See `CertifiedRun`."""
        return self.bundle.n_support_vectors

    def restore(self, arrays: Arrays) -> None:
        """See `Checkpointable`."""
        super().restore(arrays)
        if self.within_violation and self.violation is None:
            raise ValueError("within_violation: this stopping rule does not exist")
        self.bundle.widen(self.pool.n_weights)

    def converged(self) -> bool:
        """Whether the certificate, or the paper's rule, says so."""
        return super().converged() if self.violation is None else self.within_violation

    @property
    def criterion(self) -> Stopping | None:
        """See `CertifiedRun`."""
        return None if self.within_violation else self.stopping

    @property
    def best_weights(self) -> Floats:
        """See `CertifiedRun`."""
        return self.pool.expand(super().best_weights).copy()

    def final_state(self, interrupted: bool) -> OneSlackState | None:
        """The planes, unless an interrupt may have left them half-changed."""
        return None if interrupted else self.state

    def call(self) -> tuple[float, Floats, Ints]:
        """A full pass of true oracle calls at the center.

        Returns its primal value, and hinge values and candidates of all examples: those found, for
        bounds on others are no planes. Weights that new candidates bring are 0 at the center.
        """
        self.n_cached = self.n_useless = 0
        with self.oracle.timed() if self.pool.complete else nullcontext():
            hinges, chosen = self.pool.call(self.center, self.check)
        self.offer(self.primal(self.center, hinges), self.center)
        new = self.pool.n_weights - len(self.center)
        if new:
            self.center = np.concatenate((self.center, np.zeros(new)))
            self.bundle.widen(self.pool.n_weights)
        return self.found_primal, hinges, chosen

    def judge(self, primal: float, hinges: Floats) -> None:
        """Line 9 of the algorithm, by a pass at the master's minimiser, whose plane is not in."""
        if self.violation is None:
            return
        beyond = float(self.weights @ hinges) - self.bundle.slack
        if beyond <= self.violation * float(self.weights.sum()):
            self.best, self.within_violation = (primal, self.center.copy()), True

    def cut(self, chosen: Ints) -> None:
        """Add the aggregated plane of the chosen candidates, unless that is zero."""
        if not np.any((chosen >= 0) & (self.weights > 0.0)):
            return
        plane = np.zeros(self.bundle.n_features)
        offset = self.pool.add_up(chosen, self.weights, plane)
        self.bundle.add(plane, offset, self.oracle.threads or 1)

    def is_stuck(self, gap_estimate: float) -> bool:
        """See `CertifiedRun`; only passes of the oracle can tell."""
        return self.n_cached == 0 and super().is_stuck(gap_estimate)

    def settle(self) -> Certificate:
        """The certificate of the last pass of the oracle, which was at the center."""
        assert self.certificate is not None
        return self.certificate

    def settle_at_the_end(self, interrupted: bool) -> None:
        """A pass of true oracle calls at the center, without limits."""
        hinges = self.oracle.violations(self.pool.expand(self.center)).hinges
        self.offer(self.primal(self.center, hinges), self.center)


class OneSlackLoop(Checkpointable):
    """What `OneSlack` keeps from one iteration to the next."""

    state_fields = declare_state(gap=Number | None)
    gap: float | None = None  # as last known; None before the first pass


def _empty_bundle(pool: Pool, C: float, room: int) -> Bundle:
    """A bundle for the planes of a pool."""
    feasible_set = pool.oracle.feasible_set
    if feasible_set is not None and pool.oracle.has_bounds:
        return BoundedBundle(pool.n_weights, C, BoundMultipliers(feasible_set), room)
    return Bundle(pool.n_weights, C, False if pool.grows else None, room)


@dataclass(frozen=True)
class OneSlack(Solver):
    """One-slack cutting planes with a cache of candidates and a stabilised master.

    Algorithm 3 of Joachims et al. (2009) for margin rescaling and Algorithm 4 for slack rescaling,
    with their Section 4: warm starts of the QP, a cache of candidates, precision that follows the
    progress, inactive planes removed. The QP is solved by Algorithm 2 of Lee & Jang (2010).

    Parameters
    ----------
    qp : {"fsmo", "fsmo_paper", "smo", "line_search", "single_line_search"}
        How the master problem is solved: by modified FSMO (Lee & Jang 2010, Alg. 2) with a better
        rule at the bound, or with theirs; by pairs of multipliers alone, as SVM-light does; or no
        more than improved by line searches: one for each plane, or a single one (the variant that
        Joachims et al. suggest after Theorem 5: cheaper per plane, more planes).
    cache_size : int
        At most so many candidates of each example are kept, the most recently used ones; 0 asks
        the oracle for every plane. Problems whose outputs can all be listed need no cache.
    cache : {"fast", "paper"}
        When the oracle is called. "paper": where no plane of cached candidates is violated by more
        than epsilon; problems whose outputs can be listed have a cache like others. Needs
        ``reach=1``. "fast": also by the rules under *Deviations*.
    cache_mb : float
        Budget, in units of 2^20 bytes, for cached candidates and, a quarter of it, for aggregated
        planes, copies while they grow included. Candidates not used for longest are dropped to keep
        it; aggregated planes without weight are, and those with the least are merged: then training
        takes longer, and a warning says so. (There is 1 MB for them in any case.) Not in it are
        64 bytes for each of ``cache_size`` candidates of each example, and up to eight vectors of
        the weights.
    cache_fraction : float
        The oracle is asked when the gap over cached candidates is below this share of the last
        certified gap.
    reach : float
        Where planes are taken, as a share of the way from the best point known to the master's
        minimiser. 1 is the paper's algorithm.
    violation : float, optional
        The paper's own stopping rule (line 9): end when the oracle finds no plane that is violated
        by more than this, in units of mean loss, beyond the master's slack, and return the
        master's minimiser. The gap does not end the training then. Needs ``reach=1``.
    inactive_limit : int
        Planes without weight in so many solutions of the master in a row are dropped. The paper
        waits for 50; with fewer planes kept the master costs less, and takes no more iterations.
    qp_precision : float
        The master is solved up to this share of the current gap.
    kkt : float, optional
        Lee & Jang's own rule for the end of their Algorithm 2, in place of ``qp_precision``: the
        master is solved until no plane's score is off by more than this, in units of mean loss;
        with ``qp="smo"``, until no two scores are, which is SVM-light's rule.

    Notes
    -----
    **Deviations**

    * Planes are taken near the best point known, not at the master's minimiser; ``reach=1`` gives
      the paper's. Problems whose outputs can be listed need no cache, and no oracle.
    * Training ends by the duality gap of the best point known, which is at most ``epsilon`` where
      the paper's rule, a plane violated by at most epsilon, holds for an exact master.
      ``violation=...`` gives that rule, and the weights that it judges.
    * The paper asks the oracle where no plane of cached candidates is violated by more than
      epsilon; here already where their gap is below ``cache_fraction`` of the last certified gap,
      after 300 cached planes in a row, and after three that do not raise the dual value;
      ``cache="paper"`` leaves these rules out, and ``cache_size=0`` is Algorithm 3 without a cache.
      Cached candidates that no plane has used for long are dropped, if ``reach < 1``.
    * Inactive planes go after 20 solutions; ``inactive_limit=50`` gives the paper's.
    * A plane that is there already is not added again.
    * The master's precision is a share of the current gap. The paper only says that it follows the
      progress; SVM-light and Lee & Jang have a fixed threshold, ``kkt``.
    * Algorithm 2 of Lee & Jang: a round of pairs has as many steps as there are planes, in place of
      one; of two planes to take weight from, the one is chosen that gains more as far as its weight
      goes; weight may be given up at the bound where all scores are negative, at which the paper's
      rule stops short of the optimum; a round of single steps ends as soon as the bound is reached.
      ``qp="fsmo_paper"`` is as printed.
    * ``qp="line_search"``: the paper suggests one line search for a plane, as
      ``qp="single_line_search"`` does; here there are up to as many as planes, each towards the
      best plane from all others or from a single one.
    """

    qp: Literal["fsmo", "fsmo_paper", "smo", "line_search", "single_line_search"] = "fsmo"
    cache_size: int = 10
    cache: Literal["fast", "paper"] = "fast"
    cache_fraction: float = 0.3
    reach: float = 0.1
    violation: float | None = None
    inactive_limit: int = 20
    qp_precision: float = 0.01
    kkt: float | None = None

    name: ClassVar[str] = "one_slack"
    as_published: ClassVar[Mapping[str, Any]] = {
        "qp": "smo",
        "kkt": 0.001,
        "reach": 1.0,
        "cache": "paper",
        "cache_size": 0,
        "inactive_limit": 10**9,
        "violation": 0.1,
        "tol": None,
    }

    def check(self, problem: Problem, formulation: Formulation, C: float) -> None:
        """Raise ValueError if this solver cannot do what is asked."""
        super().check(problem, formulation, C)
        pairs, lines = ("fsmo", "fsmo_paper", "smo"), ("line_search", "single_line_search")
        check_choice(self.qp, (*pairs, *lines), "qp")
        check_choice(self.cache, ("fast", "paper"), "cache")
        if not 0.0 < self.reach <= 1.0:
            raise ValueError(f"reach must be in (0, 1], got {self.reach}")
        if self.kkt is not None and (self.qp in lines or not self.kkt > 0.0):
            raise ValueError(
                f"kkt must be positive, with qp in {pairs}, got {self.kkt} and {self.qp!r}"
            )
        if self.qp == "fsmo_paper" and self.kkt is None:
            raise ValueError("qp='fsmo_paper' ends by the paper's rule: give kkt, such as 0.001")
        if self.cache == "paper" and self.reach < 1.0:
            raise ValueError(f"cache='paper' needs reach=1, got {self.reach}")
        if self.violation is not None and not (self.violation > 0.0 and self.reach == 1.0):
            raise ValueError(
                f"violation must be positive, with reach=1, got {self.violation} and {self.reach}"
            )

    def start(self, request: TrainingRequest) -> OneSlackRun:
        """See `Solver.start`."""
        problem, formulation, C, weights, warm_start, callbacks = request
        state = of_kind(warm_start, OneSlackState, problem, formulation)
        room = max(int(BUNDLE_SHARE * self.cache_bytes), LEAST_ROOM)
        if state is None:
            candidates = max(self.cache_bytes - room, 0)
            make = CandidatePool if self.cache == "paper" else make_pool
            pool = make(Oracle(problem, formulation), self.cache_size, candidates)
            state = OneSlackState(pool, _empty_bundle(pool, C, room), weights)
        elif np.array_equal(state.weights, weights):
            state.bundle.rescale(C)
        else:
            # Aggregated planes are sums with the old weights; the candidates are still good.
            state = OneSlackState(state.pool, _empty_bundle(state.pool, C, room), weights)
        return OneSlackRun(self, state, C, callbacks)

    # ----- the outer loop ------------------------------------------------------------------------

    def iterate(self, search: OneSlackRun) -> None:
        """Add planes until the certificate meets the stopping criterion."""
        stabilised = self.reach < 1.0 and (search.pool.complete or self.cache_size > 0)
        step = self._stabilised_step if stabilised else self._plain_step
        loop = search.looping(OneSlackLoop())
        if loop.gap is None:
            loop.gap = self._first_pass(search)
            search.record(loop.gap)
        while not search.converged():
            search.save_point()
            self._solve_master(search, self.qp_precision * loop.gap)
            if search.converged():
                search.certified = True  # an earlier center is good enough
            else:
                loop.gap = step(search, loop.gap)
            search.end_iteration(loop.gap)

    def _first_pass(self, search: OneSlackRun) -> float:
        """The first pass, at the weights to start from; returns the gap there."""
        primal, hinges, chosen = search.call()
        search.judge(primal, hinges)
        search.cut(chosen)
        search.table = search.pool.values(search.center)
        return primal - search.dual

    def _solve_master(self, search: OneSlackRun, stop_gap: float) -> None:
        """Improve the multipliers; updates the minimiser and the dual value."""
        with search.stepping():
            self._improve(search, stop_gap)

    def _improve(self, search: OneSlackRun, stop_gap: float) -> None:
        """See `_solve_master`."""
        bundle = search.bundle
        if self.qp == "single_line_search":
            bundle.search_line()
        elif self.qp == "line_search":
            bundle.search_lines(stop_gap)
        elif self.kkt is None:
            bundle.solve(stop_gap, qp=self.qp)
        else:
            bundle.solve(0.0, self.kkt * float(search.weights.sum()), qp=self.qp)
        bundle.drop(self.inactive_limit)
        w = bundle.weights(search.oracle.threads or 1)
        dual = bundle.dual(w)
        rises = dual > search.dual + NEGLIGIBLE * abs(search.dual)
        search.n_useless = 0 if rises else search.n_useless + 1
        search.proven_dual = max(search.dual, dual)
        search.minimiser = w

    def _stabilised_step(self, search: OneSlackRun, gap: float) -> float:
        """Move the center, take a plane near the minimiser; returns the gap as last known."""
        pool = search.pool
        with search.oracle.timed() if pool.complete else nullcontext():
            table = pool.values(search.minimiser)
        if pool.complete:
            search.oracle.count(search.n)
            search.check()
        else:
            search.count_hits(search.n)
        known_gap = self._move_center(search, table)
        if pool.complete:
            if known_gap > search.target or search.certified:
                self._cut_between(search, table)
                return known_gap
        elif self._cache_will_do(search, known_gap, gap):
            self._cut_between(search, table)
            return gap
        del table  # not to be there while new candidates come
        primal, hinges, chosen = search.call()
        search.cut(chosen)
        if isinstance(pool, CandidatePool):
            pool.forget(FORGET_AFTER)
            pool.renew(search.table, hinges, chosen)
        else:
            search.table = pool.values(search.center)
        return primal - search.dual

    def _move_center(self, search: OneSlackRun, table: Floats) -> float:
        """Move the center towards the minimiser, whose table is given; returns the known gap."""
        w, search.minimiser = search.minimiser, np.empty(0)
        square, product = float(search.center @ search.center), float(search.center @ w)
        slope, curvature = product - square, max(0.0, float(w @ w) - 2.0 * product + square)
        C = search.C * search.weights
        t, total = search.pool.descend(search.table, table, C, slope, curvature)
        if t > 0.0:
            blend(search.center, w, t)
            search.certified = False
            square += t * (2.0 * slope + t * curvature)
        return 0.5 * square + total - search.dual

    def _cache_will_do(self, search: OneSlackRun, known_gap: float, gap: float) -> bool:
        """Whether a plane of cached candidates, whose gap is ``known_gap``, is worth adding."""
        search.n_cached += 1
        if self.cache == "paper":
            if self.violation is None:
                return known_gap > search.target
            return known_gap > self.violation * search.stopping.total_C
        goal = max(self.cache_fraction * gap, 0.7 * search.target)
        paying = search.n_cached <= MOST_CACHED and search.n_useless <= MOST_USELESS
        return known_gap > goal and paying

    def _cut_between(self, search: OneSlackRun, table: Floats) -> None:
        """Take a plane of known candidates between the center and the master's minimiser."""
        pool = search.pool
        chosen = pool.choose(search.table, table, self.reach)
        known = search.bundle.slack * (1.0 + 1e-12)
        if pool.chosen_total(table, chosen, search.weights) <= known:
            chosen = pool.choose(search.table, table, 1.0)  # cuts the minimiser off for sure
        search.cut(chosen)

    def _plain_step(self, search: OneSlackRun, gap: float) -> float:
        """The paper's: a plane at the minimiser from the cache or, failing that, the oracle."""
        search.center, search.minimiser = search.minimiser, np.empty(0)
        search.certified = False
        if self.cache_size > 0 and not search.pool.complete:
            table = search.pool.values(search.center)
            search.count_hits(search.n)
            violation = search.pool.best_total(table, search.weights) - search.bundle.slack
            if self._cache_will_do(search, search.C * violation, gap):
                search.cut(search.pool.choose(table, table, 1.0))
                return gap
        primal, hinges, chosen = search.call()
        search.judge(primal, hinges)
        search.cut(chosen)
        return primal - search.dual
