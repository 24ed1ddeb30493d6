"""Dependency trees: a head for each token, chosen so that the arcs form a tree.

The score of a tree is the sum of its arcs' scores (first order). Features are hashed; see
`features` for what they are and `scores` for where their weights are.
"""

from __future__ import annotations

import copy
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...core.cutting_planes import Planes, empty_planes, trim
from ...core.formulation import Formulation, Rescaling
from ...engine.accelerators import Accelerators
from ...engine.oracle import Oracle
from ...engine.packed_problem import PackedProblem, chunks_of, counted_loss, sparse_row
from ...engine.rows import check_codes
from ...search.bounded_search import Candidate, Decoder, Violation, most_violated
from ...search.limits import as_examples, as_weights
from ...search.modes import (
    ADDITIVE,
    ERROR_COUNTS,
    PREDICT,
    SearchMode,
    search_mode,
)
from ...utils.types import Floats, Ints, Ints32
from ...utils.validation import check_choice
from .decoder import DependencyDecoder, new_trees, rank_trees, sentence_scores
from .features import (
    DEFAULT_TEMPLATES,
    ArcKeys,
    ArcTemplates,
    TokenFields,
)
from .kernels import (
    DependencyOptions,
    DependencyScratch,
    FoundTrees,
    best_between,
    count_entries,
    dependency_oracle,
    make_work,
    most_arc_features,
    score_sentence,
    write_differences,
)
from .scores import arc_features
from .store import TreeStore

__all__ = ["DependencyProblem", "check_trees"]


DependencyLoss = Literal["hamming", "normalized_hamming", "zero_one"]


class Arcs(NamedTuple):
    """A tree: heads of the tokens (0: the root), and labels of their arcs (-1 without labels)."""

    heads: Ints32
    labels: Ints32


