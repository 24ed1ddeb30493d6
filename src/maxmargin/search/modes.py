"""How a search treats the loss: one set of modes for all structures, and the choice among them.

Whether the most violated output can be found at all, and how, depends on what the loss adds to the
score of an output (see `violation` for the formulas):

    ADDITIVE       Delta + gain                  the loss adds up like the score: any decoder
    BEST_NON_GOLD  1 + gain, over y != y_i       the best output but the gold one
    ERROR_COUNTS   Delta (1 + gain), or with     the best output for each *error count*
                   the root of Delta             (or of right nodes), and then the best count
    PREDICTION     gain                          no loss at all
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ..core.formulation import Formulation, Rescaling
from ..utils.types import Floats

__all__ = [
    "ADDITIVE",
    "BEST_NON_GOLD",
    "ERROR_COUNTS",
    "PREDICT",
    "PREDICTION",
    "SearchMode",
    "error_count_terms",
    "search_mode",
]

ADDITIVE, BEST_NON_GOLD, ERROR_COUNTS, PREDICTION = 0, 1, 2, 3


class SearchMode(NamedTuple):
    """What kernels are told of a formulation: the kind of search, and how levels are rescaled."""

    kind: int
    slack: bool
    sqrt_loss: bool


#: The best output, whatever its loss.
PREDICT = SearchMode(PREDICTION, False, False)


def error_count_terms(
    losses: Floats, gold_score: float, rescaling: Rescaling, sqrt_loss: bool
) -> tuple[Floats, Floats]:
    """By what outputs of these losses are ranked: ``offsets + scales * score``, their violation.

    Error counts with a scale of 0 are left out: with slack rescaling, and with none, an output
    without loss is never violated.
    """
    formulation = Formulation(rescaling, sqrt_loss=sqrt_loss)
    offsets, scales = formulation.plane_terms(losses)
    return offsets - scales * gold_score, scales.copy()


@cache  # oracles ask for it at every call, of a single example maybe
def search_mode(rescaling: Rescaling, sqrt_loss: bool, zero_one: bool = False) -> SearchMode:
    """The search that finds the most violated output.

    With zero-one loss (``zero_one``) all rescalings ask for the same: every wrong output has the
    loss 1, and so has its root.
    """
    formulation = Formulation(rescaling, sqrt_loss=sqrt_loss)
    if zero_one or rescaling == "none":
        return SearchMode(BEST_NON_GOLD, False, False)
    slack, sqrt_loss = rescaling == "slack", formulation.uses_sqrt_loss
    return SearchMode(ERROR_COUNTS if slack or sqrt_loss else ADDITIVE, slack, sqrt_loss)
