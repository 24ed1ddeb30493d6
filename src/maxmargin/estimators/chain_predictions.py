"""What a model of chains says of new sequences: labels, scores, and why."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import partial
from itertools import chain, pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..engine.rows import make_rows
from ..engine.threads import parallel_chunks
from ..features import PackedSequences, StoredSequences
from ..features.packing import check_finite
from ..features.tokens import TokenChunks
from ..problems.chain.constraints import check_possible
from ..problems.chain.decoder import ChainDecoder, KBest
from ..problems.chain.distribution import LabellingDistribution
from ..problems.chain.higher_order.decoder import HigherOrderDecoder
from ..problems.chain.higher_order.marginals import HigherOrderDistribution
from ..problems.chain.higher_order.scratch import HigherOrderInputs
from ..problems.chain.marginals import ChainDistribution
from ..sparse_format import check_sparse
from ..types import Bools, Floats, Ints, Ints32
from .base import checked_k
from .chain_explanation import ChainInputs, chain_evidence
from .chain_weights import ChainWeights
from .example_weights import score_weights
from .examples import answers_empty, is_empty, passes_empty
from .explanation import (
    Evidence,
    Explanation,
    alone,
    decision,
    decisions_by_place,
    names_at_once,
    no_decisions,
    token_name,
)
from .kernels import FittedKernel, check_no_kernel, sequences_at_a_time
from .known_labels import allowed_labels, flatten_fixed
from .labels import (
    LabelEncoder,
    Outputs,
    check_known,
    flatten_labels,
    label_objects,
    warn_of_unknown,
)
from .sequence_batch import SequenceBatch
from .token_inputs import VECTORS_WORTH_CUTTING
from .top_weights import strongest_by_label

__all__ = ["ChainPredictions", "labels_of"]

Value = TypeVar("Value")

TABLE_EFFORT = 2.0  # how many times that of a token's label the work of its margins is
K_BEST_EFFORT = 0.5  # the same for each of its k best labels


class ChainPredictions(ChainWeights):
    """For estimators of chains that are fitted: answers for new sequences."""

    n_jobs: int | None
    _kernel: FittedKernel

    @answers_empty(lambda _: [])
    def predict(self, X: Any, fixed: Any = None) -> list[list[Any]]:
        """Best labels of each sequence.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        fixed : list of sequences, optional
            What is known already: for each token None (nothing), its label, or a set of labels it
            may have. None in place of a sequence says that nothing is known of any of its tokens.
            The labels found are the best of those that agree with it, and with the constraints.

        Returns
        -------
        list of list
            Labels of the tokens of each sequence, none of an empty one. As an array, it is one of
            lists.
        """
        self._check_fitted()

        def listed(part: SequenceBatch) -> list[list[Any]]:
            labels = self._labels(self._best_of(part))
            return [labels[start:stop] for start, stop in pairwise(part.offsets.tolist())]

        return Outputs(chain.from_iterable(self._in_parts(X, fixed, listed, "labels")))

    def _best_of(self, part: SequenceBatch) -> Ints32:
        """Numbers of the best labels of some sequences."""
        decode: Any = self._decoder.decode_possible
        codes: Ints32 = decode(part.rows, part.offsets, self._weights, part.allowed)
        check_possible(codes[part.offsets[:-1]] < 0, part.before)
        return codes

    def _in_parts(
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
        by_words = self._takes_words(X) and self._kernel.basis is None
        if not by_words or self._has_transition_extractor:
            packed = self._packed(X, check_values=False)
            allowed = self._allowed(fixed, packed.offsets)
            return self._in_vector_parts(X, packed, allowed, work, kind, effort)
        pieces = TokenChunks(X)
        allowed = self._allowed(fixed, pieces.offsets)

        def work_on(packed: PackedSequences, first: int) -> Value:
            start = int(pieces.offsets[first])
            mask = None if allowed is None else allowed[start : start + int(packed.offsets[-1])]
            (part,) = self._parts(X, *packed, mask, check_indices=False)
            return work(part._replace(before=first))

        return self._from_words(pieces, work_on, (type(self._decoder), kind))

    def _in_vector_parts(
        self,
        X: Any,
        packed: PackedSequences,
        allowed: Bools | None,
        work: Callable[[SequenceBatch], Value],
        kind: Hashable,
        effort: float = 1.0,
    ) -> Iterator[Value]:
        """The same from vectors, whose values and indices are checked by who works on them."""
        decoder: Any = self._decoder
        is_checked = self._kernel.basis is not None
        if is_checked:
            check_finite(packed)
        for part in self._parts(X, *packed, allowed, check_indices=False):

            def from_vectors(first: int, end: int, part: SequenceBatch = part) -> Value:
                own = part.between(first, end)
                if not is_checked and not own.is_usable():
                    check_finite(packed, own.before, own.before + end - first)
                    check_sparse(packed.tokens, "X.tokens")
                return work(own)

            unit = effort * decoder.token_work(part.rows)
            own_kind = "vectors", type(decoder), kind
            yield from parallel_chunks(
                self.n_jobs, part.offsets, unit, from_vectors, VECTORS_WORTH_CUTTING, own_kind
            )

    @answers_empty(lambda _: [([], 0.0)])
    def predict_k(self, X: Any, k: int, fixed: Any = None) -> list[list[tuple[list[Any], float]]]:
        """The k best labellings of each sequence, with their scores.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        k : int
            How many to return for each sequence.
        fixed : list of sequences, optional
            What is known already, as for `predict`.

        Returns
        -------
        list of list of (labels, score)
            For each sequence its k labellings of the largest score ``<w, psi(x, y)>``, best first,
            as lists of labels with their scores. Constraints hold. The list is shorter where there
            are fewer labellings.
        """
        k = checked_k(k)
        self._check_fitted()
        decode: Any = self._decoder.decode_k_best
        weights = self._weights

        def ranked(part: SequenceBatch) -> list[list[tuple[list[Any], float]]]:
            best: KBest = decode(part.rows, part.offsets, weights, k, part.allowed)
            check_possible(best.found == 0, part.before)
            return best.listed(self._labels(best.labels))

        return list(
            chain.from_iterable(
                self._in_parts(X, fixed, ranked, "k best", max(1.0, K_BEST_EFFORT * k))
            )
        )

    @answers_empty(lambda tagger: np.zeros((0, len(tagger.classes_))))
    def _tables(self, X: Any, fixed: Any, read: Callable[[Any], list[Floats]]) -> list[Floats]:
        """See `TokenConfidences`: of some sequences at a time, by the thread that scores them."""
        self._check_fitted()
        self._check_order_without_kernel()

        def read_part(part: SequenceBatch) -> list[Floats]:
            labellings = self._labellings_of(part)
            labellings.n_jobs = 1
            return read(labellings)

        parts = self._in_parts(X, fixed, read_part, read.__code__, TABLE_EFFORT)
        return list(chain.from_iterable(parts))

    def _distribution(self, X: Any, fixed: Any = None) -> LabellingDistribution:
        """See `Confidences`."""
        self._check_fitted()
        tokens, offsets = self._packed(X)
        return self._labellings(X, tokens, offsets, self._allowed(fixed, offsets))

    def _labellings(
        self, X: Any, tokens: Any, offsets: Ints, allowed: Bools | None = None
    ) -> LabellingDistribution:
        """All labellings of these sequences, with their scores."""
        self._check_order_without_kernel()
        scored = [self._labellings_of(part) for part in self._parts(X, tokens, offsets, allowed)]
        if len(scored) == 1:
            return scored[0]
        chains = [part for part in scored if isinstance(part, ChainDistribution)]
        unary = np.concatenate([part.unary for part in chains])
        return ChainDistribution(unary, offsets, chains[0].transition)

    def _labellings_of(self, part: SequenceBatch) -> LabellingDistribution:
        """The same of a part."""
        decoder, w, rows = self._decoder, self._weights, part.rows
        given = part.offsets, w, part.allowed, part.before
        if isinstance(rows, HigherOrderInputs):
            assert isinstance(decoder, HigherOrderDecoder)
            return HigherOrderDistribution(decoder, rows, *given)
        assert isinstance(decoder, ChainDecoder)
        return ChainDistribution.of(decoder, rows, *given)

    def _check_order_without_kernel(self) -> None:
        """Raise ValueError for a model that has no margins."""
        if isinstance(self._decoder, HigherOrderDecoder) and self._kernel.basis is not None:
            raise ValueError(
                "margins and probabilities with a kernel are for order=1 and emission_order=0, "
                "without transition_features and with eta=1"
            )

    def _with_gold(self, X: Any, y: Any) -> tuple[Any, Ints32]:
        """See `Confidences`."""
        tokens, offsets = self._packed(X)
        codes = LabelEncoder(self.classes_).encode(flatten_labels(y, offsets))
        return self._labellings(X, tokens, offsets), codes

    def _allowed(self, fixed: Any, offsets: Ints) -> Bools | None:
        """Which labels the tokens may have, if anything is known of them."""
        if fixed is None:
            return None
        numbers = LabelEncoder(self.classes_).numbers
        return allowed_labels(flatten_fixed(fixed, offsets), numbers)

    def _labels(self, codes: Ints32) -> list[Any]:
        """Labels of numbers, of Python's own types."""
        labels: list[Any] = label_objects(self.classes_)[codes].tolist()
        return labels

    @passes_empty
    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Share of tokens with the right label.

        A label that is not known to the model counts as wrong, with a warning. For the share of
        sequences that are right as a whole, and for chunks, see `maxmargin.metrics`.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        y : list of sequences of labels, optional
            True labels; by default those stored with X, if it is an opened file that has them.
        sample_weight : array of shape (n_sequences,), optional
            Weights of the sequences' tokens.

        Returns
        -------
        float
        """
        self._check_fitted()
        tokens, offsets = self._packed(X)
        labels = flatten_labels(labels_of(X, y), offsets)
        gold = LabelEncoder(self.classes_).encode(labels)
        warn_of_unknown(gold, labels)
        right = self._decoded(X, tokens, offsets) == gold
        if sample_weight is None:
            return float(np.mean(right))
        weights = score_weights(sample_weight, len(offsets) - 1)
        return float(np.average(right, weights=np.repeat(weights, np.diff(offsets))))

    @answers_empty(lambda _: 0.0)
    def score_outputs(self, X: Any, y: Any) -> Floats:
        """Scores ``<w, psi(x, y)>`` of given labels; `predict` gives those of the largest.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        y : list of sequences of labels
            Labels to score, all of them known to the model. Constraints are not applied.

        Returns
        -------
        ndarray of shape (n_sequences,)
        """
        self._check_fitted()
        tokens, offsets = self._packed(X)
        labels = flatten_labels(y, offsets)
        codes = LabelEncoder(self.classes_).encode(labels)
        check_known(codes, labels)
        score: Any = self._decoder.score
        weights = self._weights
        parts = self._parts(X, tokens, offsets)
        return np.concatenate(
            [score(part.rows, part.offsets, codes[part.tokens], weights) for part in parts]
        )

    def explain(self, x: Any, y_hat: Any = None, *, n: int = 5) -> Explanation:
        """Why the predicted labels, and not others: the features that decided, token by token.

        Parameters
        ----------
        x : sequence
            One sequence, as in the X of `predict`.
        y_hat : sequence of labels, optional
            Other labels of all tokens, to be compared with those predicted. By default there is a
            rival for each token: the best labelling with another label there.
        n : int, default=5
            How many features the explanation shows of each decision; it has all of them.

        Returns
        -------
        Explanation
            Decisions token by token; it prints as tables, and shows as such in notebooks. With
            ``y_hat`` tokens at which nothing differs are left out.
        """
        self._check_fitted()
        check_no_kernel(self, "explain")
        decoder, w, n = self._decoder, self._weights, checked_k(n, "n")
        if is_empty(x):
            return no_decisions(y_hat, n)
        tokens, offsets = self._packed([x])
        own = self._decoded([x], tokens, offsets)
        labels, classes = self._labels(own), self.classes_.tolist()
        names = names_at_once(self._feature_names, tokens, has_constant=True)
        inputs = ChainInputs(tokens, names)
        if isinstance(decoder, HigherOrderDecoder) and self._transition_inputs is not None:
            pairs = self._transition_features_of([x], tokens)
            of_pairs = names_at_once(self._names_of_transitions, pairs, has_constant=False)
            inputs = ChainInputs(tokens, names, pairs, of_pairs)

        def evidence(rival: Ints32) -> list[Evidence]:
            return chain_evidence(decoder.layout, w, inputs, classes, own, rival)

        if y_hat is not None:
            flat = flatten_labels([y_hat], offsets, name="y_hat")
            other = LabelEncoder(self.classes_).encode(flat)
            check_known(other, flat)
            rival = self._labels(other)
            found = decisions_by_place(evidence(other), partial(token_name, x), labels, rival)
            return Explanation(labels, rival, found, n)
        decisions = []
        (margins,) = self._labellings([x], tokens, offsets).margins()
        for t, margin in enumerate(margins):
            margin[own[t]] = -np.inf
            best = int(np.argmax(margin))
            if margin[best] == -np.inf:
                decisions.append(alone(t, token_name(x, t), labels[t]))
                continue
            allowed = np.ones(margins.shape, bool)
            allowed[t] = np.arange(len(classes)) == best
            found_here = evidence(self._decoded([x], tokens, offsets, allowed))
            decisions.append(decision(t, token_name(x, t), labels[t], classes[best], found_here))
        return Explanation(labels, None, tuple(decisions), n)

    def top_features(
        self, n: int = 10, *, against: bool = False
    ) -> dict[Any, list[tuple[str, float]]]:
        """Features that speak most for each label, or against it; for ``kernel="linear"``.

        Parameters
        ----------
        n : int, default=10
            How many to list for a label, at most.
        against : bool, default=False
            List features of negative weights, not of positive ones.

        Returns
        -------
        dict of label to list of (name, weight)
            Strongest first. Features without names are called x0, x1, ...; the constant feature is
            called "intercept".
        """
        check_no_kernel(self, "top_features")
        weights = self._weights  # says so if there are none yet
        weights = self._decoder.layout.emissions(weights)
        labels = self.classes_.tolist()
        return strongest_by_label(weights, labels, n, against, self._feature_names)

    @property
    def _has_intercept(self) -> bool:
        """See `TokenInputs`."""
        return self._decoder.layout.n_inputs > self._kernel.n_inputs(self.n_features_in_)

    def _decoded(self, X: Any, tokens: Any, offsets: Ints, allowed: Bools | None = None) -> Ints32:
        """Numbers of the best labels of all tokens."""
        packed = PackedSequences(tokens, offsets)
        parts = self._in_vector_parts(X, packed, allowed, self._best_of, "labels")
        return np.concatenate(list(parts))

    def _parts(
        self,
        X: Any,
        tokens: Any,
        offsets: Ints,
        allowed: Bools | None = None,
        *,
        check_indices: bool = True,
    ) -> Iterator[SequenceBatch]:
        """New sequences for the decoder, all or, with a kernel, some at a time."""
        decoder, basis = self._decoder, self._kernel.basis
        is_plain = not isinstance(decoder, HigherOrderDecoder)
        extra = None if is_plain else self._transition_features_of(X, tokens)
        width = 0 if basis is None else len(basis)
        if basis is not None:
            check_sparse(tokens, "X.tokens")  # kernels would read beyond the points
        for first, last in sequences_at_a_time(offsets, width):
            chosen = slice(int(offsets[first]), int(offsets[last]))
            inputs = tokens if basis is None else basis.values(tokens[chosen])
            if isinstance(decoder, HigherOrderDecoder):
                rows: Any = decoder.inputs(inputs, None if extra is None else extra[chosen])
            else:
                rows = make_rows(
                    inputs, fit_intercept=self._has_intercept, check_indices=check_indices
                )
            own = offsets[first : last + 1] - offsets[first]
            mask = None if allowed is None else allowed[chosen]
            yield SequenceBatch(rows, own, chosen, first, mask)


def labels_of(X: Any, y: Any) -> Any:
    """The labels that are given, or else those stored with the sequences."""
    if y is not None:
        return y
    labels = X.labels if isinstance(X, StoredSequences) else None
    if labels is None:
        raise ValueError("y is missing, and X is not stored with labels")
    return labels
