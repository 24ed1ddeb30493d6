"""Grades in an order
==================

Grades have an order: use it, without taking them for numbers.

Draws wines whose quality is a score, cut into five grades of very different width, and compares
classes without an order, numbers that are rounded, and thresholds, with ever more wines to learn
from; then shows where the thresholds are.

::

    python examples/grade_wines.py [picture.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.svm import LinearSVC

import maxmargin as mm
from maxmargin.metrics import grade_scores

GRADES = ["undrinkable", "plain", "decent", "good", "great"]
CUTS = [-1.8, -1.4, 1.2, 1.5]
SIZES = (30, 60, 120, 250, 500, 1000)
N_FEATURES = 15


def draw_wines(n, weights, rng):
    """Measurements, and grades as numbers."""
    X = rng.normal(size=(n, N_FEATURES))
    return X, np.searchsorted(CUTS, X @ weights + 0.3 * rng.normal(size=n))


def main(picture: str = "grade_wines.png") -> None:
    """Train, compare, draw."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=N_FEATURES) / np.sqrt(N_FEATURES)
    names = np.array(GRADES)
    X_test, y_test = draw_wines(5000, weights, rng)
    errors = {}
    for n in SIZES:
        X, y = draw_wines(n, weights, rng)
        thresholds = mm.OrdinalSVM(grades=GRADES, C=1.0, random_state=0).fit(X, names[y])
        pairs = mm.OrdinalSVM(grades=GRADES, loss="pairs", C=100.0, random_state=0)
        regression = RidgeCV().fit(X, y)
        found = {
            "classes": LinearSVC(random_state=0).fit(X, y).predict(X_test),
            "numbers, rounded": np.clip(np.rint(regression.predict(X_test)), 0, 4),
        }
        for name, predicted in found.items():
            errors.setdefault(name, []).append(np.abs(predicted - y_test).mean())
        for name, model in (("thresholds", thresholds), ("pairs", pairs.fit(X, names[y]))):
            scores = grade_scores(names[y_test], model.predict(X_test), names)
            errors.setdefault(f"OrdinalSVM, {name}", []).append(scores.mean_absolute_error)
        shown = ", ".join(f"{name} {values[-1]:.3f}" for name, values in errors.items())
        print(f"{n:5d} wines, mean error in grades: {shown}")

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name, values in errors.items():
        axes[0].plot(SIZES, values, "o-", label=name)
    axes[0].set(xscale="log", xlabel="wines to learn from", ylabel="mean error in grades")
    axes[0].set_xticks(SIZES, [str(n) for n in SIZES])
    axes[0].legend(frameon=False)
    scores = thresholds.linear_score(X_test)
    bins = np.linspace(scores.min(), scores.max(), 60)
    for grade, name in enumerate(GRADES):
        axes[1].hist(scores[y_test == grade], bins, alpha=0.6, label=name)
    for threshold in thresholds.thresholds_:
        axes[1].axvline(threshold, color="black", linewidth=0.8)
    axes[1].set(xlabel=f"score, {SIZES[-1]} wines to learn from", ylabel="wines of the test set")
    axes[1].legend(frameon=False)
    figure.savefig(picture, dpi=110)
    print(f"wrote {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
