"""Dependency trees: searches at their edges, features, scaled weights, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute_dependency import FEW_TEMPLATES, all_trees, random_sentence, tree_case
from checking import check_oracle
from maxmargin.core.problem import Problem
from maxmargin.problems.dependency.decoder import DependencyDecoder
from maxmargin.problems.dependency.features import (
    DEFAULT_TEMPLATES,
    ArcTemplates,
    TokenFields,
    arc_keys,
)
from maxmargin.problems.dependency.kernels import DependencyOptions, best_tree, make_work
from maxmargin.problems.dependency.problem import DependencyProblem, check_trees
from maxmargin.problems.dependency.scores import arc_features, count_fixed
from maxmargin.problems.dependency.trees import crossing_trees
from solving import solve

seeds = st.integers(0, 2**32 - 1)


def test_heads_and_modifiers_have_features_of_their_own():
    """Of two tokens either way round, and of two equal tokens, whatever their value."""
    pairs = [("a", "b"), ("b", "a"), ("a", "a"), ("b", "b")]
    fields = TokenFields.of([[("w", tag) for tag in pair] for pair in pairs])
    keys = arc_keys(fields, ArcTemplates(arcs=(("tag", "tag"),), between=(), labels=()), 20)
    out = np.empty(count_fixed(keys), np.int32)
    found = set()
    for first in fields.bounds[:-1]:
        assert arc_features(keys, first, 1, 2, -1, out) == 2
        found.add(tuple(out.tolist()))
    assert len(found) == len(pairs)


def test_default_templates():
    """All of the default features, spelled out."""
    rng = np.random.default_rng(3)
    case = tree_case(rng, lengths=(4, 2), templates=DEFAULT_TEMPLATES)
    check_oracle(case, rng.normal(size=case.twin.n_features), "margin", False)
    case = tree_case(rng, lengths=(3,), n_labels=2, templates=DEFAULT_TEMPLATES)
    check_oracle(case, rng.normal(size=case.twin.n_features), "margin", False)


@pytest.mark.nojit
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("projective", [True, False], ids=["projective", "any"])
def test_search_with_forbidden_arcs(projective, single_root):
    """Random scores, some of them -inf: the best tree, or none."""
    rng = np.random.default_rng(7)
    options = DependencyOptions(projective, single_root, False, False)
    work = make_work(tree_case(rng).problem.arcs, 5, projective)
    n_without = 0
    for _ in range(60):
        n = int(rng.integers(1, 5))
        scores = rng.normal(size=(n + 1, n + 1)) * rng.choice([1.0, 100.0])
        scores[rng.random(scores.shape) < 0.4] = -np.inf
        heads = np.zeros(n + 1, np.int32)
        total = best_tree(scores, options, work, heads)
        listed = [
            sum(scores[h, m] for m, h in enumerate(tree, 1))
            for tree in all_trees(n, projective=projective, single_root=single_root)
        ]
        assert total == pytest.approx(max(listed))
        if np.isfinite(total):
            assert sum(scores[heads[m], m] for m in range(1, n + 1)) == pytest.approx(total)
        n_without += not np.isfinite(total)
    assert 0 < n_without < 60


@pytest.mark.parametrize("projective", [True, False], ids=["projective", "any"])
def test_predictions_without_weights_are_not_the_given_trees(projective):
    """An online solver has to begin somewhere: ties are not for the truth."""
    problem, twin = tree_case(np.random.default_rng(0), projective=projective)
    planes = problem.predictions(np.arange(twin.n_examples), np.zeros(twin.n_features))
    for i, candidates in enumerate(twin.listed):
        assert planes.losses[i] == candidates.losses.max(initial=0.0)


@given(n=st.integers(5, 40), seed=seeds)
def test_projective_is_never_better(n, seed):
    """On longer sentences: both searches agree where the best tree happens to be projective."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n + 1, n + 1))
    distance = np.abs(np.subtract.outer(np.arange(n + 1), np.arange(n + 1)))
    scores -= 2.0 * distance  # short arcs rarely cross
    keys = tree_case(rng).problem.arcs
    totals, trees = [], []
    for projective in (True, False):
        heads = np.zeros(n + 1, np.int32)
        options = DependencyOptions(projective, True, False, False)
        totals.append(best_tree(scores, options, make_work(keys, n + 1, projective), heads))
        check_trees(heads[1:], np.array([0, n + 1]), single_root=True)
        trees.append(heads)
    assert totals[0] <= totals[1] + 1e-9
    assert not crossing_trees(trees[0][1:], np.array([0, n + 1])).any()
    if not crossing_trees(trees[1][1:], np.array([0, n + 1])).any():
        assert np.array_equal(*trees)


@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize("n_labels", [0, 2])
def test_scaled_scores_are_those_of_scaled_weights(n_labels, rescaling):
    rng = np.random.default_rng(12)
    problem = tree_case(rng, lengths=(4, 2, 3), n_labels=n_labels).problem
    w = rng.normal(size=problem.n_features)
    for scale in (0.0625, 8.0):  # powers of two: nothing is rounded
        scaled = problem.oracle_at_scale(np.arange(3), w, scale, rescaling, False)
        direct = problem.oracle(np.arange(3), scale * w, rescaling)
        assert all(np.array_equal(a, b) for a, b in zip(scaled, direct, strict=True))


def test_steps_that_shrink_the_weights_never_make_them():
    problem = tree_case(np.random.default_rng(13), lengths=(4, 2, 3, 3)).problem

    class WithoutScale(Problem):
        n_examples, n_features = problem.n_examples, problem.n_features
        oracle = staticmethod(problem.oracle)

    expected = solve("sgd", WithoutScale(), C=0.5, max_passes=3, eta0=0.5).w
    asked = []
    search = problem.oracle_at_scale
    problem.oracle_at_scale = lambda i, v, *rest: asked.append(rest[0]) or search(i, v, *rest)
    found = solve("sgd", problem, C=0.5, max_passes=3, eta0=0.5).w
    assert len(asked) == 12 and min(asked) < 0.9
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([2, 1, 0], "sentence 0: the heads of word 1 run in a circle"),
        ([0, 2, 1], "sentence 0: the head of word 2 is 2"),
        ([0, 4, 1], "sentence 0: the head of word 2 is 4"),
        ([0, 0, 1], "sentence 0: 2 words hang on the root"),
        ([0, 1], "expected 3 heads"),
    ],
)
def test_bad_trees_are_refused(heads, message):
    with pytest.raises(ValueError, match=message):
        DependencyProblem(TokenFields.of([random_sentence(np.random.default_rng(0), 3)]), heads)


def test_bad_options_are_refused():
    fields = TokenFields.of([[("a", "N")]])
    with pytest.raises(ValueError, match="hash_bits must be"):
        DependencyDecoder(hash_bits=40)
    with pytest.raises(ValueError, match="at most"):
        DependencyDecoder(hash_bits=29, n_labels=100)
    with pytest.raises(ValueError, match="loss must be"):
        DependencyProblem(fields, [0], loss="f1")
    with pytest.raises(ValueError, match="unknown field 'lemma'"):
        DependencyDecoder(FEW_TEMPLATES._replace(arcs=(("lemma", ""),))).keys(fields)
