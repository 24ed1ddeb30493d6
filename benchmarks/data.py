"""Where the data are, and slices of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.problems.chain.problem import ChainLoss, ChainProblem

REPOSITORY = Path(__file__).resolve().parents[1]


def data_path(name: str) -> Path:
    """Path of a file such as "usps/usps.npz", in $MAXMARGIN_DATA or beside the repository."""
    chosen = os.environ.get("MAXMARGIN_DATA")
    path = (Path(chosen) if chosen else REPOSITORY.parent / "shared" / "data") / name
    if not path.exists():
        raise FileNotFoundError(f"no data file {name}: set MAXMARGIN_DATA to the folder it is in")
    return path


def first_sequences(offsets: NDArray[np.int64], limit: int | None) -> NDArray[np.int64]:
    """Offsets of the first so many sequences, or of all."""
    return offsets if limit is None else offsets[: limit + 1]


def chain_problem(
    tokens: Any,
    offsets: NDArray[np.int64],
    labels: NDArray[Any],
    n_labels: int,
    limit: int | None,
    *,
    loss: ChainLoss = "hamming",
    fit_intercept: bool = False,
) -> ChainProblem:
    """A chain problem of the first so many sequences, or of all."""
    kept = first_sequences(offsets, limit)
    n_tokens = int(kept[-1])
    return ChainProblem(
        tokens[:n_tokens],
        kept,
        labels[:n_tokens],
        n_labels,
        loss=loss,
        fit_intercept=fit_intercept,
    )
