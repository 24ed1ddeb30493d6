"""Turn the user's sequences, in any of the accepted shapes, into one matrix and offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..formats.opening import PathLike
from ..utils.sparse_format import check_sparse
from ..utils.types import Ints
from ..utils.validation import first_unusable, unusable
from .containers import (
    as_list,
    frame_matrix,
    frame_rows,
    is_frame,
    is_item_sequence,
    is_numeric_frame,
)

if TYPE_CHECKING:
    from .storing import StoredSequences

__all__ = ["PackedSequences", "holds_named_features", "pack_sequences"]


class PackedSequences(NamedTuple):
    """Feature vectors of the tokens of many sequences.

    Attributes
    ----------
    tokens : ndarray (C-contiguous, float64 or float32) or csr_array, shape (n_tokens, n_features)
        The tokens of all sequences, stacked. CSR indices are sorted, without repetition, int32.
    offsets : ndarray of int64, shape (n_sequences + 1,)
        Tokens of sequence i are rows ``offsets[i]:offsets[i + 1]``.

    Notes
    -----
    ``len`` counts these two, as of any named tuple; `n_sequences` counts the sequences.
    """

    tokens: Any
    offsets: Ints

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return len(self.offsets) - 1

    @staticmethod
    def write(path: PathLike, parts: Iterable[Any]) -> None:
        """Write sequences to a file, part by part, so that they need not fit into memory.

        Parameters
        ----------
        path : str or path-like
            File to write, whole or not at all. For a while as much again is needed beside it.
        parts : iterable of PackedSequences, or of pairs of those and their labels
            Labels are lists of strings, or of whole numbers, one for each token.

        Raises
        ------
        ValueError
            Parts of different numbers of features, labels that do not fit the tokens, or none.
        OSError
            A full disk, no permission, ...; ``filename`` is ``path``, and what was there stays.

        Examples
        --------
        >>> parts = ((window.transform(X), y) for X, y in read())   # doctest: +SKIP
        >>> PackedSequences.write("train.packed", parts)            # doctest: +SKIP
        >>> SequenceTagger().fit(PackedSequences.open("train.packed"))   # doctest: +SKIP
        """
        from .storing import write_packed

        write_packed(path, parts)

    @staticmethod
    def open(
        path: PathLike, first: int = 0, end: int | None = None, *, verify: bool = False
    ) -> StoredSequences:
        """Open a file of sequences, which are read when they are needed.

        Parameters
        ----------
        path : str or path-like
            A file written by `write`. It has to stay as it is while it is in use.
        first, end : int, optional
            Only the sequences ``first`` to ``end - 1``; by default all.
        verify : bool, default=False
            Read the whole file and compare it with its checksums. Without, those of the header
            are compared, and the bounds of sequences and tokens checked.

        Returns
        -------
        StoredSequences
            Packed sequences, with their labels in ``labels``.

        Raises
        ------
        ValueError
            Not such a file, or one that is truncated or damaged.
        """
        from .storing import open_packed

        return open_packed(path, first, end, verify=verify)


def holds_named_features(X: Any) -> bool:
    """Tell whether tokens are dicts or lists of feature strings, which need a dictionary.

    Rows of a DataFrame with columns of other things than numbers are like dicts.

    Parameters
    ----------
    X : list of sequences
        As for `pack_sequences`.

    Returns
    -------
    bool
    """
    for sequence in X:
        if isinstance(sequence, np.ndarray) or sparse.issparse(sequence):
            return False
        if is_frame(sequence):
            return not is_numeric_frame(sequence)
        if is_item_sequence(sequence):
            return True
        if not hasattr(sequence, "__iter__"):
            return False
        for token in sequence:
            if isinstance(token, Mapping) or isinstance(token, (set, frozenset)):
                return True
            if not isinstance(token, (list, tuple)):
                return False
            if len(token):
                return isinstance(token[0], str)
    return False


def pack_sequences(
    X: Any, vectorizer: Any = None, *, n_features: int | None = None, check_values: bool = True
) -> PackedSequences:
    """Pack sequences of token features into one matrix.

    Parameters
    ----------
    X : list of sequences, 3-D array, or PackedSequences
        A sequence is a 2-D array (tokens in rows), a scipy sparse matrix, a DataFrame, a list of
        lists of numbers, a list of dicts ``{name: value}``, or a list of lists of feature strings.
    vectorizer : FeatureDictionary or WindowFeatures, optional
        Fitted; its ``transform`` packs X. Needed for dicts and feature strings.
    n_features : int, optional
        Number of features expected, for example that of the training data.
    check_values : bool, default=True
        Whether to look for values that are NaN, infinite or too large; otherwise `check_finite` is
        still to be called.

    Returns
    -------
    PackedSequences
        Dense stays dense (float32 stays float32, all else becomes float64), sparse becomes CSR.

    Raises
    ------
    ValueError
        Empty sequence, differing number of features, a value that is NaN, infinite or above 1e100,
        or something that is not a sequence of tokens; the message names sequence and, where it
        applies, token.
    """
    if vectorizer is not None:
        packed: PackedSequences = vectorizer.transform(X)
    elif isinstance(X, PackedSequences):
        packed = X
        check_packed(packed)
    elif isinstance(X, np.ndarray) and X.ndim == 3:
        packed = _pack_cube(X)
    else:
        X = as_list(X)
        check_list_of_sequences(X)
        if sparse.issparse(X[0]):
            packed = _pack_sparse(X)
        elif holds_named_features(X):
            raise ValueError(
                "tokens are dicts or lists of feature strings: fit a FeatureDictionary on them"
            )
        else:
            packed = _pack_dense(X)
    found = packed.tokens.shape[1]
    if n_features is not None and found != n_features:
        raise ValueError(f"sequence 0 has {found} features per token, expected {n_features}")
    if check_values:
        check_finite(packed)
    return packed


def check_packed(packed: PackedSequences) -> None:
    """Refuse packed sequences that are empty, damaged or do not cover the tokens.

    Indices of columns, which may be in a large file, are checked where they are first read.
    """
    check_sparse(packed.tokens, "X.tokens", check_indices=False)
    offsets, n_tokens = packed.offsets, packed.tokens.shape[0]
    ends = (int(offsets[0]), int(offsets[-1])) if len(offsets) else None
    if ends != (0, n_tokens) or len(offsets) < 2:
        raise ValueError(
            f"offsets must run from 0 to the number of tokens, {n_tokens}, got {offsets!r:.60}"
        )
    empty = np.flatnonzero(np.diff(offsets) < 1)
    if len(empty):
        raise ValueError(f"sequence {empty[0]} is empty, expected at least one token")


def check_list_of_sequences(X: Any) -> None:
    """Refuse what is not a non-empty list of sequences, naming the first bad one."""
    if isinstance(X, (str, bytes, Mapping)) or sparse.issparse(X) or not hasattr(X, "__len__"):
        raise ValueError(f"expected a list of sequences, found {_kind(X)}")
    if isinstance(X, np.ndarray) and X.dtype != object:
        raise ValueError(f"expected a list of sequences, found {_kind(X)}")
    if len(X) == 0:
        raise ValueError("expected at least one sequence, found none")
    if set(map(type, X)) <= {list, tuple} and all(X):  # as most are, and soon looked at
        return
    for i, sequence in enumerate(X):
        is_sparse = sparse.issparse(sequence)  # a DOK matrix is a mapping, too
        is_one = is_sparse or not isinstance(sequence, (str, bytes, Mapping))
        is_one = is_one and hasattr(sequence, "__len__") and getattr(sequence, "ndim", 1) > 0
        if not is_one:
            raise ValueError(f"sequence {i} is {_kind(sequence)}, expected a sequence of tokens")
        if (sequence.shape[0] if is_sparse else len(sequence)) == 0:
            raise ValueError(f"sequence {i} is empty, expected at least one token")


def offsets_of(lengths: Sequence[int]) -> Ints:
    """Running sum of the lengths, from 0."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def named_tokens(X: Any) -> Any:
    """Sequences of dicts or lists of feature strings; rows of DataFrames become dicts."""
    X = as_list(X)
    check_list_of_sequences(X)
    return [_named_rows(sequence) for sequence in X]


