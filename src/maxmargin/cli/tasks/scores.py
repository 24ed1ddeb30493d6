"""Scores of the lines of svmlight files: rankings of queries, classes for a measure."""

from __future__ import annotations

import argparse
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...utils.defaults import MEASURE_TOL
from ..console import UsageError
from ..task import Task

if TYPE_CHECKING:
    from ...formats import SvmlightData
    from ...formats.opening import Source
    from ...metrics.tallies import Tally
    from ...problems.measures.measure import Measure
    from ...utils.types import Floats
    from ..evaluation import Evaluation
    from ..files import Model
    from ..training import Examples, Plan, Training

__all__ = ["MEASURE", "RANK"]

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
        return Plan([], partial(_make_ranker, arguments))

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


RANK = RankTask()


def _make_ranker(arguments: argparse.Namespace) -> Training:
    """A ranker, to be trained on documents with relevances."""
    import numpy as np

    from ...estimators.tabular.ranking import RankSVM
    from ..rows import read_training_rows
    from ..training import Examples, Training, say, shared_parameters

    source, data = read_training_rows(arguments, RANK, queries=True)
    why = "but --loss ndcg needs relevances >= 0" if arguments.loss == "ndcg" else ""
    relevance = _relevance(source, arguments, data, why)
    n_queries = len(np.unique(np.asarray(data.qid)))
    say(
        arguments,
        f"{data.X.shape[0]} documents, {n_queries} queries, {data.X.shape[1]} features",
    )
    estimator = RankSVM(k=arguments.k, **shared_parameters(arguments, RANK))

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


#: Measures that are reported whatever a model was trained for, with the names of their scores.
REPORTED = {
    "error": "accuracy",
    "f1": "f1",
    "prbep": "prbep",
    "roc_auc": "roc_auc",
    "average_precision": "average_precision",
}


