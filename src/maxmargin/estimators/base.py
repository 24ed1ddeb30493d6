"""What all estimators share: parameters, the call of the solver, warm starts and warnings."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import logging
import warnings
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from types import MethodType
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..formulation import Formulation, Rescaling, Slack
from ..problem import Problem
from ..progress import ProgressDisplay
from ..result import Callback, Result
from ..solvers import SOLVERS, Solver, is_online, make_solver
from ..solvers.online import Seen

__all__ = ["MaxMarginEstimator", "OnlineMethod", "Savable", "checked_k", "fingerprint"]

logger = logging.getLogger("maxmargin")
Estimator = TypeVar("Estimator", bound="MaxMarginEstimator")

#: Documentation of the parameters that every estimator has.
SHARED_PARAMETERS = """
C : float, default=1.0
    Multiplies the sum of the slacks (not their mean): larger values fit the training data closer.
rescaling : {"margin", "slack", "none"}, default="margin"
    What the loss rescales.
slack : {"l1", "l2", "none"}, default="l1"
    Whether slacks enter the objective linearly, squared, or not at all.
sqrt_loss : bool, optional
    Use the square root of the loss; by default for squared slacks only.
solver : str or Solver, default="auto"
    "auto", "fasole", "sda", "sdm", "dcd", "dcd-light" and "cpd" (slack "l1" or "l2"), "n-slack"
    (any slack), "one-slack" and "bcfw" ("l1"), an online one, or an instance, whose own ``tol``,
    ``epsilon``, ``max_passes``, ``max_time`` and ``random_state`` are then used in place of the
    estimator's. The online solvers
    ("perceptron", "mira", "sgd", "pegasos") make ``max_passes`` passes, 10 by default, whatever
    the gap.
tol : float or None, default=1e-3
    Stop at this relative duality gap, ``(P - D) / P <= tol``.
epsilon : float, optional
    Stop at this gap in units of mean loss, ``(P - D) / (n C) <= epsilon``. Either suffices.
max_passes : float, optional
    Stop training after this many oracle calls per example.
max_time : float, optional
    Stop training after this many seconds.
n_jobs : int, optional
    Reserved: training uses one core.
random_state : int, RandomState, Generator or None, default=None
    Seed of the order of visits; None draws one from numpy's global generator. The solvers auto,
    fasole and dcd also decide by measured time: runs of the same seed then agree within the
    certified gap, not bit by bit.
verbose : int, default=0
    1 shows the progress of training, 2 every iteration of it.
warm_start : bool, default=False
    Keep what a fit has learned about its data, and begin the next fit on the same data (with
    another ``C``, say) from there. It makes the fitted estimator large.
callbacks : sequence of callable, default=()
    Called with a ``Progress`` after every outer iteration; training stops if one returns True.
"""


def with_shared_parameters(cls: type[Estimator]) -> type[Estimator]:
    """Put the documentation of the shared parameters where a class's docstring asks for it."""
    lines = (f"    {line}" if line else "" for line in SHARED_PARAMETERS.strip("\n").split("\n"))
    if cls.__doc__ is not None:  # None with python -OO
        cls.__doc__ = cls.__doc__.replace("    {shared parameters}", "\n".join(lines))
    return cls


class _Kept(NamedTuple):
    """What a warm start needs of the fit before."""

    fingerprint: str
    problem: Problem


class Savable:
    """Estimators with ``coef_`` that can be written to a file, and read by `maxmargin.load`."""

    def save(self, path: Any) -> None:
        """Write the fitted estimator to one file, to be read by `maxmargin.load`.

        Parameters
        ----------
        path : str or path-like
            File to write. It appears complete or not at all. It holds arrays and JSON, no pickle.

        Raises
        ------
        NotFittedError
            If the estimator has not been fitted.
        ValueError
            If it holds something that such a file cannot keep.
        """
        from ..persistence import save_model

        save_model(self, path)

    # ----- what persistence asks for ------------------------------------------------------------

    def _get_state(self) -> dict[str, Any]:
        """What was learned, other than ``coef_`` and ``result_``, as values that can be saved."""
        raise ValueError(
            f"{type(self).__name__} cannot be saved, for it is made of code of your own; keep "
            "coef_ with numpy.save, and predict with problem.predict(x, w)"
        )

    def _set_state(self, state: dict[str, Any]) -> None:
        """Take up what `_get_state` gave; ``coef_`` is set already."""
        raise NotImplementedError

    def _check_fitted(self) -> None:
        """Raise NotFittedError before the first fit."""
        check_is_fitted(self, "coef_")


