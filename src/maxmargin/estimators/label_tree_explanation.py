"""What differs between two labellings of the nodes of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..engine.rows import Rows
from ..problems.tree.labels import LabelLayout
from ..types import Floats
from .explanation import Evidence

__all__ = ["label_tree_evidence"]


def label_tree_evidence(
    layout: LabelLayout,
    w: Floats,
    rows: Rows,
    labels: Sequence[Sequence[Any]],
    chosen: Sequence[int],
    rival: Sequence[int],
) -> list[Evidence]:
    """Features of nodes and edges whose labels differ, of the only row there is."""
    columns, parent = layout.shape_and_columns()[1], layout.parent.tolist()
    names, found = _names(layout), []
    for c, value in zip(rows.indices.tolist(), rows.values.tolist(), strict=True):
        v, start = int(columns.node[c]), int(columns.weight_start[c])
        nodes = [parent[v], v] if columns.table_start[c] >= 0 else [v]
        a, b = ([int(codes[u]) for u in nodes] for codes in (chosen, rival))
        if a == b:
            continue
        places = [start + codes[-1] for codes in (a, b)]
        name = names[c]
        if len(nodes) == 2:
            places = [
                p + codes[0] * int(layout.n_labels[v])
                for p, codes in zip(places, (a, b), strict=True)
            ]
            pairs = (
                " - ".join(str(labels[u][k]) for u, k in zip(nodes, codes, strict=True))
                for codes in (a, b)
            )
            name = f"{name} {', not '.join(pairs)}"
        found.append(Evidence(name, v, value, float(w[places[0]] - w[places[1]])))
    return found


def _names(layout: LabelLayout) -> list[str]:
    """Names of all input columns: of features of nodes, then of edges."""
    names = [f"x{f}" for count in layout.n_inputs.tolist() for f in range(count)]
    for v, p in enumerate(layout.parent.tolist()):
        edge = f"edge {p}-{v}"
        names += [
            edge if f == 0 else f"{edge} x{f - 1}" for f in range(layout.n_edge_inputs) if p >= 0
        ]
    return names
