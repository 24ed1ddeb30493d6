"""Graphs of labels as a learning problem."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ...core.cutting_planes import BoundedPlanes, Planes, difference, stack
from ...core.formulation import Formulation, Rescaling
from ...engine.accelerators import Accelerators
from ...engine.cost_model import scoring_work
from ...engine.packed_problem import PackedProblem, entries_per_row
from ...engine.rows import check_codes
from ...search.bounded_search import common_unit
from ...search.limits import check_number_of_weights
from ...utils.types import Floats, Ints
from ...utils.validation import check_choice
from .data import GraphData, PairLayout, Pairwise, flipped, pair_layout, sparse_features
from .inference import INFERENCES, Inference, Labelling, Messages, best_labels
from .kernels import fill_potentials, score_of

__all__ = ["GraphModel", "GraphProblem"]

GraphLoss = Literal["hamming", "normalized_hamming"]
LOSSES = ("hamming", "normalized_hamming")


class GraphModel:
    """Potentials and inference of graphs, whatever is known of their labels.

    Parameters
    ----------
    n_labels : int
        Number of labels, at least 2.
    pairwise : {"full", "symmetric", "potts", "directed"}
        Weights of pairs of labels; see `data`.
    inference : {"auto", "max_flow", "trws", "exact"}
        "auto" finds the best labels of forests, and of two labels with submodular pairs, and else
        takes TRW-S with branch and bound in up to ``max_nodes`` parts. "trws" is TRW-S alone,
        "exact" has no limit, and "max_flow" is "auto" for two labels only.
    max_nodes : int
        Parts of the labellings of a graph that a search may look at.
    """

    def __init__(
        self, n_labels: int, pairwise: Pairwise, inference: Inference, max_nodes: int
    ) -> None:
        if n_labels < 2:
            raise ValueError(f"expected at least 2 labels, got {n_labels}")
        self.layout: PairLayout = pair_layout(pairwise, n_labels)
        check_choice(inference, INFERENCES, "inference")
        if inference == "max_flow" and n_labels != 2:
            raise ValueError(
                f"inference='max_flow' needs two labels, got {n_labels}; use inference='auto'"
            )
        if max_nodes < 0:
            raise ValueError(f"max_nodes must be at least 0, got {max_nodes}")
        self.inference, self.max_nodes = inference, int(max_nodes)

    def n_weights(self, n_node_inputs: int, n_edge_inputs: int) -> int:
        """Number of weights for so many features of nodes and edges, constants included."""
        return n_node_inputs * self.layout.n_labels + n_edge_inputs * self.layout.n_pairs

    def potentials(self, data: GraphData, i: int, w: Floats) -> tuple[Floats, Floats]:
        """Scores of the labels of all nodes, and of the pairs of labels of all edges."""
        layout, flips = self.layout, flipped(data, i)
        K, m = layout.n_labels, len(flips)
        unary = np.empty((len(data.shapes[i].after_ends) - 1, K))
        pair = np.empty((m, 1, 1) if layout.is_potts else (m, K, K))
        starts = int(data.node_offsets[i]), int(data.edge_offsets[i])
        fill_potentials(
            data.nodes, starts[0], data.edges, starts[1], flips, w, layout.pairs, layout.n_pairs,
            unary, pair,
        )  # fmt: skip
        return unary, pair

    def no_messages(self, data: GraphData, i: int) -> Messages:
        """Messages of a search that begins."""
        return Messages(len(data.shapes[i].low), self.layout.n_labels)

    def predict(self, data: GraphData, i: int, w: Floats, allowed: Any = None) -> Labelling:
        """The best labels of graph i, of the ``allowed`` ones, with their score and a bound."""
        unary, pair = self.potentials(data, i, w)
        if allowed is not None:
            unary[~allowed] = -np.inf
        labels = unary.argmax(axis=1)
        start = labels, float(score_of(data.shapes[i], unary, pair, labels))
        messages = self.no_messages(data, i)
        return best_labels(
            data.shapes[i], unary, pair, start, self.inference, self.max_nodes, messages
        )


class GraphProblem(PackedProblem):
    """Labels of the nodes of graphs, with an oracle for margin rescaling.

    What the search of a graph cannot prove has a bound, with which certificates stay true. Messages
    of a graph's last search are kept for the next one, for as long as the problem is in memory.

    Parameters
    ----------
    data : GraphData
        The graphs.
    labels : array of int
        Gold labels of all nodes, graph by graph.
    model : GraphModel
        Weights and inference.
    loss : {"hamming", "normalized_hamming"}
        Number of wrong labels, or their fraction. With ``costs``: their sum, or their mean.
    costs : array of shape (n_labels, n_labels), optional
        What labels (columns) cost at nodes with a gold label (rows).
    """

    rescalings = ("margin",)
    in_threads = True

    def __init__(
        self,
        data: GraphData,
        labels: ArrayLike,
        model: GraphModel,
        *,
        loss: GraphLoss = "hamming",
        costs: ArrayLike | None = None,
    ) -> None:
        check_choice(loss, LOSSES, "loss")
        self.data, self.model, self.loss_name = data, model, loss
        self.labels = np.ascontiguousarray(labels, dtype=np.int64)
        K = model.layout.n_labels
        if self.labels.shape != (int(data.node_offsets[-1]),):
            raise ValueError(f"expected {data.node_offsets[-1]} labels, got {len(self.labels)}")
        check_codes(self.labels, K, "y")
        self.costs = 1.0 - np.eye(K) if costs is None else np.array(costs, np.float64)
        if self.costs.shape != (K, K) or not np.all(np.isfinite(self.costs) & (self.costs >= 0)):
            raise ValueError(f"costs must be {K} x {K} finite numbers from 0 on")
        if self.costs.diagonal().any():
            raise ValueError(
                "the gold label must cost nothing: costs must have zeros on the diagonal"
            )
        self.n_features = model.n_weights(data.nodes.n_inputs, data.edges.n_inputs)
        check_number_of_weights(self.n_features)
        self.loss_unit = self._unit()
        self._messages: list[Messages | None] = [None] * data.n_graphs
        #: Oracle calls of each graph, and those whose labels were proven to be the best.
        self.n_calls = np.zeros(data.n_graphs, np.int64)
        self.n_proven = np.zeros(data.n_graphs, np.int64)

    def _unit(self) -> float:
        """What all losses are multiples of."""
        unit = common_unit(self.costs)
        if self.loss_name == "hamming":
            return unit
        sizes = np.unique(np.diff(self.data.node_offsets))
        return unit / max(int(sizes[0]), 1) if len(sizes) == 1 else 0.0

    def __getstate__(self) -> dict[str, Any]:
        """All but the messages."""
        return {**vars(self), "_messages": [None] * self.data.n_graphs}

    @property
    def n_examples(self) -> int:
        """Number of graphs."""
        return self.data.n_graphs

    def subset(self, indices: Ints) -> GraphProblem:
        """See `Problem.subset`."""
        labels = [self.output_of(int(i)) for i in indices]
        return GraphProblem(
            self.data.at(np.asarray(indices, np.int64)),
            np.concatenate([np.empty(0, np.int64), *labels]),
            self.model,
            loss=self.loss_name,
            costs=self.costs,
        )

    def input_of(self, i: int) -> tuple[GraphData, int]:
        """The graphs, and the number of this one."""
        return self.data, i

    def output_of(self, i: int) -> Ints:
        """Gold labels of the nodes of graph i."""
        return self.labels[self.data.node_offsets[i] : self.data.node_offsets[i + 1]].copy()

    def joint_feature(self, x: Any, y: Any) -> sp.csr_matrix:
        """See `Problem.joint_feature`."""
        data, i = x
        labels = np.asarray(y, np.int64)
        return sparse_features(data, i, labels, self.model.layout, self.n_features)

    def loss(self, y: Any, y_hat: Any) -> float:
        """See `Problem.loss`."""
        total = float(self.costs[np.asarray(y), np.asarray(y_hat)].sum())
        return total / max(len(y), 1) if self.loss_name == "normalized_hamming" else total

    def predict(self, x: Any, w: Floats) -> Ints:
        """See `Problem.predict`."""
        data, i = x
        return self.model.predict(data, i, w).labels

    def _most_violated(  # type: ignore[override]
        self, examples: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes | BoundedPlanes:
        """See `PackedProblem`."""
        if rescaling != "margin" or sqrt_loss:
            raise ValueError(
                "labels of graphs can be found for rescaling='margin' and sqrt_loss=False only"
            )
        rows, losses, bounds = [], np.zeros(len(examples)), np.zeros(len(examples))
        nothing = (np.empty(0, np.int32), np.empty(0))
        all_proven = True
        for row, i in enumerate(examples.tolist()):
            gold = self.output_of(i)
            found, gold_score = self._search(i, gold, w)
            all_proven = all_proven and found.is_proven
            self.n_calls[i] += 1
            self.n_proven[i] += found.is_proven
            bounds[row] = found.bound - gold_score
            losses[row] = self.loss(gold, found.labels)
            x = self.input_of(i)
            is_gold = np.array_equal(gold, found.labels)
            rows.append(
                nothing
                if is_gold
                else difference(self.joint_feature(x, gold), self.joint_feature(x, found.labels))
            )
        planes = stack(rows, losses)
        return planes if all_proven else planes.with_bounds(bounds)

    def _search(self, i: int, gold: Ints, w: Floats) -> tuple[Labelling, float]:
        """The labelling, and the score of the gold one."""
        unary, pair = self.model.potentials(self.data, i, w)
        shape, model = self.data.shapes[i], self.model
        gold_score = float(score_of(shape, unary, pair, gold))
        unit = 1.0 / max(len(gold), 1) if self.loss_name == "normalized_hamming" else 1.0
        unary += unit * self.costs[gold]
        messages = self._messages[i] or model.no_messages(self.data, i)
        self._messages[i] = messages
        start = gold, gold_score
        found = best_labels(shape, unary, pair, start, model.inference, model.max_nodes, messages)
        return found, gold_score

    def accelerators(self, formulation: Formulation) -> Accelerators:
        """See `Problem.accelerators`; only what a search costs."""
        offered = Accelerators()
        data, layout = self.data, self.model.layout
        n, m = (
            float(ends[-1]) / max(self.n_examples, 1)
            for ends in (data.node_offsets, data.edge_offsets)
        )
        K = layout.n_labels
        per_edge = K if layout.is_potts else K * K
        offered.oracle_work = (
            2e5
            + n * scoring_work(entries_per_row(data.nodes), K)
            + m * scoring_work(entries_per_row(data.edges), layout.n_pairs)
            + 20.0 * m * per_edge
        )
        return offered
