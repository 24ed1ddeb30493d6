"""What a report says about the outputs of each estimator: a file each, with one function.

describe(estimator, X, y, **of_examples) -> Subject

`maxmargin.registry` says which file is whose; `losses` is for all others.
"""

from __future__ import annotations

from typing import Any

from ...registry import entry_of, import_name
from .subject import Subject

__all__ = ["describe"]


def describe(estimator: Any, X: Any, y: Any = None, **of_examples: Any) -> Subject:
    """Describe what an estimator predicts for examples whose outputs are known."""
    entry = entry_of(type(estimator))
    kind = "losses" if entry is None else entry.report
    given = {name: value for name, value in of_examples.items() if value is not None}
    subject: Subject = import_name(f"report.subjects.{kind}", "describe")(estimator, X, y, **given)
    return subject
