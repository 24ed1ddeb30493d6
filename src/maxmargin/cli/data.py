"""Models and files that commands read, whatever the task."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..formats.opening import Source, read_once, standard_input
from ..persistence import load_model
from ..registry import Task, entry_of, import_name
from .codes import UsageError
from .outputs import is_standard

__all__ = ["Model", "check_several_labels", "open_input", "read_model"]


class Model(NamedTuple):
    """A loaded model; ``files`` is what its task understands of the files it is used on."""

    estimator: Any
    task: Task
    path: str
    files: Any


def open_input(path: str) -> Source:
    """A file that can be read more than once; ``-`` is the standard input."""
    return standard_input() if is_standard(path) else read_once(path)


def read_model(path: str, data: str, n_jobs: int | None = None) -> Model:
    """Load a model file; the task follows from the estimator. ``data`` is the file it is for."""
    if is_standard(path):
        raise ValueError("a model is not read from the standard input: name its file")
    try:
        estimator, extra = load_model(path)
    except ValueError as error:
        if is_standard(data) or not _is_model(data):
            raise
        raise UsageError(f"{data} is a model, {path} is none: name the model first") from error
    entry = entry_of(type(estimator))
    if entry is None or entry.task is None:
        raise ValueError(f"{path}: a {type(estimator).__name__} is used from Python: mm.load(path)")
    if n_jobs is not None:  # otherwise that of the training
        estimator.n_jobs = n_jobs
    load_schema = import_name(entry.task.module, "load_schema")
    return Model(estimator, entry.task, path, load_schema(path, estimator, extra))


def _is_model(path: str) -> bool:
    """Whether there is a model in a file."""
    try:
        load_model(path)
    except (OSError, ValueError):
        return False
    return True


def check_several_labels(source: Source, labels: set[Any]) -> None:
    """Raise ValueError if there is nothing to tell apart."""
    if len(labels) < 2:
        raise ValueError(f"{source}: all labels are {labels.pop()!r:.40}, expected at least 2")
