"""ImCLEF07A and 20 newsgroups with 2 and 4 examples per class: is a taxonomy worth anything?

In the spirit of Tsochantaridis et al. (2005), Table 1: plain classes or classes with features of
the taxonomy, trained for zero-one or for the tree loss. All models see the same five draws of
training examples, so differences are taken draw by draw. Each model chooses all that is free (C,
and where it has them the kernel's width, the rescaling and the weights of the nodes) by its tree
loss on training examples that were not drawn; the test part is looked at once, at the end.

Inputs are the exact feature space of a kernel, spanned by the drawn examples and centred on them,
for all models. Plain classes may also choose an intercept, which helps them on ImCLEF07A; models
with shared features go without. What there is to choose from was settled on other draws, with
training examples only.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.decomposition import KernelPCA
from sklearn.feature_extraction.text import TfidfTransformer

import maxmargin as mm
from maxmargin.formats import read_svmlight, read_taxonomy

from ..case import Case, Contestant, Options, Outcome, Target
from ..data import data_path

PER_CLASS = (2, 4)
N_DRAWS = 5
GRID = (0.1, 0.3, 1.0, 3.0, 10.0)
N_VALIDATION = 2000
SHARED_WEIGHT = 0.4
TOL = 1e-2  # what is chosen by validation need not be known to more digits
FLAT, TAXONOMY = "flat, zero-one", "taxonomy, tree loss"

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Draw(NamedTuple):
    """A kernel's features of examples to train on, to choose by, and to test on."""

    train: tuple[Floats, Ints]
    validation: tuple[Floats, Ints]
    test: tuple[Floats, Ints]


class Data:
    """Inputs, classes, kernels and the taxonomy of one data set."""

    def __init__(
        self,
        train: Any,
        test: Any,
        taxonomy: mm.Taxonomy,
        kernels: list[dict[str, Any]],
        limit: int | None,
    ) -> None:
        (self.X, self.y), (X_test, y_test) = train, test
        self.X_test, self.y_test = X_test[:limit], y_test[:limit]
        self.taxonomy, self.kernels, self.limit = taxonomy, kernels, limit

    def draw(self, per_class: int, seed: int) -> list[Draw]:
        """The same examples for each kernel."""
        rng = np.random.default_rng(seed)
        chosen = np.concatenate(
            [rng.permutation(np.flatnonzero(self.y == k))[:per_class] for k in np.unique(self.y)]
        )
        others = np.setdiff1d(np.arange(len(self.y)), chosen)
        others = rng.permutation(others)[: self.limit or N_VALIDATION]
        return [self._in_space_of(kernel, chosen, others) for kernel in self.kernels]

    def _in_space_of(self, kernel: dict[str, Any], chosen: Ints, others: Ints) -> Draw:
        """Examples as a linear model has to see them to be one with this kernel."""
        space = KernelPCA(**kernel).fit(self.X[chosen])
        length = np.sqrt(np.mean(np.sum(space.transform(self.X[chosen]) ** 2, axis=1)))
        X, X_others, X_test = (
            space.transform(part) / length for part in (self.X[chosen], self.X[others], self.X_test)
        )
        return Draw((X, self.y[chosen]), (X_others, self.y[others]), (X_test, self.y_test))


def load_images(limit: int | None) -> Data:
    """ImCLEF07A: 80 edge histograms between 0 and 1, and Gaussian kernels."""
    parts = []
    for part in ("train", "test"):
        data = read_svmlight(data_path(f"taxonomy/imclef07a_{part}.svm.gz"), 80)
        parts.append((data.X.toarray() / 7.0, data.y))
    taxonomy = read_taxonomy(data_path("taxonomy/imclef07a_hierarchy.tsv"))
    kernels = [{"kernel": "rbf", "gamma": gamma} for gamma in (0.1, 0.3)]
    return Data(parts[0], parts[1], taxonomy, kernels, limit)


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
    return Data(parts[0], parts[1], taxonomy, [{"kernel": "linear"}], limit)


