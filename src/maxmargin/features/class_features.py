"""Features of classes: descriptions, attributes, or a similarity of every two of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..utils.schema import Count, as_sparse, from_values, sparse_blocks
from ..utils.sparse_format import check_sparse
from ..utils.validation import first_unusable, unusable

__all__ = ["ClassFeatures"]

#: Eigenvalues of a similarity may be negative by this share of the largest, for rounding.
ROUNDING = 1e-9


class ClassFeatures:
    """A feature vector for each class; classes with similar vectors learn from each other.

    Parameters
    ----------
    classes : sequence
        The classes, each once.
    matrix : array or sparse matrix of shape (n_classes, n_features)
        Their features, such as attributes, or the rows a vectoriser makes of descriptions.
    identity : bool, default=False
        Add a feature of its own to each class, so that classes of equal or similar features can be
        told apart by what is learned from their examples.

    Examples
    --------
    >>> ClassFeatures(["cat", "dog"], [[1.0, 0.0], [1.0, 1.0]]).matrix.toarray().tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """

    def __init__(
        self, classes: Sequence[Any] | NDArray[Any], matrix: Any, identity: bool = False
    ) -> None:
        plain = classes.tolist() if isinstance(classes, np.ndarray) else classes
        self.classes = [k.item() if isinstance(k, np.generic) else k for k in plain]
        check_sparse(matrix, "class_features")
        rows = sp.csr_matrix(matrix, dtype=np.float64)
        rows.sum_duplicates()
        if rows.shape[0] != len(self.classes):
            raise ValueError(
                f"there are {len(self.classes)} classes but {rows.shape[0]} rows of class features"
            )
        seen: set[Any] = set()
        for label in self.classes:
            if label in seen:
                raise ValueError(f"class {label!r} has more than one row of features")
            seen.add(label)
        bad = first_unusable(rows.data)
        if bad is not None:
            row = int(np.searchsorted(rows.indptr, bad, "right")) - 1
            raise ValueError(
                f"the features of class {self.classes[row]!r} have {unusable(rows.data[bad])}"
            )
        if identity:
            rows = sp.hstack([rows, sp.identity(len(self.classes))], format="csr")
        self.matrix: sp.csr_matrix = rows

    @classmethod
    def from_mapping(cls, features: Mapping[Any, ArrayLike]) -> ClassFeatures:
        """From a dict of class to feature vector.

        Parameters
        ----------
        features : mapping of class to array of shape (n_features,)
            Features of each class.

        Returns
        -------
        ClassFeatures
        """
        rows = [np.asarray(row, dtype=np.float64).ravel() for row in features.values()]
        for label, row in zip(features, rows, strict=True):
            if len(row) != len(rows[0]):
                raise ValueError(
                    f"class {label!r} has {len(row)} features, but {next(iter(features))!r} has "
                    f"{len(rows[0])}"
                )
        return cls(list(features), np.array(rows))

    @classmethod
    def from_similarity(cls, classes: Sequence[Any], similarity: ArrayLike) -> ClassFeatures:
        """Features whose inner products are a given similarity of classes.

        Parameters
        ----------
        classes : sequence
            The classes.
        similarity : array of shape (n_classes, n_classes)
            Symmetric and positive semidefinite; this is checked.

        Returns
        -------
        ClassFeatures
        """
        S = np.array(similarity, dtype=np.float64)
        if S.ndim != 2 or S.shape[0] != S.shape[1] or not np.isfinite(S).all():
            raise ValueError(f"similarity must be a finite square matrix, got shape {S.shape}")
        uneven = np.abs(S - S.T) > ROUNDING * max(1.0, float(np.abs(S).max(initial=0.0)))
        if uneven.any():
            row, column = (int(k) for k in np.argwhere(uneven)[0])
            raise ValueError(
                f"similarity is not symmetric: entry [{row}, {column}] is {S[row, column]}, "
                f"[{column}, {row}] is {S[column, row]}"
            )
        values, vectors = np.linalg.eigh(0.5 * (S + S.T))
        largest = float(np.abs(values).max(initial=0.0))
        if len(values) and values[0] < -ROUNDING * len(values) * largest:
            raise ValueError(
                f"similarity is not positive semidefinite: its smallest eigenvalue is "
                f"{values[0]:.6g} (the largest is {values[-1]:.6g})"
            )
        kept = values > ROUNDING * largest
        return cls(classes, vectors[:, kept] * np.sqrt(values[kept]))

    def __repr__(self) -> str:
        return f"ClassFeatures of {len(self.classes)} classes, {self.matrix.shape[1]} features"

    def rows(self, classes: Sequence[Any]) -> sp.csr_matrix:
        """Features of these classes, in this order."""
        number = {label: row for row, label in enumerate(self.classes)}
        for label in classes:
            if label not in number:
                raise ValueError(
                    f"class {label!r} has no features; there are features of "
                    f"{len(number)} classes, among them {self.classes[:3]}"
                )
        return self.matrix[[number[label] for label in classes]]

    def to_state(self) -> dict[str, Any]:
        """Everything, in plain values."""
        data, indices, indptr, shape = sparse_blocks(self.matrix)
        state = _State(list(self.classes), data, indices, indptr, shape)
        return state._asdict()

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ClassFeatures:
        """The inverse of `to_state`."""
        known = from_values(_State, state, "class features")
        return cls(known.classes, as_sparse(*known[1:]))


class _State(NamedTuple):
    """What a file keeps of the features."""

    classes: list[Hashable]
    data: NDArray[np.floating]
    indices: NDArray[np.integer]
    indptr: NDArray[np.integer]
    shape: tuple[Count, Count]
