"""Classes, sets of labels and grades of the lines of svmlight files."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..console import UsageError
from ..task import Task

if TYPE_CHECKING:
    from ...formats.opening import Source
    from ...utils.types import Ints
    from ..evaluation import Evaluation
    from ..files import Model
    from ..training import Examples, Plan, Training

__all__ = ["MULTICLASS", "MULTILABEL", "ORDINAL"]


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


MULTICLASS = MulticlassTask()


class MultilabelTask(Task):
    """Sets of labels of the lines of svmlight files."""

    name = "multilabel"
    reads = ("MULTILABEL", "SVMLIGHT")
    expects = "svmlight, labels between commas and index:value pairs on each line"
    description = (
        "Chooses any number of labels for each row. Reads svmlight files with labels, separated "
        "by commas, before the pairs of a line, or none: 1,3,7 2:0.5 9:1."
    )
    writes = "the labels of each row on a line, separated by commas"
    scores = (
        "fraction of rows whose labels are all right, Hamming loss, mean F1 of rows, micro and "
        "macro averages, and precision, recall and F1 of every label"
    )
    losses = ("hamming", "f1", "zero_one")
    unit = "line"
    answers = ("scores",)
    reads_unlabelled = ("UNLABELLED_SVMLIGHT",)
    options = ("fit_intercept", "edges")

    def make(self, arguments: argparse.Namespace) -> Training:
        """A classifier, to be trained on an svmlight file with any number of labels on a line."""
        from ...estimators.tabular.multilabel import MultilabelSVM
        from ..rows import read_training_rows
        from ..training import Examples, Training, say, shared_parameters

        source, data = read_training_rows(arguments, self, multilabel=True)
        labels = sorted({label for own in data.y for label in own})
        if not labels:
            raise ValueError(
                f"{source}: no labels found, expected some before the index:value pairs"
            )
        indicators = _indicators(data.y, labels)
        shape = f"{data.X.shape[0]} examples, {data.X.shape[1]} features"
        say(
            arguments, f"{shape}, {len(labels)} labels, {indicators.sum(axis=1).mean():.3g} of each"
        )
        estimator = MultilabelSVM(
            edges=arguments.edges,
            **shared_parameters(arguments, self),
        )
        return Training(estimator, Examples(data.X, indicators), {"labels": labels})

    def load_schema(self, path: str, estimator: Any, extra: dict[str, Any]) -> list[Any]:
        """The names of the labels; without any, numbers."""
        labels = extra.get("labels", estimator.classes_.tolist())
        n_labels = len(estimator.classes_)
        if not isinstance(labels, list) or len(set(map(str, labels))) != n_labels:
            raise ValueError(
                f"{path}: {n_labels} labels, but the names of labels are {labels!r:.60}"
            )
        return labels

    def predict(self, model: Model, source: Source, arguments: argparse.Namespace) -> str:
        """Labels between commas on each line; with --scores, all labels with their scores."""
        from ..evaluation import pairs_of_scores
        from ..rows import read_rows

        X = read_rows(model, source, arguments, multilabel=True).X
        if arguments.scores:
            if not hasattr(model.estimator, "decision_function"):
                raise ValueError(
                    f"{model.path}: a model with --edges has no scores of single labels; leave out "
                    "--scores"
                )
            rows = model.estimator.decision_function(X).tolist()
            pairs = (pairs_of_scores(zip(model.files, row, strict=True)) for row in rows)
            return "".join(f"{text}\n" for text in pairs)
        return "".join(f"{','.join(map(str, own))}\n" for own in _predicted(model, X))

    def evaluate(self, model: Model, arguments: argparse.Namespace) -> Evaluation:
        """Scores of sets of labels, and a table of them."""
        from ...metrics import set_scores
        from ...metrics.tallies import tally_of_sets
        from ..evaluation import Evaluation, as_json, count_unknown, error_lines
        from ..rows import read_labelled_rows

        _, data = read_labelled_rows(model, arguments, multilabel=True)
        predicted = _predicted(model, data.X)
        scores = set_scores(data.y, predicted, labels=model.files)
        given = [label for own in data.y for label in own]
        report = {
            "examples": len(data.y),
            "subset_accuracy": scores.subset_accuracy,
            "hamming_loss": scores.hamming_loss,
            "example_f1": scores.example_f1,
            "micro": scores.micro._asdict(),
            "macro": scores.macro._asdict(),
            "unknown_labels": count_unknown(given, set(model.files)),
            "confusions": [],
            "labels": as_json(scores.per_label),
        }
        head = f"{len(data.y)} examples, {len(given)} labels"
        text = "\n".join([f"{head}\n\n{scores}", *error_lines(report)])
        return Evaluation(report, text, tally_of_sets(data.y, predicted, len(model.files)))

    def examples(self, model: Model, arguments: argparse.Namespace) -> Examples:
        """A labelled file for a model."""
        from ..rows import read_labelled_rows
        from ..training import Examples

        _, data = read_labelled_rows(model, arguments, multilabel=True)
        return Examples(data.X, _indicators(data.y, model.files))


MULTILABEL = MultilabelTask()


def _indicators(sets: Sequence[Collection[Any]], labels: list[Any]) -> Ints:
    """A column of 0 and 1 for each label; labels that are not listed are left out."""
    import numpy as np

    number = {label: j for j, label in enumerate(labels)}
    indicators = np.zeros((len(sets), len(labels)), dtype=np.int64)
    for row, own in zip(indicators, sets, strict=True):
        row[[number[label] for label in own if label in number]] = 1
    return indicators


def _predicted(model: Model, X: Any) -> list[list[Any]]:
    """Labels of each row."""
    import numpy as np

    found = model.estimator.predict(X)
    dense = found.toarray() if hasattr(found, "toarray") else found
    return [[model.files[j] for j in np.flatnonzero(row).tolist()] for row in dense]


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
        return Plan([], partial(_make_grader, arguments, names))

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


ORDINAL = OrdinalTask()


def _make_grader(arguments: argparse.Namespace, names: list[str]) -> Training:
    """A model of grades, to be trained on an svmlight file."""
    import numpy as np

    from ...estimators.tabular.ordinal import OrdinalSVM
    from ...formats.svmlight import labels_as_array
    from ..rows import read_classes, read_training_rows
    from ..training import Examples, Training, say, shared_parameters

    if names:
        source, data = read_training_rows(arguments, ORDINAL)
        grades = labels_as_array(names)
        _check_known(source, arguments, data.y, grades.tolist(), "--grades")
    else:
        source, data = read_classes(arguments, ORDINAL, "grades")
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
        grades=grades.tolist() if names else None, **shared_parameters(arguments, ORDINAL)
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
