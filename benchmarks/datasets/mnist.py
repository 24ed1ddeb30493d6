"""MNIST digits: 60,000 images of 28 x 28 pixels, 10 classes; pixels / 255, zero-one loss."""

from __future__ import annotations

import lzma
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from maxmargin.problems.classes.multiclass import MulticlassProblem

from ..case import Case, Floats, Options, Target
from ..data import data_path
from ..peers.linear_svc import LABEL, linear_svc
from ..solvers import ours

C = 0.1
WHITE = 0.0  # the value of a pixel without ink
PREFIXES = {"train": "train", "test": "t10k"}


def read_idx(name: str, header: int) -> NDArray[np.uint8]:
    """The bytes of an IDX file after its header."""
    with lzma.open(data_path(name)) as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def load(limit: int | None, part: str = "train") -> tuple[Floats, NDArray[np.int64]]:
    """Images and digits of "train" or "test"."""
    prefix = f"mnist/{PREFIXES[part]}"
    X = read_idx(f"{prefix}-images-idx3-ubyte.xz", 16).reshape(-1, 28 * 28)[:limit] / 255.0
    return X, read_idx(f"{prefix}-labels-idx1-ubyte.xz", 8)[:limit].astype(np.int64)


def cases(options: Options) -> Iterator[Case]:
    """To 0.1 % relative gap."""
    X, y = load(options.size(quick=300))

    def problem(limit: int | None = None) -> MulticlassProblem:
        return MulticlassProblem(X[:limit], y[:limit], 10)

    contestants = [ours(name, problem, C, tol=1e-3) for name in options.of_ours(["auto"])]
    if options.peers:
        contestants.append(linear_svc(X, y, problem, C))
    reference = "LIBLINEAR -s 4 -e 0.1: 7.4 s with reading; SVM-multiclass: 66 s"
    yield Case(
        f"MNIST C = {C:g}, 0.1 % gap",
        contestants,
        [
            Target("time", "auto", "cpu", reference, "s", at_most=5),
            Target("passes", "auto", "passes"),
            Target(
                "time / LinearSVC's to the same objective",
                "auto",
                "cpu",
                "LinearSVC, same run",
                relative_to=(LABEL, "cpu"),
            ),
            Target("primal value", "auto", "primal"),
            Target("primal value of LinearSVC", LABEL, "primal"),
        ],
        problem,
        C,
    )
