"""Rankings of the documents of queries, in svmlight files with qid: fields."""

from __future__ import annotations

import argparse
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..console import UsageError
from ..task import Task

if TYPE_CHECKING:
    from ...formats import SvmlightData
    from ...formats.opening import Source
    from ...utils.types import Floats
    from ..evaluation import Evaluation
    from ..files import Model
    from ..training import Examples, Plan, Training

__all__ = ["TASK"]

RANKS = (1, 3, 5, 10)  # at which NDCG is reported


class RankTask(Task):
    """Rankings of the documents of queries, in svmlight files with qid: fields."""

    name = "rank"
    reads = ("LETOR", "QUERIES")
    expects = "svmlight with queries, a relevance, qid: and index:value pairs on each line"
    description = (
        "Ranks the documents of each query. Reads svmlight files as LETOR and SVM-rank have them: "
        "a relevance, qid:N and the index:value pairs of a document on each line."
    )
    writes = "the score of one document on each line"
    scores = "NDCG at 1, 3, 5 and 10, MAP, and the fraction of pairs in the right order"
    losses = ("swaps", "normalized_swaps", "ndcg", "average_precision")
    unit = "line"
    answers = ("scores",)
    reads_unlabelled = ("UNLABELLED_SVMLIGHT",)
    options = ("k",)
    option_help = MappingProxyType(
        {"k": "number of top ranks that --loss ndcg counts (default: all)"}
    )

    def plan(self, arguments: argparse.Namespace) -> Plan:
        """How to train."""
        from ..training import Plan

        if arguments.k is not None and arguments.loss != "ndcg":
            raise UsageError("--k of rank requires --loss ndcg")
        return Plan([], partial(_make, arguments))

    def predict(self, model: Model, source: Source, arguments: argparse.Namespace) -> str:
        """The score of each document."""
        from ..evaluation import written_score
        from ..rows import read_rows

        X = read_rows(model, source, arguments, queries=True).X
        return "".join(f"{written_score(score)}\n" for score in model.estimator.predict(X).tolist())

    def evaluate(self, model: Model, arguments: argparse.Namespace) -> Evaluation:
        """Scores of a ranking, and tables of them."""
        import numpy as np

        from ...metrics import (
            average_precision,
            letor_ndcg,
            mean_swapped_pairs,
            ndcg,
            swapped_pairs,
        )
        from ...metrics.tallies import tally_of_rankings
        from ...utils.tables import columns, named_values
        from ..evaluation import Evaluation
        from ..rows import read_labelled_rows

        source, data = read_labelled_rows(model, arguments, queries=True)
        relevance = _relevance(source, arguments, data, "but NDCG needs relevances >= 0")
        given = (relevance, model.estimator.predict(data.X), data.qid)
        at_ranks = {
            name: {str(k): _known(measure(*given, k=k)) for k in RANKS}
            for name, measure in (("ndcg", ndcg), ("letor_ndcg", letor_ndcg))
        }
        swapped = swapped_pairs(*given)
        report = {
            "documents": len(relevance),
            "queries": len(np.unique(np.asarray(data.qid))),
            **at_ranks,
            "map": _known(average_precision(*given)),
            "pair_accuracy": _known(1.0 - swapped),
            "mean_pair_accuracy": _known(1.0 - mean_swapped_pairs(*given)),
        }
        shown = [("documents", str(report["documents"])), ("queries", str(report["queries"]))]
        shown += [
            ("MAP (queries without relevant documents count 0)", _percent(report["map"])),
            ("pairs in the right order, of all", _percent(report["pair_accuracy"])),
            ("pairs in the right order, mean of queries", _percent(report["mean_pair_accuracy"])),
        ]
        rows = [("places", *map(str, RANKS))]
        rows.append(("NDCG", *map(_percent, at_ranks["ndcg"].values())))
        rows.append(("NDCG of LETOR 4.0", *map(_percent, at_ranks["letor_ndcg"].values())))
        text = f"{named_values(shown)}\n\n{columns(rows)}"
        return Evaluation(report, text, tally_of_rankings(*given))

    def examples(self, model: Model, arguments: argparse.Namespace) -> Examples:
        """A labelled file for a model."""
        from ..rows import read_labelled_rows
        from ..training import Examples

        source, data = read_labelled_rows(model, arguments, queries=True)
        relevance = _relevance(source, arguments, data, "")
        return Examples(data.X, relevance, {"qid": data.qid}, data.qid)


TASK = RankTask()


def _make(arguments: argparse.Namespace) -> Training:
    """A ranker, to be trained on documents with relevances."""
    import numpy as np

    from ...estimators.tabular.ranking import RankSVM
    from ..rows import read_training_rows
    from ..training import Examples, Training, say, shared_parameters

    source, data = read_training_rows(arguments, TASK, queries=True)
    why = "but --loss ndcg needs relevances >= 0" if arguments.loss == "ndcg" else ""
    relevance = _relevance(source, arguments, data, why)
    n_queries = len(np.unique(np.asarray(data.qid)))
    say(
        arguments,
        f"{data.X.shape[0]} documents, {n_queries} queries, {data.X.shape[1]} features",
    )
    estimator = RankSVM(k=arguments.k, **shared_parameters(arguments, TASK))

    return Training(estimator, Examples(data.X, relevance, {"qid": data.qid}, data.qid))


def _relevance(
    source: Source, arguments: argparse.Namespace, data: SvmlightData, why: str
) -> Floats:
    """Relevances, which are numbers, and not negative if there is a reason why."""
    import numpy as np

    from ..rows import line_of

    if data.y.dtype.kind not in "iuf":
        where = line_of(source, arguments, 0)
        raise ValueError(f"{where}: the relevance is {data.y.tolist()[0]!r:.40}, expected a number")
    relevance: Floats = data.y.astype(np.float64)
    if why and relevance.min() < 0.0:
        where = line_of(source, arguments, np.argmin(relevance))
        raise ValueError(f"{where}: the relevance is negative, {why}")
    return relevance


def _known(value: float) -> float | None:
    """A value that JSON can hold; None where it is not defined."""
    import numpy as np

    return None if np.isnan(value) else value


def _percent(fraction: Any) -> str:
    """A fraction in per cent, or a dash."""
    from ...utils.tables import percent

    return "-" if fraction is None else f"{percent(fraction)} %"
