"""Dependency trees: words in a row, arcs above them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["dependency_tree"]

LETTER, GAP, LEVEL = 7.5, 18.0, 22.0


def dependency_tree(
    words: Sequence[str],
    truth: Sequence[int | None],
    found: Sequence[int],
    true_labels: Sequence[str | None] | None = None,
    labels: Sequence[str] | None = None,
) -> str:
    """Arcs that are right in grey, wrong ones in red, the true ones in their place dotted."""
    names = ["(root)", *map(str, words)]
    places, x = [], 10.0
    for name in names:
        width = LETTER * len(name)
        places.append(x + 0.5 * width)
        x += width + GAP
    arcs = []
    for t, (true, guess) in enumerate(zip(truth, found, strict=True), start=1):
        label = None if labels is None else labels[t - 1]
        true_label = None if true_labels is None else true_labels[t - 1]
        is_right = true == guess and (true_label is None or true_label == label)
        arcs.append((guess, t, label, "--muted" if is_right or true is None else "--red", False))
        if true is not None and not is_right:
            arcs.append((true, t, true_label, "--green", True))
    height = LEVEL * (2 + max(abs(head - t) for head, t, *_ in arcs) ** 0.7)
    drawn = [
        f'<text x="{place:.1f}" y="{height + 16:.1f}" text-anchor="middle">{escape(name)}</text>'
        for name, place in zip(names, places, strict=True)
    ]
    for head, t, label, color, is_dotted in arcs:
        drawn.append(_arc(places[head], places[t], abs(head - t), height, label, color, is_dotted))
    return (
        f'<div class="scroll"><svg width="{x:.0f}" height="{height + 26:.0f}" '
        f'style="max-width:none" role="img">{"".join(drawn)}</svg></div>'
    )


def _arc(
    start: float,
    end: float,
    length: int,
    ground: float,
    label: str | None,
    color: str,
    dotted: bool,
) -> str:
    """An arc from head to dependent, with an arrow at the dependent and its label on top."""
    end += 3.0 if start > end else -3.0
    top = ground - LEVEL * length**0.7 * 1.3
    style = f'style="stroke:var({color})" fill="none" stroke-width="1.5"'
    dashes = ' stroke-dasharray="4"' if dotted else ""
    curve = (
        f'<path d="M{start:.1f},{ground:.1f} C{start:.1f},{top:.1f} {end:.1f},{top:.1f} '
        f'{end:.1f},{ground:.1f}" {style}{dashes}/>'
    )
    arrow = (
        f'<path d="M{end - 3:.1f},{ground - 6:.1f} L{end + 3:.1f},{ground - 6:.1f} L{end:.1f},'
        f'{ground:.1f} Z" style="fill:var({color})"/>'
    )
    if label is None:
        return curve + arrow
    middle = 0.5 * (start + end)
    peak = ground - 0.75 * (ground - top) - 3.0
    name = (
        f'<text x="{middle:.1f}" y="{peak:.1f}" text-anchor="middle" '
        f'style="font-size:10px;fill:var({color})">{escape(str(label))}</text>'
    )
    return curve + arrow + name
