"""What all estimators share: parameters, files, reports, weights, what a trainer asks for."""

from __future__ import annotations

import copy
import re
import textwrap
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from types import MethodType
from typing import Any, ClassVar

import numpy as np

from ..core.formulation import Rescaling, Slack
from ..registry import import_name
from ..search.limits import as_weights
from ..solvers import SOLVERS, Solver, is_online
from ..utils.defaults import TOL
from ..utils.sklearn_bases import Estimator, check_fitted
from ..utils.sparse_format import check_sparse
from ..utils.types import Floats
from .parameters import TrainingOptions, shareable, training_options
from .selection.early_stopping import EarlyStopping
from .training import Trainer, TrainingSet

__all__ = [
    "CheckedWeights",
    "ConditionalMethod",
    "MaxMarginEstimator",
    "OnlineMethod",
    "Savable",
    "checked_k",
]


class CheckedWeights:
    """Remembers which weights of an estimator were found to be finite.

    Anybody may put other weights into a fitted estimator, so they are looked at when they are used;
    millions of them take longer than a prediction. An estimator gets this object together with its
    weights, for a prediction must not set attributes.
    """

    def __init__(self) -> None:
        self._finite: weakref.ref[Floats] | None = None

    def check_finite(self, weights: Floats) -> None:
        """Raise ValueError for weights among which no search finds a best output."""
        if self._finite is not None and self._finite() is weights:
            return
        bad = np.flatnonzero(~np.isfinite(weights))
        if len(bad):
            raise ValueError(f"weight {bad[0]} is {weights[bad[0]]}; weights must be finite")
        self._finite = weakref.ref(weights)

    def __reduce__(self) -> tuple[type[CheckedWeights], tuple[()]]:
        """Copies, pickled ones too, have weights of their own to look at."""
        return CheckedWeights, ()


class Savable(Estimator):
    """Estimators with ``coef_`` that can be written to a file, and read by `maxmargin.load`."""

    coef_: Any
    result_: Any
    _weights_check: CheckedWeights

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

    def report(self, X: Any = None, y: Any = None, **of_examples: Any) -> Any:
        """Describe the model on one page, and how it does on examples that it was not trained on.

        Parameters
        ----------
        X, y : inputs and outputs, optional
            As for `score`; without them the page is about training and weights alone.
        **of_examples
            What else belongs to the examples, such as ``qid``; ``title``, a heading; ``worst``,
            which mistakes come first: those with the largest share of errors (``"rate"``, the
            default), those with the largest difference between the scores of the output found and
            of the true one (``"margin"``), or those with the most errors (``"count"``).

        Returns
        -------
        Report
            ``report.save("report.html")`` writes it; notebooks show it.
        """
        check_sparse(X, "X")
        check_sparse(y, "y")
        return import_name("report.report", "make_report")(self, X, y, **of_examples)

    # ----- what persistence asks for ------------------------------------------------------------

    def _get_state(self) -> Any:
        """What was learned, other than ``coef_`` and ``result_``: a NamedTuple of its values."""
        raise ValueError(
            f"{type(self).__name__} cannot be saved, for it is made of code of your own; keep "
            "coef_ with numpy.save, and predict with problem.predict(x, w)"
        )

    def _set_state(self, state: Any) -> None:
        """Take up what `_get_state` gave; ``coef_`` is set already.

        What comes out of a file is checked against the fields of the type that a subclass declares
        for ``state``; how they fit together is checked here.
        """
        raise NotImplementedError

    def _set_calibration(self, values: dict[str, Any]) -> None:
        """Take up the calibration that a file has; see `Confidences`."""
        raise ValueError(f"{type(self).__name__} has no calibration, but the file has one")

    # ----- weights ------------------------------------------------------------------------------

    def _check_fitted(self) -> None:
        """Raise NotFittedError before the first fit."""
        check_fitted(self, "coef_")

    def _get_weights(self) -> Floats:
        """All weights, flat."""
        return self.coef_

    def _set_weights(self, w: Floats) -> None:
        """Take up weights; ``result_`` has them too, but for an estimator without one."""
        self.coef_ = w
        self._weights_check = CheckedWeights()

    @property
    def _weights(self) -> Floats:
        """The weights for predictions: anybody may have put others into ``coef_``, or cut them."""
        self._check_fitted()
        weights = as_weights(self._get_weights(), self._n_weights())
        self._weights_check.check_finite(weights)
        return weights

    def _n_weights(self) -> int:
        """How many weights the model has, by all that was learned but the weights."""
        raise NotImplementedError