class MeasureTask(Task):
    """Two classes of the lines of svmlight files, for a measure of the whole file."""

    name = "measure"
    reads = ("SVMLIGHT",)
    expects = "svmlight, one of two classes and index:value pairs on each line"
    description = (
        "Separates two classes so that a measure of the whole file, such as F1 or ROC AUC, is "
        "best (--measure). Reads svmlight files with two labels, of which the larger is the "
        "positive class."
    )
    writes = "one class on each line; a score for measures of rankings"
    scores = (
        "the measure trained for, accuracy, precision, recall, F1, precision-recall break-even "
        "point, area under the ROC curve and average precision"
    )
    losses = ()
    unit = "line"
    answers = ("scores",)
    reads_unlabelled = ("UNLABELLED_SVMLIGHT",)
    options = ("fit_intercept", "measure", "k", "beta", "floor")
    tol = MEASURE_TOL
    option_help = MappingProxyType(
        {"k": "number of rows that the measures precision_at_k and recall_at_k label positive"}
    )

    def plan(self, arguments: argparse.Namespace) -> Plan:
        """How to train."""
        from ...problems.measures.measure import Measure
        from ..training import Plan

        beta = 1.0 if arguments.beta is None else arguments.beta
        measure = Measure(arguments.measure or "error", beta, arguments.k, arguments.floor)
        return Plan([], partial(_make_classifier, arguments, measure))

    def load_schema(self, path: str, estimator: Any, extra: dict[str, Any]) -> Measure:
        """What the model was trained for."""
        from ...problems.measures.measure import Measure

        return Measure(estimator.measure, estimator.beta, estimator.k, estimator.floor)

    def predict(self, model: Model, source: Source, arguments: argparse.Namespace) -> str:
        """One class on each line; a score for measures of rankings, whose sign says nothing."""
        from ..evaluation import written_score
        from ..rows import read_rows

        scores = model.estimator.decision_function(read_rows(model, source, arguments).X).tolist()
        if not model.files.has_threshold:
            return "".join(f"{written_score(score)}\n" for score in scores)
        labels = [str(label) for label in model.estimator.classes_.tolist()]
        lines = [labels[score > 0.0] for score in scores]
        if arguments.scores:
            lines = [f"{line} {written_score(s)}" for line, s in zip(lines, scores, strict=True)]
        return "".join(f"{line}\n" for line in lines)

    def evaluate(self, model: Model, arguments: argparse.Namespace) -> Evaluation:
        """Many measures, that which training was for first."""
        from ...estimators.tabular.performance import measure_of_scores
        from ...metrics.scoring import scores_of
        from ...metrics.tallies import Tally, mean_of
        from ...problems.measures.measure import Measure
        from ...utils.tables import named_values, percent
        from ..evaluation import Evaluation
        from ..rows import line_of, read_labelled_rows

        source, data = read_labelled_rows(model, arguments)
        classes = model.estimator.classes_.tolist()
        for i, label in enumerate(data.y.tolist()):
            if label not in classes:
                where = line_of(source, arguments, i)
                raise ValueError(
                    f"{where}: the class {label!r:.40} is not one of the model's classes, {classes}"
                )
        positive = data.y == classes[1]
        if positive.all() or not positive.any():
            raise ValueError(
                f"{source}: all rows have the same class, so the measures are not defined"
            )
        scores = model.estimator.decision_function(data.X)
        counts = scores_of(
            int(positive.sum()), int((scores > 0.0).sum()), int((positive & (scores > 0.0)).sum())
        )
        trained_for = measure_of_scores(model.files, positive, scores)
        measures = {
            name: measure_of_scores(Measure(measure), positive, scores)  # type: ignore[arg-type]
            for measure, name in REPORTED.items()
        }
        measures |= {"precision": counts.precision, "recall": counts.recall}
        report = {
            "examples": len(positive),
            "positive": counts.n_true,
            "measure": model.files.name,
            "value": trained_for,
            "measures": measures,
            "unknown_labels": {},
        }
        rows = [
            (
                "rows",
                f"{len(positive)}, of them {counts.n_true} of the positive class {classes[1]}",
            ),
            ("trained for", f"{_described(model.files)}: {percent(trained_for)} %"),
        ]
        rows += [
            (name.replace("_", " "), f"{percent(value)} %") for name, value in measures.items()
        ]
        if not model.files.has_threshold:
            rows.append(("note", "accuracy, f1, precision and recall are of scores above 0"))
        # A measure of the whole file is no sum over rows: it chooses models, but has no intervals.
        tally = Tally("files", {model.files.name: mean_of([trained_for])})
        return Evaluation(report, named_values(rows), tally)

    def count(self, estimator: Any, examples: Examples) -> Tally:
        """What training was for."""
        from ...metrics.tallies import Tally, mean_of

        score = estimator.score(examples.X, examples.y)
        return Tally("files", {estimator.measure: mean_of([score])})

    def examples(self, model: Model, arguments: argparse.Namespace) -> Examples:
        """A labelled file for a model."""
        from ..rows import read_labelled_rows
        from ..training import Examples

        _, data = read_labelled_rows(model, arguments)
        return Examples(data.X, data.y)


MEASURE = MeasureTask()


def _make_classifier(arguments: argparse.Namespace, measure: Measure) -> Training:
    """A classifier, to be trained on an svmlight file."""
    import numpy as np

    from ...estimators.tabular.performance import PerformanceSVM
    from ..rows import line_of, read_classes
    from ..training import Examples, Training, say, shared_parameters

    source, data = read_classes(arguments, MEASURE)
    classes = np.unique(data.y).tolist()
    if len(classes) != 2:
        third = line_of(source, arguments, np.argmax(data.y == classes[2]))
        raise ValueError(
            f"{third}: found a third class, {classes[2]!r:.40}, but this task needs exactly "
            "2; 'maxmargin train multiclass' takes more"
        )
    n_positive = int(np.sum(data.y == classes[1]))
    shape = f"{data.X.shape[0]} rows, {data.X.shape[1]} features"
    say(arguments, f"{shape}, {n_positive} rows of the positive class {classes[1]}")
    estimator = PerformanceSVM(
        measure=measure.name,
        beta=measure.beta,
        k=measure.k,
        floor=measure.floor,
        **shared_parameters(arguments, MEASURE),
    )
    return Training(estimator, Examples(data.X, data.y))


def _described(measure: Measure) -> str:
    """A measure with what belongs to it."""
    if measure.needs_k:
        return f"{measure.name} with k = {measure.k}"
    if measure.needs_floor:
        return f"{measure.name} with at least {measure.floor}"
    return f"fbeta with beta = {measure.beta:g}" if measure.name == "fbeta" else measure.name
