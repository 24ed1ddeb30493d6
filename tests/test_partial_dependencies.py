"""Dependency trees of which heads or labels are known in part, against lists of all trees."""

import itertools

import numpy as np
import pytest

import maxmargin as mm
from brute import plane_terms
from brute_dependency import tree_case
from maxmargin.core.formulation import Formulation
from maxmargin.problems.dependency.partial import ANY, PartialDependencies
from maxmargin.solvers import make_solver
from maxmargin.solvers.cccp import alternate

LENGTHS = (3, 4, 2)


def in_part(seed, **options):
    """A case, what is known of it, and the twin's own judgement of what is right."""
    rng = np.random.default_rng(seed)
    case = tree_case(rng, lengths=LENGTHS, **options)
    twin, labeled = case.twin, options["n_labels"] > 0
    # Trees from those that are searched, so that something can be completed.
    truth = [outputs[rng.integers(len(outputs))] for outputs in map(twin.outputs, range(3))]
    choices = []
    for tree in truth:
        own = {}
        for m, (head, label) in enumerate(tree, 1):
            label = 0 if label is None else label
            kind = rng.integers(4)
            if kind == 1:
                own[m] = [(head, label)]
            elif kind == 2:
                own[m] = [(head, ANY if labeled else 0)]
            elif kind == 3:
                other = (m + 1) % (len(tree) + 1)
                own[m] = [(head, label), (other, ANY if labeled else 0)]
        choices.append(own)

    def is_right(i, m, arc):
        head, label = arc[0], 0 if arc[1] is None else arc[1]
        known = choices[i].get(m)
        return known is None or any(
            head == h and label in (k, label if k == ANY else k) for h, k in known
        )

    def loss(i, y):
        wrong = sum(not is_right(i, m, arc) for m, arc in enumerate(y, 1))
        name = options["loss"]
        return float(wrong > 0) if name == "zero_one" else (
            wrong / len(y) if name == "normalized_hamming" else float(wrong))  # fmt: skip

    def right(i):
        return [y for y in twin.outputs(i) if loss(i, y) == 0.0]

    partial = PartialDependencies(case.problem, choices, np.zeros(3, bool))
    return partial, twin, loss, right


CASES = list(itertools.product((True, False), (0, 2)))


@pytest.mark.parametrize(("projective", "n_labels"), CASES)
@pytest.mark.parametrize("loss", ["hamming", "normalized_hamming", "zero_one"])
def test_most_violated_trees(projective, n_labels, loss):
    partial, twin, loss_of, right = in_part(0, projective=projective, n_labels=n_labels, loss=loss)
    rng = np.random.default_rng(1)
    for _ in range(4):
        w = rng.normal(size=twin.n_features) * rng.choice([0.1, 1.0])
        completion = partial.complete(w)
        problem = partial.completed(completion)
        for i in range(3):
            golds = [float(w @ twin.psi(i, h)) for h in right(i)]
            best = max(golds)
            outputs = twin.outputs(i)
            gains = np.array([w @ twin.psi(i, y) for y in outputs]) - best
            for rescaling, sqrt_loss in itertools.product(("margin", "slack", "none"), (0, 1)):
                kind = Formulation(rescaling, sqrt_loss=bool(sqrt_loss))
                b, scales = plane_terms(
                    [loss_of(i, y) for y in outputs], rescaling, kind.uses_sqrt_loss
                )
                expected = max(0.0, np.max(b + scales * gains))
                rows = problem.oracle(np.array([i]), w, rescaling, bool(sqrt_loss))
                gain = -(w[rows.indices] @ rows.values)
                offset, scale = kind.plane_terms(rows.losses)
                found = max(0.0, float(offset[0] + scale[0] * gain))
                assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("projective", "n_labels"), CASES)
def test_rounds(projective, n_labels):
    formulation = Formulation("margin", "l1")
    for seed in range(2):
        partial, twin, loss_of, right = in_part(
            seed, projective=projective, n_labels=n_labels, loss="hamming"
        )
        solver = make_solver("auto", tol=1e-5, random_state=0)
        found = alternate(partial, solver, formulation, 1.0, max_rounds=20, tol=1e-9)
        w, total = found.result.w, 0.0
        for i in range(3):
            best = max(w @ twin.psi(i, h) for h in right(i))
            total += max(loss_of(i, y) + w @ twin.psi(i, y) - best for y in twin.outputs(i))
        assert found.rounds[-1].objective == pytest.approx(0.5 * w @ w + total, rel=1e-9)
        for before, after in itertools.pairwise(found.rounds):
            assert after.objective <= after.bound < before.objective


def test_the_parser_learns_from_heads_known_in_part():
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(60):
        n = int(rng.integers(1, 4))
        X.append([*[(str(rng.choice(["a", "the"])), "D"), ("cat", "N")] * n, ("runs", "V")])
        heads = [head for k in range(n) for head in ((2 * k + 2, "det"), (2 * n + 1, "arg"))]
        y.append([*heads, (0, "root")])
    part = [[None if rng.random() < 0.5 else arc for arc in tree] for tree in y]
    part[0], part[1] = y[0], [(head, None) for head, _ in y[1]]
    options = {"hash_bits": 12, "random_state": 0, "labeled": True}
    model = mm.DependencyParser(**options).fit(X, part)
    assert model.rounds_ and model.score(X, y) > 0.95
    plain = mm.DependencyParser(hash_bits=12, random_state=0)
    heads = [[arc and arc[0] for arc in tree] for tree in part]
    assert plain.fit(X, heads).score(X, [[h for h, _ in tree] for tree in y]) > 0.95
    full = mm.DependencyParser(**options).fit(X, y)
    again = mm.DependencyParser(partial_labels="convex", **options).fit(X, y)
    assert np.array_equal(full.coef_, again.coef_) and not hasattr(full, "rounds_")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[None, 5, 0]], "sentence 0, word 1: 5, expected 0"),
        ([[2, 1, None]], "sentence 0: no projective tree has allowed arcs only"),
        ([[2, set(), None]], "sentence 0, word 1: an empty set"),
        ([[None, None, None]], "y says nothing: any head of any word of all 1 sentences"),
        ([[2, "x", None]], "sentence 0, word 1: 'x', expected 0"),
    ],
)
def test_bad_input(y, message):
    X = [[("a", "D"), ("b", "N"), ("c", "V")]]
    with pytest.raises(ValueError, match=message):
        mm.DependencyParser(hash_bits=10).fit(X, y)
