"""The most violated ranking of each query for the loss 1 - average precision, as in SVM-map."""

from __future__ import annotations

import numpy as np

from ...jit.decorator import kernel
from ...search.average_precision import harmonic_numbers, place_negatives, write_swaps
from ...utils.types import Floats, Ints
from .queries import Queries, Ranked

__all__ = ["find_by_average_precision"]


def find_by_average_precision(
    queries: Queries, examples: Ints, ranked: Ranked, losses: Floats
) -> None:
    """Counts and losses of the most violated ranking of each listed query."""
    longest = int(np.diff(ranked.starts).max(initial=0))
    documents, places = np.empty(longest, np.int64), np.empty(longest + 2, np.int64)
    sums, harmonic = np.empty(longest + 1), harmonic_numbers(longest)
    _rank_by_precision(queries, examples, ranked, harmonic, documents, sums, places, losses)


@kernel(allocates=False)
def _rank_by_precision(queries, examples, ranked, harmonic, documents, sums, places, losses):
    """See `find_by_average_precision`; ``documents``, ``sums`` and ``places`` are scratch."""
    for r in range(len(examples)):
        q, start = examples[r], ranked.starts[r]
        first, m = queries.offsets[q], ranked.starts[r + 1] - start
        losses[r] = 0.0
        counts = ranked.counts[start : start + m]
        if queries.units[q] == 0.0:
            counts[:] = 0.0
            continue
        scores, order = ranked.scores[start : start + m], ranked.order[start : start + m]
        grades = queries.grades[first : first + m]
        n_relevant = 0
        for d in range(m):
            n_relevant += grades[d]
        relevant, others = documents[:n_relevant], documents[n_relevant:m]
        k, j = 0, 0
        sums[0] = 0.0
        for d in order:
            if grades[d] == 1:
                relevant[k] = d
                sums[k + 1] = sums[k] + scores[d]
                k += 1
            else:
                others[j] = d
                j += 1
        losses[r] = place_negatives(scores, relevant, others, harmonic, sums, places)
        write_swaps(relevant, others, places, 1.0, counts)
