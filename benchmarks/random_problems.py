"""Small random problems of every structure, as estimators meet them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.features import Taxonomy

Rng = np.random.Generator
partial: Any = functools.partial  # words drawn at random are of no literal type
LOSSES = ("hamming", "normalized_hamming", "zero_one")


class Drawn(NamedTuple):
    """An estimator without C and formulation, and data to train it on."""

    make: Callable[..., Any]
    X: Any
    y: Any
    has_sqrt_loss: bool = True


def _inputs(rng: Rng, n: int, n_features: int) -> Any:
    """Normal features, of some scale, a third of them zero in some cases."""
    X = rng.normal(size=(n, n_features)) * 10.0 ** rng.uniform(-0.5, 0.5)
    return X * (rng.random(X.shape) < 0.6) if rng.random() < 0.4 else X


def _labels(rng: Rng, n: int, K: int) -> Any:
    """Labels of at least two kinds."""
    y = rng.integers(0, K, n)
    y[:2] = 0, 1
    return rng.permutation(y)


def _costs(rng: Rng, K: int) -> Any:
    """Costs of all pairs of classes."""
    costs = rng.choice([0.2, 0.5, 1.0, 1.0, 2.0, 5.0], (K, K))
    np.fill_diagonal(costs, 0.0)
    return costs


def _intercept(rng: Rng) -> bool:
    """Whether to have one."""
    return bool(rng.random() < 0.5)


def classes(rng: Rng, n: int) -> Drawn:
    """Plain classes; one example alone has no second class."""
    n, K = max(n, 2), int(rng.integers(2, 8))
    X = _inputs(rng, n, int(rng.integers(1, 12)))
    y = _labels(rng, n, K)
    given = sp.csr_matrix(X) if rng.random() < 0.3 else X
    return Drawn(partial(mm.MulticlassSVM, fit_intercept=_intercept(rng)), given, y)


def costs(rng: Rng, n: int) -> Drawn:
    """Classes with a cost for each pair."""
    make, X, y, _ = classes(rng, n)
    return Drawn(partial(make, loss=_costs(rng, len(set(y)))), X, y)


def class_features(rng: Rng, n: int) -> Drawn:
    """Classes with features."""
    make, X, y, _ = costs(rng, n)
    table = rng.normal(size=(len(set(y)), int(rng.integers(1, 5))))
    X = X.toarray() if sp.issparse(X) else X
    return Drawn(partial(make, class_features=table), X, y)


def taxonomy(rng: Rng, n: int) -> Drawn:
    """Leaves of a random tree."""
    n, K = max(n, 2), int(rng.integers(3, 10))
    parents = {f"n{k}": [f"n{rng.integers((k + 1) // 2)}"] for k in range(1, 2 * K)}
    inner = {above for (above,) in parents.values()}
    leaves = sorted(set(parents) - inner)
    y = [leaves[k] for k in _labels(rng, n, len(leaves))]
    make = partial(mm.MulticlassSVM, taxonomy=Taxonomy(parents), loss="taxonomy")
    return Drawn(make, _inputs(rng, n, int(rng.integers(1, 10))), y)


def chains(rng: Rng, n: int) -> Drawn:
    """Sequences."""
    K, d, longest = int(rng.integers(2, 6)), int(rng.integers(1, 8)), int(rng.integers(1, 12))
    lengths = rng.integers(1, longest + 1, n)
    lengths[0] = max(lengths[0], 2)
    codes = np.split(_labels(rng, int(lengths.sum()), K), np.cumsum(lengths)[:-1])
    X = [_inputs(rng, length, d) for length in lengths]
    loss = str(rng.choice(LOSSES))
    make = partial(mm.SequenceTagger, loss=loss, fit_intercept=_intercept(rng))
    return Drawn(make, X, [ys.tolist() for ys in codes])


def label_trees(rng: Rng, n: int) -> Drawn:
    """Labels at the nodes of a tree."""
    n, V, K = max(n, 2), int(rng.integers(2, 6)), int(rng.integers(2, 5))
    codes = np.stack([_labels(rng, n, K) for _ in range(V)], axis=1)
    edges = [(v, int(rng.integers(v))) for v in range(1, V)]
    X = [_inputs(rng, n, int(rng.integers(1, 5))) for _ in range(V)]
    return Drawn(partial(mm.TreeLabeler, tree=edges, loss=str(rng.choice(LOSSES))), X, codes)


def parts(rng: Rng, n: int) -> Drawn:
    """Parts at positions of small images."""
    V, size = int(rng.integers(1, 4)), int(rng.integers(3, 8))
    images = [np.round(rng.normal(size=(size, size + 1, 1)), 1) for _ in range(n)]
    positions = rng.integers(0, size, (n, V, 2))
    edges = [(v, int(rng.integers(v))) for v in range(1, V)]
    loss = str(rng.choice(["deviation", *LOSSES]))
    options = {"patch": int(rng.integers(1, 4)), "loss": loss, "size": 50.0, "tree": edges}
    return Drawn(partial(mm.PartLocator, **options), images, positions)


def _sentences(rng: Rng, lengths: Any) -> list[Any]:
    """Words with tags."""
    tags = [rng.choice(["D", "N", "V"], length).tolist() for length in lengths]
    return [[(f"{tag.lower()}{rng.integers(9)}", tag, tag) for tag in some] for some in tags]


def crossing_dependencies(rng: Rng, n: int) -> Drawn:
    """Dependency trees whose arcs may cross: every word depends on one before it, or the root."""
    lengths = rng.integers(2, 9, n)
    X = _sentences(rng, lengths)
    Y = [[int(rng.integers(1, m)) if m > 1 else 0 for m in range(1, k + 1)] for k in lengths]
    make = partial(mm.DependencyParser, projective=False, loss=str(rng.choice(LOSSES)))
    return Drawn(partial(make, hash_bits=12), X, Y)


def dependencies(rng: Rng, n: int) -> Drawn:
    """Dependency trees without crossing arcs."""
    lengths = rng.integers(2, 9, n)

    def attach(first: int, last: int, above: int, heads: list[int]) -> None:
        if first <= last:
            head = int(rng.integers(first, last + 1))
            heads[head - 1] = above
            attach(first, head - 1, head, heads)
            attach(head + 1, last, head, heads)

    X, Y = _sentences(rng, lengths), [[0] * int(length) for length in lengths]
    for heads in Y:
        attach(1, len(heads), 0, heads)
    return Drawn(partial(mm.DependencyParser, loss=str(rng.choice(LOSSES)), hash_bits=12), X, Y)


def alignments(rng: Rng, n: int) -> Drawn:
    """Alignments of short strings."""
    letters = list("ABCDEFGH"[: int(rng.integers(2, 9))])
    X, Y = [], []
    for _ in range(n):
        x, y = ("".join(rng.choice(letters, int(rng.integers(2, 9)))) for _ in range(2))
        k = int(rng.integers(1, min(len(x), len(y)) + 1))
        sides = (np.sort(rng.choice(len(s), k, replace=False)) for s in (x, y))
        X.append((x, y))
        Y.append(np.stack(list(sides), axis=1))
    mode, loss = str(rng.choice(["local", "global"])), str(rng.choice(["pairs", "zero_one"]))
    return Drawn(partial(mm.SequenceAligner, mode=mode, loss=loss, alphabet="ABCDEFGH"), X, Y)


def grammars(rng: Rng, n: int) -> Drawn:
    """Random binary trees over three tags."""

    def tree(words: list[str], label: str) -> str:
        if len(words) == 1:
            return f"({label} ({words[0]} {words[0]}))"
        cut = int(rng.integers(1, len(words)))
        left, right = rng.choice(["N", "V"], 2)
        return f"({label} {tree(words[:cut], left)} {tree(words[cut:], right)})"

    X = [rng.choice(["a", "b", "c"], int(rng.integers(2, 8))).tolist() for _ in range(n)]
    make = partial(mm.GrammarParser, terminals="tags", loss=str(rng.choice(["f1", "zero_one"])))
    return Drawn(make, X, [tree(words, "S") for words in X])


class TableProblem(mm.Problem):
    """A user's own problem: x is a table of joint features with losses, an output a row."""

    rescalings = ("margin", "slack", "none")

    def joint_feature(self, x: Any, y: int) -> Any:
        """Row of the table."""
        return x[0][y]

    def loss(self, y: int, y_hat: int) -> float:
        """Distance of the numbers, at most 3."""
        return float(min(abs(y - y_hat), 3))

    def most_violated(self, x: Any, y: int, w: Any, rescaling: str) -> int:
        """By trying all rows."""
        losses = np.minimum(np.abs(y - np.arange(len(x[0]))), 3.0)
        margins = (x[0][y] - x[0]) @ w
        if rescaling == "none":
            return int(np.argmax(np.where(losses > 0, 1.0 - margins, 0.0)))
        return int(np.argmax(losses - (losses if rescaling == "slack" else 1.0) * margins))

    def predict(self, x: Any, w: Any) -> int:
        """The best row."""
        return int(np.argmax(x[0] @ w))


def own_problem(rng: Rng, n: int) -> Drawn:
    """A problem in plain Python."""
    d = int(rng.integers(1, 12))
    X = [(_inputs(rng, int(rng.integers(2, 8)), d),) for _ in range(n)]
    y = [int(rng.integers(len(table))) for (table,) in X]
    problem = TableProblem()
    problem.n_features = d
    return Drawn(partial(mm.StructuralSVM, problem), X, y, has_sqrt_loss=False)


STRUCTURES = (
    classes,
    costs,
    class_features,
    taxonomy,
    chains,
    label_trees,
    parts,
    dependencies,
    crossing_dependencies,
    alignments,
    grammars,
    own_problem,
)
