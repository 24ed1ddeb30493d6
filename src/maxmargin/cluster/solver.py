"""Training on a cluster, as a solver: `ClusterSolver`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..formulation import Formulation
from ..problem import Problem
from ..result import Callback, Progress, Result, WeightsCallback
from ..solvers import Auto, OneSlack, Solver, make_solver
from ..solvers.base import checked_weights
from ..types import Floats
from .ascent import PartsAscent
from .dask_team import DaskTeam, as_client
from .part import PartOptions
from .problem import PartsProblem
from .recipes import cut
from .team import Recipe, Team, Terms

__all__ = ["ClusterSolver", "solve_by"]

COMMON = [field.name for field in dataclasses.fields(Solver)]


@dataclasses.dataclass(frozen=True)
class ClusterSolver:
    """A solver whose examples are on the workers of a Dask cluster.

    The examples are cut into parts, each of which stays on a worker with its planes. Weights go
    out, and for each part come back sums, a cutting plane and a point of the dual: as much for a
    thousand examples as for a million. Certificates are by true oracle calls for all examples.

    Parameters
    ----------
    cluster : distributed.Client, cluster or str
        Who works: a client of Dask's, a cluster such as ``LocalCluster``, or the address of a
        scheduler. ``pip install "maxmargin[distributed]"`` installs what is needed.
    solver : {"auto", "one-slack"} or Solver
        "auto" is dual ascent by parts, "one-slack" cutting planes; or an instance of `Auto`, whose
        precision and limits hold, or of `OneSlack`.
    n_parts : int, optional
        Parts to cut the examples into; by default one for each thread of the workers there are. The
        weights depend on it, and not on who works on which part.
    timeout : float
        Seconds after which an answer is late, if half of the others have come, and took less than a
        third of the time. A part that is late again and again is given to another worker.
    cache_mb : float
        Budget for the planes of a part.
    **limits
        Parameters that all solvers have, where ``solver`` is a name: ``tol``, ``epsilon``,
        ``max_passes``, ``max_time``, ``checkpoint`` and so on.

    Notes
    -----
    With the same number of parts the weights are the same bits each time, unless a worker is lost
    or late. A part that was lost starts without planes; what it has contributed to the weights
    stays, and the certificate is as true as ever. After a checkpoint, too, "auto" goes on from what
    the driver has, with workers that start without planes; "one-slack" goes on as if nothing had
    happened.
    """

    cluster: Any
    solver: str | Solver = "auto"
    n_parts: int | None = None
    timeout: float = 60.0
    cache_mb: float = 1024.0
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __init__(
        self,
        cluster: Any,
        solver: str | Solver = "auto",
        *,
        n_parts: int | None = None,
        timeout: float = 60.0,
        cache_mb: float = 1024.0,
        **limits: Any,
    ) -> None:
        values = (cluster, solver, n_parts, timeout, cache_mb, limits)
        for field, value in zip(dataclasses.fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)
        if n_parts is not None and n_parts < 1:
            raise ValueError(f"n_parts must be >= 1, got {n_parts}")
        if not timeout > 0:
            raise ValueError(f"timeout must be positive, got {timeout}")
        self.inner  # noqa: B018 - checks the solver

    @property
    def inner(self) -> Solver:
        """The solver that the driver runs over the parts, for weights without constraints."""
        solver = make_solver(self.solver, **self.options)
        if isinstance(solver, OneSlack):
            return solver
        if type(solver) is Auto:
            return PartsAscent(**{name: getattr(solver, name) for name in COMMON})
        raise ValueError(
            "on a cluster the solver is 'auto' or 'one-slack', or an instance of Auto or OneSlack, "
            f"got {self.solver!r:.60}"
        )

    def __getattr__(self, name: str) -> Any:
        """Precision and limits are those of the solver."""
        if name in COMMON:
            return getattr(self.inner, name)
        raise AttributeError(name)

    def limits(self, n_examples: int) -> Any:
        """When training ends, whatever the gap."""
        return self.inner.limits(n_examples)

    def solve(
        self,
        problem: Problem | Sequence[Recipe],
        formulation: Formulation,
        C: float,
        *,
        sample_weight: Any = None,
        warm_start: Result | None = None,
        callbacks: Iterable[Callback] = (),
    ) -> Result:
        """Train on the cluster; see `Solver.solve`.

        Parameters
        ----------
        problem : Problem or list of callables
            Examples and oracle, to be cut into parts (`Problem.subset`); or a callable for each
            part that returns its problem, on whichever worker it is called: it can be called again
            elsewhere. ``functools.partial(load, "part-3.npz")``, say, reads a file there.
        formulation : Formulation
            The kind of structural SVM, with slacks that are linear or squared.
        C : float
            Multiplies the sum of the slacks.
        sample_weight : array of shape (n_examples,), or a list of arrays, optional
            Multiplies each example's slack; a list with one array for each part, if these are
            given.
        warm_start : Result, optional
            Not used: nothing is kept from one training to the next.
        callbacks : iterable of callable
            Called with a `Progress` after every round.

        Returns
        -------
        Result
            Weights, certificate and history.
        """
        if formulation.slack == "none":
            raise ValueError("hard margins (slack='none') are not trained on a cluster")
        inner = self.inner
        # Constraints are the driver's, who has cutting planes for them.
        if formulation.constraints is not None and isinstance(inner, PartsAscent):
            inner = OneSlack(**{name: getattr(inner, name) for name in COMMON})
        client = as_client(self.cluster)
        try:
            recipes, weights = self._parts(client, problem, sample_weight)
            plain = dataclasses.replace(formulation, constraints=None)
            options = PartOptions(
                cache_mb=self.cache_mb,
                n_jobs=inner.n_jobs,
                seed=int(np.random.default_rng(inner.random_state).integers(2**32)),
            )
            terms = [
                Terms(plain, C, own, options.of(k), hashed=inner.checkpoint is not None)
                for k, own in enumerate(weights)
            ]
            with DaskTeam(client, recipes, terms, self.timeout) as team:
                return solve_by(team, inner, formulation, C, callbacks)
        finally:
            if client is not self.cluster:
                client.close()

    def _parts(
        self, client: Any, problem: Problem | Sequence[Recipe], sample_weight: Any
    ) -> tuple[list[Recipe], list[Floats | None]]:
        """Recipes of the parts, and the weights of their examples."""
        if isinstance(problem, Sequence) and not hasattr(problem, "n_examples"):
            recipes = list(problem)
            if not recipes or not all(callable(recipe) for recipe in recipes):
                raise ValueError("expected a problem, or a list of callables, one for each part")
            if sample_weight is not None and len(sample_weight) != len(recipes):
                raise ValueError(
                    f"sample_weight has {len(sample_weight)} arrays for {len(recipes)} parts"
                )
            return recipes, [None] * len(recipes) if sample_weight is None else list(sample_weight)
        if getattr(problem, "grows_in_training", False):
            raise ValueError(
                f"a {type(problem).__name__} finds its features in training: its parts would have "
                "different ones"
            )
        n = problem.n_examples  # type: ignore[union-attr]
        if n == 0:
            raise ValueError("the problem has no examples")
        n_parts = self.n_parts or max(1, sum(client.nthreads().values()))
        recipes, pieces = cut(problem, min(n_parts, n))  # type: ignore[arg-type]
        if sample_weight is None:
            return recipes, [None] * len(pieces)
        given = checked_weights(sample_weight, n)
        return recipes, [given[piece] for piece in pieces]


def solve_by(
    team: Team, solver: Solver, formulation: Formulation, C: float, callbacks: Iterable[Callback]
) -> Result:
    """Solve the problem of all parts of a team; counts are of examples."""
    widths = {facts.n_features for facts in team.facts}
    if len(widths) > 1:
        raise ValueError(f"the parts have different numbers of features: {sorted(widths)}")
    problem = PartsProblem(team, formulation)
    ratio = problem.size / problem.n_examples
    result = solver.solve(
        problem,
        problem.formulation,
        C,
        sample_weight=problem.weights,
        callbacks=[_Counting(callback, ratio) for callback in callbacks],
    )
    return dataclasses.replace(
        result,
        n_oracle_calls=round(ratio * result.n_oracle_calls),
        history=[_scaled(progress, ratio) for progress in result.history],
        state=None,
    )


def _scaled(progress: Progress, ratio: float) -> Progress:
    """The same, with calls of examples in place of parts."""
    return dataclasses.replace(progress, oracle_calls=round(ratio * progress.oracle_calls))


class _Counting(WeightsCallback):
    """A callback that is told of examples, not of parts."""

    def __init__(self, callback: Callback, ratio: float) -> None:
        self.callback, self.ratio = callback, ratio

    def __call__(self, progress: Progress, weights: Any = None) -> bool | None:
        """See `WeightsCallback`."""
        progress = _scaled(progress, self.ratio)
        if isinstance(self.callback, WeightsCallback):
            return self.callback(progress, weights)
        return self.callback(progress)
