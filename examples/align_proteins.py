"""Align strings and find homologues
=================================

Learn how letters replace each other, from alignments and from homologues among decoys.

Strings of 20 letters descend from each other by operations that a learner does not know: a letter
stays, turns into the next of the alphabet, is lost, or a new one comes in. The picture shows the
substitution scores that a support vector machine finds, how often it picks the homologue of a
string among ten decoys next to a generative model, and one alignment that it predicts. The data are
exactly what the generative model assumes, so with many examples it is hard to beat; with few, the
support vector machine is ahead.

::

    python examples/align_proteins.py [picture.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.datasets import make_homologues
from maxmargin.features import log_odds_scores
from maxmargin.formats import gapped_rows

LETTERS = "ABCDEFGHIJKLMNOPQRST"
SIZES = (2, 5, 10, 20, 40, 80)


def as_ranking(data):
    """Inputs and outputs for finding homologues."""
    X = list(zip(data.natives, data.candidates, strict=True))
    return X, list(zip(data.homologues, data.alignments, strict=True))


def as_pairs(data):
    """Inputs and outputs for predicting alignments."""
    found = [c[k] for c, k in zip(data.candidates, data.homologues, strict=True)]
    return list(zip(data.natives, found, strict=True)), data.alignments


def main(picture: str = "align_proteins.png") -> None:
    """Train, compare, draw."""
    test = make_homologues(300, random_state=1)
    svm = mm.HomologyRanker(
        C=0.005, gaps="linear", slack="l2", tol=1e-3, alphabet=LETTERS, random_state=0
    )
    errors = {"support vector machine": [], "generative model": []}
    for n in SIZES:
        data = make_homologues(n, random_state=100 + n)
        scores = log_odds_scores(*as_pairs(data), LETTERS)
        models = [
            svm.fit(*as_ranking(data)),
            mm.HomologyRanker.from_scores(scores, LETTERS, gap_extend=-1.2),
        ]
        for (name, values), model in zip(errors.items(), models, strict=True):
            values.append(100 * (1 - model.score(*as_ranking(test))))
            print(f"{n:3d} examples, {name}: {values[-1]:.1f} % of homologues not found")

    X, Y = as_pairs(test)
    aligner = mm.SequenceAligner(C=0.3, gaps="linear", tol=1e-2, alphabet=LETTERS, random_state=0)
    aligner.fit(X[:200], Y[:200])
    print(f"true pairs found in new alignments: {100 * aligner.score(X[200:], Y[200:]):.1f} %")

    figure, axes = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
    image = axes[0].imshow(svm.substitution_scores_, cmap="RdBu_r", norm=_centred(svm))
    figure.colorbar(image, ax=axes[0], shrink=0.8)
    ticks = range(0, 20, 3)
    axes[0].set_xticks(ticks, [LETTERS[k] for k in ticks])
    axes[0].set_yticks(ticks, [LETTERS[k] for k in ticks])
    axes[0].set(title="learned substitution scores", xlabel="homologue", ylabel="native")
    for name, values in errors.items():
        axes[1].plot(SIZES, values, "o-", label=name)
    axes[1].set(xscale="log", xlabel="training examples", ylabel="test error (%)", ylim=(0, None))
    axes[1].set_xticks(SIZES, [str(n) for n in SIZES])
    axes[1].set_xticks([], minor=True)
    axes[1].legend(frameon=False)
    _draw_alignment(axes[2], X[200], Y[200], aligner.predict(X[200:201])[0])
    figure.savefig(picture, dpi=110)
    print(f"wrote {picture}")


def _centred(model):
    """Colours with white at 0."""
    largest = np.abs(model.substitution_scores_).max()
    return plt.Normalize(-largest, largest)


def _draw_alignment(axis, strings, truth, predicted):
    """Paired positions as a path through the table of both strings."""
    axis.plot(truth[:, 1], truth[:, 0], "s", color="lightgrey", markersize=8, label="true pairs")
    axis.plot(predicted[:, 1], predicted[:, 0], "k.", label="predicted pairs")
    axis.set(title="an alignment not seen in training", xlabel="homologue", ylabel="native")
    axis.invert_yaxis()
    axis.legend(frameon=False)
    print("\n".join(gapped_rows(*strings, predicted)))


if __name__ == "__main__":
    main(*sys.argv[1:2])
