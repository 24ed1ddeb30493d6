"""Chunk F1 on held-out parts of CoNLL-2000's training part: how C is chosen without the test part.

``python -m benchmarks.held_out SOLVER {l1,l2} C [C ...]`` cuts the sentences into five consecutive
parts, trains without one of them and tags it, for three of the parts in turn. Passes and precision
are those of the `dcd` benchmark.
"""

from __future__ import annotations

import argparse
from statistics import mean

import numpy as np

from maxmargin.features import chunking_templates
from maxmargin.formats import TokenColumns
from maxmargin.solvers import SOLVERS, make_solver

from .datasets import conll2000
from .datasets.dcd import GRID_GAP, L1, L2, ROUNDS
from .objective import chunk_f1
from .tagging import Tagging

PARTS = 5
HELD_OUT = (0, 2, 4)  # of the parts; three take three fifths of the time


def without(data: TokenColumns, part: int) -> tuple[TokenColumns, TokenColumns]:
    """All sentences but those of one part, and these."""
    bounds = np.linspace(0, data.n_sequences, PARTS + 1).astype(np.int64)
    first, last = (int(bound) for bound in bounds[part : part + 2])
    start, stop = (int(data.offsets[i]) for i in (first, last))
    lengths = np.diff(data.offsets)
    rest = TokenColumns(
        [column[:start] + column[stop:] for column in data.columns],
        np.concatenate([[0], np.cumsum(np.delete(lengths, slice(first, last)))]),
    )
    held_out = TokenColumns(
        [column[start:stop] for column in data.columns], data.offsets[first : last + 1] - start
    )
    return rest, held_out


def main() -> None:
    """Print F1 on each part, and the mean, for every C."""
    parser = argparse.ArgumentParser(description="F1 on held-out parts of CoNLL-2000.")
    parser.add_argument("solver", choices=sorted(SOLVERS))
    parser.add_argument("slack", choices=["l1", "l2"])
    parser.add_argument("C", type=float, nargs="+")
    arguments = parser.parse_args()
    formulation = L1 if arguments.slack == "l1" else L2
    tol = GRID_GAP if SOLVERS[arguments.solver].certified else None
    train = conll2000.read("train")
    parts = [Tagging(*without(train, part), chunking_templates()) for part in HELD_OUT]
    for C in arguments.C:
        found = []
        for data in parts:
            solver = make_solver(arguments.solver, max_passes=ROUNDS, tol=tol)
            result = solver.solve(data.problem(None), formulation, C)
            found.append(chunk_f1(data.truth, data.decode(result.w)))
        each = "  ".join(f"{f1:.2f}" for f1 in found)
        print(f"{arguments.solver} {arguments.slack} C = {C:g}: {mean(found):.2f}   ({each})")


if __name__ == "__main__":
    main()
