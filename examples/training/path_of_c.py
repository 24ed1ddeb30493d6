"""
Choosing C: a certified regularization path
===========================================

How strong should the regularization be? ``mm.path`` trains for many values of C, each from the one
before. With ``cover=True`` it chooses the values itself: every C in the range is within the
tolerance by one of the models. Data: the wine set of scikit-learn.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import maxmargin as mm

wine = load_wine()
X, X_test, y, y_test = train_test_split(
    StandardScaler().fit_transform(wine.data), wine.target, test_size=0.5, random_state=0
)
models = mm.path(mm.MulticlassSVM(tol=0.1, random_state=0), X, y, [1e-4, 10.0], cover=True)
print(f"{len(models)} models for all C from 0.0001 to 10")
print(*str(models).splitlines()[:5], sep="\n")

# %%
# Each row of the table is a model, and the interval of C for which it is certified. ``at`` returns
# a fitted estimator for any C.

print(models.at(0.0123).predict(X_test[:5]))
scores, train_scores = models.scores(X_test, y_test), models.scores(X, y)
best = models.Cs[np.argmax(scores)]
print(f"best test accuracy {scores.max():.3f}, first at C = {best:.4f}")

# %%
# Left: accuracy. Small C underfits; from some value on, the training data are separated and nothing
# changes; the best C is between. Right: the weights of one class grow from zero, the most useful
# measurements first.

coefs = np.array([models.at(C).coef_[0] for C in models.Cs])
strongest = np.argsort(-np.abs(coefs[-1]))[:6]
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
left.semilogx(models.Cs, train_scores, ".-", label="training wines")
left.semilogx(models.Cs, scores, ".-", label="test wines")
left.set(xlabel="C", ylabel="accuracy")
left.legend(frameon=False)
for k in strongest:
    right.semilogx(models.Cs, coefs[:, k], label=wine.feature_names[k])
right.axhline(0.0, color="0.7", linewidth=0.8)
right.set(xlabel="C", ylabel="weight for class 0")
right.legend(frameon=False, fontsize=8)
plt.show()
