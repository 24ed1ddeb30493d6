"""Parse trees of weighted context-free grammars."""

from .problem import GrammarProblem

__all__ = ["GrammarProblem"]
