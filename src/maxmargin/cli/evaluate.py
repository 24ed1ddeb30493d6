"""``maxmargin evaluate``: how good a model is on a labelled file."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from typing import Any

__all__ = ["add_parser", "run"]

N_CONFUSIONS = 10  # most frequent confusions to list


def add_parser(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "evaluate",
        help="judge a model on a labelled file",
        description="Judge a model on a labelled file: accuracy, the most frequent confusions and, "
        "for labels such as B-NP, I-NP and O, precision, recall and F1 of the chunks.",
    )
    parser.add_argument("model", help="model file written by train")
    parser.add_argument("data", help="labelled file")
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.add_argument("--encoding", default="utf-8", help="of column files")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Predict, compare and report."""
    from .data import read_model

    model = read_model(arguments.model)
    judge = _judge_tags if model.task == "tag" else _judge_classes
    report = judge(model, arguments)
    if arguments.json:
        print(json.dumps(report, indent=2))
    else:
        print("\n".join(_lines(report)))
    return 0


def _judge_tags(model: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    """Scores of a tagger."""
    from ..metrics import chunk_scores, sequence_accuracy, token_accuracy
    from .data import are_chunk_tags, read_tokens

    tokens = read_tokens(model, arguments.data, arguments.encoding)
    if tokens.labels is None:
        raise ValueError(
            f"{arguments.data}: no column of labels, expected {model.n_columns} columns"
        )
    known = [str(label) for label in model.estimator.classes_.tolist()]
    truth = tokens.labels
    predicted = [[str(y) for y in ys.tolist()] for ys in model.estimator.predict(tokens.inputs)]
    right = [y for ys in truth for y in ys]
    report: dict[str, Any] = {
        "task": "tag",
        "sequences": tokens.columns.n_sequences,
        "tokens": tokens.columns.n_tokens,
        "accuracy": token_accuracy(truth, predicted),
        "sequence_accuracy": sequence_accuracy(truth, predicted),
        "unknown_labels": dict(Counter(y for y in right if y not in set(known))),
        "confusions": _confusions(right, [y for ys in predicted for y in ys]),
    }
    if are_chunk_tags(sorted({*known, *right})):
        scores = chunk_scores(truth, predicted)
        report["chunks"] = {
            "precision": scores.precision,
            "recall": scores.recall,
            "f1": scores.f1,
            "per_type": {kind: s._asdict() for kind, s in scores.per_type.items()},
        }
    return report


def _judge_classes(model: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    """Scores of a classifier."""
    from .data import read_examples, warn_of_unknown_features

    X, y, unknown = read_examples(model, arguments.data)
    warn_of_unknown_features(arguments.data, unknown)
    truth, predicted = y.tolist(), model.estimator.predict(X).tolist()
    known = set(model.estimator.classes_.tolist())
    errors = sum(a != b for a, b in zip(truth, predicted, strict=True))
    return {
        "task": "multiclass",
        "examples": len(truth),
        "errors": errors,
        "accuracy": 1.0 - errors / len(truth),
        "unknown_labels": dict(Counter(str(y) for y in truth if y not in known)),
        "confusions": _confusions(truth, predicted),
    }


def _confusions(truth: list[Any], predicted: list[Any]) -> list[dict[str, Any]]:
    """The most frequent errors."""
    counts = Counter((a, b) for a, b in zip(truth, predicted, strict=True) if a != b)
    return [
        {"true": a, "predicted": b, "count": count}
        for (a, b), count in counts.most_common(N_CONFUSIONS)
    ]


def _lines(report: dict[str, Any]) -> list[str]:
    """The report for people."""
    if report["task"] == "tag":
        lines = [
            f"{report['sequences']} sequences, {report['tokens']} tokens",
            f"token accuracy     {100 * report['accuracy']:6.2f} %",
            f"sequence accuracy  {100 * report['sequence_accuracy']:6.2f} %",
        ]
    else:
        lines = [
            f"{report['examples']} examples, {report['errors']} errors",
            f"accuracy  {100 * report['accuracy']:6.2f} %",
        ]
    if "chunks" in report:
        lines += ["", f"{'chunks':<12}{'precision':>10}{'recall':>10}{'F1':>10}{'number':>10}"]
        number = sum(scores["n_true"] for scores in report["chunks"]["per_type"].values())
        lines.append(_chunk_line("all", {**report["chunks"], "n_true": number}))
        lines += [_chunk_line(kind, s) for kind, s in report["chunks"]["per_type"].items()]
    if report["confusions"]:
        lines += ["", "most frequent errors (true, predicted, number)"]
        for item in report["confusions"]:
            lines.append(f"  {item['true']!s:<12}{item['predicted']!s:<12}{item['count']:>8}")
    for label, count in report["unknown_labels"].items():
        lines.append(f"label {label!r} is unknown to the model: {count} counted as wrong")
    return lines


def _chunk_line(kind: str, scores: dict[str, Any]) -> str:
    """Scores of one type of chunk."""
    shares = "".join(f"{100 * scores[name]:>10.2f}" for name in ("precision", "recall", "f1"))
    return f"{kind:<12}{shares}{scores['n_true']:>10}"
