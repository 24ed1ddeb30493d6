"""What the learners and classifiers of SVM-struct do alike: files, constants, training, errors.

SVM-struct minimises ``1/2 |w|^2 + C/n sum_i xi_i^p`` with ``p`` 1 or 2. Its losses may be ``L``
times, its features ``F`` times those of the problem here: per cent, for example. With margin
rescaling a slack is then

    L^(1/p) Delta^(1/p) - F <w, dpsi>  =  L^(1/p) (Delta^(1/p) - <v, dpsi>),   w = s v,

with ``s = L^(1/p) / F``; with slack rescaling the same holds with ``s = 1 / F``. So the objective
is ``s^2 (1/2 |v|^2 + C L / (n s^2) sum_i xi_i(v)^p)``: ours, but for the constants.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.formulation import C_from_paper, Rescaling, Slack
from ...core.result import Result
from ...formats import SvmlightData, read_svmlight, write_text_atomically
from ...formats.opening import Source
from ...formats.recognising import Kind, recognise
from ...formats.svmlight import line_of_example
from ...persistence import load_model
from ...utils.types import Ints
from ..console import (
    ERROR,
    NO_MODEL,
    Signals,
    announcing_interrupts,
    echo_result,
)
from ..files import check_model_output, check_text_output, open_input, save_somewhere
from ..training import Training, echo_misplaced, exit_code

if TYPE_CHECKING:
    from ...solvers import Solver

__all__ = [
    "Convention",
    "Examples",
    "check_model",
    "convention_of",
    "echo_errors",
    "raise_at",
    "read_examples",
    "read_tool_model",
    "shared_parameters",
    "train_and_save",
    "with_width",
    "write_predictions",
]

RESCALINGS: dict[int, Rescaling] = {1: "slack", 2: "margin"}
SLACKS: dict[int, Slack] = {1: "l1", 2: "l2"}


class Convention(NamedTuple):
    """Our constants; their weights are ``weights``, their objective ``objective`` times ours."""

    C: float
    epsilon: float
    weights: float
    objective: float


def convention_of(
    arguments: argparse.Namespace,
    n_examples: int,
    loss_scale: float = 1.0,
    feature_scale: float = 1.0,
) -> Convention:
    """Convert -c and -e, which depend on -o and -p.

    SVM-struct ends where constraints are violated by at most epsilon, which leaves a gap of at most
    ``C epsilon``; here that is the gap that is certified.
    """
    slack, power = SLACKS[arguments.p], arguments.p
    is_margin = RESCALINGS[arguments.o] == "margin"
    scale = (loss_scale ** (1.0 / power) if is_margin else 1.0) / feature_scale
    C = arguments.c * loss_scale / scale**2
    return Convention(
        C_from_paper(C, n_examples, "joachims", slack),
        arguments.e / loss_scale,
        scale,
        scale**2,
    )


def shared_parameters(arguments: argparse.Namespace, convention: Convention) -> dict[str, Any]:
    """Parameters that all estimators have."""
    return {
        "C": convention.C,
        "epsilon": convention.epsilon,
        "tol": None,
        "rescaling": RESCALINGS[arguments.o],
        "slack": SLACKS[arguments.p],
        "solver": _solver_of(arguments, convention),
        "random_state": 0,
        "verbose": 1 if arguments.v > 0 else 0,
    }


def _solver_of(arguments: argparse.Namespace, convention: Convention) -> str | Solver:
    """The solver that -w names, with -k and -f as SVM-struct has them."""
    from ...solvers import NSlack, OneSlack

    limits: dict[str, Any] = {"tol": None, "epsilon": convention.epsilon}
    if arguments.w in (0, 1):
        return NSlack(batch=arguments.k, **limits)
    if arguments.w in (2, 3, 4):
        return OneSlack(cache_size=arguments.f if arguments.w == 4 else 0, **limits)
    return "auto"


_KINDS = (Kind.SVMLIGHT, Kind.LETOR, Kind.SVM_HMM, Kind.QUERIES)


class Examples(NamedTuple):
    """Rows of a file: features, labels, queries if it has them, and where each query begins."""

    source: Source
    X: Any
    y: Any
    qid: Any

    @property
    def offsets(self) -> Ints:
        """Where the rows of each query begin, and their number last."""
        starts = np.flatnonzero(np.diff(self.qid)) + 1
        return np.concatenate([[0], starts, [len(self.qid)]]).astype(np.int64)


def read_examples(path: str, needs_queries: bool) -> Examples:
    """Read a file; ValueError says which line is wrong."""
    source = open_input(path)
    kind = recognise(source)
    if kind is not None and kind not in _KINDS:
        form = "LABEL qid:N INDEX:VALUE" if needs_queries else "LABEL INDEX:VALUE"
        raise ValueError(f"{source}: this is {kind.value}, expected lines {form} ... # comment")
    data: SvmlightData = read_svmlight(source)
    examples = Examples(source, data.X, data.y, data.qid)
    if data.y.dtype.kind not in "if":
        raise_at(examples, 0, f"expected a number as label, found {str(data.y[0])!r:.40}")
    if needs_queries and data.qid is None:
        raise_at(examples, 0, "expected qid: after the label, found none")
    return examples


def raise_at(examples: Examples, row: int, what: str) -> None:
    """Raise ValueError that names the line of a row."""
    line = line_of_example(examples.source, row)
    raise ValueError(f"{examples.source}:{line}: {what}")


def with_width(X: Any, width: int) -> Any:
    """X with that many features; others are unknown to a model, and left out."""
    if X.shape[1] < width:
        X = X.copy()
        X.resize(X.shape[0], width)
    return X[:, :width]


def check_model(arguments: argparse.Namespace) -> None:
    """Raise, before the work begins, if the model cannot be written; an old one is replaced."""
    check_model_output(arguments.model, [arguments.data], force=True, option="the data")


def train_and_save(
    arguments: argparse.Namespace, signals: Signals, training: Training, convention: Convention
) -> int:
    """Train, save, and say how it went in SVM-struct's terms; returns the exit code."""
    estimator = training.estimator
    estimator.set_params(training__callbacks=(signals.check,), training__on_interrupt="return")
    start = time.process_time()
    with announcing_interrupts(NO_MODEL):
        training.fit()
    seconds = time.process_time() - start
    with signals.saving():
        estimator.set_params(training__callbacks=(), training__on_interrupt="raise", verbose=0)
        path, error = save_somewhere(estimator, training.extra, arguments.model)
    result = estimator.result_
    if arguments.v > 0:
        for line in _statistics(result, convention):
            echo_result(line)
        echo_result(f"Runtime in cpu-seconds: {seconds:.2f}")
        echo_result(f"Model written to {path}")
    if error is not None:
        echo_misplaced(arguments.model, path, error)
        return ERROR
    return exit_code(result, signals)


