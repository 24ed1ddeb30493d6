"""Paths of C: an estimator trained for many C at once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring

from ...solvers import is_online
from ...solvers.path import PathPoint
from ...utils.tables import columns
from ...utils.types import Floats
from ...utils.validation import is_at_least
from ...utils.warn import warn_user
from ..base import MaxMarginEstimator
from ..training import NoPathError, Trainer

__all__ = ["RegularizationPath", "check_estimator", "checked_Cs", "path"]


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
    check_estimator(estimator)
    values = checked_Cs(Cs)
    if estimator.slack == "none":
        raise NoPathError("slack='none' has no C, so there is no path to compute")
    if is_online(estimator.solver):
        raise NoPathError(
            f"solver {estimator.solver!r} returns no certificate and no multipliers to start the "
            "next C from; use another one, such as 'auto'"
        )
    if cover and estimator.tol is None and estimator.epsilon is None:
        raise ValueError("cover=True needs a precision: set tol or epsilon of the estimator")
    fitted = clone(estimator)
    points, following = Trainer(fitted).path(X, y, values.tolist(), bool(cover), **fit_params)
    if cover and all(point.covers(point.C) for point in points):
        reached = max(point.high for point in points)
        if reached < values.max() and fitted.result_.status != "interrupted":
            warn_user(
                f"intervals of C are too narrow to continue beyond C={reached:g}; allow a larger "
                "gap",
                ConvergenceWarning,
            )
    return RegularizationPath(fitted, points, following)


def check_estimator(estimator: Any) -> None:
    """Raise TypeError for an estimator that is not of this package."""
    if not isinstance(estimator, MaxMarginEstimator):
        raise TypeError(
            "estimator must be one of maxmargin, which can start from the planes of another C; "
            f"got {type(estimator).__name__}. In a Pipeline, make SearchCV the last step, "
            "or search the Pipeline with GridSearchCV"
        )


def checked_Cs(Cs: Any, name: str = "Cs") -> Floats:
    """Values of C, or ValueError."""
    try:
        values = np.array(Cs, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError, OverflowError):
        values = np.array([np.nan])
    if not len(values) or not np.all(np.isfinite(values)) or values.min() <= 0:
        raise ValueError(f"{name} must be positive, finite numbers, at least one, got {Cs!r:.80}")
    return values


def _checked_C(C: Any) -> float:
    """One value of C, or ValueError."""
    if not is_at_least(C, 0) or float(C) == 0.0:
        raise ValueError(f"C must be a positive, finite number, got {C!r:.40}")
    return float(C)
