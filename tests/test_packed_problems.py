"""Native problems say what their oracles compute: joint features, losses and predictions."""

import copy
import pickle

import numpy as np
import pytest

from brute_alignment import alignment_case, homologue_case
from brute_classes import ClassFeatureTwin
from brute_dependency import tree_case
from brute_grammar import grammar_case, nodes_of
from brute_trees import grid_case, label_case
from cases import chain_case, multiclass_case, random_costs
from maxmargin.checking import check_problem
from maxmargin.core.formulation import Formulation
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.training.state import fingerprint
from maxmargin.problems.alignment.homologues import Match
from maxmargin.problems.alignment.problem import Partners
from maxmargin.problems.classes.class_features import ClassFeatureProblem
from maxmargin.problems.dependency.problem import Arcs
from maxmargin.problems.grammar.data import Nodes
from maxmargin.problems.tree.grid_parts import Positions

RESCALINGS = ("margin", "slack", "none")
LAYOUT = {"local": False, "affine": True, "symmetric": True, "own_ends": True}


def class_feature_case(rng, n):
    X, y = rng.normal(size=(n, 3)), rng.integers(0, 3, n)
    features = rng.normal(size=(4, 5)) * (rng.random((4, 5)) < 0.7)
    options = {"costs": random_costs(rng, 4), "allowed": [True, True, True, False]}
    options["fit_intercept"] = True
    return ClassFeatureProblem(X, y, features, **options), ClassFeatureTwin(
        X, y, features, **options
    )


# How each structure's outputs are told from its twin's: ``(problem, twin, i, output)``.


def as_itself(problem, twin, i, y):
    return y


def as_labels(problem, twin, i, y):
    return np.array(y)


def as_arcs(problem, twin, i, y):
    heads, labels = zip(*y, strict=True)
    return Arcs(np.array(heads), np.array([-1 if label is None else label for label in labels]))


def partner_of(m, pairs):
    partner = np.full(m, -1, np.int32)
    for a, b in pairs:
        partner[a] = b
    return partner


def as_partners(problem, twin, i, y):
    x, other = twin.X[i]
    return Partners.of(partner_of(len(x), y), len(other))


def as_match(problem, twin, i, y):
    return Match(y[0], partner_of(len(twin.natives[i]), y[1]))


def as_positions(problem, twin, i, y):
    width = twin.images[i].shape[1]
    return Positions(np.array([divmod(pixel, width) for pixel in y]), problem.Y[i].share)


def as_nodes(problem, twin, i, y):
    first_unary, rows = problem.decoder.grammar.arrays.first_unary, []
    for start, end, chain, below in nodes_of(y):
        if isinstance(below, int):
            split, children = -1, repr(twin.sentences[i][below])
        else:
            split = nodes_of(below[0])[0][1]
            children = f"{below[0][0][0]} {below[1][0][0]}"
        unary = twin.number[" -> ".join(chain)] - first_unary if len(chain) > 1 else -1
        rule = twin.number[f"{chain[-1]} -> {children}"]
        symbol, top = twin.symbols.index(chain[-1]), twin.symbols.index(chain[0])
        rows.append((start, split, end, symbol, rule, unary, top))
    return Nodes(*np.ascontiguousarray(np.array(rows, np.int32).T))


COUNTED = ("hamming", "normalized_hamming", "zero_one")
#: Name, maker of (problem, twin) with so many examples, and how to tell outputs.
STRUCTURES = {
    "classes": (lambda rng, n: multiclass_case(rng, n=n, loss="costs"), as_itself),
    "classes-csr": (
        lambda rng, n: multiclass_case(rng, n=n, fit_intercept=True, layout="csr"),
        as_itself,
    ),
    "class-features": (class_feature_case, as_itself),
}
for loss in COUNTED:
    STRUCTURES |= {
        f"chain-{loss}": (
            lambda rng, n, loss=loss: chain_case(
                rng, lengths=(3, 1, 2)[:n], loss=loss, boundary_weights=True, fit_intercept=True
            ),
            as_labels,
        ),
        f"label-tree-{loss}": (
            lambda rng, n, loss=loss: label_case(rng, n=n, V=4, loss=loss, extra_edge_inputs=1),
            as_labels,
        ),
        f"dependency-{loss}": (
            lambda rng, n, loss=loss: tree_case(rng, lengths=(3, 1, 2)[:n], n_labels=2, loss=loss),
            as_arcs,
        ),
    }
for loss in ("deviation", *COUNTED):
    STRUCTURES[f"parts-{loss}"] = (
        lambda rng, n, loss=loss: grid_case(rng, n=n, V=2, channels=2, loss=loss),
        as_positions,
    )
for loss in ("pairs", "residues", "zero_one"):
    STRUCTURES[f"alignment-{loss}"] = (
        lambda rng, n, loss=loss: alignment_case(rng, loss=loss, n=n, **LAYOUT),
        as_partners,
    )
