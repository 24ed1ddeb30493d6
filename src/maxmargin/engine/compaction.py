"""The one compaction: what is kept of rows of entries, of the parts they name, of their products.

The plane store, the working sets of `n-slack`, the candidate pool and the bundle keep planes as
rows of entries in long arrays, drop some, and close the gaps with these kernels. All may work in
place where the kept rows come in the order in which they lie.
"""

from __future__ import annotations

from .._jit import kernel


@kernel(allocates=False)
def keep_rows(first, last, kept, ids, values, to_ids, to_values, starts):
    """Copy the kept rows, one behind the other; ``starts`` gets where they begin, and the end."""
    at = 0
    for k in range(len(kept)):
        begin, end = first[kept[k]], last[kept[k]]
        starts[k] = at
        for e in range(begin, end):
            to_ids[at] = ids[e]
            to_values[at] = values[e]
            at += 1
    starts[len(kept)] = at


@kernel(allocates=False)
def keep_blocks(ids, first, last, listed, n_listed, place, to_listed, at):
    """Keep the listed parts that entries first..last - 1 name, from ``at`` on; returns how many.

    Entries name parts by their number in the list, and get the new numbers. The order of the parts
    stays. ``place`` has a zero for each listed part, before and after.
    """
    for e in range(first, last):
        place[ids[e]] = 1
    count = 0
    for k in range(n_listed):
        if place[k] != 0:
            to_listed[at + count] = listed[k]
            count += 1
            place[k] = count
    for e in range(first, last):
        ids[e] = place[ids[e]] - 1
    for k in range(n_listed):
        place[k] = 0
    return count


@kernel(allocates=False)
def keep_blocks_by_use(ids, n_entries, listed, place, to_listed):
    """Like `keep_blocks`, with the parts in the order in which entries name them first.

    Rows that are read one after the other then find theirs side by side. ``to_listed`` is another
    array than ``listed``.
    """
    count = 0
    for e in range(n_entries):
        k = ids[e]
        if place[k] == 0:
            to_listed[count] = listed[k]
            count += 1
            place[k] = count
        ids[e] = place[k] - 1
    for k in range(len(listed)):
        place[k] = 0
    return count


@kernel(allocates=False)
def keep_products(gram, rows, columns, n_kept, to, at, stride):
    """Keep the products of n_kept planes with each other, from ``at`` on; returns where they end.

    Plane j's row begins at ``rows[j]``, and ``columns[j]`` is its place in every row. Rows are to
    begin ``stride`` apart; with a stride of 0 they are those of a lower triangle, one behind the
    other. Of the source no more than the lower triangle is read.
    """
    for j in range(n_kept):
        for k in range(n_kept if stride > 0 else j + 1):
            if columns[k] <= columns[j]:
                to[at + k] = gram[rows[j] + columns[k]]
            else:
                to[at + k] = gram[rows[k] + columns[j]]
        at += stride if stride > 0 else j + 1
    return at
