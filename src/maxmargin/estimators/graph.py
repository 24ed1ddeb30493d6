"""Labels of the nodes of graphs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..engine.parallel.threads import each_range
from ..features.containers import as_list
from ..problems.graph.data import PAIRWISE, GraphData, Pairwise
from ..problems.graph.inference import Inference, Labelling
from ..problems.graph.problem import LOSSES, GraphModel, GraphProblem
from ..solvers.base import checked_weights
from ..utils.schema import Count, Labels
from ..utils.types import Bools, Floats, Ints
from ..utils.validation import as_sample_weights, check_choice
from .abilities.explanation import Evidence, Explanation, Places, column_names
from .abilities.partial_labels import allowed_labels, flatten_fixed
from .base import MaxMarginEstimator, checked_k
from .costs import CostTable, check_loss, label_costs, share_of_right
from .examples import (
    FlatLabels,
    LabelEncoder,
    Outputs,
    Wording,
    flatten_labels,
    warn_of_unknown,
)
from .graph_data import GraphSizes, read_graphs
from .parameters import with_inherited_parameters
from .training import Trainer, TrainingSet

__all__ = ["GraphBounds", "GraphLabeler"]

NODES = Wording("graph", "node", "label")


class GraphBounds(NamedTuple):
    """What a prediction promises of each graph.

    Attributes
    ----------
    scores : ndarray of shape (n_graphs,)
        Scores of the predicted labels.
    bounds : ndarray of shape (n_graphs,)
        Upper bounds on the scores of all labels.
    proven : ndarray of bool, shape (n_graphs,)
        Whether no labels have a larger score.
    """

    scores: Floats
    bounds: Floats
    proven: Bools


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class GraphLabeler(MaxMarginEstimator):
    """Labels for the nodes of graphs of any shape, certified by a duality gap.

    Parameters
    ----------
    pairwise : {"full", "symmetric", "potts", "directed"}, default="full"
        Weights of each edge feature: "full" has one for every pair of labels, that of the node with
        the smaller number first; "symmetric" has the same for (a, b) and (b, a); "potts" has one
        for equal labels. With these an edge may be listed in one direction or in both, and counts
        once. "directed" has one for every pair of labels, that of the first node of the edge first,
        and edges in both directions count as two.
    inference : {"auto", "max_flow", "trws", "exact"}, default="auto"
        "auto" finds the best labels of forests, and of two labels where equal ones are worth more;
        elsewhere it takes TRW-S, and branch and bound in up to ``max_nodes`` parts. "trws" is TRW-S
        alone, "exact" has no limit, and "max_flow" is "auto" for two labels only.
    max_nodes : int, default=100
        Parts of the labellings of a graph that one search may look at.
    loss : {"hamming", "normalized_hamming"} or costs, default="hamming"
        Number of wrong nodes of a graph, or their fraction. Also a table of costs that add up: an
        array with the sorted labels in rows where they are right and in columns where they are
        predicted, or a mapping ``{(right, predicted): cost}``.
    class_weight : mapping of label to weight, or "balanced", optional
        Multiplies the costs of the nodes with this right label, 1 for labels that are not listed.
    fit_intercept : bool, default=True
        Append a constant feature to every node and to every edge. Edges without features have one
        in any case.
    {parameters of MaxMarginEstimator}

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    coef_ : ndarray
        All weights; see `maxmargin.problems.graph.data`.
    node_coef_ : ndarray of shape (n_labels, n_features)
        Weights of the features of nodes; those of the constant come last.
    edge_coef_ : ndarray of shape (n_edge_features, n_labels, n_labels)
        Weights of the features of edges for every pair of labels; those of the constant come last.
    result_ : Result
        Certificate and history of the training; ``proven_fraction`` says how many oracle calls were
        proven to have found the best labels.
    n_features_in_, n_edge_features_in_ : int
        Number of features of a node and of an edge.

    Notes
    -----
    Labels of graphs with cycles cannot always be proven to be the best. What a search has not
    excluded is bounded, and the duality gap is that of the bounds: it is true in any case, and
    ``result_.bound_gap`` is the part of it that is due to inference. Slack rescaling, and the
    square root of the loss that squared slacks take by default, are searched for through the same
    oracle and have loose bounds: use ``rescaling="margin"``, and ``sqrt_loss=False`` with
    ``slack="l2"``. Searches begin with the messages of the last one of their graph, which a
    checkpoint does not keep: where inference is not exact, a training that is resumed may end with
    other weights, and as true a certificate.

    Examples
    --------
    >>> import numpy as np
    >>> ring = [(0, 1), (1, 2), (2, 3), (3, 0)]
    >>> X = [(np.array([[1.0], [0.9], [-0.1], [1.2]]), ring), (-np.ones((4, 1)), ring)]
    >>> y = [["on"] * 4, ["off"] * 4]
    >>> model = GraphLabeler(pairwise="potts", random_state=0).fit(X, y)
    >>> [labels.tolist() for labels in model.predict(X)]
    [['on', 'on', 'on', 'on'], ['off', 'off', 'off', 'off']]
    """

    pairwise: Pairwise = "full"
    inference: Inference = "auto"
    max_nodes: int = 100
    loss: Literal["hamming", "normalized_hamming"] | CostTable = "hamming"
    class_weight: Any = None
    fit_intercept: bool = True

    def fit(
        self, X: Sequence[Any], y: Sequence[Any], sample_weight: ArrayLike | None = None
    ) -> GraphLabeler:
        """Train on graphs.

        Parameters
        ----------
        X : list of graphs
            ``(node_features, edges)``, ``(node_features, edges, edge_features)`` or `Graph`:
            features dense or sparse, edges as pairs of nodes, of shape (n_edges, 2). Graphs of
            networkx have their features in the attribute "x" of nodes and edges; objects as those
            of PyTorch Geometric have x, edge_index and edge_attr.
        y : list of sequences of labels
            A label of any hashable type for each node; arrays of more dimensions, such as images of
            labels, are read row by row.
        sample_weight : array of shape (n_graphs,), optional
            Multiplies each graph's slack.

        Returns
        -------
        self
        """
        return Trainer(self).fit(X, y, sample_weight=sample_weight)

    def _training_set(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        check_choice(self.pairwise, PAIRWISE, "pairwise")
        check_loss(self.loss, LOSSES)
        directed = self.pairwise == "directed"
        data, sizes = read_graphs(as_list(X), directed, bool(self.fit_intercept))
        labels = _flat(y, data)
        encoder = LabelEncoder.of(labels)
        if len(encoder.classes) < 2:
            raise ValueError(
                f"y has a single label, {encoder.classes.tolist()}; expected at least 2"
            )
        codes = encoder.encode(labels).astype(np.int64)
        self._set_learned(encoder.classes, sizes, self.pairwise)
        weights = as_sample_weights(sample_weight)
        of_nodes = None
        if weights is not None:
            weights = checked_weights(weights, data.n_graphs)
            of_nodes = np.repeat(weights, np.diff(data.node_offsets))
        costs = label_costs(self.loss, self.class_weight, encoder.classes, codes, of_nodes)
        loss = self.loss if isinstance(self.loss, str) else "hamming"
        model = self._model

        def make_problem() -> GraphProblem:
            return GraphProblem(data, codes, model, loss=loss, costs=costs)

        def finish(problem: GraphProblem) -> None:
            calls = max(int(problem.n_calls.sum()), 1)
            proven = int(problem.n_proven.sum()) / calls
            self.result_ = dataclasses.replace(self.result_, proven_fraction=proven)

        arrays = (
            *data.nodes[:3], data.node_offsets, *data.edges[:3], data.edge_offsets, data.first,
            data.second, codes, costs, loss, self.pairwise, sizes, self.inference, self.max_nodes,
        )  # fmt: skip
        return TrainingSet(make_problem, arrays, weights, finish=finish)

    def predict(self, X: Sequence[Any], fixed: Any = None, *, return_bounds: bool = False) -> Any:
        """Best labels of the nodes of each graph.

        Parameters
        ----------
        X : list of graphs
            As for `fit`.
        fixed : list, optional
            What is known already: for each graph None, or a sequence with a label, a set of labels
            or None for each node.
        return_bounds : bool, default=False
            Whether to return scores and bounds as well.

        Returns
        -------
        list of ndarray of shape (n_nodes,)
            Labels of the nodes of each graph.
        GraphBounds
            With ``return_bounds``: how good they are, and what is proven.
        """
        data, w = self._read(X), self._weights
        allowed = None
        if fixed is not None:
            numbers = LabelEncoder(self.classes_).numbers
            allowed = allowed_labels(flatten_fixed(fixed, data.node_offsets, NODES), numbers)
        model = self._model

        def decode(first: int, end: int) -> list[Labelling]:
            found = []
            for i in range(first, end):
                own = slice(data.node_offsets[i], data.node_offsets[i + 1])
                found.append(model.predict(data, i, w, None if allowed is None else allowed[own]))
            return found

        ranges = each_range(self.n_jobs, data.n_graphs, 1e6, decode)
        labellings = [one for found in ranges for one in found]
        labels = Outputs(self.classes_[one.labels] for one in labellings)
        if not return_bounds:
            return labels
        return labels, GraphBounds(
            np.array([one.score for one in labellings]),
            np.array([one.bound for one in labellings]),
            np.array([one.is_proven for one in labellings]),
        )

    def score(
        self, X: Sequence[Any], y: Sequence[Any], sample_weight: ArrayLike | None = None
    ) -> float:
        """Fraction of the nodes with the right label, of all graphs together.

        Parameters
        ----------
        X : list of graphs
            As for `fit`.
        y : list of sequences of labels
            True labels.
        sample_weight : array of shape (n_graphs,), optional
            What the nodes of each graph count.

        Returns
        -------
        float
        """
        data = self._read(X)
        labels = _flat(y, data)
        codes = LabelEncoder(self.classes_).encode(labels)
        found = LabelEncoder(self.classes_).encode(_flat(self.predict(X), data))
        right = share_of_right(codes == found, np.diff(data.node_offsets), sample_weight)
        warn_of_unknown(codes, labels)
        return right

    def explain(self, x: Any, y_hat: Any = None, *, n: int = 5) -> Explanation:
        """Why the predicted labels, and not others: the features that decided, node by node.

        Parameters
        ----------
        x : graph
            One graph, as in the X of `predict`.
        y_hat : sequence of labels, optional
            Other labels of all nodes, to be compared with those predicted. By default there is a
            rival for each node, found by one more search: the best labels with another one there.
        n : int, default=5
            How many features the explanation shows of each decision; it has all of them.

        Returns
        -------
        Explanation
            Decisions node by node. With ``y_hat`` nodes at which nothing differs are left out.
            Features of an edge belong to its first node.
        """
        n, w, data = checked_k(n, "n"), self._weights, self._read([x])
        model, labels = self._model, self.classes_.tolist()
        own = model.predict(data, 0, w).labels
        shown = [labels[k] for k in own]
        places = Places(
            shown, shown, lambda v: f"node {v}", lambda rival: self._evidence(data, own, rival)
        )
        if y_hat is not None:
            given = _flat([y_hat], data)
            codes = LabelEncoder(self.classes_).encode(given).astype(np.int64)
            if (codes < 0).any():
                v = int(np.argmax(codes < 0))
                raise ValueError(f"y_hat: label {given.values[v]!r:.40} of node {v} is not known")
            return places.against(codes, list(given.values), [labels[k] for k in codes], n)

        def rival_at(v: int) -> tuple[Any, Ints]:
            allowed = np.ones((len(own), len(labels)), dtype=bool)
            allowed[v, own[v]] = False
            rival = model.predict(data, 0, w, allowed).labels
            return labels[rival[v]], rival

        return places.one_by_one(map(rival_at, range(len(own))), n)

    def _evidence(self, data: GraphData, own: Ints, rival: Ints) -> list[Evidence]:
        """Features of nodes and edges whose labels differ, of the only graph there is."""
        labels, found = self.classes_.tolist(), []
        nodes, edges = self.node_coef_, self.edge_coef_
        names = column_names(self, np.arange(nodes.shape[1]))
        for v in np.flatnonzero(own != rival).tolist():
            for f, value in _entries(data.nodes, v):
                weight = float(nodes[own[v], f] - nodes[rival[v], f])
                found.append(Evidence(names[f], v, value, weight))
        for e, (u, v) in enumerate(zip(data.first.tolist(), data.second.tolist(), strict=True)):
            if own[u] == rival[u] and own[v] == rival[v]:
                continue
            pairs = f"{labels[own[u]]} - {labels[own[v]]}, not {labels[rival[u]]} - "
            for f, value in _entries(data.edges, e):
                name = f"x{f}" if f < self.n_edge_features_in_ else "intercept"
                weight = float(edges[f, own[u], own[v]] - edges[f, rival[u], rival[v]])
                name = f"edge {u}-{v} {name} {pairs}{labels[rival[v]]}"
                found.append(Evidence(name, u if own[u] != rival[u] else v, value, weight))
        return found

    @property
    def node_coef_(self) -> Floats:
        """Weights of the features of nodes, a row for each label."""
        n_inputs, K = self._sizes.n_node_inputs, len(self.classes_)
        return self._weights[: n_inputs * K].reshape(n_inputs, K).T

    @property
    def edge_coef_(self) -> Floats:
        """Weights of the features of edges, a table of pairs of labels for each feature."""
        layout = self._model.layout
        rest = self._weights[self._sizes.n_node_inputs * layout.n_labels :]
        tables = rest.reshape(-1, layout.n_pairs)[:, np.maximum(layout.pairs, 0)]
        return np.where(layout.pairs >= 0, tables, 0.0)

    def _read(self, X: Any) -> GraphData:
        """Graphs, packed."""
        self._check_fitted()
        sizes = self._sizes
        directed = self._pairwise == "directed"
        return read_graphs(as_list(X), directed, sizes.fit_intercept, sizes)[0]

    def _set_learned(self, classes: NDArray[Any], sizes: GraphSizes, pairwise: Pairwise) -> None:
        """Take up what is learned of the data before the weights are."""
        self.classes_, self._sizes, self._pairwise = classes, sizes, pairwise
        self.n_features_in_, self.n_edge_features_in_ = sizes.n_features, sizes.n_edge_features
        self._model = GraphModel(len(classes), pairwise, self.inference, self.max_nodes)

    # ----- persistence --------------------------------------------------------------------------

    def _get_state(self) -> GraphState:
        """See `Savable`."""
        return GraphState(self.classes_, *self._sizes, self._pairwise)

    def _set_state(self, state: GraphState) -> None:
        """See `Savable`."""
        sizes = GraphSizes(state.n_features, state.n_edge_features, state.fit_intercept)
        self._set_learned(state.classes, sizes, state.pairwise)

    def _n_weights(self) -> int:
        """See `Savable`."""
        return self._model.n_weights(self._sizes.n_node_inputs, self._sizes.n_edge_inputs)


class GraphState(NamedTuple):
    """What a file keeps of a model."""

    classes: Labels
    n_features: Count
    n_edge_features: Count
    fit_intercept: bool
    pairwise: Pairwise


def _flat(y: Any, data: GraphData) -> FlatLabels:
    """Labels of all nodes; images of labels row by row."""
    y = as_list(y, "y")
    if isinstance(y, (list, tuple, np.ndarray)):
        y = [own.ravel() if getattr(own, "ndim", 1) > 1 else own for own in y]
    return flatten_labels(y, data.node_offsets, NODES)


def _entries(rows: Any, row: int) -> list[tuple[int, float]]:
    """Columns and values of a row that is packed, the constant last."""
    own = slice(int(rows.indptr[row]), int(rows.indptr[row + 1]))
    found = list(zip(rows.indices[own].tolist(), rows.values[own].tolist(), strict=True))
    return found + ([(rows.n_columns, rows.bias)] if rows.bias else [])
