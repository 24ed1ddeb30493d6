"""Window features of words and other columns."""

from .features import WindowFeatures

__all__ = ["WindowFeatures"]
