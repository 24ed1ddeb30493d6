"""A fitted model of chains, and what it answers for new sequences: labels, scores, and why."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...engine.packed_problem import rows_between
from ...engine.parallel.threads import parallel_chunks
from ...engine.rows import are_usable
from ...features import PackedSequences
from ...features.kernels.functions import KernelBasis
from ...features.packing import check_finite
from ...features.tokens import TokenChunks
from ...problems.chain.decoder import ChainDecoder
from ...problems.chain.layout import ChainLayout, LabelTuples, check_possible
from ...problems.chain.marginals import ChainDistribution
from ...problems.chain.state_kernels import ChainInputs
from ...utils.sparse_format import check_sparse
from ...utils.types import Bools, Floats, Ints, Ints32
from ..abilities.explanation import (
    Evidence,
    Explanation,
    Names,
    Places,
    best_other,
    input_evidence,
    names_at_once,
    strongest,
    strongest_by_label,
    token_name,
)
from ..abilities.kernels import sequences_at_a_time
from ..abilities.partial_labels import allowed_labels, flatten_fixed
from ..examples import LabelEncoder, Outputs, check_known, flatten_labels, label_objects
from .token_inputs import VECTORS_WORTH_CUTTING, TokenInputs, TransitionInputs

__all__ = ["ChainShape", "HigherOrderState", "SequenceDecoder", "SequenceModel"]

Value = TypeVar("Value")

TABLE_EFFORT = 2.0  # how many times that of a token's label the work of its margins is
K_BEST_EFFORT = 0.5  # the same for each of its k best labels


class ChainShape(NamedTuple):
    """What features see of the labels."""

    order: int
    emission_order: int
    eta: float


FIRST_ORDER = ChainShape(1, 0, 1.0)


class HigherOrderState(NamedTuple):
    """What a file keeps of chains that are not of first order."""

    shape: ChainShape
    tuples: LabelTuples
    inputs: TransitionInputs | None


class SequenceModel(NamedTuple):
    """All that was learned but the weights, and what a kernel is made of."""

    classes: NDArray[Any]
    inputs: TokenInputs
    chain: ChainDecoder
    shape: ChainShape = FIRST_ORDER
    transitions: TransitionInputs | None = None

    def state(self) -> HigherOrderState | None:
        """What a file keeps of a chain that is not of first order."""
        if self.shape == FIRST_ORDER and self.transitions is None:
            return None
        return HigherOrderState(self.shape, self.chain.layout.tuples, self.transitions)

    def of_inputs(self, n_inputs: int) -> SequenceModel:
        """The same for another number of inputs that have weights."""
        layout = self.chain.layout
        resized = layout.with_sizes(n_inputs, layout.boundary)
        return self._replace(chain=ChainDecoder(resized, self.chain.constraints))


class SequenceBatch(NamedTuple):
    """Some sequences: their features, where each begins, which tokens they are.

    ``before`` is the number of sequences before these; ``allowed`` (token, label) marks the labels
    that the tokens may have, if anything is known of them.
    """

    inputs: ChainInputs
    offsets: Ints
    tokens: slice
    before: int = 0
    allowed: Bools | None = None

    def between(self, first: int, end: int) -> SequenceBatch:
        """The sequences ``first`` to ``end - 1`` of these, for kernels."""
        own = self.offsets[first : end + 1]
        start, stop = int(own[0]), int(own[-1])
        rows, pair_rows = self.inputs
        if pair_rows.n_columns:
            pair_rows = rows_between(pair_rows, start, stop)
        inputs = ChainInputs(rows_between(rows, start, stop), pair_rows)
        tokens = slice(self.tokens.start + start, self.tokens.start + stop)
        mask = None if self.allowed is None else self.allowed[start:stop]
        return SequenceBatch(inputs, own - start, tokens, self.before + first, mask)


class SequenceDecoder:
    """Labels, scores, k best labellings, marginals and explanations of new sequences.

    Parameters
    ----------
    model : SequenceModel
        What was learned.
    w : array of float
        Its weights.
    basis : KernelBasis, optional
        What they are coefficients of, with a kernel.
    n_jobs : int, optional
        Number of threads.
    """

    def __init__(
        self,
        model: SequenceModel,
        w: Floats,
        basis: KernelBasis | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.model, self.w, self.basis, self.n_jobs = model, w, basis, n_jobs

    # ----- labels -------------------------------------------------------------------------------

    def predict(self, X: Any, fixed: Any) -> list[list[Any]]:
        """Best labels of each sequence."""

        def listed(batch: SequenceBatch) -> list[list[Any]]:
            labels = self._labels(self._best_of(batch))
            return [labels[start:stop] for start, stop in pairwise(batch.offsets.tolist())]

        return Outputs(chain.from_iterable(self._in_batches(X, fixed, listed, "labels")))

    def predict_k(self, X: Any, k: int, fixed: Any) -> list[list[tuple[list[Any], float]]]:
        """The k best labellings of each sequence, with their scores."""

        def ranked(batch: SequenceBatch) -> list[list[tuple[list[Any], float]]]:
            best = self.model.chain.decode_k_best(
                batch.inputs, batch.offsets, self.w, k, batch.allowed
            )
            check_possible(best.found == 0, batch.before)
            return best.listed(self._labels(best.labels))

        effort = max(1.0, K_BEST_EFFORT * k)
        return list(chain.from_iterable(self._in_batches(X, fixed, ranked, "k best", effort)))

    def codes(self, X: Any, packed: PackedSequences, allowed: Bools | None = None) -> Ints32:
        """Numbers of the best labels of all tokens."""
        parts = self._in_vector_batches(X, packed, allowed, self._best_of, "labels")
        return np.concatenate(list(parts))

    def _best_of(self, batch: SequenceBatch) -> Ints32:
        """Numbers of the best labels of some sequences."""
        codes = self.model.chain.decode_possible(batch.inputs, batch.offsets, self.w, batch.allowed)
        check_possible(codes[batch.offsets[:-1]] < 0, batch.before)
        return codes

    def _labels(self, codes: Ints32) -> list[Any]:
        """Labels of numbers, of Python's own types."""
        labels: list[Any] = label_objects(self.model.classes)[codes].tolist()
        return labels

    # ----- scores and marginals -----------------------------------------------------------------

    def tables(self, X: Any, fixed: Any, read: Callable[[Any], list[Floats]]) -> list[Floats]:
        """What is read from labellings, of some sequences at a time, by who scores them."""

        def read_batch(batch: SequenceBatch) -> list[Floats]:
            labellings = self._labellings(batch)
            labellings.n_jobs = 1
            return read(labellings)

        parts = self._in_batches(X, fixed, read_batch, read.__code__, TABLE_EFFORT)
        return list(chain.from_iterable(parts))

    def distribution(
        self, X: Any, packed: PackedSequences, allowed: Bools | None = None
    ) -> ChainDistribution:
        """All labellings of these sequences, with their scores."""
        scored = [self._labellings(batch) for batch in self._batches(X, *packed, allowed)]
        return ChainDistribution.joined(scored, packed.offsets)

    def _labellings(self, batch: SequenceBatch) -> ChainDistribution:
        """The same of some sequences."""
        given = batch.inputs, batch.offsets, self.w, batch.allowed, batch.before
        return ChainDistribution.of(self.model.chain, *given)

    def scores(self, X: Any, y: Any) -> Floats:
        """Scores of given labels."""
        packed = self.model.inputs.packed(X)
        codes = self._known_codes(y, packed.offsets, "y")
        batches = self._batches(X, *packed)
        score = self.model.chain.score
        return np.concatenate(
            [score(b.inputs, b.offsets, codes[b.tokens], self.w) for b in batches]
        )

    def _known_codes(self, y: Any, offsets: Ints, name: str) -> Ints32:
        """Numbers of labels; ValueError for unknown ones."""
        flat = flatten_labels(y, offsets, name=name)
        codes = LabelEncoder(self.model.classes).encode(flat)
        check_known(codes, flat)
        return codes

    # ----- weights ------------------------------------------------------------------------------

    def top_features(self, n: int, against: bool) -> dict[Any, list[tuple[str, float]]]:
        """See `SequenceTagger.top_features`."""
        weights, labels = self.model.chain.layout.emissions(self.w), self.model.classes.tolist()
        return strongest_by_label(weights, labels, n, against, self.model.inputs.feature_names)

    def top_transitions(self, n: int, against: bool) -> list[tuple[Any, Any, float]]:
        """See `SequenceTagger.top_transitions`."""
        K = len(self.model.classes)
        # Row K is for what comes before a sequence, column K for what comes after.
        weights = np.zeros((K + 1, K + 1))
        weights[:K, :K], weights[K, :K], weights[:K, K] = self.model.chain.potentials(self.w)
        weights[np.isinf(weights)] = 0.0  # forbidden
        labels = [*self.model.classes.tolist(), None]
        places = (divmod(place, K + 1) for place in strongest(weights.ravel(), n, against))
        return [(labels[i], labels[j], float(weights[i, j])) for i, j in places]

    def top_transition_features(self, n: int, against: bool) -> list[tuple[str, Any, Any, float]]:
        """See `SequenceTagger.top_transition_features`."""
        model, layout = self.model, self.model.chain.layout
        if model.transitions is None:
            return []
        own, pairs = layout.pair_features(self.w), layout.tuples.pairs
        places = [divmod(place, len(pairs)) for place in strongest(own.ravel(), n, against)]
        names = model.transitions.feature_names(model.inputs, [f for f, _ in places])
        labels = model.classes.tolist()
        return [
            (names[f], labels[pairs[p][0]], labels[pairs[p][1]], float(own[f, p]))
            for f, p in places
        ]

    def explain(self, x: Any, y_hat: Any, n: int) -> Explanation:
        """See `SequenceTagger.explain`; the sequence is not empty."""
        model, packed = self.model, self.model.inputs.packed([x])
        tokens, own = packed.tokens, self.codes([x], packed)
        labels, classes = self._labels(own), model.classes.tolist()
        names = names_at_once(model.inputs.feature_names, tokens, has_constant=True)
        features = SequenceFeatures(tokens, names)
        if model.transitions is not None:
            pairs = model.transitions.of([x], tokens)
            name_pairs = partial(model.transitions.feature_names, model.inputs)
            of_pairs = names_at_once(name_pairs, pairs, has_constant=False)
            features = SequenceFeatures(tokens, names, pairs, of_pairs)

        def evidence(rival: Ints32) -> list[Evidence]:
            return chain_evidence(model.chain.layout, self.w, features, classes, own, rival)

        places = Places(labels, labels, partial(token_name, x), evidence)
        if y_hat is not None:
            other = self._known_codes([y_hat], packed.offsets, "y_hat")
            rival = self._labels(other)
            return places.against(other, rival, rival, n)
        (margins,) = self.distribution([x], packed).margins()

        def rival_at(t: int) -> tuple[Any, Ints32] | None:
            best = best_other(margins[t], int(own[t]))
            if best is None:
                return None
            allowed = np.ones(margins.shape, bool)
            allowed[t] = np.arange(len(classes)) == best
            return classes[best], self.codes([x], packed, allowed)

        return places.one_by_one(map(rival_at, range(len(margins))), n)

    # ----- sequences, some at a time ------------------------------------------------------------

    def allowed(self, fixed: Any, offsets: Ints) -> Bools | None:
        """Which labels the tokens may have, if anything is known of them."""
        if fixed is None:
            return None
        numbers = LabelEncoder(self.model.classes).numbers
        return allowed_labels(flatten_fixed(fixed, offsets), numbers)

    def _in_batches(
        self,
        X: Any,
        fixed: Any,
        work: Callable[[SequenceBatch], Value],
        kind: Hashable,
        effort: float = 1.0,
    ) -> Iterator[Value]:
        """What work on all sequences gives, some at a time, in their order; threads share it.

        ``kind`` tells it from other work, and ``effort`` how many times as much it is as to find
        the best labels. From words, features are found by who works on them.
        """
        inputs, transitions = self.model.inputs, self.model.transitions
        by_words = inputs.takes_words(X) and self.basis is None
        if not by_words or (transitions is not None and transitions.columns is None):
            packed = inputs.packed(X, check_values=False)
            allowed = self.allowed(fixed, packed.offsets)
            return self._in_vector_batches(X, packed, allowed, work, kind, effort)
        pieces = TokenChunks(X)
        allowed = self.allowed(fixed, pieces.offsets)

        def work_on(packed: PackedSequences, first: int) -> Value:
            start = int(pieces.offsets[first])
            mask = None if allowed is None else allowed[start : start + int(packed.offsets[-1])]
            (batch,) = self._batches(X, *packed, mask, check_indices=False)
            return work(batch._replace(before=first))

        return inputs.from_words(pieces, work_on, self._kind(kind), self.n_jobs)

    def _kind(self, kind: Hashable) -> Hashable:
        """What tells work from other work, which may compile other kernels."""
        return "sequences", self.model.chain.layout.is_first_order, kind

    def _in_vector_batches(
        self,
        X: Any,
        packed: PackedSequences,
        allowed: Bools | None,
        work: Callable[[SequenceBatch], Value],
        kind: Hashable,
        effort: float = 1.0,
    ) -> Iterator[Value]:
        """The same from vectors, whose values and indices are checked by who works on them."""
        is_checked = self.basis is not None
        if is_checked:
            check_finite(packed)
        for batch in self._batches(X, *packed, allowed, check_indices=False):

            def from_vectors(first: int, end: int, batch: SequenceBatch = batch) -> Value:
                own = batch.between(first, end)
                rows = own.inputs.rows
                if not is_checked and not are_usable(rows, 0, rows.n_rows):
                    check_finite(packed, own.before, own.before + end - first)
                    check_sparse(packed.tokens, "X.tokens")
                return work(own)

            unit = effort * self.model.chain.token_work(batch.inputs)
            own_kind = "vectors", self._kind(kind)
            yield from parallel_chunks(
                self.n_jobs, batch.offsets, unit, from_vectors, VECTORS_WORTH_CUTTING, own_kind
            )

    def _batches(
        self,
        X: Any,
        tokens: Any,
        offsets: Ints,
        allowed: Bools | None = None,
        *,
        check_indices: bool = True,
    ) -> Iterator[SequenceBatch]:
        """New sequences for the chain's decoder, all or, with a kernel, some at a time."""
        basis, transitions = self.basis, self.model.transitions
        extra = None if transitions is None else transitions.of(X, tokens)
        if basis is not None:
            check_sparse(tokens, "X.tokens")  # kernels would read beyond the points
        for first, last in sequences_at_a_time(offsets, 0 if basis is None else len(basis)):
            chosen = slice(int(offsets[first]), int(offsets[last]))
            values = tokens if basis is None else basis.values(tokens[chosen])
            pairs = None if extra is None else extra[chosen]
            inputs = self.model.chain.inputs(values, pairs, check_indices=check_indices)
            mask = None if allowed is None else allowed[chosen]
            own = offsets[first : last + 1] - offsets[first]
            yield SequenceBatch(inputs, own, chosen, first, mask)


