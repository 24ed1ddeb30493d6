"""One of a list of candidates, as in reranking: the outputs come with the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core.cutting_planes import Planes, difference, stack, stack_k_best
from ...core.formulation import RESCALINGS, Formulation, Rescaling
from ...core.problem import Problem
from ...search.limits import as_examples, as_numbers, as_weights
from ...utils.sparse_format import check_sparse
from ...utils.types import Floats, Ints
from ...utils.validation import first_unusable, unusable

__all__ = ["CandidateProblem"]


class CandidateProblem(Problem):
    """Choose one of the candidates that an input lists.

    An input is a matrix with a row of features for each candidate, dense or sparse; inputs may
    differ in how many they have. An output is the number of a candidate. What is given as the truth
    may be that, which makes every other choice cost 1, or the cost of every candidate, as in
    reranking: the truth is then the first of the cheapest, and the loss what a choice costs more.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> lists = [np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 0.5]])]
    >>> model = mm.StructuralSVM(mm.CandidateProblem()).fit(lists, [0, [0.3, 0.1, 0.8]])
    >>> model.predict(lists)
    [0, 1]
    """

    trusted = True
    rescalings = RESCALINGS

    def bind(self, X: Sequence[Any], Y: Sequence[Any]) -> Problem:
        """Return a copy of the problem that holds these examples; see `Problem.bind`."""
        features = [_features(x, f"example {i}: ") for i, x in enumerate(X)]
        given = zip(features, Y, strict=False)  # of how many there are the next line tells
        costs = [_costs(x.shape[0], y, f"example {i}: ") for i, (x, y) in enumerate(given)]
        bound = super().bind(features, Y)
        assert isinstance(bound, CandidateProblem)
        for i, x in enumerate(features):
            if x.shape[1] != bound.n_features:
                raise ValueError(
                    f"example {i} has {x.shape[1]} features, but example 0 has {bound.n_features}"
                )
        bound.costs = costs
        return bound

    #: Losses of the candidates of each example.
    costs: Sequence[Floats] = ()

    def joint_feature(self, x: Any, y: Any) -> Any:
        """Features of a candidate."""
        check_sparse(x, "x")
        rows = x if sp.issparse(x) and x.format == "csr" else _features(x)
        number = truth_of(y)
        if not 0 <= number < rows.shape[0]:
            raise ValueError(_no_candidate(number, rows.shape[0]))
        return rows[[number]] if sp.issparse(rows) else rows[number]

    def loss(self, y: Any, y_hat: Any) -> float:
        """What a candidate costs more than the truth."""
        chosen = truth_of(y_hat)
        if np.ndim(y) == 0:
            return float(int(y) != chosen)
        costs = np.asarray(y, np.float64)
        if not 0 <= chosen < len(costs):
            raise ValueError(
                f"{len(costs)} costs are given, but the candidate {chosen} was chosen: expected "
                "the cost of every candidate"
            )
        return float(costs[chosen] - costs.min())

    def predict(self, x: Any, w: Floats) -> int:
        """The candidate of the largest score."""
        rows = _features(x)
        if rows.shape[1] != len(w):
            raise ValueError(f"there are {len(w)} weights, but {rows.shape[1]} features")
        return int(np.argmax(rows @ w))

    def most_violated(self, x: Any, y: Any, w: Floats, rescaling: Rescaling) -> int:
        """The most violated candidate of one example."""
        x = _features(x)
        truth, costs = truth_of(y), _costs(x.shape[0], y)
        values = _values(x, costs, truth, w, Formulation(rescaling))
        best = int(np.argmax(values))
        return best if values[best] > 0.0 else truth

    def oracle(
        self,
        indices: Ints,
        w: Floats,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """Most violated candidate of each listed example; see `Problem.oracle`."""
        found, rows, losses = self._violations(indices, w, rescaling, sqrt_loss), [], []
        for i, truth, values in found:
            best = int(np.argmax(values))
            best = best if values[best] > 0.0 else truth
            rows.append(self._row(i, truth, best))
            losses.append(self.costs[i][best])
        return stack(rows, np.array(losses, np.float64))

    def k_best(
        self,
        indices: Ints,
        w: Floats,
        k: int,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """The k best wrong candidates of each listed example; see `Problem.k_best`."""
        listed = []
        for i, truth, values in self._violations(indices, w, rescaling, sqrt_loss):
            order = [y for y in np.argsort(-values, kind="stable") if np.isfinite(values[y])][:k]
            listed.append([(self._row(i, truth, y), float(self.costs[i][y])) for y in order])
        return stack_k_best(listed, k)

    def _violations(
        self, indices: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> list[tuple[int, int, Floats]]:
        """Example, truth and violations of all candidates, for each listed example."""
        formulation = Formulation(rescaling, sqrt_loss=sqrt_loss)
        w = as_weights(w, int(self.n_features or 0))
        found = []
        for i in as_examples(indices, self.n_examples).tolist():
            truth = truth_of(self.Y[i])
            found.append((i, truth, _values(self.X[i], self.costs[i], truth, w, formulation)))
        return found

    def _row(self, i: int, truth: int, y: int) -> Any:
        """The feature difference of a candidate."""
        x = self.X[i]
        gold, other = (x[[truth]], x[[y]]) if sp.issparse(x) else (x[truth], x[y])
        return difference(gold, other)


def _no_candidate(y: Any, n_candidates: int) -> str:
    """What is wrong with an output."""
    return f"there is no candidate {y!r}; they are numbered from 0 to {n_candidates - 1}"


def truth_of(y: Any) -> int:
    """The number of a candidate, or of the first of the cheapest."""
    return int(y) if np.ndim(y) == 0 else int(np.argmin(y))


def _values(x: Any, costs: Floats, truth: int, w: Floats, formulation: Formulation) -> Floats:
    """Violations of all candidates; -inf for the truth and what counts as the truth."""
    scores = np.asarray(x @ w, np.float64)
    offsets, scales = formulation.plane_terms(costs)
    values: Floats = offsets + scales * (scores - scores[truth])
    values[truth] = -np.inf
    if formulation.rescaling != "margin":
        values[costs == 0.0] = -np.inf
    return values


def _features(x: Any, where: str = "") -> Any:
    """The candidates of an example as a matrix; ValueError that begins with ``where``."""
    check_sparse(x, f"{where}x")
    rows = sp.csr_matrix(x, dtype=np.float64) if sp.issparse(x) else as_numbers(x, where)
    if rows.ndim != 2 or rows.shape[0] == 0:
        raise ValueError(
            f"{where}expected a row of features for each of the candidates, got shape {rows.shape}"
        )
    values: Any = rows.data if sp.issparse(rows) else rows
    bad = first_unusable(values)
    if bad is not None:
        raise ValueError(f"{where}a feature is {unusable(values.ravel()[bad])}")
    return rows


def _costs(n_candidates: int, y: Any, where: str = "") -> Floats:
    """Loss of every candidate; ValueError that begins with ``where``."""
    if np.ndim(y) == 0:
        if np.asarray(y).dtype.kind not in "biuf" or not np.isin(y, range(n_candidates)):
            raise ValueError(where + _no_candidate(y, n_candidates))
        return (np.arange(n_candidates) != int(y)).astype(np.float64)
    costs = as_numbers(y, where)
    if costs.shape != (n_candidates,) or not np.isfinite(costs).all():
        raise ValueError(
            f"{where}there are {n_candidates} candidates; expected the number of one, or as many "
            f"finite costs, got {y!r:.60}"
        )
    losses: Floats = costs - costs.min()
    return losses
