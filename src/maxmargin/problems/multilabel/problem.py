"""Sets of labels: weights of the inputs for each label, and of pairs of labels that are both on.

Weights are feature-major, ``w[f * L + l]`` for L labels, an optional constant input last, and then
one for each edge: what it adds that both of its labels are on.

Costs of missed and of added labels add up, so that scores can take them in. The most violated set,
for plain losses, is then the best one by other scores. Rescaled losses and roots are searched by
branch and bound, where some labels may have to be wrong or right: they get scores that decide.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...core.cutting_planes import Planes, empty_planes, trim
from ...core.formulation import Formulation, Rescaling
from ...engine.accelerators import FactoredAccelerators
from ...engine.cost_model import scoring_work
from ...engine.feature_blocks import write_block
from ...engine.packed_problem import (
    FactoredProblem,
    entries_of,
    feature_blocks_of,
    matrix_of,
    rows_at,
    rows_of,
    scores_of_rows,
    sparse_row,
    sparse_rows,
)
from ...engine.parallel.threads import each_range
from ...engine.rows import Rows, add_scores
from ...jit.decorator import kernel
from ...search.bounded_search import (
    Candidate,
    Decoder,
    Violation,
    best_with_loss,
    common_unit,
    most_violated,
)
from ...search.k_best import Found, Region, k_best
from ...search.limits import as_weights, check_number_of_weights
from ...search.modes import ADDITIVE, ERROR_COUNTS, PREDICT, SearchMode, search_mode
from ...utils.types import Bools, Floats, Ints
from ...utils.validation import check_choice
from .graph import LabelGraph, make_graph
from .inference import LOSSES, LabelLoss, find_labels, label_loss, loss_of

__all__ = [
    "MultilabelProblem",
    "checked_costs",
    "find_with_costs",
    "flip_costs",
    "label_scores",
    "predict_labels",
    "rank_labels",
]


def checked_costs(costs: ArrayLike, n_labels: int, loss: str) -> Floats:
    """Costs of missing and of adding each label; ValueError unless they are."""
    table = np.ascontiguousarray(costs, dtype=np.float64)
    if table.shape != (n_labels, 2) or loss != "hamming":
        raise ValueError(
            f"costs must be of shape {(n_labels, 2)}, with loss='hamming'; got shape "
            f"{table.shape} with loss={loss!r}"
        )
    if not np.all(np.isfinite(table) & (table >= 0.0)):
        raise ValueError("costs must be finite numbers >= 0")
    return table


def flip_costs(gold: Bools, costs: Floats) -> Floats:
    """What it costs to have each label wrong."""
    return np.where(gold, costs[:, 0], costs[:, 1])


def find_with_costs(
    scores: Floats,
    graph: LabelGraph,
    pairs: Floats,
    gold: Bools,
    costs: Floats,
    mode: SearchMode,
) -> Bools:
    """The most violated set of each row; without rescaling, sets without costs are not violated."""
    wrong = flip_costs(gold, costs)
    if mode.kind == ADDITIVE:
        return find_labels(_with_costs(scores, gold, wrong), graph, pairs, gold, 0, PREDICT)
    if mode.kind != ERROR_COUNTS and np.all(wrong > 0.0):
        return find_labels(scores, graph, pairs, gold, 0, mode)
    unit = common_unit(costs)
    found = gold.copy()
    for r in range(len(gold)):
        decode = _decoder(scores[r], graph, pairs, gold[r], wrong[r])
        if mode.kind == ERROR_COUNTS:
            violation = Violation(mode.slack, mode.sqrt_loss)
            best = most_violated(decode, wrong[r], violation, unit)
        else:
            best = best_with_loss(decode, wrong[r], free_counts=False)
        if best is not None:
            found[r] = best.output
    return found


def _with_costs(scores: Floats, gold: Bools, costs: Floats) -> Floats:
    """Scores of labels by which a wrong one gains its costs."""
    return scores + np.where(gold, -costs, costs)


def _decoder(
    scores: Floats, graph: LabelGraph, pairs: Floats, gold: Bools, costs: Floats
) -> Decoder:
    """The search for sums of gain and loss; see `bounded_search`."""
    edges = graph.edges
    both = gold[edges].all(axis=1)
    scale = 1.0 + 2.0 * (np.abs(scores).sum() + np.abs(pairs).sum())

    def decode(lower: Floats, upper: Floats, multiplier: float) -> Candidate:
        may_be_wrong = (lower < costs) & (costs <= upper)
        may_be_right = (lower < 0.0) & (upper >= 0.0)
        deciding = scale + 2.0 * multiplier * costs.sum()  # more than all else together
        changed = multiplier * costs
        changed = np.where(may_be_wrong, changed, -deciding)
        changed = np.where(may_be_right, changed, deciding)
        at = _with_costs(scores, gold, changed)
        labels = find_labels(at[None], graph, pairs, gold[None], 0, PREDICT)[0]
        slots = np.where(labels != gold, costs, 0.0)
        gain = float(scores[labels].sum() - scores[gold].sum())
        gain += float(pairs @ (labels[edges].all(axis=1).astype(np.float64) - both))
        return Candidate(labels, slots, float(slots.sum()), gain)

    return decode


class MultilabelProblem(FactoredProblem):
    """Labels that are on or off, any number of them at once.

    Joint features of x and a set of labels are x under each label of the set, and a 1 for each edge
    between two of them.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_examples, n_inputs)
        Inputs.
    Y : array of bool of shape (n_examples, n_labels)
        Which labels are on.
    edges : array of int of shape (n_edges, 2)
        Pairs of labels that have a weight. Where they have a cycle, there may be 14 labels at most.
    loss : {"hamming", "f1", "zero_one"}
        Number of wrong labels, 1 - F1, or 1 if any label is wrong. F1 of two empty sets is 1.
    costs : array of shape (n_labels, 2), optional
        What it costs to miss a label, and to add it where it is not; none of it is negative. The
        loss is their sum over the wrong labels. For ``loss="hamming"`` only, where both are 1.
    fit_intercept : bool
        Append a constant input.
    """

    in_threads = True

    def __init__(
        self,
        X: Any,
        Y: ArrayLike,
        edges: ArrayLike = (),
        *,
        loss: LabelLoss = "hamming",
        costs: ArrayLike | None = None,
        fit_intercept: bool = False,
    ) -> None:
        check_choice(loss, LOSSES, "loss")
        rows = sparse_rows(X, fit_intercept)
        gold = np.ascontiguousarray(Y, dtype=np.bool_)
        if gold.ndim != 2 or gold.shape[1] == 0 or len(gold) != rows.n_rows:
            raise ValueError(
                f"expected the labels of {rows.n_rows} examples in rows, got Y of shape "
                f"{gold.shape}"
            )
        self.loss_name = loss
        self.costs = None if costs is None else checked_costs(costs, gold.shape[1], loss)
        self.graph = make_graph(gold.shape[1], edges)
        n_edges = len(self.graph.edges)
        self.n_features = rows.n_inputs * self.n_labels + n_edges
        check_number_of_weights(
            self.n_features, f"{rows.n_inputs} features x {self.n_labels} labels make"
        )
        self._hold(rows, gold)

    def _hold(self, rows: Rows, gold: Bools) -> None:
        """Take the examples."""
        self.rows, self.gold = rows, gold
        self.feature_blocks = feature_blocks_of(rows, self.n_labels, self.n_features)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.graph.n_labels

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.gold)

    def subset(self, indices: Ints) -> MultilabelProblem:
        """See `Problem.subset`."""
        feature_block = copy.copy(self)
        feature_block._hold(rows_at(self.rows, indices), self.gold[indices])
        return feature_block

    # ----- one example at a time ----------------------------------------------------------------

    def input_of(self, i: int) -> Any:
        """Row i of the inputs, a CSR matrix of one row."""
        return matrix_of(self.rows, i, i + 1)

    def output_of(self, i: int) -> Bools:
        """Which labels of example i are on."""
        return self.gold[i].copy()

    def joint_feature(self, x: Any, y: Any) -> Any:
        """See `Problem.joint_feature`: x under each label that is on, and edges between them."""
        on = np.asarray(y, dtype=np.bool_)
        _, inputs, values = entries_of(x, self.rows)
        labels = np.flatnonzero(on)
        of_labels = np.add.outer(inputs * self.n_labels, labels).ravel()
        together = np.flatnonzero(on[self.graph.edges].all(axis=1))
        first_pair = self.n_features - len(self.graph.edges)
        return sparse_row(
            np.concatenate([of_labels, first_pair + together]),
            np.concatenate([np.repeat(values, len(labels)), np.ones(len(together))]),
            self.n_features,
        )

    def loss(self, y: Any, y_hat: Any) -> float:
        """See `Problem.loss`."""
        gold, found = np.asarray(y, dtype=np.bool_), np.asarray(y_hat, dtype=np.bool_)
        if self.costs is not None:
            return float(flip_costs(gold, self.costs)[gold != found].sum())
        return loss_of(self.loss_name, gold, found)

    def predict(self, x: Any, w: Floats) -> Bools:
        """The set of labels of the largest score; see `Problem.predict`."""
        w = as_weights(w, self.n_features)
        return predict_labels(rows_of(x, self.rows), self.graph, w)[0]

    # ----- the search ---------------------------------------------------------------------------

    def _mode(self, rescaling: Rescaling, sqrt_loss: bool) -> SearchMode:
        """See `FactoredProblem`."""
        mode = search_mode(rescaling, sqrt_loss, self.loss_name == "zero_one")
        if self.loss_name == "f1" and mode.kind == ADDITIVE:  # it does not add up over labels
            return SearchMode(ERROR_COUNTS, False, False)
        return mode

    def _search(self, examples: Ints, w: Floats, mode: SearchMode, as_blocks: bool) -> Planes:
        """Sets of labels; parts are an example's whole input under a label, and edges."""
        gold = self.gold[examples]
        loss = LOSSES.index(self.loss_name)
        scores = np.zeros(gold.shape)
        _add_all_scores(self.rows, examples, w, scores)
        pairs = w[self.n_features - len(self.graph.edges) :]
        if self.costs is None:
            found = find_labels(scores, self.graph, pairs, gold, loss, mode)
        else:
            found = find_with_costs(scores, self.graph, pairs, gold, self.costs, mode)
        entries, edges = np.count_nonzero(found != gold, axis=1), self.graph.edges
        first_pair = self.rows.n_rows * self.n_labels
        n_pairs = len(edges) * int(np.count_nonzero(entries))
        if not as_blocks:
            rows = self.rows
            entries *= (rows.indptr[1:] - rows.indptr[:-1])[examples] + int(rows.bias != 0.0)
            first_pair = self.n_features - len(edges)
        out = empty_planes(len(examples), int(entries.sum()) + n_pairs)
        _write_planes(self.rows, examples, gold, found, edges, loss, as_blocks, first_pair, out)
        if self.costs is not None:
            out.losses[:] = (flip_costs(gold, self.costs) * (found != gold)).sum(axis=1)
        return trim(out)

    def accelerators(self, formulation: Formulation) -> MultilabelAccelerators:
        """Inputs under labels as parts."""
        return MultilabelAccelerators(self, formulation)


