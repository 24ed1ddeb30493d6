"""Compiled functions: `kernel`, their decorator; the changes to Numba; what compilation costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .decorator import kernel as kernel

__all__ = ["kernel"]


def __getattr__(name: str) -> Any:
    """Import Numba when the decorator is first used (PEP 562)."""
    if name == "kernel":
        from .decorator import kernel

        return kernel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
