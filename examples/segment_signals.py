"""Cut signals into segments
=========================

Cut signals into segments: what a tagger of single moments cannot know is how long things last.

Draws noisy signals in which two kinds of events last about 6 and about 12 moments, trains a tagger
of single moments and segmenters for three losses on signals of different noise, and draws how many
events they find, one signal with what was found in it, and the lengths that were learned.

::

    python examples/segment_signals.py [picture.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.metrics import segment_f1, segments_to_tags, tags_to_segments

LENGTHS = {"short": 6, "long": 12}
COLORS = {"short": "tab:orange", "long": "tab:blue"}
NOISE = (0.1, 0.2, 0.3, 0.4, 0.5)


def draw_signals(n, noise, rng, n_moments=80):
    """Signals that are 1 in events of either kind and 0 elsewhere, with noise; and the events."""
    X, y = [], []
    for _ in range(n):
        signal, events, t = np.zeros(n_moments), [], int(rng.integers(2, 10))
        while True:
            label = str(rng.choice(list(LENGTHS)))
            stop = t + max(LENGTHS[label] + int(rng.integers(-1, 2)), 2)
            if stop > n_moments:
                break
            events.append((t, stop, label))
            signal[t:stop] = 1.0
            t = stop + int(rng.integers(2, 12))
        noisy = signal + noise * rng.normal(size=n_moments)
        # A moment is described by its own value and by those around it.
        padded = np.pad(noisy, 2)
        X.append(np.stack([padded[k : k + n_moments] for k in range(5)], axis=1))
        y.append(events)
    return X, y


def main(picture: str = "segment_signals.png") -> None:
    """Train, compare, draw."""
    rng = np.random.default_rng(0)
    shared = {"C": 1.0, "fit_intercept": True, "random_state": 0}
    models = {
        "tagger": mm.SequenceTagger(**shared),
        "segmenter, tokens": mm.SequenceSegmenter(loss="hamming", **shared),
        "segmenter, segments": mm.SequenceSegmenter(loss="segments", **shared),
        "segmenter, 1 - F1": mm.SequenceSegmenter(loss="f1", **shared),
    }
    found = {name: [] for name in models}
    shown = {}
    for noise in NOISE:
        X, y = draw_signals(60, noise, rng)
        X_test, y_test = draw_signals(200, noise, rng)
        for name, model in models.items():
            if name == "tagger":
                model.fit(X, segments_to_tags(y, [len(x) for x in X]))
                predicted = tags_to_segments(model.predict(X_test))
            else:
                predicted = model.fit(X, y).predict(X_test)
            found[name].append(segment_f1(y_test, predicted))
            print(f"noise {noise}, {name}: F1 {found[name][-1]:.3f}")
            if noise == NOISE[2]:
                shown[name] = predicted[0]
                signal, truth = X_test[0][:, 2], y_test[0]
        if noise == NOISE[2]:
            lengths = models["segmenter, segments"].length_weights_

    figure, axes = plt.subplot_mosaic("ab;cc", figsize=(10, 6.5), layout="constrained")
    for name, values in found.items():
        axes["a"].plot(NOISE, values, "o-", label=name)
    axes["a"].set(xlabel="noise", ylabel="F1 of events, test signals", ylim=(0, 1))
    axes["a"].legend(frameon=False)
    for label, weights in lengths.items():
        places = np.arange(1, len(weights) + 1)
        axes["b"].plot(places, weights, "o-", color=COLORS[label], label=label)
    axes["b"].set(xlabel="length of an event", ylabel=f"weight learned, noise {NOISE[2]:g}")
    axes["b"].legend(frameon=False)
    axes["c"].plot(signal, color="0.4", lw=0.8)
    rows = {"truth": truth, **shown}
    for row, events in enumerate(rows.values()):
        for start, stop, label in events:
            bar = [(start - 0.5, stop - start - 0.2)]
            axes["c"].broken_barh(bar, (-1.6 - 0.5 * row, 0.4), color=COLORS[label])
    axes["c"].set_yticks([-1.4 - 0.5 * row for row in range(len(rows))], list(rows))
    axes["c"].set(xlabel=f"a test signal, noise {NOISE[2]:g}, and the events found in it")
    figure.savefig(picture, dpi=110)
    print(f"wrote {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
