"""Sets of labels
==============

Give an example any number of labels, and learn which of them go together.

Draws points around a circle of six colours; the labels of each are the two nearest colours. Trains
a LinearSVC for each label, and sets of labels for their F1, alone and with weights of pairs; draws
how F1 grows with the number of examples, and the weights: colours exclude those that are not next
to them.

::

    python examples/label_sets.py [picture.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

import maxmargin as mm

LABELS = ("red", "orange", "yellow", "green", "blue", "violet")
SIZES = (25, 50, 100, 200, 400)


def draw_points(n, rng):
    """Points around the circle, and the two colours nearest to each, with noise in the point."""
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    centres = 2.0 * np.pi * np.arange(len(LABELS)) / len(LABELS)
    distance = np.abs(np.angle(np.exp(1j * (angle[:, None] - centres))))
    near = np.argsort(distance, axis=1)[:, :2]
    labels = np.zeros((n, len(LABELS)), int)
    np.put_along_axis(labels, near, 1, axis=1)
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.4 * rng.normal(size=(n, 2))
    return points, labels


def main(picture: str = "label_sets.png") -> None:
    """Train, compare, draw."""
    rng = np.random.default_rng(0)
    X_test, Y_test = draw_points(2000, rng)
    models = {
        "LinearSVC for each": OneVsRestClassifier(LinearSVC()),
        "F1 of the set": mm.MultilabelSVM(loss="f1", C=10.0, random_state=0),
        "F1, all pairs": mm.MultilabelSVM(loss="f1", edges="pairs", C=10.0, random_state=0),
    }
    found = {name: [] for name in models}
    for n in SIZES:
        X, Y = draw_points(n, rng)
        for name, model in models.items():
            predicted = model.fit(X, Y).predict(X_test)
            found[name].append(f1_score(Y_test, predicted, average="samples", zero_division=1.0))
            print(f"{n:4d} examples, {name}: F1 {found[name][-1]:.3f}")

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name, values in found.items():
        axes[0].plot(SIZES, values, "o-", label=name)
    axes[0].set(xscale="log", xlabel="training examples", ylabel="mean F1, test examples")
    axes[0].set_xticks(SIZES, [str(n) for n in SIZES])
    axes[0].minorticks_off()
    axes[0].legend(frameon=False)
    trained = models["F1, all pairs"]
    weights = np.full((len(LABELS), len(LABELS)), np.nan)
    weights[trained.edges_[:, 1], trained.edges_[:, 0]] = trained.pair_weights_
    largest = np.nanmax(np.abs(weights))
    image = axes[1].imshow(weights, cmap="RdBu", vmin=-largest, vmax=largest)
    axes[1].set_xticks(range(len(LABELS)), LABELS)
    axes[1].set_yticks(range(len(LABELS)), LABELS)
    axes[1].set_title(f"weights of pairs, {SIZES[-1]} training examples")
    figure.colorbar(image)
    figure.savefig(picture, dpi=110)
    print(f"wrote {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
