"""Chains of higher order
======================

Follow a rhythm through noise: what a chain of higher order knows is how a beat goes on.

Draws sequences of long and short notes in the rhythm long, long, long, short, short, short, from
any point of it on, with notes measured badly. The next note depends on the last three: transitions
of order 1 know that notes of a kind often follow each other, those of order 2 that a kind has just
changed, and those of order 3 the whole rhythm. Trains a tagger of each order for several strengths
of noise, and draws how many notes each gets right, and what each hears in one sequence.

::

    python examples/rhythms.py [picture.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm

RHYTHM = ["long"] * 3 + ["short"] * 3
NOISE = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
SHOWN = 1.0
ORDERS = (1, 2, 3)


def draw_notes(n, noise, rng, n_notes=30):
    """Measured lengths of notes, with a constant, and what the notes are."""
    X, y = [], []
    for _ in range(n):
        first = int(rng.integers(len(RHYTHM)))
        notes = [RHYTHM[(first + t) % len(RHYTHM)] for t in range(n_notes)]
        lengths = np.array([note == "long" for note in notes]) + noise * rng.normal(size=n_notes)
        X.append(np.column_stack([lengths, np.ones(n_notes)]))
        y.append(notes)
    return X, y


def main(path="rhythms.png"):
    """Train, and draw."""
    rng = np.random.default_rng(0)
    right = {order: [] for order in ORDERS}
    heard = {}
    for noise in NOISE:
        X, y = draw_notes(100, noise, rng)
        unseen, truth = draw_notes(100, noise, rng)
        for order in ORDERS:
            tagger = mm.SequenceTagger(C=1.0, order=order, random_state=0).fit(X, y)
            right[order].append(100 * tagger.score(unseen, truth))
            if noise == SHOWN:
                heard[f"order {order}"] = tagger.predict(unseen[:1])[0]
        if noise == SHOWN:
            measured, heard["truth"] = unseen[0][:, 0], truth[0]
    for order in ORDERS:
        print(f"order {order}:", "  ".join(f"{share:.1f}" for share in right[order]), "% right")

    figure, (by_noise, sequence) = plt.subplots(1, 2, figsize=(11, 3.8))
    for order in ORDERS:
        by_noise.plot(NOISE, right[order], "o-", label=f"order {order}")
    by_noise.set(xlabel="noise", ylabel="notes right, %", title="notes of unseen sequences")
    by_noise.legend()
    sequence.plot(measured, "k.-", linewidth=0.5)
    lowest = min(measured)
    for row, (name, notes) in enumerate(heard.items()):
        height = lowest - 0.7 * (row + 1)
        places = [t for t, note in enumerate(notes) if note == "long"]
        wrong = [t for t, note in enumerate(notes) if note != heard["truth"][t]]
        sequence.plot(places, [height] * len(places), "s", color="tab:blue", markersize=5)
        sequence.plot(wrong, [height] * len(wrong), "x", color="tab:red", markersize=7)
        sequence.text(len(notes) + 0.5, height, name, verticalalignment="center")
    sequence.set(
        xlabel="note", title="as measured, and as heard: long notes, red where wrong", yticks=[]
    )
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