class DependencyProblem(PackedProblem):
    """Dependency trees with exact oracles.

    Parameters
    ----------
    fields : TokenFields
        The sentences.
    heads : array of int, shape (n_tokens,)
        True heads of all tokens of all sentences: 0 for the root, else the number of a token of
        the same sentence, counted from 1.
    labels : array of int, shape (n_tokens,), optional
        True labels of the arcs, in ``0..n_labels - 1``; without them trees are not labelled.
    n_labels : int, optional
        Number of labels; by default one more than the largest.
    loss : {"hamming", "normalized_hamming", "zero_one"}
        Number of tokens with a wrong head (or label), their share, or 1 if there is any.
    projective : bool
        Whether candidates are projective trees or all trees. The gold tree may be either.
    single_root : bool
        Whether exactly one token hangs on the root.
    templates : ArcTemplates
        Features of the arcs.
    hash_bits : int
        Arcs have ``2 ** hash_bits`` weights.
    """

    in_threads = True

    def __init__(
        self,
        fields: TokenFields,
        heads: ArrayLike,
        labels: ArrayLike | None = None,
        n_labels: int | None = None,
        *,
        loss: DependencyLoss = "hamming",
        projective: bool = True,
        single_root: bool = True,
        templates: ArcTemplates = DEFAULT_TEMPLATES,
        hash_bits: int = 22,
    ) -> None:
        check_choice(loss, ("hamming", "normalized_hamming", "zero_one"), "loss")
        K = 0
        if labels is not None:
            codes = np.ascontiguousarray(labels, dtype=np.int32)
            K = int(n_labels if n_labels is not None else codes.max(initial=-1) + 1)
            check_codes(codes, K, "labels")
        self.decoder = DependencyDecoder(
            templates, hash_bits, K, projective=projective, single_root=single_root
        )
        self.options = self.decoder.options._replace(
            normalized=loss == "normalized_hamming", zero_one=loss == "zero_one"
        )
        self.arcs = self.decoder.keys(fields)
        self.n_features = self.decoder.size
        flat = np.ascontiguousarray(heads, dtype=np.int32)
        check_trees(flat, fields.bounds, single_root=single_root)
        self.gold = _by_node(flat, fields.bounds)
        self.gold_labels = (
            _by_node(codes, fields.bounds) if K else np.full(len(self.gold), -1, np.int32)
        )

    @property
    def n_examples(self) -> int:
        """Number of sentences."""
        return len(self.arcs.bounds) - 1

    def subset(self, indices: Ints) -> DependencyProblem:
        """See `Problem.subset`."""
        nodes, bounds = chunks_of(self.arcs.bounds, indices)
        feature_block = copy.copy(self)
        feature_block.arcs = self.arcs._replace(
            bounds=bounds, keys=self.arcs.keys[nodes], same=self.arcs.same[nodes]
        )
        feature_block.gold, feature_block.gold_labels = self.gold[nodes], self.gold_labels[nodes]
        return feature_block

    def input_of(self, i: int) -> ArcKeys:
        """Keys of the nodes of sentence i alone."""
        nodes = slice(self.arcs.bounds[i], self.arcs.bounds[i + 1])
        bounds = np.array([0, nodes.stop - nodes.start])
        return self.arcs._replace(
            bounds=bounds, keys=self.arcs.keys[nodes], same=self.arcs.same[nodes]
        )

    def output_of(self, i: int) -> Arcs:
        """Gold heads and labels of the tokens of sentence i."""
        tokens = slice(self.arcs.bounds[i] + 1, self.arcs.bounds[i + 1])
        return Arcs(self.gold[tokens].copy(), self.gold_labels[tokens].copy())

    def joint_feature(self, x: Any, y: Any) -> Any:
        """See `Problem.joint_feature`, and `scores` for the features of an arc."""
        features = np.empty(most_arc_features(x, len(y.heads) + 1), np.int32)
        listed = []
        for token, (head, label) in enumerate(zip(y.heads, y.labels, strict=True), 1):
            count = arc_features(x, 0, head, token, label, features)
            listed.append(features[:count].copy())
        return sparse_row(np.concatenate(listed), 1.0, self.n_features)

    def loss(self, y: Any, y_hat: Any) -> float:
        """Tokens with a wrong head or label, their share, or whether there are any."""
        wrong = np.not_equal(y.heads, y_hat.heads) | np.not_equal(y.labels, y_hat.labels)
        return counted_loss(wrong, self.options.normalized, self.options.zero_one)

    def predict(self, x: Any, w: Floats) -> Arcs:
        """The best tree; see `Problem.predict`."""
        found = self.decoder.decode_keys(x, w)
        return Arcs(found.heads[1:], found.labels[1:])

    def _most_violated(
        self, examples: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes:
        """Most violated tree of each listed sentence."""
        return self.oracle_at_scale(examples, w, 1.0, rescaling, sqrt_loss)

    @property
    def search_sizes(self) -> Floats:
        """Arcs of the sentences, by which work is shared out."""
        return np.diff(self.arcs.bounds).astype(np.float64) ** 2

    def accelerators(self, formulation: Formulation) -> DependencyAccelerators:
        """Searches at scaled weights, and a store with the oracle inside."""
        return DependencyAccelerators(self, formulation)

    def oracle_at_scale(
        self, indices: Ints, v: Floats, scale: float, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes:
        """The same at ``scale * v``, by scaling the scores; see `Problem.oracle_at_scale`."""
        mode = search_mode(rescaling, sqrt_loss, self.options.zero_one)
        return self._search(indices, v, mode, scale)

    def predictions(self, indices: Ints, w: Floats) -> Planes:
        """Best tree of each listed sentence; see `Problem.predictions`."""
        return self._search(indices, w, PREDICT)

    def k_best(
        self,
        indices: Ints,
        w: Floats,
        k: int,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """The k best wrong trees of each listed sentence; see `Problem.k_best`."""
        kind = search_mode(rescaling, sqrt_loss, self.options.zero_one).kind
        if kind == ERROR_COUNTS:
            raise ValueError(
                "the k best trees need a loss that decomposes over arcs: use "
                "rescaling='margin' with sqrt_loss=False, or loss='zero_one'"
            )
        examples = as_examples(indices, self.n_examples)
        w = as_weights(w, self.n_features)
        work = self._work(examples)
        repeated = np.repeat(examples, k)
        starts, found = self._allocate(repeated)
        for r, i in enumerate(examples):
            own = slice(int(self.arcs.bounds[i]), int(self.arcs.bounds[i + 1]))
            gold, gold_labels = self.gold[own], self.gold_labels[own]
            arcs, labels = sentence_scores(self.arcs, i, w, work)
            unit = 1.0 / (len(gold) - 1) if self.options.normalized else 1.0
            if kind == ADDITIVE:
                _add_loss(arcs, labels, gold, gold_labels, unit)
            listed = rank_trees(arcs, labels, k + 1, self.options, work)
            ranked = [
                tree
                for tree in listed
                if (tree.heads[1:] != gold[1:]).any() or (tree.labels[1:] != gold_labels[1:]).any()
            ]
            for place in range(k):
                row = r * k + place
                nodes = slice(int(starts[row]), int(starts[row + 1]))
                heads, its_labels = gold, gold_labels
                if place < len(ranked):
                    heads, its_labels, _ = ranked[place]
                found.heads[nodes], found.labels[nodes] = heads, its_labels
                n_wrong = int(((heads != gold) | (its_labels != gold_labels))[1:].sum())
                found.losses[row] = min(n_wrong, 1) if self.options.zero_one else n_wrong * unit
        return self._rows(repeated, starts, found, work)

    def _search(self, indices: Ints, w: Floats, mode: SearchMode, scale: float = 1.0) -> Planes:
        """Run the oracle kernel for the listed sentences."""
        examples = as_examples(indices, self.n_examples)
        w = as_weights(w, self.n_features)
        work = self._work(examples)
        starts, found = self._allocate(examples)
        given = (self.arcs, self.gold, self.gold_labels, examples, starts, w, float(scale))
        if mode.kind == ERROR_COUNTS:
            violation = Violation(mode.slack, mode.sqrt_loss)
            _bounded_oracle(*given, self.options, violation, work, found)
        else:
            dependency_oracle(*given, self.options, mode, work, found)
        return self._rows(examples, starts, found, work)

    def _work(self, examples: Ints) -> DependencyScratch:
        """Scratch for the longest of these sentences."""
        sizes = self.arcs.bounds[examples + 1] - self.arcs.bounds[examples]
        return make_work(self.arcs, int(sizes.max(initial=1)), self.options.projective)

    def _allocate(self, examples: Ints) -> tuple[Ints, FoundTrees]:
        """Arrays for one tree of each of these sentences, and where each begins."""
        sizes = self.arcs.bounds[examples + 1] - self.arcs.bounds[examples]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return starts, new_trees(int(starts[-1]), len(examples))

    def _rows(
        self,
        examples: Ints,
        starts: Ints,
        found: FoundTrees,
        work: DependencyScratch,
    ) -> Planes:
        """Differences between the gold tree and the trees found."""
        given = (self.arcs, self.gold, self.gold_labels, examples, starts, found)
        out = empty_planes(len(examples), count_entries(*given))._replace(losses=found.losses)
        write_differences(*given, work, out)
        return trim(out)


class DependencyAccelerators(Accelerators):
    """Scaled scores in place of scaled weights, of which there are very many; planes in arcs."""

    def __init__(self, problem: DependencyProblem, formulation: Formulation) -> None:
        self.problem = problem
        self.formulation = formulation

    def oracle_at_scale(self, indices: Ints, v: Floats, scale: float) -> Planes:
        """See `Accelerators`."""
        kind = self.formulation
        return self.problem.oracle_at_scale(indices, v, scale, kind.rescaling, kind.uses_sqrt_loss)

    def store(self, oracle: Oracle, upper_bounds: Floats, cache_bytes: int) -> TreeStore | None:
        """A store with the oracle inside, where the loss adds up over arcs."""
        kind, zero_one = self.formulation, self.problem.options.zero_one
        mode = search_mode(kind.rescaling, kind.uses_sqrt_loss, zero_one)
        return (
            TreeStore(oracle, self.problem, upper_bounds, cache_bytes)
            if mode.kind == ADDITIVE
            else None
        )


def _add_loss(arcs: Floats, labels: Floats, gold: Ints32, gold_labels: Ints32, unit: float) -> None:
    """Add ``unit`` to the scores of all but the true arcs and labels."""
    tokens = np.arange(1, len(gold))
    arcs += unit
    if labels.shape[2]:
        labels[gold[1:], tokens, gold_labels[1:]] -= unit
    else:
        arcs[gold[1:], tokens] -= unit


def _by_node(values: Ints32, bounds: Ints) -> Ints32:
    """Values of the tokens by node; -1 at the roots."""
    nodes = np.full(int(bounds[-1]), -1, dtype=np.int32)
    is_token = np.ones(len(nodes), dtype=bool)
    is_token[bounds[:-1]] = False
    nodes[is_token] = values
    return nodes


def check_trees(heads: Ints32, bounds: Ints, *, single_root: bool) -> None:
    """Raise ValueError, naming the sentence, unless the heads of each form a tree."""
    n_tokens = int(bounds[-1]) - (len(bounds) - 1)
    if heads.shape != (n_tokens,):
        raise ValueError(f"expected {n_tokens} heads, one for each token, got {heads.shape}")
    if len(bounds) > 1 and int(np.diff(bounds).min()) < 2:
        raise ValueError(f"sentence {int(np.argmin(np.diff(bounds)))} is empty")
    starts = bounds - np.arange(len(bounds))
    for i in range(len(bounds) - 1):
        tree = heads[starts[i] : starts[i + 1]].tolist()
        n = len(tree)
        for m, h in enumerate(tree, 1):
            if not 0 <= h <= n or h == m:
                raise ValueError(
                    f"sentence {i}: the head of word {m} is {h}, expected 0 (root) or another "
                    f"word, 1 to {n}"
                )
        reached = [True] + [False] * n
        for m in range(1, n + 1):
            path: list[int] = []
            node = m
            while not reached[node] and len(path) <= n:
                path.append(node)
                node = tree[node - 1]
            if not reached[node]:
                raise ValueError(f"sentence {i}: the heads of word {m} run in a circle")
            for node in path:
                reached[node] = True
        if single_root and tree.count(0) != 1:
            raise ValueError(
                f"sentence {i}: {tree.count(0)} words hang on the root, expected one; set "
                "single_root=False to allow more"
            )


def _bounded_oracle(
    arcs: ArcKeys,
    gold: Ints32,
    gold_labels: Ints32,
    examples: Ints,
    starts: Ints,
    w: Floats,
    scale: float,
    options: DependencyOptions,
    violation: Violation,
    work: DependencyScratch,
    found: FoundTrees,
) -> None:
    """Most violated tree of each example, into ``found`` with its loss; see `dependency_oracle`."""
    for r, i in enumerate(examples.tolist()):
        first, end = int(arcs.bounds[i]), int(arcs.bounds[i + 1])
        n = end - first - 1
        gold_heads, true_labels = gold[first:end], gold_labels[first:end]
        score_sentence(arcs, first, n, w, scale, gold_heads, true_labels, work)
        unit = 1.0 / n if options.normalized else 1.0
        decode = _decoder(n, gold_heads, unit, options, work)
        best = most_violated(decode, np.full(n, unit), violation, unit)
        heads = found.heads[starts[r] : starts[r + 1]]
        labels = found.labels[starts[r] : starts[r + 1]]
        heads[:], labels[:], found.losses[r] = gold_heads, true_labels, 0.0
        if best is not None:
            tokens = 1 + np.flatnonzero(best.slot_losses)
            heads[tokens] = best.output[tokens]
            if arcs.n_labels > 0:
                labels[tokens] = work.labels[heads[tokens], tokens]
            found.losses[r] = unit * len(tokens)


def _decoder(
    n: int, gold: Ints32, unit: float, options: DependencyOptions, work: DependencyScratch
) -> Decoder:
    """The search for sums of gain and loss, with some tokens held right or wrong.

    Outputs are heads by node; a token with a loss has the best wrong label of its arc.
    """
    scores = np.empty((n + 1, n + 1))

    def decode(lower: Floats, upper: Floats, multiplier: float) -> Candidate:
        heads, losses = np.empty(n + 1, np.int32), np.empty(n)
        bounds = (lower, upper, unit, multiplier)
        gain, loss = best_between(n, gold, *bounds, options, work, scores, heads, losses)
        return Candidate(heads, losses, loss, gain)

    return decode