def make_layout(
    state: HigherOrderState | None, n_inputs: int, n_labels: int, boundary: bool
) -> ChainLayout:
    """Where the weights are of a model with these tuples of labels."""
    if state is None:
        return ChainLayout(n_inputs, n_labels, boundary)
    return ChainLayout(
        n_inputs,
        n_labels,
        boundary,
        state.tuples,
        emission_order=state.shape.emission_order,
        n_pair_inputs=0 if state.inputs is None else state.inputs.n_features,
        eta=state.shape.eta,
    )


# ----- explanations ------------------------------------------------------------------------------

Labels = tuple[int, ...]  # of a token and those before it
MOST_LABELS = 4  # that a weight is for


class SequenceFeatures(NamedTuple):
    """Features of the tokens of one sequence, and of its transitions if these have any."""

    tokens: Any
    names: Names
    pairs: Any = None
    pair_names: Names | None = None


def chain_evidence(
    layout: ChainLayout,
    w: Floats,
    inputs: SequenceFeatures,
    classes: Sequence[Any],
    chosen: Ints32,
    rival: Ints32,
) -> list[Evidence]:
    """What differs between two labellings of a sequence, whose tokens are rows of a matrix."""
    weights = _Weights(layout, w)
    start, stop = layout.boundaries(w)
    found, last = [], len(chosen) - 1
    differ = np.flatnonzero(chosen != rival)
    # A label has weights together with those before it.
    for t in sorted({t for d in differ.tolist() for t in range(d, min(d + MOST_LABELS, last + 1))}):
        first = max(0, t + 1 - MOST_LABELS)
        a, b = (tuple(y[first : t + 1].tolist()) for y in (chosen, rival))
        if a[-2:] != b[-2:]:
            of_token = weights.token(a) - weights.token(b)
            if a[-1] != b[-1] or of_token.any():
                found += input_evidence(inputs.tokens[[t]], t, of_token, inputs.names)
        of_pair = weights.pair(a) - weights.pair(b)
        if of_pair.any() and inputs.pair_names is not None:
            here = input_evidence(inputs.pairs[[t]], t, of_pair, inputs.pair_names)
            found += [one._replace(name=f"{one.name} on the transition") for one in here]
        for n in range(2, len(a) + 1):
            weight = weights.transition(a[-n:]) - weights.transition(b[-n:])
            if a[-n:] != b[-n:] and (n == 2 or weight):
                name, other = (" -> ".join(str(classes[k]) for k in own[-n:]) for own in (a, b))
                found.append(Evidence(f"{name}, not {other}", t, 1.0, weight))
        for at, ends, name in ((0, start, "first"), (last, stop, "last")):
            if layout.boundary and t == at and a[-1] != b[-1]:
                label = f"{name} label {classes[a[-1]]}, not {classes[b[-1]]}"
                found.append(Evidence(label, t, 1.0, float(ends[a[-1]] - ends[b[-1]])))
    return found


class _Weights:
    """Weights of what a token, its label and the labels before it add to the score."""

    def __init__(self, layout: ChainLayout, w: Floats) -> None:
        self.emissions, self.transitions = layout.emissions(w), layout.transitions(w)
        self.longer, self.eta = layout.longer_transitions(w), layout.eta
        self.number = {tuple(p): k for k, p in enumerate(layout.tuples.pairs.tolist())}
        self.of_pairs, self.pair_features = layout.pair_emissions(w), layout.pair_features(w)

    def token(self, labels: Labels) -> Floats:
        """Of the features of a token."""
        own, pair = self.emissions[:, labels[-1]], self.number.get(labels[-2:], -1)
        return own if pair < 0 or not self.of_pairs.shape[1] else own + self.of_pairs[:, pair]

    def pair(self, labels: Labels) -> Floats:
        """Of its transition features."""
        pair = self.number.get(labels[-2:], -1)
        column = self.pair_features[:, pair] if pair >= 0 else np.zeros(len(self.pair_features))
        return self.eta * column

    def transition(self, labels: Labels) -> float:
        """Of labels that follow each other."""
        if len(labels) == 2:
            return self.eta * float(self.transitions[labels])
        return self.eta * self.longer.get(labels, 0.0)
