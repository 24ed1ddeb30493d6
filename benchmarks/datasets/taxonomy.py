"""ImCLEF07A and 20 newsgroups with 2 and 4 examples per class: is a taxonomy worth anything?

In the spirit of Tsochantaridis et al. (2005), Table 1: plain classes or classes with features of
the taxonomy, trained for zero-one or for the tree loss with slack rescaling. Means over five draws
of the training examples. Every model chooses its C on training examples that were not drawn; a
second setting, reported only, gives the same C to all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfTransformer

import maxmargin as mm
from maxmargin.formats import read_svmlight, read_taxonomy

from ..case import Case, Contestant, Options, Outcome, Target
from ..data import data_path

PER_CLASS = (2, 4)
N_DRAWS = 5
FIXED_C = 1.0
GRID = (0.03, 0.1, 0.3, 1.0, 3.0)
N_VALIDATION = 1000
SHARED_WEIGHT = 0.3
FLAT, TAXONOMY = "flat, zero-one", "taxonomy, tree loss"


class Data:
    """Inputs, classes and the taxonomy of one data set."""

    def __init__(self, train: Any, test: Any, taxonomy: mm.Taxonomy, limit: int | None) -> None:
        (self.X, self.y), (X_test, y_test) = train, test
        self.X_test, self.y_test = X_test[:limit], y_test[:limit]
        self.taxonomy = taxonomy

    def draw(self, per_class: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Examples to train on, and others to choose C on."""
        rng = np.random.default_rng(seed)
        chosen = np.concatenate(
            [rng.permutation(np.flatnonzero(self.y == k))[:per_class] for k in np.unique(self.y)]
        )
        others = np.setdiff1d(np.arange(len(self.y)), chosen)
        return chosen, rng.permutation(others)[:N_VALIDATION]


def load_images(limit: int | None) -> Data:
    """ImCLEF07A: 80 edge histograms between 0 and 1."""
    parts = []
    for part in ("train", "test"):
        data = read_svmlight(data_path(f"taxonomy/imclef07a_{part}.svm.gz"), 80)
        parts.append((data.X.toarray() / 7.0, data.y))
    taxonomy = read_taxonomy(data_path("taxonomy/imclef07a_hierarchy.tsv"))
    return Data(parts[0], parts[1], taxonomy, limit)


def load_newsgroups(limit: int | None) -> Data:
    """20 newsgroups: logarithms of counts, weighted by idf, of unit length."""
    parts = []
    weighting = TfidfTransformer(sublinear_tf=True)
    for part in ("train", "test"):
        data = read_svmlight(data_path(f"newsgroups20/{part}.svm.gz"), 44884)
        if part == "train":
            weighting.fit(data.X)
        parts.append((sp.csr_matrix(weighting.transform(data.X)), data.y))
    taxonomy = read_taxonomy(data_path("newsgroups20/hierarchy.tsv"))
    return Data(parts[0], parts[1], taxonomy, limit)


def cases(options: Options) -> Iterator[Case]:
    """Each data set, number of examples per class, and way to choose C."""
    for name, load in (("ImCLEF07A", load_images), ("20 newsgroups", load_newsgroups)):
        data = load(options.size(quick=200))
        for per_class in PER_CLASS:
            for grid in (GRID, (FIXED_C,)):
                yield _case(name, data, per_class, grid, 1 if options.quick else N_DRAWS)


def _case(name: str, data: Data, per_class: int, grid: tuple[float, ...], n_draws: int) -> Case:
    """Four models on the same draws."""
    losses = data.taxonomy.losses(np.unique(data.y).tolist())
    shared = data.taxonomy.with_shared_weight(SHARED_WEIGHT)
    models: dict[str, dict[str, Any]] = {
        FLAT: {},
        "flat, tree loss": {"loss": losses, "rescaling": "slack"},
        "taxonomy, zero-one": {"taxonomy": shared},
        TAXONOMY: {"taxonomy": shared, "loss": "taxonomy", "rescaling": "slack"},
    }
    fixed = len(grid) == 1
    targets = [
        Target(f"{measure.replace('_', ' ')} of {label}", label, measure)
        for measure in ("tree_loss", "error")
        for label in models
    ]
    ratio = Target(
        "tree loss: taxonomy, tree loss / flat, zero-one",
        TAXONOMY,
        "tree_loss",
        "Table 1: below 1",
        at_most=None if fixed else 0.9999,
        relative_to=(FLAT, "tree_loss"),
    )
    return Case(
        f"{name}, {per_class} per class, " + (f"C = {grid[0]:g}" if fixed else "C chosen"),
        [
            Contestant(label, _runner(data, per_class, grid, n_draws, settings), once=True)
            for label, settings in models.items()
        ],
        [ratio, *targets],
    )


def _runner(
    data: Data, per_class: int, grid: tuple[float, ...], n_draws: int, settings: dict[str, Any]
) -> Any:
    """Train on every draw, and measure on the test part."""

    def run() -> Outcome:
        found = []
        for seed in range(n_draws):
            chosen, others = data.draw(per_class, seed)
            models = [
                mm.MulticlassSVM(C=C, random_state=0, **settings).fit(
                    data.X[chosen], data.y[chosen]
                )
                for C in grid
            ]
            best = models[0]
            if len(models) > 1:
                scores = [
                    data.taxonomy.mean_loss(data.y[others], model.predict(data.X[others]))
                    for model in models
                ]
                best = models[int(np.argmin(scores))]
            predicted = best.predict(data.X_test)
            loss = data.taxonomy.mean_loss(data.y_test, predicted)
            found.append((loss, 100.0 * float(np.mean(predicted != data.y_test)), best.C))
        means = np.mean(found, axis=0)
        spread = float(np.std([row[0] for row in found]))
        return Outcome(
            {"tree_loss": means[0], "error": means[1], "mean_C": means[2], "spread": spread}
        )

    return run
