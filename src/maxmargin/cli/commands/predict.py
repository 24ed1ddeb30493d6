"""``maxmargin predict``: labels for a file."""

from __future__ import annotations

import argparse
from typing import Any

from ...jit.compiling import compiling_for
from ..console import DONE, Signals
from ..numbers import positive
from ..options import (
    add_command,
    add_jobs_option,
    add_output_options,
    add_reading_options,
    list_tasks,
)
from ..tasks import TASKS

__all__ = ["add_parser", "run"]

DESCRIPTION = f"""\
Label a file with a trained model. What each task writes:

{list_tasks({name: task.writes for name, task in TASKS.items()})}

As a filter (maxmargin predict model.mm -) it answers every sentence, line or tree as soon as its
end is read. An existing output file is replaced only with --force.
"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser = add_command(
        commands,
        "predict",
        run,
        help="label a file with a trained model",
        usage="%(prog)s MODEL DATA [options; -h lists them]",
        description=DESCRIPTION,
    )
    parser.add_argument("model", metavar="MODEL", help="model file written by train")
    parser.add_argument(
        "data",
        metavar="DATA",
        help="file to label, or - for standard input; labels in it are not used",
    )
    add_output_options(parser)
    parser.add_argument(
        "--k",
        type=positive,
        metavar="N",
        help=f"write the N best outputs with their scores (tasks {_tasks_with('k')})",
    )
    parser.add_argument(
        "--scores",
        action="store_true",
        help=f"write the scores of outputs as well (tasks {_tasks_with('scores')})",
    )
    parser.add_argument(
        "--confidence",
        action="store_true",
        help="write one more column, the confidence in each label: its probability if the model "
        "was trained with --probability, or else its margin, by which its score exceeds that of "
        f"the best output with another label there (tasks {_tasks_with('confidence')})",
    )
    add_jobs_option(parser)
    add_reading_options(parser, "that of the training")
    return parser


def run(arguments: argparse.Namespace, signals: Signals) -> int:
    """Predict and write."""
    from ..evaluation import check_output_options
    from ..files import (
        check_text_output,
        is_standard,
        located,
        open_output,
        read_chunks,
        read_model,
    )

    to_standard = is_standard(arguments.output)
    if not to_standard:
        inputs = [arguments.model, arguments.data]
        check_text_output(arguments.output, inputs, arguments.force)
    model = read_model(arguments.model, arguments.data, arguments.n_jobs)
    check_output_options(arguments, model.task)
    opened = open_output(arguments.output, arguments.encoding)
    with compiling_for(model.task.name), opened as stream:
        for source in read_chunks(arguments.data, model.task.unit, arguments.encoding):
            with located(source):
                text = model.task.predict(model, source, arguments)
            signals.check()
            stream.write(text)
            stream.flush()  # who waits for an answer gets it before the next question
    return DONE


def _tasks_with(answer: str) -> str:
    """Names of the tasks that have some kind of answers."""
    return ", ".join(task.name for task in TASKS.values() if answer in task.answers)
