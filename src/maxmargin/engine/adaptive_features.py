"""Problems that find their features in training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ..problem import Problem

if TYPE_CHECKING:
    from .state import Arrays

__all__ = ["AdaptiveFeatures"]


@runtime_checkable
class AdaptiveFeatures(Protocol):
    """A problem that finds its features in training, and keeps them.

    Two copies of it would find different ones, so it is searched in one process, and by one thread.
    """

    def before_training(self) -> Problem:
        """The same problem without any features yet."""

    def feature_arrays(self) -> Arrays:
        """What training has found so far, as arrays by name; see `SolverState.arrays`."""

    def restore_features(self, arrays: Arrays) -> None:
        """Replace all features by the `feature_arrays` of an equal problem."""
