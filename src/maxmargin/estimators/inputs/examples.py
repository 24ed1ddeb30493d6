"""Some of the examples of whatever users keep them in."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from ...features import StoredLabels
from ...features.packing import PackedSequences, offsets_of
from ...formats import ConlluTreebank, TokenColumns, Treebank
from ...sparse_format import check_sparse
from ...types import Ints
from .labels import Outputs

__all__ = [
    "answers_empty",
    "examples_at",
    "is_empty",
    "materialize",
    "n_examples_of",
    "passes_empty",
]

Method = TypeVar("Method", bound=Callable[..., Any])
OF_EXAMPLES = ("y", "fixed", "sample_weight")  # parameters with an entry for each example


def materialize(X: Any) -> Any:
    """Examples that can be gone through more than once, unlike those of a generator."""
    is_generator = hasattr(X, "__iter__") and not hasattr(X, "__len__") and not sp.issparse(X)
    return list(X) if is_generator else X


def n_examples_of(X: Any) -> int:
    """How many examples there are."""
    if isinstance(X, (PackedSequences, StoredLabels, TokenColumns)):
        return len(X.offsets) - 1
    if isinstance(X, (ConlluTreebank, Treebank)):
        return len(X[0])
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def examples_at(X: Any, indices: Ints) -> Any:
    """The examples with these numbers, in the same kind of container; None of None."""
    if X is None:
        return None
    if isinstance(X, TokenColumns):
        return X.take(indices)
    if isinstance(X, StoredLabels):
        return X.of(indices.tolist())
    if isinstance(X, PackedSequences):
        lengths = np.diff(X.offsets)[indices]
        tokens = np.concatenate([np.arange(X.offsets[i], X.offsets[i + 1]) for i in indices])
        return PackedSequences(X.tokens[tokens], offsets_of(lengths.tolist()))
    if isinstance(X, ConlluTreebank):
        return X.select(indices.tolist())
    if isinstance(X, Treebank):
        fields: list[Any] = [[field[i] for i in indices] for field in X]
        return Treebank(*fields)
    if hasattr(X, "iloc"):
        return X.iloc[indices]
    if hasattr(X, "shape"):  # arrays, sparse matrices, other tables
        check_sparse(X, "X")
        return X[indices]
    return [X[i] for i in indices]


# ----- examples without tokens --------------------------------------------------------------------
#
# Searches are for one token or more. Where examples have none, another example stands in for each
# of them, so that all keep their numbers, and its answer is dropped.


def is_empty(x: Any) -> bool:
    """Whether an example is a sequence of no tokens."""
    if isinstance(x, (str, bytes, Mapping)):
        return False
    shape = getattr(x, "shape", None)
    if shape is not None:
        return len(shape) > 0 and shape[0] == 0
    return hasattr(x, "__len__") and len(x) == 0


def answers_empty(answer: Callable[[Any], Any]) -> Callable[[Method], Method]:
    """Let a method that answers each example of X give ``answer(estimator)`` for empty ones."""

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def with_empty(self: Any, X: Any, *rest: Any, **named: Any) -> Any:
            X = materialize(X)
            empty = _empty_examples(X)
            if not len(empty):
                return method(self, X, *rest, **named)
            self._check_fitted()
            given = inspect.signature(method).bind(self, X, *rest, **named)
            if not _stand_in(given.arguments, empty):
                answers = [answer(self) for _ in empty]
                return np.array(answers) if isinstance(answers[0], float) else Outputs(answers)
            answers = method(*given.args, **given.kwargs)
            for i in empty:
                answers[i] = answer(self)
            return answers

        return with_empty  # type: ignore[return-value]

    return decorate


def passes_empty(method: Method) -> Method:
    """Let a method that scores all examples of X pass over empty ones; 1 where all are."""

    @functools.wraps(method)
    def without_empty(self: Any, X: Any, *rest: Any, **named: Any) -> Any:
        X = materialize(X)
        empty = _empty_examples(X)
        if not len(empty):
            return method(self, X, *rest, **named)
        self._check_fitted()
        given = inspect.signature(method).bind(self, X, *rest, **named)
        weights = given.arguments.get("sample_weight")
        weights = np.ones(n_examples_of(X)) if weights is None else np.array(weights, np.float64)
        if not _stand_in(given.arguments, empty):
            return 1.0
        if len(weights) == n_examples_of(X):
            weights[empty] = 0.0
        given.arguments["sample_weight"] = weights
        return method(*given.args, **given.kwargs)

    return without_empty  # type: ignore[return-value]


def _empty_examples(X: Any) -> list[int]:
    """Numbers of the examples without tokens; none of what is no list of examples."""
    if isinstance(X, (PackedSequences, TokenColumns)):
        return np.flatnonzero(np.diff(X.offsets) == 0).tolist()
    if isinstance(X, ConlluTreebank):
        X = X.rows
    if isinstance(X, (str, bytes, Mapping)) or sp.issparse(X) or not hasattr(X, "__len__"):
        return []
    if isinstance(X, np.ndarray) and X.dtype != object:
        return list(range(len(X))) if X.ndim == 3 and X.shape[1] == 0 else []
    if hasattr(X, "columns"):
        return []
    kinds = set(map(type, X))
    if kinds <= {list, tuple} and all(X):  # as most are
        return []
    with suppress(TypeError):  # some arrays have no length
        if kinds == {np.ndarray} and 0 not in map(len, X):
            return []
    return [i for i, x in enumerate(X) if is_empty(x)]


def _stand_in(given: dict[str, Any], empty: list[int]) -> bool:
    """Put another example in the place of empty ones; False if all are empty."""
    X = given["X"]
    n = n_examples_of(X)
    chosen = np.arange(n)
    for name in OF_EXAMPLES:
        value = given.get(name)
        if value is not None and n_examples_of(value) != n:
            raise ValueError(f"X has {n} examples but {name} has {n_examples_of(value)}")
        if value is not None and name != "sample_weight":
            for i, own in zip(empty, examples_at(value, np.array(empty)), strict=True):
                if own is not None and len(own) > 0:
                    raise ValueError(f"example {i} is empty, but {name} has {len(own)} entries")
    if len(empty) == n:
        return False
    chosen[empty] = np.setdiff1d(chosen, empty)[0]
    for name in ("X", *OF_EXAMPLES):
        if name in given:
            given[name] = examples_at(given[name], chosen)
    return True
