"""``maxmargin warm-up``: compiles kernels ahead, for images, continuous integration and servers."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ...jit.compiling import compile_seconds
from ...registry import ESTIMATORS, Estimator, import_name
from ..console import DONE, Signals, UsageError, echo, echo_result
from ..options import add_command
from ..tasks import TASKS

__all__ = ["add_parser", "run"]

FEW, MANY = 24, 300  # examples to train on: solvers do otherwise with few, and with many weights


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser = add_command(
        commands,
        "warm-up",
        run,
        help="compile kernels in advance, so that the first training starts at once",
        description="Compile the kernels of some tasks, or of all, into the cache on disk, by "
        "training on a few made-up examples, and show how long each took. This includes the "
        "kernels of train --stream. Kernels in the cache are not compiled again.",
    )
    parser.add_argument(
        "tasks",
        nargs="*",
        metavar="TASK",
        help=f"tasks or estimators to compile kernels for: {', '.join(_names())} (default: all)",
    )
    return parser


def run(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train each of the estimators."""
    entries = _names()
    unknown = [name for name in arguments.tasks if name not in entries]
    if unknown:
        raise UsageError(
            f"there is no task or estimator {unknown[0]!r}, expected {', '.join(entries)}"
        )
    folder = cache_folder()
    for name in dict.fromkeys(arguments.tasks or entries):
        before, started = compile_seconds(), time.perf_counter()
        for entry in entries[name]:
            warm_up(entry)
        seconds, compiling = time.perf_counter() - started, compile_seconds() - before
        echo_result(f"{name:20s} {seconds:6.1f} s, {compiling:.1f} s of it for kernels")
    echo(f"the compiled kernels are stored in {folder} and similar folders")
    return DONE


def cache_folder() -> str:
    """Where kernels of one file are kept; ValueError if nowhere."""
    from ...engine.rows import add_scores

    if not hasattr(add_scores, "stats"):
        raise ValueError("there is nothing to compile while NUMBA_DISABLE_JIT is set")
    folder: str | None = add_scores.stats.cache_path
    if folder is None:
        raise ValueError(
            "compiled kernels cannot be stored, so every process will compile them again, "
            "for some 10 to 30 seconds: set NUMBA_CACHE_DIR to a writable folder"
        )
    return folder


