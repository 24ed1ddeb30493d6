"""
Multilabel classification of scenes
===================================

A photograph may show a beach and mountains. ``MultilabelSVM`` predicts the set of all labels at
once, and with ``edges="pairs"`` it learns which labels go together.

.. data: multilabel
"""

# sphinx_gallery_thumbnail_path = 'images/gallery/scenes.png'
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import maxmargin as mm
from maxmargin.datasets import fetch_scene

data = fetch_scene()  # colours of 7 x 7 blocks of each photograph
scaler = StandardScaler().fit(data.X_train)
X, X_test = scaler.transform(data.X_train), scaler.transform(data.X_test)
print(*data.target_names)
print("labels for each photograph:", np.bincount(data.y_train.sum(axis=1)))

# %%
# .. code-block:: output
#
#     Beach Sunset FallFoliage Field Mountain Urban
#     labels for each photograph: [   0 1137   73    1]
#
# Three ways, each with its best C of a few in cross-validation: a classifier for each label; sets
# of labels; and sets with a weight for each pair of labels.

Cs = [0.0003, 0.001, 0.003, 0.01]
models = {
    "each label alone": GridSearchCV(
        OneVsRestClassifier(LinearSVC(random_state=0)), {"estimator__C": Cs}, cv=3
    ),
    "sets": mm.SearchCV(mm.MultilabelSVM(random_state=0), Cs, cv=3),
    "sets, with pairs": mm.SearchCV(mm.MultilabelSVM(edges="pairs", random_state=0), Cs, cv=3),
}
for name, model in models.items():
    predicted = model.fit(X, data.y_train).predict(X_test)
    whole = np.mean((predicted == data.y_test).all(axis=1))
    empty = np.mean(~predicted.any(axis=1))
    f1 = f1_score(data.y_test, predicted, average="samples", zero_division=1.0)
    print(f"{name:17} all labels right {whole:.1%}, no label {empty:.1%}, mean F1 {f1:.3f}")

# %%
# .. code-block:: output
#
#     each label alone  all labels right 50.0%, no label 18.7%, mean F1 0.611
#     sets              all labels right 51.5%, no label 20.3%, mean F1 0.615
#     sets, with pairs  all labels right 58.2%, no label 7.6%, mean F1 0.679
#
# With pairs, more photographs have all labels right: without them, many get no label at all.
#
# The weights show why. All are negative: photographs with two labels are rare, so each label speaks
# against the others. The numbers count training photographs with both labels.

model = models["sets, with pairs"].best_estimator_
n = len(data.target_names)
weights = np.full((n, n), np.nan)
weights[model.edges_[:, 1], model.edges_[:, 0]] = model.pair_weights_
counts = data.y_train.T @ data.y_train
figure, axes = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
image = axes.imshow(weights[1:, :-1], cmap="Reds_r", vmin=-0.6, vmax=0.0)
for row in range(1, n):
    for column in range(row):
        axes.text(column, row - 1, str(counts[row, column]), ha="center", va="center")
axes.set_xticks(range(n - 1), data.target_names[:-1], rotation=30, ha="right")
axes.set_yticks(range(n - 1), data.target_names[1:])
figure.colorbar(image, label="weight of the pair")
plt.show()

# %%
# .. image:: /images/gallery/scenes.png
#    :alt: Weights of pairs of scene labels, most of them negative
