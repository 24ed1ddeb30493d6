"""``maxmargin train``: a model from a file of examples."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from ...utils.tables import gap_fraction
from ..console import (
    DONE,
    EXIT_CODES,
    KEPT,
    NO_MODEL,
    Signals,
    UsageError,
    announcing_interrupts,
    echo,
    warn,
)
from ..numbers import number, positive
from ..options import add_command
from ..tasks import TASKS
from ..training import (
    add_checkpoint_options,
    add_data_arguments,
    add_training_options,
    check_checkpoint_options,
    check_inputs_differ,
    check_keeping,
    is_finished,
    keep,
    leave,
    make_plan,
    save_and_report,
    say,
)

__all__ = ["add_parser", "run"]

DESCRIPTION = """\
Train a model on a file, which may be compressed (.gz, .xz, .bz2).
"""

EPILOG = f"""\
With --dev the weights are evaluated on a labelled file after each pass (less often if it is large),
and those with the best score are saved, not the last ones; the certificate shown and saved is
theirs. The file has the format of the training file. The score is the first one for which evaluate
reports an interval (for chunks: F1). Training that --patience stops counts as finished, whatever
the gap.

With --checkpoint training can resume after a crash or a limit: the same command with --resume ends
with the same model, bit for bit. Data and options must be the same, except for --max-passes and
--max-time, which include what was done before. The checkpoint is removed once the finished model is
saved. With --dev it also holds the best weights so far.

Ctrl-C (or SIGTERM) stops training and saves the best model so far; a second one stops at once and
saves nothing. An existing model is replaced only by a model of the same kind that has reached its
precision (--tol, --epsilon) and has a certificate if the old one has; with --resume also if the old
one, of the same C, had not reached its precision and has a larger gap; or with --force. Otherwise
the new model is saved beside it, with .partial appended to its name.

{EXIT_CODES}"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser = add_command(
        commands,
        "train",
        run,
        help="train a model on a file",
        usage="%(prog)s TASK DATA -o MODEL [options; -h lists them]",
        description=DESCRIPTION,
        epilog=EPILOG,
        add_help=False,
    )
    add_data_arguments(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="MODEL", help="model file to write"
    )
    parser.add_argument(
        "--force", action="store_true", help="replace MODEL, whatever it is and however good"
    )
    add_training_options(parser)
    parser.add_argument(
        "--compact",
        type=number,
        metavar="TOL",
        help="make the model file smaller: round the weights and drop small ones, as far as the "
        "certified relative gap stays below TOL, which is above --tol",
    )
    streaming = parser.add_argument_group("data larger than memory")
    streaming.add_argument(
        "--stream",
        action="store_true",
        help="keep the features in a temporary file beside MODEL while training, not in memory",
    )
    streaming.add_argument(
        "--max-features",
        type=positive,
        metavar="N",
        help="with --stream: keep the N most frequent features only",
    )
    add_checkpoint_options(parser)
    parser.add_argument_group("cluster").add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="train on the workers of the Dask cluster whose scheduler has this address, "
        "tcp://HOST:PORT",
    )
    held_out = parser.add_argument_group("held-out file")
    held_out.add_argument(
        "--dev",
        metavar="FILE",
        help="held-out labelled file: save the weights with the best score on it",
    )
    held_out.add_argument(
        "--patience",
        type=positive,
        metavar="N",
        help="stop when the score on the --dev file has not improved N times in a row (default: "
        "train until --tol is reached)",
    )
    return parser


