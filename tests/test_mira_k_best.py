"""k-best MIRA on every structure that has a search for the k best outputs."""

import numpy as np
import pytest

import maxmargin as mm
from checking import SEARCHES, dense_rows
from exact_qp import solve_exactly
from maxmargin.core.formulation import Formulation
from maxmargin.datasets import make_digit_words
from maxmargin.solvers import MIRA
from online import solve
from structures import KINDS, STRUCTURES, small_case
from test_estimators_dependency import HEADS
from test_estimators_dependency import X as PARSED
from test_estimators_dependency import parser as dependency_parser
from test_grammar_parser import SENTENCES, TREES
from test_taxonomy_classifier import ANIMALS

FORMULATIONS = [
    Formulation(rescaling, sqrt_loss=sqrt_loss)
    for rescaling, sqrt_loss in SEARCHES
    if rescaling != "none" or not sqrt_loss
]
RANKED = [
    pytest.param(name, loss, formulation, id=f"{name}-{loss}-{formulation}")
    for name, loss in KINDS
    for formulation in FORMULATIONS
    if STRUCTURES[name].k_best(loss, formulation.rescaling, formulation.uses_sqrt_loss)
]
C, K_BEST = 0.7, 4


@pytest.mark.parametrize(("name", "loss", "formulation"), RANKED)
def test_steps_solve_their_small_problem(name, loss, formulation):
    """The change of w is the exact solution for the k planes of the example visited."""
    problem, _ = small_case(name, loss, 0)
    rng, n = np.random.default_rng(0), problem.n_examples
    w, result = np.zeros(problem.n_features), None
    for _ in range(5):
        i = rng.permutation(n)[:1]
        planes = problem.k_best(i, w, K_BEST, formulation.rescaling, formulation.uses_sqrt_loss)
        b, c = formulation.plane_terms(planes.losses)
        A = c[:, None] * dense_rows(planes, len(w))
        hinges = b - A @ w
        result = solve(
            "mira",
            problem,
            C,
            formulation,
            k=K_BEST,
            average=False,
            max_passes=1 / n,
            warm_start=result,
        )
        change = result.w - w
        value = 0.5 * change @ change + C * max(0.0, (hinges - A @ change).max())
        assert value == pytest.approx(solve_exactly([(hinges, A)], C).value, rel=1e-6, abs=1e-8)
        w = result.w


# ----- estimators --------------------------------------------------------------------------------


def mira(**options):
    return MIRA(**{"k": 3, "max_passes": 6, "random_state": 0, **options})


def copies(rng, n, length=9):
    """Strings, copies of them that lack a letter and have another in the place of one, pairs."""
    xs, ys, pairs = [], [], []
    for _ in range(n):
        x = rng.choice(list("ACGT"), length)
        lost, changed = rng.choice(np.arange(1, length - 1), 2, replace=False)
        y = x.copy()
        y[changed] = rng.choice(list("ACGT"))
        kept = np.delete(np.arange(length), lost)
        xs.append("".join(x))
        ys.append("".join(y[kept]))
        pairs.append(np.column_stack([kept, np.arange(length - 1)]))
    return xs, ys, pairs


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_aligners(rescaling):
    xs, ys, pairs = copies(np.random.default_rng(0), 24)
    X = list(zip(xs, ys, strict=True))
    aligner = mm.SequenceAligner(C=1.0, mode="global", solver=mira(), rescaling=rescaling)
    assert aligner.fit(X[:12], pairs[:12]).score(X[12:], pairs[12:]) > 0.8


def test_rankers():
    rng = np.random.default_rng(0)
    xs, ys, pairs = copies(rng, 24)
    decoys = ["".join(rng.choice(list("ACGT"), 9)) for _ in range(3)]
    X = [(x, [decoys[0], y, *decoys[1:]]) for x, y in zip(xs, ys, strict=True)]
    ranker = mm.HomologyRanker(C=1.0, solver=mira())
    ranker.fit(X[:12], [(1, a) for a in pairs[:12]])
    assert ranker.score(X[12:], [1] * 12) > 0.8


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_classes_of_a_taxonomy(rescaling):
    centres = np.array([[3.0, 1.0], [3.0, -1.0], [-3.0, 1.0], [-3.0, -1.0]])
    y = np.repeat(["cat", "dog", "eel", "ray"], 20)
    X = np.repeat(centres, 20, axis=0) + 0.3 * np.random.default_rng(1).normal(size=(80, 2))
    model = mm.MulticlassSVM(
        taxonomy=ANIMALS, loss="taxonomy", solver=mira(), rescaling=rescaling
    ).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.95


@pytest.mark.parametrize("options", [{"rescaling": "slack"}, {"sqrt_loss": True}], ids=str)
def test_taggers(options):
    words = make_digit_words(n_train=40, n_test=40, noise=0.3)
    model = mm.SequenceTagger(C=0.1, solver=mira(max_passes=10), **options)
    model.fit(words.X_train, words.y_train)
    assert model.score(words.X_test, words.y_test) > 0.7


@pytest.mark.parametrize("options", [{"rescaling": "slack"}, {"sqrt_loss": True}], ids=str)
def test_parsers(options):
    parser = mm.GrammarParser(C=10.0, solver=mira(max_passes=10), **options).fit(TREES)
    assert [str(tree) for tree in parser.predict(SENTENCES)] == TREES
    with pytest.raises(ValueError, match="need a loss that decomposes over arcs"):
        dependency_parser(solver=mira(k=2), **options).fit(PARSED[:10], HEADS[:10])
