"""Whatever is wrong with the input is an error, or a warning, that names what and where."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from every_estimator import KINDS
from maxmargin.features import PackedSequences, WindowFeatures
from maxmargin.features.tokens import TokenChunks
from maxmargin.metrics.rankings import mean_swapped_pairs
from maxmargin.metrics.segments import segment_scores
from maxmargin.metrics.sets import alignment_scores
from maxmargin.solvers.base import _finite

X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [1.0, 3.0]])
Y = np.array([0, 1, 0, 1])
SEQUENCES = [X, X[:2], X[1:]]
LABELS = [[0, 1, 0, 1], [1, 0], [0, 1, 1]]


def spoiled(value, at=(2, 1)):
    bad = X.copy()
    bad[at] = value
    return bad


@pytest.mark.parametrize("value, name", [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_multiclass_features_must_be_finite(value, name, convert):
    bad = convert(spoiled(value))
    with pytest.raises(ValueError, match=f"{name} at row 2, feature 1"):
        mm.MulticlassSVM().fit(bad, Y)
    with pytest.raises(ValueError, match=f"{name} at row 2, feature 1"):
        mm.MulticlassSVM().fit(X, Y).predict(bad)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_token_features_must_be_finite(value, convert):
    bad = [convert(s) for s in [X[:3], spoiled(value)]]
    with pytest.raises(ValueError, match="sequence 1, token 2 has a NaN or infinite"):
        mm.SequenceTagger().fit(bad, [[0, 1, 0], [0, 1, 0, 1]])


def test_named_features_must_be_finite():
    with pytest.raises(ValueError, match="sequence 0, token 1, feature 'b'"):
        mm.SequenceTagger().fit([[{"a": 1.0}, {"b": np.nan}]], [["x", "y"]])


def test_empty_sequences_are_named():
    with pytest.raises(ValueError, match="sequence 1 is empty"):
        mm.SequenceTagger().fit([X, np.empty((0, 2))], [[0, 1, 0, 1], []])
    with pytest.raises(ValueError, match="sequence 1 is empty"):
        mm.SequenceTagger(features=WindowFeatures()).fit([["a", "b"], []], [[0, 1], []])
    with pytest.raises(ValueError, match="at least one sequence"):
        mm.SequenceTagger().fit([], [])


def test_packed_sequences_must_fit_together():
    tagger = mm.SequenceTagger(tol=0.1).fit(SEQUENCES, LABELS)
    for offsets, said in (
        ([0, 2, 9], "from 0 to the number of tokens, 4"),
        ([1, 4], "from 0 to the number of tokens, 4"),
        ([0], "from 0 to the number of tokens, 4"),
        ([], "from 0 to the number of tokens, 4"),
        ([0, 3, 1, 4], "sequence 1 is empty"),
    ):
        with pytest.raises(ValueError, match=said):
            tagger.predict(PackedSequences(X, np.array(offsets)))


def test_indices_beyond_a_sparse_matrix_are_refused():
    bad = sp.csr_matrix(X)
    bad.indices[-1] = 1_000_000
    with pytest.raises(ValueError, match="has the index 1000000, but there are 2 columns"):
        mm.SequenceTagger(tol=0.1).fit(SEQUENCES, LABELS).predict([bad])
    with pytest.raises(ValueError, match="has the index 1000000, but there are 2 columns"):
        mm.MulticlassSVM(tol=0.1).fit(X, Y).predict(bad)
    with pytest.raises(ValueError, match="has the index 1000000, but there are 2 columns"):
        mm.MulticlassSVM(tol=0.1).fit(bad, Y)
    with pytest.raises(ValueError, match="has the index 1000000, but there are 2 columns"):
        mm.SequenceTagger(tol=0.1).fit([bad], LABELS[:1])


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="4 examples but y has 3; first without a partner: 3"):
        mm.MulticlassSVM().fit(X, Y[:3])
    with pytest.raises(ValueError, match="3 sequences but y has 2; first without a partner: 2"):
        mm.SequenceTagger().fit(SEQUENCES, LABELS[:2])
    with pytest.raises(ValueError, match="sequence 1 has 2 tokens but 3 labels"):
        mm.SequenceTagger().fit(SEQUENCES, [LABELS[0], [1, 0, 1], LABELS[2]])
    with pytest.raises(ValueError, match=r"y\[0\] is 'abba', expected a sequence of labels"):
        mm.SequenceTagger().fit([X], ["abba"])


@pytest.mark.parametrize("C", [0, -1.0, np.nan, np.inf, "1"])
def test_C_must_be_positive(C):
    with pytest.raises(ValueError, match="C must be a positive"):
        mm.MulticlassSVM(C=C).fit(X, Y)
    with pytest.raises(ValueError, match="C must be a positive"):
        mm.SequenceTagger(C=C).fit(SEQUENCES, LABELS)


def test_a_single_class_is_not_enough():
    with pytest.raises(ValueError, match="only one class"):
        mm.MulticlassSVM().fit(X, np.zeros(4))
    with pytest.raises(ValueError, match=r"only one label \('O'\)"):
        mm.SequenceTagger().fit([X], [["O"] * 4])


def test_unknown_labels_of_score_are_counted_wrong():
    model = mm.MulticlassSVM(C=10.0).fit(X, Y)
    with pytest.warns(UserWarning, match=r"1 of \d+ examples have classes unknown.*y\[1\] = 9"):
        assert model.score(X[:2], [model.predict(X)[0], 9]) == 0.5


def test_unknown_labels_of_sequences_are_counted_wrong():
    model = mm.SequenceTagger(C=10.0).fit(SEQUENCES, LABELS)
    with pytest.warns(UserWarning, match="1 of 2 labels are unknown.* 9 at sequence 0, token 1"):
        score = model.score([X[:2]], [[0, 9]])
    assert score in (0.0, 0.5)
    with pytest.raises(ValueError, match=r"sequence 0, token 1: label 9 is not known"):
        model.score_outputs([X[:2]], [[0, 9]])


def test_labels_must_be_usable():
    with pytest.raises(ValueError, match=r"sequence 0, token 1: label .* is not hashable"):
        mm.SequenceTagger().fit([X[:2]], [[0, [1]]])
    with pytest.raises(ValueError, match="sequence 0, token 1: nan is not a label"):
        mm.SequenceTagger().fit([X[:2]], [[0.0, np.nan]])
    with pytest.raises(ValueError, match="sequence 0, token 0: None is not a label"):
        mm.SequenceTagger().fit([X[:2]], [[{None, 2}, 1]])
    with pytest.raises(ValueError, match="sequence 0, token 0: None is not a label"):
        mm.SequenceTagger(solver="sgd").partial_fit([X[:2]], [[None, 1]])


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"order": 4}, "order must be 1, 2 or 3, got 4"),
        ({"loss": "f1"}, "loss must be one of 'hamming'"),
        ({"rescaling": "both"}, "rescaling must be"),
        ({"slack": "l3"}, "slack must be"),
        ({"solver": "magic"}, "solver must be 'auto'"),
        ({"solver": 3}, "solver must be a name"),
        ({"tol": -1.0}, "tol must be"),
        ({"max_time": "soon"}, "max_time must be"),
        ({"training": {"cache_mb": "much"}}, "cache_mb must be a finite number >= 0, got 'much'"),
        ({"training": {"cache_mb": None}}, "cache_mb must be"),
        ({"training": {"cache_mb": -1}}, "cache_mb must be a finite number >= 0, got -1"),
        ({"on_violation": np.zeros(0)}, "on_violation must be"),
        ({"n_jobs": 1.5}, "n_jobs must be"),
        ({"n_jobs": 0}, "n_jobs must be None, a whole number >= 1, or -1 for all cores, got 0"),
        ({"n_jobs": "a"}, "n_jobs must be .* got 'a'"),
        ({"random_state": "seed"}, "random_state must be"),
        ({"random_state": -1}, "random_state must be .* an integer >= 0"),
        ({"C": 10**400}, "C must be a positive, finite number"),
        ({"constraints": "iob"}, "constraints must be 'bio'"),
        ({"constraints": "bio"}, "needs labels such as"),
        ({"constraints": 3}, "constraints must be"),
        ({"constraints": [("a", "b", "c")]}, r"constraints\[0\]"),
        ({"constraints": np.ones((3, 3), bool)}, r"shape \(3, 3\), but y has 2 labels"),
        ({"constraints": [(0, 1)]}, "sequence 0, token 1: label 1 follows 0"),
    ],
)
def test_parameters_of_the_tagger(parameters, message):
    with pytest.raises(ValueError, match=message):
        mm.SequenceTagger(**parameters).fit(SEQUENCES, LABELS)


@pytest.mark.parametrize(
    "loss, message",
    [
        ("hinge", "'zero_one', 'taxonomy' or a cost matrix"),
        (np.ones((2, 2)), r"costs\[0, 0\]"),
        (np.ones((3, 3)) - np.eye(3), "y has 2 classes"),
    ],
)
def test_losses_of_classes(loss, message):
    with pytest.raises(ValueError, match=message):
        mm.MulticlassSVM(loss=loss).fit(X, Y)


def test_sample_weights():
    with pytest.raises(ValueError, match=r"sample_weight\[1\] is -1.0"):
        mm.MulticlassSVM().fit(X, Y, sample_weight=[1, -1, 1, 1])
    with pytest.raises(ValueError, match="at least one non-zero"):
        mm.MulticlassSVM().fit(X, Y, sample_weight=np.zeros(4))
    with pytest.raises(ValueError, match=r"sample_weight\[2\] is nan"):
        mm.SequenceTagger().fit(SEQUENCES, LABELS, sample_weight=[1, 1, np.nan])
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        mm.SequenceTagger().fit(SEQUENCES, LABELS, sample_weight=[1, 1])


def test_input_at_predict_time():
    model = mm.SequenceTagger().fit(SEQUENCES, LABELS)
    with pytest.raises(ValueError, match="3 features per token, expected 2"):
        model.predict([np.ones((2, 3))])
    words = mm.SequenceTagger(features=WindowFeatures()).fit([["a", "b"]], [[0, 1]])
    with pytest.raises(ValueError, match="expected 1 columns"):
        words.predict([[("a", "x")]])
    with pytest.raises(ValueError, match="see WindowFeatures"):
        mm.SequenceTagger().fit([["a", "b"]], [[0, 1]])


class Signs(mm.Problem):
    """Two classes, with an oracle that can be made to err."""

    n_features = 2

    def __init__(self, fault=None):
        self.fault = fault

    def joint_feature(self, x, y):
        return y * x

    def loss(self, y, y_hat):
        if self.fault == "gold loss" and x_is(self, 2, y):
            return 1.0
        if self.fault == "negative loss" and x_is(self, 2, y) and y_hat is not y:
            return -1.0
        return float(y != y_hat)

    def most_violated(self, x, y, w, rescaling):
        if self.fault == "worse than the gold output":
            return -y
        return max((1, -1), key=lambda c: float(c != y) + c * (w @ x))

    def predict(self, x, w):
        return 1 if w @ x >= 0 else -1


def x_is(problem, i, y):
    return y is problem.Y[i]


class Label(int):
    """An int of its own identity."""


def test_negative_loss_names_the_example():
    Y_signs = [Label(1), Label(-1), Label(1), Label(-1)]
    with pytest.raises(ValueError, match=r"loss -1\.0 for example 2"):
        mm.StructuralSVM(Signs("negative loss"), random_state=0).fit(X, Y_signs)


def test_a_gold_output_with_a_loss_is_named():
    Y_signs = [Label(1), Label(-1), Label(1), Label(-1)]
    with pytest.raises(ValueError, match=r"loss\(y, y\) is 1\.0 for example 2; it must be 0"):
        mm.StructuralSVM(Signs("gold loss"), random_state=0).fit(X, Y_signs)


@pytest.mark.parametrize("options", [{"tol": None, "max_passes": 20}, {}])
@pytest.mark.parametrize("solver", ["auto", "one_slack"])
def test_oracle_worse_than_the_truth_certifies_nothing(solver, options):
    points = np.array([[5.0, 0.0], [-5.0, 0.5], [6.0, 0.0]])
    model = mm.StructuralSVM(
        Signs("worse than the gold output"), C=10.0, solver=solver, random_state=0, **options
    )
    with pytest.warns(UserWarning, match=r"example \d .* worse than the gold output"):
        model.fit(points, [1, -1, 1])
    result = model.result_
    assert not result.converged and result.status == "inexact oracle"
    assert result.gap is None and result.relative_gap is None


class Stretches(mm.Problem):
    """Find the bright stretch of a signal, with an oracle for margin rescaling only."""

    n_features = 2

    def outputs(self, x):
        return [(i, j) for i in range(len(x)) for j in range(i + 1, len(x) + 1)]

    def joint_feature(self, x, y):
        return np.array([x[y[0] : y[1]].sum(), y[1] - y[0]])

    def loss(self, y, y_hat):
        overlap = max(0, min(y[1], y_hat[1]) - max(y[0], y_hat[0]))
        return 1.0 - overlap / (max(y[1], y_hat[1]) - min(y[0], y_hat[0]))

    def most_violated(self, x, y, w, rescaling):
        return max(self.outputs(x), key=lambda z: self.loss(y, z) + w @ self.joint_feature(x, z))

    def predict(self, x, w):
        return max(self.outputs(x), key=lambda z: w @ self.joint_feature(x, z))


class Claiming(Stretches):
    """It declares a rescaling that its search does not know."""

    rescalings = ("margin", "slack")


def bright_stretches():
    rng = np.random.default_rng(0)
    places = [(int(s), int(s) + 4) for s in rng.integers(0, 8, size=30)]
    signals = [rng.normal(size=12) for _ in places]
    for signal, (start, stop) in zip(signals, places, strict=True):
        signal[start:stop] += 3.0
    return signals, places


@pytest.mark.parametrize("solver", ["auto", "bcfw", "n_slack", "one_slack"])
def test_a_certificate_that_is_none_is_not_passed_off_as_one(solver):
    model = mm.StructuralSVM(Claiming(), rescaling="slack", solver=solver, random_state=0)
    with pytest.warns(UserWarning, match="exceeds the primal value .* not a certificate"):
        model.fit(*bright_stretches())
    result = model.result_
    assert not result.converged and result.status == "inexact oracle" and result.gap is None


def test_slack_rescaling_of_a_search_that_knows_margins_only_is_true():
    signals, places = bright_stretches()
    result = (
        mm.StructuralSVM(Stretches(), rescaling="slack", max_passes=30).fit(signals, places).result_
    )
    problem, slacks = Stretches(), []
    for x, y in zip(signals, places, strict=True):
        psi = problem.joint_feature(x, y)
        slacks.append(
            max(
                problem.loss(y, z) * (1.0 - result.w @ (psi - problem.joint_feature(x, z)))
                for z in problem.outputs(x)
            )
        )
    true = 0.5 * result.w @ result.w + sum(slacks)
    assert 0.0 <= result.dual <= true <= result.primal * (1.0 + 1e-9)
    assert result.gap >= 0.0


def test_check_problem_tests_every_rescaling_that_is_declared():
    signals, places = bright_stretches()
    mm.check_problem(Stretches().bind(signals, places), outputs=Stretches().outputs)
    with pytest.raises(ValueError, match=r"slack oracle's candidate .* does not find the best"):
        mm.check_problem(Claiming().bind(signals, places))


def test_structural_input():
    with pytest.raises(ValueError, match=r"must be a maxmargin\.Problem, got 'type' object"):
        mm.StructuralSVM(Signs).fit(X, [1, -1, 1, -1])
    with pytest.raises(ValueError, match=r"X has 4 examples but y has 3; .*: 3"):
        mm.StructuralSVM(Signs()).fit(X, [1, -1, 1])
    with pytest.raises(ValueError, match=r"must be a maxmargin\.Problem, got 'str'"):
        mm.StructuralSVM("chain").fit(X, Y)
    with pytest.raises(ValueError, match="at least one example"):
        mm.StructuralSVM(Signs()).fit([], [])


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"sqrt_loss": np.zeros(2)}, "sqrt_loss must be None, True or False"),
        ({"slack": np.zeros(2)}, "slack must be"),
        ({"fit_intercept": sp.csr_matrix((2, 2))}, "fit_intercept must be True or False"),
        ({"training": {"on_interrupt": np.zeros(0)}}, "on_interrupt must be"),
        ({"verbose": np.inf}, "verbose must be a whole number, got inf"),
        ({"training": {"callbacks": [3]}}, r"callbacks must be a sequence of functions, got \[3\]"),
        ({"training": {"callbacks": 3}}, "callbacks must be a sequence of functions, got 3"),
        ({"training": 3}, "training must be TrainingOptions, a dict or None, got 3"),
        ({"training": {"cache": 3}}, "no option 'cache'; its options are checkpoint, checkpoint_e"),
        ({"training": {"resume": "yes"}}, "resume must be True or False"),
        ({"training": {"checkpoint": 3}}, "checkpoint must be the name of a file, got 3"),
        ({"training": {"checkpoint": "a\0"}}, "checkpoint must be the name of a file"),
    ],
)
def test_what_is_no_switch_word_or_function(parameters, message):
    with pytest.raises(ValueError, match=message):
        mm.MulticlassSVM(**parameters).fit(X, Y)


@pytest.mark.parametrize("weights", [{}, "xyz", [1j, 1, 1], [[1], [1, 2], 3]])
def test_sample_weights_must_be_numbers(weights):
    with pytest.raises(ValueError, match="sample_weight must be numbers, got"):
        mm.SequenceTagger().fit(SEQUENCES, LABELS, sample_weight=weights)


def test_weights_that_would_overflow():
    with pytest.raises(ValueError, match=r"C times sample_weight must be at most 1e\+100, got"):
        mm.SequenceTagger().fit(SEQUENCES, LABELS, sample_weight=[1.0, 1e300, 1.0])


def test_a_result_is_of_numbers():
    """Weights may be finite where the objective is not."""
    result = mm.MulticlassSVM().fit(X, Y).result_
    assert _finite(replace(result, primal=np.inf)).primal == np.inf  # a hard margin that is not met
    for changes in ({"primal": np.nan}, {"dual": -np.inf}, {"w": result.w * np.inf}):
        with pytest.raises(ValueError, match="overflowed, for features, losses or C are too"):
            _finite(replace(result, **changes))


LARGE = X * 1e199
LARGE[0] = 1.0


@pytest.mark.parametrize("model", [mm.OrdinalSVM(), mm.RankSVM(), mm.MulticlassSVM()])
def test_features_whose_squares_overflow(model):
    message = r"X contains -?\S+e\+19\d at row 1, feature 0; .* at most 1e\+100 in size: scale them"
    for given in (LARGE, np.asfortranarray(LARGE), sp.csr_matrix(LARGE)):
        with pytest.raises(ValueError, match=message):
            model.fit(given, Y)


def scaled(data, factor):
    """The same data, with all numbers in arrays multiplied."""
    if isinstance(data, np.ndarray) and data.dtype.kind == "f":
        return data * factor
    return type(data)(scaled(x, factor) for x in data) if isinstance(data, list | tuple) else data


@pytest.mark.parametrize(
    "kind", sorted(set(KINDS) - {"grammar", "dependency", "aligner", "homologues"})
)
@pytest.mark.parametrize("solver", ["auto", "one_slack", "n_slack", "sgd"])
def test_no_estimator_takes_features_that_overflow(kind, solver):
    """Below the limit there is a finite model, beyond it an error; never a nan."""
    X, y = KINDS[kind].first
    options = {"C": 1.0, "solver": solver, "max_passes": 3, "random_state": 0}
    for size in (1e90, 1e155, 1e199):
        model = KINDS[kind].make(**options)
        if size > 1e100:
            with pytest.raises(ValueError, match=r"too large to compute with|at most 1e\+100"):
                model.fit(scaled(X, size), y)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = model.fit(scaled(X, size), y).result_
        assert np.isfinite(result.w).all()
        known = [(p.primal, p.dual) for p in result.history] + [(result.primal, result.dual)]
        assert np.isfinite([value for pair in known for value in pair if value is not None]).all()


def test_features_of_other_kinds_whose_squares_overflow():
    message = "the value 1e.200, which is too large to compute with: scale the features"
    with pytest.raises(ValueError, match=f"sequence 1, token 0 has {message}"):
        mm.SequenceTagger().fit([X[:2], np.full((2, X.shape[1]), 1e200)], [[0, 1], [0, 1]])
    with pytest.raises(ValueError, match=f"sequence 0, token 1, feature 'a': {message}"):
        mm.SequenceTagger().fit([[{"a": 1.0}, {"a": 1e200}]], [[0, 1]])
    nodes = {"nodes": np.ones((2, 2, 1)), "edges": np.full((2, 1, 1), 1e200)}
    with pytest.raises(ValueError, match=f"the features of edge 0 of example 0 have {message}"):
        mm.TreeLabeler(tree=[(0, 1)]).fit(nodes, [["a", "b"], ["b", "a"]])


def test_numbers_of_32_bits_may_be_as_large_as_they_can():
    large = np.array([[1e30], [-1e30], [2e30], [-2e30]], np.float32)
    result = mm.MulticlassSVM(random_state=0).fit(large, [1, 0, 1, 0]).result_
    assert 0.0 <= result.dual <= result.primal < np.inf


@pytest.mark.parametrize(
    "pairs, message",
    [
        ([3, ("AC", "AC")], r"X\[0\] must be a pair, got 3"),
        ([(3, "AC"), ("AC", "AC")], "a sequence is 3, expected a string"),
        ([({0: 1}, "AC"), ("AC", "AC")], "a sequence is {0: 1}, expected a string"),
        ([("AC", [[], "A"]), ("AC", "AC")], "cannot be sorted: unhashable"),
    ],
)
def test_sequences_to_align(pairs, message):
    with pytest.raises(ValueError, match=message):
        mm.SequenceAligner().fit(pairs, [[(0, 0)], [(0, 0)]])


def test_homologues_must_be_pairs_with_candidates():
    aligner = mm.HomologyRanker()
    good = ("AC", ["AC", "GT"])
    for x, y, message in (
        ((3,), (0, [(0, 0)]), r"X\[1\] must be a pair, got"),
        (("AC", None), (0, [(0, 0)]), r"X\[1\] must be \(native, list of candidates\)"),
        (good, ("x", [(0, 0)]), r"y\[1\] must be \(number of the homologue, its alignment\)"),
    ):
        with pytest.raises(ValueError, match=message):
            aligner.fit([good, x], [(0, [(0, 0)]), y])


def test_features_of_nodes_must_be_numbers_in_rows():
    labels = [[0, 1], [1, 0]]
    for nodes, message in (
        ([[["x"]], [[1.0]]], "X must be an array of shape"),
        (np.array([[["x"], ["y"]]] * 2), "features of nodes must be numbers, got"),
        ([np.ones(2), np.ones((2, 1))], "node 0 has features of shape .2,.; expected two axes"),
    ):
        with pytest.raises(ValueError, match=message):
            mm.TreeLabeler(tree=[(0, 1)]).fit(nodes, labels)
    with pytest.raises(ValueError, match=r"y\[1\] is 3, expected a list of labels"):
        mm.TreeLabeler(tree=[(0, 1)]).fit(np.ones((2, 2, 1)), [[0, 1], 3])


def test_scores_of_labels_that_are_no_labels():
    with pytest.raises(ValueError, match=r"sequence 0, token 0: label .* is not hashable"):
        mm.SequenceTagger(tol=0.1).fit(SEQUENCES, LABELS).score_outputs([X[:1]], [[{}]])


def test_scores_of_homologues_that_have_no_number():
    model = mm.HomologyRanker(random_state=0)
    X = [("AB", ["AB", "BA"]), ("BA", ["AA", "BA"])]
    model.fit(X, [(0, [[0, 0]]), (1, [[0, 0]])])
    for y in ([0, None], [0, (None, [[0, 0]])], [0, "1"], [0, ()]):
        with pytest.raises(ValueError, match=r"y\[1\] must have the number of the homologue"):
            model.score(X, y)


def test_bits_that_are_no_number():
    with pytest.raises(ValueError, match="hash_bits must be from 8 to 30, got None"):
        mm.DependencyParser(hash_bits=None).fit([[("a", "N"), ("b", "V")]], [[2, 0]])


def test_what_has_no_length_is_no_sequence_and_no_nodes():
    with pytest.raises(ValueError, match=r"sequence 0 is .*expected a sequence of tokens"):
        mm.SequenceTagger().fit([np.array(3), np.eye(2)], [["a"], ["a", "b"]])
    nodes, labels = np.random.default_rng(0).normal(size=(4, 2, 1)), [[0, 1], [1, 0]] * 2
    model = mm.TreeLabeler().fit(nodes, labels)
    for odd in (np.float32(1.0), iter([]), int):
        with pytest.raises(ValueError, match="X must be an array of shape"):
            model.predict({"nodes": odd})


def test_heads_and_parameters_of_parsers():
    sentence = [("a", "A"), ("b", "B")]
    with pytest.raises(ValueError, match="expected the number of its head"):
        mm.DependencyParser(hash_bits=8).fit([sentence], [[2, 2**70]])
    for name in ("max_sentence_length", "min_word_count"):
        with pytest.raises(ValueError, match=f"{name} must be .*at least 0, got 'x'"):
            mm.GrammarParser(**{name: "x"}).fit(["(S (A a))"])


def test_scores_of_what_is_no_alignment_and_no_relevance():
    with pytest.raises(ValueError, match=r"truths\[1\] must be pairs of positions"):
        alignment_scores([[(0, 0)], [3]], [[(0, 0)], []])
    with pytest.raises(ValueError, match="y_true must be numbers"):
        mean_swapped_pairs(["x", "y"], [1.0, 2.0])


SENTENCES, HEADS = [[("a", "N"), ("b", "V")]], [[1, -1]]
IMAGES, PLACES = [np.ones((4, 4))] * 2, [[(1, 1)], (1, 1)]


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (lambda: mm.DependencyParser(loss=np.zeros(0)).fit(SENTENCES, HEADS), "loss must be"),
        (
            lambda: mm.PartLocator(patch=1e300).fit(IMAGES, PLACES),
            "patch must be a whole number from 1 to 32768, got 1e",
        ),
        (
            lambda: mm.SequenceAligner(alphabet=[["A"]]).fit([("A", "A")], [[(0, 0)]]),
            "alphabet has an entry that is not a letter: unhashable type: 'list'",
        ),
        (
            lambda: mm.SequenceSegmenter().fit([X], [[np.array(3)]]),
            r"sequence 0, segment 0: expected \(start, stop, label\), got array\(3\)",
        ),
        (
            lambda: segment_scores([[(0, 1, "a")]], [[(0, 1, ["a"])]]),
            "y_pred, sequence 0: labels must be hashable",
        ),
    ],
)
def test_things_of_other_kinds_than_expected(train, message):
    with pytest.raises(ValueError, match=message):
        train()


def test_a_kernel_that_takes_no_arrays_is_named():
    with pytest.raises(TypeError, match=r"kernel=<class 'int'> is called with two arrays of rows"):
        mm.MulticlassSVM(kernel=int).fit(X, Y)


def test_kernels_read_nothing_beyond_the_columns():
    tokens = sp.csr_array(np.eye(6, 3))
    packed = PackedSequences(tokens, np.array([0, 3, 6]))
    tagger = mm.SequenceTagger(kernel="rbf", max_passes=2, tol=None)
    tagger.fit(packed, [["a", "b", "a"], ["b", "a", "b"]])
    broken = tokens.copy()
    broken.indices[-1] = 50_000
    for ask in (tagger.predict, tagger.predict_margins):
        with pytest.raises(ValueError, match="has the index 50000, but there are 3 columns"):
            ask(PackedSequences(broken, packed.offsets))


def test_tokens_of_another_width_are_named_wherever_ranges_begin():
    pieces = TokenChunks([[("a", "b")]] * 5 + [[("a", "b", "c")]] * 5)
    for first in range(1, 10):
        if first < 5:
            assert pieces.columns(first, 5).offsets[-1] == 5 - first
            continue
        with pytest.raises(ValueError, match="sequence 5, token 0 is"):
            pieces.columns(first, 10)


@pytest.mark.parametrize(
    "train, message",
    [
        (
            lambda: mm.SequenceTagger().fit([[{"b": 1}, {"a": 10**400}]], [["A", "B"]]),
            "sequence 0, token 1, feature 'a'",
        ),
        (lambda: mm.MulticlassSVM().fit([[1, 2], [3, 10**400]], [0, 1]), r"X\[1, 1\]"),
        (lambda: mm.RankSVM().fit([[1, 2], [3, 4]], [0, 10**400]), r"y\[1\]"),
        (lambda: mm.MulticlassSVM(class_weight={0: 10**400}).fit([[1.0], [2.0]], [0, 1]), "class"),
        (lambda: mm.MulticlassSVM(C=10**400).fit([[1.0], [2.0]], [0, 1]), "C must be"),
        (lambda: mm.path(mm.MulticlassSVM(), [[1.0], [2.0]], [0, 1], [10**400]), "C"),
        (
            lambda: mm.SequenceTagger(order={"eta": 10**400}).fit([[[1.0], [2.0]]], [["A", "B"]]),
            "eta",
        ),
    ],
)
def test_whole_numbers_beyond_floats_are_named(train, message):
    with pytest.raises(ValueError, match=message):
        train()


def test_parameters_that_a_solver_instance_replaces_are_warned_of():
    solver = mm.solvers.BCFW(tol=0.05, n_jobs=1)
    with pytest.warns(UserWarning, match=r"tol, max_passes of the estimator are ignored, .*BCFW\("):
        mm.MulticlassSVM(solver=solver, tol=0.5, max_passes=9, n_jobs=1).fit(X, [0, 1, 0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mm.MulticlassSVM(solver=solver).fit(X, [0, 1, 0, 1])
