"""Trees of labels: potentials from the inputs, labellings as sparse rows, and sums over all."""

from __future__ import annotations

import numpy as np

from ...jit.decorator import kernel
from ...search.modes import ADDITIVE
from ...search.semiring import plus
from .kernels import best_labelling, search_tree


@kernel
def label_potentials(rows, columns, i, w, work):
    """Fill ``unary`` and ``tables`` for example i; see `labels.LabelColumns`."""
    work.tables[:] = 0.0
    for v in range(len(work.n_labels)):
        for k in range(work.n_labels[v]):
            work.unary[v, k] = 0.0
    for e in range(rows.indptr[i], rows.indptr[i + 1]):
        column = rows.indices[e]
        x = rows.values[e]
        base = columns.weight_start[column]
        target = columns.table_start[column]
        if target >= 0:
            for j in range(columns.width[column]):
                work.tables[target + j] += x * w[base + j]
        else:
            unary = work.unary[columns.node[column]]
            for k in range(columns.width[column]):
                unary[k] += x * w[base + k]


@kernel
def label_oracle(shape, rows, columns, true_labels, examples, w, mode, work, found, out):
    """Most violated labelling of each example: labels in ``found``, rows in ``out``.

    With the mode ADDITIVE it maximises ``Delta - <dpsi, w>``; `search_tree` has the others. Gold
    is found where nothing beats it. In: ``columns`` (`labels.LabelColumns`), ``true_labels``
    (`labels.TrueLabels`).
    """
    unit = true_labels.unit
    for r in range(len(examples)):
        gold = true_labels.labels[examples[r]]
        label_potentials(rows, columns, examples[r], w, work)
        if mode.kind == ADDITIVE and len(true_labels.cost_rows) > 0:
            for v in range(len(gold)):
                row = true_labels.cost_rows[examples[r], v]
                for k in range(work.n_labels[v]):
                    work.unary[v, k] += unit * true_labels.costs[row, k]
        elif mode.kind == ADDITIVE:
            for v in range(len(gold)):
                for k in range(work.n_labels[v]):
                    work.unary[v, k] += unit
                work.unary[v, gold[v]] -= unit
        if search_tree(shape, work, gold, mode, unit):
            found[r] = work.path
        else:
            found[r] = gold
    write_label_rows(shape, rows, columns, work.n_labels, true_labels, examples, found, out)


@kernel
def write_label_rows(shape, rows, columns, n_labels, true_labels, examples, found, out):
    """psi(x, gold) - psi(x, found) of each example as rows of ``out``, with the losses."""
    filled = 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        i = examples[r]
        gold = true_labels.labels[i]
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            column = rows.indices[e]
            v = columns.node[column]
            good, bad = gold[v], found[r, v]
            if columns.table_start[column] >= 0:
                p = shape.parent[v]
                good += gold[p] * n_labels[v]
                bad += found[r, p] * n_labels[v]
            if good != bad:
                base = columns.weight_start[column]
                out.indices[filled] = base + good
                out.values[filled] = rows.values[e]
                out.indices[filled + 1] = base + bad
                out.values[filled + 1] = -rows.values[e]
                filled += 2
        out.indptr[r + 1] = filled
        wrong = 0.0
        for v in range(len(gold)):
            if len(true_labels.cost_rows) > 0:
                wrong += true_labels.costs[true_labels.cost_rows[i, v], found[r, v]]
            else:
                wrong += found[r, v] != gold[v]
        out.losses[r] = wrong * true_labels.unit
        if true_labels.zero_one and wrong > 0.0:
            out.losses[r] = 1.0


@kernel
def decode_labels(shape, rows, columns, w, allowed, work, labels):
    """Best labelling of every row into ``labels`` (n, V).

    ``allowed`` (n, V, most labels) tells which labels nodes may have; empty if all are allowed.
    """
    for i in range(len(labels)):
        label_potentials(rows, columns, i, w, work)
        if len(allowed) > 0:
            for v in range(len(work.n_labels)):
                for k in range(work.n_labels[v]):
                    if not allowed[i, v, k]:
                        work.unary[v, k] = -np.inf
        best_labelling(shape, work)
        labels[i] = work.path


@kernel
def label_tree_sums(shape, rows, columns, w, allowed, factor, soft, work, scratch, sums, totals):
    """Sums over the labellings of every tree, of all and of those with a label at a node.

    Scores count ``factor`` times. ``allowed`` is empty if all labels are. Out: ``sums[i, v, k]``
    and ``totals[i]``, maxima or with ``soft`` logarithms of sums (Pearl 1988, belief propagation).
    ``sent[v]`` is the message of v to its parent, ``given[v]`` that of the parent to v.
    """
    own, sent, given = scratch[0], scratch[1], scratch[2]
    V = len(shape.order)
    root = shape.order[0]
    for i in range(len(totals)):
        label_potentials(rows, columns, i, w, work)
        for v in range(V):
            for k in range(work.n_labels[v]):
                own[v, k] = factor * work.unary[v, k]
                if len(allowed) > 0 and not allowed[i, v, k]:
                    own[v, k] = -np.inf
                given[v, k] = 0.0
        for t in range(V - 1, 0, -1):
            v = shape.order[t]
            p, K, start = shape.parent[v], work.n_labels[v], shape.table_start[v]
            for kp in range(work.n_labels[p]):
                total = -np.inf
                for k in range(K):
                    score = _below(shape, sent, v, k, -1, own[v, k])
                    score += factor * work.tables[start + kp * K + k]
                    total = plus(total, score, soft)
                sent[v, kp] = total
        for t in range(1, V):
            v = shape.order[t]
            p, K, start = shape.parent[v], work.n_labels[v], shape.table_start[v]
            for k in range(K):
                total = -np.inf
                for kp in range(work.n_labels[p]):
                    score = _below(shape, sent, p, kp, v, own[p, kp] + given[p, kp])
                    score += factor * work.tables[start + kp * K + k]
                    total = plus(total, score, soft)
                given[v, k] = total
        for v in range(V):
            for k in range(work.n_labels[v]):
                sums[i, v, k] = _below(shape, sent, v, k, -1, own[v, k] + given[v, k])
        totals[i] = -np.inf
        for k in range(work.n_labels[root]):
            totals[i] = plus(totals[i], sums[i, root, k], soft)


@kernel(inline=True)
def _below(shape, sent, v, k, but, score):
    """A score of label k at v with the messages of its children, but for one of them."""
    for c in range(len(shape.parent)):
        if shape.parent[c] == v and c != but:
            score += sent[c, k]
    return score
