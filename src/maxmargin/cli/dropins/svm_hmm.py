"""What the commands of svm-hmm do."""

from __future__ import annotations

import argparse
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from ...utils.types import Ints
from ..console import DONE, Signals, UsageError, echo_result
from ..files import check_several_labels
from ..training import Examples as TrainingExamples
from ..training import Training
from .learning import (
    Examples,
    check_model,
    convention_of,
    echo_errors,
    raise_at,
    read_examples,
    read_tool_model,
    shared_parameters,
    train_and_save,
    with_width,
    write_predictions,
)

__all__ = ["classify", "learn"]

LOSSES = {0: "zero_one", 1: "hamming"}


def learn(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train a tagger; without transitions (--t 0) tokens are examples of their own."""
    if arguments.emissions > arguments.order:
        raise UsageError("--e must not be larger than --t, the order of the transitions")
    alone = arguments.order == 0
    if alone and (arguments.l, arguments.o, arguments.p) != (1, 2, 1):
        raise UsageError("--t 0, without transitions, requires -l 1, -o 2 and -p 1")
    check_model(arguments)
    data = _read(arguments.data)
    check_several_labels(data.source, set(data.y.tolist()))
    offsets = data.offsets
    n_sequences, n_tokens = len(offsets) - 1, len(data.y)
    if arguments.v > 0:
        echo_result(
            f"Training set properties: {data.X.shape[1]} features, {n_sequences} sequences, "
            f"{n_tokens} tokens, {len(np.unique(data.y))} tags"
        )
    convention = convention_of(arguments, n_sequences)
    shared = shared_parameters(arguments, convention)
    extra = {"tool": "svm-hmm", "loss": arguments.l}
    if alone:  # the Hamming loss of a sequence is the sum of its tokens' losses
        shared["epsilon"] *= n_sequences / n_tokens
        from ...estimators.tabular.multiclass import MulticlassSVM

        rows = MulticlassSVM(fit_intercept=False, **shared)
        training = Training(rows, TrainingExamples(data.X, data.y), extra)
    else:
        from ...estimators.sequences.sequence import SequenceTagger

        higher = arguments.order > 1 or arguments.emissions > 0
        tagger = SequenceTagger(
            loss=LOSSES[arguments.l],  # type: ignore[arg-type]
            order={
                "transitions": arguments.order,
                "emissions": arguments.emissions,
                "label_tuples": "allowed" if higher else "seen",  # svm_hmm has weights for all
            },
            **shared,
        )
        X, y = _packed(data.X, offsets), _split(data.y, offsets)
        training = Training(tagger, TrainingExamples(X, y), extra)
    return train_and_save(arguments, signals, training, convention)


def classify(arguments: argparse.Namespace, signals: Signals) -> int:
    """Tag a file."""
    estimator, extra = read_tool_model(arguments, "svm-hmm")
    data = _read(arguments.data)
    offsets, X = data.offsets, with_width(data.X, estimator.n_features_in_)
    if type(estimator).__name__ == "MulticlassSVM":  # of --t 0
        tags = estimator.predict(X)
    else:
        tags = np.concatenate(estimator.predict(_packed(X, offsets)))
    signals.check()
    write_predictions(arguments, map(str, tags.tolist()))
    wrong = np.add.reduceat((tags != data.y).astype(np.float64), offsets[:-1])
    losses = np.minimum(wrong, 1.0) if extra.get("loss") == 0 else wrong
    echo_errors(arguments, losses, [f"Average loss per token: {wrong.sum() / len(tags):.4f}"])
    return DONE


def _read(path: str) -> Examples:
    """Read sequences: lines with the same qid, one after the other."""
    data = read_examples(path, needs_queries=True)
    bad = np.flatnonzero((data.y != np.rint(data.y)) | (data.y < 0))
    if len(bad):
        row = int(bad[0])
        raise_at(data, row, f"expected a tag that is a whole number, found {data.y[row]:g}")
    starts = data.offsets[:-1]
    _, first = np.unique(data.qid[starts], return_index=True)
    if len(first) < len(starts):
        again = int(starts[np.setdiff1d(np.arange(len(starts)), first)[0]])
        raise_at(
            data,
            again,
            f"qid:{data.qid[again]} comes again, expected all lines of a sequence together",
        )
    return data


def _packed(X: Any, offsets: Ints) -> Any:
    """Rows as sequences."""
    from ...features.packing import PackedSequences

    return PackedSequences(sparse.csr_array(X), offsets)


def _split(values: Any, offsets: Ints) -> list[Any]:
    """Values of each sequence."""
    return [values[a:b] for a, b in pairwise(offsets.tolist())]
