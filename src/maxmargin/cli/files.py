"""Files that commands read and write.

They are never written over what is read, and a trained model is never lost. A filter reads chunks
of a stream, each as soon as its end is there: all whole units (lines, sentences, trees, ...) that
have arrived. Files that can be opened again are one chunk.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO

from ..formats.opening import (
    ReadContent,
    Source,
    may_be_compressed,
    open_stream,
    read_once,
    standard_input,
)
from ..formats.recognising import Kind, is_model_file, recognise
from ..formats.writing import check_writable, descriptor_of, write_text_atomically
from ..persistence import load_model
from ..registry import entry_of
from .console import UsageError, standard_output
from .tasks import TASKS, Task

__all__ = [
    "Chunk",
    "Model",
    "at_lines",
    "check_checkpoint",
    "check_kind",
    "check_model_output",
    "check_several_labels",
    "check_text_output",
    "free_name",
    "has_checkpoint",
    "is_same_file",
    "is_standard",
    "located",
    "open_input",
    "open_output",
    "read_chunks",
    "read_model",
    "save_somewhere",
]

STANDARD = "-"
PARTIAL = ".partial"  # ending of models that could not be saved under their name


def is_standard(path: str) -> bool:
    """Whether an argument stands for standard input or output."""
    return path == STANDARD


def open_output(output: str, encoding: str) -> AbstractContextManager[TextIO]:
    """A text to write, to a file or to standard output; a file appears whole or not at all."""
    if is_standard(output):
        return standard_output(encoding)
    return write_text_atomically(output, encoding)


def check_text_output(output: str, inputs: Iterable[str], force: bool) -> None:
    """Raise, before the work begins, if a text or picture cannot or should not be written there."""
    _check_not_an_input(output, inputs)
    if _has_content(output) and is_model_file(output):
        raise ValueError(f"{output}: a model file of this name exists; give another name")
    if not force and _has_content(output):
        raise ValueError(
            f"{output}: a file of this name exists; give another name, or --force to replace it"
        )
    check_writable(output)


def check_model_output(output: str, inputs: Iterable[str], force: bool, option: str = "-o") -> None:
    """Raise, before training, if a model cannot or should not be written there.

    ``option`` is what the name stands behind, on the command line.
    """
    if is_standard(output):
        raise ValueError(
            f"a model cannot be written to standard output: name a file after {option}"
        )
    _check_not_an_input(output, inputs)
    if not force and _has_content(output) and not is_model_file(output):
        remedy = "--force to replace it" if option == "-o" else "remove it first"
        raise ValueError(
            f"{output}: a file of this name exists that is not a model; give another name after "
            f"{option}, or {remedy}"
        )
    check_writable(output)


def check_checkpoint(path: str, others: Iterable[str], resume: bool) -> None:
    """Raise, before training, if a training cannot or should not be kept there."""
    from ..checkpoints import check_location, older_of

    others = list(others)
    for name in (path, older_of(path)):
        if is_standard(name) or os.path.realpath(name) in map(os.path.realpath, others):
            raise ValueError(
                f"{path}: the checkpoint needs a file of its own; give another name after "
                "--checkpoint"
            )
        _check_not_an_input(name, others)
    check_location(path)
    if has_checkpoint(path) and not resume:
        raise ValueError(
            f"{path}: a checkpoint of this name exists; continue from it with --resume, or "
            "remove it first"
        )


def has_checkpoint(path: str) -> bool:
    """Whether there is a checkpoint to resume from."""
    from ..checkpoints import FOLD, older_of, part_of

    first = part_of(path, FOLD, 0)
    return any(os.path.exists(name) for name in (path, older_of(path), first) if name is not None)


def _check_not_an_input(output: str, inputs: Iterable[str]) -> None:
    """Raise ValueError if the output is a file that is read, by whatever name."""
    target = _identity(output)
    for path in inputs:
        if target is not None and target == _identity(path):
            name = "standard input" if is_standard(path) else path
            raise ValueError(
                f"{output}: this is {'an input file' if name == output else name}, which would "
                "be overwritten; give the output another name"
            )


def _identity(path: str) -> tuple[int, int] | None:
    """Device and number of an ordinary file, the same for all its names; None for all else."""
    try:
        status = os.fstat(0) if is_standard(path) else os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def is_same_file(path: str, other: str) -> bool:
    """Whether two names are those of one ordinary file."""
    own = _identity(path)
    return own is not None and own == _identity(other)


def _has_content(path: str) -> bool:
    """Whether there is a file that is not empty, and that would be replaced."""
    return descriptor_of(path) is None and os.path.isfile(path) and os.path.getsize(path) > 0


def free_name(path: Path) -> Path:
    """``path``, or with a number appended if there is such a file."""
    names = (path if k == 1 else path.with_name(f"{path.name}-{k}") for k in range(1, 10**6))
    return next(name for name in names if not os.path.lexists(name))


def reason_to_keep(
    output: str, estimator: Any, finished: bool, resumed: bool = False
) -> str | None:
    """Why the model that is there should stay: the new one is unfinished, or no match for it."""
    from ..persistence import peek

    if not _has_content(output):
        return None
    if not finished:
        unfinished = "the new model has not reached its precision"
        return None if resumed and _is_improved(output, estimator) else unfinished
    try:
        name, certified = peek(output)
    except (OSError, ValueError):
        return None  # damaged, and of no use
    if name != type(estimator).__name__:
        return f"it is a {name}, and the new one a {type(estimator).__name__}"
    if certified and estimator.result_.gap is None:
        return "it is certified, and the new one is not"
    return None


def _is_improved(output: str, estimator: Any) -> bool:
    """Whether a model of the same kind and C is there, unfinished, with a larger gap."""
    try:
        old, _ = load_model(output)
    except (OSError, ValueError):
        return False
    before, now = getattr(old, "result_", None), estimator.result_.relative_gap
    if type(old) is not type(estimator) or old.C != estimator.C or before is None:
        return False
    gap = before.relative_gap
    return not before.converged and gap is not None and now is not None and now < gap


def model_path(output: str, keeps: bool) -> str:
    """Where to save: beside the file if that is kept."""
    return str(free_name(Path(f"{output}{PARTIAL}"))) if keeps else output


def save_somewhere(
    estimator: Any, extra: Mapping[str, Any], path: str
) -> tuple[str, OSError | None]:
    """Save a model, under another name if it cannot be saved under this one.

    Returns the path, and the error that made it another one. Raises OSError if none would do.
    """
    from ..persistence import save_model

    try:
        save_model(estimator, path, dict(extra))
        return path, None
    except OSError as error:
        first = error
    partial = Path(path if path.endswith(PARTIAL) else f"{path}{PARTIAL}")
    others = [Path(tempfile.gettempdir(), partial.name)]
    if os.path.isfile(path) or not os.path.exists(path):  # not beside a device
        others.insert(0, partial)
    for other in others:
        try:
            name = str(free_name(other))
            save_model(estimator, name, dict(extra))
            return name, first
        except OSError:
            continue
    raise first


class Model(NamedTuple):
    """A loaded model; ``files`` is what its task understands of the files it is used on."""

    estimator: Any
    task: Task
    path: str
    files: Any


def open_input(path: str) -> Source:
    """A file that can be read more than once; ``-`` is standard input."""
    return standard_input() if is_standard(path) else read_once(path)


def read_model(path: str, data: str, n_jobs: int | None = None) -> Model:
    """Load a model file; the task follows from the estimator. ``data`` is the file it is for."""
    if is_standard(path):
        raise ValueError("a model cannot be read from standard input: give the name of its file")
    try:
        estimator, extra = load_model(path)
    except ValueError as error:
        if is_standard(data) or not _is_model(data):
            raise
        raise UsageError(
            f"{path} is not a model file, but {data} is: name the model first"
        ) from error
    entry = entry_of(type(estimator))
    if entry is None or entry.task is None:
        raise ValueError(
            f"{path}: a {type(estimator).__name__} can be used from Python only, with "
            "maxmargin.load"
        )
    if n_jobs is not None:  # otherwise that of the training
        estimator.n_jobs = n_jobs
    task = TASKS[entry.task]
    return Model(estimator, task, path, task.load_schema(path, estimator, extra))


def _is_model(path: str) -> bool:
    """Whether there is a model in a file."""
    try:
        load_model(path)
    except (OSError, ValueError):
        return False
    return True


def check_several_labels(source: Source, labels: set[Any]) -> None:
    """Raise ValueError if there is one label only."""
    if len(labels) < 2:
        raise ValueError(
            f"{source}: all labels are {labels.pop()!r:.40}, expected at least 2 different ones"
        )


MOST_BYTES = 2**20  # to be read at once
_ASCII = "\n\r\t #()>"


class Chunk(ReadContent):
    """Some whole units of a stream.

    Parameters
    ----------
    content : bytes
        The units.
    name : str
        What the stream is called in messages.
    n_lines_before : int
        How many lines of the stream precede them.
    """

    def __init__(self, content: bytes, name: str, n_lines_before: int) -> None:
        super().__init__(content, name)
        self.n_lines_before = n_lines_before

    @property
    def is_first(self) -> bool:
        """Whether it is the beginning of the stream."""
        return self.n_lines_before == 0


class Unit(NamedTuple):
    """Where a stream can be cut (0: nowhere), and what lines hold nothing by themselves."""

    cut: Callable[[bytes], int]
    empty: re.Pattern[bytes]


def read_chunks(path: str, unit: str, encoding: str) -> Iterator[Source]:
    """Chunks of a file or stream, ``-`` being standard input."""
    if is_standard(path):
        if sys.stdin is None:
            raise ValueError("standard input is closed")
        yield from _cut(sys.stdin.buffer, "<stdin>", UNITS[unit], encoding)
        return
    with open_stream(path) as stream:
        if stream is None:
            yield path
        else:
            yield from _cut(stream, path, UNITS[unit], encoding)


@contextmanager
def located(source: Source) -> Iterator[None]:
    """Let errors count lines from the beginning of the stream, not of the chunk."""
    try:
        yield
    except ValueError as error:
        before = source.n_lines_before if isinstance(source, Chunk) else 0
        found = re.match(rf"{re.escape(str(source))}:(\d+):", str(error))
        if not before or found is None:
            raise
        rest = str(error)[found.end() :]
        raise ValueError(f"{source}:{int(found[1]) + before}:{rest}") from error


def _cut(stream: BinaryIO, name: str, unit: Unit, encoding: str) -> Iterator[Chunk]:
    """Chunks of a stream; what is compressed, or not ASCII at heart, is one chunk."""
    waiting, n_lines, n_chunks = b"", 0, 0
    is_whole = _ASCII.encode(encoding, "replace") != _ASCII.encode()
    while arrived := stream.read1(MOST_BYTES):  # type: ignore[attr-defined]  # binary files have it
        waiting += arrived
        is_whole = is_whole or (n_chunks == 0 and may_be_compressed(waiting))
        end = 0 if is_whole else unit.cut(waiting)
        if end and _holds_something(waiting[:end], unit):
            yield Chunk(waiting[:end], name, n_lines)
            n_chunks += 1
            n_lines += waiting.count(b"\n", 0, end)
            waiting = waiting[end:]
    if n_chunks == 0 or _holds_something(waiting, unit):
        yield Chunk(waiting, name, n_lines)


def _holds_something(content: bytes, unit: Unit) -> bool:
    """Whether there is more than comments and blanks."""
    return any(not unit.empty.fullmatch(line.strip()) for line in content.split(b"\n"))


# ----- units --------------------------------------------------------------------------------------

_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")
_TWO_BRACKETS = re.compile(rb"\s*(?:[^\s()]+\s+)?\(\s*[^\s()]*\s*\(")
_BRACKET = re.compile(rb"[()]")
_TITLE = re.compile(rb"^#", re.MULTILINE)


def _after_line(content: bytes) -> int:
    """Behind the last line end."""
    return content.rfind(b"\n") + 1


def _after_block(content: bytes) -> int:
    """Behind the last blank line."""
    return max((match.end() for match in _BLANK_LINE.finditer(content)), default=0)


def _after_tree(content: bytes) -> int:
    """Behind the last tree that is closed; sentences that are no trees end with a blank line."""
    if not _TWO_BRACKETS.match(content):
        return _after_block(content)
    depth = end = 0
    for match in _BRACKET.finditer(content):
        depth += 1 if match[0] == b"(" else -1
        end = match.end() if depth == 0 else end
    return end


def _before_title(content: bytes) -> int:
    """Before the last title, which ends the sequences below the one before it."""
    return max((match.start() for match in _TITLE.finditer(content)), default=0)


#: By the names that tasks give them.
UNITS = {
    "line": Unit(_after_line, re.compile(rb"(?:#.*)?")),
    "block": Unit(_after_block, re.compile(rb"(?:-DOCSTART-.*)?")),
    "sentence": Unit(_after_block, re.compile(rb"")),  # one of comments alone has no words
    "commented block": Unit(_after_block, re.compile(rb"(?:#.*)?")),
    "tree": Unit(_after_tree, re.compile(rb"")),
    "titled": Unit(_before_title, re.compile(rb"(?:[#;].*)?")),
}


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
    Kind.UTF_16: "use --encoding utf-16",
    Kind.BINARY: "",
    Kind.SVM_HMM: f"{_NO_COMMAND} maxmargin.formats.read_svmlight gives X, y and qid, and rows "
    "with the same qid make a sequence for SequenceTagger",
    Kind.JSON: f"{_NO_COMMAND} json reads it, and estimators take lists",
    Kind.COMMAS: "the fields must be separated by tabs or spaces",
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
    are recognised by their first chunk: a later one may be a single line, and look like anything.
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


@contextmanager
def at_lines(noun: str, source: Any, lines: Sequence[int]) -> Iterator[None]:
    """Let errors name file and line where they name a "sentence 3", by its number."""

    def line_of(found: re.Match[str]) -> str:
        number = int(found[1])
        where = f"{source}:{lines[number]}" if number < len(lines) else f"{noun} {number}"
        return f"{where}: " if found[2] else where

    try:
        yield
    except ValueError as error:
        text = re.sub(rf"\b{noun} (\d+)(?:(, )|(?=[:.]))", line_of, str(error))
        if text == str(error):
            raise
        raise ValueError(text) from error
