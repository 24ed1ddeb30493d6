"""Marginals and max-marginals of constituents, by inside-outside."""

from __future__ import annotations

import numpy as np

from ...search.limits import as_weights
from ...utils.types import Floats
from .data import GrammarDecoder, GrammarScratch, Sentences
from .kernels import ANY_LABEL, cell_of, fill_chart, fill_outside, span_scores

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
        others = (self._inside(i, self.w, chart, soft=False, without=span) for span in spans)
        return {span: best - other for span, other in zip(spans, others, strict=True)}

    def _length(self, i: int) -> int:
        """Words of sentence i."""
        return int(self.sentences.offsets[i + 1] - self.sentences.offsets[i])

    def _chart(self, n: int, *, outside: bool = False) -> GrammarScratch:
        """Space for a sentence of n words."""
        return self.decoder.scratch(n, len(self.sentences.view_sizes), outside=outside)

    def _inside(
        self, i: int, w: Floats, chart: GrammarScratch, *, soft: bool, without: Span | None = None
    ) -> float:
        """Fill the chart but for ``around``; the sum over all trees, or those without a span."""
        arrays, n, unit = self.grammar.arrays, self._length(i), 0.0
        chart.gold_label[:] = ANY_LABEL
        if without is not None:  # as the one wrong label there, and that is forbidden
            label, start, end = without
            at = self.labels.index(label)
            arrays = arrays._replace(
                symbol_label=self.by_symbol[:, at].astype(np.int32),
                unary_label=self.by_unary[:, at].astype(np.int32),
            )
            chart.gold_label[cell_of(start, end, n)] = 0
            unit = -np.inf
        first = int(self.sentences.offsets[i])
        fill_chart(arrays, self.sentences, first, n, w, chart.gold_label, unit, soft, chart)
        roots = np.flatnonzero(arrays.start >= 0)
        totals = chart.top[cell_of(0, n, n), roots] + w[arrays.start[roots]]
        return float((np.logaddexp if soft else np.maximum).reduce(totals, initial=-np.inf))
