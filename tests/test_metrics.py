"""Chunk, token and sequence scores."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import make_scorer, precision_recall_fscore_support
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import maxmargin as mm
from conftest import find_data
from maxmargin.formats import read_columns
from maxmargin.metrics import (
    are_chunk_tags,
    chunk_f1,
    chunk_f1_scorer,
    chunk_scores,
    chunks,
    hamming,
    label_scores,
    sequence_accuracy,
    tagging_report,
    token_accuracy,
)

TAGS = ["O", *(f"{head}-{kind}" for head in "BIES" for kind in ("NP", "VP", "A-B"))]
PAIRS = st.lists(
    st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), min_size=1, max_size=12),
    min_size=1,
    max_size=5,
)


def plain_chunks(tags):
    """Token by token, with conlleval's two questions: does a chunk end, does one start?"""
    found, start = [], None
    previous_head, previous_kind = "O", ""
    for t, tag in enumerate([*tags, "O"]):
        head, _, kind = tag.partition("-")
        ended = (
            previous_head in ("E", "S")
            or (previous_head in ("B", "I") and head in ("B", "S", "O"))
            or (previous_head != "O" and previous_kind != kind)
        )
        started = (
            head in ("B", "S")
            or (previous_head in ("E", "S", "O") and head in ("E", "I"))
            or (head != "O" and previous_kind != kind)
        )
        if ended and start is not None:
            found.append((previous_kind, start, t))
            start = None
        if started:
            start = t
        previous_head, previous_kind = head, kind
    return found


@given(st.lists(st.sampled_from(TAGS), max_size=15))
def test_chunks_equal_the_plain_definition(tags):
    assert chunks(tags) == plain_chunks(tags)


@given(PAIRS)
def test_chunk_scores_equal_the_plain_definition(pairs):
    y_true = [[a for a, _ in sequence] for sequence in pairs]
    y_pred = [[b for _, b in sequence] for sequence in pairs]
    true = {(i, c) for i, tags in enumerate(y_true) for c in plain_chunks(tags)}
    predicted = {(i, c) for i, tags in enumerate(y_pred) for c in plain_chunks(tags)}
    scores = chunk_scores(y_true, y_pred)
    correct = len(true & predicted)
    assert scores.precision == pytest.approx(correct / max(len(predicted), 1))
    assert scores.recall == pytest.approx(correct / max(len(true), 1))
    assert scores.f1 == pytest.approx(2 * correct / max(len(true) + len(predicted), 1))
    flat = [a == b for sequence in pairs for a, b in sequence]
    assert scores.accuracy == pytest.approx(np.mean(flat))
    kinds = {c[0] for _, c in true | predicted}
    assert set(scores.per_type) == kinds
    for kind in kinds:
        of_true = {x for x in true if x[1][0] == kind}
        of_predicted = {x for x in predicted if x[1][0] == kind}
        found = scores.per_type[kind]
        assert found[3:] == (len(of_true), len(of_predicted), len(of_true & of_predicted))


@given(PAIRS)
def test_chunk_scores_are_those_of_seqeval(pairs):
    seqeval = pytest.importorskip("seqeval.metrics")
    y_true = [[a for a, _ in sequence] for sequence in pairs]
    y_pred = [[b for _, b in sequence] for sequence in pairs]
    scores = chunk_scores(y_true, y_pred)
    assume(scores.per_type)  # without a single chunk seqeval divides zero by zero
    report = seqeval.classification_report(y_true, y_pred, output_dict=True, zero_division=0)
    assert report["micro avg"]["f1-score"] == pytest.approx(scores.f1)
    for mine, name in zip(scores.macro, ("precision", "recall", "f1-score"), strict=True):
        assert report["macro avg"][name] == pytest.approx(mine)
    for kind, mine in scores.per_type.items():
        theirs = report[kind]
        assert (theirs["precision"], theirs["recall"]) == pytest.approx(mine[:2])
        assert (theirs["f1-score"], theirs["support"]) == pytest.approx((mine.f1, mine.n_true))


@given(PAIRS)
def test_label_scores_are_those_of_scikit_learn(pairs):
    y_true = [[a for a, _ in sequence] for sequence in pairs]
    y_pred = [[b for _, b in sequence] for sequence in pairs]
    scores = label_scores(y_true, y_pred)
    flat = [[tag for tags in y for tag in tags] for y in (y_true, y_pred)]
    labels = list(scores.per_label)
    assert labels == sorted({*flat[0], *flat[1]})
    theirs = precision_recall_fscore_support(*flat, labels=labels, zero_division=0)
    mine = np.array([s[:4] for s in scores.per_label.values()])
    np.testing.assert_allclose(mine, np.transpose(theirs))
    means = precision_recall_fscore_support(*flat, average="macro", zero_division=0)
    assert scores.macro == pytest.approx(means[:3])
    assert scores.accuracy == pytest.approx(token_accuracy(y_true, y_pred))


def test_labels_of_several_types_have_an_order():
    scores = label_scores([np.array([3, 10]), ["a"]], [[3, 3], ["a"]])
    assert list(scores.per_label) == [10, 3, "a"]
    assert list(label_scores([[10, 3]], [[3, 3]]).per_label) == [3, 10]


