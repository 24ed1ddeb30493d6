"""Sequence alignment: homologues among decoys (Tsochantaridis 2005, Table 4), and BAliBASE pairs.

Table 4: the paper's generator, SVM2 with C = 0.01, local alignment with one weight for all gaps,
ten samples of training and test examples. Beside it is the paper's generative model. The limit of 2
is on the distance from the paper's figure in standard errors, those of both means together.

What C = 0.01 means. The paper's formula for SVM2 has C / 2n. Its program SVM-struct, in a source
of July 2004, minimises 1/2 |w|^2 + C sum xi^2: every difference of features gets one more entry,
1 / sqrt(2 C), and nothing is divided by n. At the paper's epsilon = 0.1 only the program's meaning
fits the training errors that the paper reports, 0 to 2 %: with C / 2n training stops so early that
from n = 10 on more than one training example in ten is wrong. Solved to optimality, C / 2n has
5.8 % test errors at n = 40 and 4.3 % at n = 80. The column that is judged has the program's C.

What epsilon = 0.1 means. Algorithm 1 ends when no constraint is violated by 0.1 beyond its slack.
The paper says that smaller values are no better. Here they are where examples are few, so the
column that is judged is solved to optimality, and Algorithm 1 with 0.1 has a column of its own.

The paper does not say how many examples it tests on. Its standard errors vary as if they were few:
0.3 at n = 40, 0.6 at n = 80. With 30 samples instead of 10 all rows stay within 2 standard errors
but n = 40, where the error is 4.2 +- 0.3 and the paper's is 3.0 +- 0.3.

BAliBASE: pairs of rows of reference alignments; families with even numbers train, the others test,
and the other way round. BLOSUM62 with gap 11/1 is run in global and in local mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np

import maxmargin as mm
from maxmargin.core.formulation import C_from_paper
from maxmargin.datasets import make_homologues
from maxmargin.features import AMINO_ACIDS, blosum62, log_odds_scores
from maxmargin.formats import pairs_of_rows, read_fasta_groups
from maxmargin.metrics import alignment_scores
from maxmargin.solvers import NSlack

from ..case import Case, Contestant, Options, Outcome, Target
from ..data import data_path

#: Test errors in percent and their standard errors, by number of training examples.
PAPER = {
    1: (47.0, 4.6),
    2: (34.3, 4.3),
    4: (14.4, 1.4),
    10: (7.1, 1.6),
    20: (5.2, 0.5),
    40: (3.0, 0.3),
    80: (2.8, 0.6),
}
PAPER_GENERATIVE = {
    1: (74.3, 2.7),
    2: (54.5, 3.3),
    4: (28.0, 2.3),
    10: (10.2, 0.7),
    20: (3.4, 0.7),
    40: (2.3, 0.5),
    80: (1.9, 0.4),
}
N_SAMPLES, N_TEST = 10, 200
C_PAPER = 0.01
EPSILON_PAPER = 0.1
#: The paper's -0.2 is in units it does not give; this is as good as any on large samples.
GENERATIVE_GAP = -1.2
LETTERS = "ABCDEFGHIJKLMNOPQRST"
SVM2, SVM2_EARLY = "SVM2", "SVM2, epsilon = 0.1"
DIVIDED, DIVIDED_EARLY = "SVM2, C / 2n", "SVM2, C / 2n, epsilon = 0.1"
GENERATIVE = "generative"

PAIRS_PER_FAMILY = 10
BALIBASE_C = 0.003
OURS, GLOBAL, LOCAL = "learned", "BLOSUM62 11/1, global", "BLOSUM62 11/1, local"


def cases(options: Options) -> Iterator[Case]:
    """Table 4, row by row, then BAliBASE, trimmed and full-length sequences."""
    n_samples, n_test = (2, 20) if options.quick else (N_SAMPLES, N_TEST)
    for n in (1, 4) if options.quick else PAPER:
        yield _table_row(n, n_samples, n_test)
    for prefix, about in (("BBS", "trimmed"), ("BB", "full length")):
        yield _families(prefix, about, options.size(quick=4))


# ----- homologues among decoys ------------------------------------------------------------------


def _table_row(n: int, n_samples: int, n_test: int) -> Case:
    """One number of training examples."""

    algorithm_1 = NSlack(batch=1, inactive_limit=10**9, violation=EPSILON_PAPER)
    divided = C_from_paper(C_PAPER, n, "tsochantaridis", "l2")
    models = {
        SVM2: (svm(C_PAPER), PAPER[n]),
        SVM2_EARLY: (svm(C_PAPER, solver=algorithm_1), PAPER[n]),
        DIVIDED: (svm(divided), PAPER[n]),
        DIVIDED_EARLY: (svm(divided, solver=algorithm_1), PAPER[n]),
        GENERATIVE: (generative, PAPER_GENERATIVE[n]),
    }
    targets = []
    for label, (_, (mean, error)) in models.items():
        reference = f"paper: {mean} +- {error}"
        targets += [
            Target(f"test error of {label}", label, "test_error", reference, "%"),
            Target(f"its standard error ({label})", label, "standard_error", "", "%"),
            Target(f"training error of {label}", label, "train_error", unit="%"),
            Target(
                f"standard errors from the paper ({label})",
                label,
                "distance",
                at_most=2.0 if label == SVM2 else None,
            ),
        ]
    targets += [
        Target(f"constraints ({label})", label, "planes") for label in (SVM2_EARLY, DIVIDED_EARLY)
    ]
    return Case(
        f"homologues among 10 decoys, n = {n}",
        [
            Contestant(label, samples(n, n_samples, n_test, train, paper), once=True)
            for label, (train, paper) in models.items()
        ],
        targets,
    )


def svm(C: float, **parameters: Any) -> Callable[[Any], mm.HomologyRanker]:
    """Training of the paper's model."""

    def train(data: Any) -> mm.HomologyRanker:
        aligner = mm.HomologyRanker(
            C=C,
            gaps="linear",
            rescaling="none",
            slack="l2",
            random_state=0,
            **{"tol": 1e-5, **parameters},
        )
        return aligner.fit(*_as_ranking(data))

    return train


