"""``maxmargin inspect``: what is in a model file."""

from __future__ import annotations

import argparse
import os
from typing import Any

from .codes import DONE
from .options import positive
from .signals import Signals

__all__ = ["add_parser", "run"]

DESCRIPTION = """\
Show what a model file holds: sizes, parameters, the certificate of the training, the strongest
weights of each label, and of taggers the weights of transitions, as a table where that fits the
page. Weights for a label are positive, those against it negative; 0 is shown as a dot.
"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "inspect",
        help="show what a model file holds",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", help="model file written by train")
    parser.add_argument("--label", metavar="X", help="show what the model knows of this label")
    parser.add_argument(
        "--top",
        type=positive,
        default=5,
        metavar="N",
        help="number of weights in each list (default 5)",
    )
    parser.add_argument(
        "--transitions", action="store_true", help="show the table of transitions, however wide"
    )
    parser.add_argument("--json", action="store_true", help="write what is shown as JSON")
    parser.set_defaults(run=run)
    return parser


def run(arguments: argparse.Namespace, signals: Signals) -> int:
    """Read and show."""
    import json

    from ..persistence import load_model
    from ..report.contents import contents_of
    from .console import write_report
    from .contents import in_words
    from .outputs import is_standard

    if is_standard(arguments.model):
        raise ValueError("a model is not read from the standard input: name its file")
    estimator, _ = load_model(arguments.model)
    try:
        held = contents_of(estimator, arguments.top, arguments.label)
    except ValueError as error:
        raise ValueError(f"{arguments.model}: {error}") from None
    contents = {"model": arguments.model, "bytes": os.path.getsize(arguments.model), **held}
    write_report(
        json.dumps(contents, indent=2)
        if arguments.json
        else in_words(contents, wide=arguments.transitions)
    )
    return DONE
