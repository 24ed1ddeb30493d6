"""Reports about trained models: one page of HTML that needs nothing else."""

from __future__ import annotations

from collections import Counter
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..formats.opening import PathLike
from ..formats.writing import write_text_atomically
from ..metrics import bootstrap_intervals, reliability
from ..metrics.scoring import scores_of
from ..metrics.tallies import Ratio
from ..utils.tables import gap_fraction, is_fraction, score_name
from ..utils.validation import check_choice
from .contents import contents_of
from .page import (
    Fraction,
    Line,
    Section,
    articles,
    bar,
    both_ways,
    heat_map,
    line_chart,
    named_table,
    page,
    reliability_diagram,
    table,
)
from .subjects import ORDERS, LabelCounts, Subject, describe, worst_first

__all__ = ["Report", "make_report"]

TOP = 10  # features and transitions
MOST_LABELS = 40  # of a heat map
ORDERS_IN_WORDS = {
    "rate": "Those with the largest share of errors first.",
    "margin": "Those in which the model prefers the error to the truth the most first.",
    "count": "Those with the most errors first.",
}
MOST_DECISIONS = 12  # that the explanation of an example shows


class Report:
    """A page about a model: `save` it, or see it in a notebook.

    Attributes
    ----------
    html : str
        The page.
    scores : dict of str to Interval
        The scores of the test examples, with their intervals; empty without examples.
    """

    def __init__(self, html: str, scores: dict[str, Any]) -> None:
        self.html = html
        self.scores = scores

    def save(self, path: PathLike) -> Path:
        """Write the page; it appears complete or not at all."""
        with write_text_atomically(path) as stream:
            stream.write(self.html)
        return Path(path)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={score.score:.4g}" for name, score in self.scores.items())
        return f"Report({shown})"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" width="100%" height="700"></iframe>'


def make_report(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    title: str | None = None,
    worst: str = "rate",
    **of_examples: Any,
) -> Report:
    """Describe a trained model, and how it does on examples that it was not trained on.

    Parameters
    ----------
    estimator : estimator
        Trained.
    X, y : inputs and outputs, optional
        As for its ``score``; without them the report is about training and weights alone.
    title : str, optional
        Heading.
    worst : {"rate", "margin", "count"}, default="rate"
        Which examples are the worst: those with the largest share of errors, those in which the
        model prefers what it found to the truth by the largest difference of scores, or those with
        the most errors.
    **of_examples
        What else belongs to the examples, such as ``qid``.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        ``worst="margin"`` and the model does not score given outputs.
    """
    estimator._check_fitted()
    check_choice(worst, ORDERS, "worst")
    contents = contents_of(estimator, TOP)
    subject = None
    if X is not None:
        subject = describe(estimator, X, y, **of_examples)
    scores = {} if subject is None else bootstrap_intervals(subject.tally.scores)
    sections = [
        Section("Certificate", _certificate(estimator)),
        Section("Scores", "" if subject is None else _scores(subject, scores)),
        *(Section(own.title, _by_label(own)) for own in (subject.by_label if subject else ())),
        Section("Confusions", _confusions(subject)),
        Section("Calibration", _calibration(subject)),
        Section("Transitions", _transitions(contents)),
        Section("Weights", _weights(contents)),
        Section("Worst examples", _worst(estimator, subject, worst)),
        Section("Parameters", _parameters(contents)),
    ]
    name = type(estimator).__name__
    return Report(page(title or name, _subtitle(name, contents, subject), sections), scores)


def _subtitle(name: str, contents: dict[str, Any], subject: Subject | None) -> str:
    """The model and the examples in a line."""
    sizes = ", ".join(f"{value:,} {key}".replace("_", " ") for key, value in _counted(contents))
    tested = (
        "" if subject is None else f"; tested on {subject.tally.n_units:,} {subject.tally.unit}"
    )
    return f"{name}: {sizes}{tested}"


