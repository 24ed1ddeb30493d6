"""Sentences of which some heads, or labels of arcs, are not known."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...core.cutting_planes import Planes
from ...core.formulation import Rescaling
from ...core.problem import Problem
from ...search.bounded_search import Candidate, Violation, best_with_loss, most_violated
from ...search.limits import as_examples, as_weights
from ...search.modes import ADDITIVE, ERROR_COUNTS, search_mode
from ...utils.types import Bools, Floats, Ints, Ints32
from .decoder import check_possible, rank_trees, sentence_scores
from .kernels import best_tree
from .problem import Arcs, DependencyProblem

__all__ = ["ANY", "ArcChoices", "PartialDependencies", "PartialDependencyProblem"]

ANY = -1
#: For tokens, counted from 1, of which something is known: right heads and labels, or `ANY`.
ArcChoices = Mapping[int, Sequence[tuple[int, int]]]


def right_arcs(choices: ArcChoices, n_nodes: int, n_labels: int) -> Bools:
    """Which arcs (head, modifier, label) are right; the label is 0 where there are none."""
    right = np.ones((n_nodes, n_nodes, max(n_labels, 1)), dtype=bool)
    for m, arcs in choices.items():
        right[:, m] = False
        for head, label in arcs:
            heads = slice(None) if head == ANY else head
            right[heads, m, slice(None) if label == ANY else label] = True
    return right


class PartialDependencyProblem(DependencyProblem):
    """Dependency trees with a completion as the gold tree, and arcs beside it that are right.

    All losses are searched by trees of the best sums of score and loss, one sentence at a time.
    """

    choices: Sequence[ArcChoices]

    @classmethod
    def of(
        cls, problem: DependencyProblem, choices: Sequence[ArcChoices]
    ) -> PartialDependencyProblem:
        """The sentences of a problem, with what is known of their arcs."""
        feature_block = cls.__new__(cls)
        feature_block.__dict__.update(vars(problem))
        feature_block.choices = choices
        return feature_block

    def subset(self, indices: Ints) -> PartialDependencyProblem:
        """See `Problem.subset`."""
        return self.of(super().subset(indices), [self.choices[i] for i in indices.tolist()])

    def loss(self, y: Arcs, y_hat: Arcs) -> float:
        """Which arcs are right depends on the sentence."""
        raise ValueError("which arcs are right depends on the sentence, not on the true arcs")

    def k_best(self, *_: object, **__: object) -> Planes:
        """There is no such search."""
        raise ValueError("partially labelled sentences do not support the k best trees")

    def _most_violated(
        self, examples: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes:
        """Most violated tree of each listed sentence."""
        mode = search_mode(rescaling, sqrt_loss, self.options.zero_one)
        work = self._work(examples)
        starts, found = self._allocate(examples)
        for r, i in enumerate(examples.tolist()):
            search = _SentenceSearch(self, i, w, work)
            best: Candidate | None
            if mode.kind == ADDITIVE:
                best = search.decode(search.lowest, search.largest, 1.0)
                best = best if best.loss + best.gain > 0.0 else None
            elif mode.kind == ERROR_COUNTS:
                violation = Violation(mode.slack, mode.sqrt_loss)
                best = most_violated(search.decode, search.largest, violation, search.unit)
            else:
                free_counts = rescaling == "margin"
                best = best_with_loss(search.decode, search.largest, free_counts)
            nodes = slice(int(starts[r]), int(starts[r + 1]))
            heads, labels = search.gold if best is None else best.output
            found.heads[nodes], found.labels[nodes] = heads, labels
            loss = 0.0 if best is None else best.loss
            found.losses[r] = float(loss > 0.0) if self.options.zero_one else loss
        return self._rows(examples, starts, found, work)

    def predictions(self, indices: Ints, w: Floats) -> Planes:
        """Best tree of each listed sentence; see `Problem.predictions`."""
        examples = as_examples(indices, self.n_examples)
        work = self._work(examples)
        starts, found = self._allocate(examples)
        for r, i in enumerate(examples.tolist()):
            search = _SentenceSearch(self, i, as_weights(w, self.n_features), work)
            best = search.decode(search.lowest, search.largest, 0.0)
            nodes = slice(int(starts[r]), int(starts[r + 1]))
            found.heads[nodes], found.labels[nodes] = best.output
            found.losses[r] = float(best.loss > 0.0) if self.options.zero_one else best.loss
        return self._rows(examples, starts, found, work)


class _SentenceSearch:
    """Scores and losses of all arcs of one sentence; `decode` is that of `bounded_search`."""

    def __init__(self, problem: PartialDependencyProblem, i: int, w: Floats, work: object) -> None:
        arcs, labels = sentence_scores(problem.arcs, i, w, work)
        own = slice(int(problem.arcs.bounds[i]), int(problem.arcs.bounds[i + 1]))
        self.gold = problem.gold[own], problem.gold_labels[own]
        self.options, self.work = problem.options, work
        self.scores = arcs[:, :, None] + labels if labels.shape[2] else arcs[:, :, None]
        self.tokens, self.has_labels = np.arange(1, len(arcs)), labels.shape[2] > 0
        n = len(arcs) - 1
        self.unit = 1.0 / n if problem.options.normalized else 1.0
        right = right_arcs(problem.choices[i], len(arcs), labels.shape[2])
        self.losses = np.where(right, 0.0, self.unit)
        self.lowest = np.full(n, -1.0)
        is_known = np.array([m in problem.choices[i] for m in range(1, n + 1)], dtype=bool)
        self.largest: Floats = np.where(is_known, self.unit, 0.0)
        self.gold_score = float(self._at(self.scores, *self.gold).sum())

    def _at(self, table: Floats, heads: Ints32, labels: Ints32) -> Floats:
        """What a table has for the arcs of a tree."""
        return table[heads[1:], self.tokens, labels[1:] if self.has_labels else 0]

    def decode(self, lower: Floats, upper: Floats, multiplier: float) -> Candidate:
        """The tree of the largest sum, with the losses of tokens within these bounds."""
        scores = self.scores + multiplier * self.losses
        own = self.losses[:, 1:]
        outside = (own <= lower[None, :, None]) | (own > upper[None, :, None])
        scores[:, 1:][outside] = -np.inf
        choice = scores.argmax(axis=2).astype(np.int32)
        heads = np.full(len(scores), -1, dtype=np.int32)
        total = best_tree(scores.max(axis=2), self.options, self.work, heads)
        if total == -np.inf:  # nothing is within the bounds
            return Candidate(self.gold, 0.0 * self.largest, 0.0, -np.inf)
        labels = np.full(len(heads), -1, dtype=np.int32)
        if self.has_labels:
            labels[1:] = choice[heads[1:], self.tokens]
        slots = self._at(self.losses, heads, labels)
        gain = float(self._at(self.scores, heads, labels).sum()) - self.gold_score
        return Candidate((heads, labels), slots, float(slots.sum()), gain)


class PartialDependencies:
    """Sentences whose arcs are known in part; see `alternation.PartialProblem`.

    A completion has heads and labels by node, in two rows.

    Parameters
    ----------
    problem : DependencyProblem
        The sentences with any trees where they are not known.
    choices : sequence of ArcChoices
        What is known of their arcs.
    is_known : array of bool, shape (n_sentences,)
        Sentences whose tree is known as a whole.
    """

    def __init__(
        self, problem: DependencyProblem, choices: Sequence[ArcChoices], is_known: Bools
    ) -> None:
        self.plain, self.is_known = problem, is_known
        self.problem = PartialDependencyProblem.of(problem, choices)

    @property
    def n_examples(self) -> int:
        """Number of sentences."""
        return self.problem.n_examples

    def first_weights(self, train: Callable[[Problem, Ints], Floats]) -> Floats:
        """Weights of a model of the sentences whose trees are known, zero if there are none."""
        known = np.flatnonzero(self.is_known)
        if len(known) == 0:
            return np.zeros(self.problem.n_features)
        return train(self.plain.subset(known), known)

    def complete(self, w: Floats) -> Ints32:
        """The best right trees; those that are known stay as they are, crossing arcs or not."""
        problem = self.problem
        completion = np.stack([problem.gold, problem.gold_labels])
        work = problem._work(np.arange(self.n_examples))
        for i in np.flatnonzero(~self.is_known).tolist():
            arcs, labels = sentence_scores(problem.arcs, i, w, work)
            right = right_arcs(problem.choices[i], len(arcs), labels.shape[2])
            if labels.shape[2]:
                labels[~right] = -np.inf
            arcs[~right.any(axis=2)] = -np.inf
            ranked = rank_trees(arcs, labels, 1, problem.options, work)
            check_possible(i, ranked, problem.options.projective)
            own = slice(int(problem.arcs.bounds[i]), int(problem.arcs.bounds[i + 1]))
            completion[0, own], completion[1, own] = ranked[0].heads, ranked[0].labels
        return completion

    def completed(self, completion: Ints32) -> PartialDependencyProblem:
        """The sentences with these trees."""
        other = copy.copy(self.problem)
        other.gold = np.ascontiguousarray(completion[0])
        other.gold_labels = np.ascontiguousarray(completion[1])
        return other

    def differing(self, one: Ints32, other: Ints32) -> Ints:
        """Sentences whose trees differ."""
        starts = self.problem.arcs.bounds[:-1]
        return np.flatnonzero(np.logical_or.reduceat((one != other).any(axis=0), starts))
