"""Homologues among decoys: which of several strings aligns best with a given one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.cutting_planes import Planes, Row, empty_planes, stack_k_best, trim
from ...core.formulation import Rescaling
from ...engine.packed_problem import PackedProblem, chunks_of
from ...search.limits import as_examples, as_weights
from ...utils.types import Floats, Ints, Ints32
from .k_best import Ranked, rank_alignments
from .kernels import (
    Strings,
    TruePairs,
    add_counts,
    best_alignment,
    errors_of_letters,
    homologue_oracle,
)
from .problem import (
    Aligner,
    AlignmentLayout,
    check_examples,
    dpsi_row,
    pack_strings,
    string_at,
    strings_at,
)

__all__ = ["HomologueProblem"]


class Query(NamedTuple):
    """A coded string, its homologue with the alignment of both, and the decoys."""

    native: NDArray[np.uint8]
    homologue: NDArray[np.uint8]
    partner: Ints32
    decoys: list[NDArray[np.uint8]]


class Match(NamedTuple):
    """A decoy of a query, or -1 for its homologue, and how it is aligned."""

    decoy: int
    partner: Ints32


class HomologueProblem(PackedProblem):
    """Find the homologue of a string among decoys, by the score of the best alignment.

    Every decoy has loss 1, so rescalings are all the same.

    Parameters
    ----------
    natives, homologues : Strings
        Coded strings and their homologues.
    partners : array of int
        Alignments of those, flat like ``natives.letters``: position of each letter's partner, or
        -1.
    decoys : Strings
        Decoys of all examples.
    groups : array of int, shape (n_examples + 1,)
        Example i has the decoys ``groups[i]`` to ``groups[i + 1] - 1``.
    layout : AlignmentLayout
        What has a weight.
    """

    in_threads = True

    def __init__(
        self,
        natives: Strings,
        homologues: Strings,
        partners: Ints32,
        decoys: Strings,
        groups: ArrayLike,
        layout: AlignmentLayout,
    ) -> None:
        check_examples(natives, homologues, partners)
        self.natives, self.homologues, self.decoys = natives, homologues, decoys
        self.layout = layout
        self.groups = np.ascontiguousarray(groups, dtype=np.int64)
        n_decoys = len(decoys.offsets) - 1
        rising = len(self.groups) == len(natives.offsets) and (np.diff(self.groups) >= 0).all()
        if not rising or self.groups[0] != 0 or self.groups[-1] != n_decoys:
            raise ValueError(
                f"groups must rise from 0 to {n_decoys} in {len(natives.offsets) - 1} steps"
            )
        self.aligner = Aligner(layout)
        self.n_features = layout.size
        ones = np.ones(self.n_examples)
        psi = self.aligner.psi(natives, homologues, partners)
        self.true_pairs = TruePairs(
            np.ascontiguousarray(partners, dtype=np.int32),
            *psi[:3],
            units=ones,
            most_errors=ones.astype(np.int64),
            residues=False,
            zero_one=True,
        )

    @property
    def n_examples(self) -> int:
        """Number of native strings."""
        return len(self.natives.offsets) - 1

    def subset(self, indices: Ints) -> HomologueProblem:
        """See `Problem.subset`."""
        letters, _ = chunks_of(self.natives.offsets, indices)
        decoys, groups = chunks_of(self.groups, indices)
        return HomologueProblem(
            strings_at(self.natives, indices),
            strings_at(self.homologues, indices),
            self.true_pairs.partners[letters],
            strings_at(self.decoys, decoys),
            groups,
            self.layout,
        )

    def input_of(self, i: int) -> Query:
        """String i with its homologue, their alignment, and the decoys."""
        own = slice(self.natives.offsets[i], self.natives.offsets[i + 1])
        return Query(
            string_at(self.natives, i).copy(),
            string_at(self.homologues, i).copy(),
            self.true_pairs.partners[own].copy(),
            [string_at(self.decoys, d).copy() for d in range(self.groups[i], self.groups[i + 1])],
        )

    def output_of(self, i: int) -> Match:
        """The homologue of string i."""
        own = slice(self.natives.offsets[i], self.natives.offsets[i + 1])
        return Match(-1, self.true_pairs.partners[own].copy())

    def joint_feature(self, x: Any, y: Any) -> Floats:
        """See `Problem.joint_feature`: how often the alignment has each operation."""
        counts = np.zeros(self.n_features)
        other = x.homologue if y.decoy < 0 else x.decoys[y.decoy]
        add_counts(x.native, other, y.partner, self.layout.scoring(counts), 1.0, counts)
        return counts

    def loss(self, y: Any, y_hat: Any) -> float:
        """1 for a decoy; see `Problem.loss`."""
        return float(y.decoy != y_hat.decoy)

    def predict(self, x: Any, w: Floats) -> Match:
        """The homologue in its alignment, or a decoy that aligns better; see `Problem.predict`."""
        best = Match(-1, x.partner)
        highest = float(self.joint_feature(x, best) @ as_weights(w, self.n_features))
        native = pack_strings([x.native])
        for d, decoy in enumerate(x.decoys):
            partners, scores = self.aligner.align(native, pack_strings([decoy]), w)
            if scores[0] > highest:
                best, highest = Match(d, partners), float(scores[0])
        return best

    def _most_violated(
        self, examples: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes:
        """Best decoy of each listed string, in its best alignment."""
        out = empty_planes(len(examples), len(examples) * self.layout.size)
        work = self.aligner.scratch(self.natives, self.decoys)
        homologue_oracle(
            self.natives,
            self.decoys,
            self.groups,
            self.true_pairs,
            examples,
            w,
            self.layout.scoring(w),
            work,
            np.empty_like(work.partner),
            out,
        )
        return trim(out)

    def k_best(
        self,
        indices: Ints,
        w: Floats,
        k: int,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """The k best alignments with decoys of each listed string; see `Problem.k_best`.

        An output is a decoy with an alignment, so that a decoy may be among them more than once.
        """
        scoring, work = self.layout.scoring(w), self.aligner.scratch(self.natives, self.decoys)
        found: list[list[tuple[Row, float]]] = []
        for i in as_examples(indices, self.n_examples).tolist():
            x = string_at(self.natives, i)
            nothing = np.full(len(x), -1, np.int32)
            decoys, highest = {}, {}
            for d in range(int(self.groups[i]), int(self.groups[i + 1])):
                decoys[d] = string_at(self.decoys, d)
                errors_of_letters(nothing, len(x), len(decoys[d]), False, work)
                highest[d] = best_alignment(x, decoys[d], scoring, nothing, 0.0, work)
            listed: list[tuple[int, Ranked]] = []
            for d in sorted(decoys, key=lambda d: -highest[d]):
                if len(listed) == k and highest[d] <= listed[-1][1].score:
                    break  # no alignment of this decoy, nor of those behind it, is good enough
                listed += [(d, r) for r in rank_alignments(x, decoys[d], scoring, k, work)]
                listed = sorted(listed, key=lambda pair: -pair[1].score)[:k]
            given = (scoring, self.layout.size)
            found.append(
                [
                    (dpsi_row(self.true_pairs, i, x, decoys[d], r.partner, *given), 1.0)
                    for d, r in listed
                ]
            )
        return stack_k_best(found, k)
