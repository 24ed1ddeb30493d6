"""CoNLL-2002 Spanish named entities: 8,323 sentences, 9 tags, 28 features at each token.

Entity F1 of dual coordinate descent and of online solvers, as in Table 1 of Chang & Yih (2013),
whose data were English. C is the best of their grid on testa; what is reported is F1 on testb.
"""

from __future__ import annotations

from collections.abc import Iterator

from maxmargin.features import ner_templates

from .. import tagging
from ..case import FORMULATION, Case, Options, Target
from ..solvers import ours
from .dcd import L2

SOLVERS = {  # C, and F1 in the paper's table
    "dcd": (0.05, 85.6),
    "perceptron": (1.0, 85.3),  # has no use for C
    "mira": (0.01, 85.1),
    "sgd": (1.0, 84.2),
}
MOST_PASSES = 25


def entities(options: Options, test: str = "testb") -> tagging.Tagging:
    """The training part, next to "testa" or "testb"."""
    train, held_out = (
        tagging.read(f"conll2002/esp.{part}.xz", options.size(100)) for part in ("train", test)
    )
    return tagging.Tagging(train, held_out, ner_templates())


def cases(options: Options) -> Iterator[Case]:
    """One table."""
    data = entities(options)
    names = [name for name in options.of_ours(tuple(SOLVERS)) if name in SOLVERS]
    contestants = [
        ours(
            name,
            data.problem,
            SOLVERS[name][0],
            tol=1e-2 if name == "dcd" else None,
            max_passes=MOST_PASSES,
            formulation=L2 if name == "dcd" else FORMULATION,
        )
        for name in names
    ]
    yield Case(
        f"CoNLL-2002 Spanish, at most {MOST_PASSES} passes",
        contestants,
        [
            *(
                Target(
                    f"F1 of dcd / {name}'s",
                    "dcd",
                    "f1",
                    f"paper: {SOLVERS['dcd'][1] / SOLVERS[name][1]:.4f}",
                    relative_to=(name, "f1"),
                )
                for name in names
                if name != "dcd"
            ),
            *(
                Target(f"{name}: {what}", name, measure, reference, unit)
                for name in names
                for what, measure, reference, unit in (
                    ("entity F1", "f1", f"paper, English: {SOLVERS[name][1]}", "%"),
                    ("passes", "passes", "", ""),
                    ("time", "cpu", "", "s"),
                )
            ),
        ],
        decode=data.decode,
        truth=data.truth,
    )