@dataclass(kw_only=True, eq=False, repr=False)
class MaxMarginEstimator(Savable):
    """Base class of the estimators that a `Trainer` trains, with the parameters of all of them.

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
        "auto", "fasole", "sda", "sdm", "dcd", "dcd_light" and "cpd" (slack "l1" or "l2"), "n_slack"
        (any slack), "one_slack" and "bcfw" ("l1"), an online one, or an instance, whose own
        ``tol``, ``epsilon``, ``max_passes``, ``max_time``, ``random_state``, ``n_jobs`` and
        ``cache_mb`` are then used instead of the estimator's. The online solvers ("perceptron",
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
    n_jobs : int, optional
        Threads for predictions and for training: for passes that certify a result, those of
        solver "one_slack" and "n_slack", and those of dual ascent where searches take long (parse
        and dependency trees, say) and for classes. None is 1, unless joblib's ``parallel_config``
        says otherwise; -1 is all cores. The same number gives the same bits; predictions, and the
        weights of "one_slack" and "n_slack", are the same for any number. Oracles of your own are
        asked in so many processes, if that pays, unless they say ``in_threads``.
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
    training : TrainingOptions or dict, optional
        How the training runs: ``checkpoint``, ``checkpoint_every``, ``resume``, ``on_interrupt``,
        ``cache_mb``, ``cluster`` and ``callbacks``; see `TrainingOptions`. ``set_params`` changes
        one of them by ``training__cache_mb=...``, say.
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
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    warm_start: bool = False
    training: TrainingOptions | dict[str, Any] | None = None

    #: Set by `choosing` while weights are to be chosen by held-out data.
    _choice: ClassVar[EarlyStopping | None] = None

    def set_params(self, **params: Any) -> Any:
        """Set parameters, single options of the training by ``training__cache_mb``, say.

        Parameters
        ----------
        **params
            Values by names of parameters.

        Returns
        -------
        self
        """
        prefix = "training__"
        options = {name: value for name, value in params.items() if name.startswith(prefix)}
        given = params.get("training", self.training)
        changed = {name.removeprefix(prefix): value for name, value in options.items()}
        if changed:
            params["training"] = training_options(given, **changed)
        super().set_params(**{k: v for k, v in params.items() if k not in options})
        return self

    def __sklearn_clone__(self) -> Any:
        """An estimator of the same parameters; a client of a cluster is shared, not copied."""
        draft = copy.copy(self)
        draft.training = None
        cloned = super(MaxMarginEstimator, draft).__sklearn_clone__()
        training = shareable(self.training)
        is_options = isinstance(training, TrainingOptions)
        cloned.training = training.__sklearn_clone__() if is_options else copy.deepcopy(training)
        return cloned

    def __getstate__(self) -> Any:
        """All but a connection to a cluster, in whose place is its address."""
        state = super().__getstate__()
        return {**state, "training": shareable(state.get("training"))}

    # ----- training -----------------------------------------------------------------------------

    def fit_path(self, X: Any, y: Any, Cs: Any, **options: Any) -> Any:
        """Train clones of the estimator for many C; see `maxmargin.path`."""
        from .selection.path import path

        return path(self, X, y, Cs, **options)

    def compact(self, X: Any, y: Any = None, *, tol: float, **fit_params: Any) -> Any:
        """Round the weights, and drop small ones, as far as a certified gap allows.

        What is left takes less room in a file: single precision or less, and no zeros. Rounding and
        dropping go as far as a true pass over the training data finds the relative gap of the new
        weights to be at most ``tol``; `result_` has their certificate, with the status "compacted".
        A calibration stays as it is.

        Parameters
        ----------
        X, y
            The training data; the model itself keeps none. Others are noticed by the objective of
            the weights.
        tol : float
            Largest relative gap, ``(P - D) / P``, larger than that of the training.
        **fit_params
            What else ``fit`` was given, such as ``sample_weight``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the model has no certified gap, no weights of features (a kernel) or completed its
            labels, if ``tol`` allows nothing, or if the data are not those of the training.
        """
        return Trainer(self).compact(X, y, tol, **fit_params)

    # ----- what a trainer asks for --------------------------------------------------------------

    def _training_set(self, *given: Any, **named: Any) -> TrainingSet:
        """What is trained on, out of the arguments of ``fit``; sets what predictions need of it."""
        raise NotImplementedError

    def _kept_weights(self, learned: Sequence[Floats]) -> list[Floats]:
        """Weights for predictions, made of those of the solutions for one C or for several."""
        return list(learned)

    def _size(self, problem: Any) -> str:
        """How large the model is."""
        labels = getattr(self, "classes_", None)
        sizes = {
            "features": getattr(self, "n_features_in_", None),
            "labels": len(labels) if isinstance(labels, np.ndarray) and labels.ndim == 1 else None,
            "weights": getattr(problem, "n_features", None),
        }
        return ", ".join(f"{n} {name}" for name, n in sizes.items() if isinstance(n, Integral))


class ConditionalMethod:
    """A method that an estimator has only under a condition; a decorator.

    Like scikit-learn's ``available_if``, which however says no more than that there is no such
    attribute.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self.method
        self.check(estimator)
        return MethodType(self.method, estimator)

    def check(self, estimator: Any) -> None:
        """Raise AttributeError unless the estimator has it."""
        raise NotImplementedError


