"""What a user waits for before anything is trained: the import, and kernels at the first fit."""

from __future__ import annotations

from collections.abc import Iterator

from .case import Case, Options, Target
from .fresh import fresh_process

MOST_SECONDS = 1.0


def cases(options: Options) -> Iterator[Case]:
    """Measured in fresh processes, with compiled kernels on disk; both clocks are recorded."""
    for estimator, what in (
        ("MulticlassSVM", "first-class-fit"),
        ("SequenceTagger", "first-sequence-fit"),
    ):
        yield Case(
            f"{estimator}: import and first fit, warm cache",
            [fresh_process(what, options.quick)],
            [
                _target("import maxmargin", what, "bare_import"),
                _target("import with the estimator", what, "import"),
                Target("of that, numba, scipy, scikit-learn", what, "dependencies_cpu", unit="s"),
                _target("first fit less the second", what, "first_fit"),
            ],
        )


def _target(text: str, contestant: str, measure: str) -> Target:
    """A limit on the CPU time; the wall time is in the record."""
    return Target(text, contestant, f"{measure}_cpu", unit="s", at_most=MOST_SECONDS)
