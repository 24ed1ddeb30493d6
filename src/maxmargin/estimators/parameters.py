"""Parameters are documented, checked, and made a solver; `TrainingOptions`.

Parameters are fields of dataclasses: each is written once, with its type and default, and Python
composes the constructors of the estimators from those of their base classes.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, TypeVar, cast

import numpy as np

from ..core.result import Callback
from ..registry import import_name
from ..solvers import make_solver
from ..solvers.base import SolverParameters, check_numbers
from ..utils.defaults import CACHE_MB, CHECKPOINT_EVERY, KEEPING
from ..utils.schema import annotated_types
from ..utils.validation import check_choice, is_list
from ..utils.warn import warn_user

__all__ = [
    "TrainingOptions",
    "check_parameters",
    "seed_of",
    "shareable",
    "solver_of",
    "training_options",
    "with_inherited_parameters",
]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How a training runs: checkpoints, interrupts, memory, a cluster, callbacks.

    An estimator takes it as ``training``, or a dict with some of these names.
    ``estimator.set_params(training__cache_mb=64)`` changes one option and keeps the others.

    Parameters
    ----------
    checkpoint : str or path-like, optional
        File that keeps the state of the training, to resume after a crash: ``fit`` writes it
        between iterations, and replaces it as a whole. The one before stays as
        ``checkpoint + ".1"``. Calls of ``partial_fit`` are kept in it, too, after each of them.
    checkpoint_every : float, default=60.0
        Seconds between two writes.
    resume : bool, default=False
        Resume from the file, if there is one: ``fit`` then ends with the same model, bit by bit, as
        if nothing had happened. Data and parameters have to be the same, but for the limits
        ``max_passes`` and ``max_time``, which count what was done before. ``random_state`` has no
        effect then. A training that was over is not repeated. ``partial_fit`` has to be called
        again from the first call on; calls that were over return at once.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C during training does. "raise" raises KeyboardInterrupt; the best model so far is
        kept in ``coef_`` and ``result_``, whose status is "interrupted". "return" makes ``fit``
        return with that model, and a warning; a search such as GridSearchCV then continues with its
        next fit. A second Ctrl-C, or one before the first iteration is over (while kernels are
        compiled, say), raises at once and leaves the estimator as it was.
    cache_mb : float, default=1024.0
        Budget, in units of 2^20 bytes, for the planes that training keeps beside the data; where it
        is short, planes are dropped or merged, and training takes more passes; 0 is as little as
        the solver can do with. Solvers say what is in it; online solvers keep none.
    cluster : distributed.Client, cluster or str, optional
        Train on the workers of a Dask cluster (solver "auto" or "one_slack"): a client, a cluster,
        or the address of a scheduler, which can be pickled. It needs the extra ``distributed``; see
        `ClusterSolver`. ``n_jobs`` are then the threads of each part. Predictions are made here.
        Clones of an estimator share it.
    callbacks : sequence of callable, default=()
        Called with a ``Progress`` after every outer iteration; training stops if one returns True.

    Examples
    --------
    >>> import maxmargin as mm
    >>> options = mm.TrainingOptions(checkpoint="tagger.checkpoint", resume=True)
    >>> tagger = mm.SequenceTagger(training=options)
    >>> tagger.set_params(training__cache_mb=64.0).training
    TrainingOptions(checkpoint='tagger.checkpoint', resume=True, cache_mb=64.0)
    """

    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: float = CHECKPOINT_EVERY
    resume: bool = False
    on_interrupt: Literal["raise", "return"] = "raise"
    cache_mb: float = CACHE_MB
    cluster: Any = None
    callbacks: Iterable[Callback] = ()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All options by their names, as scikit-learn asks for them."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __repr__(self) -> str:
        """The options that differ from their defaults, as scikit-learn shows estimators."""
        defaults = TrainingOptions.__dataclass_fields__
        changed = (f"{k}={v!r}" for k, v in vars(self).items() if v != defaults[k].default)
        return f"TrainingOptions({', '.join(changed)})"

    def __sklearn_clone__(self) -> TrainingOptions:
        """The same options; a client of a cluster is shared, not copied."""
        return dataclasses.replace(copy.deepcopy(self), cluster=self.cluster)

    def __getstate__(self) -> dict[str, Any]:
        """All but a connection to a cluster, in whose place is its address."""
        state = dict(vars(self))
        if self.cluster is not None:
            state["cluster"] = import_name("cluster.dask_executor", "address_of")(self.cluster)
        return state


def _no_option(owner: str, name: Any) -> str:
    """What is wrong about an option that does not exist."""
    return (
        f"{owner} has no option {name!r:.60}; its options are "
        f"{', '.join(TrainingOptions.__dataclass_fields__)}. Parameters of the estimator, such as "
        "max_time, max_passes, tol and n_jobs, are given to the estimator itself"
    )


