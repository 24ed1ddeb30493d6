"""Trained for what is measured
============================

A rare class: classifiers that are trained for what is measured.

Draws two overlapping classes, one of them rare, and trains for the share of right labels, F1, F2
(which counts recall for more), and the ROC area. Where rows are rare the label of the majority is
right nearly everywhere, and who is trained for right labels says "rare" too rarely. Draws precision
against recall of unseen rows, with a dot for the labels that a classifier gives.

::

    python examples/measures.py [picture.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    fbeta_score,
    precision_recall_curve,
    roc_auc_score,
)

import maxmargin as mm

N, RARE, CLUTTER, N_INPUTS = 20_000, 0.03, 0.01, 12
# What training is for, and how it is measured by scores of unseen rows.
MEASURES = {
    "right labels": ({"measure": "error"}, lambda y, s: accuracy_score(y, s > 0.0)),
    "F1": ({"measure": "f1"}, lambda y, s: f1_score(y, s > 0.0)),
    "F2": ({"measure": "fbeta", "beta": 2.0}, lambda y, s: fbeta_score(y, s > 0.0, beta=2.0)),
    "ROC area": ({"measure": "roc_auc"}, roc_auc_score),
}


def draw_rows(rng):
    """Rows and labels: 1 is rare; some of the others are far out on its side."""
    kind = rng.random(N)
    y = (kind < RARE).astype(int)
    X = rng.normal(size=(N, N_INPUTS))
    X[y == 1, :4] += 1.5
    clutter = kind > 1.0 - CLUTTER
    X[clutter, :2] += 4.0
    X[clutter, 4:6] += 2.0
    return X, y


def main(picture: str = "measures.png") -> None:
    """Train, compare, draw."""
    rng = np.random.default_rng(0)
    X, y = draw_rows(rng)
    X_test, y_test = draw_rows(rng)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    table = np.zeros((len(MEASURES), len(MEASURES)))
    for row, (name, (parameters, _)) in enumerate(MEASURES.items()):
        model = mm.PerformanceSVM(C=5.0, random_state=0, **parameters).fit(X, y)
        scores = model.decision_function(X_test)
        table[row] = [measured(y_test, scores) for _, measured in MEASURES.values()]
        precision, recall, _ = precision_recall_curve(y_test, scores)
        axes[0].plot(recall[:-1], precision[:-1], color=f"C{row}", label=f"for {name}")
        if model.intercept_[0] != 0.0:  # a threshold was learned
            shown = y_test[scores > 0.0]
            axes[0].plot(shown.sum() / y_test.sum(), shown.mean(), "o", color=f"C{row}")
        figures = ", ".join(
            f"{other} {value:.3f}" for other, value in zip(MEASURES, table[row], strict=True)
        )
        print(f"trained for {name:>12}: {figures} ({model.result_.n_passes:.0f} passes)")
    axes[0].set(xlabel="recall", ylabel="precision", title="unseen rows")
    axes[0].legend(frameon=False)
    lost = table.max(axis=0) - table
    axes[1].imshow(lost / lost.max(axis=0), cmap="magma_r", vmin=0.0, vmax=1.6)
    for (row, column), value in np.ndenumerate(table):
        axes[1].text(column, row, f"{value:.3f}", ha="center", va="center")
    axes[1].set_xticks(range(len(MEASURES)), list(MEASURES))
    axes[1].set_yticks(range(len(MEASURES)), [f"for {name}" for name in MEASURES])
    axes[1].set(title="what is measured, by what training is for")
    figure.savefig(picture, dpi=110)
    print(f"wrote {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
