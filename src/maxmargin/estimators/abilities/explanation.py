"""Why this output and not that: the features that decided, as text and as HTML.

Structures list what differs between two outputs, as rows of `Evidence`; all else is here. So is
what a model says of features without any input: which of its weights are the strongest.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...features.containers import is_frame
from ...features.tokens import tokens_of, word_of
from ...sparse_format import check_sparse
from ...tables import columns
from ...types import Floats, Ints

__all__ = [
    "Decision",
    "Evidence",
    "Explanation",
    "Names",
    "Part",
    "Places",
    "best_other",
    "column_names",
    "decision",
    "differing_parts",
    "explain_whole",
    "input_evidence",
    "names_at_once",
    "no_decisions",
    "one_row",
    "strongest",
    "strongest_by_label",
    "token_name",
]

Names = Callable[[Ints], dict[int, str]]
Part = tuple[str, int, float]  # of an output: name, place, weight


class Evidence(NamedTuple):
    """What speaks for one output against another.

    Attributes
    ----------
    name : str
        A feature, or another part of the outputs such as a transition.
    place : int
        The position that it belongs to, such as a token.
    value : float
        The feature's value.
    weight : float
        Its weight for the output that was chosen, minus that for the rival.
    """

    name: str
    place: int
    value: float
    weight: float

    @property
    def contribution(self) -> float:
        """By how much it moves the scores apart; negative if it speaks for the rival."""
        return self.value * self.weight


class Decision(NamedTuple):
    """What was chosen at a position, its rival, and what decided.

    Attributes
    ----------
    place : int
        The position, from 0.
    name : str
        The position in words.
    chosen, rival : label
        What stands there in either output; the rival is None if nothing else is possible.
    margin : float
        The sum of the contributions.
    evidence : tuple of Evidence
        All that differs, strongest first.
    """

    place: int
    name: str
    chosen: Any
    rival: Any
    margin: float
    evidence: tuple[Evidence, ...]


class Explanation(NamedTuple):
    """Why an output was chosen; prints as text, and as a table in notebooks.

    Attributes
    ----------
    output : label or list of labels
        What was chosen.
    rival : label, list of labels or None
        What it is compared with as a whole; the decisions' margins add up to the difference of the
        scores. None: every decision has a rival of its own, the best output with another label
        there, and its margin is that of `predict_margins`.
    decisions : tuple of Decision
        Position by position.
    n : int
        How many pieces of evidence of a decision are shown; all are there.
    """

    output: Any
    rival: Any
    decisions: tuple[Decision, ...]
    n: int = 5

    @property
    def margin(self) -> float:
        """How much larger the score is than the rival's; without one, the smallest margin."""
        margins = [decision.margin for decision in self.decisions]
        return sum(margins) if self.rival is not None else min(margins)

    def __str__(self) -> str:
        return "\n\n".join(self._text(decision) for decision in self.decisions) or "no difference"

    def _text(self, decision: Decision) -> str:
        """One decision, with its strongest evidence."""
        rows = [
            (name, f"{value:.4g}", f"{weight:+.4g}", f"{contribution:+.4g}")
            for name, value, weight, contribution in self._rows(decision)
        ]
        head = _headline(decision)
        return f"{head}\n{columns([('', 'value', 'weight', 'product'), *rows])}" if rows else head

    def _rows(self, decision: Decision) -> Iterator[tuple[str, float, float, float]]:
        """Names and numbers that are shown."""
        for one in decision.evidence[: self.n]:
            elsewhere = "" if one.place == decision.place else f" (at {one.place})"
            yield f"{one.name}{elsewhere}", one.value, one.weight, one.contribution
        rest = decision.evidence[self.n :]
        if rest:
            total = sum(one.contribution for one in rest)
            yield f"{len(rest)} more", 1.0, total, total

    def _repr_html_(self) -> str:
        """A table for notebooks, with a bar for each contribution."""
        return "".join(map(self._html, self.decisions)) or "<p>no difference</p>"

    def _html(self, decision: Decision) -> str:
        """One decision as a table."""
        rows = list(self._rows(decision))
        largest = max((abs(row[3]) for row in rows), default=0.0) or 1.0
        cells = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{value:.4g}</td><td>{weight:+.4g}</td>"
            f"<td>{contribution:+.4g}</td><td><div style='height:0.7em;width:"
            f"{100.0 * abs(contribution) / largest:.0f}px;background:"
            f"{'#3a9a5b' if contribution > 0 else '#d9822b'}'></div></td></tr>"
            for name, value, weight, contribution in rows
        )
        head = "<tr><th></th><th>value</th><th>weight</th><th>product</th><th></th></tr>"
        return f"<p>{html.escape(_headline(decision))}</p><table>{head}{cells}</table>"


class Places(NamedTuple):
    """An output that is explained place by place.

    ``labels`` are what stands at each place, ``name_of`` gives the place in words, and ``evidence``
    lists what differs between the output and a rival, in the form that the structure has it in.
    """

    output: Any
    labels: Sequence[Any]
    name_of: Callable[[int], str]
    evidence: Callable[[Any], list[Evidence]]

    def against(self, rival: Any, output: Any, labels: Sequence[Any], n: int) -> Explanation:
        """Compared with one other output, at the places where they differ."""
        rows = self.evidence(rival)
        found = tuple(
            decision(
                t,
                self.name_of(t),
                self.labels[t],
                labels[t],
                [row for row in rows if row.place == t],
            )
            for t in sorted({row.place for row in rows})
        )
        return Explanation(self.output, output, found, n)

    def one_by_one(self, rivals: Iterable[tuple[Any, Any] | None], n: int) -> Explanation:
        """Compared, at each place, with the best output that has something else there.

        ``rivals`` are what it has there, and the output; None where nothing else is possible.
        """
        found = tuple(
            decision(t, self.name_of(t), self.labels[t], None)
            if rival is None
            else decision(t, self.name_of(t), self.labels[t], rival[0], self.evidence(rival[1]))
            for t, rival in enumerate(rivals)
        )
        return Explanation(self.output, None, found, n)


