"""Some of the examples of whatever users keep them in; their labels as numbers and back."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..engine.rows import check_codes
from ..features import StoredLabels
from ..features.containers import as_list, as_tuples, is_frame
from ..features.packing import PackedSequences, offsets_of
from ..formats import ConlluTreebank, TokenColumns, Treebank
from ..utils.sparse_format import check_sparse
from ..utils.types import Ints, Ints32
from ..utils.validation import check_same_length
from ..utils.warn import warn_user

__all__ = [
    "FlatLabels",
    "LabelEncoder",
    "Outputs",
    "Wording",
    "answers_empty",
    "check_known",
    "examples_at",
    "flatten_labels",
    "is_empty",
    "is_hashable",
    "label_objects",
    "materialize",
    "n_examples_of",
    "passes_empty",
]


class Outputs(list[Any]):
    """A list of structured outputs, which numpy takes for a vector of objects.

    Outputs of different sizes make no array otherwise, and scikit-learn's ``cross_val_predict``
    puts the predictions of all folds into one.
    """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.object_]:
        return np.fromiter(self, dtype=object, count=len(self))


class Wording(NamedTuple):
    """What errors call an example, its parts, and what is given for each part."""

    example: str = "sequence"
    part: str = "token"
    label: str = "label"


class FlatLabels(NamedTuple):
    """Labels of all sequences in one list, with the offsets of the sequences.

    Those of a file have its name and their lines. Stored ones are numbers already.
    """

    values: Sequence[Any]
    offsets: Ints
    wording: Wording = Wording()
    source: str | None = None
    lines: Ints | None = None

    def place(self, token: int) -> str:
        """File and line, or sequence and token, of a position in the list."""
        if self.lines is not None:
            return f"{self.source}:{self.lines[token]}"
        sequence = int(np.searchsorted(self.offsets, token, side="right")) - 1
        example, part, _ = self.wording
        return f"{example} {sequence}, {part} {token - int(self.offsets[sequence])}"


def warn_of_unknown(codes: Ints | Ints32, labels: FlatLabels) -> None:
    """Warn of labels whose codes are negative: a score counts them as wrong."""
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        first = int(unknown[0])
        warn_user(
            f"{len(unknown)} of {len(labels.values)} labels are unknown to the model and "
            f"count as wrong; the first is {labels.values[first]!r} at {labels.place(first)}"
        )


class CodedLabels(Sequence[Any]):
    """Labels that are numbers until they are looked at.

    Parameters
    ----------
    codes : array of int32
        The numbers.
    classes : sequence
        What they stand for.
    """

    def __init__(self, codes: Ints32, classes: Sequence[Any]) -> None:
        self.codes, self.classes = codes, classes

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, token: Any) -> Any:
        return self.classes[self.codes[token]]


def flatten_labels(
    y: Any, offsets: Ints | None = None, wording: Wording | None = None, name: str = "y"
) -> FlatLabels:
    """Check label sequences, against the lengths of the inputs if their offsets are given.

    Raises ValueError that names the first sequence that is wrong.
    """
    wording = wording or Wording()
    example, part, label = wording
    if isinstance(y, StoredLabels):
        return _stored_labels(y, offsets, wording)
    y = y.to_numpy() if is_frame(y) else as_list(y, name)
    if isinstance(y, (str, bytes)) or not hasattr(y, "__len__"):
        raise ValueError(
            f"{name} must be a list of {label}s for each {example}, got {type(y).__name__} "
            f"{y!r:.40}"
        )
    if offsets is not None:
        check_same_length(len(offsets) - 1, len(y), example, name)
    y = [_plain_labels(labels) for labels in y]
    for i, labels in enumerate(y):
        if isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__"):
            raise ValueError(
                f"{name}[{i}] is {labels!r:.40}, expected a sequence of {label}s, one for each "
                f"{part}"
            )
    lengths = np.fromiter(map(len, y), np.int64, len(y))
    if offsets is not None:
        wrong = np.flatnonzero(lengths != np.diff(offsets))
        if len(wrong):
            i = int(wrong[0])
            raise ValueError(
                f"{example} {i} has {offsets[i + 1] - offsets[i]} {part}s but {lengths[i]} {label}s"
            )
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return FlatLabels(list(chain.from_iterable(y)), bounds, wording)


def _stored_labels(y: StoredLabels, offsets: Ints | None, wording: Wording) -> FlatLabels:
    """Labels of a file, which stay there."""
    if offsets is not None and not np.array_equal(offsets, y.offsets):
        raise ValueError("y has the labels of other stored sequences than X")
    check_codes(y.codes, len(y.classes), "the file's labels")
    return FlatLabels(CodedLabels(y.codes, y.classes), y.offsets, wording)


def _plain_labels(labels: Any) -> Any:
    """The labels of one example, in a list where arrays, pandas or a generator have them."""
    if is_frame(labels) and labels.shape[1] == 1:
        labels = labels.iloc[:, 0]
    return labels.tolist() if isinstance(labels, np.ndarray) else as_tuples(labels)


class LabelEncoder:
    """Numbers for labels: of any hashable type, mixed types included.

    Parameters
    ----------
    classes : ndarray
        The labels in the order of their numbers.
    """

    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes = classes
        self.numbers = {label: k for k, label in enumerate(classes.tolist())}

    @classmethod
    def of(cls, labels: FlatLabels) -> LabelEncoder:
        """An encoder for the labels found, sorted."""
        if isinstance(labels.values, CodedLabels):
            return cls(_as_array(list(labels.values.classes)))
        try:
            distinct = list(dict.fromkeys(labels.values))
        except TypeError:
            raise _not_hashable(labels) from None
        for label in distinct:
            if label is None or label != label:
                token = next(t for t, v in enumerate(labels.values) if v is label)
                raise ValueError(f"{labels.place(token)}: {label} is not a label")
        return cls(_as_array(_sorted(distinct)))

    def encode(self, labels: FlatLabels) -> Ints32:
        """Numbers of the labels; -1 for labels that are not known."""
        get = self.numbers.get
        if isinstance(labels.values, CodedLabels):
            own = labels.values
            table = np.array([get(label, -1) for label in own.classes], np.int32)
            return own.codes if np.array_equal(table, np.arange(len(table))) else table[own.codes]
        try:
            return np.fromiter((get(v, -1) for v in labels.values), np.int32, len(labels.values))
        except TypeError:
            raise _not_hashable(labels) from None


def _not_hashable(labels: FlatLabels) -> ValueError:
    """The error that names the first label that cannot be the key of a dict."""
    token = next(t for t, v in enumerate(labels.values) if not is_hashable(v))
    return ValueError(f"{labels.place(token)}: label {labels.values[token]!r:.40} is not hashable")


def is_hashable(value: Any) -> bool:
    """Whether a value can be the key of a dict."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _sorted(values: list[Any]) -> list[Any]:
    """Sort values; those of types that cannot be compared by type and then by text."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))


def _as_array(values: Sequence[Any]) -> NDArray[Any]:
    """An array that gives every value back as it was; of objects where the types differ."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    kinds = set(map(type, plain))
    if len(kinds) == 1 and kinds <= {str, bool, int, float}:
        array = np.array(plain)
        if array.dtype != object and array.tolist() == plain:  # not for large ints, "a\0"
            return array
    objects = np.empty(len(plain), dtype=object)
    objects[:] = plain
    return objects


def label_objects(classes: NDArray[Any]) -> NDArray[np.object_]:
    """Labels of Python's own types, in an array that gives lists of many at once."""
    listed = classes.tolist()
    return np.fromiter(listed, object, len(listed))


def check_known(codes: Ints32, labels: FlatLabels) -> None:
    """Raise ValueError for the first label that is not known."""
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        first = int(unknown[0])
        raise ValueError(
            f"{labels.place(first)}: label {labels.values[first]!r} is not known to the model"
        )


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
