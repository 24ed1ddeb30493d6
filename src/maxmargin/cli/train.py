"""``maxmargin train``: a model from a file of examples."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from ..defaults import CACHE_MB, CHECKPOINT_EVERY, TOL
from ..registry import TASKS, import_name
from ..tables import gap_fraction
from .codes import DONE, ERROR, EXIT_CODES, STOPPED_EARLY, UsageError
from .console import echo, echo_result, warn
from .options import (
    add_jobs_option,
    add_reading_options,
    non_negative,
    positive,
    seconds,
)
from .signals import NO_MODEL, Signals, announcing_interrupts
from .task_options import TOL_HELP, TaskHelp, add_task_options, check_task_options

__all__ = [
    "add_checkpoint_options",
    "add_data_arguments",
    "add_parser",
    "add_training_options",
    "check_checkpoint_options",
    "check_inputs_differ",
    "check_keeping",
    "is_finished",
    "keep",
    "leave",
    "make_plan",
    "run",
    "save_and_report",
    "spent",
]

DESCRIPTION = """\
Train a model on a file, which may be compressed (.gz, .xz, .bz2).
"""

EPILOG = f"""\
With --dev the weights are judged by a labelled file of the same kind after each pass (less often if
it is large), and those of the best score are saved, not the last ones; the certificate told and
saved is theirs. The score is the first that evaluate tells intervals of (of chunks: F1).
With --patience training stops by it, and has done what was asked for whatever the gap.

With --checkpoint training can go on after a crash or a limit: the same command with --resume ends
with the same model, bit by bit. Data and options have to be the same, but for --max-passes and
--max-time, which count what was done before. The file is removed once the model is saved that was
asked for. With --dev, what was chosen so far goes on, too.

Ctrl-C (or SIGTERM) ends the training, and the best model so far is saved; a second one ends at
once, and nothing is saved. A model that is there already is replaced only by one of its kind that
has reached the precision asked for (--tol, --epsilon) and has a certificate if the old one has; or
with --force. Otherwise the new one is saved beside it, with .partial appended to its name.

{EXIT_CODES}"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "train",
        help="train a model on a file",
        usage="%(prog)s TASK DATA -o MODEL [options; -h lists them]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    add_data_arguments(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="MODEL", help="model file to write"
    )
    parser.add_argument(
        "--force", action="store_true", help="write over MODEL, whatever it is and however good"
    )
    add_training_options(parser)
    parser.add_argument(
        "--compact",
        type=float,
        metavar="TOL",
        help="shorten the model file: round the weights, and drop small ones, as far as the "
        "certified relative gap stays below TOL",
    )
    streaming = parser.add_argument_group("data larger than memory")
    streaming.add_argument(
        "--stream",
        action="store_true",
        help="keep the features in a file beside MODEL while training, not in memory",
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
        help="train on the workers of a Dask cluster; ADDRESS is that of its scheduler, "
        "tcp://HOST:PORT",
    )
    held_out = parser.add_argument_group("held-out file")
    held_out.add_argument(
        "--dev",
        metavar="FILE",
        help="labelled file that is not trained on: the weights with the best score on it are kept",
    )
    held_out.add_argument(
        "--patience",
        type=positive,
        metavar="N",
        help="stop when the score on the --dev file has not improved N times in a row (default: "
        "train until --tol is reached)",
    )
    parser.set_defaults(run=run)
    return parser


