"""What results and scores look like when they are printed."""

import numpy as np

from maxmargin.core.objective import Certificate
from maxmargin.core.result import Progress, Result
from maxmargin.metrics import (
    alignment_scores,
    attachment_scores,
    bracket_scores,
    chunk_scores,
    label_scores,
)


def make_result(**changes):
    values = {
        "w": np.arange(1000.0),
        "primal": 9.76351234,
        "dual": 9.755,
        "converged": True,
        "status": "converged",
        "n_passes": 13.69,
        "n_oracle_calls": 99814,
        "n_cache_hits": 12,
        "n_planes": 345,
        "seconds": 1.2345,
    }
    return Result(**{**values, **changes})


def test_a_result_prints_as_a_short_table():
    assert str(make_result(history=[Progress(0.1, 3, None, 1.0, None, 3)] * 50)).splitlines() == [
        "status        converged",
        "primal        9.76351",
        "dual          9.755",
        "gap           0.00851234",
        "relative gap  0.000871852",
        "passes        13.7",
        "oracle calls  99814",
        "cache hits    12",
        "planes        345",
        "seconds       1.23",
    ]
    assert str(make_result(compile_seconds=30.0)).endswith("compiling     30.00 s more")


def test_the_repr_of_a_result_is_one_line_without_weights():
    text = repr(make_result())
    assert text == (
        "Result('converged', primal=9.76351, dual=9.755, relative_gap=0.000871852, "
        "n_passes=13.69, seconds=1.2345)"
    )


def test_a_result_without_a_certificate_says_so():
    result = make_result(primal=None, dual=None, status="max_passes")
    assert repr(result) == "Result('max_passes', n_passes=13.69, seconds=1.2345)"
    assert "gap           not certified" in str(result)
    assert "primal" not in str(result) and "None" not in str(result)


def test_progress_leaves_out_what_is_not_known():
    progress = Progress(0.123456789, 30, None, 5.0, None, 3, gap_estimate=0.25)
    assert repr(progress) == (
        "Progress(seconds=0.123457, oracle_calls=30, dual=5, planes=3, gap_estimate=0.25)"
    )


def test_a_certificate_prints_its_gap():
    assert str(Certificate(3.0, 2.5)) == "primal 3, dual 2.5, gap 0.5"


def test_chunk_scores_print_as_a_table():
    scores = chunk_scores([["B-NP", "I-NP", "B-VP"]], [["B-NP", "B-NP", "B-VP"]])
    assert str(scores).splitlines() == [
        "chunks         precision  recall      F1  number",
        "NP                  0.00    0.00    0.00       1",
        "VP                100.00  100.00  100.00       1",
        "micro average      33.33   50.00   40.00       2",
        "macro average      50.00   50.00   50.00       2",
        "",
        "token accuracy  66.67 %",
    ]
    assert repr(scores) == (
        "ChunkScores(precision=0.3333, recall=0.5000, f1=0.4000, accuracy=0.6667, 2 types)"
    )


def test_scores_without_a_single_chunk_print_too():
    assert str(chunk_scores([["O"]], [["O"]])).splitlines()[1].split() == [
        *("micro", "average", "0.00", "0.00", "0.00", "0")
    ]


def test_other_scores_print_as_tables():
    assert repr(label_scores([[1, 2]], [[1, 1]])) == "LabelScores(accuracy=0.5000, 2 labels)"
    labeled = attachment_scores([[(2, "det"), (0, "root")]], [[(2, "amod"), (0, "root")]])
    assert str(labeled).splitlines() == [
        "unlabelled attachment  100.00 %",
        "labelled attachment    50.00 %",
        "sentences right        0.00 %",
    ]
    unlabeled = attachment_scores([[0]], [[0]])
    assert [line.split("  ")[0] for line in str(unlabeled).splitlines()] == [
        "unlabelled attachment",
        "sentences right",
    ]
    aligned = alignment_scores([[[0, 0], [1, 1]]], [[[0, 0], [1, 2]]])
    assert str(aligned).splitlines()[3] == "F1 of pairs         50.00 %"
    tree = "(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))"
    assert str(bracket_scores([tree], [tree])).splitlines()[2:] == [
        "F1            100.00 %",
        "trees right   100.00 %",
        "constituents  3 true, 3 predicted",
    ]