for loss in ("f1", "zero_one"):
    STRUCTURES[f"grammar-{loss}"] = (
        lambda rng, n, loss=loss: grammar_case(
            rng, lengths=(4, 1, 3)[:n], horizontal=0, n_views=2, loss=loss
        ),
        as_nodes,
    )
STRUCTURES |= {
    "constrained chain": (
        lambda rng, n: chain_case(rng, lengths=(3, 3, 2)[:n], constrained=True),
        as_labels,
    ),
    "crossing arcs": (lambda rng, n: tree_case(rng, lengths=(4, 3)[:n], projective=False), as_arcs),
    "homologues": (lambda rng, n: homologue_case(rng, n=n, **LAYOUT), as_match),
}
every_structure = pytest.mark.parametrize("structure", STRUCTURES)


@every_structure
def test_features_and_losses_are_those_of_the_definition(structure):
    make, convert = STRUCTURES[structure]
    problem, twin = make(np.random.default_rng(1), 3)
    assert len(problem.X) == len(problem.Y) == problem.n_examples == twin.n_examples
    for i, x in enumerate(problem.X):
        for y in twin.outputs(i):
            mine = convert(problem, twin, i, y)
            psi = problem.joint_feature(x, mine)
            psi = psi.toarray().ravel() if hasattr(psi, "toarray") else psi
            assert psi == pytest.approx(twin.psi(i, y), abs=1e-12)
            assert problem.loss(problem.Y[i], mine) == pytest.approx(twin.loss(i, y), abs=1e-12)


@every_structure
def test_outputs_of_the_examples_are_the_given_ones(structure):
    make, convert = STRUCTURES[structure]
    problem, twin = make(np.random.default_rng(2), 3)
    for i, y in enumerate(problem.Y):
        given = convert(problem, twin, i, twin.truth(i))
        fields = zip(y, given, strict=True) if isinstance(y, tuple) else [(y, given)]
        assert all(np.array_equal(mine, other) for mine, other in fields)


@every_structure
def test_problems_pass_their_check(structure):
    """Against all outputs where there is one example, against predictions where there are more."""
    make, convert = STRUCTURES[structure]
    problem, _ = make(np.random.default_rng(3), 3)
    check_problem(problem, rescalings=RESCALINGS)
    for seed in range(3):
        problem, twin = make(np.random.default_rng(seed), 1)
        outputs = [convert(problem, twin, 0, y) for y in twin.outputs(0)]
        check_problem(problem, outputs=lambda x, listed=outputs: listed, rescalings=RESCALINGS)


def test_examples_are_a_sequence():
    problem, _ = chain_case(np.random.default_rng(0), lengths=(3, 1, 2))
    assert [len(y) for y in problem.Y] == [3, 1, 2]
    assert [len(y) for y in problem.Y[1:]] == [1, 2]
    assert np.array_equal(problem.Y[-1], problem.Y[2])
    with pytest.raises(IndexError):
        problem.X[3]
    problem.Y[0][:] = -1  # a copy
    assert (problem.Y[0] >= 0).all()
    for other in (copy.copy(problem), pickle.loads(pickle.dumps(problem))):
        assert len(other.X) == 3


def test_native_problems_are_made_from_their_examples():
    problem, _ = multiclass_case(np.random.default_rng(0))
    with pytest.raises(TypeError, match="MulticlassProblem takes its examples when it is made"):
        problem.bind([], [])


@every_structure
@pytest.mark.parametrize("chosen", [[2, 0], [1, 1, 2], []], ids=str)
def test_subsets_answer_as_the_whole(structure, chosen):
    if structure == "crossing arcs":
        chosen = [i for i in chosen if i < 2]
    make, _ = STRUCTURES[structure]
    problem, _ = make(np.random.default_rng(5), 3)
    rng, chosen = np.random.default_rng(6), np.array(chosen, np.int64)
    part = problem.subset(chosen)
    assert (part.n_examples, part.n_features) == (len(chosen), problem.n_features)
    everything = np.arange(len(chosen))
    for rescaling in RESCALINGS:
        w = rng.normal(size=problem.n_features)
        asked = [Oracle(p, Formulation(rescaling)) for p in (part, problem)]
        answers = [asked[0].call_features(everything, w), asked[1].call_features(chosen, w)]
        for mine, other in zip(answers[0].planes, answers[1].planes, strict=True):
            assert np.array_equal(mine, other)
        mine, other = asked[0].call(everything, w), asked[1].call(chosen, w)  # in parts
        assert np.array_equal(mine.planes.losses, other.planes.losses)
    for i, j in enumerate(chosen):
        assert problem.loss(problem.Y[j], part.Y[i]) == 0.0


@every_structure
def test_fingerprints_follow_the_data(structure):
    make, _ = STRUCTURES[structure]
    problem, again = (make(np.random.default_rng(5), 3)[0] for _ in range(2))
    w = np.random.default_rng(6).normal(size=problem.n_features)
    before = fingerprint(problem)
    problem.oracle(np.arange(1), w)  # leaves no trace
    assert before == fingerprint(problem) == fingerprint(again) is not None
    assert fingerprint(make(np.random.default_rng(7), 3)[0]) != before
