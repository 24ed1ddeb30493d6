"""What the commands of svm-hmm, svm-multiclass, svm-perf, svm-rank and svm-cfg do."""

from __future__ import annotations

import argparse
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from ...formats import Tree
from ...utils.types import Bools, Floats, Ints
from ...utils.warn import warn_user
from ..console import DONE, Signals, UsageError, echo, echo_result
from ..files import at_lines, check_kind, check_several_labels, open_input
from ..tasks.trees import PARSE, read_clean_trees
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

__all__ = [
    "classify_cfg",
    "classify_hmm",
    "classify_multiclass",
    "classify_perf",
    "classify_rank",
    "learn_cfg",
    "learn_hmm",
    "learn_multiclass",
    "learn_perf",
    "learn_rank",
]

HMM_LOSSES = {0: "zero_one", 1: "hamming"}


def learn_hmm(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train a tagger; without transitions (--t 0) tokens are examples of their own."""
    if arguments.emissions > arguments.order:
        raise UsageError("--e must not be larger than --t, the order of the transitions")
    alone = arguments.order == 0
    if alone and (arguments.l, arguments.o, arguments.p) != (1, 2, 1):
        raise UsageError("--t 0, without transitions, requires -l 1, -o 2 and -p 1")
    check_model(arguments)
    data = _read_sequences(arguments.data)
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
            loss=HMM_LOSSES[arguments.l],  # type: ignore[arg-type]
            order={
                "transitions": arguments.order,
                "emissions": arguments.emissions,
                "label_tuples": "allowed" if higher else "seen",  # svm_hmm has weights for all
            },
            **shared,
        )
        X, y = _sequences(data.X, offsets), _split(data.y, offsets)
        training = Training(tagger, TrainingExamples(X, y), extra)
    return train_and_save(arguments, signals, training, convention)


def classify_hmm(arguments: argparse.Namespace, signals: Signals) -> int:
    """Tag a file."""
    estimator, extra = read_tool_model(arguments, "svm-hmm")
    data = _read_sequences(arguments.data)
    offsets, X = data.offsets, with_width(data.X, estimator.n_features_in_)
    if type(estimator).__name__ == "MulticlassSVM":  # of --t 0
        tags = estimator.predict(X)
    else:
        tags = np.concatenate(estimator.predict(_sequences(X, offsets)))
    signals.check()
    write_predictions(arguments, map(str, tags.tolist()))
    wrong = np.add.reduceat((tags != data.y).astype(np.float64), offsets[:-1])
    losses = np.minimum(wrong, 1.0) if extra.get("loss") == 0 else wrong
    echo_errors(arguments, losses, [f"Average loss per token: {wrong.sum() / len(tags):.4f}"])
    return DONE


def _read_sequences(path: str) -> Examples:
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


def _sequences(X: Any, offsets: Ints) -> Any:
    """Rows as sequences."""
    from ...features.packing import PackedSequences

    return PackedSequences(sparse.csr_array(X), offsets)


def _split(values: Any, offsets: Ints) -> list[Any]:
    """Values of each sequence."""
    return [values[a:b] for a, b in pairwise(offsets.tolist())]


WRONG = 100.0  # what a wrong class costs with -l 0


def learn_multiclass(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train a classifier."""
    check_model(arguments)
    data = _read_classes(arguments.data, smallest=1)
    classes = np.unique(data.y)
    check_several_labels(data.source, set(classes.tolist()))
    missing = np.setdiff1d(np.arange(1, classes[-1] + 1), classes)
    if len(missing):
        echo(
            f"maxmargin: note: {data.source} has no examples of {len(missing)} classes, such as "
            f"{missing[0]}; they are left out, with scores of 0"
        )
    if arguments.v > 0:
        echo_result(
            f"Training set properties: {data.X.shape[1]} features, {len(data.y)} examples, "
            f"{len(classes)} classes"
        )
    scale = WRONG if arguments.l == 0 else 1.0
    convention = convention_of(arguments, len(data.y), loss_scale=scale)
    from ...estimators.tabular.multiclass import MulticlassSVM

    estimator = MulticlassSVM(
        loss="zero_one" if arguments.l == 0 else _squares(classes, classes),
        fit_intercept=False,
        **shared_parameters(arguments, convention),
    )
    extra = {"tool": "svm-multiclass", "loss": arguments.l, "weights": convention.weights}
    training = Training(estimator, TrainingExamples(data.X, data.y), extra)
    return train_and_save(arguments, signals, training, convention)


def classify_multiclass(arguments: argparse.Namespace, signals: Signals) -> int:
    """Classify a file."""
    estimator, extra = read_tool_model(arguments, "svm-multiclass")
    data = _read_classes(arguments.data, smallest=0)  # 0 where the class is not known
    X = with_width(data.X, estimator.n_features_in_)
    predicted = estimator.predict(X)
    scores = extra["weights"] * _scores(estimator, X)
    signals.check()
    write_predictions(
        arguments,
        (
            f"{label} " + " ".join(f"{score:.6f}" for score in row)
            for label, row in zip(predicted.tolist(), scores.tolist(), strict=True)
        ),
    )
    if extra.get("loss") == 1:
        losses = (data.y - predicted).astype(np.float64) ** 2
    else:
        losses = WRONG * (data.y != predicted)
    echo_errors(arguments, losses)
    return DONE


def _scores(estimator: Any, X: Any) -> Floats:
    """Scores of the classes 1, 2, ..., up to the largest of the training data."""
    found = estimator.decision_function(X)
    if found.ndim == 1:  # the weights of two classes add up to zero
        found = np.stack([-found / 2.0, found / 2.0], axis=1)
    scores = np.zeros((len(found), int(estimator.classes_[-1])))
    scores[:, estimator.classes_.astype(np.int64) - 1] = found
    return scores


def _squares(right: Any, predicted: Any) -> Floats:
    """Squared differences of classes."""
    differences = np.subtract.outer(right, predicted).astype(np.float64)
    return differences**2


def _read_classes(path: str, smallest: int) -> Examples:
    """Read rows with classes 1, 2, ..."""
    data = read_examples(path, needs_queries=False)
    bad = np.flatnonzero((data.y != np.rint(data.y)) | (data.y < smallest))
    if len(bad):
        row = int(bad[0])
        raise_at(data, row, f"expected a class 1, 2, ..., found {data.y[row]:g}")
    return data


MEASURES = {1: "f1", 2: "error", 3: "prbep", 4: "precision_at_k", 5: "recall_at_k", 10: "roc_auc"}
PER_CENT = 100.0  # losses, and joint features, are that many times ours


def learn_perf(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train a classifier."""
    if arguments.l == 0:
        raise UsageError("-l 0, a loss of 1 for any error in the whole file, is not offered")
    fraction = _fraction(arguments)
    check_model(arguments)
    data = read_examples(arguments.data, needs_queries=False)
    unlabelled = np.flatnonzero(data.y == 0)
    if len(unlabelled):
        raise_at(data, int(unlabelled[0]), "expected a label above or below 0, found 0")
    positive = data.y > 0
    n_positive = int(positive.sum())
    if n_positive in (0, len(positive)):
        raise ValueError(
            f"{data.source}: expected labels above 0 and labels below 0, found only one of both"
        )
    if arguments.v > 0:
        echo_result(
            f"Training set properties: {data.X.shape[1]} features, {len(positive)} examples "
            f"({n_positive} pos / {len(positive) - n_positive} neg)"
        )
    # One example, whose slack counts as many times as it has rows: their C/1 is our C times these.
    n = len(positive)
    convention = convention_of(arguments, n, loss_scale=PER_CENT, feature_scale=PER_CENT)
    from ...estimators.tabular.performance import PerformanceSVM

    estimator = PerformanceSVM(
        measure=MEASURES[arguments.l],  # type: ignore[arg-type]
        k=max(int(fraction * n_positive), 1) if fraction else None,
        fit_intercept=False,
        **shared_parameters(arguments, convention),
    )
    extra = {
        "tool": "svm-perf",
        "bias": arguments.bias,
        "weights": convention.weights,
        "n_features": int(data.X.shape[1]),
    }
    X, y = _with_constant(data.X, arguments.bias), np.where(positive, 1, -1)
    training = Training(estimator, TrainingExamples(X, y), extra)
    return train_and_save(arguments, signals, training, convention)


def classify_perf(arguments: argparse.Namespace, signals: Signals) -> int:
    """Score a file."""
    estimator, extra = read_tool_model(arguments, "svm-perf")
    data = read_examples(arguments.data, needs_queries=False)
    X = _with_constant(with_width(data.X, extra["n_features"]), extra["bias"])
    scores = extra["weights"] * estimator.decision_function(X)
    signals.check()
    write_predictions(arguments, (f"{score:.8f}" for score in scores.tolist()))
    unlabelled = int(np.count_nonzero(data.y == 0))
    if unlabelled:
        echo(f"maxmargin: note: {unlabelled} lines without a label (0): nothing to compare with")
        return DONE
    positive = data.y > 0
    error = PER_CENT * float(np.mean((scores > 0) != positive))
    echo_errors(arguments, np.array([error]), _measures(positive, scores))
    return DONE


def _fraction(arguments: argparse.Namespace) -> float:
    """What k is as a fraction of the positive rows; 0 for measures without k."""
    if arguments.l not in (4, 5):
        return 0.0
    fraction = float(arguments.fraction) or {4: 0.5, 5: 2.0}[arguments.l]
    if arguments.l == 4 and fraction > 1.0:
        raise UsageError(f"--p of -l 4 must be at most 1, got {fraction:g}")
    if arguments.l == 5 and fraction < 1.0:
        raise UsageError(f"--p of -l 5 must be at least 1, got {fraction:g}")
    return fraction


def _with_constant(X: Any, bias: float) -> Any:
    """X with a feature of this value in all rows; without it if it is 0."""
    if bias == 0.0:
        return X
    constant = np.full((X.shape[0], 1), bias)
    return sparse.csr_matrix(sparse.hstack([X, constant], format="csr"))


def _measures(positive: Bools, scores: Floats) -> list[str]:
    """The measures that svm_perf_classify lists, in per cent."""
    from ...estimators.tabular.performance import measure_of_scores
    from ...problems.measures.measure import Measure

    chosen = scores > 0
    values = {
        "Accuracy": np.mean(chosen == positive),
        "Precision": positive[chosen].mean() if chosen.any() else 0.0,
        "Recall": chosen[positive].mean() if positive.any() else 0.0,
        "F1": measure_of_scores(Measure("f1"), positive, scores),
    }
    if positive.any() and not positive.all():
        values["PRBEP"] = measure_of_scores(Measure("prbep"), positive, scores)
        values["ROCArea"] = measure_of_scores(Measure("roc_auc"), positive, scores)
        values["AvgPrec"] = measure_of_scores(Measure("average_precision"), positive, scores)
    return [f"{name:<9}: {PER_CENT * float(value):5.2f}" for name, value in values.items()]


RANK_LOSSES = {1: "swaps", 2: "normalized_swaps"}


def learn_rank(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train a ranker."""
    check_model(arguments)
    data = read_examples(arguments.data, needs_queries=True)
    n_pairs = _pairs(data)
    n_queries = len(n_pairs)
    if not n_pairs.any():
        raise ValueError(f"{data.source}: no query has lines of different relevance")
    if arguments.v > 0:
        echo_result(
            f"Training set properties: {data.X.shape[1]} features, {n_queries} rankings, "
            f"{len(data.y)} examples"
        )
    if arguments.l == 1:  # relative to the largest loss there is
        arguments.e *= float(n_pairs.sum()) / n_queries
    convention = convention_of(arguments, n_queries)
    from ...estimators.tabular.ranking import RankSVM

    estimator = RankSVM(
        loss=RANK_LOSSES[arguments.l],  # type: ignore[arg-type]
        **shared_parameters(arguments, convention),
    )
    examples = TrainingExamples(data.X, data.y, {"qid": data.qid})
    training = Training(estimator, examples, {"tool": "svm-rank"})
    return train_and_save(arguments, signals, training, convention)


def classify_rank(arguments: argparse.Namespace, signals: Signals) -> int:
    """Score a file."""
    from ...metrics.rankings import mean_swapped_pairs

    estimator, _ = read_tool_model(arguments, "svm-rank")
    data = read_examples(arguments.data, needs_queries=True)
    scores = estimator.predict(with_width(data.X, estimator.n_features_in_))
    signals.check()
    write_predictions(arguments, (f"{score:.8f}" for score in scores.tolist()))
    n_pairs = _pairs(data)
    losses = np.zeros(len(n_pairs))
    for query, (a, b) in enumerate(pairwise(data.offsets.tolist())):
        if n_pairs[query]:
            losses[query] = mean_swapped_pairs(data.y[a:b], scores[a:b], ties="wrong")
    swapped = float(losses @ n_pairs)
    echo_errors(
        arguments,
        losses,
        [
            f"Total Num Swappedpairs  : {swapped:6.0f}",
            f"Avg Swappedpairs Percent: {100.0 * float(losses.mean()):6.2f}",
        ],
    )
    return DONE


def _pairs(data: Examples) -> Floats:
    """Number of pairs of different relevance of each query."""
    from ...problems.ranking.queries import grades_of, pairs_of

    relevance, offsets = data.y.astype(np.float64), data.offsets
    grades, _ = grades_of(relevance, offsets)
    return pairs_of(grades, offsets)


CFG_LOSSES = {0: "zero_one", 1: "f1"}


def learn_cfg(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train a parser with all rules of the training trees."""
    check_model(arguments)
    source = open_input(arguments.data)
    check_kind(source, PARSE, "utf-8")
    trees, lines = read_clean_trees(source, "utf-8")
    if arguments.v > 0:
        n_words = sum(len(tree.words()) for tree in trees)
        echo_result(f"Training set properties: {len(trees)} trees, {n_words} words")
    convention = convention_of(arguments, len(trees), loss_scale=PER_CENT)
    from ...estimators.trees.grammar import GrammarParser

    estimator = GrammarParser(
        loss=CFG_LOSSES[arguments.l],  # type: ignore[arg-type]
        max_sentence_length=None,  # C is divided by the number of all trees
        **shared_parameters(arguments, convention),
    )
    extra = {"tool": "svm-cfg", "loss": arguments.l, "weights": convention.weights}
    located = partial(at_lines, "tree", source, lines)
    training = Training(estimator, TrainingExamples(trees), extra, located=located)
    return train_and_save(arguments, signals, training, convention)


def classify_cfg(arguments: argparse.Namespace, signals: Signals) -> int:
    """Parse the sentences of a file of trees."""
    from ...metrics import bracket_scores

    estimator, extra = read_tool_model(arguments, "svm-cfg")
    source = open_input(arguments.data)
    check_kind(source, PARSE, "utf-8")
    gold, _ = read_clean_trees(source, "utf-8", keep_empty=True)
    predicted = estimator.predict(gold)
    signals.check()
    write_predictions(arguments, map(str, predicted))
    scores = bracket_scores(gold, predicted)
    if scores.n_fallbacks:
        warn_user(
            f"{source}: {scores.n_fallbacks} of {len(gold)} sentences have no derivation by the "
            "grammar and get flat trees"
        )
    shares = {
        "Precision": scores.precision,
        "Recall": scores.recall,
        "F1": scores.f1,
        "Exact match": scores.exact_match,
    }
    more = [f"{name:<11}: {PER_CENT * share:5.2f}" for name, share in shares.items()]
    echo_errors(arguments, _cfg_losses(gold, predicted, extra.get("loss") == 1), more)
    return DONE


def _cfg_losses(gold: list[Tree], predicted: list[Tree], is_f1: bool) -> Floats:
    """100 for a wrong tree, or 100 (1 - F1) of its constituents; punctuation counts, too."""
    from ...metrics.trees import bracket_counts

    counts, exact = bracket_counts(
        gold, predicted, ignored_tags=(), ignored_labels=(), equal_labels={}
    )
    losses: Floats = np.where(exact, 0.0, PER_CENT)
    if is_f1:
        n_true, n_predicted, n_right = counts.T
        losses *= 1.0 - 2.0 * n_right / np.maximum(n_true + n_predicted, 1)
    return losses
