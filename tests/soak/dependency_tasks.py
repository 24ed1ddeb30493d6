"""Dependency trees of short sentences, with the hashing of features written again."""

import hashlib
from functools import partial
from itertools import product

import numpy as np

import maxmargin as mm
from maxmargin.problems.dependency.features import ArcTemplates

from .label_tasks import LOSSES, count_loss, n_different
from .listing import Example, Task

LEFT, RIGHT = 0x5BD1E995, 0xB5297A4D
LOW = 2**64 - 1


def hash_text(text):
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def mix(value):
    """The finaliser of SplitMix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = ((value ^ value >> shift) * factor) & LOW
    return value ^ value >> 31


def side_key(tokens, node, number, side, role=""):
    """Key of a node for one side of a template; node 0 is the root, as a token of its own."""
    if not side:
        return 0
    total = hash_text(side)
    for part in side.split():
        field = part.rstrip("+-0123456789")
        place = node + int(part[len(field) :] or 0)
        value = "outside"
        if 0 <= place < len(tokens):
            word, tag, fine = tokens[place]
            value = {"word": word, "prefix": word[:5], "tag": tag, "fine": fine}[field]
        total = mix(total ^ hash_text(value))
    return (total * (hash_text(f"template {number}{role}") | 1) & LOW) >> 32


def arc_places(tokens, h, m, label, templates, bits, n_labels):
    """Where the weights of an arc are, and those of its label."""
    turn = RIGHT if h < m else LEFT
    distance = abs(h - m)
    bucket = distance if distance < 6 else 6 + (distance > 10)

    def key(number, sides):
        head = side_key(tokens, h, number, sides[0])
        return head ^ side_key(tokens, m, number, sides[1], " modifier") ^ turn

    for number, sides in enumerate(templates.arcs):
        place = key(number, sides) % 2**bits
        yield from (place, place ^ bucket)
    for number, (*sides, field) in enumerate(templates.between, 2000):
        between = range(min(h, m) + 1, max(h, m))
        for value in {side_key(tokens, node, number, field, " between") for node in between}:
            yield (key(number, sides) ^ value) % 2**bits
    if label is not None:
        for number, sides in enumerate(templates.labels, 1000):
            yield 2**bits + key(number, sides) % 2 ** (bits - 5) * n_labels + label


def ancestors(heads, node):
    """Nodes above one, the root last; None if there is a circle."""
    met = []
    while node != 0:
        node = heads[node - 1]
        if node in met:
            return None
        met.append(node)
    return met


def is_tree(heads, single_root):
    if single_root and heads.count(0) != 1:
        return False
    return all(ancestors(heads, m) is not None for m in range(1, len(heads) + 1))


def is_projective(heads):
    return all(
        h in [node, *ancestors(heads, node)]
        for m, h in enumerate(heads, 1)
        for node in range(min(h, m) + 1, max(h, m))
    )


SIDES = ("word", "tag", "fine", "tag-1 tag", "tag tag+1", "prefix fine", "")


def random_sides(rng, least):
    """Random templates with a side at least on one end."""
    pairs = [(a, b) for a in SIDES for b in SIDES if a or b]
    chosen = rng.choice(len(pairs), int(rng.integers(least, 5)), replace=False)
    return tuple(pairs[k] for k in chosen)


def dependencies(rng):
    """Dependency trees, projective or not, labelled or not, with one root or several."""
    labeled = bool(rng.random() < 0.4)
    projective, single_root = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
    most = 3 if labeled else 4
    labels = ["x", "y"] if labeled else [None]
    field = str(rng.choice(["tag", "fine"]))
    between = ((*random_sides(rng, 1)[0], field),) if rng.random() < 0.5 else ()
    templates = ArcTemplates(random_sides(rng, 1), between, random_sides(rng, 1))
    loss = str(rng.choice(LOSSES))
    root = ("\0root", "\0root", "\0root")
    X, Y, listed = [], [], []
    for _ in range(int(rng.integers(1, 6))):
        n = int(rng.integers(1, most + 1))
        tags = rng.choice(["D", "N", "V"], n).tolist()
        X.append(
            [
                (f"{tag.lower()}word{rng.integers(3)}", tag, f"{tag}{k}")
                for k, tag in enumerate(tags)
            ]
        )
        every = [h for h in product(range(n + 1), repeat=n) if is_tree(h, single_root)]
        truth = every[int(rng.integers(len(every)))]
        Y.append(tuple(zip(truth, rng.choice(labels, n).tolist(), strict=True)))
        kept = [heads for heads in every if not projective or is_projective(heads)]
        chosen = product(kept, product(range(len(labels)), repeat=n))
        listed.append(
            [tuple((h, labels[k]) for h, k in zip(*pair, strict=True)) for pair in chosen]
        )
    found = sorted({label for y in Y for _, label in y} - {None})
    listed = [
        [y for y in outputs if all(label is None or label in found for _, label in y)]
        for outputs in listed
    ]
    bits = int(rng.integers(8, 10))

    def psi(model, tokens, y):
        total = np.zeros(len(model.result_.w))
        for m, (h, label) in enumerate(y, 1):
            code = None if label is None else found.index(label)
            for place in arc_places([root, *tokens], h, m, code, templates, bits, len(found)):
                total[place] += 1.0
        return total

    def examples(model):
        return [
            Example.of(
                y,
                partial(psi, model, tokens),
                lambda z, y=y: count_loss(loss, n_different(z, y), len(y)),
                outputs,
            )
            for tokens, y, outputs in zip(X, Y, listed, strict=True)
        ]

    def key(tree):
        return tuple(tree) if labeled else tuple((int(h), None) for h in tree)

    given = [[tuple(arc) if labeled else arc[0] for arc in y] for y in Y]
    options = {"projective": projective, "labeled": labeled, "single_root": single_root}
    return Task(
        "dependencies",
        partial(mm.DependencyParser, loss=loss, features=templates, hash_bits=bits, **options),
        X,
        given,
        examples,
        key,
        len(Y),
        refusals=[(X[:-1], given), (X, [[9] * len(y) for y in Y]), ([], [])],
    )