def _named_rows(sequence: Any) -> Any:
    """A sequence as a list of dicts or of lists of feature strings."""
    if is_frame(sequence):
        return frame_rows(sequence)
    return sequence.items() if is_item_sequence(sequence) else sequence


def tidy_csr(matrix: Any) -> Any:
    """Give a CSR array with float64 (or float32) values and sorted, unique int32 indices."""
    matrix = sparse.csr_array(matrix)
    if matrix.dtype not in (np.float64, np.float32):
        matrix = matrix.astype(np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # the caller's matrix is not ours to change
        matrix.sum_duplicates()
    if matrix.nnz < 2**31 and matrix.shape[1] < 2**31:
        matrix = sparse.csr_array(
            (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)),
            shape=matrix.shape,
        )
        matrix.has_canonical_format = True
    return matrix


def _kind(value: Any) -> str:
    """Describe a value of the wrong type in an error message."""
    name = f"{value!r:.40}" if isinstance(value, (str, bytes, int, float)) else ""
    shape = f" of shape {value.shape}" if hasattr(value, "shape") else ""
    return f"{type(value).__name__} {name}".rstrip() + shape


def _pack_cube(X: NDArray[Any]) -> PackedSequences:
    """Pack an array of shape (n_sequences, length, n_features)."""
    n, length, width = X.shape
    if n == 0:
        raise ValueError("expected at least one sequence, found none")
    if length == 0:
        raise ValueError("sequence 0 is empty, expected at least one token")
    tokens = np.ascontiguousarray(X.reshape(n * length, width), dtype=_float_type(X.dtype, 0))
    return PackedSequences(tokens, offsets_of([length] * n))


