"""What to do with a file that is of another kind than the task needs."""

from __future__ import annotations

from collections.abc import Container

from ..formats.opening import Source
from ..formats.recognising import Kind, recognise
from ..registry import TASKS, Task
from .chunks import Chunk

__all__ = ["check_kind"]

_NO_COMMAND = "there is no command for it yet; in Python,"
_UNPACK = "unpack it first"
#: Where no task reads a kind.
_ADVICE = {
    Kind.MODEL: "is the order of the arguments right?",
    Kind.ZIP: _UNPACK,
    Kind.SEVEN_ZIP: _UNPACK,
    Kind.ZSTANDARD: _UNPACK,
    Kind.TAR: _UNPACK,
    Kind.NUMPY: "in Python, numpy.load reads it, and estimators take its arrays",
    Kind.UTF_16: "say --encoding utf-16",
    Kind.BINARY: "",
    Kind.SVM_HMM: f"{_NO_COMMAND} maxmargin.formats.read_svmlight gives X, y and qid, and rows "
    "with the same qid make a sequence for SequenceTagger",
    Kind.JSON: f"{_NO_COMMAND} json reads it, and estimators take lists",
    Kind.COMMAS: "tabs or spaces have to stand between the fields",
}
#: What few lines look like by chance, such as a sentence in which every word has a comma.
_BY_MANY_LINES = (Kind.COMMAS, Kind.COLUMNS)


def check_kind(
    source: Source,
    task: Task,
    encoding: str,
    allowed: Container[Kind] = (),
    needs_labels: bool = True,
) -> Kind | None:
    """Raise ValueError for a file that is known not to be what the task reads.

    The message says what the file is, what was expected, and what can be done with it. Returns
    the kind of other files, None where it is not known: such files are left to the reader. Streams
    are judged by their first piece: a later one may be a single line, and look like anything.
    """
    kind = recognise(source, encoding)
    if isinstance(source, Chunk) and (not source.is_first or kind in _BY_MANY_LINES):
        return kind
    read = task.reads if needs_labels else task.reads + task.reads_unlabelled
    if kind is None or kind.name in read or kind in allowed:
        return kind
    advice = _advice(kind)
    said = f"; {advice}" if advice else ""
    raise ValueError(f"{source}: this is {kind.value}, expected {task.expects}{said}")


def _advice(kind: Kind) -> str:
    """What can be done with a file of some kind."""
    learning = [task.name for task in TASKS.values() if kind.name in task.reads]
    if learning:
        others = f" (or {', '.join(learning[1:])})" if learning[1:] else ""
        return f"'maxmargin train {learning[0]}'{others} learns from it"
    labelling = [task.name for task in TASKS.values() if kind.name in task.reads_unlabelled]
    if labelling:
        return f"'maxmargin predict' labels it, with a model of 'train {labelling[0]}'"
    return _ADVICE[kind]
