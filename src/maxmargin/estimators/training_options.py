"""Options of how a training runs, which change nothing in the model: `TrainingOptions`."""

from __future__ import annotations

import copy
import dataclasses
import functools
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ..core.result import Callback
from ..registry import import_name
from ..utils.defaults import CACHE_MB, CHECKPOINT_EVERY

__all__ = ["TrainingOptions", "shareable", "training_options"]


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
