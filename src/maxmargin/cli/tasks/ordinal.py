"""Grades of the lines of svmlight files."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from ..console import UsageError
from ..task import Task

if TYPE_CHECKING:
    from ...formats.opening import Source
    from ..evaluation import Evaluation
    from ..files import Model
    from ..training import Examples, Plan, Training

__all__ = ["TASK"]


class OrdinalTask(Task):
    """Grades of the lines of svmlight files."""

    name = "ordinal"
    reads = ("SVMLIGHT",)
    expects = "svmlight, a grade and index:value pairs on each line"
    description = (
        "Chooses one of several ordered grades for each row. Reads svmlight files with a grade "
        "first on each line: a whole number, or one of the words in --grades."
    )
    writes = "one grade on each line"
    scores = (
        "mean absolute error, accuracy, quadratically weighted kappa, and precision, recall and "
        "F1 of every grade"
    )
    losses = ("absolute", "pairs")
    unit = "line"
    answers = ("scores",)
    reads_unlabelled = ("UNLABELLED_SVMLIGHT",)
    options = ("grades",)

    def plan(self, arguments: argparse.Namespace) -> Plan:
        """How to train."""
        from ..training import Plan

        names = arguments.grades.split(",") if arguments.grades is not None else []
        if arguments.grades is not None and (len(set(names)) < max(len(names), 2) or "" in names):
            raise UsageError(
                "--grades must be at least 2 different names, separated by commas, from the "
                f"lowest grade to the highest, got {arguments.grades!r:.60}"
            )
        return Plan([], partial(_make, arguments, names))

    def predict(self, model: Model, source: Source, arguments: argparse.Namespace) -> str:
        """One grade on each line; with --scores, the score that the thresholds cut into grades."""
        from ..evaluation import written_score
        from ..rows import read_rows

        X = read_rows(model, source, arguments).X
        lines = [str(grade) for grade in model.estimator.predict(X).tolist()]
        if arguments.scores:
            scores = model.estimator.linear_score(X).tolist()
            lines = [f"{line} {written_score(s)}" for line, s in zip(lines, scores, strict=True)]
        return "".join(f"{line}\n" for line in lines)

    def evaluate(self, model: Model, arguments: argparse.Namespace) -> Evaluation:
        """Scores of grades, and tables of them."""
        import numpy as np

        from ...metrics import grade_scores, label_scores
        from ...metrics.tallies import tally_of_grades
        from ..evaluation import Evaluation, as_json, confusions, error_lines
        from ..rows import read_labelled_rows

        source, data = read_labelled_rows(model, arguments)
        grades = model.estimator.classes_.tolist()
        _check_known(source, arguments, data.y, grades, "the model")
        gold, predicted = data.y.tolist(), model.estimator.predict(data.X).tolist()
        scores = grade_scores(gold, predicted, grades)
        each = label_scores([gold], [predicted])
        report = {
            "examples": len(gold),
            "mean_absolute_error": scores.mean_absolute_error,
            "accuracy": scores.accuracy,
            "within_one": scores.within_one,
            "kappa": None if np.isnan(scores.kappa) else scores.kappa,
            "unknown_labels": {},
            "confusions": confusions(gold, predicted),
            "labels": as_json(each.per_label),
        }
        text = f"{len(gold)} examples\n\n{scores}\n\n{each}"
        text = "\n".join([text, *error_lines(report)])
        return Evaluation(report, text, tally_of_grades(gold, predicted, grades))

    def examples(self, model: Model, arguments: argparse.Namespace) -> Examples:
        """A labelled file for a model."""
        from ..rows import read_labelled_rows
        from ..training import Examples

        source, data = read_labelled_rows(model, arguments)
        _check_known(source, arguments, data.y, model.estimator.classes_.tolist(), "the model")
        return Examples(data.X, data.y)


TASK = OrdinalTask()


def _make(arguments: argparse.Namespace, names: list[str]) -> Training:
    """A model of grades, to be trained on an svmlight file."""
    import numpy as np

    from ...estimators.tabular.ordinal import OrdinalSVM
    from ...formats.svmlight import labels_as_array
    from ..rows import read_classes, read_training_rows
    from ..training import Examples, Training, say, shared_parameters

    if names:
        source, data = read_training_rows(arguments, TASK)
        grades = labels_as_array(names)
        _check_known(source, arguments, data.y, grades.tolist(), "--grades")
    else:
        source, data = read_classes(arguments, TASK, "grades")
        if data.y.dtype.kind not in "iu":
            raise ValueError(
                f"{source}: the grades are words, such as {str(data.y[0])!r:.40}; give their "
                "order, as in --grades low,medium,high"
            )
        grades = np.unique(data.y)
    say(
        arguments,
        f"{data.X.shape[0]} examples, {data.X.shape[1]} features, {len(grades)} grades",
    )
    estimator = OrdinalSVM(
        grades=grades.tolist() if names else None, **shared_parameters(arguments, TASK)
    )
    return Training(estimator, Examples(data.X, data.y))


def _check_known(
    source: Source, arguments: argparse.Namespace, y: Any, grades: list[Any], who: str
) -> None:
    """Raise ValueError that names the line of the first grade that is not known."""
    from ..rows import line_of

    known = set(grades)
    for i, grade in enumerate(y.tolist()):
        if grade not in known:
            listed = ", ".join(map(str, grades[:10])) + (", ..." if len(grades) > 10 else "")
            where = line_of(source, arguments, i)
            raise ValueError(
                f"{where}: the grade {grade!r:.40} is not one of those of {who}: {listed}"
            )