def cases(options: Options) -> Iterator[Case]:
    """Each data set and number of examples per class."""
    for name, load in (("ImCLEF07A", load_images), ("20 newsgroups", load_newsgroups)):
        data = load(options.size(quick=200))
        for per_class in PER_CLASS:
            yield _case(name, data, per_class, 1 if options.quick else N_DRAWS)


def _case(name: str, data: Data, per_class: int, n_draws: int) -> Case:
    """All models on the same draws, in one run, and how far the first and the last are apart."""
    contestant = Contestant(
        "models",
        lambda: Outcome(compare(data, per_class, n_draws)),
        prepare=lambda: _warm_up(data),
        once=True,
    )
    better = "taxonomy, tree loss - flat, zero-one"
    targets = [
        Target("tree loss: relative difference", "models", "difference", better, "%", at_most=-0.1),
        Target("  standard error over the draws", "models", "standard_error", "", "%"),
        Target("  draws won", "models", "won", f"of {n_draws}"),
    ]
    for label in _models(data):
        targets += [
            Target(f"{label}: tree loss", "models", f"tree_loss of {label}"),
            Target(f"{label}: error", "models", f"error of {label}", "", "%"),
        ]
    return Case(f"{name}, {per_class} per class", [contestant], targets)


def _models(data: Data) -> dict[str, list[dict[str, Any]]]:
    """The settings that each model may choose from, besides C and the kernel."""
    tree = data.taxonomy.losses(np.unique(data.y).tolist())
    weighted = (data.taxonomy, data.taxonomy.with_shared_weight(SHARED_WEIGHT))
    rescalings = ("margin", "slack")
    return {
        FLAT: [{"fit_intercept": intercept} for intercept in (False, True)],
        "flat, tree loss": [
            {"loss": tree, "rescaling": rescaling, "fit_intercept": intercept}
            for rescaling, intercept in product(rescalings, (False, True))
        ],
        "taxonomy, zero-one": [{"taxonomy": taxonomy} for taxonomy in weighted],
        TAXONOMY: [
            {"taxonomy": taxonomy, "loss": "taxonomy", "rescaling": rescaling}
            for taxonomy, rescaling in product(weighted, rescalings)
        ],
    }


def _warm_up(data: Data) -> None:
    """Have all kernels compiled."""
    draw = data.draw(2, 0)[0]
    for choices in _models(data).values():
        _predict_test(data.taxonomy, [draw], choices)


def compare(data: Data, per_class: int, n_draws: int) -> dict[str, float]:
    """Train all models on every draw; differences are taken within draws."""
    models = _models(data)
    losses: dict[str, list[float]] = {label: [] for label in models}
    errors: dict[str, list[float]] = {label: [] for label in models}
    for seed in range(n_draws):
        draws = data.draw(per_class, seed)
        for label, choices in models.items():
            predicted = _predict_test(data.taxonomy, draws, choices)
            losses[label].append(data.taxonomy.mean_loss(data.y_test, predicted))
            errors[label].append(100.0 * float(np.mean(predicted != data.y_test)))
    flat = np.array(losses[FLAT])
    differences = 100.0 * (np.array(losses[TAXONOMY]) - flat) / flat.mean()
    spread = float(np.std(differences, ddof=1)) if n_draws > 1 else float("nan")
    return {
        "difference": float(differences.mean()),
        "standard_error": spread / np.sqrt(n_draws),
        "won": float(np.sum(differences < 0.0)),
        **{f"tree_loss of {label}": float(np.mean(found)) for label, found in losses.items()},
        **{f"error of {label}": float(np.mean(found)) for label, found in errors.items()},
    }


def _predict_test(
    taxonomy: mm.Taxonomy, draws: list[Draw], choices: list[dict[str, Any]]
) -> NDArray[Any]:
    """Classes of the test part, by the settings that do best on the validation part."""
    best, predicted = np.inf, np.empty(0)
    for draw, settings, C in product(draws, choices, GRID):
        options = {"fit_intercept": False} | settings
        model = mm.MulticlassSVM(C=C, tol=TOL, random_state=0, **options).fit(*draw.train)
        inputs, classes = draw.validation
        loss = taxonomy.mean_loss(classes, model.predict(inputs))
        if loss < best:
            best, predicted = loss, model.predict(draw.test[0])
    return predicted
