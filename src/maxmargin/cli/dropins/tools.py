"""The tools of SVM-struct that there are drop-ins for; light, like `options`."""

from __future__ import annotations

from .options import Option, classify_options, learn_options, non_negative_number
from .structs import StructTool

__all__ = ["TOOLS"]

_BEAM = Option("--b", "beam", note="is a beam; the search here is exact, and needs none")

HMM = StructTool(
    "svm-hmm",
    "svm_hmm",
    "TAG qid:SEQUENCE INDEX:VALUE ... # comment",
    "the tag of each line",
    (
        *learn_options(0.1, {0: "a sequence is right or wrong", 1: "number of wrong tags"}, 1),
        Option("--t", "order", "order of transitions (default 1)", int, 1, (0, 1, 2, 3)),
        Option("--e", "emissions", "order of emissions (default 0)", int, 0, (0, 1)),
        _BEAM,
    ),
    (*classify_options(), _BEAM),
)
MULTICLASS = StructTool(
    "svm-multiclass",
    "svm_multiclass",
    "CLASS INDEX:VALUE ... # comment",
    "the class of each line, and the scores of all classes",
    learn_options(0.1, {0: "100 for a wrong class", 1: "squared difference of classes"}, 0),
)
_SPARSE = "is of sparse kernel training, and has no effect here"

PERF = StructTool(
    "svm-perf",
    "svm_perf",
    "+1 or -1 INDEX:VALUE ... # comment",
    "the score of each line, positive ones for the class +1",
    (
        *learn_options(
            0.1,
            {
                0: "any error (refused)",
                1: "F1",
                2: "error rate",
                3: "break-even point",
                4: "precision at k",
                5: "recall at k",
                10: "ROC area",
            },
            2,
        ),
        Option("--b", "bias", "value of a constant feature (default 1)", non_negative_number, 1.0),
        Option(
            "--p",
            "fraction",
            "k as a share of the positive rows (0, the default: 0.5 for -l 4, 2 for -l 5)",
            non_negative_number,
            0.0,
        ),
        Option("--t", "basis", note=_SPARSE),
        Option("--i", "preimages", note=_SPARSE),
        Option("--k", "basis_size", note=_SPARSE),
        Option("--r", "restarts", note=_SPARSE),
        Option("--s", "shrinking", note=_SPARSE),
        Option("--f", "basis_file", type=str, note=_SPARSE),
    ),
)
RANK = StructTool(
    "svm-rank",
    "svm_rank",
    "RELEVANCE qid:QUERY INDEX:VALUE ... # comment",
    "the score of each line, larger ones ranked first",
    learn_options(0.001, {1: "swapped pairs of a query", 2: "share of swapped pairs"}, 1),
)

TOOLS = (HMM, MULTICLASS, PERF, RANK)