_set_fields = TrainingOptions.__init__


@functools.wraps(_set_fields)
def _init(self: TrainingOptions, **given: Any) -> None:
    """Name the options where one of them does not exist."""
    unknown = [name for name in given if name not in TrainingOptions.__dataclass_fields__]
    if unknown:
        raise TypeError(_no_option("TrainingOptions", unknown[0]))
    _set_fields(self, **given)


TrainingOptions.__init__ = _init  # type: ignore[method-assign]


def training_options(given: Any, **changes: Any) -> TrainingOptions:
    """The options out of what an estimator has as ``training``, some of them changed."""
    if given is None:
        given = {}
    elif isinstance(given, TrainingOptions):
        given = vars(given)
    elif not isinstance(given, dict):
        raise ValueError(f"training must be TrainingOptions, a dict or None, got {given!r:.60}")
    known = TrainingOptions.__dataclass_fields__
    unknown = [name for name in (*given, *changes) if name not in known]
    if unknown:
        raise ValueError(_no_option("training", unknown[0]))
    return TrainingOptions(**{**given, **changes})


def shareable(training: Any) -> Any:
    """Options that know how to copy a connection to a cluster, which dicts do not."""
    if (
        isinstance(training, dict)
        and training.keys() <= TrainingOptions.__dataclass_fields__.keys()
    ):
        return TrainingOptions(**training) if "cluster" in training else training
    return training


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


def solver_of(estimator: Any) -> Any:
    """The solver that the parameters of an estimator ask for; they are checked."""
    options = check_parameters(estimator)
    check_numbers(estimator, estimator.C, options)
    keeping = {name: getattr(options, name) for name in KEEPING}
    shared = ("tol", "epsilon", "max_passes", "max_time", "n_jobs")
    solver = make_solver(
        estimator.solver,
        random_state=seed_of(estimator.random_state),
        **{name: getattr(estimator, name) for name in shared},
        cache_mb=options.cache_mb,
        **keeping,
    )
    if not isinstance(estimator.solver, str):
        _warn_of_ignored(estimator, solver, shared)
    if not isinstance(estimator.solver, str) and (options.checkpoint or options.resume):
        if not isinstance(solver, SolverParameters):
            raise ValueError(f"checkpoint needs a solver of maxmargin, got {solver!r}")
        solver = dataclasses.replace(solver, **keeping)
    if options.cluster is None:
        return solver
    return import_name("cluster", "ClusterSolver").like(solver, options.cluster)


def _warn_of_ignored(estimator: Any, solver: Any, names: Iterable[str]) -> None:
    """Warn of parameters of an estimator that a solver instance, which has its own, replaces."""
    defaults = {field.name: field.default for field in dataclasses.fields(estimator)}
    ignored = [
        name
        for name in names
        if getattr(estimator, name) not in (defaults[name], getattr(solver, name, None))
    ]
    if ignored:
        warn_user(
            f"{', '.join(ignored)} of the estimator {'are' if len(ignored) > 1 else 'is'} ignored, "
            f"since solver is an instance with its own: set them there, as in "
            f"solver={type(solver).__name__}({ignored[0]}={getattr(estimator, ignored[0])!r})"
        )


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


def check_parameters(estimator: Any) -> TrainingOptions:
    """Raise ValueError for what is no switch, no callback, no file, ...; the training's options."""
    _check_switches(estimator)
    if not isinstance(estimator.verbose, (bool, np.bool_, Integral)):
        raise ValueError(f"verbose must be a whole number, got {estimator.verbose!r:.60}")
    options = training_options(estimator.training)
    _check_switches(options)
    check_choice(options.on_interrupt, ("raise", "return"), "on_interrupt")
    is_name = isinstance(options.checkpoint, (str, os.PathLike))
    if options.checkpoint is not None and not (is_name and "\0" not in str(options.checkpoint)):
        raise ValueError(f"checkpoint must be the name of a file, got {options.checkpoint!r:.60}")
    if not is_list(options.callbacks) or not all(map(callable, options.callbacks)):
        raise ValueError(
            f"callbacks must be a sequence of functions, got {options.callbacks!r:.60}"
        )
    return options


def _check_switches(given: Any) -> None:
    """Raise ValueError for fields that are to be True or False, and are not."""
    kinds: dict[str, Any] = annotated_types(cast("Any", type(given)))
    for name in (name for name, kind in kinds.items() if kind is bool):
        value = getattr(given, name, True)
        if not isinstance(value, (bool, np.bool_, Integral)):
            raise ValueError(f"{name} must be True or False, got {value!r:.60}")
