"""Brute-force twins of the alignment problems: every alignment of tiny strings is listed.

Nothing is shared with the package. Features follow the documented layout: K x K pairs of letters
(x first), or the unordered pairs in the order of ``triu``; then letters in gaps (linear), or gaps
and their letters (affine); then the same for the ends, where these have weights of their own.
"""

import itertools

import numpy as np

from brute import Twin


def all_alignments(m, n):
    """Every set of pairs that rises in both positions."""
    return [
        tuple(zip(rows, columns, strict=True))
        for size in range(min(m, n) + 1)
        for rows in itertools.combinations(range(m), size)
        for columns in itertools.combinations(range(n), size)
    ]


def count_operations(x, y, pairs, K, *, local, affine, symmetric, own_ends):
    substitutions = np.zeros((K, K))
    for i, j in pairs:
        substitutions[x[i], y[j]] += 1
    if symmetric:
        both = substitutions + substitutions.T - np.diag(np.diag(substitutions))
        first = both[np.triu_indices(K)]
    else:
        first = substitutions.ravel()
    stops = [(-1, -1), *pairs, (len(x), len(y))]
    inner, ends = [], []
    for k, ((i, j), (i2, j2)) in enumerate(itertools.pairwise(stops)):
        gaps = [length for length in (i2 - i - 1, j2 - j - 1) if length]
        (ends if k in (0, len(pairs)) else inner).extend(gaps)
    if not pairs:  # one end takes everything
        ends = [len(x), len(y)]
    if not (local or own_ends):
        inner, ends = inner + ends, []
    counts = [[len(gaps), sum(gaps)][0 if affine else 1 :] for gaps in (inner, ends)]
    last = counts[0] + (counts[1] if own_ends and not local else [])
    return np.concatenate([first, np.array(last, dtype=float)])


class AlignmentTwin(Twin):
    def __init__(self, X, truths, K, *, loss="pairs", **layout):
        self.X, self.truths, self.K = X, [tuple(map(tuple, t)) for t in truths], K
        self.loss_name, self.layout = loss, layout
        self.n_examples = len(X)
        self.n_features = len(self.psi(0, ()))

    def truth(self, i):
        return self.truths[i]

    def outputs(self, i):
        x, y = self.X[i]
        return all_alignments(len(x), len(y))

    def psi(self, i, y):
        return count_operations(*self.X[i], y, self.K, **self.layout)

    def loss(self, i, y):
        truth, pairs = set(self.truths[i]), set(y)
        if self.loss_name == "zero-one":
            return float(truth != pairs)
        if self.loss_name == "pairs":
            return 1 - len(truth & pairs) / len(truth)
        wrong = 0
        for side, string in enumerate(self.X[i]):
            true_partner = {pair[side]: pair[1 - side] for pair in truth}
            partner = {pair[side]: pair[1 - side] for pair in pairs}
            wrong += sum(true_partner.get(k) != partner.get(k) for k in range(len(string)))
        return wrong / sum(len(string) for string in self.X[i])


class HomologueTwin(Twin):
    """Outputs are ``(number of the decoy, alignment)``, or ``(-1, alignment)`` for the truth."""

    def __init__(self, natives, homologues, truths, decoys, K, **layout):
        self.natives, self.homologues, self.decoys, self.K = natives, homologues, decoys, K
        self.truths = [tuple(map(tuple, t)) for t in truths]
        self.layout = layout
        self.n_examples = len(natives)
        self.n_features = len(self.psi(0, self.truth(0)))

    def truth(self, i):
        return -1, self.truths[i]

    def outputs(self, i):
        m = len(self.natives[i])
        listed = [
            (d, pairs)
            for d, decoy in enumerate(self.decoys[i])
            for pairs in all_alignments(m, len(decoy))
        ]
        return [self.truth(i), *listed]

    def psi(self, i, y):
        number, pairs = y
        string = self.homologues[i] if number < 0 else self.decoys[i][number]
        return count_operations(self.natives[i], string, pairs, self.K, **self.layout)

    def loss(self, i, y):
        return float(y[0] >= 0)
