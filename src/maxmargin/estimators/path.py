"""Paths of C: an estimator trained for many C at once, and the best of them by held-out scores."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._warn import warn_user
from ..checkpoints import FOLD, check_location, identity_at, part_of
from ..progress import Loop, running_clock
from ..sklearn_bases import doc_link_template
from ..solvers import is_online
from ..solvers.path import PathPoint
from ..sparse_format import check_sparse
from ..tables import columns
from ..types import Floats, Ints
from ..validation import is_at_least
from .base import MaxMarginEstimator
from .inputs.examples import examples_at, n_examples_of
from .training import Trainer

__all__ = ["RegularizationPath", "SearchCV", "path"]


class RegularizationPath:
    """Models for many C, and for which C each of them is good enough.

    Attributes
    ----------
    Cs : ndarray of shape (n_points,)
        The values of C that were trained for, increasing.
    intervals : ndarray of shape (n_points, 2)
        For all C between the two ends, the weights of the point are within the precision that the
        estimator asks for (``tol`` or ``epsilon``), certified. Not a number where the point itself
        is not, as training was ended before.
    results : list of Result
        Certificate and history of each training.
    """

    def __init__(
        self,
        fitted: MaxMarginEstimator,
        points: Sequence[PathPoint],
        following: Sequence[dict[str, Any]],
    ) -> None:
        self._fitted = fitted
        self._points = list(points)
        self._following = list(following)

    def __len__(self) -> int:
        return len(self._points)

    @property
    def Cs(self) -> Floats:
        """The values of C that were trained for."""
        return np.array([point.C for point in self._points])

    @property
    def intervals(self) -> Floats:
        """Ends of the intervals of C for which points are good enough."""
        ends = np.array([(point.low, point.high) for point in self._points])
        return np.where(ends[:, :1] <= ends[:, 1:], ends, np.nan)

    @property
    def results(self) -> list[Any]:
        """Certificate and history of each training."""
        return [point.result for point in self._points]

    def covers(self, C: float) -> bool:
        """Whether some point is within the precision for this C."""
        C = _checked_C(C)
        return any(point.covers(C) for point in self._points)

    def at(self, C: float) -> Any:
        """A fitted estimator for this C, certified to the precision that was asked for.

        Parameters
        ----------
        C : float
            Any value that `covers` accepts.

        Returns
        -------
        estimator
            With the weights of the nearest point whose interval has C in it. A point's own C gives
            that point, also where its training was ended before (``result_.converged``).
        """
        C = _checked_C(C)
        by_distance = np.argsort(np.abs(np.log(self.Cs / C)), kind="stable").tolist()
        for i in by_distance:
            if self._points[i].covers(C) or self._points[i].C == C:
                return self._model(i, C)
        near = self._points[by_distance[0]]
        good = (
            f"good from {near.low:g} to {near.high:g}"
            if near.covers(near.C)
            else "which is not within it either"
        )
        raise ValueError(
            f"no point of the path is within the precision for C={C:g}; the nearest is that of "
            f"C={near.C:g}, {good}. Train for this C, too, or with cover=True"
        )

    def scores(self, X: Any, y: Any, scoring: Any = None, **params: Any) -> Floats:
        """Scores of all points on some data, by the estimator's own ``score`` or by ``scoring``."""
        score = check_scoring(self._fitted, scoring)
        models = (self._model(i, point.C) for i, point in enumerate(self._points))
        return np.array([score(model, X, y, **params) for model in models])

    def _model(self, i: int, C: float) -> Any:
        """The fitted estimator with the weights of a point, and all that follows from them."""
        model, result = copy.copy(self._fitted), self._points[i].result
        model.C = C
        model._set_weights(result.w)
        model.result_ = result
        model.__dict__.update(self._following[i])
        return model

    def __repr__(self) -> str:
        return f"RegularizationPath({len(self)} points, C from {self.Cs[0]:g} to {self.Cs[-1]:g})"

    def __str__(self) -> str:
        rows = [("C", "from", "to", "relative gap", "passes", "seconds")]
        for point, (low, high) in zip(self._points, self.intervals, strict=True):
            result = point.result
            gap = "" if result.relative_gap is None else f"{result.relative_gap:.3g}"
            numbers = (f"{point.C:.4g}", f"{low:.4g}", f"{high:.4g}", gap)
            rows.append((*numbers, f"{result.n_passes:.1f}", f"{result.seconds:.2f}"))
        return columns(rows)


