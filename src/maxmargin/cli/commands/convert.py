"""``maxmargin convert``: a data file in another form."""

from __future__ import annotations

import argparse
from typing import Any

from ..console import DONE, Signals, UsageError
from ..options import add_command, add_output_options, add_reading_options, list_tasks

__all__ = ["add_parser", "run"]

FORMS = {
    "bio": "columns with tags B-X (first), I-X (inside) and O",
    "iobes": "columns with tags B-X, I-X, E-X (last), S-X (single) and O",
    "io": "columns with tags I-X and O; chunks of a type side by side become one",
    "columns": "CoNLL-U as columns, those of --fields, the label last",
    "svm-hmm": "columns as a file of SVM-hmm: a number for each label, qid:N for each sequence, "
    "and the features of --templates; the numbers are those of --dictionary",
    "npz": "svmlight as arrays of numpy: data, indices, indptr, shape (scipy's csr), y and qid",
}
DESCRIPTION = f"Write a data file in another form:\n\n{list_tasks(FORMS)}"
EPILOG = """\
A dictionary is a file of lines "label NUMBER NAME" and "feature NUMBER NAME" between tabs. It is
written if there is none, and read if there is one: a test file then gets the numbers of the
training file, and features that are not in it are left out.
"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser = add_command(
        commands,
        "convert",
        run,
        help="write a data file in another form",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    parser.add_argument("data", help="file to convert, or - for the standard input")
    parser.add_argument(
        "--to", required=True, choices=list(FORMS), help="form of the file to write"
    )
    add_output_options(parser)
    parser.add_argument(
        "--label-column",
        type=int,
        default=-1,
        metavar="N",
        help="number of the column that holds the labels, from 0 (default -1, the last)",
    )
    parser.add_argument(
        "--fields",
        default="form,xpos,upos",
        metavar="LIST",
        help="fields of CoNLL-U to write, such as lemma or deprel, between commas "
        "(default form,xpos,upos)",
    )
    parser.add_argument(
        "--templates",
        default="words",
        metavar="NAME",
        help="feature templates: chunking, ner or words (default)",
    )
    parser.add_argument(
        "--dictionary", metavar="FILE", help="file with the numbers of labels and features"
    )
    add_reading_options(parser, "auto")
    return parser


def run(arguments: argparse.Namespace, signals: Signals) -> int:
    """Read, convert and write."""
    from ...formats import write_atomically
    from ..files import check_text_output, is_standard, open_input, open_output
    from .conversions import CONVERSIONS

    if (arguments.to == "svm-hmm") != (arguments.dictionary is not None):
        raise UsageError("--dictionary goes with --to svm-hmm, and that needs it")
    to_standard = is_standard(arguments.output)
    if to_standard and arguments.to == "npz":
        raise UsageError("arrays are not written to the standard output: name a file after -o")
    if not to_standard:
        inputs = [arguments.data, *([arguments.dictionary] if arguments.dictionary else [])]
        check_text_output(arguments.output, inputs, arguments.force)
    converted = CONVERSIONS[arguments.to](open_input(arguments.data), arguments)
    signals.check()
    if isinstance(converted, bytes):
        with write_atomically(arguments.output) as binary:
            binary.write(converted)
        return DONE
    with open_output(arguments.output, arguments.encoding) as stream:
        stream.write(converted)
    return DONE
