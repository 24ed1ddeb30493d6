"""Best trees of new sentences, one or the k best.

The k best come from `search.k_best`: the best tree of a region is found by the ordinary search with
arcs forbidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from ...engine.parallel.threads import cubes, each_range
from ...search.k_best import Region, k_best
from ...search.limits import as_weights, check_number_of_weights
from ...utils.types import Bools, Floats, Ints, Ints32
from .features import (
    DEFAULT_TEMPLATES,
    ArcKeys,
    ArcTemplates,
    TokenFields,
    arc_keys,
    check_templates,
)
from .kernels import (
    DependencyOptions,
    FoundTrees,
    all_scores,
    best_tree,
    decode_trees,
    make_work,
)

__all__ = ["DependencyDecoder", "RankedTree", "decoding_work", "rank_trees"]


class RankedTree(NamedTuple):
    """Heads and labels (-1 without labels) by node, and the score."""

    heads: Ints32
    labels: Ints32
    score: float


def rank_trees(arcs: Floats, labels: Floats, k: int, options: Any, work: Any) -> list[RankedTree]:
    """The k best trees, best first; fewer if there are not so many.

    Parameters
    ----------
    arcs : array of shape (n + 1, n + 1)
        Scores of the arcs, head first.
    labels : array of shape (n + 1, n + 1, n_labels)
        Scores to add for the labels; ``n_labels`` may be 0.
    k : int
        How many trees to find.
    options, work : DependencyOptions, DependencyScratch
        Which trees there are; scratch.
    """
    scored = arcs[:, :, None] + (labels if labels.shape[2] else 0.0)
    best_scores, best_labels = scored.max(axis=2), scored.argmax(axis=2)
    n_nodes, tokens, n_labels = len(arcs), np.arange(1, len(arcs)), scored.shape[2]

    def find(region: Region) -> tuple[Ints, float] | None:
        """Best tree of a region, by the head and label of each token as one number."""
        scores, chosen, t = best_scores.copy(), best_labels, len(region.fixed)
        given, its_label = np.divmod(region.fixed, n_labels)
        scores[:, 1 : t + 1] = -np.inf
        scores[given, tokens[:t]] = scored[given, tokens[:t], its_label]
        if region.excluded:
            into = scored[:, t + 1].copy()
            into.ravel()[list(region.excluded)] = -np.inf
            scores[:, t + 1], chosen = into.max(axis=1), chosen.copy()
            chosen[:, t + 1] = into.argmax(axis=1)
        heads = np.full(n_nodes, -1, dtype=np.int32)
        total = float(best_tree(scores, options, work, heads))
        if total == -np.inf:
            return None
        codes = heads[1:] * n_labels + chosen[heads[1:], tokens]
        codes[:t] = region.fixed
        return codes, total

    ranked = []
    for codes, score in k_best(lambda regions: [find(region) for region in regions], k):
        heads, its_labels = np.full((2, n_nodes), -1, np.int32)
        heads[1:] = codes // n_labels
        if labels.shape[2]:
            its_labels[1:] = codes % n_labels
        ranked.append(RankedTree(heads, its_labels, score))
    return ranked


LARGEST_HASH = 30
ARC_WORK = 10.0  # counted work of a sentence, for each third power of a node
SCORED_ARC, SEARCHED_SPAN = 200.0, 3.0  # the same for each arc, and for each arc and node


class DependencyDecoder:
    """Finds best trees of new sentences with given weights; holds no examples.

    Parameters
    ----------
    templates : ArcTemplates
        Features of the arcs.
    hash_bits : int
        Arcs have ``2 ** hash_bits`` weights.
    n_labels : int
        Number of labels, 0 for trees without.
    projective, single_root : bool
        Which trees there are.
    sides_apart : bool
        See `arc_keys`.
    """

    def __init__(
        self,
        templates: ArcTemplates = DEFAULT_TEMPLATES,
        hash_bits: int = 22,
        n_labels: int = 0,
        *,
        projective: bool = True,
        single_root: bool = True,
        sides_apart: bool = True,
    ) -> None:
        bits: Any = hash_bits  # what users give may be anything
        if not isinstance(bits, Integral) or not 8 <= int(bits) <= LARGEST_HASH:
            raise ValueError(f"hash_bits must be from 8 to {LARGEST_HASH}, got {hash_bits!r}")
        check_templates(templates)
        self.templates = templates
        self.hash_bits = int(hash_bits)
        self.n_labels = n_labels
        self.sides_apart = sides_apart
        self.options = DependencyOptions(bool(projective), bool(single_root), False, False)
        self.size = 2**self.hash_bits + 2 ** (self.hash_bits - 5) * n_labels
        check_number_of_weights(self.size, f"hash_bits={hash_bits} with {n_labels} labels makes")

    def keys(self, fields: TokenFields) -> ArcKeys:
        """Keys of the nodes of sentences."""
        return arc_keys(
            fields, self.templates, self.hash_bits, self.n_labels, sides_apart=self.sides_apart
        )

    def decode(self, fields: TokenFields, w: Floats, n_jobs: int | None = None) -> FoundTrees:
        """Best tree of each sentence, by node, with their scores."""
        return self.decode_keys(self.keys(fields), w, n_jobs)

    def decode_keys(self, keys: ArcKeys, w: Floats, n_jobs: int | None = None) -> FoundTrees:
        """The same, of sentences whose keys are known."""
        w = as_weights(w, self.size)
        lengths = np.diff(keys.bounds)
        found = new_trees(int(keys.bounds[-1]), len(lengths))

        def decode(first: int, end: int) -> None:
            longest = int(lengths[first:end].max(initial=1))
            own = keys._replace(bounds=keys.bounds[first : end + 1])
            work = make_work(own, longest, self.options.projective)
            unknown = np.full(longest, -1, dtype=np.int32)
            into = found._replace(losses=found.losses[first:end])
            decode_trees(own, w, self.options, unknown, work, into)

        each_range(n_jobs, decoding_work(lengths), 1.0, decode)
        return found

    def decode_k_best(
        self,
        fields: TokenFields,
        w: Floats,
        k: int,
        allowed: Sequence[tuple[Bools, Bools] | None] | None = None,
        n_jobs: int | None = None,
    ) -> list[list[RankedTree]]:
        """The k best trees of each sentence, best first.

        ``allowed`` tells for sentences which arcs (n + 1, n + 1), head first, there may be, and
        which labels these may have; all if it is None.
        """
        w = as_weights(w, self.size)
        keys = self.keys(fields)
        lengths = np.diff(keys.bounds)

        def rank(first: int, end: int) -> list[list[RankedTree]]:
            work = make_work(keys, int(lengths[first:end].max(initial=1)), self.options.projective)
            ranked = []
            for i in range(first, end):
                arcs, labels = sentence_scores(keys, i, w, work)
                mask = None if allowed is None else allowed[i]
                if mask is not None:
                    arcs[~mask[0]] = -np.inf
                    labels[~mask[1]] = -np.inf
                ranked.append(rank_trees(arcs, labels, k, self.options, work))
                check_possible(i, ranked[-1], self.options.projective)
            return ranked

        return list(chain.from_iterable(each_range(n_jobs, cubes(lengths), k * ARC_WORK, rank)))

    def score(self, fields: TokenFields, heads: Ints32, labels: Ints32 | None, w: Floats) -> Floats:
        """Scores <w, psi(x, y)> of given trees, heads and labels by token; any tree will do."""
        w = as_weights(w, self.size)
        keys = self.keys(fields)
        work = make_work(keys, int(np.diff(keys.bounds).max(initial=1)), self.options.projective)
        totals = np.empty(len(keys.bounds) - 1)
        offsets = keys.bounds - np.arange(len(keys.bounds))  # of tokens: every root is a node
        for i, (start, end) in enumerate(pairwise(offsets.tolist())):
            arcs, by_label = sentence_scores(keys, i, w, work)
            sentence = heads[start:end], np.arange(1, end - start + 1)
            totals[i] = arcs[sentence].sum()
            if labels is not None:
                totals[i] += by_label[(*sentence, labels[start:end])].sum()
        return totals


def decoding_work(lengths: Ints) -> Floats:
    """Counted work of the sentences before each, by their nodes: scores of arcs, and the search."""
    n = lengths.astype(np.float64)
    return np.concatenate([[0.0], np.cumsum(n * n * (SCORED_ARC + SEARCHED_SPAN * n))])


def check_possible(i: int, ranked: Sequence[RankedTree], projective: bool) -> None:
    """Raise ValueError for a sentence without trees."""
    if not ranked:
        kind = "projective tree" if projective else "tree"
        raise ValueError(f"sentence {i}: no {kind} has allowed arcs only")


def sentence_scores(keys: ArcKeys, i: int, w: Floats, work: Any) -> tuple[Floats, Floats]:
    """Scores of all arcs (head, modifier) of sentence i, and of all labels of these."""
    N = int(keys.bounds[i + 1] - keys.bounds[i])
    arcs, labels = np.zeros((N, N)), np.zeros((N, N, keys.n_labels))
    all_scores(keys, i, w, work, arcs, labels)
    return arcs, labels


def new_trees(n_nodes: int, n_sentences: int) -> FoundTrees:
    """Arrays for trees."""
    return FoundTrees(
        np.full(n_nodes, -1, np.int32), np.full(n_nodes, -1, np.int32), np.empty(n_sentences)
    )
