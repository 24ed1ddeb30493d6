"""The parameters that all estimators share, and how estimators take over parameters of others.

Parameters are fields of dataclasses: each is written once, with its type and default, and Python
composes the constructors of the estimators from those of their base classes.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Literal, TypeVar, cast

import numpy as np

from ..defaults import CACHE_MB, CHECKPOINT_EVERY, KEEPING, TOL
from ..formulation import Rescaling, Slack
from ..registry import import_name
from ..result import Callback
from ..schema import annotated_types
from ..solvers import Solver, make_solver
from ..solvers.base import SolverParameters, check_numbers
from ..validation import is_list, is_one_of

__all__ = [
    "SharedParameters",
    "check_parameters",
    "seed_of",
    "solver_of",
    "with_inherited_parameters",
]

Class = TypeVar("Class")


def with_inherited_parameters(cls: type[Class]) -> type[Class]:
    """Document inherited parameters where the docstring has a line ``{parameters of Base}``.

    But for those that the class documents itself, as it has another default.
    """
    for base in cls.__mro__[1:]:
        line = f"    {{parameters of {base.__name__}}}\n"
        if cls.__doc__ is not None and line in cls.__doc__:  # None with python -OO
            _, listed = inspect.cleandoc(base.__doc__ or "").split("----------\n")
            own = re.findall(r"^    (\w+) : ", cls.__doc__, re.MULTILINE)
            entries = re.split(r"^(?=\w+ : )", listed, flags=re.MULTILINE)
            inherited = "".join(e for e in entries if e.partition(" :")[0] not in own)
            indented = (f"    {text}" if text else "" for text in inherited.splitlines())
            cls.__doc__ = cls.__doc__.replace(line, "\n".join(indented) + "\n")
    return cls


@dataclass(kw_only=True, eq=False, repr=False)
class SharedParameters:
    """Parameters of all estimators that are trained by a solver.

    Parameters
    ----------
    C : float, default=1.0
        Multiplies the sum of the slacks (not their mean): larger values fit the training data
        closer.
    rescaling : {"margin", "slack", "none"}, default="margin"
        What the loss rescales.
    slack : {"l1", "l2", "none"}, default="l1"
        Whether slacks enter the objective linearly, squared, or not at all.
    sqrt_loss : bool, optional
        Use the square root of the loss; by default for squared slacks only.
    solver : str or Solver, default="auto"
        "auto", "fasole", "sda", "sdm", "dcd", "dcd-light" and "cpd" (slack "l1" or "l2"), "n-slack"
        (any slack), "one-slack" and "bcfw" ("l1"), an online one, or an instance, whose own
        ``tol``, ``epsilon``, ``max_passes``, ``max_time``, ``random_state``, ``n_jobs`` and
        ``cache_mb`` are then used in place of the estimator's. The online solvers ("perceptron",
        "mira", "sgd", "pegasos") make ``max_passes`` passes, 10 by default, whatever the gap.
    tol : float or None, default=1e-2
        Stop at this relative duality gap, ``(P - D) / P <= tol``. Predictions for unseen data are
        hardly ever better for smaller ones; to compare objectives or weights, take 1e-4, say.
    epsilon : float, optional
        Stop at this gap in units of mean loss, ``(P - D) / (n C) <= epsilon``. Either suffices.
    max_passes : float, optional
        Stop training after this many oracle calls per example.
    max_time : float, optional
        Stop training after this many seconds.
    checkpoint : str or path-like, optional
        File to keep the training in, so that it can go on after a crash: ``fit`` writes it between
        iterations, and replaces it as a whole. The one before stays as ``checkpoint + ".1"``. Calls
        of ``partial_fit`` are kept in it, too, after each of them.
    checkpoint_every : float, default=60.0
        Seconds between two writings.
    resume : bool, default=False
        Go on from the file, if there is one: ``fit`` then ends with the same model, bit by bit, as
        if nothing had happened. Data and parameters have to be the same, but for the limits
        ``max_passes`` and ``max_time``, which count what was done before. ``random_state`` has no
        effect then. A training that was over is not trained again. ``partial_fit`` has to be called
        again from the first call on; calls that were over return at once.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C during training does. "raise" raises KeyboardInterrupt; the best model so far is
        kept in ``coef_`` and ``result_``, whose status is "interrupted". "return" makes ``fit``
        return with that model, and a warning; a search such as GridSearchCV then goes on with its
        next fit. A second Ctrl-C, or one before the first iteration is over (while kernels are
        compiled, say), raises at once and leaves the estimator as it was.
    n_jobs : int, optional
        Threads for predictions and for training: for passes that certify a result, those of
        solver "one-slack" and "n-slack", and those of dual ascent where searches take long (parse
        and dependency trees, say) and for classes. None is 1, unless joblib's ``parallel_config``
        says otherwise; -1 is all cores. The same number gives the same bits; predictions, and the
        weights of "one-slack" and "n-slack", are the same for any number. Oracles of your own are
        asked in so many processes, if that pays, unless they say ``in_threads``.
    cache_mb : float, default=1024.0
        Budget, in units of 2^20 bytes, for the planes that training keeps beside the data; where it
        is short, planes are dropped or merged, and training takes more passes; 0 is as little as
        the solver can do with. Solvers say what is in it; online solvers keep none.
    cluster : distributed.Client, cluster or str, optional
        Train on the workers of a Dask cluster (solver "auto" or "one-slack"): a client, a cluster,
        or the address of a scheduler, which can be pickled. It needs the extra ``distributed``; see
        `ClusterSolver`. ``n_jobs`` are then the threads of each part. Predictions are made here.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the order of visits; None draws one from numpy's global generator. The same seed,
        data, version and machine give the same weights, bit by bit, unless ``max_time`` ends it.
    verbose : int, default=0
        1 shows the progress of the fit, its phases and the time left; 2 every iteration.
    warm_start : bool, default=False
        Keep what a fit has learned about its data, and begin the next fit from there: on the same
        data with another ``C``, say, or with more examples behind the same ones (solvers "auto",
        "fasole", "sdm", "sda", "bcfw" and of the "dcd" family; labels have to stay the same). It
        makes the fitted estimator large.
    callbacks : sequence of callable, default=()
        Called with a ``Progress`` after every outer iteration; training stops if one returns True.
    """

    C: float = field(default=1.0, kw_only=False)
    rescaling: Rescaling = "margin"
    slack: Slack = "l1"
    sqrt_loss: bool | None = None
    solver: str | Solver = "auto"
    tol: float | None = TOL
    epsilon: float | None = None
    max_passes: float | None = None
    max_time: float | None = None
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: float = CHECKPOINT_EVERY
    resume: bool = False
    on_interrupt: Literal["raise", "return"] = "raise"
    n_jobs: int | None = None
    cache_mb: float = CACHE_MB
    cluster: Any = None
    random_state: Any = None
    verbose: int = 0
    warm_start: bool = False
    callbacks: Iterable[Callback] = ()


def solver_of(estimator: Any) -> Any:
    """The solver that the parameters of an estimator ask for; they are checked."""
    check_numbers(estimator, estimator.C)
    keeping = {name: getattr(estimator, name) for name in KEEPING}
    shared = ("tol", "epsilon", "max_passes", "max_time", "n_jobs", "cache_mb")
    solver = make_solver(
        estimator.solver,
        random_state=seed_of(estimator.random_state),
        **{name: getattr(estimator, name) for name in shared},
        **keeping,
    )
    if not isinstance(estimator.solver, str) and (estimator.checkpoint or estimator.resume):
        if not isinstance(solver, SolverParameters):
            raise ValueError(f"checkpoint needs a solver of maxmargin, got {solver!r}")
        solver = dataclasses.replace(solver, **keeping)
    if estimator.cluster is None:
        return solver
    return import_name("cluster", "ClusterSolver").like(solver, estimator.cluster)


def seed_of(random_state: Any) -> Any:
    """A seed for numpy's generators out of anything scikit-learn accepts, and out of those."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, Integral) and int(random_state) >= 0:
        return random_state
    from sklearn.utils import check_random_state

    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError:
        raise ValueError(
            "random_state must be None, an integer >= 0, a RandomState or a Generator, got "
            f"{random_state!r}"
        ) from None


