"""Files that commands write: never over what they read, and a trained model is never lost."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..formats.recognising import is_model_file
from ..formats.writing import check_writable, descriptor_of

__all__ = [
    "check_checkpoint",
    "check_model_output",
    "check_text_output",
    "free_name",
    "has_checkpoint",
    "is_standard",
    "save_somewhere",
]

STANDARD = "-"
PARTIAL = ".partial"  # ending of models that could not take the place they were made for


def is_standard(path: str) -> bool:
    """Whether an argument stands for the standard input or output."""
    return path == STANDARD


def check_text_output(output: str, inputs: Iterable[str], force: bool) -> None:
    """Raise, before the work begins, if a text or picture cannot or should not be written there."""
    _check_not_an_input(output, inputs)
    if _has_content(output) and is_model_file(output):
        raise ValueError(f"{output}: there is a model of this name; give another one")
    if not force and _has_content(output):
        raise ValueError(
            f"{output}: there is a file of this name; give another one, or --force to write over it"
        )
    check_writable(output)


def check_model_output(output: str, inputs: Iterable[str], force: bool) -> None:
    """Raise, before training, if a model cannot or should not be written there."""
    if is_standard(output):
        raise ValueError("a model is not written to the standard output: name a file after -o")
    _check_not_an_input(output, inputs)
    if not force and _has_content(output) and not is_model_file(output):
        raise ValueError(
            f"{output}: there is a file of this name that is no model; give another name, or "
            "--force to write over it"
        )
    check_writable(output)


def check_checkpoint(path: str, others: Iterable[str], resume: bool) -> None:
    """Raise, before training, if a training cannot or should not be kept there."""
    from ..checkpoints import check_place, older_of

    others = list(others)
    for name in (path, older_of(path)):
        if is_standard(name) or os.path.realpath(name) in map(os.path.realpath, others):
            raise ValueError(f"{path}: give another name after --checkpoint, of a file of its own")
        _check_not_an_input(name, others)
    check_place(path)
    if has_checkpoint(path) and not resume:
        raise ValueError(
            f"{path}: there is a checkpoint of this name; --resume goes on from it, or else remove "
            "it first"
        )


def has_checkpoint(path: str) -> bool:
    """Whether there is a checkpoint to go on from."""
    from ..checkpoints import FOLD, older_of, part_of

    first = part_of(path, FOLD, 0)
    return any(os.path.exists(name) for name in (path, older_of(path), first) if name is not None)


def _check_not_an_input(output: str, inputs: Iterable[str]) -> None:
    """Raise ValueError if the output is a file that is read, by whatever name."""
    target = _identity(output)
    for path in inputs:
        if target is not None and target == _identity(path):
            name = "the standard input" if is_standard(path) else path
            raise ValueError(
                f"{output}: this is {'a file that is read' if name == output else name}, which "
                "would be overwritten; give another name after -o"
            )


def _identity(path: str) -> tuple[int, int] | None:
    """Device and number of an ordinary file, the same for all its names; None for all else."""
    try:
        status = os.fstat(0) if is_standard(path) else os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _has_content(path: str) -> bool:
    """Whether there is a file that is not empty, and that would be replaced."""
    return descriptor_of(path) is None and os.path.isfile(path) and os.path.getsize(path) > 0


def free_name(path: Path) -> Path:
    """``path``, or with a number appended if there is such a file."""
    names = (path if k == 1 else path.with_name(f"{path.name}-{k}") for k in range(1, 10**6))
    return next(name for name in names if not os.path.lexists(name))


def reason_to_keep(output: str, estimator: Any, finished: bool) -> str | None:
    """Why the model that is there should stay: the new one is unfinished, or no match for it."""
    from ..persistence import peek

    if not _has_content(output):
        return None
    if not finished:
        return "the new model has not reached the precision"
    try:
        name, certified = peek(output)
    except (OSError, ValueError):
        return None  # damaged, and of no use
    if name != type(estimator).__name__:
        return f"it is a {name}, and the new one a {type(estimator).__name__}"
    if certified and estimator.result_.gap is None:
        return "it is certified, and the new one is not"
    return None


def model_place(output: str, keeps: bool) -> str:
    """Where to save: beside the file if that keeps its place."""
    return str(free_name(Path(f"{output}{PARTIAL}"))) if keeps else output


def save_somewhere(estimator: Any, extra: dict[str, Any], place: str) -> tuple[str, OSError | None]:
    """Save a model, at some other place if it cannot be saved at the one given.

    Returns the place, and the error that made it another one. Raises OSError if no place would do.
    """
    from ..persistence import save_model

    try:
        save_model(estimator, place, extra)
        return place, None
    except OSError as error:
        first = error
    partial = Path(place if place.endswith(PARTIAL) else f"{place}{PARTIAL}")
    others = [Path(tempfile.gettempdir(), partial.name)]
    if os.path.isfile(place) or not os.path.exists(place):  # not beside a device
        others.insert(0, partial)
    for other in others:
        try:
            name = str(free_name(other))
            save_model(estimator, name, extra)
            return name, first
        except OSError:
            continue
    raise first
