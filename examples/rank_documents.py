"""Rank documents
==============

Rank documents by what is asked for, and compare only those of the same query.

Draws queries, trains a regression on the grades and rankers for swapped pairs and for NDCG@5, and
draws how the test scores grow with the number of queries, and the grades at the first places.

::

    python examples/rank_documents.py [picture.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

import maxmargin as mm
from maxmargin.metrics import ndcg

N_DOCUMENTS, N_FEATURES, PLACES = 40, 30, 5
SIZES = (10, 20, 40, 80, 160)


def draw_queries(n_queries, weights, rng):
    """Documents, grades and queries.

    The best two documents of a query have grade 3, the next four 2, the next eight 1. All
    documents of a query are shifted alike, which says nothing about their order, but misleads who
    compares them with those of other queries.
    """
    X = rng.normal(size=(n_queries, N_DOCUMENTS, N_FEATURES))
    scores = X @ weights + rng.normal(size=X.shape[:2])
    places = np.argsort(np.argsort(-scores, axis=1), axis=1)
    grades = 3 - np.searchsorted([2, 6, 14], places, side="right")
    X += 2.0 * rng.normal(size=(n_queries, 1, N_FEATURES))
    qid = np.repeat(np.arange(n_queries), N_DOCUMENTS)
    return X.reshape(-1, N_FEATURES), grades.ravel(), qid


def main(picture: str = "rank_documents.png") -> None:
    """Train, compare, draw."""
    rng = np.random.default_rng(0)
    weights = 2.0 * rng.normal(size=N_FEATURES) / np.sqrt(N_FEATURES)
    X_test, y_test, qid_test = draw_queries(300, weights, rng)
    models = {
        "regression": LinearRegression(),
        "swapped pairs": mm.RankSVM(loss="normalized_swaps", C=1.0, random_state=0),
        f"NDCG@{PLACES}": mm.RankSVM(loss="ndcg", k=PLACES, C=10.0, random_state=0),
    }
    found = {name: [] for name in models}
    scores = {}
    for n_queries in SIZES:
        X, y, qid = draw_queries(n_queries, weights, rng)
        for name, model in models.items():
            model.fit(X, y, **({"qid": qid} if isinstance(model, mm.RankSVM) else {}))
            scores[name] = model.predict(X_test)
            found[name].append(ndcg(y_test, scores[name], qid_test, k=PLACES))
            print(f"{n_queries:4d} queries, {name}: NDCG@{PLACES} {found[name][-1]:.3f}")

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name, values in found.items():
        axes[0].plot(SIZES, values, "o-", label=name)
    axes[0].set(xscale="log", xlabel="training queries", ylabel=f"NDCG@{PLACES}, test queries")
    axes[0].set_xticks(SIZES, [str(n) for n in SIZES])
    axes[0].legend(frameon=False)
    for name, values in scores.items():
        order = np.lexsort((-values, qid_test)).reshape(-1, N_DOCUMENTS)
        axes[1].plot(np.arange(1, 21), y_test[order].mean(axis=0)[:20], label=name)
    axes[1].set(xlabel="place", ylabel=f"mean grade there, {SIZES[-1]} training queries")
    figure.savefig(picture, dpi=110)
    print(f"wrote {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
