"""Dependency trees: a word in each line, arcs beside the words.

Any sentence fits the width of a page this way, and labels have a line of their own, that of the
dependent.
"""

from __future__ import annotations

from collections.abc import Sequence

from .texts import LINE, short, text, width_of

__all__ = ["dependency_tree"]

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