class MultilabelAccelerators(FactoredAccelerators):
    """An input under a label is a part."""

    def __init__(self, problem: MultilabelProblem, formulation: Formulation) -> None:
        super().__init__(problem, formulation)
        inputs = float(problem.rows.indptr[-1]) / max(problem.rows.n_rows, 1)
        # Asked in small batches, whose cost is counted too.
        self.oracle_work = scoring_work(inputs, problem.n_labels) + 1e4
        if problem.graph.forest is None:
            self.oracle_work += 10.0 * 2.0**problem.n_labels


def predict_labels(rows: Rows, graph: LabelGraph, w: Floats, n_jobs: int | None = None) -> Bools:
    """The set of labels of the largest score for every row."""
    scores = label_scores(rows, graph, w, n_jobs)
    pairs = w[len(w) - len(graph.edges) :]

    def find(first: int, end: int) -> Bools:
        own = scores[first:end]
        return find_labels(own, graph, pairs, np.zeros(own.shape, np.bool_), 0, PREDICT)

    work = 1e3 if graph.forest is not None else 2.0 * 2.0**graph.n_labels
    return np.concatenate(each_range(n_jobs, len(scores), work, find))


def rank_labels(rows: Rows, graph: LabelGraph, w: Floats, k: int) -> list[list[Found]]:
    """The k sets of labels of the largest scores of every row, best first."""
    pairs, edges = w[len(w) - len(graph.edges) :], graph.edges

    def rank(scores: Floats) -> list[Found]:
        sure = _sure(scores, pairs)

        def find(regions: list[Region]) -> list[Found | None]:
            table = np.tile(scores, (len(regions), 1))
            for row, (fixed, excluded) in zip(table, regions, strict=True):
                row[: len(fixed)] = np.where(fixed, sure, -sure)
                if excluded:  # on or off: the other one is left
                    row[len(fixed)] = -sure if excluded[0] else sure
            nothing = np.zeros(table.shape, np.bool_)
            found = find_labels(table, graph, pairs, nothing, 0, PREDICT)
            values = (found @ scores + found[:, edges].all(axis=2) @ pairs).tolist()
            return [
                None if len(region.excluded) == 2 else (labels, value)
                for region, labels, value in zip(regions, found.astype(int), values, strict=True)
            ]

        return k_best(find, k)

    return [rank(own) for own in label_scores(rows, graph, w)]


