"""Marginals and max-marginals of constituents, by inside-outside."""

from __future__ import annotations

import numpy as np

from ..._jit import kernel
from ...search.limits import as_weights
from ...search.semiring import plus
from ...types import Bools, Floats
from .data import GrammarDecoder, GrammarScratch, Sentences
from .features import add_span_scores
from .kernels import cell_of, fill_outside, list_live, span_scores

__all__ = ["ConstituentDistribution", "Span"]

Span = tuple[str, int, int]  # label, first word, word behind the last


class ConstituentDistribution:
    """Trees of sentences, as sets of labelled spans; not those of tags, nor of binarisation."""

    def __init__(self, decoder: GrammarDecoder, sentences: Sentences, w: Floats) -> None:
        self.decoder, self.grammar, self.sentences = decoder, decoder.grammar, sentences
        self.w = as_weights(w, decoder.n_features)
        symbols = self.grammar.symbols
        categories = [s.label if s.kind == "category" else None for s in symbols]
        self.labels = sorted({label for label in categories if label is not None})
        of_chains = [{categories[k] for k in chain} for chain in self.grammar.chains]
        #: Which symbols, and which unary rules, make a constituent with a label.
        self.by_symbol = np.array([[c == label for label in self.labels] for c in categories])
        self.by_unary = np.array(
            [[label in chain for label in self.labels] for chain in of_chains], bool
        ).reshape(len(of_chains), len(self.labels))
        self.by_symbol = self.by_symbol.reshape(len(symbols), len(self.labels))

    def probabilities(self, i: int, temperature: float) -> dict[Span, float]:
        """Probability of each constituent of sentence i that is in some tree; none without a tree.

        Those that rounding could have made are left out.
        """
        n = self._length(i)
        w, chart = self.w / temperature, self._chart(n, outside=True)
        total = self._inside(i, w, chart, soft=True)
        if total == -np.inf:
            return {}
        arrays = self.grammar.arrays
        first = int(self.sentences.offsets[i])
        spans = span_scores(arrays, self.sentences, first, n, w, chart.features)
        fill_outside(arrays, n, w, spans, True, chart)
        bottoms = arrays.unary_bottom
        tops = np.array([chain[0] for chain in self.grammar.chains], np.int64)
        of_unary = w[arrays.first_unary : arrays.first_unary + len(tops)]
        plain = np.exp(chart.low + chart.around_top - total)
        chained = np.exp(chart.low[:, bottoms] + of_unary + chart.around_top[:, tops] - total)
        share = plain @ self.by_symbol + chained @ self.by_unary
        cells = [(start, end) for start in range(n) for end in range(start + 1, n + 1)]
        return {
            (self.labels[label], *cells[cell]): float(min(share[cell, label], 1.0))
            for cell, label in np.argwhere(share > 1e-12).tolist()
        }

    def margins(self, i: int, spans: list[Span]) -> dict[Span, float]:
        """How much worse the best tree of sentence i is without a constituent of the best one.

        Infinity if there is no other tree.
        """
        n = self._length(i)
        chart = self._chart(n)
        best = self._inside(i, self.w, chart, soft=False)
        found = {}
        for span in spans:
            label, start, end = span
            banned = (int(cell_of(start, end, n)), self.labels.index(label))
            found[span] = best - self._inside(i, self.w, chart, soft=False, banned=banned)
        return found

    def _length(self, i: int) -> int:
        """Words of sentence i."""
        return int(self.sentences.offsets[i + 1] - self.sentences.offsets[i])

    def _chart(self, n: int, *, outside: bool = False) -> GrammarScratch:
        """Space for a sentence of n words."""
        return self.decoder.scratch(n, len(self.sentences.view_sizes), outside=outside)

    def _inside(
        self,
        i: int,
        w: Floats,
        chart: GrammarScratch,
        *,
        soft: bool,
        banned: tuple[int, int] = (-1, 0),
    ) -> float:
        """Fill the chart but for ``around``; the sum over all trees.

        No constituent with the second number's label is over the cell of the first.
        """
        cell, label = banned
        masks: tuple[Bools, Bools] = (
            np.ascontiguousarray(self.by_symbol[:, label]),
            np.ascontiguousarray(self.by_unary[:, label]),
        )
        first, n = int(self.sentences.offsets[i]), self._length(i)
        data = (self.grammar.arrays, self.sentences, first, n, w, soft, cell, *masks)
        return float(inside(*data, chart))


@kernel
def inside(grammar, sentences, first, n, w, soft, cell_without, symbols, unaries, work):
    """Sums of the derivations of all symbols over all spans, as `fill_chart` fills them.

    ``low`` without and ``top`` with unary rules: maxima of scores, or with ``soft`` logarithms of
    sums of their exponentials. Over the cell ``cell_without`` there are none of the ``symbols``
    without a unary rule, and none of the ``unaries``. Returns the sum over whole derivations.
    """
    K, low, top, features = len(grammar.start), work.low, work.top, work.features
    for width in range(1, n + 1):
        for start in range(n - width + 1):
            end = start + width
            cell = cell_of(start, end, n)
            scores = low[cell]
            scores[:] = -np.inf
            terminal = sentences.terminals[first + start]
            if width == 1 and terminal >= 0:
                for x in range(grammar.lexical_ptr[terminal], grammar.lexical_ptr[terminal + 1]):
                    scores[grammar.lexical_symbol[x]] = w[grammar.first_lexical + x]
            for split in range(start + 1, end):
                left_scores = top[cell_of(start, split, n)]
                right_scores = top[cell_of(split, end, n)]
                left_cell = cell_of(start, split, n)
                for b in range(work.n_live[left_cell]):
                    B = work.live[left_cell, b]
                    for r in range(grammar.left_ptr[B], grammar.left_ptr[B + 1]):
                        A, right_score = grammar.parent[r], right_scores[grammar.right[r]]
                        if right_score > -np.inf:
                            score = left_scores[B] + right_score + w[r]
                            scores[A] = plus(scores[A], score, soft)
            if len(sentences.view_sizes) > 0:
                add_span_scores(grammar, sentences, first, n, start, end, w, features, scores)
            for A in range(K):
                total = -np.inf if cell == cell_without and symbols[A] else scores[A]
                for u in range(grammar.unary_ptr[A], grammar.unary_ptr[A + 1]):
                    if not (cell == cell_without and unaries[u]):
                        score = scores[grammar.unary_bottom[u]] + w[grammar.first_unary + u]
                        total = plus(total, score, soft)
                top[cell, A] = total
            list_live(grammar, top[cell], cell, work)
    total = -np.inf
    for A in range(K):
        if grammar.start[A] >= 0:
            total = plus(total, top[cell_of(0, n, n), A] + w[grammar.start[A]], soft)
    return total
