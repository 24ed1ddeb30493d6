"""``maxmargin predict``: labels for a file."""

from __future__ import annotations

import argparse
import sys
from typing import Any

__all__ = ["add_parser", "run"]


def add_parser(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "predict",
        help="label a file with a trained model",
        description="Label a file with a trained model. For tags, write its columns with the "
        "predicted label as one more; for classes, one label on each line.",
    )
    parser.add_argument("model", help="model file written by train")
    parser.add_argument("data", help="file to label; the labels themselves may be missing")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: standard output")
    parser.add_argument("--encoding", default="utf-8", help="of column files")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Predict and write."""
    from ..formats import write_columns, write_text_atomically
    from .data import read_examples, read_model, read_tokens, warn_of_unknown_features

    model = read_model(arguments.model)
    if model.task == "tag":
        tokens = read_tokens(model, arguments.data, arguments.encoding)
        predicted = [str(y) for ys in model.estimator.predict(tokens.inputs) for y in ys.tolist()]
        target = arguments.output or sys.stdout
        columns = [*tokens.columns.columns, predicted]
        write_columns(target, columns, tokens.columns.offsets, encoding=arguments.encoding)
        return 0
    X, _, unknown = read_examples(model, arguments.data)
    warn_of_unknown_features(arguments.data, unknown)
    text = "".join(f"{label}\n" for label in model.estimator.predict(X).tolist())
    if arguments.output:
        with write_text_atomically(arguments.output) as stream:
            stream.write(text)
    else:
        sys.stdout.write(text)
    return 0