class OnlineMethod(ConditionalMethod):
    """A method that an estimator has only while its solver is an online one; a decorator.

    Lines ``{passes}`` and ``{C of all examples}`` of its docstring stand for what all of them say.
    """

    TEXTS: ClassVar = {
        "passes": """\
As many calls with the same data as `fit` makes passes give what `fit` gives. After `fit`, or
with a model that was loaded, training resumes from its weights.""",
        "C of all": """\
C multiplies the sum of the slacks of all {0} seen so far: `sgd` and `pegasos` minimise the
objective that `fit` would have on the {0} of all calls together. {1} of a call that
is repeated count once. Of a model that was fitted or loaded, the {0} of its last
training count, with weight 1.""",
    }

    def __init__(self, method: Callable[..., Any]) -> None:
        super().__init__(method)

        def text(line: re.Match[str]) -> str:
            indent, key, noun = line.groups()
            return textwrap.indent(self.TEXTS[key].format(noun, noun.capitalize()), indent)

        pattern = re.compile(r"^( *)\{(passes|C of all) ?(\w*)\}$", re.MULTILINE)
        method.__doc__ = pattern.sub(text, method.__doc__ or "")

    def check(self, estimator: Any) -> None:
        """See `ConditionalMethod`."""
        if not is_online(estimator.solver):
            names = [repr(name) for name in SOLVERS if is_online(name)]
            raise AttributeError(
                f"{self.method.__name__} needs a solver that takes examples as they come, "
                f"{', '.join(names[:-1])} or {names[-1]}; got solver={estimator.solver!r}"
            )


def checked_k(k: Any, name: str = "k") -> int:
    """The k of `predict_k`, or how many of something else are wanted."""
    if not isinstance(k, Integral) or k < 1:
        raise ValueError(f"{name} must be a whole number >= 1, got {k!r}")
    return int(k)
