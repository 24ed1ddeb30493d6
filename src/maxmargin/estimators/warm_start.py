"""What a training takes from an earlier one: its problem and state, or a fitted model as prior."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.problem import Problem
from ..core.result import Result
from ..core.weight_constraints import WeightConstraints
from ..engine.training.state import fingerprint as content_of
from ..solvers.online.learner import Learner
from ..utils.sparse_format import check_sparse
from ..utils.types import Floats

__all__ = ["Kept", "all_classes", "beginning", "check_prior", "fingerprint", "prior_mean"]


class Kept(NamedTuple):
    """What a warm start needs of the fit before.

    The problem may refer to arrays of the user, who may have written to them since; ``held`` is
    what it had in it then.
    """

    fingerprint: str
    problem: Problem
    held: str | None

    @classmethod
    def of(cls, fingerprint: str, problem: Problem) -> Kept:
        """A problem as it is now, of data with this fingerprint."""
        return cls(fingerprint, problem, content_of(problem))

    @property
    def is_untouched(self) -> bool:
        """Whether the problem is still that of the fit before."""
        return self.held is not None and content_of(self.problem) == self.held

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, as the hash of equal objects differs where they share others."""
        return _copied, (self.fingerprint, self.problem, self.is_untouched)


def _copied(fingerprint: str, problem: Problem, is_untouched: bool) -> Kept:
    """What was kept, out of a pickle."""
    return Kept(fingerprint, problem, content_of(problem) if is_untouched else None)


def beginning(earlier: Result | None) -> Result | None:
    """Where training goes on from, which it changes: an online learner is copied, planes are not.

    Planes may be large, and can be found again.
    """
    if earlier is None or not isinstance(earlier.state, Learner):
        return earlier
    return dataclasses.replace(earlier, state=earlier.state.copy())


def fingerprint(*parts: Any) -> str:
    """Hash of the content of arrays, matrices and small values."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        if sp.issparse(part):
            arrays = [part.data, part.indices, part.indptr]
            digest.update(f"sparse{part.shape}".encode())
        elif isinstance(part, np.ndarray) and part.dtype != object:
            arrays = [part]
        else:
            arrays = []
            digest.update(part if isinstance(part, bytes) else repr(part).encode())
        for array in arrays:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


# ----- priors: fitted models that others are to differ from as little as they can -----------------


def check_prior(prior: Any, estimator: Any, same: tuple[str, ...]) -> None:
    """Raise ValueError unless a prior is a fitted model of the kind that these parameters make."""
    check_sparse(prior, "prior")
    kind = type(estimator).__name__
    if not isinstance(prior, type(estimator)):
        raise ValueError(f"prior must be a fitted {kind}, got {prior!r:.60}")
    prior._check_fitted()
    for name in same:
        own, other = getattr(estimator, name), getattr(prior, name)
        if own is not other and own != other:
            raise ValueError(
                f"prior must have been fitted with the same {name}: {own!r:.40}, got {other!r:.40}"
            )


def all_classes(seen: NDArray[Any], known: NDArray[Any]) -> NDArray[Any]:
    """The classes of some data and those that a prior knows; ValueError if they cannot be mixed."""
    try:
        together = np.union1d(seen, known)
        texts = [classes.dtype.kind in "US" for classes in (seen, known, together)]
        lost = texts[2] and not (texts[0] and texts[1])
    except TypeError:  # of objects that have no order
        lost = True
    if lost:  # numbers would have become strings
        raise ValueError(
            f"y has classes such as {seen.tolist()[0]!r:.40}, but those of the prior are of "
            f"another type, such as {known.tolist()[0]!r:.40}"
        )
    return together


def prior_mean(mean: Floats | None) -> WeightConstraints | None:
    """Constraints with this mean, if there is one."""
    if mean is None:
        return None
    return WeightConstraints(mean=np.ascontiguousarray(mean, dtype=np.float64))
