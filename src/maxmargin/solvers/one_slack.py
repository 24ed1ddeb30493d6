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

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..engine.cuts.bundle import Bundle
from ..engine.cuts.master import best_candidates, best_total, blend, chosen_total, line_minimum
from ..engine.cuts.pool import CandidatePool, Pool, make_pool
from ..formulation import Formulation
from ..objective import NEGLIGIBLE, Certificate, Stopping, hinge_values, primal_value
from ..problem import Problem
from ..result import Callback, Result
from ..types import Floats, Ints
from .base import Run, Solver, checked_weights

__all__ = ["OneSlack"]


FORGET_AFTER = 30  # planes without it after which a cached candidate is dropped; it costs time
# Planes in a row from the cache, and those in a row that do not raise the dual value, after which
# the oracle is asked all the same. (One of the latter may be needed to get to another that does.)
MOST_CACHED, MOST_VAIN = 300, 3


class Memory(NamedTuple):
    """What a warm start goes on from."""

    pool: Pool
    bundle: Bundle
    weights: Floats


class Search:
    """A run of the method: pool, bundle, the best point known and the bounds."""

    def __init__(
        self,
        run: Run,
        memory: Memory,
        stopping: Stopping,
        C: float,
    ) -> None:
        self.run = run
        self.pool, self.bundle, self.weights = memory
        self.stopping = stopping
        self.C = C
        self.formulation = self.pool.formulation
        self.n = len(self.weights)
        self.bundle.widen(self.pool.n_weights)
        self.center: Floats = self.bundle.weights()
        self.table: Floats = np.empty((self.n, 0))  # of the candidates' values at the center
        self.dual = self.bundle.dual(self.center)
        self.certified = False  # whether the center's primal value is certified
        self.n_cached = 0  # planes since the oracle was last asked
        self.n_vain = 0  # those in a row that did not raise the dual value

    @property
    def certificate(self) -> Certificate | None:
        """The best certified primal value and the best dual value."""
        return Certificate(self.run.best[0], self.dual) if self.run.best is not None else None

    @property
    def target(self) -> float:
        """Gap to reach."""
        return self.stopping.target(self.dual)

    def converged(self) -> bool:
        """Whether the certificate meets the stopping criterion."""
        return self.certificate is not None and self.stopping.met(self.certificate)

    def count(self, calls: int) -> None:
        """Count oracle calls."""
        self.run.count(oracle_calls=calls)

    def ask(self) -> tuple[float, Floats, Ints]:
        """A full pass of true oracle calls at the center.

        Returns its certified primal value, and hinge values and candidates of all examples. Weights
        that new candidates bring are 0 at the center.
        """
        self.n_cached = self.n_vain = 0
        hinges, chosen = self.pool.ask(self.center, self.count)
        primal = primal_value(self.center, hinges, self.formulation, self.C, self.weights)
        self.run.offer(primal, self.center)
        self.certified = True
        new = self.pool.n_weights - len(self.center)
        if new:
            self.center = np.concatenate((self.center, np.zeros(new)))
            self.bundle.widen(self.pool.n_weights)
        return primal, hinges, chosen

    def cut(self, chosen: Ints) -> None:
        """Add the aggregated plane of the chosen candidates, unless that is the truth's."""
        if not np.any((chosen >= 0) & (self.weights > 0.0)):
            return
        plane = self.bundle.blank
        offset = self.pool.add_up(chosen, self.weights, plane)
        self.bundle.add(plane, offset)

    def certify(self) -> None:
        """A pass of true oracle calls at the center, without limits."""
        w = self.pool.expand(self.center)
        hinges = hinge_values(self.pool.problem, self.formulation, w)
        self.run.oracle_calls += self.n
        primal = primal_value(self.center, hinges, self.formulation, self.C, self.weights)
        self.run.offer(primal, self.center)
        self.certified = True

    def record(self, gap_estimate: float | None = None) -> None:
        """End an outer iteration: history, callbacks, limits."""
        certificate, stuck = self.certificate, False
        if self.n_cached == 0 and certificate is not None and gap_estimate is not None:
            stuck = self.run.stalling.seen(gap_estimate, self.dual, lambda: certificate)
        self.run.record(
            dual=self.dual,
            planes=self.bundle.size,
            certificate=certificate if self.certified else None,
            gap_estimate=gap_estimate,
            target=self.target,
        )
        self.run.check_passes(stuck)


def _empty_bundle(pool: Pool, C: float) -> Bundle:
    """A bundle for the planes of a pool."""
    return Bundle(pool.n_weights, C, dense=False if pool.grows else None)