def warm_up(entry: Estimator) -> None:
    """Fit the estimator to made-up data, and predict them."""
    parameters, X, y = MADE_UP[entry.name]()
    estimator = import_name(entry.module, entry.name)(**parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is learned does not matter
        for n in (FEW, MANY):
            estimator.fit(X[:n], None if y is None else y[:n]).predict(X[:n])
        if getattr(X, "ndim", 0) == 2:
            estimator.predict(0.0 * X)  # arrays of zeros are brought into another form
        if entry.task is not None and TASKS[entry.task].streams:
            for n in (FEW, MANY):
                _fit_stored(estimator, X[:n], y[:n])


def _fit_stored(tagger: Any, X: Any, y: Any) -> None:
    """Fit a tagger as --stream does: arrays of a file are read-only, and have other kernels."""
    import os
    import tempfile

    from sklearn.base import clone

    from ...features import PackedSequences
    from ...features.streaming import pack_stream
    from ...features.tokens import as_token_columns

    pairs = [list(zip(words, tags, strict=True)) for words, tags in zip(X, y, strict=True)]
    handle, path = tempfile.mkstemp(".packed")
    os.close(handle)
    try:
        fitted = pack_stream(path, [as_token_columns(pairs)], tagger.features)
        clone(tagger).set_params(features=fitted).fit(PackedSequences.open(path))
    finally:
        with suppress(OSError):  # where an open file cannot lose its name it stays
            os.unlink(path)


def _names() -> dict[str, list[Estimator]]:
    """Estimators by their tasks, which may be shared, or by their names where they have none."""
    names: dict[str, list[Estimator]] = {}
    for entry in ESTIMATORS:
        if entry.name in MADE_UP:
            name = entry.name if entry.task is None else entry.task
            names.setdefault(name, []).append(entry)
    return names


# ----- data, few but hard enough for all that a solver does -------------------------------------

Case = tuple[dict[str, Any], Any, Any]
TRAINING = {"C": 1.0, "tol": 1e-3, "random_state": 0}


def _rows(n_labels: int, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Noisy vectors of four numbers around their labels, in arrays of a shape."""
    import numpy as np

    rng = np.random.default_rng(0)
    y = rng.integers(n_labels, size=shape)
    return rng.normal(size=(*shape, 4)) + y[..., None], y


def _classes() -> Case:
    return TRAINING, *_rows(3, (MANY,))


def _two_classes() -> Case:
    return TRAINING, *_rows(2, (MANY,))


def _label_sets() -> Case:
    _, y = _rows(2, (MANY, 3))
    return TRAINING, _rows(2, (MANY,))[0] + y.sum(axis=1, keepdims=True), y


def _tagged_words() -> Case:
    from ...features import WindowFeatures

    X, y = _rows(12, (MANY, 6))
    words = [[f"{x[0]:.3f}" for x in row] for row in X]
    tags = [[f"T{label}" for label in row] for row in y.tolist()]
    return {**TRAINING, "features": WindowFeatures()}, words, tags


def _segments() -> Case:
    X, y = _rows(3, (MANY, 6))
    return TRAINING, list(X), [[(k % 3, k % 3 + 2, "ab"[k % 2])] for k in range(len(y))]


def _nodes() -> Case:
    return TRAINING, *_rows(3, (MANY, 4))


def _dependencies() -> Case:
    words = [("the", "D"), ("dog", "N"), ("barks", "V"), ("loudly", "R")]
    sentences = [[words[(k + t) % 4] for t in range(4)] for k in range(MANY)]
    return (
        {**TRAINING, "hash_bits": 10},
        sentences,
        [[(2, 3, 0, 3), (0, 1, 1, 2), (2, 0, 2, 3)][k % 3] for k in range(MANY)],
    )


def _trees() -> Case:
    from ...formats.trees import as_tree

    trees = [
        "(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))",
        "(S (NP (NN we)) (VP (VBZ see) (NP (DT the) (NN cat))))",
    ]
    return TRAINING, [as_tree(tree) for tree in trees * 3], None


def _counted_trees() -> Case:
    return {}, *_trees()[1:]


def _alignments() -> Case:
    return (
        TRAINING,
        [("ACGT", "AGT"), ("TCGA", "TGA")] * 3,
        [("ACGT", "A-GT"), ("TCGA", "T-GA")] * 3,
    )


def _homologues() -> Case:
    parameters, X, y = _alignments()
    return parameters, [(x, [z, "AAA"]) for x, z in X], [(0, own) for own in y]


def _images() -> Case:
    import numpy as np

    X = np.random.default_rng(0).normal(size=(MANY, 8, 8))
    return {**TRAINING, "patch": 3}, X, [[(k % 5, 1), (k % 5 + 2, 3)] for k in range(MANY)]


def _matchings() -> Case:
    import numpy as np

    X = np.random.default_rng(0).normal(size=(MANY, 3, 3, 4))
    return TRAINING, list(X), [(np.arange(3) + k) % 3 for k in range(MANY)]


def _graphs() -> Case:
    import numpy as np

    rng = np.random.default_rng(0)
    ring = [(v, (v + 1) % 5) for v in range(5)]
    X = [(rng.normal(size=(5, 4)), ring) for _ in range(MANY)]
    return TRAINING, X, [(np.arange(5) + k) % 3 for k in range(MANY)]


#: What each estimator is fitted to. (Kernels of `StructuralSVM` are those of problems of users.)
MADE_UP: dict[str, Callable[[], Case]] = {
    "SequenceTagger": _tagged_words,
    "MulticlassSVM": _classes,
    "DependencyParser": _dependencies,
    "GrammarParser": _trees,
    "GraphLabeler": _graphs,
    "MultilabelSVM": _label_sets,
    "OrdinalSVM": _classes,
    "HomologyRanker": _homologues,
    "PartLocator": _images,
    "PCFGParser": _counted_trees,
    "RankSVM": _classes,
    "SequenceAligner": _alignments,
    "SequenceSegmenter": _segments,
    "SetMatcher": _matchings,
    "TreeLabeler": _nodes,
    "PerformanceSVM": _two_classes,
}
