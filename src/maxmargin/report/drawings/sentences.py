"""Sentences with their tags."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

__all__ = ["tagged_sentence"]


def tagged_sentence(
    tokens: Sequence[Any],
    truth: Sequence[Any],
    found: Sequence[Any],
    sure: Any = None,
) -> str:
    """Tokens with labels below; a wrong label is struck through, the true one beside it."""
    drawn = []
    for t, (token, true, guess) in enumerate(zip(tokens, truth, found, strict=True)):
        is_right = true is None or true == guess
        label = escape(str(guess))
        if not is_right:
            label = f'<s>{label}</s> <span class="good">{escape(str(true))}</span>'
        note = "" if sure is None else f' title="probability {sure[t]:.3f}"'
        drawn.append(
            f'<span class="token{"" if is_right else " wrong"}"{note}>{escape(str(token))}'
            f"<small>{label}</small></span>"
        )
    return f"<div>{' '.join(drawn)}</div>"
