"""``maxmargin predict``: labels for a file."""

from __future__ import annotations

import argparse
import io
from typing import Any

from .codes import DONE
from .options import SEPARATORS, add_reading_options
from .signals import Signals

__all__ = ["add_parser", "run"]


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "predict",
        help="label a file with a trained model",
        description="Label a file with a trained model. For tags, write its columns with the "
        "predicted label as one more; for classes, one label on each line. A file that is there "
        "already is written over with --force only.",
    )
    parser.add_argument("model", help="model file written by train")
    parser.add_argument(
        "data", help="file to label, or - for the standard input; the labels may be missing"
    )
    parser.add_argument(
        "-o", "--output", default="-", metavar="FILE", help="default -, the standard output"
    )
    parser.add_argument("--force", action="store_true", help="write over FILE")
    add_reading_options(parser, "that of the training")
    parser.set_defaults(run=run)
    return parser


def run(arguments: argparse.Namespace, signals: Signals) -> int:
    """Predict and write."""
    from ..formats import write_text_atomically
    from .data import read_model
    from .outputs import check_text_output, is_standard
    from .telling import standard_output

    to_standard = is_standard(arguments.output)
    if not to_standard:
        inputs = [arguments.model, arguments.data]
        check_text_output(arguments.output, inputs, arguments.force)
    model = read_model(arguments.model)
    predict = _predict_tags if model.task == "tag" else _predict_classes
    opened = (
        standard_output(arguments.encoding)
        if to_standard
        else write_text_atomically(arguments.output, arguments.encoding)
    )
    text = predict(model, arguments)
    signals.check()
    with opened as stream:
        stream.write(text)
    return DONE


def _predict_tags(model: Any, arguments: argparse.Namespace) -> str:
    """The columns of the file, with one more."""
    from ..formats import write_columns
    from .data import read_tokens

    tokens = read_tokens(model, arguments)
    predicted = [str(y) for ys in model.estimator.predict(tokens.inputs) for y in ys]
    separator = SEPARATORS[arguments.separator or model.separator] or " "
    text = io.StringIO()
    columns = [*tokens.columns.columns, predicted]
    write_columns(text, columns, tokens.columns.offsets, separator=separator)
    return text.getvalue()


def _predict_classes(model: Any, arguments: argparse.Namespace) -> str:
    """One label on each line."""
    from .data import read_examples

    X, _ = read_examples(model, arguments, labelled=False)
    return "".join(f"{label}\n" for label in model.estimator.predict(X).tolist())
