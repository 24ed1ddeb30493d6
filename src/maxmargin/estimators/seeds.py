"""Seeds."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

__all__ = ["seed_of"]


def seed_of(random_state: Any) -> Any:
    """A seed for numpy's generators out of anything scikit-learn accepts, and out of those."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, Integral) and int(random_state) >= 0:
        return random_state
    from sklearn.utils import check_random_state

    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError:
        raise ValueError(
            "random_state must be None, an integer >= 0, a RandomState or a Generator, got "
            f"{random_state!r}"
        ) from None
