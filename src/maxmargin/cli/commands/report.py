"""``maxmargin report``: a page about a model, and how it does on a labelled file."""

from __future__ import annotations

import argparse
import os.path
from typing import Any

from ...jit.compiling import compiling_for
from ...registry import task_of
from ..console import DONE, Signals
from ..options import add_command, add_reading_options

__all__ = ["add_parser", "run"]

DESCRIPTION = """\
Write an HTML page about a model, which loads nothing from the network: the certificate of the
training and how it went, and the strongest weights. With --test it also has the scores on a
labelled file, with intervals and for every label, confusions, calibration, and drawings of the
worst mistakes, with the features that decided.
"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser = add_command(
        commands,
        "report",
        run,
        help="write an HTML page about a model",
        usage="%(prog)s MODEL [--test FILE] -o FILE [options; -h lists them]",
        description=DESCRIPTION,
    )
    parser.add_argument("model", metavar="MODEL", help="model file written by train")
    parser.add_argument(
        "--test",
        metavar="FILE",
        help="labelled file to score the model on, or - for standard input",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="HTML page to write")
    parser.add_argument(
        "--worst",
        choices=("rate", "margin", "count"),
        default="rate",
        help="which mistakes come first: those with the largest fraction of errors (rate, "
        "default), those whose score is furthest above that of the gold output (margin), or those "
        "with the most errors (count)",
    )
    parser.add_argument(
        "--title", metavar="TEXT", help="heading of the page (default: the name of the model file)"
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    add_reading_options(parser, "that of the training")
    return parser


def run(arguments: argparse.Namespace, signals: Signals) -> int:
    """Read, predict, write."""
    from ...persistence import load_model
    from ...report import make_report
    from ..console import echo
    from ..files import check_text_output, read_model

    arguments.data = arguments.test
    inputs = [arguments.model, *([arguments.test] if arguments.test else [])]
    check_text_output(arguments.output, inputs, arguments.force)
    given: dict[str, Any] = {}
    if arguments.test is None:
        estimator, _ = load_model(arguments.model)
    else:
        model = read_model(arguments.model, arguments.test)
        estimator = model.estimator
        examples = model.task.examples(model, arguments)
        given = {"X": examples.X, "y": examples.y, **examples.params}
    title = arguments.title or os.path.basename(arguments.model)
    with compiling_for(task_of(type(estimator))):
        report = make_report(estimator, title=title, worst=arguments.worst, **given)
        report.save(arguments.output)
    echo(f"wrote {arguments.output}")
    return DONE