def path(
    estimator: MaxMarginEstimator,
    X: Any,
    y: Any,
    Cs: ArrayLike,
    *,
    cover: bool = False,
    **fit_params: Any,
) -> RegularizationPath:
    """Train for many C, each from the one before, smallest first.

    Features are built and data packed once; planes found for one C serve the next. Each model is
    certified, also for the C around its own: `RegularizationPath.intervals`.

    Parameters
    ----------
    estimator : estimator
        It is cloned, and stays as it is; its ``C`` plays no part. ``max_passes`` and ``max_time``
        are limits of each C. An interrupt ends the path, which is returned with the points so far
        where ``on_interrupt="return"``. Its ``checkpoint`` keeps all of the path.
    X, y
        What its ``fit`` takes.
    Cs : array-like of float
        Values of C.
    cover : bool, default=False
        Train for as many C as it takes so that EVERY C from the least of ``Cs`` to the largest is
        within the precision asked for (``tol`` or ``epsilon``), by one of the models. Each of them
        is trained to half the gap, and is then good enough for its neighbourhood.
    **fit_params
        Such as ``sample_weight``.

    Returns
    -------
    RegularizationPath
        The models.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = [[0.0, 1.0], [1.0, 0.2], [0.9, 0.1], [0.2, 0.7]], ["a", "b", "b", "a"]
    >>> models = mm.path(mm.MulticlassSVM(random_state=0), X, y, [0.1, 10.0], cover=True)
    >>> models.at(0.7).predict([[0.1, 0.9]])
    array(['a'], dtype='<U1')
    """
    if not isinstance(estimator, MaxMarginEstimator):
        raise TypeError(
            "estimator must be one of maxmargin, for paths go on from its planes; got "
            f"{type(estimator).__name__}. In a Pipeline, make SearchCV the last step"
        )
    values = _checked_Cs(Cs)
    if estimator.slack == "none":
        raise ValueError("slack='none' has no C, so there is no path of it")
    if is_online(estimator.solver):
        raise ValueError(
            f"solver {estimator.solver!r} certifies nothing by itself, and has no multipliers to "
            "go on from; use another one, such as 'auto'"
        )
    if cover and estimator.tol is None and estimator.epsilon is None:
        raise ValueError("cover=True needs a precision: set tol or epsilon of the estimator")
    fitted = clone(estimator)
    points, following = Trainer(fitted).path(X, y, values.tolist(), bool(cover), **fit_params)
    if cover and all(point.covers(point.C) for point in points):
        reached = max(point.high for point in points)
        if reached < values.max() and fitted.result_.status != "interrupted":
            warn_user(
                f"intervals of C are too narrow to go on beyond C={reached:g}; allow a larger gap",
                ConvergenceWarning,
            )
    return RegularizationPath(fitted, points, following)


def _checked_Cs(Cs: Any) -> Floats:
    """Values of C, or ValueError."""
    try:
        values = np.array(Cs, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError, OverflowError):
        values = np.array([np.nan])
    if not len(values) or not np.all(np.isfinite(values)) or values.min() <= 0:
        raise ValueError(f"Cs must be positive, finite numbers, at least one, got {Cs!r:.80}")
    return values


def _checked_C(C: Any) -> float:
    """One value of C, or ValueError."""
    if not is_at_least(C, 0) or float(C) == 0.0:
        raise ValueError(f"C must be a positive, finite number, got {C!r:.40}")
    return float(C)


def _searched(name: str) -> Any:
    """A method that there is where the estimator that is searched has it."""
    return available_if(
        lambda search: hasattr(getattr(search, "best_estimator_", search.estimator), name)
    )


