"""
Which solver is fastest? Certified convergence curves
=====================================================

Every solver reports a duality gap: how far its model may be above the best objective. So solvers
can be compared by the quality they guarantee. Data: words of handwritten digits from scikit-learn.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.datasets import make_digit_words

warnings.simplefilter("ignore", ConvergenceWarning)  # max_passes ends the slow ones
words = make_digit_words(n_train=80, n_test=1, noise=0.4)
SOLVERS = ("auto", "dcd", "fasole", "bcfw", "one_slack")
curves = {}
for C in (0.01, 1.0):
    for solver in SOLVERS:
        curves[C, solver] = []
        for tol in (0.3, 0.1, 0.01, 0.001):
            model = mm.SequenceTagger(C=C, solver=solver, tol=tol, max_passes=100, random_state=0)
            result = model.fit(words.X_train, words.y_train).result_
            curves[C, solver].append((result.n_passes, result.relative_gap))
        print(f"C={C:<4} {solver:10} {result.n_passes:5.1f} passes, gap {result.relative_gap:.2%}")

# %%
# A pass finds the most violated labelling of every word once. With little regularization (large C)
# it pays to step on labellings found before, too, as ``auto`` (the default), ``dcd`` and ``fasole``
# do. ``bcfw`` takes one step for each search; ``one_slack`` makes one plane of all words in a pass.

figure, panels = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
for axes, C in zip(panels, (0.01, 1.0), strict=True):
    for solver in SOLVERS:
        axes.loglog(*zip(*curves[C, solver], strict=True), ".-", label=solver)
    axes.set(title=f"C = {C:g}", xlabel="passes over the data", xlim=(2, 150))
    axes.set_xticks([3, 10, 30, 100], ["3", "10", "30", "100"])
    axes.minorticks_off()
panels[0].set_ylabel("certified relative gap")
panels[1].legend(frameon=False, loc="lower left")
plt.show()