class MaxMarginEstimator(Savable, BaseEstimator):
    """Base class of the estimators."""

    def __init__(
        self,
        *,
        C: float,
        rescaling: Rescaling,
        slack: Slack,
        sqrt_loss: bool | None,
        solver: str | Solver,
        tol: float | None,
        epsilon: float | None,
        max_passes: float | None,
        max_time: float | None,
        n_jobs: int | None,
        random_state: Any,
        verbose: int,
        warm_start: bool,
        callbacks: Iterable[Callback],
    ) -> None:
        self.C = C
        self.rescaling = rescaling
        self.slack = slack
        self.sqrt_loss = sqrt_loss
        self.solver = solver
        self.tol = tol
        self.epsilon = epsilon
        self.max_passes = max_passes
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.callbacks = callbacks

    # ----- training -----------------------------------------------------------------------------

    def _train(
        self,
        make_problem: Callable[[], Problem],
        data: tuple[Any, ...],
        sample_weight: NDArray[np.float64] | None,
    ) -> Problem:
        """Solve the problem, and set ``coef_`` and ``result_``.

        ``data`` is all that the problem is made of; a warm start needs it to be the same again.
        """
        formulation = Formulation(self.rescaling, self.slack, self.sqrt_loss)
        solver = self._make_solver()
        kept: _Kept | None = getattr(self, "_kept", None) if self.warm_start else None
        earlier: Result | None = getattr(self, "result_", None)
        content = fingerprint(*data) if self.warm_start else ""
        if kept is not None and kept.fingerprint == content:
            problem = kept.problem
        else:
            if kept is not None:
                logger.debug("the data is not that of the fit before: training starts afresh")
            problem, earlier = make_problem(), None
        callbacks = tuple(self.callbacks)
        with contextlib.ExitStack() as stack:
            if self.verbose:
                display = ProgressDisplay(problem.n_examples, int(self.verbose))
                callbacks += (stack.enter_context(display),)
            result = solver.solve(
                problem,
                formulation,
                float(self.C),
                sample_weight=sample_weight,
                warm_start=earlier if self.warm_start else None,
                callbacks=callbacks,
            )
        self.coef_ = result.w
        self.__dict__.pop("_online", None)
        if self.warm_start:
            self.result_ = result
            self._kept = _Kept(content, problem)
        else:
            self.result_ = dataclasses.replace(result, state=None)
            self.__dict__.pop("_kept", None)
        _warn_unless_converged(result, solver)
        return problem

    def _train_online(
        self, problem: Problem, data: tuple[Any, ...], sample_weight: NDArray[np.float64] | None
    ) -> None:
        """One more pass of an online solver, over ``problem``, and set ``coef_`` and ``result_``.

        Training goes on from what the last call has left in ``_online``; without it, from ``coef_``
        where there is one of the right size. ``data`` is all that the problem is made of: the same
        again adds nothing to the examples seen, whose weights are what C multiplies.
        """
        solver = dataclasses.replace(self._make_solver(), max_passes=1)
        earlier: Result | None = getattr(self, "_online", None)
        content = fingerprint(*data, sample_weight)
        if earlier is not None:
            if content in earlier.state.seen.contents:
                earlier.state.counted = problem
        elif len(getattr(self, "coef_", ())) == problem.n_features:
            n = self.result_.n_examples
            seen = Seen(count=float(n), weight=float(n))
            earlier = dataclasses.replace(self.result_, w=self.coef_, state=seen)
        result = solver.solve(
            problem,
            Formulation(self.rescaling, self.slack, self.sqrt_loss),
            float(self.C),
            sample_weight=sample_weight,
            warm_start=earlier,
            callbacks=tuple(self.callbacks),
        )
        result.state.seen.contents.add(content)
        result.state.forget_examples()
        self.coef_ = result.w
        self._online = result
        self.result_ = dataclasses.replace(result, state=None)

    def _make_solver(self) -> Solver:
        """Build the solver from the parameters, checking them."""
        if not isinstance(self.C, Real) or not (np.isfinite(self.C) and self.C > 0):
            raise ValueError(f"C must be a positive, finite number, got {self.C!r}")
        for name in ("tol", "epsilon", "max_passes", "max_time"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, Real) or not value >= 0):
                raise ValueError(f"{name} must be None or a number >= 0, got {value!r}")
        if self.n_jobs is not None and not isinstance(self.n_jobs, Integral):
            raise ValueError(f"n_jobs must be None or a whole number, got {self.n_jobs!r}")
        return make_solver(
            self.solver,
            tol=self.tol,
            epsilon=self.epsilon,
            max_passes=self.max_passes,
            max_time=self.max_time,
            random_state=_seed(self.random_state),
        )