def add_checkpoint_options(parser: argparse.ArgumentParser) -> None:
    """Describe how a training is kept."""
    keeping = parser.add_argument_group("checkpoints")
    keeping.add_argument(
        "--checkpoint",
        metavar="FILE",
        help="file to keep the state of the training in, to resume after a crash",
    )
    keeping.add_argument(
        "--checkpoint-every",
        type=seconds,
        metavar="SECONDS",
        help=f"seconds between two writes of the checkpoint (default {CHECKPOINT_EVERY:g})",
    )
    keeping.add_argument(
        "--resume", action="store_true", help="resume from the checkpoint, if there is one"
    )


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the task and its file."""
    parser.add_argument("-h", "--help", action=TaskHelp)
    parser.add_argument("task", metavar="TASK", choices=list(TASKS), help="task to learn")
    parser.add_argument("data", metavar="DATA", help="training file, or - for the standard input")


def add_training_options(parser: argparse.ArgumentParser, *, has_C: bool = True) -> None:
    """Describe how to train; commands that try several C have no --C."""
    parser.set_defaults(C=1.0, stream=False, max_features=None)
    model = parser.add_argument_group("model")
    if has_C:
        model.add_argument("--C", type=float, help="weight of the training errors (default 1)")
    model.add_argument("--loss", metavar="NAME", help="loss to train for")
    model.add_argument(
        "--rescaling",
        default="margin",
        choices=["margin", "slack", "none"],
        help="what the loss of an output rescales: the margin (default), the slack or nothing",
    )
    model.add_argument(
        "--slack",
        default="l1",
        choices=["l1", "l2", "none"],
        help="how slacks enter the objective: linearly (l1, default), squared (l2), or not at "
        "all (none: a hard margin)",
    )
    model.add_argument(
        "--intercept",
        action=argparse.BooleanOptionalAction,
        help="learn the weight of a constant feature",
    )
    add_task_options(parser)
    add_reading_options(parser.add_argument_group("reading"), "auto")
    training = parser.add_argument_group("training")
    training.add_argument(
        "--solver",
        default="auto",
        metavar="NAME",
        help="solver (default auto); perceptron, mira, sgd and pegasos make 10 passes over the "
        "data, or as many as --max-passes says",
    )
    training.add_argument("--tol", type=float, help=f"{TOL_HELP} (default {TOL:g} as a rule)")
    training.add_argument(
        "--epsilon",
        type=float,
        help="duality gap, in units of mean loss, at which training stops (default: --tol alone)",
    )
    training.add_argument(
        "--max-passes",
        type=float,
        metavar="N",
        help="stop after N passes over the training data, whatever the gap",
    )
    training.add_argument(
        "--max-time",
        type=float,
        metavar="SECONDS",
        help="stop after that many seconds of training, whatever the gap",
    )
    training.add_argument(
        "--cache-mb",
        type=float,
        default=CACHE_MB,
        metavar="MB",
        help="memory for the cutting planes that training keeps beside the data; 0 for as little "
        f"as possible (default {CACHE_MB:g})",
    )
    add_jobs_option(training)
    training.add_argument(
        "--seed", type=non_negative, default=0, help="seed of the random numbers (default 0)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="show warnings and errors only")


def run(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train and save."""
    from .outputs import check_model_output

    check_inputs_differ(arguments)
    if arguments.patience is not None and arguments.dev is None:
        raise UsageError("--patience is of use with --dev only")
    if arguments.dev is not None and arguments.slack == "none":
        raise UsageError("--dev: with --slack none there are no weights to choose from")
    _check_compact(arguments)
    check_checkpoint_options(arguments)
    _check_cluster(arguments)
    plan = make_plan(arguments)
    read = [arguments.data, *plan.inputs, *([arguments.dev] if arguments.dev else [])]
    check_model_output(arguments.output, read, arguments.force)  # before training, not after
    check_keeping(arguments, [*read, arguments.output])
    with _connected(arguments) as client:  # before the data are read, which may take long
        fit, estimator, extra, examples = plan.make()
        keep(estimator, arguments)
        estimator.set_params(callbacks=(signals.check,), on_interrupt="return")
        if client is not None:
            estimator.set_params(cluster=client)
        watch = _make_watch(arguments, extra) if arguments.dev else None
        with (
            announcing_interrupts(NO_MODEL),
            watch.watching(estimator) if watch is not None else nullcontext(),
        ):
            fit()
        if client is not None:  # it is about to be closed
            estimator.set_params(cluster=None)
    if watch is not None and not arguments.quiet:
        echo(watch.summary(estimator))
    if arguments.compact is not None:
        _compact(arguments, estimator, examples)
    code = save_and_report(arguments, signals, estimator, extra)
    leave(arguments, finished=code == DONE)
    return code


