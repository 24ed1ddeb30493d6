"""Kernels of shared blocks: what a share has changed, and how the changes of all are combined."""

from __future__ import annotations

from ...jit.decorator import kernel

STRETCH = 256  # weights that are worked on at a time: their sums stay in the nearest cache


@kernel(allocates=False)
def note_multipliers(arena, blocks, examples, before):
    """Note the multipliers of these blocks."""
    for i in examples:
        p = blocks.first[i]
        while p >= 0:
            before[p] = arena.alpha[p]
            p = arena.next_plane[p]


@kernel(allocates=False)
def move_back(arena, blocks, examples, before, step):
    """Cut the change of these blocks' multipliers to a share ``step`` of it."""
    for i in examples:
        p = blocks.first[i]
        while p >= 0:
            arena.alpha[p] = before[p] + step * (arena.alpha[p] - before[p])
            p = arena.next_plane[p]


@kernel(allocates=False)
def ridge_of_change(arena, blocks, examples, before):
    """What squared slacks add to the curvature of the change of these blocks."""
    total = 0.0
    for i in examples:
        change = 0.0
        p = blocks.first[i]
        while p >= 0:
            change += arena.alpha[p] - before[p]
            p = arena.next_plane[p]
        total += blocks.ridge[i] * change * change
    return total


# Sums are over loops that write nothing: others are summed up in one order or another, by where
# their arrays happen to lie in memory.


@kernel(allocates=False)
def add_changes(base, own, first, last, work, squares, total, changed):
    """Add the changes of all shares to the weights first..last-1 of the base and of all.

    ``own`` has a row of weights for each share, ``base`` those that all began with. Gives the sum
    of the changes, which stretches have any, and adds to the squares of each share's change, and
    (the last one) of their sum.
    """
    n = len(own)
    for begin in range(first, last, STRETCH):
        end = min(begin + STRETCH, last)
        size, here, some = end - begin, base[begin:end], 0.0
        for k in range(n):
            row = own[k, begin:end]
            for j in range(size):
                work[j] = row[j] - here[j]
            square = _square(work, size)
            some += square
            squares[k] += square
        changed[begin // STRETCH] = some > 0.0
        if some == 0.0:
            continue
        for j in range(size):
            work[j] = 0.0
        for k in range(n):
            row = own[k, begin:end]
            for j in range(size):
                work[j] += row[j] - here[j]
        squares[n] += _square(work, size)
        of_all = total[begin:end]
        for j in range(size):
            of_all[j] = work[j]
            here[j] += work[j]
        for k in range(n):
            row = own[k, begin:end]
            for j in range(size):
                row[j] = here[j]


@kernel(inline=True)
def _square(vector, size):
    """The square of a vector of this size."""
    square = 0.0
    for j in range(size):
        square += vector[j] * vector[j]
    return square


@kernel(allocates=False)
def add_shard(base, own, first, last, factor, total, changed):
    """Add ``factor`` times what `add_changes` has added."""
    for begin in range(first, last, STRETCH):
        if not changed[begin // STRETCH]:
            continue
        end = min(begin + STRETCH, last)
        here, of_all = base[begin:end], total[begin:end]
        for j in range(end - begin):
            here[j] += factor * of_all[j]
        for k in range(len(own)):
            row = own[k, begin:end]
            for j in range(end - begin):
                row[j] = here[j]


@kernel(allocates=False)
def add_pushes(directions, w, before, factor, first, last, sums):
    """Make the first of all shares' directions their sum, for the weights first..last-1.

    Where ``before`` has what w was, ``factor`` times its change is added. ``sums`` gets the
    product with w, and the square.
    """
    for begin in range(first, last, STRETCH):
        end = min(begin + STRETCH, last)
        size, here, of_all = end - begin, w[begin:end], directions[0, begin:end]
        for k in range(1, len(directions)):
            row = directions[k, begin:end]
            for j in range(size):
                of_all[j] += row[j]
        if len(before):
            was = before[begin:end]
            for j in range(size):
                of_all[j] += factor * (here[j] - was[j])
        product = 0.0
        for j in range(size):
            product += of_all[j] * here[j]
        sums[0] += product
        sums[1] += _square(of_all, size)
