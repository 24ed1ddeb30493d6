"""One report of all that can be said of tagged sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tables import named_values, percent
from .chunks import are_chunk_tags, chunk_scores
from .labels import label_scores, sequence_accuracy
from .sequences import listed

__all__ = ["tagging_report"]


def tagging_report(y_true: Sequence[Any], y_pred: Sequence[Any]) -> str:
    """Accuracies, and tables of precision, recall and F1 of chunks and of labels.

    Chunks come in where the labels are tags such as B-NP, I-NP and O. All shares are in per cent.
    The numbers behind the text: `chunk_scores`, `label_scores`, `token_accuracy` and
    `sequence_accuracy`.

    Parameters
    ----------
    y_true, y_pred : list of sequences of labels
        Of the same lengths; labels of any hashable type.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        Lengths differ; the message names the first bad sequence.

    Examples
    --------
    >>> y_true = [["B-PER", "I-PER", "O"], ["B-LOC", "O"]]
    >>> print(tagging_report(y_true, [["B-PER", "O", "O"], ["B-LOC", "O"]]))
    sequences            2
    tokens               5
    token accuracy       80.00 %
    sequences all right  50.00 %
    <BLANKLINE>
    chunks         precision  recall      F1  number
    LOC               100.00  100.00  100.00       1
    PER                 0.00    0.00    0.00       1
    micro average      50.00   50.00   50.00       2
    macro average      50.00   50.00   50.00       2
    <BLANKLINE>
    labels         precision  recall      F1  number
    B-LOC             100.00  100.00  100.00       1
    B-PER             100.00  100.00  100.00       1
    I-PER               0.00    0.00    0.00       1
    O                  66.67  100.00   80.00       2
    micro average      80.00   80.00   80.00       5
    macro average      66.67   75.00   70.00       5
    """
    y_true, y_pred = (
        listed(y, name, "sequences") for y, name in ((y_true, "y_true"), (y_pred, "y_pred"))
    )
    labels = label_scores(y_true, y_pred)
    head = named_values(
        [
            ("sequences", str(len(y_true))),
            ("tokens", str(sum(scores.n_true for scores in labels.per_label.values()))),
            ("token accuracy", f"{percent(labels.accuracy)} %"),
            ("sequences all right", f"{percent(sequence_accuracy(y_true, y_pred))} %"),
        ]
    )
    parts = [head, str(labels)]
    if are_chunk_tags(labels.per_label):
        parts.insert(1, chunk_scores(y_true, y_pred).table())
    return "\n\n".join(parts)
