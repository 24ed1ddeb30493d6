"""Alignments of short strings, and homologues among decoys."""

from functools import partial
from itertools import combinations, pairwise

import numpy as np

import maxmargin as mm

from .listing import Example, Task


def all_alignments(m, n):
    """Every set of pairs that rise in both positions."""
    return [
        tuple(zip(xs, ys, strict=True))
        for k in range(min(m, n) + 1)
        for xs in combinations(range(m), k)
        for ys in combinations(range(n), k)
    ]


class Scores:
    """Which operations have a weight, and how often an alignment has each."""

    def __init__(self, rng):
        self.letters = "ABCD"[: int(rng.integers(2, 5))]
        self.local, self.affine = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
        self.symmetric, self.own_ends = bool(rng.random() < 0.4), bool(rng.random() < 0.4)
        K = len(self.letters)
        ordered = [(a, b) for a in range(K) for b in range(K)]
        self.pairs = [(a, b) for a, b in ordered if a <= b] if self.symmetric else ordered
        self.options = {
            "mode": "local" if self.local else "global",
            "gaps": "affine" if self.affine else "linear",
            "symmetric": self.symmetric,
            "end_gaps": "own" if self.own_ends else "same",
            "alphabet": self.letters,
        }

    def string(self, rng, most=4):
        return "".join(rng.choice(list(self.letters), int(rng.integers(1, most + 1))))

    def psi(self, x, y, alignment):
        pairs = np.zeros(len(self.pairs))
        for i, j in alignment:
            pair = self.letters.index(x[i]), self.letters.index(y[j])
            pairs[self.pairs.index(tuple(sorted(pair)) if self.symmetric else pair)] += 1
        inner, ends = np.zeros(2), np.zeros(2)  # gaps and their letters
        stops = [(-1, -1), *alignment, (len(x), len(y))]
        for place, (before, after) in enumerate(pairwise(stops)):
            is_end = place in (0, len(alignment))
            for a, b in zip(before, after, strict=True):
                if b - a > 1:
                    (ends if is_end else inner)[:] += 1, b - a - 1
        kept = slice(None) if self.affine else slice(1, None)
        if self.local:
            return np.append(pairs, inner[kept])
        if self.own_ends:
            return np.concatenate([pairs, inner[kept], ends[kept]])
        return np.append(pairs, (inner + ends)[kept])


def partners(alignment, m, n):
    """Partner of each letter of both strings, or None."""
    there, back = dict(alignment), {j: i for i, j in alignment}
    return [there.get(i) for i in range(m)], [back.get(j) for j in range(n)]


def alignment_loss(name, x, y, truth, alignment):
    if name == "zero_one":
        return float(alignment != truth)
    if name == "pairs":
        return len(set(truth) - set(alignment)) / len(truth)
    true, found = partners(truth, len(x), len(y)), partners(alignment, len(x), len(y))
    wrong = sum(a != b for side in (0, 1) for a, b in zip(true[side], found[side], strict=True))
    return wrong / (len(x) + len(y))


def alignments(rng):
    """Local and global alignments."""
    scores = Scores(rng)
    loss = str(rng.choice(["pairs", "residues", "zero_one"]))
    X, Y, listed = [], [], []
    for _ in range(int(rng.integers(1, 6))):
        x, y = scores.string(rng), scores.string(rng)
        every = all_alignments(len(x), len(y))
        X.append((x, y))
        Y.append(every[int(rng.integers(1, len(every)))])
        listed.append(every)

    def examples(model):
        return [
            Example.of(
                truth, partial(scores.psi, x, y), partial(alignment_loss, loss, x, y, truth), every
            )
            for (x, y), truth, every in zip(X, Y, listed, strict=True)
        ]

    return Task(
        "alignments",
        partial(mm.SequenceAligner, loss=loss, **scores.options),
        X,
        [np.array(truth) for truth in Y],
        examples,
        lambda pairs: tuple(map(tuple, np.asarray(pairs).tolist())),
        len(Y),
        refusals=[(X[:-1], Y), ([("A", "?")] * len(Y), Y), (X, [[(9, 9)]] * len(Y))],
    )


def homologues(rng):
    """The homologue of a string among decoys."""
    scores = Scores(rng)
    X, Y = [], []
    for _ in range(int(rng.integers(1, 6))):
        x = scores.string(rng, 3)
        candidates = [scores.string(rng, 3) for _ in range(int(rng.integers(1, 5)))]
        number = int(rng.integers(len(candidates)))
        every = all_alignments(len(x), len(candidates[number]))
        X.append((x, candidates))
        Y.append((number, every[int(rng.integers(1, len(every)))]))

    def example(x, candidates, number, truth):
        answers = {
            c: np.array([scores.psi(x, y, a) for a in all_alignments(len(x), len(y))])
            for c, y in enumerate(candidates)
        }
        true = scores.psi(x, candidates[number], truth)
        rows = [rows for c, rows in answers.items() if c != number]
        psi = np.concatenate([np.empty((0, len(true))), *rows])
        return Example(true, psi, np.ones(len(psi)), answers)

    def examples(model):
        return [example(*x, *y) for x, y in zip(X, Y, strict=True)]

    return Task(
        "homologues",
        partial(mm.HomologyRanker, **scores.options),
        X,
        [(number, np.array(truth)) for number, truth in Y],
        examples,
        int,
        len(Y),
        refusals=[(X[:-1], Y), (X, [(9, y[1]) for y in Y])],
    )
