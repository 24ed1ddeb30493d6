"""``maxmargin evaluate``: how good a model is on a labelled file."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from typing import Any

from .codes import DONE
from .options import add_reading_options
from .signals import Signals
from .telling import warn

__all__ = ["add_parser", "run"]

N_CONFUSIONS = 10  # most frequent confusions to list
N_UNKNOWN = 10  # unknown labels to list


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "evaluate",
        help="judge a model on a labelled file",
        description="Judge a model on a labelled file: accuracy, the most frequent confusions, and "
        "precision, recall and F1 of every label and, for labels such as B-NP, I-NP and O, of the "
        "chunks.",
    )
    parser.add_argument("model", help="model file written by train")
    parser.add_argument("data", help="labelled file, or - for the standard input")
    parser.add_argument("--json", action="store_true", help="write JSON")
    add_reading_options(parser, "that of the training")
    parser.set_defaults(run=run)
    return parser


def run(arguments: argparse.Namespace, signals: Signals) -> int:
    """Predict, compare and report."""
    from .data import read_model
    from .telling import write_report

    model = read_model(arguments.model)
    judge = _judge_tags if model.task == "tag" else _judge_classes
    report, tables = judge(model, arguments)
    text = "\n".join([tables, *_lines(report)])
    write_report(json.dumps(report, indent=2) if arguments.json else text)
    _warn_of_strangers(model, report)
    return DONE


def _warn_of_strangers(model: Any, report: dict[str, Any]) -> None:
    """Say that the file is of other labels altogether, which its scores might hide."""
    n_labels = report["tokens"] if report["task"] == "tag" else report["examples"]
    if sum(report["unknown_labels"].values()) < n_labels:
        return
    known = [str(label) for label in model.estimator.classes_.tolist()]
    shown = ", ".join(known[:5]) + (", ..." if len(known) > 5 else "")
    warn(
        f"the model knows none of the labels of this file, so that all count as wrong; it was "
        f"trained on {shown}"
    )


def _judge_tags(model: Any, arguments: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Scores of a tagger, and tables of them."""
    from ..metrics import (
        are_chunk_tags,
        chunk_scores,
        label_scores,
        sequence_accuracy,
        tagging_report,
    )
    from .data import read_tokens

    tokens = read_tokens(model, arguments)
    if tokens.labels is None:
        raise ValueError(
            f"{tokens.columns.source}: no column of labels, expected {model.n_columns} columns"
        )
    known = {str(label) for label in model.estimator.classes_.tolist()}
    truth = tokens.labels
    predicted = [[str(y) for y in ys] for ys in model.estimator.predict(tokens.inputs)]
    right = [y for ys in truth for y in ys]
    labels = label_scores(truth, predicted)
    report: dict[str, Any] = {
        "task": "tag",
        "sequences": tokens.columns.n_sequences,
        "tokens": tokens.columns.n_tokens,
        "accuracy": labels.accuracy,
        "sequence_accuracy": sequence_accuracy(truth, predicted),
        "unknown_labels": dict(Counter(y for y in right if y not in known)),
        "confusions": _confusions(right, [y for ys in predicted for y in ys]),
        "labels": _plain(labels.per_label),
    }
    if are_chunk_tags({*known, *right}):
        scores = chunk_scores(truth, predicted)
        report["chunks"] = {
            "precision": scores.precision,
            "recall": scores.recall,
            "f1": scores.f1,
            "per_type": _plain(scores.per_type),
        }
    return report, tagging_report(truth, predicted)


def _judge_classes(model: Any, arguments: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Scores of a classifier, and a table of them."""
    from ..metrics import label_scores
    from .data import read_examples

    X, y = read_examples(model, arguments, labelled=True)
    truth, predicted = y.tolist(), model.estimator.predict(X).tolist()
    known = set(model.estimator.classes_.tolist())
    errors = sum(a != b for a, b in zip(truth, predicted, strict=True))
    scores = label_scores([truth], [predicted])
    report = {
        "task": "multiclass",
        "examples": len(truth),
        "errors": errors,
        "accuracy": scores.accuracy,
        "unknown_labels": dict(Counter(str(y) for y in truth if y not in known)),
        "confusions": _confusions(truth, predicted),
        "labels": _plain(scores.per_label),
    }
    head = f"{len(truth)} examples, {errors} errors\naccuracy  {100 * scores.accuracy:6.2f} %"
    return report, f"{head}\n\n{scores}"


def _plain(each: dict[Any, Any]) -> dict[str, dict[str, Any]]:
    """Scores of labels or types as they can be written to JSON."""
    return {str(name): scores._asdict() for name, scores in each.items()}


def _confusions(truth: list[Any], predicted: list[Any]) -> list[dict[str, Any]]:
    """The most frequent errors."""
    counts = Counter((a, b) for a, b in zip(truth, predicted, strict=True) if a != b)
    return [
        {"true": a, "predicted": b, "count": count}
        for (a, b), count in counts.most_common(N_CONFUSIONS)
    ]


def _lines(report: dict[str, Any]) -> list[str]:
    """Errors and unknown labels, for people."""
    lines = []
    if report["confusions"]:
        lines += ["", "most frequent errors (true, predicted, number)"]
        for item in report["confusions"]:
            lines.append(f"  {item['true']!s:<12}{item['predicted']!s:<12}{item['count']:>8}")
    unknown = Counter(report["unknown_labels"])
    for label, count in unknown.most_common(N_UNKNOWN):
        lines.append(f"label {label!r} is unknown to the model: {count} counted as wrong")
    if len(unknown) > N_UNKNOWN:
        rest = sum(unknown.values()) - sum(n for _, n in unknown.most_common(N_UNKNOWN))
        lines.append(f"{len(unknown) - N_UNKNOWN} more labels are unknown: {rest} counted as wrong")
    return lines
