"""Brute-force twin of dependency trees: all trees are listed, all features spelled out.

The hashing is written again from its description, in plain Python integers.
"""

import hashlib
import itertools

import numpy as np

from brute import Twin
from cases import Case
from maxmargin.problems.dependency.features import ArcTemplates, TokenFields
from maxmargin.problems.dependency.problem import DependencyProblem

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


def key(tokens, node, number, side, role):
    """The key of a node for one side of a template."""
    if not side:
        return 0
    total = hash_string(side)
    for part in side.split():
        total = mix(total ^ field(tokens, node, part))
    return ((total * (hash_string(f"template {number}{role}") | 1)) & ALL_BITS) >> 32


def bucket(distance):
    if distance <= 5:
        return distance
    return 6 if distance <= 10 else 7


def arc_psi(tokens, h, m, label, templates, hash_bits, n_labels):
    """Indices of the features of an arc, with repetitions."""
    size, rows = 2**hash_bits, 2 ** (hash_bits - 5)
    direction = RIGHT if h < m else LEFT

    def base(number, head_side, modifier_side):
        head = key(tokens, h, number, head_side, "")
        return head ^ key(tokens, m, number, modifier_side, " modifier") ^ direction

    for number, (head_side, modifier_side) in enumerate(templates.arcs):
        place = base(number, head_side, modifier_side) % size
        yield place
        yield place ^ bucket(abs(h - m))
    for number, (head_side, modifier_side, part) in enumerate(templates.between, 2000):
        nodes = range(min(h, m) + 1, max(h, m))
        for value in {key(tokens, b, number, part, " between") for b in nodes}:
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
        self.arcs = {}

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
        arcs = [self.arc(i, h, m, label) for m, (h, label) in enumerate(y, 1)]
        return np.bincount(np.concatenate(arcs), minlength=self.n_features).astype(np.float64)

    def arc(self, i, h, m, label):
        """Indices of the features of an arc, with repetitions."""
        if (i, h, m, label) not in self.arcs:
            options = self.templates, self.hash_bits, self.n_labels
            self.arcs[i, h, m, label] = list(arc_psi(self.sentences[i], h, m, label, *options))
        return self.arcs[i, h, m, label]

    def loss(self, i, y):
        wrong = sum(a != b for a, b in zip(self.trees[i], y, strict=True))
        if self.loss_name == "zero_one":
            return float(wrong > 0)
        return wrong / len(y) if self.loss_name == "normalized_hamming" else float(wrong)


# ----- random problems ---------------------------------------------------------------------------

FEW_TEMPLATES = ArcTemplates(
    arcs=(("tag", ""), ("", "word"), ("tag", "tag"), ("fine fine+1", "fine-1 fine")),
    between=(("tag", "tag", "tag"),),
    labels=(("tag", ""), ("", "prefix"), ("tag", "fine")),
)
HASH_BITS = 8


def random_sentence(rng, n):
    words = rng.choice(["the", "The", "cat", "mattress", "mattresses"], n)
    return [(str(word), str(rng.choice(["D", "N"])), str(rng.integers(3))) for word in words]


def tree_case(
    rng,
    *,
    lengths=(3, 1, 2),
    n_labels=0,
    loss="hamming",
    projective=True,
    single_root=True,
    templates=FEW_TEMPLATES,
):
    """Random sentences; true trees are drawn from all trees, projective or not."""
    sentences = [random_sentence(rng, n) for n in lengths]
    trees = []
    for n in lengths:
        listed = all_trees(n, projective=False, single_root=single_root)
        heads = listed[rng.integers(len(listed))]
        labels = rng.integers(0, n_labels, n).tolist() if n_labels else [None] * n
        trees.append(tuple(zip(heads, labels, strict=True)))
    options = {"loss": loss, "projective": projective, "single_root": single_root}
    heads = [h for tree in trees for h, _ in tree]
    labels = [label for tree in trees for _, label in tree] if n_labels else None
    problem = DependencyProblem(
        TokenFields.of(sentences),
        heads,
        labels,
        n_labels or None,
        templates=templates,
        hash_bits=HASH_BITS,
        **options,
    )
    return Case(problem, TreeTwin(sentences, trees, n_labels, templates, HASH_BITS, **options))


def as_output(heads, labels):
    names = [None if label < 0 else label for label in labels.tolist()]
    return tuple(zip(heads.tolist(), names, strict=True))


def decode_trees(case, w):
    fields = TokenFields.of(case.twin.sentences)
    found = case.problem.decoder.decode(fields, w)
    bounds = itertools.pairwise(fields.bounds)
    return [as_output(found.heads[a + 1 : b], found.labels[a + 1 : b]) for a, b in bounds]


def rank_trees(case, w, k):
    ranked = case.problem.decoder.decode_k_best(TokenFields.of(case.twin.sentences), w, k)
    return [
        [(as_output(tree.heads[1:], tree.labels[1:]), tree.score) for tree in trees]
        for trees in ranked
    ]
