"""Forbidden transitions between labels, and what is done with training data that has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problems.chain.layout import ChainConstraints, bio_constraints
from ...utils.types import Bools, Ints32
from ...utils.validation import check_choice
from ...utils.warn import warn_user
from ..abilities.partial_labels import is_choice
from ..examples import FlatLabels

__all__ = [
    "check_on_violation",
    "make_constraints",
    "repair_labels",
    "sequences_satisfying",
    "sequences_with_completion",
]

ON_VIOLATION = ("raise", "drop", "repair")


def make_constraints(constraints: Any, classes: NDArray[Any]) -> ChainConstraints | None:
    """Turn the parameter ``constraints`` of a tagger into masks over the labels."""
    labels = classes.tolist()
    if constraints is None:
        return None
    if isinstance(constraints, ChainConstraints):
        if constraints.transitions.shape != (len(labels), len(labels)):
            raise ValueError(
                f"constraints are for {len(constraints.start)} labels, but y has {len(labels)}"
            )
        return constraints
    if isinstance(constraints, str):
        if constraints != "bio":
            raise ValueError(
                "constraints must be 'bio', a boolean mask or forbidden (from, to) pairs, "
                f"got {constraints!r}"
            )
        names = [str(label) for label in labels]
        if not any(name.startswith(("B-", "I-")) for name in names):
            raise ValueError(
                f"constraints='bio' needs labels such as 'B-X', 'I-X' and 'O', got {labels[:6]}"
            )
        return bio_constraints(names)
    K = len(labels)
    if isinstance(constraints, np.ndarray) and constraints.dtype == bool:
        if constraints.shape != (K, K):
            raise ValueError(
                f"constraints has shape {constraints.shape}, but y has {K} labels: expected "
                f"{(K, K)}, True where the second label may follow the first"
            )
        allowed = constraints.copy()
    else:
        allowed = np.ones((K, K), dtype=bool)
        numbers = {label: k for k, label in enumerate(labels)}
        pairs = list(_pairs(constraints))
        for before, after in pairs:
            if before in numbers and after in numbers:
                allowed[numbers[before], numbers[after]] = False
        _warn_of_unknown(pairs, numbers)
    everywhere = np.ones(K, dtype=bool)
    return ChainConstraints(allowed, everywhere, everywhere.copy())


def _warn_of_unknown(pairs: list[tuple[Any, Any]], known: Mapping[Any, int]) -> None:
    """Warn of labels that are not in y: of a fold that lacks them, or misspelt."""
    unknown = list(dict.fromkeys(label for pair in pairs for label in pair if label not in known))
    if unknown:
        names = ", ".join(f"{label!r:.40}" for label in unknown[:5])
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        there = ", ".join(f"{label!r:.40}" for label in list(known)[:8])
        warn_user(
            f"constraints name labels that are not in y, without effect: {names}{more}; the labels "
            f"are {there}{', ...' if len(known) > 8 else ''}"
        )


def _pairs(constraints: Any) -> Iterable[tuple[Any, Any]]:
    """Forbidden pairs out of a list of them, or a mapping from a label to those after it."""
    if isinstance(constraints, Mapping):
        for before, followers in constraints.items():
            one = isinstance(followers, str) or not isinstance(followers, Iterable)
            yield from ((before, after) for after in ([followers] if one else followers))
        return
    if not isinstance(constraints, Iterable):
        raise ValueError(
            "constraints must be 'bio', a boolean mask or forbidden (from, to) pairs, "
            f"got {constraints!r:.60}"
        )
    for k, pair in enumerate(constraints):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise ValueError(f"constraints[{k}] is {pair!r:.40}, expected a pair (from, to)")
        before, after = pair
        yield before, after


# ----- training data that breaks them -------------------------------------------------------------


def check_on_violation(constraints: Any, on_violation: Any) -> None:
    """Raise ValueError unless this can be done with data that breaks the constraints."""
    check_choice(on_violation, ON_VIOLATION, "on_violation")
    if on_violation == "repair" and constraints is not None and not _is_bio(constraints):
        raise ValueError(
            "on_violation='repair' needs constraints='bio'; for other constraints, "
            "on_violation='drop' leaves out the sequences that break them"
        )


def repair_labels(labels: FlatLabels) -> FlatLabels:
    """Labels that obey "bio": an I-X that continues nothing begins a chunk, as B-X. Warns."""
    values, changed = list(labels.values), []
    for start, stop in pairwise(labels.offsets.tolist()):
        before: str | None = ""
        for t in range(start, stop):
            if values[t] is None or is_choice(values[t]):  # may be what the next one continues
                before = None
                continue
            label = str(values[t])
            continues = before is None or before in (f"B-{label[2:]}", label)
            if label.startswith("I-") and not continues:
                values[t] = label = f"B-{label[2:]}"
                changed.append(t)
            before = label
    if not changed:
        return labels
    first = changed[0]
    warn_user(
        f"{len(changed)} of {len(values)} labels broke constraints='bio' and were "
        f"repaired, the first at {labels.place(first)}: {labels.values[first]!r} became "
        f"{values[first]!r}"
    )
    return labels._replace(values=values)


def sequences_satisfying(
    labels: FlatLabels, codes: Ints32, masks: ChainConstraints, given: Any, drop: bool
) -> Bools:
    """Which sequences obey the constraints; if some do not, raises ValueError, or warns and drops.

    ``given`` is what the user gave as constraints.
    """
    broken = masks.broken_by(codes, labels.offsets)
    obeys = ~np.logical_or.reduceat(broken, labels.offsets[:-1])
    if obeys.all():
        return obeys
    count = f"{np.count_nonzero(~obeys)} of {len(obeys)} sequences"
    first = _describe(int(np.argmax(broken)), labels, codes, masks, given)
    if not drop:
        begun = f"B-{str(labels.values[int(np.argmax(broken))])[2:]}"
        repair = f"on_violation='repair' makes it {begun!r:.40}, " if _is_bio(given) else ""
        raise ValueError(
            f"{first} ({count} break them); {repair}on_violation='drop' leaves such sequences out"
        )
    if not obeys.any():
        raise ValueError(f"all sequences break the constraints, the first: {first}")
    warn_user(f"{count} break the constraints and are left out: {first}")
    return obeys


def sequences_with_completion(labels: FlatLabels, codes: Ints32, drop: bool) -> Bools:
    """The same for partially labelled data: sequences without completion have negative codes."""
    first = labels.offsets[:-1]
    possible = codes[first] >= 0
    if possible.all():
        return possible
    count = f"{np.count_nonzero(~possible)} of {len(possible)} sequences"
    i = int(np.argmin(possible))
    place = labels.place(int(first[i])) if labels.lines is not None else f"sequence {i}"
    what = "no completion of its labels obeys the constraints"
    if not drop:
        raise ValueError(
            f"{place}: {what} ({count} have none); on_violation='drop' leaves such sequences out"
        )
    if not possible.any():
        raise ValueError(f"all sequences break the constraints, the first: {place}: {what}")
    warn_user(f"{count} break the constraints and are left out: {place}: {what}")
    return possible


def _describe(
    token: int, labels: FlatLabels, codes: Ints32, masks: ChainConstraints, given: Any
) -> str:
    """Where a label stands that may not stand there, and why not."""
    label = labels.values[token]
    if token in labels.offsets[:-1] and not masks.start[codes[token]]:
        what = "opens a sequence"
    elif token in labels.offsets[:-1] or masks.transitions[codes[token - 1], codes[token]]:
        what = "closes a sequence"
    else:
        what = f"follows {labels.values[token - 1]!r:.40}"
    name = "constraints='bio'" if _is_bio(given) else "the constraints"
    return f"{labels.place(token)}: label {label!r:.40} {what}, against {name}"


def _is_bio(constraints: Any) -> bool:
    """Whether the constraints are those of BIO tags, for which there is a rule of repair."""
    return isinstance(constraints, str) and constraints == "bio"