def _statistics(result: Result, convention: Convention) -> Iterable[str]:
    """What SVM-struct's learners print at the end, with the names that scripts look for."""
    norm = convention.weights * float(np.linalg.norm(result.w))
    if result.gap is not None and result.dual is not None and result.primal is not None:
        scale = convention.objective
        yield f"Upper bound on duality gap: {scale * max(result.gap, 0.0):.5f}"
        yield f"Dual objective value: dval={scale * result.dual:.5f}"
        yield f"Primal objective value: pval={scale * result.primal:.5f}"
    yield f"Number of calls to 'find_most_violated_constraint': {result.n_oracle_calls}"
    yield f"Norm of weight vector: |w|={norm:.5f}"


def read_tool_model(arguments: argparse.Namespace, tool: str) -> tuple[Any, dict[str, Any]]:
    """Load a model that the learner of the tool wrote, once the outputs are known to be fine."""
    inputs = [arguments.data, arguments.model]
    check_text_output(arguments.output, inputs, force=True)
    estimator, extra = load_model(arguments.model)
    if extra.get("tool") != tool:
        raise ValueError(
            f"{arguments.model}: {tool}-classify needs a model of {tool}-learn, which this "
            f"{type(estimator).__name__} is not"
        )
    return estimator, extra


def write_predictions(arguments: argparse.Namespace, lines: Iterable[str]) -> None:
    """Write the predictions, one on each line."""
    with write_text_atomically(arguments.output) as stream:
        stream.writelines(f"{line}\n" for line in lines)


def echo_errors(arguments: argparse.Namespace, losses: Any, more: Iterable[str] = ()) -> None:
    """Say how well examples were predicted, one loss for each, as SVM-struct's classifiers do."""
    if arguments.v < 1:
        return
    n, wrong = len(losses), int(np.count_nonzero(losses))
    echo_result(f"Average loss on test set: {float(np.mean(losses)):.4f}")
    echo_result(
        f"Zero/one-error on test set: {100.0 * wrong / n:.2f}% ({n - wrong} correct, {wrong} "
        f"incorrect, {n} total)"
    )
    for line in more:
        echo_result(line)
