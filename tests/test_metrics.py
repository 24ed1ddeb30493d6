"""Chunk, token and sequence scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import find_data
from maxmargin.formats import read_columns
from maxmargin.metrics import (
    chunk_scores,
    chunks,
    hamming,
    sequence_accuracy,
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


@pytest.mark.parametrize("score", [chunk_scores, token_accuracy, sequence_accuracy, hamming])
def test_bad_lengths_are_named(score):
    with pytest.raises(ValueError, match="y_true has 1 sequences, y_pred has 2"):
        score([["O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="sequence 1 has 1 labels in y_true, 2 in y_pred"):
        score([["O"], ["O"]], [["O"], ["O", "O"]])
    with pytest.raises(ValueError, match="sequence 1 is empty"):
        score([["O"], []], [["O"], []])
    with pytest.raises(ValueError, match="sequence 0 of y_pred is 'OO'"):
        score([["O", "O"]], ["OO"])
    with pytest.raises(ValueError, match="at least one sequence"):
        score([], [])


def test_a_foreign_tag_is_named_with_its_sequence():
    with pytest.raises(ValueError, match="sequence 1: 'NN' is not a chunk tag"):
        chunk_scores([["O"], ["O"]], [["O"], ["NN"]])
    with pytest.raises(ValueError, match="sequence 0: 3 is not a chunk tag"):
        chunk_scores([[3]], [["O"]])


def test_conll2000_chunks_are_counted_right():
    y = read_columns(find_data("conll2000/test.txt.xz")).split(-1)
    scores = chunk_scores(y, y)
    assert scores[:4] == (1.0, 1.0, 1.0, 1.0)
    assert sum(kind.n_true for kind in scores.per_type.values()) == 23852
