"""Brute-force twins of the alignment problems: every alignment of tiny strings is listed.

The twins share nothing with the package. Features follow the documented layout: K x K pairs of
letters (x first), or the unordered pairs in the order of ``triu``; then letters in gaps (linear),
or gaps and their letters (affine); then the same for the ends, where these have weights of their
own.
"""

import itertools

import numpy as np

from brute import Twin
from cases import Case
from maxmargin.problems.alignment.homologues import HomologueProblem
from maxmargin.problems.alignment.problem import (
    Aligner,
    AlignmentLayout,
    AlignmentProblem,
    pack_alignments,
    pack_strings,
)

K = 3  # letters of random strings


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
        if self.loss_name == "zero_one":
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


# ----- random problems ---------------------------------------------------------------------------


def random_strings(rng, n, longest=4):
    return [rng.integers(0, K, rng.integers(1, longest + 1)) for _ in range(n)]


def random_alignment(rng, x, y, at_least=1):
    listed = [pairs for pairs in all_alignments(len(x), len(y)) if len(pairs) >= at_least]
    return listed[rng.integers(len(listed))]


def full_layout(local=True, affine=True, symmetric=True, own_ends=True):
    return {"local": local, "affine": affine, "symmetric": symmetric, "own_ends": own_ends}


def alignment_case(rng, *, loss="pairs", n=3, longest=4, **layout):
    layout = full_layout(**layout)
    xs, ys = random_strings(rng, n, longest), random_strings(rng, n, longest)
    truths = [random_alignment(rng, x, y, loss == "pairs") for x, y in zip(xs, ys, strict=True)]
    packed = pack_strings(xs), pack_strings(ys)
    partners = pack_alignments(truths, *packed)
    problem = AlignmentProblem(*packed, partners, AlignmentLayout(K, **layout), loss)
    twin = AlignmentTwin(list(zip(xs, ys, strict=True)), truths, K, loss=loss, **layout)
    return Case(problem, twin)


def homologue_case(rng, *, loss="zero_one", n=3, **layout):
    """Natives with homologues and decoys; the loss is that of the choice."""
    assert loss == "zero_one"
    layout = full_layout(**layout)
    natives, homologues = random_strings(rng, n), random_strings(rng, n)
    truths = [random_alignment(rng, x, y, 0) for x, y in zip(natives, homologues, strict=True)]
    decoys = [random_strings(rng, rng.integers(0, 4)) for _ in range(n)]
    packed = pack_strings(natives), pack_strings(homologues)
    problem = HomologueProblem(
        *packed,
        pack_alignments(truths, *packed),
        pack_strings([string for strings in decoys for string in strings]),
        np.concatenate([[0], np.cumsum([len(strings) for strings in decoys])]),
        AlignmentLayout(K, **layout),
    )
    return Case(problem, HomologueTwin(natives, homologues, truths, decoys, K, **layout))


def decode_alignments(case, w):
    problem = case.problem
    partners, _ = Aligner(problem.layout).align(problem.xs, problem.ys, w)
    rows = np.split(partners, problem.xs.offsets[1:-1])
    return [tuple((k, j) for k, j in enumerate(row.tolist()) if j >= 0) for row in rows]