class SearchCV(MetaEstimatorMixin, BaseEstimator):
    """The C with the best score on held-out data, by paths of C in cross-validation.

    Like GridSearchCV over C, but in each fold features are built once, and each C goes on from the
    one before.

    Parameters
    ----------
    estimator : estimator
        What is trained; its ``C`` plays no part. With a ``checkpoint``, the path of fold k is kept
        beside it, as ``checkpoint + "-foldk"``.
    Cs : int or array-like of float, default=10
        Values of C, or how many, from 1e-3 to 1e2 in equal ratios.
    cv : int, splitter or iterable, optional
        As in GridSearchCV: five folds by default.
    scoring : str or callable, optional
        As in GridSearchCV: the estimator's ``score`` by default.
    refit : bool, default=True
        Train on all data with the best C at the end.
    verbose : int, default=0
        1 shows which fold and C is trained, and the time left; 2 every iteration.

    Notes
    -----
    If the estimator has ``on_interrupt="return"``, Ctrl-C ends the search with the best C by the
    folds that are complete (by the C reached, in the first), and with its model of the last one.

    Attributes
    ----------
    Cs_ : ndarray of shape (n_Cs,)
        The values of C.
    scores_ : ndarray of shape (n_folds, n_Cs)
        Scores on the held-out part of each fold.
    best_C_, best_score_ : float
        The C with the largest mean score, the smallest such, and that score.
    best_estimator_ : estimator
        Trained on all data with it.
    """

    _doc_link_module = "maxmargin"
    _doc_link_template = doc_link_template

    def __init__(
        self,
        estimator: Any,
        Cs: Any = 10,
        *,
        cv: Any = None,
        scoring: Any = None,
        refit: bool = True,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.verbose = verbose

    def fit(self, X: Any, y: Any, *, groups: Any = None, **fit_params: Any) -> SearchCV:
        """Search, and train with the best C.

        Parameters
        ----------
        X, y
            What the estimator's ``fit`` takes.
        groups : array-like, optional
            For the splitter.
        **fit_params
            For the estimator's ``fit``; those with an entry for each example are split with them.
            Those that its ``score`` (or a callable ``scoring``) takes too, such as the ``qid`` of
            `RankSVM`, are given to it, but for ``sample_weight``: held-out examples count alike, as
            in GridSearchCV.

        Returns
        -------
        self
        """
        check_sparse(X, "X")  # before it is split
        check_sparse(y, "y")
        if isinstance(self.Cs, Integral) and self.Cs < 1:
            raise ValueError(f"Cs must be 1 or more, or the values themselves, got {self.Cs!r}")
        grid = np.logspace(-3, 2, int(self.Cs)) if isinstance(self.Cs, Integral) else self.Cs
        self.Cs_: Floats = np.unique(_checked_Cs(grid))
        self._check_last_checkpoint()
        folds = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        needed = self._needed_for_scores(fit_params)
        n_folds = folds.get_n_splits(X, y, groups)
        with (
            running_clock("features", int(self.verbose)) as clock,
            clock.loop(n_folds + bool(self.refit)) as loop,
        ):
            return self._search(X, y, folds.split(X, y, groups), needed, fit_params, n_folds, loop)

    def _search(
        self,
        X: Any,
        y: Any,
        folds: Iterable[Any],
        needed: dict[str, Any],
        fit_params: dict[str, Any],
        n_folds: int,
        loop: Loop,
    ) -> SearchCV:
        """Train and score in each fold, and train with the best C on all data."""
        rows: list[Floats] = []
        interrupted = False
        for train, test in folds:
            loop.begin(f"fold {len(rows) + 1} of {n_folds}")
            params = _of_examples(fit_params, X, train)
            # Of precomputed kernels, columns are examples too.
            is_square = get_tags(self.estimator).input_tags.pairwise
            X_train, X_test = (
                examples_at(X, some) if not is_square else X[np.ix_(some, train)]
                for some in (train, test)
            )
            y_train, y_test = examples_at(y, train), examples_at(y, test)
            own = clone(self.estimator)
            if getattr(own, "checkpoint", None) is not None:  # each fold has a file of its own
                own.set_params(checkpoint=part_of(own.checkpoint, FOLD, len(rows)))
            held_out = _of_examples(needed, X, test)
            row = np.full(len(self.Cs_), np.nan)
            try:
                found = path(own, X_train, y_train, self.Cs_, **params)
                interrupted = found.results[-1].status == "interrupted"
                if not interrupted or not rows:  # a part of a later fold would favour some C
                    with running_clock("evaluation") as clock:
                        row[: len(found)] = found.scores(X_test, y_test, self.scoring, **held_out)
                        rows, models = [*rows, row], found
                        if not np.isnan(row).all():
                            best = int(np.nanargmax(row))
                            clock.say(f"best C {self.Cs_[best]:g}, score {row[best]:.4f}")
            except KeyboardInterrupt:
                if own.on_interrupt == "raise" or not rows:
                    raise
                interrupted = True
            if interrupted:
                warn_user(
                    f"the search was interrupted; the best C so far, by {len(rows)} folds, keeps "
                    "the model that was trained in the last of them"
                )
                break
        self.scores_: Floats = np.array(rows)
        means = self.scores_.mean(axis=0)
        if np.all(np.isnan(means)):
            raise ValueError("no C has a score in all folds: every mean is not a number")
        best = int(np.nanargmax(means))
        self.best_C_, self.best_score_ = float(self.Cs_[best]), float(means[best])
        if self.refit and interrupted:
            self.best_estimator_ = models.at(self.best_C_)
        elif self.refit:
            loop.begin(f"best C {self.best_C_:g}, all data")
            chosen = clone(self.estimator).set_params(C=self.best_C_)
            self.best_estimator_ = chosen.fit(X, y, **fit_params)
        return self

    def _check_last_checkpoint(self) -> None:
        """Raise for a file that the fit with the best C, which comes last, could not go on from."""
        checkpoint = getattr(self.estimator, "checkpoint", None)
        if checkpoint is None or not self.refit:
            return
        check_location(checkpoint)
        found = identity_at(checkpoint) if self.estimator.resume else None
        if found is not None and found.get("C") not in [repr(C) for C in self.Cs_.tolist()]:
            raise ValueError(
                f"{checkpoint}: the checkpoint is of another training, with another C "
                f"({found.get('C')} there, one of {self.Cs_.tolist()} here); a search keeps its "
                "last fit there, so give it a name of its own, or remove the file"
            )

    def _needed_for_scores(self, fit_params: dict[str, Any]) -> dict[str, Any]:
        """What scores of held-out data take of the parameters of ``fit``: queries, no weights."""
        score = self.estimator.score if self.scoring is None else self.scoring
        if not callable(score) or isinstance(score, type):
            return {}
        taken = inspect.signature(score).parameters
        return {
            name: value
            for name, value in fit_params.items()
            if name in taken and name != "sample_weight"
        }

    @_searched("predict")
    def predict(self, X: Any) -> Any:
        """Predictions of the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @_searched("decision_function")
    def decision_function(self, X: Any) -> Any:
        """The best estimator's."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X)

    def score(self, X: Any, y: Any, **params: Any) -> float:
        """Score of the best estimator, by ``scoring``."""
        check_is_fitted(self, "best_estimator_")
        scorer = check_scoring(self.best_estimator_, self.scoring)
        return float(scorer(self.best_estimator_, X, y, **params))

    @property
    def classes_(self) -> Any:
        """Classes of the best estimator, if it has any."""
        return getattr(self, "best_estimator_", self.estimator).classes_

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn should know: what it knows of the estimator."""
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = own.estimator_type
        tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
        tags.input_tags, tags.target_tags = own.input_tags, own.target_tags
        return tags


def _of_examples(params: dict[str, Any], X: Any, indices: Ints) -> dict[str, Any]:
    """Parameters of ``fit``; of those with an entry for each example, the entries of some."""
    n = n_examples_of(X)
    return {
        name: examples_at(value, indices) if _n_entries(value) == n else value
        for name, value in params.items()
    }


def _n_entries(value: Any) -> int | None:
    """How many entries a parameter has; None of what is no list of them."""
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__"):
        return n_examples_of(value) if hasattr(value, "shape") and value.shape else None
    return n_examples_of(value)
