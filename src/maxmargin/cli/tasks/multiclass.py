"""Classes of the lines of svmlight files."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..task import Task

if TYPE_CHECKING:
    from ...formats.opening import Source
    from ..evaluation import Evaluation
    from ..files import Model
    from ..training import Examples, Training

__all__ = ["TASK"]


class MulticlassTask(Task):
    """Classes of the lines of svmlight files."""

    name = "multiclass"
    reads = ("SVMLIGHT",)
    expects = "svmlight, a label and index:value pairs on each line"
    description = (
        "Chooses one of several classes for each row. Reads svmlight files: a label and "
        "index:value pairs on each line."
    )
    writes = "one label on each line"
    scores = "accuracy, the most frequent confusions, and precision, recall and F1 of every class"
    losses = ("zero_one",)
    unit = "line"
    answers = ("k", "scores", "confidence")
    reads_unlabelled = ("UNLABELLED_SVMLIGHT",)
    options = ("fit_intercept", "probability")

    def make(self, arguments: argparse.Namespace) -> Training:
        """A classifier, to be trained on an svmlight file."""
        from ...estimators.tabular.multiclass import MulticlassSVM
        from ..rows import read_classes
        from ..training import Examples, Training, say, shared_parameters

        _, data = read_classes(arguments, self)
        say(arguments, f"{data.X.shape[0]} examples, {data.X.shape[1]} features")
        estimator = MulticlassSVM(
            probability=arguments.probability,
            **shared_parameters(arguments, self),
        )
        return Training(estimator, Examples(data.X, data.y))

    def predict(self, model: Model, source: Source, arguments: argparse.Namespace) -> str:
        """One label on each line; with --k or --scores, labels and scores, the best first."""
        from ..evaluation import confidence_of, pairs_of_scores
        from ..rows import read_rows

        X = read_rows(model, source, arguments).X
        if arguments.k or arguments.scores:
            k = arguments.k or len(model.estimator.classes_)
            ranked = model.estimator.predict_k(X, k)
            return "".join(f"{pairs_of_scores(classes)}\n" for classes in ranked)
        labels = model.estimator.predict(X).tolist()
        if not arguments.confidence:
            return "".join(f"{label}\n" for label in labels)
        sure = confidence_of(model.estimator, X, labels)
        return "".join(f"{label} {value}\n" for label, value in zip(labels, sure, strict=True))

    def evaluate(self, model: Model, arguments: argparse.Namespace) -> Evaluation:
        """Scores of a classifier, and a table of them."""
        from ...metrics import label_scores
        from ...metrics.tallies import tally_of_labels
        from ...utils.tables import percent
        from ..evaluation import Evaluation, as_json, confusions, count_unknown, error_lines
        from ..rows import read_labelled_rows

        _, data = read_labelled_rows(model, arguments)
        gold, predicted = data.y.tolist(), model.estimator.predict(data.X).tolist()
        errors = sum(a != b for a, b in zip(gold, predicted, strict=True))
        scores = label_scores([gold], [predicted])
        report = {
            "examples": len(gold),
            "errors": errors,
            "accuracy": scores.accuracy,
            "unknown_labels": count_unknown(gold, set(model.estimator.classes_.tolist())),
            "confusions": confusions(gold, predicted),
            "labels": as_json(scores.per_label),
        }
        head = f"{len(gold)} examples, {errors} errors\naccuracy  {percent(scores.accuracy)} %"
        text = "\n".join([f"{head}\n\n{scores}", *error_lines(report)])
        return Evaluation(report, text, tally_of_labels(gold, predicted))

    def examples(self, model: Model, arguments: argparse.Namespace) -> Examples:
        """A labelled file for a model."""
        from ..rows import read_labelled_rows
        from ..training import Examples

        _, data = read_labelled_rows(model, arguments)
        return Examples(data.X, data.y)


TASK = MulticlassTask()
