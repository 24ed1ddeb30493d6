"""Outputs drawn as what they are, for pages: truth and what was found, mistakes marked.

Parse trees and dependency trees have a word in each line and what they add beside the words: any
sentence fits the width of a page this way.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any
from unicodedata import east_asian_width

import numpy as np

from ..formats.trees import Tree, as_tree
from .plots import tree_height

__all__ = [
    "LINE",
    "alignment",
    "dependency_tree",
    "parse_tree",
    "parts_of_image",
    "ranking",
    "short",
    "tagged_sentence",
    "text",
    "width_of",
]

LETTER, LINE = 7.5, 19.0  # about the width of a letter, and the height of a line
LONGEST = 40  # letters of a word or label that are shown


def text(x: float, y: float, shown: str, color: str, anchor: str = "start", style: str = "") -> str:
    """A word or a label; ``anchor`` is the part of it that is at x."""
    if not shown:
        return ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
        f'style="fill:var({color});{style}">{escape(shown)}</text>'
    )


def width_of(shown: str) -> float:
    """About how wide a text is."""
    return LETTER * sum(1.6 if east_asian_width(letter) in "WF" else 1.0 for letter in shown)


def short(given: str) -> str:
    """A text that leaves room for others."""
    given = str(given)
    return given if len(given) <= LONGEST else f"{given[: LONGEST - 1]}…"


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


COLUMNS = 90  # of a block


def alignment(
    first: Sequence[Any],
    second: Sequence[Any],
    found: Iterable[Sequence[int]],
    truth: Iterable[Sequence[int]],
) -> str:
    """Letters in columns as found; pairs that the true alignment has are green, others red."""
    pairs, true = [tuple(map(int, p)) for p in found], {tuple(map(int, p)) for p in truth}
    rows: list[list[str]] = [[], [], []]
    i = j = 0
    for a, b in [*pairs, (len(first), len(second))]:
        for k in range(i, a):
            _column(rows, _letter(first[k]), " ", "-")
        for k in range(j, b):
            _column(rows, "-", " ", _letter(second[k]))
        if a < len(first) and b < len(second):
            kind = "good" if (a, b) in true else "bad"
            _column(rows, _letter(first[a]), f'<span class="{kind}">|</span>', _letter(second[b]))
        i, j = a + 1, b + 1
    missed = len(true - set(pairs))
    blocks = (
        "\n".join("".join(row[start : start + COLUMNS]) for row in rows)
        for start in range(0, max(len(rows[0]), 1), COLUMNS)
    )
    lines = "\n\n".join(blocks)
    return f'<div class="scroll pair">{lines}</div><p class="muted">{missed} true pairs missed</p>'


def _letter(letter: Any) -> str:
    """A letter as it is shown."""
    return escape(str(letter))


def _column(rows: list[list[str]], *cells: str) -> None:
    """Write one column."""
    for row, cell in zip(rows, cells, strict=True):
        row.append(cell)


LEVEL, PAD = 9.0, 10.0

Arc = tuple[int, int]  # head and dependent; the root is 0


def dependency_tree(
    words: Sequence[str],
    truth: Sequence[int | None],
    found: Sequence[int],
    true_labels: Sequence[str | None] | None = None,
    labels: Sequence[str] | None = None,
) -> str:
    """Arcs found on the left, wrong ones in red; on the right the true ones that were missed."""
    names = [short(word) for word in ("(root)", *words)]
    texts = [("", "")]  # labels of what was found, and of what was missed
    arcs, missed = [(head, t) for t, head in enumerate(found, start=1)], []
    for t, (true, guess) in enumerate(zip(truth, found, strict=True), start=1):
        label = "" if labels is None else labels[t - 1]
        true_label = None if true_labels is None else true_labels[t - 1]
        is_wrong = true is not None and (true != guess or true_label not in (None, label))
        if is_wrong and true is not None:
            missed.append((true, t))
        texts.append((short(label), short(true_label or "") if is_wrong else ""))
    wrong = {t for _, t in missed}
    left, right = _levels(arcs), _levels(missed)
    # Columns: arcs, labels found, words, true labels, arcs missed.
    x_arcs = PAD + LEVEL * (max(left) + 1)
    x_words = x_arcs + 2.0 * PAD + max(width_of(own) for own, _ in texts) + PAD
    x_true = x_words + max(map(width_of, names)) + PAD
    x_missed = x_true + max(width_of(own) for _, own in texts) + 2.0 * PAD
    width = x_missed + LEVEL * (max(right, default=0) + 1) + PAD

    drawn = []
    for t, (name, (label, true_label)) in enumerate(zip(names, texts, strict=True)):
        y = LINE * (t + 0.5) + 4.0
        color = "--red" if t in wrong else "--muted"
        drawn.append(text(x_words, y, name, "--ink" if t else "--muted"))
        drawn.append(text(x_words - PAD, y, label, color, "end"))
        drawn.append(text(x_true, y, true_label, "--green"))
    for arc, level in zip(arcs, left, strict=True):
        drawn.append(_arc(arc, x_arcs, -LEVEL * level, "--red" if arc[1] in wrong else "--muted"))
    for arc, level in zip(missed, right, strict=True):
        drawn.append(_arc(arc, x_missed, LEVEL * level, "--green", ' stroke-dasharray="4 2"'))
    height = LINE * len(names)
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img">'
        f"{''.join(drawn)}</svg>"
        '<p class="muted">left: arcs found, wrong ones in red; right: true arcs that are missed</p>'
    )


def _levels(arcs: Sequence[Arc]) -> list[int]:
    """How far each arc stands out: farther than all shorter ones that it runs along."""
    levels: dict[int, int] = {}
    reached: list[int] = []  # in every gap between two words
    for k in sorted(range(len(arcs)), key=lambda k: abs(arcs[k][0] - arcs[k][1])):
        first, last = sorted(arcs[k])
        reached += [0] * (last - len(reached))
        levels[k] = 1 + max(reached[first:last], default=0)
        reached[first:last] = [levels[k]] * (last - first)
    return [levels[k] for k in range(len(arcs))]


def _arc(arc: Arc, x: float, reach: float, color: str, dashes: str = "") -> str:
    """A bracket from the head's line to the dependent's, with an arrow at the dependent."""
    head, dependent = arc
    side = 1.0 if reach > 0.0 else -1.0
    # Where a word has arcs in both directions, and its own head's, these leave apart.
    start = LINE * (head + 0.5) + (4.0 if dependent > head else -4.0)
    end = LINE * (dependent + 0.5)
    bend = 4.0 if end > start else -4.0
    path = (
        f"M{x:.1f},{start:.1f} h{reach - 4.0 * side:.1f} q{4.0 * side},0 {4.0 * side},{bend} "
        f"V{end - bend:.1f} q0,{bend} {-4.0 * side},{bend} H{x + 5.0 * side:.1f}"
    )
    tip = f"M{x:.1f},{end:.1f} l{6.0 * side},-3.5 v7 Z"
    return (
        f'<path d="{path}" style="stroke:var({color})" fill="none" stroke-width="1.3"{dashes}/>'
        f'<path d="{tip}" style="fill:var({color})"/>'
    )


GAP = 14.0


def parse_tree(found: Any, truth: Any = None) -> str:
    """Draw a tree; constituents that the true one does not have are red."""
    tree = as_tree(found)
    expected = None if truth is None else Counter(as_tree(truth).spans())
    drawing = _TreeDrawing(tree, expected)
    note = (
        "" if truth is None else '<p class="muted">red: constituents that the true tree lacks</p>'
    )
    return (
        f'<svg viewBox="0 0 {drawing.width:.0f} {drawing.height:.0f}" '
        f'width="{drawing.width:.0f}" role="img">{"".join(drawing.parts)}</svg>{note}'
    )


class _TreeDrawing:
    """What is drawn so far."""

    def __init__(self, tree: Tree, expected: Counter[tuple[str, int, int]] | None) -> None:
        self.expected = expected
        words, tags = [short(word) for word in tree.words()], tree.tags()
        labels = [label for label, _, _ in tree.spans()]
        self.level = max(map(width_of, [*labels, *tags])) + GAP
        self.tags = GAP + self.level * tree_height(tree)  # where their column begins
        self.width = self.tags + self.level + max(map(width_of, words)) + GAP
        self.height = LINE * len(words)
        self.parts = [
            text(self.tags + self.level, _y_of_line(t), word, "--ink", style="font-style:italic")
            for t, word in enumerate(words)
        ]
        self._node(tree, 0)

    def _node(self, tree: Tree, start: int) -> tuple[float, float, int]:
        """Draw a subtree that begins at a word; its place, and where it ends."""
        x = self.tags - self.level * tree_height(tree)
        if tree.is_tag:
            self.parts.append(text(x, _y_of_line(start), tree.label, "--muted"))
            return x, _y_of_line(start), start + 1
        end, below = start, []
        for child in tree.children:
            if isinstance(child, Tree):
                child_x, child_y, end = self._node(child, end)
                below.append((child_x, child_y))
        y = 0.5 * (below[0][1] + below[-1][1])
        bend = x + self.level - GAP + 4.0
        begin = x + width_of(tree.label) + 2.0
        for child_x, child_y in below:
            self.parts.append(
                f'<path class="grid" fill="none" d="M{begin:.1f},{y - 4:.1f} '
                f'H{bend:.1f} V{child_y - 4:.1f} H{child_x - 3:.1f}"/>'
            )
        is_right = self.expected is None or self.expected[tree.label, start, end] > 0
        if self.expected is not None:
            self.expected[tree.label, start, end] -= 1
        color = "--ink" if is_right else "--red"
        self.parts.append(text(x, y, tree.label, color, style="font-weight:600"))
        return x, y, end


def _y_of_line(t: int) -> float:
    """Where a word is written."""
    return LINE * (t + 0.5) + 4.0


SCALE = 6


def parts_of_image(image: Any, truth: Any, found: Any) -> str:
    """An image in grey: where parts are found (red dots) and where they are (green circles)."""
    pixels = np.asarray(image, np.float64)
    if pixels.ndim == 3:  # channels: the first is drawn
        pixels = pixels[0]
    rows, columns = pixels.shape
    scale = max(1.0, SCALE * 40.0 / max(rows, columns))
    marks = []
    for k, ((true_row, true_column), (row, column)) in enumerate(zip(truth, found, strict=True)):
        marks.append(
            f"{_circle(true_row, true_column, scale, 5)} style='stroke:var(--green)' "
            f"stroke-width='2' fill='none'><title>part {k}</title></circle>"
            f"{_circle(row, column, scale, 3)} style='fill:var(--red)'/>"
        )
    width, height = columns * scale, rows * scale
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img">'
        f'<image href="{_as_png(pixels)}" width="{width:.0f}" height="{height:.0f}" '
        f'style="image-rendering:pixelated"/>{"".join(marks)}</svg>'
        '<p class="muted">circles: where the parts are; dots: where they were found</p>'
    )


def _circle(row: float, column: float, scale: float, radius: int) -> str:
    """The beginning of a circle around the middle of a pixel."""
    return f"<circle cx='{(column + 0.5) * scale:.1f}' cy='{(row + 0.5) * scale:.1f}' r='{radius}'"


def _as_png(pixels: Any) -> str:
    """Grey values as the address of a picture that holds its own data."""
    low, high = float(np.min(pixels)), float(np.max(pixels))
    grey = np.round(255.0 * (pixels - low) / ((high - low) or 1.0)).astype(np.uint8)
    lines = b"".join(b"\0" + row.tobytes() for row in grey)
    header = struct.pack(">IIBBBBB", grey.shape[1], grey.shape[0], 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    packed = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return f"data:image/png;base64,{base64.b64encode(packed).decode()}"


SHOWN_DOCUMENTS = 40


def ranking(relevances: Any, scores: Any) -> str:
    """A bar for each document in the order found, as high as it is relevant."""
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")[:SHOWN_DOCUMENTS]
    worth = np.asarray(relevances, np.float64)
    low, high = float(worth.min()), float(worth.max())
    bars = []
    for place, document in enumerate(order.tolist()):
        height = 4.0 + 40.0 * (worth[document] - low) / ((high - low) or 1.0)
        bars.append(
            f'<rect x="{14 * place}" y="{46 - height:.1f}" width="11" height="{height:.1f}" '
            f'style="fill:var(--blue)"><title>place {place + 1}: relevance {worth[document]:g}, '
            f"score {float(scores[document]):.4g}</title></rect>"
        )
    return (
        f'<svg viewBox="0 0 {14 * len(order)} 48" width="{14 * len(order)}" role="img">'
        f'{"".join(bars)}</svg><p class="muted">documents by their place; height: relevance</p>'
    )
