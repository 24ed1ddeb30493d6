"""What commands that train share, whatever the task: options, checks, saving, and what is said."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple, cast

from ..utils.defaults import CACHE_MB, CHECKPOINT_EVERY, TOL
from ..utils.tables import gap_fraction
from .console import DONE, ERROR, KEPT, STOPPED_EARLY, Signals, UsageError, echo, echo_result, warn
from .numbers import non_negative_number, number
from .options import (
    CERTIFIED_SOLVERS,
    INTERCEPT_HELP,
    ONLINE_SOLVERS,
    TOL_HELP,
    TaskHelp,
    add_jobs_option,
    add_random_state,
    add_reading_options,
    add_task_options,
    check_task_options,
    either,
    has_intercept,
    underscored,
)
from .tasks import TASKS, Task

__all__ = [
    "Examples",
    "Plan",
    "Training",
    "add_checkpoint_options",
    "add_data_arguments",
    "add_training_options",
    "check_checkpoint_options",
    "check_inputs_differ",
    "check_keeping",
    "check_values",
    "describe",
    "echo_misplaced",
    "exit_code",
    "fit_on",
    "is_finished",
    "keep",
    "leave",
    "make_plan",
    "save_and_report",
    "say",
    "shared_parameters",
    "spent",
]


class Examples(NamedTuple):
    """What estimators are trained and evaluated on.

    ``params`` are further arguments of ``fit`` with an entry for each row of X, such as queries.
    Rows of the same group stay together where the examples are split; by default each is alone.
    ``by_node``: X is a list of matrices, one for each node of a tree, with the examples in rows.
    """

    X: Any
    y: Any = None
    params: Mapping[str, Any] = MappingProxyType({})
    groups: Any = None
    by_node: bool = False


class Training(NamedTuple):
    """An estimator, what it is trained on, and what else belongs into its file.

    Inside ``located()`` errors name lines of the file. ``fit_with`` trains where a call of ``fit``
    with the examples does not.
    """

    estimator: Any
    examples: Examples
    extra: Mapping[str, Any] = MappingProxyType({})
    located: Callable[[], AbstractContextManager[None]] = nullcontext
    fit_with: Callable[[], object] | None = None

    def fit(self) -> None:
        """Train."""
        with self.located():
            if self.fit_with is not None:
                self.fit_with()
            else:
                fit_on(self.estimator, self.examples)


def fit_on(estimator: Any, examples: Examples) -> None:
    """Train on examples; some inputs, such as treebanks, have the outputs in them."""
    outputs = () if examples.y is None else (examples.y,)
    estimator.fit(examples.X, *outputs, **examples.params)


class Plan(NamedTuple):
    """How to get there: the files that were read for it, and what reads the data."""

    inputs: list[str]
    make: Callable[[], Training]


def shared_parameters(arguments: argparse.Namespace, task: Task) -> dict[str, Any]:
    """Parameters that all estimators have, or many."""
    some: dict[str, Any] = {"loss": arguments.loss or task.losses[0]} if task.losses else {}
    if "fit_intercept" in task.options:
        default = has_intercept(task)
        some["fit_intercept"] = (
            default if arguments.fit_intercept is None else arguments.fit_intercept
        )
    return some | {
        "C": arguments.C,
        "rescaling": arguments.rescaling,
        "slack": arguments.slack,
        "solver": arguments.solver,
        "tol": task.tol if arguments.tol is None else arguments.tol,
        "epsilon": arguments.epsilon,
        "max_passes": arguments.max_passes,
        "max_time": arguments.max_time,
        "n_jobs": arguments.n_jobs,
        "random_state": arguments.random_state,
        "verbose": 0 if arguments.quiet else 1,
        "training": {"cache_mb": arguments.cache_mb},
    }


def check_values(arguments: argparse.Namespace, task: Task) -> None:
    """Raise UsageError, before any file is read, for values that no training can use."""
    from ..core.formulation import Formulation
    from ..core.problem import Problem
    from ..solvers import make_solver
    from ..utils.validation import ParameterError

    given = shared_parameters(arguments, task)
    limits = ("tol", "epsilon", "max_passes", "max_time", "random_state")
    try:
        solver = make_solver(given["solver"], **given["training"], **{k: given[k] for k in limits})
        formulation = Formulation(given["rescaling"], given["slack"])
        any_problem = cast(Problem, SimpleNamespace(n_examples=1))
        solver.check(any_problem, formulation, given["C"])
    except ParameterError:
        raise
    except ValueError as error:
        raise UsageError(str(error)) from None


def say(arguments: argparse.Namespace, text: str) -> None:
    """Write a line to the user, unless --quiet."""
    if not arguments.quiet:
        echo(text)


def add_checkpoint_options(parser: argparse.ArgumentParser) -> None:
    """Describe how a training is kept."""
    keeping = parser.add_argument_group("checkpoints")
    keeping.add_argument(
        "--checkpoint",
        metavar="FILE",
        help="file that training saves its state to from time to time, to resume after a crash",
    )
    keeping.add_argument(
        "--checkpoint-every",
        type=non_negative_number,
        metavar="SECONDS",
        help=f"seconds between two saves of the checkpoint (default {CHECKPOINT_EVERY:g})",
    )
    keeping.add_argument(
        "--resume", action="store_true", help="resume from the checkpoint, if it exists"
    )


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the task and its file."""
    parser.add_argument("-h", "--help", action=TaskHelp)
    parser.add_argument("task", metavar="TASK", choices=list(TASKS), help="task to learn")
    parser.add_argument("data", metavar="DATA", help="training file, or - for standard input")