class OnlineMethod:
    """A method that an estimator has only while its solver is an online one; a decorator.

    Like scikit-learn's ``available_if``, which however says no more than that there is no such
    attribute.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self.method
        if not is_online(estimator.solver):
            names = [repr(name) for name in SOLVERS if is_online(name)]
            raise AttributeError(
                f"{self.method.__name__} needs a solver that takes examples as they come, "
                f"{', '.join(names[:-1])} or {names[-1]}; got solver={estimator.solver!r}"
            )
        return MethodType(self.method, estimator)


def checked_k(k: Any) -> int:
    """The k of `predict_k`."""
    if not isinstance(k, Integral) or k < 1:
        raise ValueError(f"k must be a whole number >= 1, got {k!r}")
    return int(k)


def fingerprint(*parts: Any) -> str:
    """Hash of the content of arrays, matrices and small values."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        if sp.issparse(part):
            arrays = [part.data, part.indices, part.indptr]
            digest.update(f"sparse{part.shape}".encode())
        elif isinstance(part, np.ndarray) and part.dtype != object:
            arrays = [part]
        else:
            arrays = []
            digest.update(part if isinstance(part, bytes) else repr(part).encode())
        for array in arrays:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def _seed(random_state: Any) -> Any:
    """A seed for numpy's generators out of anything scikit-learn accepts."""
    if random_state is None:
        return int(np.random.mtrand._rand.randint(2**31 - 1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, (Integral, np.random.Generator)):
        return random_state
    raise ValueError(
        f"random_state must be None, an integer, a RandomState or a Generator, got {random_state!r}"
    )


def _warn_unless_converged(result: Result, solver: Solver) -> None:
    """Warn where training ended before the precision asked for, and say what to raise."""
    if result.converged or result.status in ("interrupted", "inexact oracle"):  # warned of already
        return
    if result.gap is None and not getattr(solver, "certified", True):
        return  # a solver that promises no precision
    tol, epsilon = getattr(solver, "tol", None), getattr(solver, "epsilon", None)
    if tol is None and epsilon is None:
        return  # no precision was asked for
    asked = " or ".join(
        f"{name}={value:g}"
        for name, value in (("tol", tol), ("epsilon", epsilon))
        if value is not None
    )
    limit = getattr(solver, result.status, None)
    if result.status == "callback":
        ended, advice = "a callback ended training", "let it run on"
    elif limit is not None:
        ended, advice = f"training reached {result.status}={limit:g}", f"raise {result.status}"
    else:
        ended, advice = f"training ended ({result.status})", "use another solver"
    reached = (
        f"a certified relative gap of {result.relative_gap:.3g} (gap {result.gap:.4g})"
        if result.gap is not None and result.relative_gap is not None
        else "no certified gap"
    )
    warnings.warn(
        f"{ended} with {reached} before {asked} was met; {advice}, or allow a larger gap",
        ConvergenceWarning,
        stacklevel=4,
    )
