"""``maxmargin inspect``: what is in a model file."""

from __future__ import annotations

import argparse
import os
from typing import Any

from ...utils.tables import columns, named_values
from ..console import DONE, Signals
from ..numbers import positive
from ..options import add_command

__all__ = ["add_parser", "in_words", "run"]

DESCRIPTION = """\
Show what a model file holds: sizes, parameters, the certificate of the training, the strongest
weights of each label and, for taggers, the weights of transitions, as a table unless it is too
wide. Positive weights speak for a label, negative ones against it; 0 is shown as a dot.
"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser = add_command(
        commands,
        "inspect",
        run,
        help="show what a model file holds",
        description=DESCRIPTION,
    )
    parser.add_argument("model", metavar="MODEL", help="model file written by train")
    parser.add_argument("--label", metavar="X", help="show only the weights of this label")
    parser.add_argument(
        "--top",
        type=positive,
        default=5,
        metavar="N",
        help="number of weights in each list (default 5)",
    )
    parser.add_argument(
        "--transitions",
        action="store_true",
        help="show the table of transition weights, however wide it is",
    )
    parser.add_argument("--json", action="store_true", help="write the same as JSON")
    return parser


def run(arguments: argparse.Namespace, signals: Signals) -> int:
    """Read and show."""
    import json

    from ...persistence import load_model
    from ...report.contents import contents_of
    from ..console import write_report
    from ..files import is_standard

    if is_standard(arguments.model):
        raise ValueError("a model cannot be read from standard input: give the name of its file")
    estimator, _ = load_model(arguments.model)
    try:
        held = contents_of(estimator, arguments.top, arguments.label)
    except ValueError as error:
        raise ValueError(f"{arguments.model}: {error}") from None
    contents = {"model": arguments.model, "bytes": os.path.getsize(arguments.model), **held}
    write_report(
        json.dumps(contents, indent=2)
        if arguments.json
        else in_words(contents, wide=arguments.transitions)
    )
    return DONE


WIDEST_TABLE = 12  # labels of a table of transitions that fits a page


def in_words(contents: dict[str, Any], *, wide: bool) -> str:
    """The contents as text; a table of transitions only if it is narrow, or may be wide."""
    if contents["label"] is not None:
        return "\n\n".join(_weights_in_words(contents, wide))
    task = f" (task {contents['task']})" if contents["task"] else ""
    rows = [
        ("model", contents["model"]),
        ("estimator", contents["estimator"] + task),
        ("bytes", str(contents["bytes"])),
        *((name.replace("_", " "), _number(value)) for name, value in contents["sizes"].items()),
    ]
    parts = [named_values(rows)]
    if contents["labels"] is not None:
        parts.append(_wrapped("labels: " + ", ".join(contents["labels"])))
    given = {name: contents["parameters"][name] for name in contents["given"]}
    parts.append("parameters\n" + _indented((n, _number(v)) for n, v in given.items()))
    parts.append("certificate\n" + _certificate_in_words(contents["certificate"]))
    return "\n\n".join([*parts, *_weights_in_words(contents, wide)])


def _weights_in_words(contents: dict[str, Any], wide: bool) -> list[str]:
    """What was learned."""
    parts = []
    for name, lists in contents.get("features", {}).items():
        parts.append(_side_by_side(f"features of {name}", lists))
    for key, title in (("weights", "strongest weights"), ("rules", "rules")):
        if key in contents:
            parts.append(_side_by_side(title, contents[key]))
    if "note" in contents:
        parts.append(contents["note"])
    if "top_transitions" in contents:
        parts.append(_side_by_side("transitions", contents["top_transitions"]))
    table = contents.get("transitions")
    if table is not None and (wide or len(table["labels"]) <= WIDEST_TABLE):
        parts.append(_table(table["labels"], table["weights"]))
    if "transitions_of_label" in contents:
        own = contents["transitions_of_label"]
        rows_of_label = [("transitions", "from", "to")]
        rows_of_label += [(n, _weight(own["from"][n]), _weight(own["to"][n])) for n in own["to"]]
        parts.append(columns(rows_of_label))
    return parts


def _certificate_in_words(certificate: dict[str, Any] | None) -> str:
    """What training has proved."""
    if certificate is None:
        return "  none: nothing was optimised"
    known = [(n.replace("_", " "), _number(v)) for n, v in certificate.items() if v is not None]
    if certificate["gap"] is None:
        known.append(("gap", "not certified"))
    return _indented(known)


def _side_by_side(title: str, lists: dict[str, Any]) -> str:
    """What speaks for something, and against it."""
    sides = [
        [(_named(entry[:-1]), _weight(entry[-1])) for entry in side] for side in lists.values()
    ]
    n = max(map(len, sides))
    left, right = (side + [("", "")] * (n - len(side)) for side in sides)
    widths = [max([len(title), *(len(name) for name, _ in left)]), 8, 7]
    lines = [f"{title:<{widths[0]}}  {'for':>{widths[1]}}   against"]
    for (a, x), (b, y) in zip(left, right, strict=True):
        lines.append(f"{a:<{widths[0]}}  {x:>{widths[1]}}   {y:>{widths[2]}}  {b}".rstrip())
    return "\n".join(lines)


def _named(parts: Any) -> str:
    """A feature, a rule, or labels one after the other; None is before and after a sequence."""
    return " -> ".join("(end)" if part is None else str(part) for part in parts)


def _table(labels: list[str], weights: list[list[float]]) -> str:
    """A table of transitions, from-labels in rows."""
    rows = [("from \\ to", *labels)]
    rows += [(name, *map(_weight, row)) for name, row in zip(labels, weights, strict=True)]
    return columns(rows)


def _indented(rows: Any) -> str:
    """Names and values, set in."""
    return "\n".join(f"  {line}" for line in named_values(rows).splitlines())


def _wrapped(text: str) -> str:
    """A long line as several."""
    import textwrap

    return textwrap.fill(text, width=96, subsequent_indent="  ", break_on_hyphens=False)


def _weight(value: float) -> str:
    """A weight; most are 0 in some models, and forbidden transitions are too."""
    return "." if value == 0.0 else f"{value:.3f}"


def _number(value: Any) -> str:
    """A number for people."""
    is_float = isinstance(value, float)
    return f"{value:.6g}" if is_float else str(value)
