"""Words read by three models
==========================

What structure is good for: words of badly scanned digits, read by three models.

The first takes every digit by itself (``MulticlassSVM``). The second also knows which digits follow
each other (``SequenceTagger``). The third has, besides, boundaries between digits that are not flat
(``kernel="rbf"``). Draws words on which they differ, with wrong digits in red, and the shares of
digits and of whole words that are right.

::

    python examples/readings.py [picture.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.datasets import make_digit_words
from maxmargin.features import KernelMap
from maxmargin.metrics import sequence_accuracy, token_accuracy

SHOWN = 6


def read_words(words):
    """Readings of the test words by each model."""
    images, digits = np.vstack(words.X_train), np.concatenate(words.y_train)
    alone = mm.MulticlassSVM(C=0.1, random_state=0).fit(images, digits)
    chain = mm.SequenceTagger(C=0.1, random_state=0).fit(words.X_train, words.y_train)
    curved = mm.SequenceTagger(C=3.0, kernel=KernelMap("rbf", n_components=300), random_state=0)
    curved.fit(words.X_train, words.y_train)
    return {
        "digit by digit": [alone.predict(word).tolist() for word in words.X_test],
        "chain": chain.predict(words.X_test),
        "chain, RBF kernel": curved.predict(words.X_test),
    }


def draw_word(axis, word, truth, readings):
    """A word's images, with what each model reads below them."""
    strip = np.hstack([np.pad(image.reshape(8, 8), 1) for image in word])
    axis.imshow(strip, cmap="gray_r", extent=(0, len(word), 0, 1), aspect="auto")
    for row, (name, reading) in enumerate(readings.items()):
        for t, (found, true) in enumerate(zip(reading, truth, strict=True)):
            color = "black" if found == true else "red"
            axis.text(t + 0.5, -0.3 - 0.45 * row, str(found), color=color, ha="center")
        axis.text(-0.3, -0.3 - 0.45 * row, name, ha="right", fontsize=8, color="0.4")
    axis.set(xlim=(0, 12), ylim=(-1.5, 1.0))
    axis.axis("off")


def main(picture="readings.png"):
    """Train, read, draw."""
    words = make_digit_words(n_train=300, n_test=300, noise=0.4)
    truth = [np.asarray(word).tolist() for word in words.y_test]
    readings = read_words(words)
    for name, found in readings.items():
        print(
            f"{name}: {token_accuracy(truth, found):.1%} of digits, "
            f"{sequence_accuracy(truth, found):.1%} of words right"
        )
    differ = [
        i for i in range(len(truth)) if len({tuple(found[i]) for found in readings.values()}) > 2
    ][:SHOWN]
    figure, axes = plt.subplots(len(differ), 1, figsize=(8, 1.5 * len(differ)))
    for axis, i in zip(np.atleast_1d(axes), differ, strict=True):
        shown = {name: found[i] for name, found in readings.items()}
        draw_word(axis, words.X_test[i], truth[i], shown)
    figure.subplots_adjust(left=0.2, right=0.99, top=0.98, bottom=0.02, hspace=0.3)
    figure.savefig(picture, dpi=110)
    print(f"wrote {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
