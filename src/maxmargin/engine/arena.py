"""Arrays that grow, and those of the plane store: what they hold and how large they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..types import Bools, Floats, Ints, Ints32
from .parts import Parts

AnyArray = NDArray[Any]


class Arena(NamedTuple):
    """Append-only arrays of all planes. A compaction drops dead planes and orders by block.

    Every block has its own small dictionary of parts (see `parts`; mostly single features): plane p
    adds the global ids ``new_features[new_start[p] : new_start[p + 1]]`` to the dictionary of its
    block, and the entries of planes name these *local* parts. Scoring a block then touches each of
    its weights once, however many planes share it. Row p of the block's Gram matrix starts at
    ``gram_start[p]``, one entry per plane of the list up to p.
    """

    block: Ints
    next_plane: Ints
    position: Ints
    alive: Bools
    offset: Floats
    alpha: Floats
    before: Floats
    idle: Ints32
    entry_start: Ints
    new_start: Ints
    gram_start: Ints
    ids: Ints32
    values: Floats
    new_features: Ints32
    gram: Floats


class Blocks(NamedTuple):
    """Per-example ends of the plane lists, their lengths, dictionary sizes, bounds and ridges."""

    first: Ints
    last: Ints
    count: Ints  # type: ignore[assignment]
    n_features: Ints
    cap: Floats
    ridge: Floats


class Scratch(NamedTuple):
    """Work arrays of the kernels. ``place`` maps global parts to local ones, plus one."""

    place: Ints32
    expanded: Floats
    features: Ints32
    weights: Floats
    dense: Floats
    products: Floats
    planes: Ints
    scores: Floats
    alpha: Floats
    gram: Floats
    order: Ints


class Journal(NamedTuple):
    """A change of w: parts, and their steps."""

    parts: Ints32
    steps: Floats


class StoreArrays(NamedTuple):
    """All that the kernels of a store work on."""

    arena: Arena
    parts: Parts
    blocks: Blocks
    used: Ints
    scratch: Scratch
    w: Floats
    dual: Floats


def grown(array: AnyArray, used: int, size: int, *, factor: float = 1.5) -> AnyArray:
    """The array if it has this size; or else a larger one, with what is used of it.

    Arrays grow along their first axis, by ``factor`` beyond what is needed, so that growing again
    and again costs no more than a few copies of the whole. What is not used is zero.
    """
    if size <= len(array):
        return array
    larger = np.zeros((int(factor * size) + 64, *array.shape[1:]), array.dtype)
    larger[:used] = array[:used]
    return larger


def new_arena(planes: int, entries: int, new_features: int, gram: int) -> Arena:
    """An empty arena of these sizes."""
    return Arena(
        block=np.zeros(planes, np.int64),
        next_plane=np.full(planes, -1),
        position=np.zeros(planes, np.int64),
        alive=np.zeros(planes, np.bool_),
        offset=np.zeros(planes),
        alpha=np.zeros(planes),
        before=np.zeros(planes),
        idle=np.zeros(planes, np.int32),
        entry_start=np.zeros(planes + 1, np.int64),
        new_start=np.zeros(planes + 1, np.int64),
        gram_start=np.zeros(planes + 1, np.int64),
        ids=np.empty(entries, np.int32),
        values=np.empty(entries),
        new_features=np.empty(new_features, np.int32),
        gram=np.empty(gram),
    )


def arena_sizes(arena: Arena) -> tuple[int, ...]:
    """Capacity for planes, entries, dictionary entries and Gram entries."""
    return tuple(len(a) for a in (arena.block, arena.values, arena.new_features, arena.gram))


def arena_bytes(planes: int, entries: int, new_features: int, gram: int) -> int:
    """Bytes of an arena of these sizes."""
    per_plane = 9 * 8 + 4 + 1
    return planes * per_plane + entries * 12 + new_features * 4 + gram * 8


def resized_arena(arena: Arena, used: Ints, sizes: list[int]) -> Arena:
    """An arena of these sizes with the same content; arrays that need not grow are kept."""
    planes, entries, new_features, gram = (int(u) for u in used)
    filled = dict.fromkeys(Arena._fields, planes)
    filled |= dict.fromkeys(("entry_start", "new_start", "gram_start"), planes + 1)
    filled |= {"ids": entries, "values": entries, "new_features": new_features, "gram": gram}
    fresh = new_arena(*sizes)._asdict()
    for name, size in filled.items():
        old = getattr(arena, name)
        if len(old) == len(fresh[name]):
            fresh[name] = old
        else:
            fresh[name][:size] = old[:size]
    return Arena(**fresh)


def new_scratch(place: Ints32, expanded: Floats, features: int, planes: int) -> Scratch:
    """Work arrays for blocks of so many parts and planes."""
    return Scratch(
        place,
        expanded,
        np.empty(features, np.int32),
        np.empty(features),
        np.zeros(features),
        np.empty(features),
        np.empty(planes, np.int64),
        np.empty(planes),
        np.empty(planes),
        np.empty((planes, planes)),
        np.empty(planes, np.int64),
    )