def _pack_dense(X: Sequence[Any]) -> PackedSequences:
    """Stack 2-D arrays."""
    arrays = [_as_matrix(sequence, i) for i, sequence in enumerate(X)]
    _check_widths(arrays)
    single = all(array.dtype == np.float32 for array in arrays)
    offsets = offsets_of([len(array) for array in arrays])
    shape = int(offsets[-1]), arrays[0].shape[1]
    tokens = np.empty(shape, np.float32 if single else np.float64)  # else Fortran's order stays
    np.concatenate(arrays, out=tokens, casting="unsafe")
    return PackedSequences(tokens, offsets)


def _as_matrix(sequence: Any, i: int) -> NDArray[Any]:
    """Check that one sequence is a table of numbers."""
    if sparse.issparse(sequence):
        raise ValueError(f"sequence {i} is sparse, expected a dense one like sequence 0")
    if is_frame(sequence):
        if not is_numeric_frame(sequence):
            other = next(n for n, d in sequence.dtypes.items() if d.kind not in "biuf")
            raise ValueError(
                f"sequence {i} has other things than numbers in its column {other!r}, expected "
                "numbers as in sequence 0"
            )
        sequence = frame_matrix(sequence)
    if not isinstance(sequence, np.ndarray):
        for t, token in enumerate(sequence):
            if isinstance(token, (str, bytes, Mapping)) or not hasattr(token, "__len__"):
                raise ValueError(
                    f"sequence {i}, token {t} is {_kind(token)}, expected a list of numbers, "
                    "a list of feature strings or a dict (for words, see WindowFeatures)"
                )
            if len(token) != len(sequence[0]):
                raise ValueError(
                    f"sequence {i}, token {t} has {len(token)} features, "
                    f"expected {len(sequence[0])} like token 0"
                )
    try:
        array = np.asarray(sequence)
    except ValueError as error:
        raise ValueError(f"sequence {i} is not a table of numbers ({error})") from error
    if array.ndim != 2:
        raise ValueError(f"sequence {i} has shape {array.shape}, expected (n_tokens, n_features)")
    _float_type(array.dtype, i)
    return array


def _float_type(dtype: np.dtype[Any], i: int) -> type[np.floating[Any]]:
    """Choose the type to store; refuse what does not hold real numbers."""
    if dtype.kind not in "fiub":
        raise ValueError(f"sequence {i} has values of type {dtype}, expected real numbers")
    return np.float32 if dtype == np.float32 else np.float64


def _pack_sparse(X: Sequence[Any]) -> PackedSequences:
    """Stack sparse matrices."""
    for i, sequence in enumerate(X):
        if not sparse.issparse(sequence) or sequence.ndim != 2:
            raise ValueError(f"sequence {i} is {_kind(sequence)}, expected a sparse matrix")
        check_sparse(sequence, f"sequence {i}")
        _float_type(sequence.dtype, i)
    _check_widths(X)
    # A conversion for each of thousands of small matrices would dominate; all at once it is cheap.
    tokens = tidy_csr(sparse.vstack(list(X), format="csr"))
    return PackedSequences(tokens, offsets_of([sequence.shape[0] for sequence in X]))


def _check_widths(matrices: Sequence[Any]) -> None:
    """Check that all sequences have the number of features of the first."""
    width = matrices[0].shape[1]
    for i, matrix in enumerate(matrices):
        if matrix.shape[1] != width:
            raise ValueError(
                f"sequence {i} has {matrix.shape[1]} features per token, "
                f"expected {width} like sequence 0"
            )


def check_finite(packed: PackedSequences, first: int = 0, end: int | None = None) -> None:
    """Refuse values of these sequences that are of no use, naming where the first one stands."""
    tokens, offsets = packed
    start, stop = int(offsets[first]), int(offsets[-1 if end is None else end])
    if sparse.issparse(tokens):
        values = tokens.data[tokens.indptr[start] : tokens.indptr[stop]]
    else:
        values = tokens[start:stop]
    entry = first_unusable(values)
    if entry is None:
        return
    if sparse.issparse(tokens):
        place = int(tokens.indptr[start]) + entry
        row = int(np.searchsorted(tokens.indptr, place, side="right")) - 1
    else:
        row = start + entry // tokens.shape[1]
    sequence = int(np.searchsorted(offsets, row, side="right")) - 1
    raise ValueError(
        f"sequence {sequence}, token {row - int(offsets[sequence])} has "
        f"{unusable(values.ravel()[entry])}"
    )
