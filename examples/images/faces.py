"""
Part localization: find eyes, nose and mouth
============================================

A face is a tree of parts. ``PartLocator`` learns a template for each part, and how far parts lie
from each other. One part alone is easily confused with a stroke in the background; all parts
together are not. The faces are drawn, with noise and distractors.
"""

import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.datasets import FACE_PARTS, FACE_TREE, make_faces

faces = make_faces(n_train=200, n_test=100, noise=0.4)
locator = mm.PartLocator(C=0.05, tree=FACE_TREE, patch=9, tol=0.05, random_state=0)
locator.fit(faces.X_train, faces.y_train)
found = locator.predict(faces.X_test)
far = np.linalg.norm(found - faces.y_test, axis=2)
for part, pixels in zip(FACE_PARTS, far.mean(axis=0), strict=True):
    print(f"{part:15} {pixels:.2f} pixels off")

# %%
# What would the templates find without the tree? Here each part goes where its template fits best.

templates = locator.templates_.reshape(len(FACE_PARTS), 9, 9)
windows = np.lib.stride_tricks.sliding_window_view(
    np.pad(faces.X_test, ((0, 0), (4, 4), (4, 4))), (9, 9), axis=(1, 2)
)
scores = np.einsum("nrcij,pij->nprc", windows, templates)
best = scores.reshape(*scores.shape[:2], -1).argmax(axis=2)
alone = np.stack(np.unravel_index(best, scores.shape[2:]), axis=2)
far_alone = np.linalg.norm(alone - faces.y_test, axis=2)
print(f"mean distance: {far.mean():.2f} pixels with the tree, {far_alone.mean():.2f} without")

# %%
# Four new faces: what the tree finds, what each template finds alone, and the gold positions.

figure, axes = plt.subplots(1, 4, figsize=(12, 3.6), layout="constrained")
for panel, image, gold, tree, single in zip(
    axes, faces.X_test, faces.y_test, found, alone, strict=False
):
    panel.imshow(image, cmap="gray")
    for a, b in FACE_TREE:
        panel.plot(tree[[a, b], 1], tree[[a, b], 0], color="tab:orange", linewidth=1)
    panel.plot(single[:, 1], single[:, 0], "x", color="tab:red", label="without the tree")
    panel.plot(tree[:, 1], tree[:, 0], ".", color="tab:orange", label="with the tree")
    panel.plot(gold[:, 1], gold[:, 0], "o", mec="tab:cyan", mfc="none", ms=9, label="gold")
    panel.set(xticks=[], yticks=[])
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()