def _counted(contents: dict[str, Any]) -> list[tuple[str, int]]:
    """Those sizes that are numbers of something."""
    return [(key, value) for key, value in contents["sizes"].items() if isinstance(value, int)]


# ----- sections ---------------------------------------------------------------------------------


def _certificate(estimator: Any) -> str:
    """What training has proved, and how it came to it."""
    result = getattr(estimator, "result_", None)
    if result is None:
        return "<p>Nothing was optimised, so there is no certificate.</p>"
    rows = [
        (key.replace("_", " "), getattr(result, key)) for key in ("status", "primal", "dual", "gap")
    ]
    if result.relative_gap is not None:
        rows.append(("gap, share of the objective", gap_fraction(result.relative_gap)))
    rows += [("passes of oracle calls", float(result.n_passes)), ("planes kept", result.n_planes)]
    rows += [("seconds", float(result.seconds))]
    work = bar(
        [
            (f"{result.n_oracle_calls:,} searches", float(result.n_oracle_calls), "--blue"),
            (
                f"{result.n_cache_hits:,} visits to stored planes",
                float(result.n_cache_hits),
                "--green",
            ),
        ]
    )
    sentence = (
        "The objective of this model is at most the gap above the best there is."
        if result.gap is not None
        else "No gap was computed: how far the model is from the optimum is not known."
    )
    return (
        f"<p>{sentence}</p><div class='columns'><div>{named_table(rows)}<h3>Work</h3>{work}</div>"
        f"{_convergence(result)}</div>"
    )


def _convergence(result: Any) -> str:
    """Gaps and objectives by the time they were reached."""
    history = result.history
    gaps = [(r.seconds, r.gap) for r in history if r.gap is not None]
    estimates = [(r.seconds, r.gap_estimate) for r in history if r.gap_estimate is not None]
    primal = [(r.seconds, r.primal) for r in history if r.primal is not None]
    dual = [(r.seconds, r.dual) for r in history if r.dual is not None]
    drawn = line_chart(
        [
            Line("estimated gap", estimates, "--muted"),
            Line("certified gap", gaps, "--blue", is_dotted=True),
        ],
        "seconds",
        "gap",
        scale="log",
    )
    drawn += line_chart(
        [Line("objective", primal, "--orange", True), Line("lower bound", dual, "--green")],
        "seconds",
        "objective",
    )
    return f"<div>{drawn}</div>" if drawn else ""


def _scores(subject: Subject, scores: dict[str, Any]) -> str:
    """Scores of all examples with their intervals."""
    rows = [
        (score_name(name), *(Fraction(x) if is_fraction(name) else x for x in found))
        for name, found in scores.items()
    ]
    note = (
        f"<p class='muted'>95 % intervals by 1,000 resamples of the "
        f"{subject.tally.n_units:,} {subject.tally.unit}. Shares are in per cent.</p>"
    )
    return table(("score", "value", "from", "to"), rows) + note


def _by_label(found: LabelCounts) -> str:
    """Precision, recall and F1 of every label, the last with its interval."""
    ratios = {
        str(k): Ratio(2.0 * right, true + found)
        for k, (true, found, right) in enumerate(found.counts)
    }
    intervals = bootstrap_intervals(ratios) if ratios else {}
    rows = []
    for k, (name, own) in enumerate(zip(found.names, found.counts, strict=True)):
        scores = scores_of(*(int(values.sum()) for values in own))
        values = (scores.precision, scores.recall, *intervals[str(k)])
        rows.append((str(name), scores.n_true, *map(Fraction, values)))
    note = f"<p class='muted'>{escape(found.note)}</p>" if found.note else ""
    return table(("label", "number", "precision", "recall", "F1", "from", "to"), rows) + note


