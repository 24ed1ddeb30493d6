"""
Online learning with partial_fit: streams of data
=================================================

When data arrive bit by bit, ``partial_fit`` updates the model without the earlier examples. We
stream scikit-learn's handwritten digits in small batches, and turn all images upside down half-way:
the model follows the change.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import maxmargin as mm
from maxmargin.solvers import MIRA

X, y = load_digits(return_X_y=True)
X = X / 16
order = np.random.default_rng(0).permutation(len(y))
X, y = X[order], y[order]
CHANGE, BATCH = 900, 30
X[CHANGE:] = X[CHANGE:, ::-1]  # the same as turning the image by 180 degrees

# %%
# Each batch is first predicted and then learned, so all scores are for digits the model has not
# seen. The online solver MIRA averages its weights over time by default. For comparison, one model
# is trained on the first digits only.

models = {
    "last weights": mm.MulticlassSVM(C=0.1, solver=MIRA(average=False), random_state=0),
    "averaged weights": mm.MulticlassSVM(C=0.1, solver="mira", random_state=0),
}
fixed = mm.MulticlassSVM(C=0.1, random_state=0).fit(X[:300], y[:300])
right = {name: [] for name in [*models, "trained on the first 300"]}
for start in range(0, len(y) - BATCH, BATCH):
    batch = slice(start, start + BATCH)
    for name, model in models.items():
        if start > 0:
            right[name].append(np.mean(model.predict(X[batch]) == y[batch]))
        model.partial_fit(X[batch], y[batch], classes=np.arange(10))
    if start >= 300:
        right["trained on the first 300"].append(np.mean(fixed.predict(X[batch]) == y[batch]))
for name, values in right.items():
    print(f"{name:25} {np.mean(values[-10:]):.1%} of the last 300 right")

# %%
# Before the change the averaged weights are a little better; after it they still remember the old
# images, and the last weights are far ahead. If your data drift, do not average.
#
# The picture shows the mean accuracy of five batches.

figure, axes = plt.subplots(figsize=(7.5, 4), layout="constrained")
for name, values in right.items():
    mean = np.convolve(values, np.ones(5) / 5, mode="valid")
    stop = BATCH * (len(y) // BATCH)
    axes.plot(stop - BATCH * np.arange(len(mean))[::-1], mean, label=name)
axes.axvline(CHANGE, color="0.4", linestyle="--")
axes.text(CHANGE + 10, 0.05, "images turn upside down", color="0.4")
axes.set(xlabel="digits so far", ylabel="accuracy", ylim=(0, 1))
axes.legend(frameon=False, loc="lower left")
plt.show()
