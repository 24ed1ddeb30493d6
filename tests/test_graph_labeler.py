"""GraphLabeler: forms of graphs, predictions with bounds, explanations, graphs made of images."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.estimators.graph_data import read_graphs

RING = [(0, 1), (1, 2), (2, 3), (3, 0)]


def data(n=8, seed=0, n_labels=3, noise=0.4):
    """Grids of 3 x 4 pixels whose rows have one label each."""
    rng = np.random.default_rng(seed)
    graphs, labels = [], []
    for k in range(n):
        y = (np.arange(12) // 4 + k) % n_labels
        graphs.append(mm.make_grid((y + noise * rng.normal(size=12)).reshape(3, 4)))
        labels.append(y)
    return graphs, labels


@pytest.fixture(scope="module")
def fitted():
    graphs, labels = data()
    return mm.GraphLabeler(random_state=0).fit(graphs, labels)


def plain(labels):
    return [own.tolist() for own in labels]


def score(model, graph, labels):
    """Score of labels by the weights in arrays."""
    nodes, edges, features = graph
    with_constant = np.hstack([nodes, np.ones((len(nodes), 1))])
    total = sum(model.node_coef_[k] @ x for k, x in zip(labels, with_constant, strict=True))
    for (u, v), x in zip(edges, features, strict=True):
        total += np.append(x, 1.0) @ model.edge_coef_[:, labels[u], labels[v]]
    return float(total)


# ----- predictions -------------------------------------------------------------------------------


def test_grids_are_learned(fitted):
    graphs, labels = data(seed=1)
    assert fitted.score(graphs, labels) == 1.0
    assert fitted.result_.converged and fitted.result_.relative_gap <= 1e-2
    assert 0.5 < fitted.result_.proven_fraction <= 1.0
    assert "proven optimal" in str(fitted.result_)
    assert fitted.node_coef_.shape == (3, 2) and fitted.edge_coef_.shape == (3, 3, 3)


@pytest.mark.parametrize("pairwise", ["full", "symmetric", "potts", "directed"])
def test_predictions_have_the_best_score(pairwise):
    rng = np.random.default_rng(3)
    graphs = [(rng.normal(size=(4, 2)), RING, rng.normal(size=(4, 2))) for _ in range(5)]
    labels = [rng.integers(0, 3, 4) for _ in graphs]
    model = mm.GraphLabeler(pairwise=pairwise, C=10.0, random_state=0).fit(graphs, labels)
    found, bounds = model.predict(graphs, return_bounds=True)
    assert bounds.proven.all()
    for i, graph in enumerate(graphs):
        if pairwise != "directed":  # the last edge leads from 3 to 0
            graph = (graph[0], np.sort(np.array(RING), axis=1), graph[2])
        scores = {y: score(model, graph, y) for y in itertools.product(range(3), repeat=4)}
        assert scores[tuple(found[i].tolist())] == pytest.approx(max(scores.values()))
        assert bounds.scores[i] == pytest.approx(max(scores.values()))
        fixed = [1, None, {0, 2}, None]
        (obeying,) = model.predict([graphs[i]], fixed=[fixed])
        allowed = {y: s for y, s in scores.items() if y[0] == 1 and y[2] != 1}
        assert scores[tuple(obeying.tolist())] == pytest.approx(max(allowed.values()))


def test_bounds_of_searches_that_prove_nothing():
    rng = np.random.default_rng(0)
    pairs = list(itertools.combinations(range(7), 2))
    graphs = [(rng.normal(size=(7, 1)), pairs, rng.normal(size=(21, 1))) for _ in range(4)]
    labels = [rng.integers(0, 3, 7) for _ in graphs]
    weights = 3.0 * rng.normal(size=24)
    weights[:6] *= 0.03  # nodes decide little
    found = []
    for inference in ("trws", "exact"):
        model = mm.GraphLabeler(inference=inference, random_state=0, tol=0.5).fit(graphs, labels)
        model.coef_ = weights
        found.append(model.predict(graphs, return_bounds=True)[1])
    loose, exact = found
    assert exact.proven.all() and not loose.proven.all()
    assert (loose.scores <= exact.scores + 1e-9).all()
    assert (exact.scores <= loose.bounds + 1e-9).all()


def test_the_same_predictions_with_threads(fitted):
    graphs, _ = data(n=12, seed=2)
    alone = fitted.predict(graphs)
    for n_jobs in (1, 2):
        again = mm.GraphLabeler(random_state=0, n_jobs=n_jobs).fit(*data())
        assert np.array_equal(again.coef_, fitted.coef_)
        assert plain(alone) == plain(again.predict(graphs))


@pytest.mark.parametrize(
    "options",
    [
        {"rescaling": "slack"},
        {"slack": "l2"},
        {"loss": "normalized_hamming", "class_weight": "balanced"},
        {"loss": {(0, 2): 3.0}},
        {"solver": "one_slack"},
        {"inference": "trws"},
        {"fit_intercept": False},
    ],
    ids=str,
)
def test_options_of_the_training(options):
    graphs, labels = data(n=4)
    model = mm.GraphLabeler(random_state=0, tol=0.05, **options).fit(graphs, labels)
    assert model.score(graphs, labels) > 0.9
    assert model.result_.gap >= -1e-9


def test_explanations_add_up(fitted):
    graphs, labels = data(seed=4)
    own = fitted.predict(graphs[:1])[0]
    whole = fitted.explain(graphs[0], labels[1])
    difference = score(fitted, graphs[0], own) - score(fitted, graphs[0], labels[1])
    assert sum(d.margin for d in whole.decisions) == pytest.approx(difference)
    for v, decision in enumerate(fitted.explain(graphs[0]).decisions):
        assert decision.chosen == own[v] != decision.rival and decision.margin >= 0.0


def test_saving(fitted, tmp_path):
    graphs, _ = data(seed=5)
    fitted.save(tmp_path / "graphs.mm")
    again = mm.load(tmp_path / "graphs.mm")
    assert plain(again.predict(graphs)) == plain(fitted.predict(graphs))
    assert np.array_equal(again.edge_coef_, fitted.edge_coef_)


# ----- forms of graphs ----------------------------------------------------------------------------


class Networkx:
    """What a graph of networkx has that is used."""

    class View(dict):
        def __call__(self, data):
            return [(*(key if isinstance(key, tuple) else (key,)), x) for key, x in self.items()]

    def __init__(self, nodes, edges, features):
        self.nodes = self.View({f"n{v}": x for v, x in enumerate(nodes)})
        keys = [(f"n{u}", f"n{v}") for u, v in edges]
        self.edges = self.View(zip(keys, features, strict=True))
        self.adj = {}


class Geometric:
    """What a graph of PyTorch Geometric has: edges in both directions, in columns."""

    def __init__(self, nodes, edges, features):
        self.x = nodes
        self.edge_index = np.concatenate([edges, edges[:, ::-1]]).T
        self.edge_attr = np.concatenate([features, features])


def test_all_forms_are_the_same_graph(fitted):
    graph = data(seed=6)[0][0]
    forms = [
        graph,
        tuple(graph),
        (graph.node_features.tolist(), graph.edges.tolist(), graph.edge_features.tolist()),
        (sp.csr_matrix(graph.node_features), graph.edges, sp.coo_matrix(graph.edge_features)),
        Networkx(*graph),
        Geometric(*graph),
    ]
    first, *others = read_graphs(forms, False, True)[0].at(np.arange(6)).shapes
    for shape in others:
        assert all(np.array_equal(a, b) for a, b in zip(first, shape, strict=True))
    _, bounds = fitted.predict(forms, return_bounds=True)
    assert bounds.scores == pytest.approx(np.full(len(forms), bounds.scores[0]))


def test_labels_of_an_image():
    graphs, labels = data(n=3)
    flat = mm.GraphLabeler(random_state=0).fit(graphs, labels)
    images = mm.GraphLabeler(random_state=0).fit(graphs, [y.reshape(3, 4) for y in labels])
    assert np.array_equal(flat.coef_, images.coef_)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ((np.ones((2, 3)), [(0, 1)]), "graph 1 has 3 features per node, expected 2"),
        ((np.ones((2, 2)), [(0, 2)]), r"graph 1: edge 0 is \(0, 2\); expected two different nodes"),
        ((np.ones((2, 2)), [(0, 0)]), r"graph 1: edge 0 is \(0, 0\)"),
        ((np.ones((2, 2)), [(0, 1.5)]), "graph 1: edges have shape"),
        ((np.ones((2, 2)), [0, 1]), "graph 1: edges have shape"),
        ((np.ones((2, 2)), [(0, 1), (0, 1)]), "graph 1: edge 1 joins nodes .* again"),
        ((np.ones((2, 2)), [(0, 1)], [[1.0]]), "graph 0 has 0 features per edge, expected 1"),
        ((np.ones((2, 2)), [(0, 1)], np.ones((2, 1))), "graph 1 has 1 edges, but features of 2"),
        ((np.full((2, 2), np.nan), [(0, 1)]), "graph 1: node features have a NaN"),
        (np.ones((2, 2)), "graph 1 is of type ndarray; expected"),
    ],
)  # fmt: skip
def test_what_is_no_graph(graph, message):
    good = (np.ones((2, 2)), [(0, 1)])
    with pytest.raises(ValueError, match=message):
        mm.GraphLabeler().fit([good, graph], [[0, 1], [0, 1]])


def test_edges_in_both_directions():
    nodes, edges = np.ones((3, 1)), [(0, 1), (1, 0), (2, 1)]
    kept = read_graphs([(nodes, edges)], False, True)[0]
    assert (kept.first.tolist(), kept.second.tolist()) == ([0, 1], [1, 2])
    both = read_graphs([(nodes, edges)], True, True)[0]
    assert (both.first.tolist(), both.second.tolist()) == ([0, 1, 2], [1, 0, 1])
    with pytest.raises(ValueError, match=r"edge 1 joins nodes .* again"):
        read_graphs([(nodes, edges, [[1.0], [2.0], [1.0]])], False, True)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0, 1], [1]], "graph 1 has 2 nodes but 1 labels"),
        ([[0, 1]], "X has 2 graphs but y has 1"),
        ([[0, 0], [0, 0]], "a single label"),
    ],
)
def test_labels_that_do_not_fit(y, message):
    good = (np.ones((2, 2)), [(0, 1)])
    with pytest.raises(ValueError, match=message):
        mm.GraphLabeler().fit([good, good], y)


@pytest.mark.parametrize("options", [{"pairwise": "half"}, {"inference": "ad3"}, {"loss": "f1"}])
def test_options_that_do_not_exist(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        mm.GraphLabeler(**options).fit([(np.ones((2, 2)), [(0, 1)])], [[0, 1]])


# ----- graphs made of images and points -----------------------------------------------------------


def test_make_grid():
    image = np.arange(12.0).reshape(2, 3, 2)
    four = mm.make_grid(image)
    assert np.array_equal(four.node_features, image.reshape(6, 2))
    across, down = [(0, 1), (1, 2), (3, 4), (4, 5)], [(0, 3), (1, 4), (2, 5)]
    assert list(map(tuple, four.edges.tolist())) == across + down
    assert np.array_equal(four.edge_features.argmax(axis=1), [0] * 4 + [1] * 3)
    eight = mm.make_grid(image, connectivity=8, directional=False)
    diagonal = {(0, 4), (1, 5), (1, 3), (2, 4)}
    assert set(map(tuple, eight.edges.tolist())) == {*across, *down, *diagonal}
    assert eight.edge_features is None
    with pytest.raises(ValueError, match="connectivity must be 4 or 8, got 6"):
        mm.make_grid(image, connectivity=6)
    with pytest.raises(ValueError, match="image has shape"):
        mm.make_grid(np.ones(3))


def test_make_superpixel_graph():
    segments = np.array([[7, 7, 3], [7, 9, 3]])
    image = np.array([[1.0, 2.0, 10.0], [3.0, 6.0, 20.0]])
    graph = mm.make_superpixel_graph(image, segments)
    assert graph.node_features.ravel().tolist() == [15.0, 2.0, 6.0]
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert np.allclose(graph.edge_features, [[13.0, 0.5], [9.0, 0.5], [4.0, 2 / 3]])
    with pytest.raises(ValueError, match="expected whole numbers"):
        mm.make_superpixel_graph(image, segments.astype(float))


def test_make_knn_graph():
    graph = mm.make_knn_graph([[0.0], [1.0], [3.0], [3.5]], n_neighbors=1)
    assert graph.edges.tolist() == [[0, 1], [2, 3]]
    assert graph.edge_features.ravel().tolist() == [1.0, 0.5]
    assert len(mm.make_knn_graph([[0.0], [1.0]]).edges) == 1
    assert mm.make_knn_graph([[0.0]]).edges.shape == (0, 2)