@dataclass(frozen=True)
class OneSlack(Solver):
    """One-slack cutting planes with a cache of candidates and a stabilised master.

    Algorithm 3 of Joachims et al. (2009) for margin rescaling and Algorithm 4 for slack rescaling,
    with their Section 4: warm starts of the QP, a cache of candidates, precision that follows the
    progress, inactive planes removed. The QP is solved by Algorithm 2 of Lee & Jang (2010).

    Parameters
    ----------
    qp : {"fsmo", "line-search"}
        How the master problem is solved: modified FSMO (Lee & Jang 2010, Alg. 2), or no more than
        improved by line searches, one for each plane (the variant that Joachims et al. suggest
        after Theorem 5: cheaper per plane, more planes).
    cache_size : int
        At most so many candidates of each example are kept, the most recently used ones; 0 asks
        the oracle for every plane. Problems whose outputs can all be listed need no cache.
    cache_mb : float
        Budget for the cached candidates.
    cache_share : float
        The oracle is asked when the gap over cached candidates is below this share of the last
        certified gap.
    reach : float
        Where planes are taken, as a share of the way from the best point known to the master's
        minimiser. 1 is the paper's algorithm.
    inactive_limit : int
        Planes without weight in so many solutions of the master in a row are dropped. The paper
        waits for 50; with fewer planes kept the master costs less, and takes no more iterations.
    qp_precision : float
        The master is solved up to this share of the current gap.
    kkt : float, optional
        Lee & Jang's own rule for the end of their Algorithm 2, in place of ``qp_precision``: the
        master is solved until no plane's score is off by more than this, in units of mean loss.

    Notes
    -----
    **Deviations**

    * Planes are taken near the best point known, not at the master's minimiser; ``reach=1`` gives
      the paper's. Problems whose outputs can be listed need no cache, and no oracle.
    * Training ends by the duality gap of the best point known, which is at most ``epsilon`` where
      the paper's rule, a plane violated by at most epsilon, holds for an exact master.
    * The paper asks the oracle where no plane of cached candidates is violated by more than
      epsilon; here already where their gap is below ``cache_share`` of the last certified gap,
      after 300 cached planes in a row, and after three that do not raise the dual value. With
      ``cache_share=0`` the first of these is 0.7 of the target; ``cache_size=0`` is Algorithm 3
      without a cache. Cached candidates that no plane has used for long are dropped.
    * Inactive planes go after 20 solutions; ``inactive_limit=50`` gives the paper's.
    * A plane that is there already is not added again.
    * The master's precision is a share of the current gap. The paper only says that it follows the
      progress; Lee & Jang have a fixed threshold, ``kkt``.
    * Algorithm 2 of Lee & Jang: a round of pairs has as many steps as there are planes, in place of
      one; of two planes to take weight from, the one is chosen that gains more as far as its weight
      goes; weight may be given up at the bound where all scores are negative, at which the paper's
      rule stops short of the optimum; a round of single steps ends as soon as the bound is reached.
    * ``qp="line-search"``: the paper suggests one line search for a plane; here there are up to as
      many as planes, each towards the best plane from all others or from a single one.
    """

    qp: Literal["fsmo", "line-search"] = "fsmo"
    cache_size: int = 10
    cache_mb: float = 1024.0
    cache_share: float = 0.3
    reach: float = 0.1
    inactive_limit: int = 20
    qp_precision: float = 0.01
    kkt: float | None = None

    name: ClassVar[str] = "one-slack"

    def check(self, problem: Problem, formulation: Formulation, C: float) -> None:
        """Raise ValueError if this solver cannot do what is asked."""
        super().check(problem, formulation, C)
        if self.qp not in ("fsmo", "line-search"):
            raise ValueError(f"qp must be 'fsmo' or 'line-search', got {self.qp!r}")
        if not 0.0 < self.reach <= 1.0:
            raise ValueError(f"reach must be in (0, 1], got {self.reach}")
        if self.kkt is not None and (self.qp != "fsmo" or not self.kkt > 0.0):
            raise ValueError(
                f"kkt must be positive, with qp='fsmo', got {self.kkt} and {self.qp!r}"
            )

    def solve(
        self,
        problem: Problem,
        formulation: Formulation,
        C: float,
        *,
        sample_weight: ArrayLike | None = None,
        warm_start: Result | None = None,
        callbacks: Iterable[Callback] = (),
    ) -> Result:
        """Train; see `Solver.solve`."""
        self.check(problem, formulation, C)
        weights = checked_weights(sample_weight, problem.n_examples)
        run = Run(self, problem.n_examples, callbacks)
        memory = self._memory(problem, formulation, C, weights, warm_start)
        stopping = Stopping(self.tol, self.epsilon, C * float(weights.sum()))
        search = Search(run, memory, stopping, C)
        with run:
            return self._finish(search, run.train(lambda: self._iterate(search)))

    def _memory(
        self,
        problem: Problem,
        formulation: Formulation,
        C: float,
        weights: Floats,
        warm: Result | None,
    ) -> Memory:
        """A fresh start, or what an earlier result of the same problem and formulation left."""
        state = warm.state if warm is not None else None
        if (
            isinstance(state, Memory)
            and state.pool.problem is problem
            and state.pool.formulation == formulation
        ):
            if np.array_equal(state.weights, weights):
                state.bundle.rescale(C)
                return state
            # Aggregated planes are sums with the old weights; the candidates are still good.
            return Memory(state.pool, _empty_bundle(state.pool, C), weights)
        budget = int(self.cache_mb * 2**20)
        pool = make_pool(problem, formulation, self.cache_size, budget)
        return Memory(pool, _empty_bundle(pool, C), weights)

    # ----- the outer loop ------------------------------------------------------------------------

    def _iterate(self, search: Search) -> None:
        """Add planes until the certificate meets the stopping criterion."""
        stabilised = self.reach < 1.0 and (search.pool.complete or self.cache_size > 0)
        gap = self._look_around(search)
        search.record(gap)
        while not search.converged():
            w = self._solve_master(search, self.qp_precision * gap)
            if search.converged():
                search.certified = True  # an earlier center is good enough
            else:
                gap = (self._approach if stabilised else self._step)(search, w, gap)
            search.record(gap)

    def _look_around(self, search: Search) -> float:
        """The first pass, at the weights to start from; returns the gap there."""
        primal, _, chosen = search.ask()
        search.cut(chosen)
        search.table = search.pool.values(search.center)
        return primal - search.dual

    def _solve_master(self, search: Search, stop_gap: float) -> Floats:
        """Improve the multipliers; returns the new ``w`` and updates the dual value."""
        bundle = search.bundle
        if self.qp == "fsmo":
            if self.kkt is None:
                bundle.solve(stop_gap)
            else:
                bundle.solve(0.0, self.kkt * float(search.weights.sum()))
        else:
            bundle.search_lines(stop_gap)
        bundle.drop(self.inactive_limit)
        w = bundle.weights()
        dual = bundle.dual(w)
        rises = dual > search.dual + NEGLIGIBLE * abs(search.dual)
        search.n_vain = 0 if rises else search.n_vain + 1
        search.dual = max(search.dual, dual)
        return w

    def _approach(self, search: Search, w: Floats, gap: float) -> float:
        """Move the center towards ``w``, take a plane near it; returns the gap as last known."""
        pool, weights, C = search.pool, search.weights, search.C
        table = pool.values(w)
        if pool.complete:
            search.count(search.n)
        else:
            search.run.count(cache_hits=search.n)
        square, product = float(search.center @ search.center), float(search.center @ w)
        slope, curvature = product - square, max(0.0, float(w @ w) - 2.0 * product + square)
        t = line_minimum(search.table, table, C * weights, slope, curvature)
        if t > 0.0:
            blend(search.center, w, t)
            search.table += t * (table - search.table)
            search.certified = False
            square += t * (2.0 * slope + t * curvature)
        known_gap = 0.5 * square + C * best_total(search.table, weights) - search.dual
        if pool.complete:
            if known_gap > search.target or search.certified:
                self._cut_between(search, table)
                return known_gap
        elif self._cache_will_do(search, known_gap, gap):
            self._cut_between(search, table)
            return gap
        primal, hinges, chosen = search.ask()
        search.cut(chosen)
        if isinstance(pool, CandidatePool):
            pool.forget(FORGET_AFTER)
            pool.renew(search.table, hinges, chosen)
        else:
            search.table = pool.values(search.center)
        return primal - search.dual

    def _cache_will_do(self, search: Search, known_gap: float, gap: float) -> bool:
        """Whether a plane of cached candidates, whose gap is ``known_gap``, is worth adding."""
        search.n_cached += 1
        goal = max(self.cache_share * gap, 0.7 * search.target)
        paying = search.n_cached <= MOST_CACHED and search.n_vain <= MOST_VAIN
        return known_gap > goal and paying

    def _cut_between(self, search: Search, table: Floats) -> None:
        """Take a plane of known candidates between the center and the master's minimiser."""
        chosen = np.empty(search.n, np.int64)
        best_candidates(search.table, table, self.reach, chosen)
        if chosen_total(table, chosen, search.weights) <= search.bundle.slack * (1.0 + 1e-12):
            best_candidates(search.table, table, 1.0, chosen)  # cuts the minimiser off for sure
        search.cut(chosen)

    def _step(self, search: Search, w: Floats, gap: float) -> float:
        """The paper's iteration: a plane at ``w`` from the cache or, failing that, the oracle."""
        search.center = w
        search.certified = False
        if self.cache_size > 0 and not search.pool.complete:
            table = search.pool.values(w)
            search.run.count(cache_hits=search.n)
            violation = best_total(table, search.weights) - search.bundle.slack
            if self._cache_will_do(search, search.C * violation, gap):
                chosen = np.empty(search.n, np.int64)
                best_candidates(table, table, 1.0, chosen)
                search.cut(chosen)
                return gap
        primal, _, chosen = search.ask()
        search.cut(chosen)
        return primal - search.dual

    def _finish(self, search: Search, status: str) -> Result:
        """Certify the last center if need be, and gather the result."""
        run = search.run
        if not search.certified or run.best is None:
            status = run.certify_at_the_end(search, search.certify, status)
        assert run.best is not None and search.certificate is not None
        # An interrupt may have left the planes half-changed: no warm start from those.
        keeps = status != "interrupted"
        return run.result(
            search.pool.expand(run.best[1]).copy(),
            search.certificate,
            converged=search.converged(),
            status=status,
            planes=search.bundle.size,
            state=Memory(search.pool, search.bundle, search.weights) if keeps else None,
        )
