"""Brute-force twin of chains whose features see several labels."""

import itertools

import numpy as np

from brute import ChainTwin, _raw
from cases import Case, random_constraints, random_costs, random_inputs
from maxmargin.problems.chain.layout import label_tuples
from maxmargin.problems.chain.problem import ChainProblem


class HistoryTwin(ChainTwin):
    """Lists all labellings; features are dictionaries by what they mean, put in order at the end.

    Token features under labels (and, with ``emission_order`` 1, under pairs), each feature's
    weights together; pairs, triples and quadruples; transition features under pairs; first and
    last labels.
    """

    def __init__(
        self,
        tokens,
        offsets,
        labels,
        n_labels,
        pair_tokens=None,
        *,
        order,
        tuples,
        emission_order=0,
        eta=1.0,
        fit_intercept=False,
        **options,
    ):
        super().__init__(tokens, offsets, labels, n_labels, fit_intercept=fit_intercept, **options)
        bounds = list(itertools.pairwise(offsets))
        extra = np.zeros((len(labels), 0)) if pair_tokens is None else _raw(pair_tokens, False)
        self.extra = [extra[first:end] for first, end in bounds]
        self.order, self.tuples, self.emission_order = order, tuples, emission_order
        self.eta = eta
        K = range(n_labels)
        own = [*K, *self.known(2)] if emission_order else list(K)
        self.keys = [
            *(("token", f, k) for f in range(self.n_inputs) for k in own),
            *(("labels", pair) for pair in itertools.product(K, repeat=2)),
            *(("labels", t) for n in range(2, order + 1) for t in self.known(n + 1)),
            *(("extra", f, pair) for f in range(extra.shape[1]) for pair in self.known(2)),
        ]
        if self.boundary:
            self.keys += [*(("first", k) for k in K), *(("last", k) for k in K)]
        self.n_features = len(self.keys)

    def known(self, n):
        """Tuples of n labels with weights, in order."""
        if self.tuples == "allowed":
            every = itertools.product(range(self.K), repeat=n)
            may = None if self.constraints is None else self.constraints[0]
            return [
                t for t in every if may is None or all(may[a, b] for a, b in itertools.pairwise(t))
            ]
        return sorted({y[t : t + n] for y in self.Y for t in range(len(y) - n + 1)})

    def psi(self, i, y):
        found = dict.fromkeys(self.keys, 0.0)

        def add(key, value):
            if key in found:
                found[key] += value

        for t, k in enumerate(y):
            for f, x in enumerate(self.X[i][t]):
                add(("token", f, k), x)
                if t > 0:
                    add(("token", f, y[t - 1 : t + 1]), x)
            if t > 0:
                for f, x in enumerate(self.extra[i][t]):
                    add(("extra", f, y[t - 1 : t + 1]), self.eta * x)
            for n in range(1, self.order + 1):
                if t >= n:
                    add(("labels", y[t - n : t + 1]), self.eta)
        add(("first", y[0]), 1.0)
        add(("last", y[-1]), 1.0)
        return np.array(list(found.values()))


def history_case(
    rng,
    *,
    loss="hamming",
    order=2,
    emission_order=0,
    n_extra=0,
    eta=1.0,
    tuples="seen",
    lengths=(3, 1, 4),
    n_inputs=2,
    K=2,
    fit_intercept=False,
    boundary_weights=False,
    constrained=False,
    layout="dense",
):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = random_inputs(rng, offsets[-1], n_inputs, layout)
    extra = random_inputs(rng, offsets[-1], n_extra, layout) if n_extra else None
    labels = rng.integers(0, K, offsets[-1])
    options = {
        "emission_order": emission_order,
        "eta": eta,
        "loss": "hamming" if loss == "costs" else loss,
        "fit_intercept": fit_intercept,
        "boundary_weights": boundary_weights,
        "constraints": None,
    }
    if loss == "costs":
        options["costs"] = random_costs(rng, K)
    while constrained and K > 1:  # see `chain_case`
        options["constraints"] = random_constraints(rng, K)
        twin = ChainTwin(tokens, offsets, labels, K, constraints=options["constraints"])
        allowed = [twin.outputs(i) for i in range(len(lengths))]
        if all(allowed) and max(len(ys) for ys in allowed) > 1:
            labels = np.concatenate([ys[rng.integers(len(ys))] for ys in allowed])
            break
    masks = options["constraints"]
    known = label_tuples(
        labels,
        offsets,
        K,
        order=order,
        pairs=bool(emission_order or n_extra),
        which=tuples,
        may_follow=None if masks is None else masks.transitions,
    )
    return Case(
        ChainProblem(tokens, offsets, labels, K, known, extra, **options),
        HistoryTwin(tokens, offsets, labels, K, extra, order=order, tuples=tuples, **options),
    )


def split_labels(case, labels):
    return [tuple(path.tolist()) for path in np.split(labels, case.problem.data.offsets[1:-1])]


def decode_higher_order(case, w):
    data = case.problem.data
    return split_labels(case, case.problem.decoder.decode(data.inputs, data.offsets, w))


def rank_histories(case, w, k):
    data = case.problem.data
    best = case.problem.decoder.decode_k_best(data.inputs, data.offsets, w, k)
    ranked = best.listed(best.labels.tolist())
    return [[(tuple(path), score) for path, score in own] for own in ranked]
