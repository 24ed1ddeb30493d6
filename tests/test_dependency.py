"""Dependency trees: oracles, decoders and k-best lists against all trees, listed."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brute_dependency import TreeTwin, all_trees
from cases import Case
from maxmargin.formulation import Formulation
from maxmargin.problem import Problem
from maxmargin.problems.dependency.features import (
    DEFAULT_TEMPLATES,
    ArcTemplates,
    TokenFields,
)
from maxmargin.problems.dependency.kernels import best_tree
from maxmargin.problems.dependency.problem import (
    DependencyDecoder,
    DependencyProblem,
    check_trees,
    count_crossing,
)
from maxmargin.problems.dependency.work import DependencyOptions, make_work
from solving import check_optimal, solve
from test_k_best import RESCALINGS, check_k_best
from test_oracles import check_oracle, dense_row

LOSSES = ("hamming", "normalized-hamming", "zero-one")
FEW_TEMPLATES = ArcTemplates(
    arcs=(("tag", ""), ("", "word"), ("tag", "tag"), ("fine fine+1", "fine-1 fine")),
    between=(("tag", "tag", "tag"),),
    labels=(("tag", ""), ("", "prefix"), ("tag", "fine")),
)
HASH_BITS = 10

seeds = st.integers(0, 2**32 - 1)


def random_sentence(rng, n):
    words = rng.choice(["the", "The", "cat", "mattress", "mattresses"], n)
    return [(str(word), str(rng.choice(["D", "N"])), str(rng.integers(3))) for word in words]


def tree_case(
    rng,
    *,
    lengths=(3, 1, 2),
    n_labels=0,
    loss="hamming",
    projective=True,
    single_root=True,
    templates=FEW_TEMPLATES,
):
    """Random sentences; true trees are drawn from all trees, projective or not."""
    sentences = [random_sentence(rng, n) for n in lengths]
    trees = []
    for n in lengths:
        listed = all_trees(n, projective=False, single_root=single_root)
        heads = listed[rng.integers(len(listed))]
        labels = rng.integers(0, n_labels, n).tolist() if n_labels else [None] * n
        trees.append(tuple(zip(heads, labels, strict=True)))
    options = {"loss": loss, "projective": projective, "single_root": single_root}
    heads = [h for tree in trees for h, _ in tree]
    labels = [label for tree in trees for _, label in tree] if n_labels else None
    problem = DependencyProblem(
        TokenFields.of(sentences),
        heads,
        labels,
        n_labels or None,
        templates=templates,
        hash_bits=HASH_BITS,
        **options,
    )
    return Case(problem, TreeTwin(sentences, trees, n_labels, templates, HASH_BITS, **options))


@st.composite
def tree_options(draw):
    n_labels = draw(st.sampled_from([0, 0, 2]))
    longest = 3 if n_labels else 4
    return {
        "lengths": draw(st.lists(st.integers(1, longest), min_size=1, max_size=2)),
        "n_labels": n_labels,
        "single_root": draw(st.booleans()),
    }


def draw_case(data, **options):
    options |= data.draw(tree_options())
    rng = np.random.default_rng(data.draw(seeds))
    case = tree_case(rng, **options)
    scale = data.draw(st.sampled_from([0.0, 0.1, 1.0]))
    return case, scale * rng.normal(size=case.twin.n_features)


@pytest.mark.parametrize("projective", [True, False], ids=["projective", "any"])
@pytest.mark.parametrize("sqrt_loss", [False, True], ids=["plain", "sqrt"])
@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=12)
@given(data=st.data())
def test_oracle_finds_the_best_of_all_trees(loss, rescaling, sqrt_loss, projective, data):
    case, w = draw_case(data, loss=loss, projective=projective)
    check_oracle(case, w, rescaling, sqrt_loss)


@pytest.mark.nojit
@pytest.mark.parametrize("projective", [True, False], ids=["projective", "any"])
@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize("loss", LOSSES)
def test_oracle_without_compilation(loss, rescaling, projective):
    for seed, n_labels in ((0, 0), (1, 2)):
        rng = np.random.default_rng(seed)
        case = tree_case(rng, n_labels=n_labels, loss=loss, projective=projective)
        check_oracle(case, rng.normal(size=case.twin.n_features), rescaling, False)


def test_default_templates():
    """All of the default features, spelled out."""
    rng = np.random.default_rng(3)
    case = tree_case(rng, lengths=(4, 2), templates=DEFAULT_TEMPLATES)
    check_oracle(case, rng.normal(size=case.twin.n_features), "margin", False)
    case = tree_case(rng, lengths=(3,), n_labels=2, templates=DEFAULT_TEMPLATES)
    check_oracle(case, rng.normal(size=case.twin.n_features), "margin", False)


@pytest.mark.parametrize("projective", [True, False], ids=["projective", "any"])
@given(data=st.data())
def test_decoding_and_ranking(projective, data):
    """The best tree, and the k best, have the largest scores of all trees."""
    (problem, twin), w = draw_case(data, projective=projective)
    fields = TokenFields.of(twin.sentences)
    found = problem.decoder.decode(fields, w)
    ranked = problem.decoder.decode_k_best(fields, w, 5)
    for i in range(twin.n_examples):
        first, end = fields.bounds[i] + 1, fields.bounds[i + 1]
        by_output = {y: float(w @ twin.psi(i, y)) for y in twin.outputs(i)}
        expected = sorted(by_output.values(), reverse=True)
        tree = as_output(found.heads[first:end], found.labels[first:end])
        assert by_output[tree] == pytest.approx(expected[0])
        assert found.losses[i] == pytest.approx(expected[0])
        outputs = [as_output(tree.heads[1:], tree.labels[1:]) for tree in ranked[i]]
        assert len(set(outputs)) == len(outputs) == min(5, len(expected))
        assert [by_output[y] for y in outputs] == pytest.approx(expected[:5])
        assert [tree.score for tree in ranked[i]] == pytest.approx(expected[:5])


@pytest.mark.parametrize("projective", [True, False], ids=["projective", "any"])
@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=10)
@given(data=st.data(), k=st.integers(1, 12))
def test_k_best_wrong_trees(loss, projective, data, k):
    case, w = draw_case(data, loss=loss, projective=projective)
    for rescaling, sqrt_loss in RESCALINGS:
        adds_up = loss == "zero-one" or rescaling == "none"
        if projective or adds_up or (rescaling, sqrt_loss) == ("margin", False):
            check_k_best(case, w, k, rescaling, sqrt_loss)
        else:
            with pytest.raises(ValueError, match="non-projective trees"):
                case.problem.k_best(np.arange(1), w, k, rescaling, sqrt_loss)


@pytest.mark.parametrize("projective", [True, False], ids=["projective", "any"])
@given(data=st.data())
def test_predictions_are_the_best_trees(projective, data):
    (problem, twin), w = draw_case(data, projective=projective)
    planes = problem.predictions(np.arange(twin.n_examples), w)
    for i in range(twin.n_examples):
        truth_score = float(w @ twin.psi(i, twin.truth(i)))
        gain = max(0.0, twin.best_score(i, w) - truth_score)
        assert -float(dense_row(planes, i, len(w)) @ w) == pytest.approx(gain, abs=1e-9)
        if w.any():
            assert (planes.losses[i] > 0) == (planes.indptr[i] < planes.indptr[i + 1])
        else:  # an online solver has to begin somewhere: ties are not for the truth
            assert planes.losses[i] == max(map(partial(twin.loss, i), twin.outputs(i)))


@pytest.mark.parametrize(
    ("formulation", "options"),
    [
        (Formulation(), {}),
        (Formulation(), {"projective": False, "n_labels": 2}),
        (Formulation("slack"), {"loss": "normalized-hamming"}),
        (Formulation("slack"), {"loss": "normalized-hamming", "projective": False}),
        (Formulation("slack", "l2"), {"projective": False, "n_labels": 2}),
        (Formulation("margin", "l2", sqrt_loss=False), {"n_labels": 2}),
    ],
    ids=["plain", "any-labeled", "slack", "any-slack", "any-slack-l2", "l2"],
)
def test_training_reaches_the_optimum(formulation, options):
    case = tree_case(np.random.default_rng(5), lengths=(3, 2, 3), **options)
    result = solve("auto", case.problem, 0.1, formulation)
    check_optimal(result, case, 0.1, formulation)


@pytest.mark.parametrize("name", ["fasole", "n-slack", "sdm"])
def test_solvers_agree_where_arcs_may_cross(name):
    case = tree_case(np.random.default_rng(6), lengths=(4, 3, 3), projective=False)
    formulation = Formulation("slack")
    result = solve(name, case.problem, 0.1, formulation)
    check_optimal(result, case, 0.1, formulation)


def as_output(heads, labels):
    names = [None if label < 0 else label for label in labels.tolist()]
    return tuple(zip(heads.tolist(), names, strict=True))


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
    assert count_crossing(trees[0][1:], np.array([0, n + 1])) == 0
    if count_crossing(trees[1][1:], np.array([0, n + 1])) == 0:
        assert np.array_equal(*trees)


def test_rows_do_not_depend_on_the_batch():
    rng = np.random.default_rng(11)
    problem = tree_case(rng, lengths=(4, 2, 3)).problem
    w = rng.normal(size=problem.n_features)
    together = problem.oracle(np.array([2, 0, 1]), w)
    for r, i in enumerate((2, 0, 1)):
        alone = problem.oracle(np.array([i]), w)
        assert alone.losses[0] == together.losses[r]
        assert np.array_equal(dense_row(alone, 0, len(w)), dense_row(together, r, len(w)))


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
