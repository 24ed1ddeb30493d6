"""Training on column files that do not fit into memory: their features go to a file first."""

from __future__ import annotations

import argparse
import os
import tempfile
import weakref
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from ..features import PackedSequences, StoredSequences, WindowFeatures
from ..features.streaming import pack_stream
from ..formats import TokenColumns, read_columns_in_parts
from ..formats.recognising import Kind
from ..formats.writing import descriptor_of
from ..progress import running_clock
from ..registry import Task
from .codes import UsageError
from .columns import Templates, Tokens, label_index
from .kinds import check_kind
from .options import SEPARATORS

__all__ = ["check_can_stream", "stored_tokens"]


def check_can_stream(arguments: argparse.Namespace, templates: Templates) -> None:
    """Raise UsageError for what cannot be done with data that stay in a file."""
    if not arguments.stream:
        if arguments.max_features is not None:
            raise UsageError("--max-features is of use with --stream only")
        return
    if not os.path.isfile(arguments.data) and (
        arguments.data == "-" or os.path.exists(arguments.data)
    ):
        raise UsageError(f"--stream reads a file, and {arguments.data} is none")
    for given, why in (
        (arguments.calibrate, "--calibrate trains on parts of the data"),
        (templates.of_pairs, "templates of pairs of labels are counted in memory"),
        ((arguments.order or 1) > 1, "--order 2 and 3 list tuples of labels in memory"),
        (arguments.on_violation in ("drop", "repair"), "--on-violation changes the data in memory"),
    ):
        if given:
            raise UsageError(f"not with --stream: {why}")


def stored_tokens(
    arguments: argparse.Namespace, task: Task, features: WindowFeatures
) -> tuple[StoredSequences, WindowFeatures, Tokens, int]:
    """Features of a column file, in a file that lasts as long as they are used.

    With them come the fitted extractor, the first tokens, and the number of the column of labels.
    """
    source = arguments.data
    check_kind(
        source,
        task,
        arguments.encoding,
        () if arguments.label_column is None else (Kind.CONLLU,),
    )
    parts = read_columns_in_parts(
        source, encoding=arguments.encoding, separator=SEPARATORS[arguments.separator or "auto"]
    )
    first: TokenColumns = next(parts)
    chosen = -1 if arguments.label_column is None else arguments.label_column
    label_column = label_index(chosen, len(first.columns), source)
    with ExitStack() as files:
        path = _file_beside(arguments.output)
        files.callback(_remove, path)
        try:
            with running_clock("features"):  # which are built as the file is read
                fitted = pack_stream(
                    path,
                    chain([first], parts),
                    features,
                    label_column=label_column,
                    max_features=arguments.max_features,
                )
        except ValueError as error:
            if str(error).startswith(str(source)):
                raise
            raise ValueError(f"{source}: {error}") from error
        stored = PackedSequences.open(path)
        if arguments.cluster is not None:
            _keep_while_mapped(stored, files)
    tokens = Tokens(first, first.select(_others(first, label_column)), None)
    return stored, fitted, tokens, label_column


def _others(data: TokenColumns, column: int) -> list[int]:
    """All columns but one."""
    return [j for j in range(len(data.columns)) if j != column]


def _file_beside(output: str) -> str:
    """The name of a new file in the folder of another."""
    folder: Any = None if descriptor_of(output) is not None else Path(output).resolve().parent
    handle, path = tempfile.mkstemp(".packed", ".maxmargin-", folder)
    os.close(handle)
    return path


def _remove(path: str) -> None:
    """Take its name from a file.

    What is mapped into memory needs none, so that not even a crash leaves the file behind.
    """
    with suppress(OSError):  # where an open file cannot lose its name it stays
        os.unlink(path)


def _keep_while_mapped(stored: StoredSequences, files: ExitStack) -> None:
    """Let a file have its name for as long as it is in use: workers find it by that."""
    from ..cluster.loaders import mapping_of

    weakref.finalize(mapping_of(stored.tokens.indices), files.pop_all().close)
