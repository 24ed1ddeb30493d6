"""What the learners and classifiers of SVM-struct do alike."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...formats import write_text_atomically
from ...persistence import load_model
from ...result import Result
from ..codes import DONE, ERROR, STOPPED_EARLY
from ..console import echo, echo_result
from ..outputs import check_model_output, check_text_output, save_somewhere
from ..signals import NO_MODEL, Signals, announcing_interrupts
from ..train import is_finished
from ..training import Training
from .conventions import Convention

__all__ = ["check_model", "echo_errors", "learn", "read_tool_model", "write_predictions"]


def check_model(arguments: argparse.Namespace) -> None:
    """Raise, before the work begins, if the model cannot be written; an old one is replaced."""
    check_model_output(arguments.model, [arguments.data], force=True)


def learn(
    arguments: argparse.Namespace, signals: Signals, training: Training, convention: Convention
) -> int:
    """Train, save, and say how it went in SVM-struct's terms; returns the exit code."""
    fit, estimator, extra, _ = training
    estimator.set_params(callbacks=(signals.check,), on_interrupt="return")
    start = time.process_time()
    with announcing_interrupts(NO_MODEL):
        fit()
    seconds = time.process_time() - start
    with signals.saving():
        estimator.set_params(callbacks=(), on_interrupt="raise", verbose=0)
        place, error = save_somewhere(estimator, extra, arguments.model)
    result = estimator.result_
    if arguments.v > 0:
        for line in _statistics(result, convention):
            echo_result(line)
        echo_result(f"Runtime in cpu-seconds: {seconds:.2f}")
        echo_result(f"Model written to {place}")
    if error is not None:
        echo(
            f"maxmargin: error: {arguments.model}: {error.strerror or error}; the model is in "
            f"{place} instead"
        )
        return ERROR
    if result.status == "interrupted" or signals.received is not None:
        return signals.code
    return DONE if is_finished(result) else STOPPED_EARLY


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
            f"{arguments.model}: this {type(estimator).__name__} was not made by {tool}-learn, "
            f"which {tool}-classify needs"
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
