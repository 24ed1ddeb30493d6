"""Most violated alignments: with errors added to the score, letters held or not, and of decoys."""

from __future__ import annotations

from typing import NamedTuple

from ...jit.decorator import kernel
from ...utils.types import Floats, Ints, Ints32
from .kernels import (
    add_counts,
    best_alignment,
    count_errors,
    errors_of_letters,
    hold_letters,
    write_row,
)


class TruePairs(NamedTuple):
    """The true alignments, their joint features as CSR rows, and how errors make a loss.

    The loss is ``units`` times the number of errors, or 1 if there are any (``zero_one``);
    ``most_errors`` is the largest number that an alignment of the example can have.
    """

    partners: Ints32
    indptr: Ints
    indices: Ints32
    values: Floats
    units: Floats
    most_errors: Ints
    residues: bool
    zero_one: bool


@kernel
def alignment_oracle(xs, ys, true_pairs, examples, w, scoring, work, out):
    """Most violated alignment of each listed pair of strings, as a sparse row of dpsi.

    Problem solved for strings x, y with the true alignment t, over all alignments a:

        max  Delta(t, a) - <dpsi(a), w>     Delta = unit * errors

    Out: ``out``, made for rows of n_features entries.
    """
    counts, partner = work.counts, work.partner
    filled = 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        i = examples[r]
        x = xs.letters[xs.offsets[i] : xs.offsets[i + 1]]
        y = ys.letters[ys.offsets[i] : ys.offsets[i + 1]]
        gold = true_pairs.partners[xs.offsets[i] : xs.offsets[i + 1]]
        unit = true_pairs.units[i]
        errors_of_letters(gold, len(x), len(y), true_pairs.residues, work)
        _load_gold(true_pairs, i, w, counts)
        best_alignment(x, y, scoring, gold, unit, work)
        add_counts(x, y, partner, scoring, -1.0, counts)
        out.losses[r] = unit * count_errors(x, y, gold, partner, true_pairs.residues)
        filled = write_row(counts, out, r, filled)


@kernel
def best_between(x, y, gold, residues, scoring, unit, lower, upper, work, losses):
    """Best alignment with ``unit`` added for each error, some letters held right or wrong.

    See `hold_letters`. Out: ``work.partner``, and which letters are wrong, in ``losses``.
    """
    m, n = len(x), len(y)
    errors_of_letters(gold, m, n, residues, work)
    hold_letters(gold, m, n, residues, lower, upper, work)
    best_alignment(x, y, scoring, gold, unit, work)
    for i in range(m):
        is_wrong = work.partner[i] != gold[i] and (residues or gold[i] >= 0)
        losses[i] = 1.0 if is_wrong else 0.0
    if residues:
        for j in range(n):
            losses[m + j] = 0.0
        for i in range(m):
            if work.partner[i] != gold[i]:
                if gold[i] >= 0:
                    losses[m + gold[i]] = 1.0
                if work.partner[i] >= 0:
                    losses[m + work.partner[i]] = 1.0


@kernel
def _load_gold(true_pairs, i, w, counts):
    """Put psi of the gold alignment of example i into counts, which are zero; returns its score."""
    score = 0.0
    for e in range(true_pairs.indptr[i], true_pairs.indptr[i + 1]):
        f = true_pairs.indices[e]
        counts[f] = true_pairs.values[e]
        score += w[f] * true_pairs.values[e]
    return score


@kernel
def homologue_oracle(
    natives, decoys, groups, true_pairs, examples, w, scoring, work, best_partner, out
):
    """Decoy, with its best alignment, that scores highest for each listed native string.

    Tsochantaridis et al. (2005), section 4.4: the homologue, in its true alignment, has to score
    more than every decoy in every alignment, by a margin of 1; the loss is 1 for all of them.
    Decoys ``groups[i]`` to ``groups[i + 1] - 1`` are those of example i. A row is empty, with
    loss 0, where no decoy comes within the margin.
    """
    counts = work.counts
    filled = 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        i = examples[r]
        x = natives.letters[natives.offsets[i] : natives.offsets[i + 1]]
        gold = true_pairs.partners[natives.offsets[i] : natives.offsets[i + 1]]
        gold_score = _load_gold(true_pairs, i, w, counts)
        best, best_decoy = gold_score - 1.0, -1
        for d in range(groups[i], groups[i + 1]):
            y = decoys.letters[decoys.offsets[d] : decoys.offsets[d + 1]]
            errors_of_letters(gold, len(x), len(y), False, work)
            score = best_alignment(x, y, scoring, gold, 0.0, work)
            if score > best:
                best, best_decoy = score, d
                best_partner[: len(x)] = work.partner[: len(x)]
        if best_decoy >= 0:
            y = decoys.letters[decoys.offsets[best_decoy] : decoys.offsets[best_decoy + 1]]
            add_counts(x, y, best_partner, scoring, -1.0, counts)
        else:
            counts[:] = 0.0
        out.losses[r] = 1.0 if best_decoy >= 0 else 0.0
        filled = write_row(counts, out, r, filled)
