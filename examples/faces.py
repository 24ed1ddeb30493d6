"""Parts of a face
===============

Find eyes, nose and mouth: parts that deform along a tree.

Trains on drawn faces, with distractors and noise, and shows true and found positions in new ones,
next to what the same templates find when every part is on its own.

::

    python examples/faces.py [picture.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.datasets import FACE_PARTS, FACE_TREE, make_faces
from maxmargin.problems.tree.grid_parts import find_parts, pack_maps

N_TRAIN, N_TEST, SIZE, PATCH = 300, 200, 32, 9
LAMBDA = 0.1


def main(picture: str = "faces.png") -> None:
    """Train, compare, draw."""
    faces = make_faces(N_TRAIN, N_TEST, size=SIZE, noise=0.4)
    finder = mm.PartLocator(
        C=1.0 / (N_TRAIN * LAMBDA),
        tree=FACE_TREE,
        patch=PATCH,
        tol=None,
        epsilon=0.1,
        random_state=0,
    )
    finder.fit(faces.X_train, faces.y_train)
    result = finder.result_
    print(f"trained in {result.seconds:.1f} s, {result.n_passes:.1f} passes")
    found = finder.predict(faces.X_test)
    alone = apart(finder, faces)
    for name, positions in (("the tree", found), ("every part alone", alone)):
        far = np.sqrt(((positions - faces.y_test) ** 2).sum(axis=2))
        print(f"{name}: mean deviation {100 * far.mean() / SIZE:.2f} % of the image")
        worst = ", ".join(
            f"{part} {100 * value / SIZE:.1f}"
            for part, value in zip(FACE_PARTS, far.mean(axis=0), strict=True)
        )
        print(f"  {worst}")

    figure, axes = plt.subplots(2, 5, figsize=(13, 5.6), layout="constrained")
    for axis, image, truth, tree, single in zip(
        axes.ravel(), faces.X_test, faces.y_test, found, alone, strict=False
    ):
        axis.imshow(image, cmap="gray")
        for a, b in FACE_TREE:
            axis.plot(tree[[a, b], 1], tree[[a, b], 0], color="tab:orange", linewidth=1)
        axis.plot(single[:, 1], single[:, 0], "x", color="tab:red", label="every part alone")
        axis.plot(tree[:, 1], tree[:, 0], ".", color="tab:orange", label="found with the tree")
        style = {"markerfacecolor": "none", "markeredgecolor": "tab:cyan", "markersize": 9}
        axis.plot(truth[:, 1], truth[:, 0], "o", label="true", **style)
        axis.set(xticks=[], yticks=[])
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(picture, dpi=110)
    print(f"wrote {picture}")


def apart(finder, faces):
    """Positions by the templates alone, with nothing that holds the parts together."""
    weights = finder.coef_.copy()
    weights[finder.templates_.size :] = 0.0
    return find_parts(
        pack_maps(list(faces.X_test[..., None]), PATCH), finder._model.layout, weights
    )


if __name__ == "__main__":
    main(*sys.argv[1:2])
