"""What differs between two parse trees of a sentence: rules, and what is at the ends of spans."""

from __future__ import annotations

from collections.abc import Iterator

from ..problems.grammar.data import GrammarDecoder, Nodes, Sentences
from ..types import Floats
from .explanation import Evidence, Part, differing_parts

__all__ = ["derivation_evidence"]


def derivation_evidence(
    decoder: GrammarDecoder, sentences: Sentences, chosen: Nodes, rival: Nodes, w: Floats
) -> list[Evidence]:
    """Rules and spans that one derivation of a single sentence has and the other one has not."""
    return differing_parts(
        _parts(decoder, sentences, chosen, w), _parts(decoder, sentences, rival, w)
    )


def _parts(
    decoder: GrammarDecoder, sentences: Sentences, nodes: Nodes, w: Floats
) -> Iterator[Part]:
    """All that a derivation is scored by."""
    listed, grammar = decoder.psi(sentences, 0, nodes, 0).tolist(), decoder.grammar
    n_views = len(sentences.view_sizes)
    n_span = 4 * n_views + 1 if n_views else 0  # features of a span, behind the rules of its node
    yield grammar.describe(listed[0]), 0, float(w[listed[0]])
    at = 1
    for t in range(2 * int(sentences.offsets[1]) - 1):
        start, end = int(nodes.start[t]), int(nodes.end[t])
        for _ in range(2 if nodes.unary[t] >= 0 else 1):
            name = f"{grammar.describe(listed[at])}, words {start}-{end - 1}"
            yield name, start, float(w[listed[at]])
            at += 1
        if n_span:
            symbol = grammar.symbols[nodes.symbol[t]]
            span = listed[at : at + n_span]
            yield f"span of {symbol}, words {start}-{end - 1}", start, float(w[span].sum())
            at += n_span
