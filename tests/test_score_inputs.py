"""Scores accept outputs whose meaning is clear, and refuse the rest: never one read as another."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.features import WindowFeatures
from maxmargin.metrics import (
    Ratio,
    alignment_scores,
    attachment_scores,
    average_precision,
    bootstrap_intervals,
    bracket_scores,
    chunk_scores,
    chunks,
    grade_scores,
    hamming,
    label_scores,
    mean_cost,
    ndcg,
    paired_comparison,
    ranking_scores,
    relation_scores,
    reliability,
    segment_f1,
    segment_scores,
    segments_to_tags,
    sequence_accuracy,
    set_scores,
    swapped_pairs,
    tagging_report,
    tags_to_segments,
    token_accuracy,
)

NAN = float("nan")
TREE = "(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))"
OTHER = "(S (NP (DT a) (NN dog)) (VP (VBZ barks)))"
TRUE = np.array([[1, 0, 1], [0, 1, 0]])
FOUND = np.array([[1, 1, 0], [0, 1, 0]])
SETS = [{0, 2}, {1}], [{0, 1}, {1}]
OF_SEQUENCES = [token_accuracy, sequence_accuracy, hamming, label_scores, tagging_report]


@pytest.mark.parametrize(
    "form",
    [
        np.asarray,
        lambda table: table.astype(bool),
        lambda table: table.astype(float),
        sp.csr_matrix,
        sp.csc_array,
        pd.DataFrame,
        lambda table: table.tolist(),
        list,
        lambda table: [tuple(row) for row in table],
    ],
)
def test_indicators_are_the_sets_they_stand_for(form):
    assert set_scores(form(TRUE), form(FOUND)) == set_scores(*SETS)
    assert set_scores(form(TRUE), form(1 - TRUE))[:3] == (0.0, 1.0, 0.0)


def test_columns_without_any_label_count_and_have_names():
    wide = np.hstack([TRUE, np.zeros((2, 2), int)])
    scores = set_scores(wide, 1 - wide, labels="abcde")
    assert list(scores.per_label) == list("abcde") and scores.hamming_loss == 1.0
    assert set_scores(wide, wide).per_label[4].n_true == 0
    named = set_scores(pd.DataFrame(TRUE, columns=list("xyz")), FOUND)
    assert named.per_label["y"].n_predicted == 2


def test_two_labels_in_lists_are_indicators_as_in_scikit_learn():
    assert set_scores([[1, 0], [0, 1]], [[0, 1], [0, 1]]).subset_accuracy == 0.5
    assert set_scores([[0, 1], [0]], [[1, 0], [1]]).subset_accuracy == 0.5  # of two lengths: labels


def test_generators_are_read_once():
    y = [["B-A", "O"], ["O", "O"]]
    assert token_accuracy((own for own in y), (own for own in y)) == 1.0
    assert "sequences            2" in tagging_report((own for own in y), iter(y))
    assert set_scores(({k} for k in range(3)), [{0}, {1}, {1}]).subset_accuracy == 2 / 3
    assert bracket_scores(iter([TREE]), iter([TREE]), ignored_labels=iter(["S"])).n_true == 2
    assert grade_scores(iter([1, 2]), iter([1, 2]), iter([1, 2])).accuracy == 1.0
    assert ndcg(iter([0, 1]), iter([0.0, 1.0])) == 1.0
    assert mean_cost(iter(["a", "b"]), iter(["b", "b"]), {("a", "b"): 4.0}) == 2.0
    assert chunks(iter(["B-A"])) == [("A", 0, 1)]


def test_pairs_may_be_lists_or_rows_of_an_array():
    pairs = [[(2, "a"), (0, "r")]], [[(2, "b"), (0, "r")]]
    expected = attachment_scores(*pairs)
    assert expected == (1.0, 0.5, 0.0)
    assert (
        attachment_scores(*([[list(arc) for arc in own] for own in y] for y in pairs)) == expected
    )
    rows = ([np.array(own, object) for own in y] for y in pairs)
    assert attachment_scores(*rows) == expected
    numbers = ([[(2, 5), (0, 6)]], [[(2, 7), (0, 6)]])
    assert attachment_scores(*([np.array(own) for own in y] for y in numbers)) == expected


def test_tuples_are_sequences_unless_they_are_named_as_labels():
    costs = {("a", "b"): 5.0}
    assert mean_cost([("a", "b"), ("b",)], [("b", "b"), ("b",)], costs) == pytest.approx(5 / 3)
    pair = ("a", "b"), ("b", "b")
    assert mean_cost([pair[0]], [pair[1]], {pair: 3.0}) == 3.0
    assert mean_cost([pair[0]], [pair[1]], {pair[0]: {pair[1]: 3.0}}) == 3.0
    assert mean_cost([pair[0]], [pair[1]], [[0, 2], [1, 0]], labels=pair) == 2.0


@pytest.mark.parametrize("score", OF_SEQUENCES)
@pytest.mark.parametrize(
    ("y_true", "y_pred", "message"),
    [
        ([["1", "2"]], [[1, 2]], "'1' .str., y_pred has labels such as 1 .int.; these never match"),
        ([["a", None]], [["a", "a"]], "y_true, sequence 0, token 1: expected a label, got None"),
        ([["a"], ["a"]], [["a"], [NAN]], "y_pred, sequence 1, token 0: expected a label, got nan"),
        ([["a"]], [[{"a"}]], "y_pred, sequence 0, token 0: expected a label, got {'a'} .set."),
        ([["a"]], [[{"a": 0.9}]], "expected a label, got {'a': 0.9} .dict."),
        (np.zeros((2, 2, 2)), np.zeros((2, 2, 2)), "expected a label, got .0.0, 0.0. .list."),
        ([{"a", "b"}], [["a", "b"]], "sequence 0 of y_true is .*set., expected a sequence"),
        ([{"a": 1}], [{"a": 2}], "sequence 0 of y_true is {'a': 1} .dict., expected a sequence"),
        ({0: ["a"]}, {0: ["a"]}, "y_true is {0: .'a'.} .dict., expected a list of sequences"),
        ("ab", "ab", "y_true is 'ab' .str., expected a list of sequences"),
        (sp.csr_matrix(TRUE), sp.csr_matrix(TRUE), "y_true is one sparse matrix.*expected a list"),
        (["a", "b"], ["a", "b"], "sequence 0 of y_true is 'a' .str., expected a sequence"),
        (np.array([1, 2]), np.array([1, 2]), "sequence 0 of y_true is np.int64.1."),
    ],
)
def test_sequences_of_labels(score, y_true, y_pred, message):
    with pytest.raises(ValueError, match=message):
        score(y_true, y_pred)


@pytest.mark.parametrize(
    ("score", "arguments", "message"),
    [
        (set_scores, (TRUE, SETS[1]), "indicators of 0 and 1 as y_true and y_pred, or collections"),
        (set_scores, (TRUE, FOUND[:, :2]), r"shape \(2, 3\), y_pred \(2, 2\)"),
        (set_scores, (TRUE, FOUND[:1]), "y_pred must have a row of 0 and 1 for each of 2 examples"),
        (set_scores, (TRUE, 0.5 * FOUND), r"y_pred\[0, 0\] is 0.5; expected 0 or 1"),
        (set_scores, (2 * TRUE - 1, FOUND), r"y_true\[0, 1\] is -1; expected 0 or 1"),
        (set_scores, (TRUE.astype(str), FOUND), "y_true must be 0 and 1, got an array of <U"),
        (set_scores, (["ab", "c"], ["ba", "c"]), r"y_true\[0\] is 'ab', expected a collection"),
        (set_scores, ([{1: 0.9}], [{1: 0.1}]), r"y_true\[0\] is {1: 0.9}, expected a collection"),
        (set_scores, ([{1}], [[1, 2, 1]]), r"y_pred\[0\] has a label twice"),
        (set_scores, ([1, 2], [1, 2]), r"y_true\[0\] is 1, expected a collection of labels"),
        (set_scores, ([{"1"}], [{1}]), "these never match"),
        (set_scores, ([{None}], [{1}]), "expected a label, got None"),
        (set_scores, ({0: {1}}, {0: {1}}), "y_true is .*dict., expected a list of sets"),
        (set_scores, ([], []), "y_true has no sets of labels"),
        (chunk_scores, ([{"O": 1}], [{"O": 2}]), "expected a sequence of labels"),
        (chunks, ("BIO",), "tags is 'BIO' .str., expected a list of tags"),
        (tags_to_segments, (["O", "O"],), "tags is 'O' .str., expected a list of tags"),
        (tags_to_segments, ("O",), "y is 'O' .str., expected a list of sequences of tags"),
        (segments_to_tags, ([[(0, 2, "a"), (1, 3, "b")]], [3]), "overlaps the segment before it"),
        (segment_scores, ([[(0.9, 1, "a")]], [[(0, 1, "a")]]), r"got \(0.9, 1, 'a'\)"),
        (segment_f1, ([[(3, 0, 1)]], [[(3, 0, 1)]]), "0 <= start < stop, got .3, 0, 1."),
        (segment_f1, ([["01a"]], [["01a"]]), r"expected \(start, stop, label\).*got '01a'"),
        (segment_f1, ([[(0, 1, 1)]], [[(0, 1, "1")]]), "these never match"),
        (segment_f1, ([{(0, 1, "a"): 1}], [[]]), "expected a list of .start, stop, label., got {"),
        (segment_f1, ([[(0, 1, "a")]], [[(0, 2, "a")]], [0.0]), "sample_weight is 0 for all"),
        (segment_f1, ([], []), "y_true has no lists of segments"),
        (
            attachment_scores,
            ([["2", "0"]], [[2, 0]]),
            "y_true, sentence 0, word 1: the head is '2'",
        ),
        (
            attachment_scores,
            ([[2, 0]], [[None, 0]]),
            "y_pred, sentence 0, word 1: the head is None",
        ),
        (
            attachment_scores,
            ([[2, 0]], [[1, -1]]),
            "the head is -1, expected a whole number from 0",
        ),
        (attachment_scores, ([[7, 0]], [[7, 0]]), "the head is 7, expected .* to 2"),
        (attachment_scores, ([(2, "a"), (0, "r")], [(2, "a"), (0, "r")]), "the head is 'a'"),
        (attachment_scores, ([([2, 0], ["a", "r"])],) * 2, "the head is 'a'"),
        (attachment_scores, ([[(0, {"a", "b"})]], [[(0, "a")]]), "expected a label, got {"),
        (attachment_scores, ([[(0, "a")]], [[(0, 1)]]), "these never match"),
        (attachment_scores, ([[(0, "a", 1)]], [[(0, "a", 1)]]), r"expected a pair \(head, label\)"),
        (relation_scores, ([[2, 0]], [[2, 0]]), "found heads alone"),
        (relation_scores, ([["ab"]], [["ab"]]), "the head is 'ab'"),
        (bracket_scores, ([TREE], [OTHER]), "tree 0: word 1 is 'the' in y_true, 'a' in y_pred"),
        (bracket_scores, (TREE, TREE), "expected a list of trees"),
        (alignment_scores, ([[[0.7, 0]]], [[[0.2, 0]]]), r"truths\[0\] must be pairs of positions"),
        (alignment_scores, ([[[0, 0]]], [np.eye(2)]), r"predictions\[0\] must be pairs of pos"),
        (alignment_scores, ([[[0, 1], [0, 1]]], [[[0, 1]]]), r"truths\[0\] must be pairs of pos"),
        (alignment_scores, ({0: [[0, 0]]}, {0: [[0, 0]]}), "expected a list of alignments"),
        (grade_scores, ([1], [2], {1, 2, 3}), "grades is {1, 2, 3} .set., expected a list"),
        (grade_scores, ([1], [2], [1, 2, 1]), "grades has a grade twice"),
        (grade_scores, ("ab", "ba", ["a", "b"]), "y_true is 'ab' .str., expected a list of grades"),
        (grade_scores, (["1"], [1], [1, 2]), r"y_true\[0\] is '1' .str., which is not one of the"),
        (grade_scores, ([[1]], [[2]], [1, 2]), r"y_true\[0\] is \[1\] .list., which is not one of"),
        (mean_cost, ("ab", "bb", {}), "y_true is 'ab' .str., expected a list of labels"),
        (mean_cost, ([["a"]], ["a"], {}), r"expected a label, got \['a'\] .list."),
        (mean_cost, (["1"], [1], {}), "these never match"),
        (mean_cost, (["a"], [None], {}), "y_pred, label 0: expected a label, got None"),
        (mean_cost, (["a"], ["b"], np.eye(2), {"a", "b"}), "labels is {.*set., expected a list"),
        (mean_cost, (["a"], ["b"], np.eye(3), list("aba")), "labels has a label twice"),
        (ndcg, ([0, 1], [1.0, 2.0], [1, NAN]), r"qid\[1\] is nan; every document has a query"),
        (average_precision, ([0, 1], [1.0, 2.0], [1, None]), r"qid\[1\] is None"),
        (swapped_pairs, ([0, 1], [1.0, 2.0], [2]), "qid of shape .1,."),
        (ndcg, ([0, 2000], [1.0, 2.0]), "too large for the relevance 2000"),
        (lambda k: ndcg([0, 1], [1.0, 2.0], k=k), (1.5,), "k must be a whole number"),
        (lambda k: ranking_scores([0, 1], [1.0, 2.0], k=k), (True,), "k must be a whole number"),
        (reliability, ([True, False], [0.9, 0.2]), r"right\[0\] is 0.9, expected True or False"),
        (reliability, ([0.9, 0.2], ["yes", "no"]), "right must be numbers"),
        (reliability, ([0.9], [None]), r"right\[0\] is nan, expected True or False"),
        (reliability, (TRUE, TRUE), r"arrays of shapes \(2, 3\) and \(2, 3\)"),
        (reliability, ([0.9], [True], 0), "n_bins must be a whole number of 1 or more"),
        (bootstrap_intervals, ({"a": Ratio([1, NAN], [1, 1])},), "'a': expected a finite number"),
        (bootstrap_intervals, ({"a": Ratio(TRUE, TRUE)},), "'a': expected a finite number"),
        (bootstrap_intervals, ({},), "expected at least one score"),
        (paired_comparison, ({"a": Ratio([1], [1])}, {"b": Ratio([1], [1])}), "a score of both"),
    ],
)
def test_what_would_be_read_as_something_else(score, arguments, message):
    with pytest.raises(ValueError, match=message):
        score(*arguments)


def test_options_that_are_no_collections():
    with pytest.raises(ValueError, match="ignored_labels is 'TOP', expected a collection"):
        bracket_scores([TREE], [TREE], ignored_labels="TOP")
    with pytest.raises(ValueError, match="ignore, sentence 0, word 2: expected True or False"):
        attachment_scores([[2, 0]], [[2, 0]], ignore=[[True, "PUNCT"]])
    with pytest.raises(ValueError, match="2 labels in y_true, 1 in ignore"):
        attachment_scores([[2, 0]], [[2, 0]], ignore=[[True]])
    with pytest.raises(ValueError, match="a different name for each of 3 columns"):
        set_scores(TRUE, FOUND, labels=["a", "b"])
    with pytest.raises(ValueError, match="different columns"):
        set_scores(pd.DataFrame(TRUE), pd.DataFrame(FOUND)[[2, 1, 0]])


def _matcher():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 3, 3, 2)), [rng.permutation(3) for _ in range(6)]
    return mm.SetMatcher(random_state=0).fit(X, y), X, y


def _labeler():
    X = np.random.default_rng(0).normal(size=(2, 12, 3))
    y = (X[:, :, 0] > 0).astype(int).T
    return mm.TreeLabeler(random_state=0).fit(list(X), y), list(X), y


def _aligner():
    X, y = [("ACGT", "AGT"), ("TCGA", "TGA")], [("ACGT", "A-GT"), ("TCGA", "T-GA")]
    return mm.SequenceAligner(mode="global", random_state=0).fit(X, y), X, y


def _parser():
    X = [[("the", "D"), ("cat", "N"), ("sleeps", "V")], [("dogs", "N"), ("bark", "V")]]
    y = [[(2, "det"), (3, "subj"), (0, "root")], [(2, "subj"), (0, "root")]]
    return mm.DependencyParser(hash_bits=8, labeled=True, random_state=0).fit(X, y), X, y


def _classifier(y=(0, 1, 2) * 4):
    X = np.random.default_rng(0).normal(size=(12, 3))
    return mm.MulticlassSVM(random_state=0).fit(X, list(y)), X, np.array(y)


def _measured():
    X = np.random.default_rng(0).normal(size=(12, 3))
    y = (X[:, 0] > 0).astype(int)
    return mm.PerformanceSVM(measure="f1", random_state=0).fit(X, y), X, y


def _multilabel():
    X = np.random.default_rng(0).normal(size=(12, 3))
    Y = (X > 0).astype(int)
    return mm.MultilabelSVM(random_state=0).fit(X, Y), X, Y


@pytest.mark.parametrize("make", [_matcher, _labeler, _aligner, _parser])
def test_weights_of_scores_are_checked(make):
    model, X, y = make()
    n = len(y)
    assert model.score(X, y, np.full(n, 2.0)) == pytest.approx(model.score(X, y))
    for weights, message in [
        (np.full(n, -1.0), r"sample_weight\[0\] is -1.0; weights must be finite and >= 0"),
        (np.full(n, NAN), r"sample_weight\[0\] is nan"),
        (np.ones(n + 1), "sample_weight must have shape"),
        (np.zeros(n), "sample_weight is 0 for all examples"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.score(X, y, weights)


@pytest.mark.parametrize(
    ("make", "change", "message"),
    [
        (
            _matcher,
            lambda y: [own.astype(str) for own in y],
            "expected as many numbers of partners",
        ),
        (_matcher, lambda y: [[0, 0, 0]] * len(y), "right item 0 is the partner of several items"),
        (_aligner, lambda y: [[[9, 9]], y[1]], "alignment 0 has a position outside its strings"),
        (_aligner, lambda y: [("AAAA", "A-GT"), y[1]], r"y\[0\] shows other sequences"),
        (_parser, lambda y: [[h for h, _ in own] for own in y], "expected a pair .head, label."),
        (_measured, lambda y: y.astype(str), r"y\[0\] is '.', which is not one of the classes"),
        (_measured, lambda y: 2 * y - 1, "is -1, which is not one of the classes"),
        (_multilabel, lambda y: y.astype(str), "y must be 0 and 1, got an array of <U"),
        (_multilabel, lambda y: y[:, :2], "y has 2 labels, the model 3"),
        (_multilabel, lambda y: 0.5 * y, "is 0.5; expected 0 or 1"),
    ],
)
def test_score_and_report_refuse_the_same(make, change, message):
    model, X, y = make()
    for judge in (model.score, model.report):
        with pytest.raises(ValueError, match=message):
            judge(X, change(y))


@pytest.mark.parametrize("make", [_labeler, _classifier])
def test_reports_never_compare_text_with_numbers(make):
    model, X, y = make()
    with pytest.raises(ValueError, match="these never match"):
        model.report(X, y.astype(str))


def test_labels_unknown_to_a_model_are_warned_of():
    model, X, y = _labeler()
    with pytest.warns(UserWarning, match="24 of 24 labels are unknown to the model"):
        assert model.score(X, y.astype(str)) == 0.0
    X, y = [["Anna", "sleeps"], ["Oslo", "waits"]] * 2, [[(0, 1, "PER")], [(0, 1, "LOC")]] * 2
    segmenter = mm.SequenceSegmenter(features=WindowFeatures(), random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="1 of .* unknown .* 'X' at sequence 3, segment 0"):
        segmenter.score(X, [*y[:3], [(0, 1, "X")]])