def _confusions(subject: Subject | None) -> str:
    """How often each label was taken for which; of many labels, those confused most."""
    if subject is None or subject.labels is None:
        return ""
    pairs = Counter(zip(subject.labels.true, subject.labels.found, strict=True))
    wrong = [(a, b, n) for (a, b), n in pairs.most_common() if a != b]
    listed = table(("true", "found as", "times"), [(str(a), str(b), n) for a, b, n in wrong[:30]])
    names = subject.order or sorted({*subject.labels.true, *subject.labels.found}, key=str)
    if len(names) > MOST_LABELS:
        return listed
    counts = np.array([[float(pairs[a, b]) for b in names] for a in names])
    errors = counts * (1.0 - np.eye(len(names)))
    shown = heat_map([str(name) for name in names], errors, "true \\ found")
    note = f"<p class='muted'>Errors only; right labels are left out. {subject.labels.note}</p>"
    return f"<div class='columns'><div>{shown}{note}</div><div>{listed}</div></div>"


def _calibration(subject: Subject | None) -> str:
    """Whether what is found with a probability of .9 is right nine times out of ten."""
    if subject is None or subject.confidences is None:
        return ""
    found = reliability(*subject.confidences)
    used = found.counts > 0
    columns = (values[used].tolist() for values in (found.confidence, found.accuracy, found.counts))
    bins = list(zip(*columns, strict=True))
    return reliability_diagram(bins, f"expected calibration error {found.ece:.4f}")


def _transitions(contents: dict[str, Any]) -> str:
    """Weights of labels that follow each other."""
    found = contents.get("transitions")
    if found is None:
        return ""
    shown = ""
    if len(found["labels"]) <= MOST_LABELS:
        shown = heat_map(found["labels"], found["weights"], "from \\ to")
    best = contents.get("top_transitions")
    if best is None:
        return shown
    sides = [
        [
            (" → ".join("(end)" if p is None else str(p) for p in entry[:-1]), entry[-1])
            for entry in own
        ]
        for own in best.values()
    ]
    return shown + both_ways("Strongest", *sides)


def _weights(contents: dict[str, Any]) -> str:
    """Features with the largest weights."""
    parts = [
        both_ways(f"for {name}" if name else "", lists["for"], lists["against"])
        for name, lists in contents.get("features", {}).items()
    ]
    for key, heading in (("weights", "Strongest weights"), ("rules", "Rules")):
        if key in contents:
            lists = contents[key]
            sides = ([(str(e[0]), e[-1]) for e in lists[side]] for side in ("for", "against"))
            parts.append(both_ways(heading, *sides))
    if "note" in contents:
        parts.append(f"<p>{escape(contents['note'])}</p>")
    return "".join(parts)


def _worst(estimator: Any, subject: Subject | None, order: str) -> str:
    """Examples that went wrong, drawn, with what decided."""
    if subject is None:
        return ""
    worst = worst_first(subject, order)
    if not worst:
        return "<p>All are right.</p>"
    return f"<p class='muted'>{ORDERS_IN_WORDS[order]}</p>" + articles(
        [(one.title, one.drawing + _why(estimator, subject, one.example)) for one in worst]
    )


def _why(estimator: Any, subject: Subject, index: int) -> str:
    """What decided, if the estimator can explain it."""
    if subject.example_at is None or not hasattr(estimator, "explain"):
        return ""
    try:
        shown = _explained(estimator, *subject.example_at(index))
    except ValueError as error:  # such as that there are no features, but a kernel
        shown = f"<p class='muted'>{escape(str(error))}</p>"
    return f"<details><summary>why</summary><div class='scroll'>{shown}</div></details>"


def _explained(estimator: Any, x: Any, truth: Any) -> str:
    """Why what was found and not the truth; if the model cannot say that, why not the next."""
    try:
        found = estimator.explain(x, truth)
    except ValueError:  # of labels that it does not know
        found = estimator.explain(x)
    rest = len(found.decisions) - MOST_DECISIONS
    note = f"<p class='muted'>and {rest} decisions more</p>" if rest > 0 else ""
    shown: str = found._replace(decisions=found.decisions[:MOST_DECISIONS])._repr_html_()
    return shown + note


def _parameters(contents: dict[str, Any]) -> str:
    """How it was trained."""
    return named_table((name, str(contents["parameters"][name])) for name in contents["given"])
