"""Write your own problem
======================

Teach a machine an output that no estimator knows: the bright stretch of a noisy signal.

An output is a pair (start, stop). What a structural SVM needs to know of it are features of a
signal together with an output, the loss, the search for the most violated output, and the
prediction: the class below. ``check_problem`` tries these methods before anything is trained.
Solvers, certificates and stopping come with the package.

The picture shows unseen signals with the true stretch, the one that was found, and the values above
the best threshold, which knows no stretches; the losses of all unseen signals; and the weights.

::

    python examples/own_problem.py [picture.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm

LENGTH, SHOWN = 40, 3


class BrightStretch(mm.Problem):
    """Find the bright stretch of a signal: y = (start, stop)."""

    n_features = 3

    def outputs(self, x):
        """All stretches."""
        return [(i, j) for i in range(len(x)) for j in range(i + 1, len(x) + 1)]

    def joint_feature(self, x, y):
        """How bright it is, how long, and how much the signal jumps at its ends."""
        start, stop = y
        before = x[start - 1] if start > 0 else x[start]
        behind = x[stop] if stop < len(x) else x[stop - 1]
        jumps = x[start] - before + x[stop - 1] - behind
        return np.array([x[start:stop].sum(), stop - start, jumps]) / 10.0

    def loss(self, y, y_hat):
        """One minus the intersection over the union."""
        common = max(0, min(y[1], y_hat[1]) - max(y[0], y_hat[0]))
        return 1.0 - common / (y[1] - y[0] + y_hat[1] - y_hat[0] - common)

    def most_violated(self, x, y, w, rescaling):
        """For margin rescaling, the default: the best of score plus loss."""
        return max(self.outputs(x), key=lambda z: self.loss(y, z) + w @ self.joint_feature(x, z))

    def predict(self, x, w):
        """The best score."""
        return max(self.outputs(x), key=lambda z: w @ self.joint_feature(x, z))


def draw_signals(n, rng):
    """Noisy signals, and where they are bright."""
    starts, lengths = rng.integers(0, LENGTH - 16, n), rng.integers(4, 16, n)
    Y = [(int(start), int(start + length)) for start, length in zip(starts, lengths, strict=True)]
    X = [rng.normal(size=LENGTH) for _ in Y]
    for x, (start, stop) in zip(X, Y, strict=True):
        x[start:stop] += 1.7
    return X, Y


def main(picture="own_problem.png"):
    """Check, train, draw."""
    rng = np.random.default_rng(0)
    (X, Y), (X_test, Y_test) = draw_signals(30, rng), draw_signals(60, rng)
    problem = BrightStretch()
    mm.check_problem(problem.bind(X[:5], Y[:5]), outputs=problem.outputs)
    model = mm.StructuralSVM(problem, C=1.0, random_state=0).fit(X, Y)
    print(model.result_)
    print(f"mean loss of unseen signals: {-model.score(X_test, Y_test):.3f}")

    # Every value by itself: the threshold whose values overlap most with the stretches.
    tokens, bright = np.concatenate(X), np.concatenate([inside(y) for y in Y])
    threshold = max(np.sort(tokens), key=lambda t: overlap(tokens > t, bright))
    alone = [overlap(x > threshold, inside(y)) for x, y in zip(X_test, Y_test, strict=True)]
    print(f"the same of values above {threshold:.2f}: {1.0 - np.mean(alone):.3f}")

    figure = plt.figure(figsize=(12, 5.5), layout="constrained")
    grid = figure.add_gridspec(SHOWN, 2, width_ratios=[2, 1])
    found = model.predict(X_test[:SHOWN])
    for row in range(SHOWN):
        axis = figure.add_subplot(grid[row, 0])
        axis.plot(X_test[row], color="0.3", drawstyle="steps-mid")
        axis.axvspan(*np.subtract(Y_test[row], 0.5), color="#f0c040", alpha=0.4, label="true")
        axis.hlines(5.0, *np.subtract(found[row], 0.5), color="C0", linewidth=4, label="found")
        above = np.flatnonzero(X_test[row] > threshold)
        axis.plot(above, np.full(len(above), 4.0), "s", color="C3", label="above a threshold")
        axis.set(xlim=(-0.5, LENGTH - 0.5), ylim=(-4.5, 6), yticks=[])
    figure.axes[0].legend(ncols=3, frameon=False, fontsize=8, loc="lower right")
    losses = figure.add_subplot(grid[:2, 1])
    losses.plot(np.sort(model.losses(X_test, Y_test)), color="C0", label="stretches")
    losses.plot(np.sort(1.0 - np.array(alone)), color="C3", label="values above a threshold")
    losses.set(xlabel="unseen signals, by loss", ylabel="1 - intersection over union", ylim=(0, 1))
    losses.legend(frameon=False)
    weights = figure.add_subplot(grid[2, 1])
    weights.barh(["brightness", "length", "jumps at the ends"], model.coef_)
    weights.axvline(0.0, color="0.3", linewidth=0.8)
    weights.set_title("weights")
    figure.savefig(picture, dpi=110)
    print(f"wrote {picture}")


def inside(y):
    """Which values of a signal are in a stretch."""
    return (np.arange(LENGTH) >= y[0]) & (np.arange(LENGTH) < y[1])


def overlap(chosen, true):
    """Intersection over union of two sets of values."""
    return np.count_nonzero(chosen & true) / max(np.count_nonzero(chosen | true), 1)


if __name__ == "__main__":
    main(*sys.argv[1:2])
