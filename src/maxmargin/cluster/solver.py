"""Training on a cluster, as a solver: `ClusterSolver`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from ..core.formulation import Formulation
from ..core.problem import Problem
from ..core.result import Callback, Progress, Result, WeightsCallback
from ..engine.accelerators import AdaptiveFeatures
from ..solvers import Auto, OneSlack, Solver
from ..solvers.base import SolverParameters, checked_weights
from ..utils.types import Floats
from ..utils.warn import warn_user
from .ascent import ShardedAscent
from .dask_executor import DaskExecutor, address_of, as_client
from .executor import ClusterLost, Executor, Loader, NobodyWorks, ShardConfig, ShardedProblem, cut
from .shard import ShardOptions

__all__ = ["ClusterSolver", "solve_by"]

COMMON = [field.name for field in dataclasses.fields(SolverParameters)]


@dataclasses.dataclass(frozen=True)
class ClusterSolver(SolverParameters):
    """A solver whose examples are on the workers of a Dask cluster.

    The examples are cut into parts, each of which stays on a worker with its planes. Weights go
    out, and for each part come back sums, a cutting plane and a point of the dual: as much for a
    thousand examples as for a million. Certificates are by true oracle calls for all examples.

    Parameters
    ----------
    cluster : distributed.Client, cluster or str
        Who works: a client of Dask's, a cluster such as ``LocalCluster``, or the address of a
        scheduler. ``pip install "maxmargin[distributed]"`` installs what is needed.
    method : {"auto", "one_slack"} or OneSlack
        "auto" is dual ascent by parts, "one_slack" cutting planes, with one plane for each pass.
    n_shards : int, optional
        Shards to cut the examples into; by default one for each thread of the workers. The
        weights depend on it, and not on who works on which part.
    timeout : float
        Seconds after which an answer is late, if others have come, all in less than a third of the
        time. A part that is late again and again is given to another worker. After as many seconds
        without any worker, or ten, training ends with the status "cluster lost".
    cache_mb : float
        Budget for the planes of a part.

    Notes
    -----
    Limits and precision are those of all solvers; ``n_jobs`` are the threads of a part. With the
    same number of parts the weights are the same bits each time, unless a worker is lost or late. A
    part that was lost starts without planes; what it has contributed to the weights stays, and the
    certificate is as true as ever. After a checkpoint, too, "auto" goes on from what the driver
    has, with workers that start without planes; "one_slack" goes on as if nothing had happened.
    Constraints on weights are met by cutting planes, whatever the method.

    Examples
    --------
    >>> from distributed import LocalCluster  # doctest: +SKIP
    >>> solver = ClusterSolver(cluster=LocalCluster(), tol=1e-3)  # doctest: +SKIP
    >>> result = solver.solve(problem, Formulation(), C=1.0)  # doctest: +SKIP
    """

    cluster: Any = dataclasses.field(default=None, kw_only=True)
    method: str | OneSlack = dataclasses.field(default="auto", kw_only=True)
    n_shards: int | None = dataclasses.field(default=None, kw_only=True)
    timeout: float = dataclasses.field(default=60.0, kw_only=True)

    name: ClassVar[str] = "cluster"
    slacks: ClassVar[tuple[str, ...]] = ("l1", "l2")

    def __post_init__(self) -> None:
        if isinstance(self.method, str):  # hyphens as in `make_solver`
            object.__setattr__(self, "method", self.method.replace("-", "_"))
        if self.method not in ("auto", "one_slack") and not isinstance(self.method, OneSlack):
            raise ValueError(
                f"on a cluster the solver must be 'auto' or 'one_slack', got {self.method!r:.60}"
            )
        if self.n_shards is not None and self.n_shards < 1:
            raise ValueError(f"n_shards must be >= 1, got {self.n_shards}")
        if not self.timeout > 0:
            raise ValueError(f"timeout must be positive, got {self.timeout}")

    def __getstate__(self) -> dict[str, Any]:
        """A connection is not to be pickled, but where it leads to is."""
        return {**vars(self), "cluster": address_of(self.cluster)}

    @classmethod
    def like(cls, solver: Solver, cluster: Any) -> ClusterSolver:
        """A solver with the precision and limits of another one, on a cluster."""
        if isinstance(solver, OneSlack):
            method: str | OneSlack = solver
        else:
            method = "auto" if type(solver) is Auto else getattr(solver, "name", repr(solver))
        common: dict[str, Any] = {name: getattr(solver, name, None) for name in COMMON}
        return cls(**common, cluster=cluster, method=method)

    def _inner(self, formulation: Formulation) -> Solver:
        """What the driver runs over the parts; for constraints it needs cutting planes."""
        common = {name: getattr(self, name) for name in COMMON} | {"n_jobs": 1}
        if isinstance(self.method, OneSlack):
            return dataclasses.replace(self.method, **common)
        if self.method == "one_slack" or formulation.constraints is not None:
            return OneSlack(**common)
        return ShardedAscent(**common)

    def solve(
        self,
        problem: Problem | Sequence[Loader],
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
        if formulation.slack not in self.slacks:
            raise ValueError(f"on a cluster slack must be in {self.slacks}, got {formulation}")
        inner = self._inner(formulation)
        client = as_client(self.cluster)
        try:
            loaders, weights = self._parts(client, problem, sample_weight)
            plain = dataclasses.replace(formulation, constraints=None)
            options = ShardOptions(
                cache_mb=self.cache_mb,
                n_jobs=self.n_jobs,
                seed=int(np.random.default_rng(inner.random_state).integers(2**32)),
            )
            config = [
                ShardConfig(plain, C, own, options.of(k), hashed=inner.checkpoint is not None)
                for k, own in enumerate(weights)
            ]
            with DaskExecutor(client, loaders, config, self.timeout) as executor:
                result = solve_by(executor, inner, formulation, C, callbacks)
            if executor.lost is not None:
                warn_user(f"{executor.lost}; the best weights so far are kept")
            return result
        except ClusterLost as lost:  # before there were any weights
            raise NobodyWorks(lost.why) from None
        finally:
            if client is not self.cluster:
                client.close()

    def _parts(
        self, client: Any, problem: Problem | Sequence[Loader], sample_weight: Any
    ) -> tuple[list[Loader], list[Floats | None]]:
        """Recipes of the parts, and the weights of their examples."""
        if isinstance(problem, Sequence) and not hasattr(problem, "n_examples"):
            loaders = list(problem)
            if not loaders or not all(callable(loader) for loader in loaders):
                raise ValueError("expected a problem, or a list of callables, one for each shard")
            if sample_weight is not None and len(sample_weight) != len(loaders):
                raise ValueError(
                    f"sample_weight has {len(sample_weight)} arrays for {len(loaders)} shards"
                )
            return loaders, [None] * len(loaders) if sample_weight is None else list(sample_weight)
        if isinstance(problem, AdaptiveFeatures):
            raise ValueError(
                f"a {type(problem).__name__} finds its features during training, and each shard "
                "would have different ones"
            )
        n = problem.n_examples  # type: ignore[union-attr]
        if n == 0:
            raise ValueError("the problem has no examples")
        n_shards = self.n_shards or max(1, sum(client.nthreads().values()))
        loaders, pieces = cut(problem, min(n_shards, n))  # type: ignore[arg-type]
        if sample_weight is None:
            return loaders, [None] * len(pieces)
        given = checked_weights(sample_weight, n)
        return loaders, [given[piece] for piece in pieces]


def solve_by(
    executor: Executor,
    solver: Solver,
    formulation: Formulation,
    C: float,
    callbacks: Iterable[Callback],
) -> Result:
    """Solve the problem of all parts of a team; counts are of examples."""
    widths = {info.n_features for info in executor.info}
    if len(widths) > 1:
        raise ValueError(f"the shards have different numbers of features: {sorted(widths)}")
    problem = ShardedProblem(executor, formulation)
    if problem.size == 0:
        raise ValueError(f"all {problem.n_examples} shards are empty, expected examples")
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