def add_training_options(
    parser: argparse.ArgumentParser, *, has_C: bool = True, has_probability: bool = True
) -> None:
    """Describe how to train; commands that try several C have no --C."""
    parser.set_defaults(C=1.0, stream=False, max_features=None, probability=False)
    model = parser.add_argument_group("model")
    if has_C:
        model.add_argument(
            "--C",
            type=number,
            help="weight of the training errors; larger values fit the training file more closely "
            "(default 1)",
        )
    model.add_argument("--loss", type=underscored, metavar="NAME", help="loss to minimise")
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
        "--fit-intercept",
        action=argparse.BooleanOptionalAction,
        help=INTERCEPT_HELP,
    )
    add_task_options(parser, () if has_probability else ("probability",))
    add_reading_options(parser.add_argument_group("reading"), "auto")
    training = parser.add_argument_group("training")
    training.add_argument(
        "--solver",
        default="auto",
        choices=(*CERTIFIED_SOLVERS, *ONLINE_SOLVERS),
        metavar="NAME",
        help="training algorithm: "
        f"{', '.join(['auto (default)', *CERTIFIED_SOLVERS[1:]])}, which stop by --tol; or "
        f"{either(ONLINE_SOLVERS)}, which make 10 passes over the data unless --max-passes says "
        "otherwise",
    )
    training.add_argument("--tol", type=number, help=f"{TOL_HELP} (default {TOL:g} for most tasks)")
    training.add_argument(
        "--epsilon",
        type=number,
        help="duality gap, in units of mean loss, at which training stops (default: --tol alone)",
    )
    training.add_argument(
        "--max-passes",
        type=number,
        metavar="N",
        help="stop after N passes over the training data, whatever the gap",
    )
    training.add_argument(
        "--max-time",
        type=number,
        metavar="SECONDS",
        help="stop after that many seconds of training, whatever the gap",
    )
    training.add_argument(
        "--cache-mb",
        type=number,
        default=CACHE_MB,
        metavar="MB",
        help="megabytes of memory for the cutting planes that training stores beside the data; 0 "
        f"for as little as possible (default {CACHE_MB:g})",
    )
    add_jobs_option(training)
    add_random_state(training, "random numbers")
    parser.add_argument("-q", "--quiet", action="store_true", help="show warnings and errors only")


