"""What a report says about the outputs of each estimator: one function for each kind of output.

describe_KIND(estimator, X, y, **of_examples) -> Subject

`maxmargin.registry` says which kind is whose; ``losses`` is for all others.
"""

from __future__ import annotations

from typing import Any

from ...registry import entry_of, import_name
from .subject import Subject

__all__ = ["describe"]

_KINDS_OF_ROWS = ("classes", "measures", "rankings", "sets")


def describe(estimator: Any, X: Any, y: Any = None, **of_examples: Any) -> Subject:
    """Describe what an estimator predicts for examples whose outputs are known."""
    entry = entry_of(type(estimator))
    kind = "losses" if entry is None else entry.report
    module = "rows" if kind in _KINDS_OF_ROWS else "structures"
    describe_kind = import_name(f"report.subjects.{module}", f"describe_{kind}")
    present = {name: value for name, value in of_examples.items() if value is not None}
    subject: Subject = describe_kind(estimator, X, y, **present)
    return subject
