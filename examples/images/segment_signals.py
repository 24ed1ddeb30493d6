"""
Segment time series: detect events by their duration
====================================================

In a noisy signal, short events last about 6 moments and long ones about 12. A tagger labels single
moments and cannot know durations. ``SequenceSegmenter`` labels whole stretches, and learns a weight
for each length. The signals are synthetic.
"""

import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.metrics import segment_f1, segments_to_tags, tags_to_segments

LENGTHS = {"short": 6, "long": 12}
rng = np.random.default_rng(0)


def make_signals(n, noise=0.3, n_moments=80):
    """Noisy signals that are 1 in events; each event is (start, stop, label)."""
    signals, Y = [], []
    for _ in range(n):
        signal, events, t = noise * rng.normal(size=n_moments), [], int(rng.integers(2, 10))
        while True:
            label = str(rng.choice(list(LENGTHS)))
            stop = t + LENGTHS[label] + int(rng.integers(-1, 2))
            if stop > n_moments:
                break
            events.append((t, stop, label))
            signal[t:stop] += 1.0
            t = stop + int(rng.integers(2, 12))
        signals.append(signal)
        Y.append(events)
    # A moment is described by its own value and by two values on each side.
    windows = [np.lib.stride_tricks.sliding_window_view(np.pad(s, 2), 5) for s in signals]
    return signals, windows, Y


_, X, Y = make_signals(100)
signals, X_test, Y_test = make_signals(200)

# %%
# Both models see the same features. Tags for the tagger come from the segments.

tagger = mm.SequenceTagger(fit_intercept=True, random_state=0)
tagger.fit(X, segments_to_tags(Y, [len(x) for x in X]))
segmenter = mm.SequenceSegmenter(loss="segments", fit_intercept=True, random_state=0).fit(X, Y)
found = {
    "tagger": tags_to_segments(tagger.predict(X_test)),
    "segmenter": segmenter.predict(X_test),
}
for name, segments in found.items():
    print(f"F1 of events, {name}: {segment_f1(Y_test, segments):.3f}")

# %%
# The picture shows one signal, and what was found in it. On the right are the weights of lengths
# that the segmenter has learned: they peak where events of this kind usually end.

COLORS = {"short": "tab:orange", "long": "tab:blue"}
shown = next(
    i for i, gold in enumerate(Y_test) if found["segmenter"][i] == gold != found["tagger"][i]
)
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4), width_ratios=(2, 1))
left.plot(signals[shown], color="0.4", linewidth=0.8)
rows = {"gold": Y_test[shown], **{name: segments[shown] for name, segments in found.items()}}
for row, events in enumerate(rows.values()):
    for start, stop, label in events:
        left.broken_barh([(start, stop - start - 0.2)], (-1.4 - row / 2, 0.4), color=COLORS[label])
left.set_yticks([-1.2 - row / 2 for row in range(len(rows))], list(rows))
left.set(xlabel="moment")
for label, weights in segmenter.length_weights_.items():
    right.plot(range(1, len(weights) + 1), weights, "o-", color=COLORS[label], label=label)
right.set(xlabel="length of an event", ylabel="learned weight")
right.legend(frameon=False)
figure.tight_layout()
plt.show()
