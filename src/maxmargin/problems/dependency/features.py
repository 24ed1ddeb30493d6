"""Arc features of dependency trees, hashed: what is hashed, and the keys of every token.

An arc from a head h to a modifier m has the features of templates such as "word tag | tag": the
fields of the head left of the bar, those of the modifier right of it (McDonald et al. 2005). No
list of features is ever stored. For each template every token gets one random number as a head and
one as a modifier, its *keys*; a feature's place in the weights is the exclusive or of the two, the
direction and, for its second copy, the bucket of the distance. The low three bits hold the bucket,
so both copies lie in one cache line. Templates with one empty side depend on one token only and
are added up once per token, not once per arc.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...jit.decorator import kernel
from ...utils.types import Hashes, Ints, Ints32

__all__ = [
    "ArcKeys",
    "ArcTemplates",
    "HashedSides",
    "TokenFields",
    "arc_feature_names",
    "arc_keys",
    "arc_templates",
    "columns_of",
    "field_and_shift",
    "fill_keys",
]

NO_NODE = 2**30  # behind all nodes


class HashedSides(NamedTuple):
    """What is hashed: the distinct sides of templates, and which of them each column has.

    Side s begins with ``seeds[s]`` and has the rows ``bounds[s]`` to ``bounds[s + 1] - 1`` of
    ``parts``, which are a field and how far the node is that it is taken from. Column c is side
    ``columns[c]`` (-1 for an empty one) times ``factors[c]``; ``between`` has the sides of the
    values between head and modifier. ``outside`` stands for fields outside of the sentence.
    """

    seeds: Hashes
    parts: Ints
    bounds: Ints
    columns: Ints
    factors: Hashes
    between: Ints
    outside: Hashes


@kernel(allocates=False)
def fill_keys(sides, fields, sentences, hashes, values, keys, same):
    """Keys of all nodes, and the nearest nodes with the same values, as `ArcKeys` has them.

    ``fields`` (n_fields, n_nodes) are hashes of what the nodes have, ``sentences`` the bounds of
    these. ``hashes`` (n_sides,) and ``values`` (n_nodes, n_between) are for work.
    """
    high = np.uint64(32)
    for i in range(len(sentences) - 1):
        first, end = sentences[i], sentences[i + 1]
        for node in range(first, end):
            for s in range(len(hashes)):
                total = sides.seeds[s]
                for p in range(sides.bounds[s], sides.bounds[s + 1]):
                    at = node + sides.parts[p, 1]
                    value = sides.outside[0]
                    if first <= at < end:
                        value = fields[sides.parts[p, 0], at]
                    total = _mixed(total ^ value)
                hashes[s] = total
            for c in range(len(sides.columns)):
                s = sides.columns[c]
                keys[node, c] = 0
                if s >= 0:
                    keys[node, c] = (hashes[s] * sides.factors[c]) >> high
            for b in range(len(sides.between)):
                values[node, b] = hashes[sides.between[b]]
                same[node, b, 0], same[node, b, 1] = -1, NO_NODE
                for other in range(node - 1, first - 1, -1):
                    if values[other, b] == values[node, b]:
                        same[node, b, 0], same[other, b, 1] = other - first, node - first
                        break


@kernel(inline=True)
def _mixed(value):
    """Spread every bit over all others (the finaliser of SplitMix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


Keys = NDArray[np.uint32]

FIELDS = ("word", "prefix", "tag", "fine")
PREFIX = 5  # letters of a word that "prefix" keeps
N_BUCKETS = 8  # of distances; bucket 0 stands for "any"


class ArcTemplates(NamedTuple):
    """Which features an arc has.

    A side of a template is a string of fields of one token, separated by spaces: "word" (lower
    case), "prefix" (its first five letters), "tag", "fine" (the second, finer tag), each with an
    optional neighbour such as "tag-1" or "fine+2". An empty side stands for nothing.

    Attributes
    ----------
    arcs : tuple of (head side, modifier side)
        Each makes two features: with the direction, and with direction and distance.
    between : tuple of (head side, modifier side, field)
        A feature for each distinct value of the field between head and modifier.
    labels : tuple of (head side, modifier side)
        Features of an arc and its label together.
    """

    arcs: tuple[tuple[str, str], ...]
    between: tuple[tuple[str, str, str], ...]
    labels: tuple[tuple[str, str], ...]


def check_templates(templates: ArcTemplates) -> None:
    """Raise ValueError for a template of a field that there is not."""
    for sides in (*templates.arcs, *templates.between, *templates.labels):
        for side in sides:
            for part in side.split():
                field_and_shift(part)


def field_and_shift(part: str) -> tuple[str, int]:
    """A field, and how far the neighbour is that it is taken from: of tag-1, -1."""
    name = part.rstrip("+-0123456789")
    if name not in FIELDS:
        raise ValueError(f"unknown field {part!r} in a template; there are {', '.join(FIELDS)}")
    try:
        return name, int(part[len(name) :] or 0)
    except ValueError:
        raise ValueError(
            f"bad neighbour {part!r} in a template; expected {name}-1, {name}+2, ..."
        ) from None


def _around(field: str) -> list[tuple[str, str]]:
    """Field of both ends with one neighbour of each, or of one of them."""
    before, after = f"{field}-1 {field}", f"{field} {field}+1"
    return [(after, before), (before, before), (after, after), (before, after)]


#: Fields of a token and its neighbours that count on either side of an arc by themselves.
_ALONE = (
    "word",
    "fine",
    "word fine",
    "fine fine-1",
    "fine fine+1",
    "fine-1 fine fine+1",
    "fine fine+1 fine+2",
    "fine-2 fine-1 fine",
    "fine word+1",
    "word-1 fine",
)

DEFAULT_TEMPLATES = ArcTemplates(
    arcs=(
        *((side, "") for side in _ALONE),
        *(("", side) for side in _ALONE),
        ("word fine", "fine"),
        ("fine", "word fine"),
        ("word", "word"),
        ("word", "tag"),
        ("tag", "word"),
        ("fine", "fine"),
        ("tag", "tag"),
        *_around("fine"),
        *_around("tag"),
    ),
    between=(("fine", "fine", "fine"), ("tag", "tag", "tag")),
    labels=(
        *((side, "") for side in ("word", "fine", "word fine", "fine-1 fine fine+1")),
        *(("", side) for side in ("word", "fine", "word fine", "fine-1 fine fine+1", "prefix")),
        ("fine", "fine"),
        ("word", "fine"),
        ("fine", "word"),
    ),
)


def arc_templates() -> ArcTemplates:
    """Templates that `DependencyParser` takes by default (McDonald et al. 2005).

    Returns
    -------
    ArcTemplates
        A named tuple; ``_replace`` makes another one.

    Examples
    --------
    >>> templates = arc_templates()
    >>> templates.arcs[-1]
    ('tag-1 tag', 'tag tag+1')
    >>> templates._replace(between=()).between
    ()
    """
    return DEFAULT_TEMPLATES


class TokenFields(NamedTuple):
    """Hashed fields of the nodes of many sentences; node 0 of each is the root.

    Attributes
    ----------
    values : dict of str to array of uint64
        For each of the fields, a hash of its value at every node.
    bounds : array of int64, shape (n_sentences + 1,)
        Nodes of sentence i are ``bounds[i]:bounds[i + 1]``.
    """

    values: dict[str, Hashes]
    bounds: Ints

    @classmethod
    def of(
        cls, sentences: Iterable[Sequence[Sequence[str]]], known: dict[str, int] | None = None
    ) -> TokenFields:
        """Hash the tokens ``(word, tag)`` or ``(word, tag, fine tag)`` of sentences.

        ``known`` holds hashes of strings, and gets those of new ones: several calls may share it.
        """
        root = ("\0root",) * 3
        nodes: list[Sequence[str]] = []
        bounds = [0]
        for tokens in sentences:
            nodes.append(root)
            nodes.extend(tokens)
            bounds.append(len(nodes))
        words = [node[0] for node in nodes]
        lower = {word: word.lower() for word in set(words)}
        hashes = {} if known is None else known
        values = {
            "word": _hash_strings(words, hashes, lower),
            "prefix": _hash_strings(
                words, hashes, {word: low[:PREFIX] for word, low in lower.items()}
            ),
            "tag": _hash_strings([node[1] for node in nodes], hashes),
            "fine": _hash_strings([node[-1] for node in nodes], hashes),
        }
        return cls(values, np.array(bounds, dtype=np.int64))


#: Groups of columns in `ArcKeys.keys`, in their order.
(
    PAIR_HEAD,
    PAIR_MODIFIER,
    ALONE_HEAD,
    ALONE_MODIFIER,
    BETWEEN_HEAD,
    BETWEEN_MODIFIER,
    BETWEEN_VALUE,
    LABEL_PAIR_HEAD,
    LABEL_PAIR_MODIFIER,
    LABEL_ALONE_HEAD,
    LABEL_ALONE_MODIFIER,
) = range(11)

#: What is hashed besides the number of the template; nothing for heads.
ROLES = {
    PAIR_MODIFIER: " modifier",
    ALONE_MODIFIER: " modifier",
    BETWEEN_MODIFIER: " modifier",
    BETWEEN_VALUE: " between",
    LABEL_PAIR_MODIFIER: " modifier",
    LABEL_ALONE_MODIFIER: " modifier",
}


class ArcKeys(NamedTuple):
    """What the kernels need to know of the tokens: the keys of all nodes, template by template.

    Columns ``starts[g]`` to ``starts[g + 1] - 1`` of ``keys`` are those of group g: the sides of
    templates with two sides, with one, of those for what is between, and the same for labels.
    ``same[node, t]`` has the previous and the next node (counted within the sentence) with the
    same value of the field of between template t.
    """

    bounds: Ints
    keys: Keys
    starts: Ints
    same: Ints32
    buckets: NDArray[np.uint32]
    n_weights: int
    n_rows: int
    n_labels: int


def arc_keys(
    fields: TokenFields,
    templates: ArcTemplates,
    hash_bits: int,
    n_labels: int = 0,
    *,
    sides_apart: bool = True,
) -> ArcKeys:
    """Compute the keys of all nodes.

    Parameters
    ----------
    fields : TokenFields
        The nodes.
    templates : ArcTemplates
        What to hash.
    hash_bits : int
        There are ``2 ** hash_bits`` weights for arcs.
    n_labels : int
        Number of labels; 0 for trees without labels. Labels have ``2 ** (hash_bits - 5)`` rows of
        ``n_labels`` weights behind those of the arcs.
    sides_apart : bool
        Whether the same fields have other keys in a head than in a modifier. The first models had
        not: "noun <- verb" was "verb <- noun", and all pairs of two equal values were one feature.

    Returns
    -------
    ArcKeys
    """
    groups = columns_of(templates, labeled=n_labels > 0)
    sides = _hashed_sides(groups, [value for *_, value in templates.between], sides_apart)
    n_nodes = int(fields.bounds[-1])
    keys = np.empty((n_nodes, len(sides.columns)), dtype=np.uint32)
    same = np.empty((n_nodes, len(sides.between), 2), dtype=np.int32)
    hashes = np.array([fields.values[name] for name in FIELDS])
    work = np.empty(len(sides.seeds), np.uint64), np.empty(same.shape[:2], np.uint64)
    with np.errstate(over="ignore"):  # the low bits are meant; NumPy would warn without compilation
        fill_keys(sides, hashes, fields.bounds, *work, keys, same)
    return ArcKeys(
        fields.bounds,
        keys,
        np.cumsum([0] + [len(group) for group in groups]),
        same,
        _distance_buckets(int(np.diff(fields.bounds).max(initial=1))),
        2**hash_bits,
        2 ** (hash_bits - 5) if n_labels else 0,
        n_labels,
    )


def columns_of(templates: ArcTemplates, *, labeled: bool) -> list[list[tuple[int, str]]]:
    """For each group of columns, the number and side of its templates."""
    arcs, between = enumerate(templates.arcs), list(enumerate(templates.between, start=2000))
    labels = enumerate(templates.labels if labeled else (), start=1000)
    return [
        *_by_sides([(t, *sides) for t, sides in arcs]),
        *([(t, parts[which]) for t, parts in between] for which in range(3)),
        *_by_sides([(t, *sides) for t, sides in labels]),
    ]


def _by_sides(templates: list[tuple[int, str, str]]) -> list[list[tuple[int, str]]]:
    """Both sides of those with two, then the heads and the modifiers of those with one."""
    return [
        [(t, head) for t, head, modifier in templates if head and modifier],
        [(t, modifier) for t, head, modifier in templates if head and modifier],
        [(t, head) for t, head, modifier in templates if not modifier],
        [(t, modifier) for t, head, modifier in templates if not head],
    ]


def _distance_buckets(longest: int) -> NDArray[np.uint32]:
    """Buckets of the distances below ``longest``: 1, 2, 3, 4, 5, 6 to 10, above."""
    distance = np.arange(longest + 1)
    return np.where(distance > 10, 7, np.minimum(distance, 6)).astype(np.uint32)


# ----- hashing ----------------------------------------------------------------------------------


def _hash_string(text: str) -> int:
    """64 bits that depend on nothing but the text, so that models can be kept."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _hash_strings(
    texts: list[str], known: dict[str, int], written: dict[str, str] | None = None
) -> Hashes:
    """Hash each text, or what stands for it in ``written``; see `TokenFields.of`."""
    forms = written if written is not None else {text: text for text in set(texts)}
    numbers = {}
    for text, form in forms.items():
        number = known.get(form)
        if number is None:
            number = known[form] = _hash_string(form)
        numbers[text] = number
    return np.fromiter(map(numbers.__getitem__, texts), np.uint64, len(texts))


def _hashed_sides(
    groups: list[list[tuple[int, str]]], between: list[str], sides_apart: bool
) -> HashedSides:
    """What the kernel needs to know of templates."""
    chosen = [(group, *column) for group, columns in enumerate(groups) for column in columns]
    numbers: dict[str, int] = {}
    for side in (*(side for *_, side in chosen if side), *between):
        numbers.setdefault(side, len(numbers))
    parts = [[field_and_shift(part) for part in side.split()] for side in numbers]
    factors = [
        _hash_string(f"template {number}{ROLES.get(group, '') if sides_apart else ''}") | 1
        for group, number, _ in chosen
    ]
    return HashedSides(
        np.array([_hash_string(side) for side in numbers], np.uint64),
        np.array(
            [(FIELDS.index(name), shift) for own in parts for name, shift in own], np.int64
        ).reshape(-1, 2),
        np.cumsum([0, *map(len, parts)]),
        np.array([numbers.get(side, -1) for *_, side in chosen], np.int64),
        np.array(factors, np.uint64),
        np.array([numbers[side] for side in between], np.int64),
        np.array([_hash_string("outside")], np.uint64),
    )


ROOT, OUTSIDE = "(root)", "(outside)"
DISTANCES = ("", "1", "2", "3", "4", "5", "6-10", "> 10")  # of the buckets


def arc_feature_names(
    templates: ArcTemplates,
    sentence: Sequence[Sequence[str]],
    arcs: ArcKeys,
    head: int,
    modifier: int,
    label: str | None = None,
) -> list[str]:
    """Names of the features of an arc of a single sentence, whose nodes are counted from the root.

    Without a label those of labels are left out.
    """
    return list(_names(templates, sentence, arcs, head, modifier, label))


def _names(
    templates: ArcTemplates,
    sentence: Sequence[Sequence[str]],
    arcs: ArcKeys,
    head: int,
    modifier: int,
    label: str | None,
) -> Iterator[str]:
    """See `arc_feature_names`."""
    groups = columns_of(templates, labeled=label is not None)

    def sides(pair: tuple[int, int], one_head: int, one_modifier: int) -> Iterator[str]:
        for (_, a), (_, b) in zip(groups[pair[0]], groups[pair[1]], strict=True):
            yield f"{_side(sentence, a, head)} <- {_side(sentence, b, modifier)}"
        yield from (f"head {_side(sentence, a, head)}" for _, a in groups[one_head])
        yield from (f"word {_side(sentence, b, modifier)}" for _, b in groups[one_modifier])

    way = "head before" if head < modifier else "head behind"
    distance = f"distance {DISTANCES[int(arcs.buckets[abs(head - modifier)])]}"
    for name in sides((PAIR_HEAD, PAIR_MODIFIER), ALONE_HEAD, ALONE_MODIFIER):
        yield f"{name}, {way}"
        yield f"{name}, {way}, {distance}"
    if label is not None:
        for name in sides(
            (LABEL_PAIR_HEAD, LABEL_PAIR_MODIFIER), LABEL_ALONE_HEAD, LABEL_ALONE_MODIFIER
        ):
            yield f"{label}: {name}, {way}"
    low, high = min(head, modifier), max(head, modifier)
    between = zip(
        groups[BETWEEN_HEAD], groups[BETWEEN_MODIFIER], groups[BETWEEN_VALUE], strict=True
    )
    for t, ((_, a), (_, b), (_, value)) in enumerate(between):
        ends = f"{_side(sentence, a, head)} <- {_side(sentence, b, modifier)}, {way}"
        for node in range(low + 1, high):
            if arcs.same[node, t, 0] <= low:  # what comes twice counts once
                yield f"{ends}, {_side(sentence, value, node)} between"


def _side(sentence: Sequence[Sequence[str]], side: str, node: int) -> str:
    """The fields of a template's side at a node."""
    return " ".join(f"{part}={_value(sentence, part, node)}" for part in side.split())


def _value(sentence: Sequence[Sequence[str]], part: str, node: int) -> str:
    """One field; what `TokenFields` hashes."""
    name, shift = field_and_shift(part)
    place = node + shift
    if not 0 <= place <= len(sentence):
        return OUTSIDE
    if place == 0:
        return ROOT
    token = sentence[place - 1]
    if name in ("word", "prefix"):
        word = token[0].lower()
        return word[:PREFIX] if name == "prefix" else word
    return token[1] if name == "tag" else token[-1]