def check_checkpoint_options(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options of checkpoints where there is none."""
    if arguments.checkpoint is None:
        for name, given in (
            ("--resume", arguments.resume),
            ("--checkpoint-every", arguments.checkpoint_every is not None),
        ):
            if given:
                raise UsageError(f"{name} is of use with --checkpoint only")


def _check_cluster(arguments: argparse.Namespace) -> None:
    """Raise UsageError for a training that a cluster cannot do."""
    if arguments.cluster is None:
        return
    if arguments.solver not in ("auto", "one-slack"):
        raise UsageError(f"--cluster: --solver must be auto or one-slack, got {arguments.solver}")
    if arguments.slack == "none":
        raise UsageError("--cluster: hard margins (--slack none) are not trained on a cluster")


@contextmanager
def _connected(arguments: argparse.Namespace) -> Iterator[Any]:
    """A client of the cluster, None if none is wanted; UsageError if nobody answers."""
    if arguments.cluster is None:
        yield None
        return
    from ..cluster.dask_executor import as_client
    from ..cluster.executor import NobodyWorks
    from .training import say

    try:
        client = as_client(arguments.cluster)
    except (ImportError, OSError, ValueError) as error:
        raise UsageError(f"--cluster {arguments.cluster}: {error}") from None
    with client:
        if not client.nthreads():
            say(arguments, f"{arguments.cluster} has no workers yet: training waits for them")
        try:
            yield client
        except NobodyWorks as error:  # no defect of maxmargin
            raise ValueError(f"--cluster {arguments.cluster}: {error}") from error


def check_keeping(arguments: argparse.Namespace, others: list[str]) -> None:
    """Raise, before training, if it cannot or should not be kept as is asked."""
    from .outputs import check_checkpoint, has_checkpoint
    from .training import say

    if arguments.checkpoint is not None:
        check_checkpoint(arguments.checkpoint, others, arguments.resume)
        if arguments.resume and not has_checkpoint(arguments.checkpoint):
            say(arguments, f"there is no {arguments.checkpoint} yet: training starts afresh")


def keep(estimator: Any, arguments: argparse.Namespace) -> None:
    """Have the training kept on disk, if that is wanted."""
    every = arguments.checkpoint_every
    estimator.set_params(
        checkpoint=arguments.checkpoint,
        checkpoint_every=CHECKPOINT_EVERY if every is None else every,
        resume=arguments.resume,
    )


def leave(arguments: argparse.Namespace, finished: bool) -> None:
    """Remove the checkpoint of a training that is over, or say what it is for."""
    from ..checkpoints import remove_checkpoint
    from .outputs import has_checkpoint
    from .training import say

    if arguments.checkpoint is None:
        return
    if finished:
        remove_checkpoint(arguments.checkpoint)
    elif has_checkpoint(arguments.checkpoint):
        say(arguments, f"the same command with --resume goes on from {arguments.checkpoint}")


def _make_watch(arguments: argparse.Namespace, extra: dict[str, Any]) -> Any:
    """What judges the weights by a file; raises if it cannot be opened."""
    from .held_out import HeldOutFile
    from .watching import Watch

    file = HeldOutFile.named(arguments.dev, TASKS[arguments.task], extra, arguments)
    return Watch(file, arguments)


def _check_compact(arguments: argparse.Namespace) -> None:
    """Raise UsageError, before training, if weights could not be shortened after it."""
    from ..solvers import is_online

    if arguments.compact is None:
        return
    tol = TASKS[arguments.task].tol if arguments.tol is None else arguments.tol
    if not tol < arguments.compact < math.inf:
        raise UsageError(f"--compact must be above --tol, {tol:g}, got {arguments.compact:g}")
    if arguments.slack == "none" or is_online(arguments.solver):
        raise UsageError(
            "--compact needs a certified gap that may grow: not with --slack none, and not with "
            "online solvers"
        )


def _compact(arguments: argparse.Namespace, estimator: Any, examples: Any) -> None:
    """Shorten the weights, if training came near enough; else they stay as they are."""
    import numpy as np

    from ..progress import running_clock
    from .training import say

    result = estimator.result_
    if not is_finished(result) or not result.relative_gap < arguments.compact:
        warn(
            f"the weights were not shortened: their gap is {gap_fraction(result.relative_gap)} of "
            "the objective"
        )
        return
    estimator.set_params(callbacks=(), verbose=0)
    try:
        with running_clock("compacting"):
            estimator.compact(examples.X, examples.y, tol=arguments.compact, **examples.params)
    except KeyboardInterrupt:  # what was trained is still there
        warn("the weights were not shortened: this was interrupted")
        return
    kept, before = (np.count_nonzero(w) for w in (estimator.result_.w, result.w))
    say(arguments, f"{kept} of {before} weights were kept, shortened")


def check_inputs_differ(arguments: argparse.Namespace) -> None:
    """Raise UsageError if two files are to be read from the standard input."""
    if arguments.dev == arguments.data == "-":
        raise UsageError("the standard input is either the training file or that of --dev")


def make_plan(arguments: argparse.Namespace) -> Any:
    """How to train, after all checks that need no data."""
    from ..progress import running_clock
    from .training import check_values

    task = TASKS[arguments.task]
    check_task_options(arguments, task)
    check_values(arguments, task)
    plan = import_name(task.module, "plan")(arguments)

    def make() -> Any:
        with running_clock("reading"):
            return plan.make()

    return plan._replace(make=make)


def save_and_report(
    arguments: argparse.Namespace, signals: Signals, estimator: Any, extra: dict[str, Any]
) -> int:
    """Save a trained model, whatever comes, and say where it is; returns the exit code."""
    from ..progress import running_clock
    from .outputs import model_place, reason_to_keep, save_somewhere

    with signals.saving(), running_clock("saving"):
        # The file is to hold what a Python program would have asked for.
        estimator.set_params(callbacks=(), on_interrupt="raise", verbose=0)
        result = estimator.result_
        why = None
        if not arguments.force:
            why = reason_to_keep(arguments.output, estimator, is_finished(result))
        wanted = model_place(arguments.output, why is not None)
        place, error = save_somewhere(estimator, extra, wanted)
    return _report(arguments, signals, result, place, error, why)


def _report(
    arguments: argparse.Namespace,
    signals: Signals,
    result: Any,
    place: str,
    error: OSError | None,
    why: str | None,
) -> int:
    """Say how training went and where the model is; returns the exit code."""
    from ..formats.writing import descriptor_of

    interrupted = result.status == "interrupted" or signals.received is not None
    # Words would spoil a model that is written to /dev/stdout, and JSON that programs read.
    is_for_words = descriptor_of(place) is None and not getattr(arguments, "json", False)
    speak = echo_result if is_for_words else echo
    if not arguments.quiet:
        speak(f"{describe(result)}, {spent()}")
        speak(f"saved {place}")
    if error is not None:
        echo(
            f"maxmargin: error: {arguments.output}: {error.strerror or error}; the model is in "
            f"{place} instead"
        )
        return ERROR
    if place != arguments.output:
        reason = "training was interrupted" if interrupted else why
        warn(
            f"{arguments.output} is left as it was, for {reason}; the new model is in {place} "
            "(--force would have written over the old one)"
        )
    if interrupted:
        return signals.code
    return DONE if is_finished(result) else STOPPED_EARLY


def is_finished(result: Any) -> bool:
    """Whether training did what was asked for; solvers without a gap are asked for passes."""
    if result.status == "early_stopping":  # by a held-out score, as was asked for
        return True
    if result.gap is None:
        return result.status in ("converged", "max_passes")
    return bool(result.converged) and result.status != "interrupted"


def describe(result: Any) -> str:
    """The certificate in words."""
    if result.gap is None:
        quality = "no certificate (the solver gives none)"
    else:
        share = f"{gap_fraction(result.relative_gap)} of the objective"
        gap = f"certified gap {max(result.gap, 0.0):.4g} ({share})"  # by rounding
        quality = f"objective {result.primal:.6g}, {gap}"
    return f"{quality}, {result.n_oracle_calls} oracle calls ({result.n_passes:.1f} passes)"


def spent() -> str:
    """The time of the command so far, by phases."""
    from ..progress import running_clock

    with running_clock("saving") as clock:
        return clock.summary()
