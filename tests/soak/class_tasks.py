"""Classes - plain, with costs, in taxonomies, with features - and a problem of a user's own."""

from functools import partial

import numpy as np
import scipy.sparse as sp

import maxmargin as mm

from .listing import Example, Task


def random_inputs(rng, n, n_features):
    """Normal or whole features, a third of them zero in some cases, rows repeated in others."""
    X = rng.normal(size=(n, n_features)) * 10.0 ** rng.uniform(-0.5, 0.5)
    if rng.random() < 0.3:
        X = np.rint(X)
    if rng.random() < 0.4:
        X *= rng.random(X.shape) < 0.6
    if rng.random() < 0.2:
        X[rng.integers(n)] = X[0]
    return X


def with_constant(X, intercept):
    return np.hstack([X, np.ones((len(X), 1))]) if intercept else X


def random_costs(rng, K):
    costs = rng.choice([0.2, 0.5, 1.0, 1.0, 2.0, 5.0], (K, K))
    np.fill_diagonal(costs, 0.0)
    return costs


def two_classes_or_more(rng, n, K):
    y = rng.integers(0, K, n)
    y[:2] = 0, 1
    return rng.permutation(y)


def class_examples(model, X, y, output_features, losses, intercept):
    """Examples of classes whose joint features are all products of x and the class's features."""
    classes = model.classes_.tolist()
    seen = sorted(set(y))
    number = {label: k for k, label in enumerate(classes)}
    unseen = [label for label in classes if label not in seen]

    def example(x, truth):
        def psi(label):
            return np.kron(x, output_features[number[label]])

        def loss(label):
            return losses[number[truth], number[label]]

        return Example.of(truth, psi, loss, seen, unseen)

    return [example(*pair) for pair in zip(with_constant(X, intercept), y, strict=True)]


def classes(rng):
    """Plain classes, with zero-one loss or costs."""
    n, K = int(rng.integers(2, 12)), int(rng.integers(2, 6))
    X = random_inputs(rng, n, int(rng.integers(1, 5)))
    y = two_classes_or_more(rng, n, K)
    labels = [f"c{k}" for k in range(K)] if rng.random() < 0.5 else [3 * k - 4 for k in range(K)]
    y = [labels[k] for k in y]
    K = len(set(y))
    losses = random_costs(rng, K) if rng.random() < 0.5 else 1.0 - np.eye(K)
    costs = "zero_one" if (losses + np.eye(K) == 1.0).all() else losses
    intercept = bool(rng.random() < 0.5)
    given = sp.csr_matrix(X) if rng.random() < 0.4 else X
    return Task(
        "classes",
        partial(mm.MulticlassSVM, loss=costs, fit_intercept=intercept),
        given,
        y,
        lambda model: class_examples(model, X, y, np.eye(K), losses, intercept),
        lambda label: label,
        n,
        refusals=[(X[:-1], y), (X, [y[0]] * n), (X + np.nan, y), (X[:, :0], y)],
    )


def class_features(rng):
    """Classes with features: a matrix for those of y, or a mapping that knows more classes."""
    n, K, m = int(rng.integers(2, 10)), int(rng.integers(2, 5)), int(rng.integers(1, 4))
    X = random_inputs(rng, n, int(rng.integers(1, 4)))
    y = two_classes_or_more(rng, n, K).tolist()
    table = rng.normal(size=(K, m))
    given = dict(enumerate(table))
    if rng.random() < 0.5:
        table = table[sorted(set(y))]
        given = table
    losses = random_costs(rng, len(table)) if rng.random() < 0.5 else 1.0 - np.eye(len(table))
    intercept = bool(rng.random() < 0.5)
    return Task(
        "class features",
        partial(mm.MulticlassSVM, class_features=given, loss=losses, fit_intercept=intercept),
        X,
        y,
        lambda model: class_examples(model, X, y, table, losses, intercept),
        lambda label: label,
        n,
        refusals=[(X[:-1], y), (X, [9] * n), (X + np.inf, y)],
    )


class Heights:
    """A taxonomy by its definition: ancestors by walking up, heights by walking down."""

    def __init__(self, parents):
        self.parents = parents
        self.nodes = set(parents) | {p for above in parents.values() for p in above}
        roots = [node for node in self.nodes if not parents.get(node)]
        self.top = max(map(self.height, roots)) + (len(roots) > 1)

    def above(self, node):
        """The node itself and all above it."""
        return {node}.union(*(self.above(p) for p in self.parents.get(node, ())))

    def height(self, node):
        below = [child for child, above in self.parents.items() if node in above]
        return 1 + max(map(self.height, below)) if below else 0

    def weight(self, node, leaves):
        """The balanced weight."""
        count = sum(node in self.above(leaf) for leaf in leaves)
        upper = min(map(self.height, self.parents.get(node, ())), default=self.top)
        return np.sqrt((upper - self.height(node)) / (max(self.top, 1) * max(count, 1)))

    def loss(self, a, b):
        common = self.above(a) & self.above(b)
        return 0.0 if a == b else float(min(map(self.height, common), default=self.top))