def check_parameters(estimator: Any) -> None:
    """Raise ValueError for what is no switch, no callback, no file, ..."""
    kinds: dict[str, Any] = annotated_types(cast("Any", type(estimator)))
    for name in (name for name, kind in kinds.items() if kind is bool):
        value = getattr(estimator, name, True)
        if not isinstance(value, (bool, np.bool_, Integral)):
            raise ValueError(f"{name} must be True or False, got {value!r:.60}")
    if not is_one_of(estimator.on_interrupt, ("raise", "return")):
        raise ValueError(
            f"on_interrupt must be 'raise' or 'return', got {estimator.on_interrupt!r}"
        )
    if not isinstance(estimator.verbose, (bool, np.bool_, Integral)):
        raise ValueError(f"verbose must be a whole number, got {estimator.verbose!r:.60}")
    is_name = isinstance(estimator.checkpoint, (str, os.PathLike))
    if estimator.checkpoint is not None and not (is_name and "\0" not in str(estimator.checkpoint)):
        raise ValueError(f"checkpoint must be the name of a file, got {estimator.checkpoint!r:.60}")
    if not is_list(estimator.callbacks) or not all(map(callable, estimator.callbacks)):
        raise ValueError(
            f"callbacks must be a sequence of functions, got {estimator.callbacks!r:.60}"
        )