def explain_whole(
    output: Any,
    rival: Any,
    evidence: Iterable[Evidence],
    n: int,
    shown: Sequence[Any] | None = None,
) -> Explanation:
    """One decision between whole outputs, ``shown`` in words; the rival may be None."""
    chosen, other = (output, rival) if shown is None else shown
    found = decision(0, "", chosen, None if rival is None else other, evidence)
    return Explanation(output, rival, (found,), n)


def best_other(margins: Floats, own: int) -> int | None:
    """Number of the largest margin but for that of what is chosen; None if no other is possible."""
    others = margins.copy()
    others[own] = -np.inf
    best = int(np.argmax(others))
    return None if others[best] == -np.inf else best


def decision(
    place: int, name: str, chosen: Any, rival: Any, evidence: Iterable[Evidence] = ()
) -> Decision:
    """A decision by evidence in any order; a rival of None says that nothing else is possible."""
    if rival is None:
        return Decision(place, name, chosen, None, np.inf, ())
    found = sorted(evidence, key=lambda one: -abs(one.contribution))
    margin = float(sum(one.contribution for one in found))
    return Decision(place, name, chosen, rival, margin, tuple(found))


def no_decisions(y_hat: Any, n: int) -> Explanation:
    """The explanation of an example without tokens, for which only the empty output is possible."""
    if y_hat is not None and len(y_hat) > 0:
        raise ValueError(f"x is empty, but y_hat has {len(y_hat)} entries")
    return Explanation([], None if y_hat is None else [], (), n)


def differing_parts(chosen: Iterable[Part], rival: Iterable[Part]) -> list[Evidence]:
    """Parts that one output has and the other one has not."""
    counts = Counter(chosen)
    counts.subtract(Counter(rival))
    return [
        Evidence(name, place, float(count), weight)
        for (name, place, weight), count in counts.items()
        if count
    ]


def _headline(found: Decision) -> str:
    """A decision in words."""
    place = f"{found.name}: " if found.name else ""
    if found.rival is None:
        return f"{place}{found.chosen}, for nothing else is possible"
    return f"{place}{found.chosen}, not {found.rival}, by {found.margin:.4g}"


def token_name(x: Any, t: int) -> str:
    """Token t of a sequence in words: with its word, if it has one."""
    tokens = tokens_of(list(x) if isinstance(x, tuple) else x)
    word = word_of(tokens[t]) if tokens else None
    return f"token {t} {word!r:.40}" if word is not None else f"token {t}"


def one_row(x: Any) -> Any:
    """One input as a matrix of a single row; ValueError for more."""
    check_sparse(x, "x")
    row: Any = x if sp.issparse(x) or is_frame(x) else np.atleast_2d(np.asarray(x))
    if row.shape[0] != 1:
        raise ValueError(f"x must be one input, got {row.shape[0]} rows")
    return row


def column_names(estimator: Any, numbers: Ints) -> dict[int, str]:
    """Names of the columns with these numbers; the one behind all others is constant."""
    known = dict(enumerate(getattr(estimator, "feature_names_in_", ())))
    known[estimator.n_features_in_] = "intercept"
    return {f: str(known.get(f, f"x{f}")) for f in numbers.tolist()}


def names_at_once(names: Names, rows: Any, *, has_constant: bool) -> Names:
    """The same names, asked for once for all columns of rows: extractors list all they have."""
    entries = sp.csr_matrix(rows)
    numbers = np.unique(entries.indices).astype(np.int64)
    known = names(np.append(numbers, entries.shape[1]) if has_constant else numbers)
    return lambda numbers: known


def input_evidence(row: Any, place: int, weights: Floats, names: Names) -> list[Evidence]:
    """The inputs of a row that are not 0, and the constant one if there are weights of it.

    ``names`` gives the names of inputs by their numbers.
    """
    entries = sp.csr_matrix(row.to_numpy() if is_frame(row) else row)
    numbers: Ints = entries.indices.astype(np.int64)
    values = entries.data.astype(np.float64)
    if len(weights) > entries.shape[1]:
        numbers, values = np.append(numbers, entries.shape[1]), np.append(values, 1.0)
    name_of = names(numbers)
    return [
        Evidence(name_of[f], place, value, float(weights[f]))
        for f, value in zip(numbers.tolist(), values.tolist(), strict=True)
        if value != 0.0
    ]


# ----- strongest weights -------------------------------------------------------------------------


def strongest(weights: Floats, n: int, against: bool) -> list[int]:
    """Places of the largest positive weights, or of the smallest negative ones; at most n."""
    if not isinstance(n, Integral) or n < 1:
        raise ValueError(f"n must be a whole number >= 1, got {n!r}")
    merits = -weights if against else weights
    order = np.argsort(-merits, kind="stable")[:n]
    return order[merits[order] > 0.0].tolist()


def strongest_by_label(
    weights: Floats,
    labels: Sequence[Any],
    n: int,
    against: bool,
    names: Callable[[Ints], dict[int, str]],
) -> dict[Any, list[tuple[str, float]]]:
    """Names and weights of the features, in rows, that speak for or against labels, in columns."""
    chosen = [strongest(column, n, against) for column in weights.T]
    name_of = names(np.unique(np.concatenate(chosen)).astype(np.int64))
    return {
        label: [(name_of[f], float(weights[f, k])) for f in chosen[k]]
        for k, label in enumerate(labels)
    }
