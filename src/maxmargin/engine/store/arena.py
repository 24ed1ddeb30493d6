"""Arrays that grow, and those of the plane store: what they hold and how large they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...utils.schema import ArrayOf, checked_arrays, flags, numbers, rows_at, whole
from ...utils.types import Bools, Floats, Ints, Ints32
from ..feature_blocks import FeatureBlocks

AnyArray = NDArray[Any]
MORE_THAN_SAID = 1.5  # times the bytes that a warning has named: then another one is due


class Arena(NamedTuple):
    """Append-only arrays of all planes. A compaction drops dead planes and orders by block.

    Every block has its own small dictionary of feature blocks (mostly single features): plane p
    adds the global ids ``new_features[new_start[p] : new_start[p + 1]]`` to the dictionary of its
    block, and the entries of planes name these *local* parts. Scoring a block then touches each of
    its weights once, however many planes share it. Row p of the block's Gram matrix starts at
    ``gram_start[p]``, one entry per plane of the list up to p.

    Types of ids and values are `SMALL` or `LARGE`.
    """

    block: Ints32
    next_plane: Ints32
    position: Ints32
    alive: Bools
    offset: Floats
    alpha: Floats
    before: Floats
    idle: Ints32
    entry_start: Ints
    new_start: Ints
    gram_start: Ints
    ids: AnyArray
    values: AnyArray
    new_features: Ints32
    gram: Floats


class Blocks(NamedTuple):
    """Per-example ends of the plane lists, their lengths, dictionary sizes, bounds and ridges."""

    first: Ints
    last: Ints
    count: Ints  # type: ignore[assignment]
    n_features: Ints
    upper_bound: Floats
    ridge: Floats


class Places(NamedTuple):
    """A table from the parts of one block to their local numbers, plus one; zeros between uses.

    Feature blocks below ``n_row_blocks`` are at ``part & mask``: those of a block are near each
    other, so that a short table does for the rows of all data. The others are at ``part - shift``.
    """

    table: Ints32
    n_row_blocks: int
    mask: int
    shift: int


class Scratch(NamedTuple):
    """Work arrays of the kernels."""

    places: Places
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


class StoreArrays(NamedTuple):
    """All that the kernels of a store work on."""

    arena: Arena
    feature_blocks: FeatureBlocks
    blocks: Blocks
    used: Ints
    scratch: Scratch
    w: Floats
    dual: Floats


def grown(
    array: AnyArray, used: int, size: int, *, factor: float = 1.5, most: int | None = None
) -> AnyArray:
    """The array if it has this size; or else a larger one, with what is used of it.

    Arrays grow along their first axis, by ``factor`` beyond what is needed, so that growing again
    and again costs no more than a few copies of the whole; beyond ``most`` only as far as is
    needed. What is not used is zero.
    """
    if size <= len(array):
        return array
    enough = int(factor * size) + 64
    enough = enough if most is None else max(size, min(enough, most))
    larger = np.zeros((enough, *array.shape[1:]), array.dtype)
    larger[:used] = array[:used]
    return larger


class EntryTypes(NamedTuple):
    """Types of the entries of planes."""

    ids: type[np.generic]
    values: type[np.generic]

    @property
    def nbytes(self) -> int:
        """Bytes of an entry."""
        return np.dtype(self.ids).itemsize + np.dtype(self.values).itemsize


#: Of planes that count parts: whole numbers. A mean of planes needs the large ones.
SMALL = EntryTypes(np.uint16, np.int16)
LARGE = EntryTypes(np.int32, np.float64)
MOST_SMALL_IDS = 2**16

#: Types of the arrays of an arena; those that begin with a 0 for the first plane are one longer.
TYPES: dict[str, type[np.generic]] = {
    "block": np.int32,
    "next_plane": np.int32,
    "position": np.int32,
    "alive": np.bool_,
    "offset": np.float64,
    "alpha": np.float64,
    "before": np.float64,
    "idle": np.int32,
    "entry_start": np.int64,
    "new_start": np.int64,
    "gram_start": np.int64,
    "ids": LARGE.ids,
    "values": LARGE.values,
    "new_features": np.int32,
    "gram": np.float64,
}
MOST_PLANES = 2**31 - 1  # by the type of their numbers
PLANE_BYTES = 6 * 8 + 4 * 4 + 1  # of a plane without entries


def _lengths(planes: int, entries: int, new_features: int, gram: int) -> dict[str, int]:
    """Lengths of the arrays of an arena of these sizes."""
    lengths = dict.fromkeys(TYPES, planes)
    lengths |= dict.fromkeys(("entry_start", "new_start", "gram_start"), planes + 1)
    return lengths | {
        "ids": entries,
        "values": entries,
        "new_features": new_features,
        "gram": gram,
    }


def new_arena(sizes: Sequence[int], of_entries: EntryTypes) -> Arena:
    """An empty arena of these sizes: planes, entries, dictionary entries, Gram entries."""
    lengths, types = _lengths(*sizes), TYPES | of_entries._asdict()
    return Arena(**{name: np.zeros(lengths[name], kind) for name, kind in types.items()})


def arena_of(arrays: Mapping[str, AnyArray]) -> Arena:
    """The arena of these arrays, copied."""
    return Arena(**{name: array.copy() for name, array in arrays.items()})


def declared_arena(used: Ints, n_blocks: int, n_feature_blocks: int) -> dict[str, ArrayOf]:
    """What the arrays of a full arena have to be."""
    n_planes, n_entries, n_features, n_gram = (int(count) for count in used)
    of_planes = (np.int32,)
    wide = (np.int32, np.int64)  # as files of earlier versions have them
    return {
        "block": whole(n_planes, below=n_blocks, types=wide),
        "next_plane": whole(n_planes, low=-1, below=n_planes, types=wide),
        "position": whole(n_planes, below=n_planes, types=wide),
        "alive": flags(n_planes),
        "offset": numbers(n_planes),
        "alpha": numbers(n_planes, low=0.0),
        "before": numbers(n_planes, low=0.0),
        "idle": whole(n_planes, types=of_planes),
        "entry_start": rows_at(n_planes, n_entries),
        "new_start": rows_at(n_planes, n_features),
        "gram_start": rows_at(n_planes, n_gram),
        "ids": whole(n_entries, types=(SMALL.ids, LARGE.ids)),
        "values": numbers(n_entries)._replace(types=(SMALL.values, LARGE.values)),
        "new_features": whole(n_features, below=n_feature_blocks, types=of_planes),
        "gram": numbers(n_gram),
    }


def restored_arena(
    arrays: Mapping[str, AnyArray], used: Ints, n_blocks: int, n_feature_blocks: int
) -> Arena:
    """A full arena out of a file, whose planes are lists of blocks, and its entries local parts."""
    found = checked_arrays(arrays, declared_arena(used, n_blocks, n_feature_blocks))
    for name in ("block", "next_plane", "position"):
        found[name] = found[name].astype(TYPES[name], copy=False)
    arena = Arena(**found)
    if (arena.ids.dtype == SMALL.ids) != (arena.values.dtype == SMALL.values):
        raise ValueError("arena: ids and values are of types that do not fit each other")
    return arena


def block_lists(arena: Arena, n_blocks: int) -> dict[str, Any]:
    """First, last, count and n_features of the blocks, from the planes of a full arena.

    ValueError where the planes are not such lists, or name parts that their block has not.
    """
    block, n_planes = arena.block, len(arena.block)
    order = np.lexsort((arena.position, block))
    owner = block[order]
    count = np.bincount(block, minlength=n_blocks)
    ends = np.cumsum(count)
    follows = np.append(owner[1:] == owner[:-1], False)[:n_planes]
    following = np.where(follows, np.append(order[1:], -1)[:n_planes], -1)
    n_features = np.zeros(n_blocks, np.int64)
    np.add.at(n_features, block, np.diff(arena.new_start))
    lengths = np.diff(arena.entry_start)
    feature_block = np.repeat(block, np.diff(arena.new_start)).astype(np.int64)
    named = np.sort(
        feature_block * (int(arena.new_features.max(initial=0)) + 1) + arena.new_features
    )
    for fits, what in (
        (arena.alive | ((arena.alpha == 0.0) & (arena.before == 0.0)), "alive"),
        (arena.position[order] == np.arange(n_planes) - (ends - count)[owner], "position"),
        (arena.next_plane[order] == following, "next_plane"),
        (np.diff(arena.gram_start) == arena.position + 1, "gram_start"),
        (arena.ids < np.repeat(n_features[block], lengths), "ids"),
        (np.diff(named) > 0, "new_features"),
    ):
        if not fits.all():
            raise ValueError(f"arena.{what}: does not fit the lists of planes")
    lists = {name: np.full(n_blocks, -1) for name in ("first", "last")}
    used = np.flatnonzero(count)
    lists["first"][used], lists["last"][used] = (
        order[ends[used] - count[used]],
        order[ends[used] - 1],
    )
    return {**lists, "count": count, "n_features": n_features}


def entry_types(arena: Arena) -> EntryTypes:
    """Types of its entries."""
    return SMALL if arena.ids.dtype == SMALL.ids else LARGE


def with_large_entries(arena: Arena) -> Arena:
    """The same planes, with the large types."""
    return arena._replace(
        ids=arena.ids.astype(LARGE.ids, copy=False),
        values=arena.values.astype(LARGE.values, copy=False),
    )


def arena_sizes(arena: Arena) -> tuple[int, ...]:
    """Capacity for planes, entries, dictionary entries and Gram entries."""
    return tuple(len(a) for a in (arena.block, arena.values, arena.new_features, arena.gram))


def arena_bytes(sizes: Sequence[int], of_entries: EntryTypes) -> int:
    """Bytes of an arena of these sizes."""
    planes, entries, new_features, gram = sizes
    return planes * PLANE_BYTES + entries * of_entries.nbytes + new_features * 4 + gram * 8


def resized_arena(arena: Arena, used: Ints, sizes: Sequence[int]) -> Arena:
    """An arena of these sizes with the same content; arrays that need not grow are kept."""
    for step in resizing(arena, used, sizes):
        arena = step
    return arena


def resizing(arena: Arena, used: Ints, sizes: Sequence[int]) -> Iterator[Arena]:
    """The same, with one more array of the new size in each step.

    Who takes every step in place of the one before has but one array twice at any time.
    """
    filled, wanted = _lengths(*(int(u) for u in used)), _lengths(*sizes)
    for name in TYPES:
        old = getattr(arena, name)
        if len(old) != wanted[name]:
            larger = np.zeros(wanted[name], old.dtype)
            larger[: filled[name]] = old[: filled[name]]
            arena = arena._replace(**{name: larger})
            del old, larger
            yield arena


def new_places(n_feature_blocks: int, n_row_blocks: int = 0, span: int = 0) -> Places:
    """A table of parts, of which those of rows are at most ``span`` apart in each block."""
    if n_row_blocks == 0:
        return Places(np.zeros(n_feature_blocks, np.int32), 0, 0, 0)
    size = 1 << max(span - 1, 1).bit_length()
    n_single = n_feature_blocks - n_row_blocks
    return Places(np.zeros(size + n_single, np.int32), n_row_blocks, size - 1, n_row_blocks - size)


def new_scratch(places: Places, expanded: Floats, features: int, planes: int) -> Scratch:
    """Work arrays for blocks of so many parts and planes."""
    return Scratch(
        places,
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
