"""Lists of segments as users give them, checked, their labels as numbers, and what differs."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, compress, pairwise
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...engine.packed_problem import sparse_rows
from ...features import PackedSequences
from ...features.containers import as_list, as_tuples
from ...problems.segments.k_best import (
    INSIDE,
    START,
    FixedPieces,
    RankedPieces,
    best_without,
    list_chunks,
)
from ...problems.segments.layout import (
    Pieces,
    Segment,
    SegmentLayout,
    chunks_of,
    segments_by_sequence,
)
from ...solvers.base import checked_weights
from ...utils.types import Bools, Floats, Ints
from ...utils.validation import as_sample_weights, is_list
from ...utils.warn import warn_user
from ..abilities.explanation import (
    Evidence,
    Explanation,
    Names,
    Part,
    Places,
    decision,
    differing_parts,
    input_evidence,
    names_at_once,
    no_decisions,
    token_name,
)
from ..abilities.partial_labels import is_choice
from ..examples import FlatLabels, LabelEncoder, Wording, examples_at, is_empty, is_hashable
from .token_inputs import TokenInputs

__all__ = [
    "Segments",
    "coded_segments",
    "examples_within",
    "explain_segments",
    "fixed_pieces",
    "labels_of",
    "longest_by_label",
    "ranked_segments",
    "read_segments",
]

Segments = list[tuple[int, int, Any]]
WORDING = Wording(part="segment")
OUTSIDE = "outside"


def read_segments(y: Any, offsets: Ints, name: str = "y") -> list[Segments]:
    """Segments of each sequence, sorted, with starts and stops as Python's integers.

    Raises ValueError that names sequence and segment where it is not one of three, or lies outside
    of the sequence, or over another.
    """
    y = as_list(y, name)
    n = len(offsets) - 1
    if isinstance(y, (str, bytes)) or not hasattr(y, "__len__"):
        raise ValueError(
            f"{name} must be a list of segments (start, stop, label) for each sequence, got "
            f"{type(y).__name__} {y!r:.40}"
        )
    if len(y) != n:
        raise ValueError(
            f"X has {n} sequences but {name} has {len(y)}; first without a partner: "
            f"{min(n, len(y))}"
        )
    lengths = np.diff(offsets).tolist()
    return [_read_sequence(i, own, lengths[i], name) for i, own in enumerate(y)]


def _read_sequence(i: int, given: Any, n_tokens: int, name: str) -> Segments:
    """Segments of one sequence."""
    listed = given.tolist() if isinstance(given, np.ndarray) else as_tuples(given)
    if isinstance(listed, (str, bytes)) or not hasattr(listed, "__iter__"):
        raise ValueError(f"{name}[{i}] is {listed!r:.40}, expected a list of (start, stop, label)")
    segments, prefix = [], "" if name == "y" else f"{name}: "
    for j, segment in enumerate(listed):
        where = f"{prefix}sequence {i}, segment {j}"
        if not is_list(segment) or len(segment) != 3:
            raise ValueError(f"{where}: expected (start, stop, label), got {segment!r:.60}")
        start, stop, label = segment
        if not (isinstance(start, Integral) and isinstance(stop, Integral)):
            raise ValueError(
                f"{where}: start and stop must be whole numbers, got {tuple(segment)!r:.60}"
            )
        if not 0 <= int(start) < int(stop) <= n_tokens:
            raise ValueError(
                f"{where}: {tuple(segment)!r:.60} is not within the {n_tokens} tokens; expected "
                f"0 <= start < stop <= {n_tokens}"
            )
        label = label.item() if isinstance(label, np.generic) else label
        segments.append((int(start), int(stop), label))
    segments.sort(key=lambda segment: segment[:2])
    for before, after in pairwise(segments):
        if after[0] < before[1]:
            raise ValueError(
                f"{prefix}sequence {i}: segments {before!r:.60} and {after!r:.60} overlap"
            )
    return segments


def fixed_pieces(
    fixed: Any, offsets: Ints, classes: Sequence[Any], longest: Sequence[int]
) -> FixedPieces:
    """What segmentations that have the fixed segments look like; ValueError that names a wrong one.

    ``longest`` has the number of tokens that a segment of each class has at most.
    """
    fixed = as_list(fixed, "fixed")
    if hasattr(fixed, "__iter__") and not isinstance(fixed, (str, bytes)):
        fixed = [() if own is None else own for own in fixed]
    n, K = int(offsets[-1]), len(classes)
    number = {label: k for k, label in enumerate(classes)}
    allowed, begins = np.ones((n, K + 1), np.bool_), np.zeros(n, np.int32)
    starts = offsets.tolist()
    for i, own in enumerate(read_segments(fixed, offsets, "fixed")):
        for segment in own:
            start, stop, labels = segment
            where = f"fixed: sequence {i}, segment {segment!r:.60}"
            choice = classes if labels is None else labels if is_choice(labels) else [labels]
            unknown = [one for one in choice if not is_hashable(one) or one not in number]
            if unknown or not choice:
                wrong = f"{unknown[0]!r:.40} is not a label" if unknown else "the set is empty"
                raise ValueError(
                    f"{where}: {wrong}; expected one of {list(classes)!r:.60}, a set of them, or "
                    "None for any"
                )
            codes = [number[one] for one in choice]
            fitting = [k for k in codes if longest[k] >= stop - start]
            if not fitting:
                raise ValueError(
                    f"{where} has {stop - start} tokens, more than max_segment_lengths_ allows: "
                    f"{max(longest[k] for k in codes)}; train with a larger max_segment_length"
                )
            first, end = starts[i] + start, starts[i] + stop
            allowed[first:end] = np.isin(np.arange(K + 1), fitting)
            begins[first:end] = INSIDE
            begins[first] = START
            if end < starts[i + 1]:
                begins[end] = START
    return FixedPieces(allowed, begins)


def labels_of(segments: list[Segments]) -> FlatLabels:
    """Labels of all segments."""
    bounds = np.concatenate([[0], np.cumsum([len(own) for own in segments])]).astype(np.int64)
    return FlatLabels([label for own in segments for _, _, label in own], bounds, WORDING)


def longest_by_label(
    max_segment_length: Any, segments: list[Segments], labels: list[Any], longest_sequence: int
) -> list[int]:
    """How many tokens a segment of each label has at most: what is given, or else what is seen.

    No more than the longest sequence has: nothing could be learned about longer ones.
    """
    given: Any = max_segment_length
    if not isinstance(max_segment_length, Mapping):
        given = {} if max_segment_length is None else dict.fromkeys(labels, max_segment_length)
    for label, most in given.items():
        if not isinstance(most, Integral) or most < 1:
            raise ValueError(f"max_segment_length must be a whole number >= 1, got {most!r}")
        if label not in labels:
            raise ValueError(f"max_segment_length has {label!r}, which is not a segment label in y")
    seen = dict.fromkeys(labels, 1)
    for start, stop, label in chain.from_iterable(segments):
        seen[label] = max(seen[label], stop - start)
    return [min(int(given.get(label, seen[label])), longest_sequence) for label in labels]


def sequences_within(max_segment_length: Any, segments: list[Segments], drop: bool) -> Bools:
    """Which sequences have no segment that is too long; raises ValueError, or warns and drops."""
    by_label = isinstance(max_segment_length, Mapping)
    fits, first = np.ones(len(segments), np.bool_), ""
    for i, own in enumerate(segments):
        for segment in own:
            start, stop, label = segment
            most = max_segment_length.get(label) if by_label else max_segment_length
            if isinstance(most, Integral) and 1 <= int(most) < stop - start:  # else refused later
                fits[i] = False
                first = first or (
                    f"sequence {i}: segment {segment!r:.60} has {stop - start} tokens, more than "
                    f"max_segment_length, {most}"
                )
    if fits.all():
        return fits
    count = f"{np.count_nonzero(~fits)} of {len(fits)} sequences"
    if not drop:
        raise ValueError(
            f"{first} ({count} have longer ones); on_violation='drop' leaves such sequences out"
        )
    if not fits.any():
        raise ValueError(f"all sequences have segments that are too long, the first: {first}")
    warn_user(f"{count} have longer segments than max_segment_length and are left out: {first}")
    return fits


# ----- explanations ------------------------------------------------------------------------------


def examples_within(
    longest: Any,
    packed: PackedSequences,
    segments: list[Segments],
    sample_weight: Any,
    drop: bool,
) -> tuple[PackedSequences, list[Segments], Floats | None]:
    """The sequences without longer segments, and their weights; see `sequences_within`."""
    weights = as_sample_weights(sample_weight)
    kept = sequences_within(longest, segments, drop)
    if kept.all():
        return packed, segments, weights
    if weights is not None:
        weights = checked_weights(weights, len(kept))[kept]
    own = list(compress(segments, kept.tolist()))
    return examples_at(packed, np.flatnonzero(kept)), own, weights


def coded_segments(segments: list[Segments], classes: NDArray[Any]) -> list[list[Segment]]:
    """Segments with numbers for labels; ValueError for a label that the model does not know."""
    labels = labels_of(segments)
    codes = LabelEncoder(classes).encode(labels)
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        raise ValueError(
            f"{labels.place(unknown[0])}: label {labels.values[unknown[0]]!r:.40} is not among "
            f"the labels {classes.tolist()!r:.60}"
        )
    numbers = iter(codes.tolist())
    return [[(start, stop, next(numbers)) for start, stop, _ in own] for own in segments]


def ranked_segments(
    best: RankedPieces, offsets: Ints, labels: NDArray[Any]
) -> list[list[tuple[Segments, float]]]:
    """Segments and scores of each sequence, the best first."""
    found: list[list[tuple[Segments, float]]] = [[] for _ in best.found]
    for rank in range(best.scores.shape[1]):
        pieces = Pieces(best.labels[rank], best.lengths[rank])
        listed = segments_by_sequence(pieces, offsets, labels)
        for i in np.flatnonzero(best.found > rank).tolist():
            found[i].append((listed[i], float(best.scores[i, rank])))
    return found


def segment_evidence(
    layout: SegmentLayout,
    w: Floats,
    tokens: Any,
    names: Names,
    classes: Sequence[Any],
    chosen: Sequence[Segment],
    rival: Sequence[Segment],
) -> list[Evidence]:
    """Features of tokens, transitions and lengths that one of the lists of pieces has alone.

    Segments are made of pieces, single tokens outside of them included; tokens are rows.
    """
    weights, found = layout.of_tokens(w), []
    of_chosen, of_rival = (_columns(layout, pieces) for pieces in (chosen, rival))
    for t, (a, b) in enumerate(zip(of_chosen, of_rival, strict=True)):
        if a != b:
            own = weights[:, a].sum(axis=1) - weights[:, b].sum(axis=1)
            found += input_evidence(tokens[[t]], t, own, names)
    both = (_parts(layout, w, classes, pieces) for pieces in (chosen, rival))
    return found + differing_parts(*both)


def _columns(layout: SegmentLayout, pieces: Sequence[Segment]) -> list[list[int]]:
    """Which columns of weights the features of each token have."""
    K = layout.n_labels
    found: list[list[int]] = [[] for _ in range(pieces[-1][1])]
    for start, stop, k in pieces:
        for t in range(start, stop):
            found[t].append(k)
        if k < K:
            found[start].append(K + 1 + k)
            if layout.last_tokens:
                found[stop - 1].append(2 * K + 1 + k)
    return found


def _parts(
    layout: SegmentLayout, w: Floats, classes: Sequence[Any], pieces: Sequence[Segment]
) -> Iterator[Part]:
    """Transitions and lengths."""
    names, transitions = [*map(str, classes), OUTSIDE], np.asarray(layout.transitions(w))
    for (_, _, a), (start, _, b) in pairwise(pieces):
        yield f"{names[a]} -> {names[b]}", start, float(transitions[a, b])
    for start, stop, k in pieces:
        if k < layout.n_labels:
            weight = float(layout.lengths(w, k)[stop - start - 1])
            yield f"length {stop - start} of {names[k]}", start, weight


def labels_by_token(pieces: Sequence[Segment], classes: Sequence[Any]) -> list[str]:
    """What each token is part of."""
    names = [*map(str, classes), OUTSIDE]
    return [
        names[k] if k == len(classes) else f"{names[k]} {start}-{stop - 1}"
        for start, stop, k in pieces
        for _ in range(start, stop)
    ]


def explain_segments(segmenter: Any, x: Any, y_hat: Any, w: Floats, n: int) -> Explanation:
    """Why the segments that are predicted; see `SequenceSegmenter.explain`."""
    layout = segmenter._decoder.layout
    if is_empty(x):
        return no_decisions(y_hat, n)
    inputs = TokenInputs.of(segmenter)
    packed = inputs.packed([x])
    tokens, n_tokens, classes = packed.tokens, int(packed.offsets[-1]), segmenter.classes_.tolist()
    rows = sparse_rows(tokens, segmenter._has_intercept)
    own = list_chunks(segmenter._decoder.decode(rows, packed.offsets, w))

    def shown(pieces: Sequence[Segment]) -> list[tuple[int, int, Any]]:
        return [(start, stop, classes[k]) for start, stop, k in pieces if k < len(classes)]

    names = names_at_once(inputs.feature_names, tokens, has_constant=True)

    def evidence(rival: Sequence[Segment]) -> list[Evidence]:
        return segment_evidence(layout, w, tokens, names, classes, own, rival)

    if y_hat is not None:
        given = read_segments([y_hat], packed.offsets)
        coded = coded_segments(given, segmenter.classes_)[0]
        sequences_within(segmenter._longest(), given, drop=False)  # refuses longer ones
        rival = list_chunks(chunks_of(coded, n_tokens, len(classes)))
        here, there = (labels_by_token(pieces, classes) for pieces in (own, rival))
        places = Places(shown(own), here, functools.partial(token_name, x), evidence)
        return places.against(rival, shown(rival), there, n)
    dense = tokens.toarray() if sp.issparse(tokens) else np.asarray(tokens, np.float64)
    if segmenter._has_intercept:
        dense = np.hstack([dense, np.ones((n_tokens, 1))])
    scores = dense @ layout.of_tokens(w)
    decisions = []
    for piece in own:
        start, stop, k = piece
        label = classes[k] if k < len(classes) else OUTSIDE
        name = token_name(x, start) + (f" to {stop - 1}" if stop > start + 1 else "")
        other = best_without(layout, w, scores, piece)
        if other is None:
            decisions.append(decision(start, name, label, None))
            continue
        what = labels_by_token(other, classes)[start]
        decisions.append(decision(start, name, label, what, evidence(other)))
    return Explanation(shown(own), None, tuple(decisions), n)
