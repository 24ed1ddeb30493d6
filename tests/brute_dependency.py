"""Brute-force twin of dependency trees: all trees are listed, all features spelled out.

The hashing is written again from its description, in plain Python integers.
"""

import hashlib
import itertools

import numpy as np

from brute import Twin

LEFT, RIGHT = 0x5BD1E995, 0xB5297A4D
ALL_BITS = 2**64 - 1


def hash_string(text):
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def mix(value):
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & ALL_BITS
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & ALL_BITS
    return value ^ (value >> 31)


def field(tokens, node, part):
    """Hash of a field such as "tag" or "word-1" of a node; node 0 is the root."""
    name = part.rstrip("+-0123456789")
    node += int(part[len(name) :] or 0)
    if not 0 <= node <= len(tokens):
        return hash_string("outside")
    if node == 0:
        return hash_string("\0root"[:5] if name == "prefix" else "\0root")
    word, *tags = tokens[node - 1]
    text = {"word": word.lower(), "prefix": word.lower()[:5], "tag": tags[0], "fine": tags[-1]}
    return hash_string(text[name])


def key(tokens, node, number, side):
    """The key of a node for one side of a template."""
    if not side:
        return 0
    total = hash_string(side)
    for part in side.split():
        total = mix(total ^ field(tokens, node, part))
    return ((total * (hash_string(f"template {number}") | 1)) & ALL_BITS) >> 32


def bucket(distance):
    if distance <= 5:
        return distance
    return 6 if distance <= 10 else 7


def arc_psi(tokens, h, m, label, templates, hash_bits, n_labels):
    """Indices of the features of an arc, with repetitions."""
    size, rows = 2**hash_bits, 2 ** (hash_bits - 5)
    direction = RIGHT if h < m else LEFT

    def base(number, head_side, modifier_side):
        head = key(tokens, h, number, head_side)
        return head ^ key(tokens, m, number, modifier_side) ^ direction

    for number, (head_side, modifier_side) in enumerate(templates.arcs):
        place = base(number, head_side, modifier_side) % size
        yield place
        yield place ^ bucket(abs(h - m))
    for number, (head_side, modifier_side, part) in enumerate(templates.between, 2000):
        nodes = range(min(h, m) + 1, max(h, m))
        for value in {key(tokens, b, number, part) for b in nodes}:
            yield (base(number, head_side, modifier_side) ^ value) % size
    if label is not None:
        for number, (head_side, modifier_side) in enumerate(templates.labels, 1000):
            row = base(number, head_side, modifier_side) % rows
            yield size + row * n_labels + label


def is_tree(heads, single_root):
    if single_root and heads.count(0) != 1:
        return False
    for node in range(1, len(heads) + 1):
        for _ in heads:
            node = heads[node - 1] if node else 0
        if node:
            return False
    return True


def is_projective(heads):
    """Every node between a head and its modifier descends from the head."""
    for m, h in enumerate(heads, 1):
        for node in range(min(h, m) + 1, max(h, m)):
            while node not in (0, h):
                node = heads[node - 1]
            if node != h:
                return False
    return True


def all_trees(n, *, projective, single_root):
    candidates = itertools.product(range(n + 1), repeat=n)
    return [
        heads
        for heads in candidates
        if is_tree(heads, single_root) and (not projective or is_projective(heads))
    ]


class TreeTwin(Twin):
    """Outputs are tuples of (head, label), label None without labels."""

    def __init__(
        self, sentences, trees, n_labels, templates, hash_bits, *, loss, projective, single_root
    ):
        self.sentences, self.trees, self.n_labels = sentences, trees, n_labels
        self.templates, self.hash_bits = templates, hash_bits
        self.loss_name = loss
        self.options = {"projective": projective, "single_root": single_root}
        self.n_examples = len(sentences)
        self.n_features = 2**hash_bits + 2 ** (hash_bits - 5) * n_labels

    def truth(self, i):
        return self.trees[i]

    def outputs(self, i):
        labels = range(self.n_labels) if self.n_labels else [None]
        listed = []
        for heads in all_trees(len(self.trees[i]), **self.options):
            for chosen in itertools.product(labels, repeat=len(heads)):
                listed.append(tuple(zip(heads, chosen, strict=True)))
        return listed

    def psi(self, i, y):
        psi = np.zeros(self.n_features)
        for m, (h, label) in enumerate(y, 1):
            features = arc_psi(
                self.sentences[i], h, m, label, self.templates, self.hash_bits, self.n_labels
            )
            for index in features:
                psi[index] += 1.0
        return psi

    def loss(self, i, y):
        wrong = sum(a != b for a, b in zip(self.trees[i], y, strict=True))
        if self.loss_name == "zero-one":
            return float(wrong > 0)
        return wrong / len(y) if self.loss_name == "normalized-hamming" else float(wrong)