def _as_ranking(data: Any) -> tuple[list[Any], list[Any]]:
    """X and Y of the task of ranking."""
    X = list(zip(data.natives, data.candidates, strict=True))
    return X, list(zip(data.homologues, data.alignments, strict=True))


def generative(data: Any) -> mm.HomologyRanker:
    """The paper's generative model."""
    found = [c[k] for c, k in zip(data.candidates, data.homologues, strict=True)]
    pairs = list(zip(data.natives, found, strict=True))
    scores = log_odds_scores(pairs, data.alignments, LETTERS)
    return mm.HomologyRanker.from_scores(scores, LETTERS, gap_extend=GENERATIVE_GAP, gaps="linear")


def samples(
    n: int,
    n_samples: int,
    n_test: int,
    train: Callable[[Any], mm.HomologyRanker],
    paper: tuple[float, float],
) -> Callable[[], Outcome]:
    """Train on every sample, and measure on as many test samples."""

    def run() -> Outcome:
        errors, planes = [], []
        for sample in range(n_samples):
            rng = np.random.default_rng([n, sample])
            data, test = (make_homologues(size, random_state=rng) for size in (n, n_test))
            aligner = train(data)
            planes.append(aligner.result_.n_planes)
            errors.append([100.0 * (1.0 - aligner.score(*_as_ranking(d))) for d in (data, test)])
        train_error, test_error = np.mean(errors, axis=0)
        standard_error = float(np.std(errors, axis=0, ddof=1)[1] / np.sqrt(n_samples))
        distance = abs(test_error - paper[0]) / np.hypot(standard_error, paper[1])
        return Outcome(
            {
                "train_error": float(train_error),
                "test_error": float(test_error),
                "standard_error": standard_error,
                "distance": float(distance),
                "planes": float(np.mean(planes)),
            }
        )

    return run


# ----- BAliBASE ---------------------------------------------------------------------------------


def load_families(prefix: str, limit: int | None) -> dict[int, list[Any]]:
    """``(x, y, pairs)`` of some pairs of rows of each family, by the family's number."""
    families: dict[int, list[Any]] = {}
    rng = np.random.default_rng(0)
    path = data_path("protein_alignment/balibase3_rv11_rv12.afa.xz")
    for title, records in read_fasta_groups(path):
        name = title.split()[1]
        if name.rstrip("0123456789") != prefix:
            continue
        rows = [record.sequence for record in records]
        every = [pairs_of_rows(a, b) for a, b in combinations(rows, 2)]
        aligned = [example for example in every if len(example[2])]
        chosen = rng.permutation(len(aligned))[:PAIRS_PER_FAMILY]
        families[int(name.removeprefix(prefix))] = [aligned[k] for k in chosen]
    return dict(list(families.items())[:limit])


def _families(prefix: str, about: str, limit: int | None) -> Case:
    """Two folds of families."""
    families = load_families(prefix, limit)
    alphabet = AMINO_ACIDS + "X"
    table = np.zeros((21, 21))
    table[:20, :20] = blosum62()

    def blosum(mode: str) -> Callable[[Any, Any], mm.SequenceAligner]:
        return lambda X, Y: mm.SequenceAligner.from_scores(
            table, alphabet, gap_open=-11.0, gap_extend=-1.0, mode=mode
        )

    def learned(X: Any, Y: Any) -> mm.SequenceAligner:
        aligner = mm.SequenceAligner(
            C=BALIBASE_C,
            mode="global",
            symmetric=True,
            end_gaps="own",
            alphabet=alphabet,
            tol=0.02,
            random_state=0,
        )
        return aligner.fit(X, Y)

    models = {OURS: learned, GLOBAL: blosum("global"), LOCAL: blosum("local")}
    targets = [
        Target(f"pair accuracy of {label}", label, "pair_accuracy", unit="%") for label in models
    ]
    targets += [
        Target(
            f"pair accuracy: learned / {label}",
            OURS,
            "pair_accuracy",
            at_least=1.0001,
            relative_to=(label, "pair_accuracy"),
        )
        for label in (GLOBAL, LOCAL)
    ]
    targets += [Target(f"F1 of pairs of {label}", label, "f1", unit="%") for label in models]
    return Case(
        f"BAliBASE RV11 and RV12, {about}",
        [Contestant(label, _folds(families, train), once=True) for label, train in models.items()],
        targets,
    )


def _folds(families: dict[int, list[Any]], train: Callable[..., Any]) -> Callable[[], Outcome]:
    """Train on the families of one parity, test on those of the other, both ways."""

    def run() -> Outcome:
        truths, found = [], []
        for parity in (0, 1):
            parts: list[list[Any]] = [[], []]
            for number, examples in families.items():
                parts[number % 2 == parity] += examples
            (X, Y), (X_test, Y_test) = (
                ([(x, y) for x, y, _ in part], [pairs for *_, pairs in part]) for part in parts
            )
            truths += Y_test
            found += train(X, Y).align(X_test)
        scores = alignment_scores(truths, found)
        return Outcome(
            {
                "pair_accuracy": 100.0 * scores.pair_accuracy,
                "precision": 100.0 * scores.precision,
                "recall": 100.0 * scores.recall,
                "f1": 100.0 * scores.f1,
                "pairs": float(len(truths)),
            }
        )

    return run
