"""Classes in a taxonomy
=====================

Few examples per class, and a taxonomy that says which classes are alike.

Draws 27 classes in a tree of three levels, trains a plain classifier and one that shares weights
along the tree and is trained for the tree loss, and draws how far off their mistakes are.

::

    python examples/taxonomy.py [picture.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm

BRANCHES, ERROR_COUNTS, N_INPUTS, NOISE = 3, 3, 40, 1.2
PER_CLASS = (2, 4, 8, 16)


def make_taxonomy() -> mm.Taxonomy:
    """A complete tree; the classes are its leaves, named like 0.2.1."""
    names, parents = ["top"], {}
    for _ in range(ERROR_COUNTS):
        below = {
            (f"{name}.{k}" if name != "top" else str(k)): name
            for name in names
            for k in range(BRANCHES)
        }
        parents |= below
        names = list(below)
    return mm.Taxonomy(parents)


def draw_examples(taxonomy, centres, per_class, rng):
    """Inputs around the sum of the centres of a class's node and all above it."""
    X, y = [], []
    for label in sorted(taxonomy.classes):
        steps = label.split(".")
        centre = sum(centres[".".join(steps[: k + 1])] for k in range(len(steps)))
        X.append(centre + NOISE * rng.normal(size=(per_class, N_INPUTS)))
        y += [label] * per_class
    return np.concatenate(X), np.array(y)


def main(picture: str = "taxonomy.png") -> None:
    """Train, compare, draw."""
    rng = np.random.default_rng(0)
    taxonomy = make_taxonomy()
    centres = {node: rng.normal(size=N_INPUTS) / 2.0 for node in taxonomy.parents}
    X_test, y_test = draw_examples(taxonomy, centres, 40, rng)
    models = {
        "plain classes, zero-one loss": mm.MulticlassSVM(C=1.0, random_state=0),
        "taxonomy, tree loss": mm.MulticlassSVM(
            C=1.0, taxonomy=taxonomy, loss="taxonomy", rescaling="slack", random_state=0
        ),
    }
    losses = {name: [] for name in models}
    last = {}
    for per_class in PER_CLASS:
        X, y = draw_examples(taxonomy, centres, per_class, rng)
        for name, model in models.items():
            predicted = model.fit(X, y).predict(X_test)
            losses[name].append(taxonomy.mean_loss(y_test, predicted))
            if per_class == 2:
                last[name] = predicted
            print(f"{per_class:3d} per class, {name}: tree loss {losses[name][-1]:.3f}")

    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    for name, values in losses.items():
        axes[0].plot(PER_CLASS, values, "o-", label=name)
    axes[0].set(xscale="log", xlabel="training examples per class", ylabel="mean tree loss")
    axes[0].set_xticks(PER_CLASS, [str(k) for k in PER_CLASS])
    axes[0].legend(frameon=False)
    classes = sorted(taxonomy.classes)
    number = {label: k for k, label in enumerate(classes)}
    for axis, (name, predicted) in zip(axes[1:], last.items(), strict=True):
        table = np.zeros((len(classes), len(classes)))
        for truth, guess in zip(y_test, predicted, strict=True):
            table[number[truth], number[guess]] += 1
        axis.imshow(table, cmap="magma_r")
        for k in range(BRANCHES, len(classes), BRANCHES):
            width = 1.2 if k % BRANCHES**2 == 0 else 0.3
            axis.axhline(k - 0.5, color="grey", linewidth=width)
            axis.axvline(k - 0.5, color="grey", linewidth=width)
        axis.set(title=f"{name}\n2 examples per class", xlabel="predicted", ylabel="true class")
    figure.savefig(picture, dpi=110)
    print(f"wrote {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