def test_the_report_has_chunks_where_labels_are_chunk_tags():
    y_true, y_pred = [["B-NP", "O"], ["O", "O"]], [["B-NP", "O"], ["B-NP", "O"]]
    report = tagging_report(y_true, [np.array(tags) for tags in y_pred])
    head, chunk_table, label_table = report.split("\n\n")
    assert head.splitlines()[2:] == ["token accuracy       75.00 %", "sequences all right  50.00 %"]
    assert chunk_table.splitlines()[1].split() == ["NP", "50.00", "100.00", "66.67", "1"]
    assert label_table.splitlines()[2].split() == ["O", "100.00", "66.67", "80.00", "3"]
    assert "chunks" not in tagging_report([[1, 2]], [[1, 1]])


def test_which_labels_are_chunk_tags():
    assert are_chunk_tags(["O", "B-NP", "E-NP"]) and are_chunk_tags(iter(["I-X"]))
    for labels in (["O"], ["B-NP", "NN"], [1, 2], ["S", "B-NP"], [], ["O", "S-X"]):
        assert not are_chunk_tags(labels)


@pytest.mark.parametrize("as_labels", [list, np.array])
def test_searches_by_chunk_f1(as_labels):
    X = [[["Oslo"], ["is"]], [["in"], ["Rome"]]] * 2 + [[["Oslo"], ["to"], ["Bonn"]]] * 2
    y = [as_labels(t) for t in [["B-LOC", "O"], ["O", "B-LOC"]] * 2 + [["B-LOC", "O", "B-LOC"]] * 2]
    tagger = mm.SequenceTagger(solver="sda", random_state=0, fit_intercept=True)
    expected = []
    for test, train in KFold(3).split(X):  # small parts to train on, with unknown words
        tagger.fit([X[i] for i in train], [y[i] for i in train])
        expected.append(chunk_f1([y[i] for i in test], tagger.predict([X[i] for i in test])))
    assert 0.0 < min(expected) < 1.0
    parts = [(train, test) for test, train in KFold(3).split(X)]
    for scorer in (chunk_f1_scorer, make_scorer(chunk_f1)):
        assert cross_val_score(tagger, X, y, scoring=scorer, cv=parts).tolist() == expected
    search = GridSearchCV(tagger, {"C": [0.5, 1.0]}, scoring=chunk_f1_scorer, cv=parts).fit(X, y)
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(expected))


def test_chunks_do_not_cross_sequences():
    scores = chunk_scores([["I-NP"], ["I-NP"]], [["I-NP"], ["I-NP"]])
    assert scores.per_type["NP"].n_true == 2


def test_ill_formed_and_bilou_tags():
    assert chunks(["I-NP", "I-VP", "E-VP", "I-VP"]) == [
        ("NP", 0, 1),
        ("VP", 1, 3),
        ("VP", 3, 4),
    ]
    assert chunks(["B-X", "L-X", "U-X"]) == [("X", 0, 2), ("X", 2, 3)]
    assert chunks([]) == []


def test_nothing_to_find_gives_zero():
    scores = chunk_scores([["O", "O"]], [["O", "O"]])
    assert scores == (0.0, 0.0, 0.0, 1.0, {})


def test_token_and_sequence_scores():
    y_true = [["a", "b"], ["a"], ["b", "b", "b", "b"]]
    y_pred = [["a", "b"], ["b"], ["b", "a", "b", "b"]]
    assert token_accuracy(y_true, y_pred) == pytest.approx(5 / 7)
    assert sequence_accuracy(y_true, y_pred) == pytest.approx(1 / 3)
    assert hamming(y_true, y_pred).tolist() == [0, 1, 1]
    assert hamming(y_true, y_pred, normalize=True).tolist() == [0, 1, 0.25]


def test_integer_arrays_are_labels_too():
    y_true = [np.array([1, 2]), np.array([3])]
    assert token_accuracy(y_true, [[1, 2], [4]]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "score", [chunk_scores, label_scores, tagging_report, sequence_accuracy, hamming]
)
def test_bad_lengths_are_named(score):
    with pytest.raises(ValueError, match="y_true has 1 sequences, y_pred has 2"):
        score([["O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="sequence 1 has 1 labels in y_true, 2 in y_pred"):
        score([["O"], ["O"]], [["O"], ["O", "O"]])
    with pytest.raises(ValueError, match="all sequences are empty"):
        score([[], []], [[], []])
    with pytest.raises(ValueError, match="sequence 0 of y_pred is 'OO'"):
        score([["O", "O"]], ["OO"])
    with pytest.raises(ValueError, match="y_true has no sequences, expected at least one"):
        score([], [])


def test_a_foreign_tag_is_named_with_its_sequence():
    with pytest.raises(ValueError, match="sequence 1: 'NN' is not a chunk tag"):
        chunk_scores([["O"], ["O"]], [["O"], ["NN"]])
    with pytest.raises(ValueError, match="sequence 0: 3 is not a chunk tag"):
        chunk_scores([[3]], [[3]])


def test_conll2000_chunks_are_counted_right():
    y = read_columns(find_data("conll2000/test.txt.xz")).split(-1)
    scores = chunk_scores(y, y)
    assert scores[:4] == (1.0, 1.0, 1.0, 1.0)
    assert sum(kind.n_true for kind in scores.per_type.values()) == 23852
