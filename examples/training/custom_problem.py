"""
Custom structured output: write your own problem
================================================

No estimator has your kind of output? Write a class of four methods. Here an output is the bright
stretch (start, stop) of a noisy signal. Solvers, certificates and ``fit``/``predict`` come with the
package.
"""

import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm


class BrightStretch(mm.Problem):
    """Find the bright stretch of a signal: y = (start, stop)."""

    n_features = 3

    def outputs(self, x):
        """List all stretches."""
        return [(i, j) for i in range(len(x)) for j in range(i + 1, len(x) + 1)]

    def joint_feature(self, x, y):
        """Brightness, length, and how much the signal jumps at both ends."""
        start, stop = y
        before, behind = x[max(start - 1, 0)], x[min(stop, len(x) - 1)]
        jumps = x[start] - before + x[stop - 1] - behind
        return np.array([x[start:stop].sum(), stop - start, jumps]) / 10.0

    def loss(self, y, y_hat):
        """One minus intersection over union."""
        common = max(0, min(y[1], y_hat[1]) - max(y[0], y_hat[0]))
        return 1.0 - common / (y[1] - y[0] + y_hat[1] - y_hat[0] - common)

    def most_violated(self, x, y, w, rescaling):
        """Find the output of the highest score plus loss."""
        return max(self.outputs(x), key=lambda z: self.loss(y, z) + w @ self.joint_feature(x, z))

    def predict(self, x, w):
        """Find the output of the highest score."""
        return max(self.outputs(x), key=lambda z: w @ self.joint_feature(x, z))


def make_signals(n, rng):
    """Noisy signals, and where they are bright."""
    starts, lengths = rng.integers(0, 24, n), rng.integers(4, 16, n)
    Y = [(int(start), int(start + length)) for start, length in zip(starts, lengths, strict=True)]
    X = [rng.normal(size=40) for _ in Y]
    for x, (start, stop) in zip(X, Y, strict=True):
        x[start:stop] += 1.7
    return X, Y


rng = np.random.default_rng(0)
(X, Y), (X_test, Y_test) = make_signals(30, rng), make_signals(60, rng)

# %%
# ``check_problem`` tries the methods on a few examples, and finds mistakes before anything is
# trained.

problem = BrightStretch()
mm.check_problem(problem.bind(X[:5], Y[:5]), outputs=problem.outputs)
model = mm.StructuralSVM(problem, C=1.0, random_state=0).fit(X, Y)
print(f"mean loss of test signals {model.losses(X_test, Y_test).mean():.3f}")
print(f"the model is within {model.result_.relative_gap:.1%} of the optimum")
for name, weight in zip(["brightness", "length", "jumps at the ends"], model.coef_, strict=True):
    print(f"{name:18} {weight:+.2f}")

# %%
# Brightness speaks for a stretch, and length against it: together they are a threshold for the
# mean. Here this search over all outputs is enough; a larger problem would have a faster one.

found = model.predict(X_test[:3])
figure, panels = plt.subplots(3, 1, figsize=(8, 5), sharex=True, layout="constrained")
for axes, x, gold, stretch in zip(panels, X_test, Y_test, found, strict=False):
    axes.plot(x, color="0.3", drawstyle="steps-mid")
    axes.axvspan(gold[0] - 0.5, gold[1] - 0.5, color="gold", alpha=0.4, label="gold")
    axes.hlines(5.0, stretch[0] - 0.5, stretch[1] - 0.5, color="C0", linewidth=4, label="found")
    axes.set(yticks=[], ylim=(-3.5, 6.0))
panels[0].legend(loc="upper right", frameon=False, ncols=2)
plt.show()
