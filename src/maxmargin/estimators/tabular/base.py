"""What estimators of rows of a table share: checks of their examples, weights, scores of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...engine.packed_problem import scores_of_rows
from ...engine.rows import Rows, make_rows
from ...utils.sklearn_bases import check_fitted
from ...utils.sparse_format import check_sparse
from ...utils.types import Floats, Ints
from ...utils.validation import LARGEST, check_same_length, first_unusable
from ..abilities.explanation import Evidence, column_names, input_evidence
from ..abilities.kernels import LINEAR
from ..base import CheckedWeights, MaxMarginEstimator

__all__ = [
    "TabularEstimator",
    "are_classes",
    "canonical",
    "check_classes",
    "check_examples",
    "check_lengths",
    "check_rows",
    "one_column",
    "ranked_classes",
    "read_only",
]

FLOATS = (np.float64, np.float32)


class TabularEstimator(MaxMarginEstimator):
    """Base of the estimators whose inputs are rows of numbers, an array or a sparse matrix.

    The flat weights are those of ``result_``; ``coef_`` shows them, as linear models of
    scikit-learn have it.
    """

    n_features_in_: int
    _has_intercept = False
    _kernel = LINEAR

    # ----- weights ------------------------------------------------------------------------------

    def _check_fitted(self) -> None:
        """See `Savable`."""
        check_fitted(self, "result_")

    def _get_weights(self) -> Floats:
        """See `Savable`."""
        return self.result_.w

    def _set_weights(self, w: Floats) -> None:
        """See `Savable`; the weights themselves are taken from ``result_``."""
        self._weights_check = CheckedWeights()

    def _learned_weights(self) -> Floats:
        """All weights, for attributes: AttributeError before the first fit, as hasattr expects."""
        if "result_" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet: it has no weights")
        return self._weights

    def _n_inputs(self) -> int:
        """Inputs that have weights, the constant one included."""
        return self._kernel.n_inputs(self.n_features_in_) + self._has_intercept

    # ----- predictions --------------------------------------------------------------------------

    def _rows(self, inputs: Any) -> Rows:
        """Checked inputs for kernels, with the constant one."""
        return make_rows(inputs, fit_intercept=self._has_intercept, dtype=np.float64)

    def _scores_by(self, scores: Callable[[Rows], Floats], X: Any) -> Floats:
        """Scores of new inputs by a function of their rows."""
        X = check_rows(self, X, reset=False)
        return self._kernel.scores(lambda inputs: scores(self._rows(inputs)), X)

    def _linear_scores(self, X: Any) -> Floats:
        """Scores ``x @ w`` of new inputs, where each input has one weight."""
        weights = self._weights[: self._n_inputs()]
        found = self._scores_by(lambda rows: scores_of_rows(rows, weights, self.n_jobs), X)
        return np.asarray(found, dtype=np.float64)

    def _feature_names(self, numbers: Ints) -> dict[int, str]:
        """Names of the features with these numbers."""
        return column_names(self, numbers)

    def _input_evidence(self, row: Any, weights: Floats, place: int = 0) -> list[Evidence]:
        """What the inputs of a row say, by differences of their weights."""
        return input_evidence(row, place, weights, self._feature_names)

    # ----- persistence --------------------------------------------------------------------------

    def _set_inputs(self, state: Any) -> None:
        """Take up what a file says of the inputs."""
        self.n_features_in_ = state.n_features
        self._has_intercept = getattr(state, "intercept", False)
        if state.feature_names is not None:
            self.feature_names_in_ = state.feature_names

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn should know of the estimator."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def read_only(values: Floats) -> Floats:
    """A view that nobody writes to, for predictions are made from ``result_``."""
    view = values.view()
    view.flags.writeable = False
    return view


def ranked_classes(classes: Any, scores: Floats, k: int) -> list[list[tuple[Any, float]]]:
    """The k classes of the largest score of each row, with their scores, best first."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    ranked = np.take_along_axis(scores, order, axis=1).astype(np.float64).tolist()
    answers = zip(classes[order].tolist(), ranked, strict=True)
    return [list(zip(*answer, strict=True)) for answer in answers]


# ----- checks of examples -----------------------------------------------------------------------


def check_examples(estimator: Any, X: Any, y: Any, **options: Any) -> Any:
    """Inputs and outputs, as many of these; see `check_rows`."""
    check_lengths(X, y)
    return check_rows(estimator, X, y, **options)