def run(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train and save."""
    from ..files import check_model_output

    check_inputs_differ(arguments)
    if arguments.patience is not None and arguments.dev is None:
        raise UsageError("--patience requires --dev")
    if arguments.dev is not None and arguments.slack == "none":
        raise UsageError(
            "--dev cannot be combined with --slack none: only the last weights satisfy the "
            "constraints"
        )
    _check_compact(arguments)
    check_checkpoint_options(arguments)
    _check_cluster(arguments)
    plan = make_plan(arguments)
    read = [arguments.data, *plan.inputs, *([arguments.dev] if arguments.dev else [])]
    check_model_output(arguments.output, read, arguments.force)  # before training, not after
    check_keeping(arguments, [*read, arguments.output])
    with (
        announcing_interrupts(NO_MODEL),
        _connected(arguments) as client,  # before the data are read, which may take long
    ):
        training = plan.make()
        estimator = training.estimator
        keep(estimator, arguments)
        estimator.set_params(training__callbacks=(signals.check,), training__on_interrupt="return")
        if client is not None:
            estimator.set_params(training__cluster=client)
        watch = _make_watch(arguments, training.extra) if arguments.dev else None
        with watch.watching(estimator) if watch is not None else nullcontext():
            training.fit()
        if client is not None:  # it is about to be closed
            estimator.set_params(training__cluster=None)
    if watch is not None and not arguments.quiet:
        echo(watch.summary(estimator))
    if arguments.compact is not None:
        _compact(arguments, estimator, training.examples)
    code = save_and_report(arguments, signals, estimator, training.extra)
    leave(arguments, code in (DONE, KEPT), estimator.result_.status)
    return code


def _check_cluster(arguments: argparse.Namespace) -> None:
    """Raise UsageError for a training that a cluster cannot do."""
    if arguments.cluster is None:
        return
    if arguments.solver not in ("auto", "one_slack"):
        raise UsageError(f"--cluster requires --solver auto or one_slack, got {arguments.solver}")
    if arguments.slack == "none":
        raise UsageError("--cluster cannot be combined with --slack none (hard margins)")


@contextmanager
def _connected(arguments: argparse.Namespace) -> Iterator[Any]:
    """A client of the cluster, None if none is wanted; UsageError if nobody answers."""
    if arguments.cluster is None:
        yield None
        return
    from ...cluster.dask_executor import as_client
    from ...cluster.executor import NobodyWorks
    from ...utils.validation import ParameterError

    try:
        client = as_client(arguments.cluster)
    except ParameterError:
        raise UsageError(
            "--cluster must be the address of a scheduler, such as tcp://10.0.0.1:8786, got "
            f"{arguments.cluster!r:.60}"
        ) from None
    except (ImportError, OSError, ValueError) as error:
        raise UsageError(f"--cluster {arguments.cluster}: {error}") from None
    with client:
        if not client.nthreads():
            say(arguments, f"{arguments.cluster} has no workers yet: training waits for them")
        try:
            yield client
        except NobodyWorks as error:  # no defect of maxmargin
            raise ValueError(f"--cluster {arguments.cluster}: {error}") from error


def _make_watch(arguments: argparse.Namespace, extra: dict[str, Any]) -> Any:
    """What evaluates the weights on a file; raises if it cannot be opened."""
    from ..held_out import HeldOutFile, Watch

    file = HeldOutFile.named(arguments.dev, TASKS[arguments.task], extra, arguments)
    return Watch(file, arguments)


def _check_compact(arguments: argparse.Namespace) -> None:
    """Raise UsageError, before training, if weights could not be shortened after it."""
    from ...solvers import is_online

    if arguments.compact is None:
        return
    tol = TASKS[arguments.task].tol if arguments.tol is None else arguments.tol
    if not tol < arguments.compact < math.inf:
        raise UsageError(f"--compact must be above --tol, {tol:g}, got {arguments.compact:g}")
    if arguments.slack == "none" or is_online(arguments.solver):
        raise UsageError(
            "--compact needs a certified gap: it cannot be combined with --slack none, nor "
            "with the online solvers perceptron, mira, sgd and pegasos"
        )


def _compact(arguments: argparse.Namespace, estimator: Any, examples: Any) -> None:
    """Shorten the weights, if training came near enough; else they stay as they are."""
    import numpy as np

    from ...progress import running_clock

    result = estimator.result_
    if not is_finished(result) or not result.relative_gap < arguments.compact:
        warn(
            f"the model was not compacted: its gap is {gap_fraction(result.relative_gap)} "
            "of the objective"
        )
        return
    estimator.set_params(training__callbacks=(), verbose=0)
    try:
        with running_clock("compacting"):
            estimator.compact(examples.X, examples.y, tol=arguments.compact, **examples.params)
    except KeyboardInterrupt:  # what was trained is still there
        warn("the model was not compacted: this was interrupted")
        return
    kept, before = (np.count_nonzero(w) for w in (estimator.result_.w, result.w))
    say(arguments, f"{kept} of {before} weights were kept, and rounded")
