"""Most violated derivations as sparse rows."""

from __future__ import annotations

from ...jit.decorator import kernel
from ...search.modes import BEST_NON_GOLD, ERROR_COUNTS
from ...search.violation import violation
from .error_counts import best_by_error_count
from .features import list_features, score_nodes
from .kernels import (
    best_root,
    count_right,
    fill_chart,
    fill_non_gold,
    is_same,
    mark_gold,
    recover,
)


@kernel
def grammar_oracle(grammar, sentences, gold, examples, w, mode, zero_one, work, found, out):
    """Most violated derivation of each example as a sparse row of dpsi.

    Problem solved for example i with n words, gold derivation y, over all derivations z, of which m
    nodes are right and Delta = 1 - m / (2n - 1):

        ADDITIVE       max  Delta(y, z) - <dpsi(z), w>
        BEST_NON_GOLD  max  1 - <dpsi(z), w>,  z != y      Delta = 1 with ``zero_one``
        ERROR_COUNTS   max  the rescaled violation (`best_by_error_count`)

    In: ``grammar`` (GrammarArrays), ``sentences`` (Sentences), ``gold`` (Nodes of all examples),
    ``work`` (GrammarScratch), ``found`` (Nodes of one derivation). Out: CSR rows, large enough
    for the longest rows possible. A row is empty, with loss 0, where nothing beats ``gold``.
    """
    filled = 0
    out.indptr[0] = 0
    for row in range(len(examples)):
        i = examples[row]
        first = sentences.offsets[i]
        n = sentences.offsets[i + 1] - first
        base = 2 * first - i
        gold_label = work.gold_label
        mark_gold(grammar, gold, base, n, gold_label)
        gold_score = score_nodes(grammar, sentences, first, n, gold, base, w, work)
        violated = False
        if mode.kind == BEST_NON_GOLD:
            fill_chart(grammar, sentences, first, n, w, gold_label, 0.0, work)
            root, score = fill_non_gold(grammar, sentences, first, gold, base, n, w, work)
            violated = violation(1.0, score - gold_score, mode) > 0.0
            if violated:
                recover(
                    grammar, sentences, first, n, w, gold_label, 0.0, root, gold, base, work, found
                )
        else:
            unit = 1.0 / (2 * n - 1)
            fill_chart(grammar, sentences, first, n, w, gold_label, unit, work)
            root, score = best_root(grammar, w, work.top, n)
            recover(grammar, sentences, first, n, w, gold_label, unit, root, gold, -1, work, found)
            violated = not is_same(found, gold, base, n)
        if mode.kind == ERROR_COUNTS:
            known = 0.0
            if violated:
                loss = 1.0 - count_right(grammar, found, n, gold_label) / (2.0 * n - 1.0)
                score = score_nodes(grammar, sentences, first, n, found, 0, w, work)
                known = violation(loss, score - gold_score, mode)
                if known <= 0.0:
                    violated, known = False, 0.0
            value = best_by_error_count(
                grammar,
                sentences,
                first,
                n,
                gold,
                base,
                w,
                gold_score,
                known,
                mode,
                work,
                found,
            )
            violated = violated or value > known
        out.losses[row] = 0.0
        if violated:
            wrong = 2 * n - 1 - count_right(grammar, found, n, gold_label)
            out.losses[row] = 1.0 if zero_one else wrong / (2.0 * n - 1.0)
            filled = _write_difference(
                grammar, sentences, first, n, gold, base, found, work, out, filled
            )
        out.indptr[row + 1] = filled


@kernel
def _write_difference(grammar, sentences, first, n, gold, base, found, work, out, filled):
    """Append psi(x, gold) - psi(x, found) at position ``filled``; returns the new position."""
    counts, listed = work.counts, work.listed
    n_true = list_features(grammar, sentences, first, n, gold, base, work.features, listed)
    for f in range(n_true):
        counts[listed[f]] += 1.0
    rest = listed[n_true:]
    n_found = list_features(grammar, sentences, first, n, found, 0, work.features, rest)
    for f in range(n_found):
        counts[rest[f]] -= 1.0
    for f in range(n_true + n_found):
        if counts[listed[f]] != 0.0:
            out.indices[filled] = listed[f]
            out.values[filled] = counts[listed[f]]
            counts[listed[f]] = 0.0
            filled += 1
    return filled
