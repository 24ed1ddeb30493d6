"""Counted work, by which solvers decide what pays: the same in every run and on every machine.

A clock would let the same seed give other weights each time. So stores of planes count what they
do, in units of about a nanosecond of one core; only the ratios matter. The constants were fitted
once to times measured on OCR letters and CoNLL-2000 (chains), the English Web Treebank (hashed
arcs) and the Penn sample (grammars), where they are right within a factor of two.
"""

from __future__ import annotations

__all__ = [
    "ADDED_ENTRY",
    "BLOCK",
    "BLOCK_ENTRY",
    "CALL",
    "ORACLE_CALL",
    "PLANE_ENTRY",
    "RECOMBINATION",
    "REWRITTEN_ENTRY",
    "WEIGHT",
    "scoring_work",
]

CALL = 5e4  # a call of a kernel and what is around it, whatever the number of blocks
BLOCK = 300.0  # a block that is visited: its list of planes and the steps
BLOCK_ENTRY = 3.0  # a weight gathered from w for the parts of a block
PLANE_ENTRY = 1.0  # an entry of a stored plane, multiplied
RECOMBINATION = 0.6  # the search for recombinations, as a share of the visit around it
ADDED_ENTRY = 10.0  # an entry of a plane that is added to a vector of all weights
WEIGHT = 3.0  # an entry of such a vector, when vectors are added
ORACLE_CALL = 2e5  # an oracle call of a problem that does not say what it costs
REWRITTEN_ENTRY = 20.0  # an entry of a plane that is moved in memory


def scoring_work(entries: float, n_labels: int) -> float:
    """Work of scoring all labels of an input with so many entries."""
    return entries * (15.0 + 0.4 * n_labels)