def _sure(scores: Floats, pairs: Floats) -> float:
    """A score beside which all others are small."""
    return float(1.0 + 2.0 * (np.abs(scores).sum() + np.abs(pairs).sum()))


def flipped_labels(rows: Rows, graph: LabelGraph, w: Floats, found: Bools) -> Bools:
    """For each label the best set of the only row in which it is not as in ``found``."""
    scores = np.tile(label_scores(rows, graph, w), (graph.n_labels, 1))
    pairs = w[len(w) - len(graph.edges) :]
    sure = _sure(scores[0], pairs)
    np.fill_diagonal(scores, np.where(found, -sure, sure))
    return find_labels(scores, graph, pairs, np.zeros(scores.shape, np.bool_), 0, PREDICT)


def label_scores(rows: Rows, graph: LabelGraph, w: Floats, n_jobs: int | None = None) -> Floats:
    """Scores of all labels for every row, by themselves."""
    weights = w[: len(w) - len(graph.edges)].reshape(-1, graph.n_labels)
    return scores_of_rows(rows, weights, n_jobs).astype(np.float64, copy=False)


@kernel(allocates=False)
def _add_all_scores(rows, examples, w, scores):
    """scores[r] of the rows ``examples[r]``."""
    for r in range(len(examples)):
        add_scores(rows, examples[r], w, scores.shape[1], scores[r])


@kernel(allocates=False)
def _write_planes(rows, examples, gold, found, edges, loss, as_blocks, first_pair, out):
    """Rows of dpsi, in features or in parts, and the losses.

    In: ``gold[r], found[r]`` are the labels of row ``examples[r]``; ``first_pair`` is the weight,
    or the part, of the first edge.
    """
    L = gold.shape[1]
    filled = 0
    for r in range(len(examples)):
        i = examples[r]
        n_on, missed, added = 0, 0, 0
        for label in range(L):
            n_on += gold[r, label]
            if gold[r, label] == found[r, label]:
                continue
            sign = 1.0 if gold[r, label] else -1.0
            missed += gold[r, label]
            added += found[r, label]
            filled = write_block(rows, i, L, label, sign, as_blocks, out, filled)
        if missed + added > 0:
            for e in range(len(edges)):
                a, b = edges[e, 0], edges[e, 1]
                together = gold[r, a] and gold[r, b]
                if together != (found[r, a] and found[r, b]):
                    out.indices[filled] = first_pair + e
                    out.values[filled] = 1.0 if together else -1.0
                    filled += 1
        out.losses[r] = label_loss(loss, n_on, missed, added)
        out.indptr[r + 1] = filled
