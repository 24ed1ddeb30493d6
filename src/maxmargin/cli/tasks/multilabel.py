"""Sets of labels of the lines of svmlight files."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from ..task import Task

if TYPE_CHECKING:
    from ...formats.opening import Source
    from ...utils.types import Ints
    from ..evaluation import Evaluation
    from ..files import Model
    from ..training import Examples, Training

__all__ = ["TASK"]


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


TASK = MultilabelTask()


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
