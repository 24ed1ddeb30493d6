"""Weighted context-free grammars: a tree for every sentence.

Joint features are counts of rules: binary, then unary, start and lexical ones, then span features
(``feature * n_symbols + symbol``) where sentences have views. `maxmargin.problems.grammar.rules`
tells how trees become derivations.
"""

from __future__ import annotations

import threading
from typing import Any, Literal

import numpy as np

from ...core.cutting_planes import Planes, Row, empty_planes, stack_k_best, trim
from ...core.formulation import Formulation, Rescaling
from ...engine.packed_problem import PackedProblem, chunks_of, sparse_row
from ...search.limits import as_examples, as_weights, check_number_of_weights
from ...search.modes import ADDITIVE, ERROR_COUNTS, search_mode
from ...utils.types import Floats, Ints
from ...utils.validation import check_choice
from .data import GrammarDecoder, GrammarScratch, Nodes, Sentences, empty_nodes, longest_row
from .k_best import GoldDerivation, best_derivations, best_rescaled_derivations
from .kernels import count_right, is_same, mark_gold
from .oracle import grammar_oracle
from .rules import Grammar

__all__ = ["GrammarProblem"]

GrammarLoss = Literal["f1", "zero_one"]


class GrammarProblem(PackedProblem):
    """Derivations of a grammar, with exact oracles for every rescaling.

    Parameters
    ----------
    grammar : Grammar
        The rules.
    sentences : Sentences
        Encoded sentences.
    gold : Nodes
        Encoded true derivations.
    loss : {"f1", "zero_one"}
        1 - F1 over the 2n - 1 labelled nodes of a binarised derivation, n - 1 of them with two
        children and n above words. The label of a node is that of its category together with
        those of a unary chain above it; a part of a category's children counts with that
        category's label, marked as a part. Or 1 if the tree is not the true one.

    Notes
    -----
    All derivations of a sentence have the same number of nodes, and so precision, recall and F1
    are the same share of right nodes. Work arrays take ``16 n^2`` bytes per symbol of the
    grammar for a longest sentence of n words, and the search by levels (slack rescaling, square
    roots) about three times as much, and ``16 n`` bytes more for each symbol over a span that it
    cannot leave out.
    """

    in_threads = True

    def __init__(
        self, grammar: Grammar, sentences: Sentences, gold: Nodes, *, loss: GrammarLoss = "f1"
    ) -> None:
        check_choice(loss, ("f1", "zero_one"), "loss")
        lengths = np.diff(sentences.offsets)
        if len(lengths) and lengths.min() < 1:
            raise ValueError(f"sentence {int(np.argmin(lengths))} is empty")
        if len(gold.start) != 2 * lengths.sum() - len(lengths):
            raise ValueError(
                f"{len(lengths)} sentences of {lengths.sum()} words have "
                f"{2 * lengths.sum() - len(lengths)} nodes, but gold has {len(gold.start)}"
            )
        self.decoder = GrammarDecoder(grammar, sentences.n_span_features)
        self.n_features = self.decoder.n_features
        check_number_of_weights(self.n_features)
        self.sentences, self.gold, self.loss_name = sentences, gold, loss
        self._longest = int(lengths.max(initial=1))
        n_views = len(sentences.view_sizes)
        self._row_bounds = np.array([2 * longest_row(int(n), n_views) for n in lengths], np.int64)
        self._local = threading.local()

    @property
    def n_examples(self) -> int:
        """Number of sentences."""
        return len(self.sentences.offsets) - 1

    def subset(self, indices: Ints) -> GrammarProblem:
        """See `Problem.subset`."""
        words, offsets = chunks_of(self.sentences.offsets, indices)
        first_nodes = 2 * self.sentences.offsets - np.arange(self.n_examples + 1)
        nodes, _ = chunks_of(first_nodes, indices)
        sentences = self.sentences._replace(
            offsets=offsets,
            terminals=self.sentences.terminals[words],
            views=np.ascontiguousarray(self.sentences.views[:, words]),
        )
        gold = Nodes(*(column[nodes] for column in self.gold))
        return GrammarProblem(self.decoder.grammar, sentences, gold, loss=self.loss_name)

    @property
    def search_sizes(self) -> Floats:
        """Third powers of the sentences' lengths, by which work is shared out."""
        return np.diff(self.sentences.offsets).astype(np.float64) ** 3

    def input_of(self, i: int) -> Sentences:
        """Sentence i alone."""
        words = slice(self.sentences.offsets[i], self.sentences.offsets[i + 1])
        return self.sentences._replace(
            offsets=np.array([0, words.stop - words.start]),
            terminals=self.sentences.terminals[words],
            views=np.ascontiguousarray(self.sentences.views[:, words]),
        )

    def output_of(self, i: int) -> Nodes:
        """The gold derivation of sentence i."""
        offsets = self.sentences.offsets
        own = slice(2 * offsets[i] - i, 2 * offsets[i + 1] - i - 1)
        return Nodes(*(column[own].copy() for column in self.gold))

    def joint_feature(self, x: Any, y: Any) -> Any:
        """See `Problem.joint_feature`: how often a derivation has each feature."""
        return sparse_row(self.decoder.psi(x, 0, y, 0), 1.0, self.n_features)

    def loss(self, y: Any, y_hat: Any) -> float:
        """1 - F1 of the nodes, or whether the derivations differ; see `Problem.loss`."""
        n_nodes = len(y.start)
        n = (n_nodes + 1) // 2
        if self.loss_name == "zero_one":
            return float(not is_same(y_hat, y, 0, n))
        arrays, gold_label = self.decoder.grammar.arrays, np.empty(n * (n + 1) // 2, np.int32)
        mark_gold(arrays, y, 0, n, gold_label)
        return 1.0 - int(count_right(arrays, y_hat, n, gold_label)) / n_nodes

    def predict(self, x: Any, w: Floats) -> Nodes:
        """The best derivation; see `Problem.predict`."""
        found, _, score = next(self.decoder.parse(x, w))
        if score == -np.inf:
            raise ValueError("the grammar has no derivation of the sentence")
        return found

    def _most_violated(
        self, examples: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes:
        """Most violated derivation of each listed sentence."""
        mode = search_mode(rescaling, sqrt_loss, self.loss_name == "zero_one")
        capacity = int(self._row_bounds[examples].sum())
        out = empty_planes(len(examples), capacity)
        work, found = self._work(mode.kind == ERROR_COUNTS)
        grammar_oracle(
            self.decoder.grammar.arrays,
            self.sentences,
            self.gold,
            examples,
            w,
            mode,
            self.loss_name == "zero_one",
            work,
            found,
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
        """The k best wrong derivations of each listed sentence; see `Problem.k_best`."""
        formulation = Formulation(rescaling, sqrt_loss=sqrt_loss)
        weights = as_weights(w, self.n_features)
        found = [
            self._wrong_derivations(i, weights, k, formulation)
            for i in as_examples(indices, self.n_examples).tolist()
        ]
        return stack_k_best(found, k)

    def _wrong_derivations(
        self, i: int, w: Floats, k: int, formulation: Formulation
    ) -> list[tuple[Row, float]]:
        """Rows of dpsi and losses of the k best derivations of sentence i but the gold one."""
        decoder, sentences, gold = self.decoder, self.sentences, self.gold
        arrays = decoder.grammar.arrays
        n = int(sentences.offsets[i + 1] - sentences.offsets[i])
        base = int(2 * sentences.offsets[i] - i)
        gold_label = np.empty(n * (n + 1) // 2, np.int32)
        mark_gold(arrays, gold, base, n, gold_label)
        true = decoder.psi(sentences, i, gold, base)
        kind = search_mode(
            formulation.rescaling, formulation.uses_sqrt_loss, self.loss_name == "zero_one"
        ).kind
        if kind == ERROR_COUNTS:
            given = GoldDerivation(gold, base, gold_label, float(w[true].sum()))
            ranked = best_rescaled_derivations(decoder, sentences, w, k + 1, i, given, formulation)
        else:
            unit = 1.0 / (2 * n - 1) if kind == ADDITIVE else 0.0
            ranked = best_derivations(decoder, sentences, w, k + 1, i, gold_label, unit)
        answers: list[tuple[Row, float]] = []
        for nodes, _ in ranked:
            if is_same(nodes, gold, base, n) or len(answers) == k:
                continue
            mine = decoder.psi(sentences, i, nodes, 0)
            signs = np.repeat([1.0, -1.0], [len(true), len(mine)])
            columns, place = np.unique(np.concatenate([true, mine]), return_inverse=True)
            values = np.bincount(place, signs)
            keep = values != 0
            right = int(count_right(arrays, nodes, n, gold_label))
            loss = 1.0 if self.loss_name == "zero_one" else 1.0 - right / (2 * n - 1)
            answers.append(((columns[keep].astype(np.int32), values[keep]), loss))
        return answers

    def _work(self, outside: bool) -> tuple[GrammarScratch, Nodes]:
        """Work arrays of this thread, made once: charts are large, and batches may be small."""
        kept = getattr(self._local, "kept", None)
        if kept is None or (outside and not len(kept[0].around_low)):
            n_views = len(self.sentences.view_sizes)
            work = self.decoder.scratch(self._longest, n_views, outside=outside)
            kept = self._local.kept = (work, empty_nodes(2 * self._longest))
        return kept

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_local"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._local = threading.local()
