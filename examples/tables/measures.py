"""
Imbalanced classes: optimise F1 or ROC AUC directly
===================================================

One photograph in five shows mountains, and they are hard to see. A classifier trained for accuracy
says "no" too often. ``PerformanceSVM`` is trained for the measure that counts: F1, F2, ROC AUC,
precision at k, and others.

.. data: multilabel
"""

# sphinx_gallery_thumbnail_path = 'images/gallery/measures.png'
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import (
    f1_score,
    fbeta_score,
    make_scorer,
    precision_recall_curve,
    roc_auc_score,
)
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin.datasets import fetch_scene

data = fetch_scene()
mountain = data.target_names.index("Mountain")
scaler = StandardScaler().fit(data.X_train)
X, X_test = scaler.transform(data.X_train), scaler.transform(data.X_test)
y, y_test = data.y_train[:, mountain], data.y_test[:, mountain]
print(f"{np.mean(y):.0%} of {len(y)} photographs show mountains")

# %%
# .. code-block:: output
#
#     23% of 1211 photographs show mountains
#
# The same data, trained for four measures, each with the C that is best for this measure in
# cross-validation. ``decision_function`` gives scores; the predicted class is "mountain" where the
# score is above 0.

TRAINED_FOR = {
    "accuracy": ({"measure": "error"}, "accuracy"),
    "F1": ({"measure": "f1"}, "f1"),
    "F2": ({"measure": "fbeta", "beta": 2.0}, make_scorer(fbeta_score, beta=2.0)),
    "ROC AUC": ({"measure": "roc_auc"}, "roc_auc"),
}
found = {}
print("trained for  accuracy     F1     F2  ROC AUC")
for name, (parameters, scoring) in TRAINED_FOR.items():
    model = mm.PerformanceSVM(random_state=0, **parameters)
    search = mm.SearchCV(model, [0.001, 0.01, 0.1, 1.0], scoring=scoring, cv=5).fit(X, y)
    scores = found[name] = search.decision_function(X_test)
    predicted = scores > 0.0
    accuracy, auc = np.mean(predicted == y_test), roc_auc_score(y_test, scores)
    f1, f2 = f1_score(y_test, predicted), fbeta_score(y_test, predicted, beta=2.0)
    print(f"{name:11} {accuracy:9.3f} {f1:6.3f} {f2:6.3f} {auc:8.3f}")

# %%
# .. code-block:: output
#
#     trained for  accuracy     F1     F2  ROC AUC
#     accuracy        0.786  0.482  0.471    0.802
#     F1              0.767  0.565  0.642    0.810
#     F2              0.708  0.549  0.688    0.823
#     ROC AUC         0.629  0.514  0.699    0.837
#
# Who trains for accuracy gets accuracy, at the expense of F1 and F2. A model for ROC AUC orders
# photographs, and has no threshold: choose it yourself before you use its classes.
#
# In the picture a dot is the threshold that a model has learned. The model for F2, which counts
# recall more than precision, goes far to the right.

figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
for name, scores in found.items():
    precision, recall, _ = precision_recall_curve(y_test, scores)
    (line,) = axes.plot(recall[:-1], precision[:-1], label=name, linewidth=1.2)
    if name != "ROC AUC":
        predicted = scores > 0.0
        hits = np.sum(predicted & (y_test == 1))
        axes.plot(hits / y_test.sum(), hits / predicted.sum(), "o", ms=9, color=line.get_color())
axes.set(xlabel="recall", ylabel="precision", ylim=(0.15, 1.02))
axes.legend(frameon=False, title="trained for")
plt.show()

# %%
# .. image:: /images/gallery/measures.png
#    :alt: Precision and recall of four models, with the threshold of each