def taxonomy(rng):
    """Classes at the leaves of a random graph without cycles."""
    nodes = [f"n{k}" for k in range(int(rng.integers(4, 9)))]
    parents = {}
    for k, node in enumerate(nodes):
        n_parents = min(k, int(rng.choice([0, 1, 1, 1, 2])))
        parents[node] = [str(p) for p in rng.choice(nodes[:k], n_parents, replace=False)]
    heights = Heights(parents)
    leaves = sorted(node for node in heights.nodes if heights.height(node) == 0)
    if len(leaves) < 2:
        return taxonomy(rng)
    balanced = rng.random() < 0.5
    tree = mm.Taxonomy(parents, weights=None if balanced else {})
    n = int(rng.integers(2, 10))
    X = random_inputs(rng, n, int(rng.integers(1, 4)))
    y = [leaves[k] for k in two_classes_or_more(rng, n, len(leaves))]
    by_height = rng.random() < 0.6
    intercept = bool(rng.random() < 0.5)

    def examples(model):
        # The order of the columns is the taxonomy's own; what is in them is computed here.
        columns = tree.features(leaves)[1]
        weights = [heights.weight(node, leaves) if balanced else 1.0 for node in columns]
        table = np.array([[node in heights.above(k) for node in columns] for k in leaves]) * weights
        losses = np.array([[heights.loss(a, b) for b in leaves] for a in leaves])
        losses = losses if by_height else (losses > 0).astype(float)
        return class_examples(model, X, y, table, losses, intercept)

    loss = "taxonomy" if by_height else "zero_one"
    return Task(
        "taxonomy",
        partial(mm.MulticlassSVM, taxonomy=tree, loss=loss, fit_intercept=intercept),
        X,
        y,
        examples,
        lambda label: label,
        n,
        refusals=[(X[:-1], y), (X, ["unknown"] * n)],
    )


class TableProblem(mm.Problem):
    """x is a table of joint features and one of losses; an output is a row."""

    rescalings = ("margin", "slack", "none")

    def __init__(self, n_features, form):
        self.n_features = n_features
        self.form = form

    def joint_feature(self, x, y):
        row = x[0][y]
        if self.form == "dense":
            return row
        if self.form == "sparse":
            return sp.csr_matrix(row[None, :])
        return {int(f): float(row[f]) for f in np.flatnonzero(row)}

    def loss(self, y, y_hat):
        return 0.0 if y == y_hat else self.losses[y, y_hat]

    def most_violated(self, x, y, w, rescaling):
        psi = x[0]
        losses = self.losses[y, : len(psi)]
        margins = (psi[y] - psi) @ w
        values = {
            "margin": losses - margins,
            "slack": losses * (1.0 - margins),
            "none": np.where(losses > 0, 1.0 - margins, 0.0),
        }
        return int(np.argmax(values[rescaling]))

    def predict(self, x, w):
        return int(np.argmax(x[0] @ w))


def own_problem(rng):
    """A user's problem in plain Python, with dense, sparse or dict features."""
    n, d, most = int(rng.integers(1, 8)), int(rng.integers(1, 7)), 6
    losses = rng.choice([0.0, 0.5, 1.0, 1.0, 3.0], (most, most))
    np.fill_diagonal(losses, 0.0)
    tables = [random_inputs(rng, int(rng.integers(1, most + 1)), d) for _ in range(n)]
    Y = [int(rng.integers(len(table))) for table in tables]
    problem = TableProblem(d, str(rng.choice(["dense", "sparse", "dict"])))
    problem.losses = losses
    if problem.form == "dense" and rng.random() < 0.5:
        problem.n_features = None  # found by bind

    def examples(model):
        return [
            Example.of(y, table.__getitem__, losses[y].__getitem__, range(len(table)))
            for table, y in zip(tables, Y, strict=True)
        ]

    X = [(table,) for table in tables]
    return Task(
        f"own problem ({problem.form})",
        partial(mm.StructuralSVM, problem),
        X,
        Y,
        examples,
        lambda row: row,
        n,
        savable=False,
        has_sqrt_loss=False,
        has_k_best=False,
        refusals=[(X[:-1], Y), ([], [])],
    )