def check_rows(estimator: Any, X: Any, *y: Any, reset: bool = True, **options: Any) -> Any:
    """Inputs, with outputs if there are some, as arrays that scikit-learn finds in order.

    Sets, or checks, the number and names of the features. Features that are NaN, infinite or too
    large to compute with are refused. Plain matrices need no scikit-learn, which takes long to
    import.
    """
    check_sparse(X, "X")
    for column in y:
        check_sparse(column, "y")
    if _is_plain(estimator, X, reset) and all(_is_plain_column(column) for column in y):
        estimator.n_features_in_ = X.shape[1]
        found = (X, *y)
    else:
        from sklearn.utils.validation import validate_data

        options |= {"accept_sparse": "csr", "dtype": FLOATS, "ensure_all_finite": False}
        try:
            checked = validate_data(estimator, X, *y, reset=reset, **options)
        except OverflowError:
            raise ValueError(_beyond_floats(X, "X") or _beyond_floats(y[0], "y")) from None
        found = checked if y else (checked,)
    _check_finite(found[0])
    return found if y else found[0]


def _beyond_floats(values: Any, name: str) -> str:
    """What is wrong with the first whole number that is no float; nothing where there is none."""
    for place, value in np.ndenumerate(np.asarray(values, dtype=object)):
        try:
            float(value)
        except OverflowError:
            return f"{name}[{', '.join(map(str, place))}] is a whole number beyond all floats"
        except (TypeError, ValueError):  # of which scikit-learn has not complained
            continue
    return ""


def _is_plain(estimator: Any, X: Any, reset: bool) -> bool:
    """Whether nothing can be wrong with inputs but their values."""
    if type(X) not in (np.ndarray, sp.csr_matrix, sp.csr_array) or X.dtype not in FLOATS:
        return False
    if X.ndim != 2 or not min(X.shape) or hasattr(estimator, "feature_names_in_"):
        return False
    return reset or X.shape[1] == getattr(estimator, "n_features_in_", None)


def _is_plain_column(y: Any) -> bool:
    """Whether outputs are numbers or strings, one behind the other."""
    if type(y) is not np.ndarray or y.ndim != 1 or not y.flags.c_contiguous:
        return False
    return y.dtype.kind in "biuU" or (y.dtype == np.float64 and bool(np.isfinite(y).all()))


def check_classes(y: Any) -> None:
    """Refuse outputs that are real numbers, as scikit-learn does."""
    if not are_classes(y):
        from sklearn.utils.multiclass import check_classification_targets

        check_classification_targets(y)


def are_classes(y: Any) -> bool:
    """Whether outputs are classes beyond doubt: scikit-learn warns of as many as half the rows."""
    if not _is_plain_column(y) or (y.dtype.kind == "f" and (y != np.rint(y)).any()):
        return False
    return len(y) <= 20 or 2 * len(np.unique(y)) < len(y)


def one_column(y: Any) -> Any:
    """Outputs as one column; ValueError where they are none."""
    if _is_plain_column(y):
        return y
    from sklearn.utils.validation import column_or_1d

    return column_or_1d(y)


def check_lengths(X: Any, y: Any) -> None:
    """Refuse X and y of different lengths; what has no length is left to scikit-learn."""
    check_sparse(X, "X")
    check_sparse(y, "y")
    try:
        n_inputs, n_outputs = _length(X), _length(y)
    except TypeError:
        return
    check_same_length(n_inputs, n_outputs)


def _length(values: Any) -> int:
    """How many rows there are; TypeError where that cannot be told."""
    shape = getattr(values, "shape", None)
    if shape == ():
        raise TypeError("a single value has no rows")
    return len(values) if shape is None else int(shape[0])


def canonical(X: Any) -> Any:
    """A sparse matrix with sorted indices without repetition, not changing the user's."""
    if not sp.issparse(X):
        return X
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _check_finite(X: Any) -> None:
    """Refuse features that are NaN, infinite or too large to compute with, naming the first."""
    values = X.data if sp.issparse(X) else X
    entry = first_unusable(values)
    if entry is None:
        return
    if sp.issparse(X):
        row = int(np.searchsorted(X.indptr, entry, side="right")) - 1
        column, value = int(X.indices[entry]), values[entry]
    else:
        row, column = divmod(entry, X.shape[1])
        value = values[row, column]
    name = "NaN" if np.isnan(value) else "inf" if np.isinf(value) else f"{value:g}"
    raise ValueError(
        f"X contains {name} at row {row}, feature {column}; features must be finite, and at most "
        f"{LARGEST:g} in size: scale them"
    )
