"""MQ2008 (LETOR 4.0): 784 queries, 15,211 documents, five folds; and a query of 100,000 documents.

Swapped pairs are those that SVM-rank reports: the share of a query's pairs, mean over all queries,
of which those without pairs count 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import maxmargin as mm
from maxmargin.core.formulation import C_from_paper
from maxmargin.formats import read_svmlight
from maxmargin.metrics import mean_swapped_pairs, ndcg, ranking_scores
from maxmargin.problems.ranking.problem import RankingLoss, RankingProblem

from ..case import Case, Contestant, Floats, Options, Outcome, Target
from ..data import data_path
from ..fresh import fresh_process
from ..peers.lambdarank import LABEL, lambdarank_scores
from ..solvers import ours

N_FEATURES, FOLDS, PLACES = 46, 5, 10
SVM_RANK = {"c": 20.0, "seconds": 0.28, "swapped": 14.8}  # on one core of the same kind
LOSSES: dict[RankingLoss, tuple[float, ...]] = {  # and the C to choose from
    "swaps": (1e-3, 1e-2, 1e-1),
    "normalized_swaps": (1e-2, 1e-1, 1.0),
    "ndcg": (1e-1, 1.0, 10.0),
    "average_precision": (1e-1, 1.0, 10.0),
}
MEASURES = {  # those of `metrics.RankingScores`
    "ndcg": "NDCG@10",
    "letor_ndcg": "NDCG@10 of LETOR 4.0",
    "average_precision": "MAP",
    "svm_rank_loss": "swapped pairs",
}


class Part(NamedTuple):
    """Documents, relevances and queries."""

    X: Floats
    y: NDArray[np.int64]
    qid: NDArray[np.int64]


@cache
def load(number: int) -> Part:
    """Part S1 to S5."""
    data = read_svmlight(data_path(f"ranking/mq2008_S{number}.svm.gz"), N_FEATURES)
    assert data.qid is not None
    return Part(data.X.toarray(), data.y, data.qid)


def joined(*numbers: int) -> Part:
    """Several parts as one, counted in a circle."""
    parts = [load((number - 1) % FOLDS + 1) for number in numbers]
    return Part(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


Scorer = Callable[[Part, Part, Part], Floats]  # train, validation, test -> scores of the last


def rank_svm_scores(loss: RankingLoss, train: Part, validation: Part, test: Part) -> Floats:
    """Scores of RankSVM, with the C that has the best NDCG@10 on the validation part."""
    found = []
    for C in LOSSES[loss]:
        k = PLACES if loss == "ndcg" else None
        model = mm.RankSVM(C=C, loss=loss, k=k, random_state=0)
        model.fit(train.X, train.y, qid=train.qid)
        reached = ndcg(validation.y, model.predict(validation.X), validation.qid, k=PLACES)
        found.append((reached, C, model))
    return max(found, key=lambda entry: entry[:2])[2].predict(test.X)


def least_squares_scores(train: Part, validation: Part, test: Part) -> Floats:
    """Scores of a regression on the relevance; the queries are not looked at."""

    def with_constant(X: Floats) -> Floats:
        return np.hstack([X, np.ones((len(X), 1))])

    weights = np.linalg.lstsq(with_constant(train.X), train.y, rcond=None)[0]
    scores: Floats = with_constant(test.X) @ weights
    return scores


def cross_validated(label: str, scorer: Scorer, n_folds: int) -> Contestant:
    """Test scores in per cent, mean over the folds of LETOR."""

    def run() -> Outcome:
        found = []
        for fold in range(1, n_folds + 1):
            test = joined(fold + 4)
            scores = scorer(joined(fold, fold + 1, fold + 2), joined(fold + 3), test)
            found.append(ranking_scores(test.y, scores, test.qid, k=PLACES))
        means = {name: [getattr(one, name) for one in found] for name in MEASURES}
        return Outcome({name: 100.0 * float(np.mean(values)) for name, values in means.items()})

    return Contestant(label, run, once=True)


def cases(options: Options) -> Iterator[Case]:
    """Five folds beside peers; SVM-rank's time and test error; one very long query."""
    yield _like_svm_rank(options)
    n_folds = 1 if options.quick else FOLDS
    scorers: dict[str, Scorer] = {
        f"RankSVM, {loss}": partial(rank_svm_scores, loss) for loss in LOSSES
    }
    if options.peers:
        scorers |= {"least squares": least_squares_scores, LABEL: lambdarank_scores}
    yield Case(
        "MQ2008, test parts of the five folds",
        [cross_validated(label, scorer, n_folds) for label, scorer in scorers.items()],
        [
            Target(f"{what}: {label}", label, measure, unit="%")
            for measure, what in MEASURES.items()
            for label in scorers
        ]
        + [Target(f"time: {label}", label, "cpu", unit="s") for label in scorers],
    )
    name = "large-query"
    yield Case(
        "one query of 100,000 documents, 46 features, 5 grades, relative gap 1 %",
        [fresh_process(name, options.quick)],
        [
            Target("time", name, "fit_cpu", unit="s"),
            Target("pairs in the right order", name, "right", unit="%"),
            Target("memory beyond the documents'", name, "extra_mb", "documents: 35 MB", "MB"),
        ],
    )


def _like_svm_rank(options: Options) -> Case:
    """Train on S1-S3 with SVM-rank's c, which is divided by the number of queries."""
    train, test = joined(1, 2, 3), joined(5)
    offsets = np.concatenate([[0], np.flatnonzero(np.diff(train.qid)) + 1, [len(train.qid)]])
    n_queries = len(offsets) - 1

    def problem(limit: int | None = None) -> RankingProblem:
        kept = offsets if limit is None else offsets[: limit + 1]
        end = int(kept[-1])
        return RankingProblem(train.X[:end], train.y[:end], kept)

    C = C_from_paper(SVM_RANK["c"], n_queries, "joachims")
    names = options.of_ours(["auto", "one_slack"])

    def tested(solver: str) -> Contestant:
        contestant = ours(solver, problem, C, tol=1e-3)

        def run() -> Outcome:
            outcome = contestant.run()
            assert outcome.w is not None
            swapped = mean_swapped_pairs(test.y, test.X @ outcome.w, test.qid, empty=0.0)
            outcome.measures["swapped"] = 100.0 * swapped
            return outcome

        return Contestant(solver, run, contestant.prepare)

    targets = []
    for name in names:
        seconds, swapped = SVM_RANK["seconds"], SVM_RANK["swapped"]
        targets += [
            Target(f"time of {name}", name, "cpu", f"SVM-rank: {seconds} s", "s", at_most=seconds),
            Target(f"passes of {name}", name, "passes"),
            Target(f"primal value of {name}", name, "primal"),
            Target(
                f"swapped pairs on S5, {name}",
                name,
                "swapped",
                f"SVM-rank: {swapped} %",
                "%",
                at_most=swapped + 0.3,
            ),
        ]
    title = f"MQ2008 S1-S3, {n_queries} queries, c = {SVM_RANK['c']:g} of SVM-rank, 0.1 % gap"
    return Case(title, [tested(name) for name in names], targets, problem, C)