def check_checkpoint_options(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options of checkpoints where there is none."""
    if arguments.checkpoint is None:
        for name, given in (
            ("--resume", arguments.resume),
            ("--checkpoint-every", arguments.checkpoint_every is not None),
        ):
            if given:
                raise UsageError(f"{name} requires --checkpoint")


def check_keeping(arguments: argparse.Namespace, others: list[str]) -> None:
    """Raise, before training, if it cannot or should not have a checkpoint."""
    from .files import check_checkpoint, has_checkpoint

    if arguments.checkpoint is not None:
        check_checkpoint(arguments.checkpoint, others, arguments.resume)
        if arguments.resume and not has_checkpoint(arguments.checkpoint):
            say(arguments, f"{arguments.checkpoint} does not exist yet: training starts afresh")


def keep(estimator: Any, arguments: argparse.Namespace) -> None:
    """Have the training kept on disk, if that is wanted."""
    every = arguments.checkpoint_every
    estimator.set_params(
        training__checkpoint=arguments.checkpoint,
        training__checkpoint_every=CHECKPOINT_EVERY if every is None else every,
        training__resume=arguments.resume,
    )


def leave(arguments: argparse.Namespace, finished: bool, status: str = "") -> None:
    """Remove the checkpoint of a training that is over, or say what it is for.

    ``status`` is that of the result: after a limit, more needs a larger one.
    """
    from ..checkpoints import remove_checkpoint
    from .files import has_checkpoint

    if arguments.checkpoint is None:
        return
    if finished:
        remove_checkpoint(arguments.checkpoint)
    elif has_checkpoint(arguments.checkpoint):
        limits = {"max_passes": "--max-passes", "max_time": "--max-time"}
        more = f" and a larger {limits[status]}" if status in limits else ""
        say(
            arguments,
            f"the same command with --resume{more} continues from {arguments.checkpoint}",
        )


def check_inputs_differ(arguments: argparse.Namespace) -> None:
    """Raise UsageError if both files are standard input; warn if they are the same file."""
    from .files import is_same_file

    if arguments.dev == arguments.data == "-":
        raise UsageError("standard input cannot be both the training file and the file of --dev")
    if arguments.dev is not None and is_same_file(arguments.dev, arguments.data):
        warn(
            "--dev is the training file itself: scores on it are too good; give a file of other "
            "examples"
        )


def make_plan(arguments: argparse.Namespace) -> Any:
    """How to train, after all checks that need no data."""
    from ..progress import running_clock

    task = TASKS[arguments.task]
    check_task_options(arguments, task)
    check_values(arguments, task)
    plan = task.plan(arguments)

    def make() -> Any:
        with running_clock("reading"):
            training = plan.make()
        return training._replace(extra={"task": task.name, **training.extra})

    return plan._replace(make=make)


def save_and_report(
    arguments: argparse.Namespace, signals: Signals, estimator: Any, extra: Mapping[str, Any]
) -> int:
    """Save a trained model, whatever comes, and say where it is; returns the exit code."""
    from ..progress import running_clock
    from .files import model_path, reason_to_keep, save_somewhere

    with signals.saving(), running_clock("saving"):
        # The file is to hold what a Python program would set.
        estimator.set_params(training__callbacks=(), training__on_interrupt="raise", verbose=0)
        result = estimator.result_
        why = None
        if not arguments.force:
            resumed = bool(getattr(arguments, "resume", False))
            why = reason_to_keep(arguments.output, estimator, is_finished(result), resumed)
        wanted = model_path(arguments.output, why is not None)
        path, error = save_somewhere(estimator, extra, wanted)
    return _report(arguments, signals, result, path, error, why)


def _report(
    arguments: argparse.Namespace,
    signals: Signals,
    result: Any,
    path: str,
    error: OSError | None,
    why: str | None,
) -> int:
    """Say how training went and where the model is; returns the exit code."""
    from ..formats.writing import descriptor_of

    interrupted = result.status == "interrupted" or signals.received is not None
    # Words would spoil a model that is written to /dev/stdout, and JSON that programs read.
    is_for_words = descriptor_of(path) is None and not getattr(arguments, "json", False)
    speak = echo_result if is_for_words else echo
    if not arguments.quiet:
        speak(f"{describe(result)}, {spent()}")
        speak(f"saved {path}")
    if error is not None:
        echo_misplaced(arguments.output, path, error)
        return ERROR
    if path != arguments.output:
        reason = "training was interrupted" if interrupted else why
        warn(
            f"{arguments.output} is left as it was, because {reason}; the new model is in {path} "
            "(--force replaces the old one)"
        )
        return exit_code(result, signals) or KEPT
    return exit_code(result, signals)


def echo_misplaced(output: str, path: str, error: OSError) -> None:
    """Say that a model could not be saved where it should be, and where it is."""
    reason = error.strerror or error
    echo(f"maxmargin: error: {output}: {reason}; the model is in {path} instead")


def exit_code(result: Any, signals: Signals) -> int:
    """The exit code of a training whose model was saved."""
    if result.status == "interrupted" or signals.received is not None:
        return signals.code
    return DONE if is_finished(result) else STOPPED_EARLY


def is_finished(result: Any) -> bool:
    """Whether training finished; solvers without a gap finish with their passes."""
    if result.status == "early_stopping":  # by a held-out score
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
