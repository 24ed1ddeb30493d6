"""Synthetic data: tagged sentences, alignments, figures of parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..formats.columns import TokenColumns
from ..utils.types import Floats, Ints

__all__ = [
    "FACE_PARTS",
    "FACE_TREE",
    "DigitWords",
    "Faces",
    "HomologueSearch",
    "make_digit_words",
    "make_faces",
    "make_homologues",
    "make_sentences",
]

_N_TAGS = 12
_N_WORDS = 60_000  # of all tags together
_SHORTEST, _LONGEST = 4, 36
_AT_A_TIME = 5_000
_MISPLACED = 0.03  # share of words that are those of another tag
_LETTERS = "etaonrishdlucm"


def make_sentences(n_sentences: int, *, random_state: int = 0) -> Iterator[TokenColumns]:
    """Make tagged sentences, a few thousand at a time.

    Tags follow a Markov chain in which most steps lead to one of four successors of a tag. Words
    are drawn by the tag, the r-th most frequent about as often as 1 / r; the last letters of most
    tell their tag, and some are those of another. A sentence has 20 words on average.

    Parameters
    ----------
    n_sentences : int
        How many there are to be. The first of many are the same as those of few.
    random_state : int, default=0
        Seed.

    Yields
    ------
    TokenColumns
        Up to 5,000 sentences, with words in the first column and tags in the second.

    Examples
    --------
    >>> part = next(make_sentences(100))
    >>> part.n_sequences, len(part.columns)
    (100, 2)
    """
    if n_sentences < 1:
        raise ValueError(f"expected at least one sentence, got n_sentences={n_sentences}")
    grammar = np.random.default_rng([random_state, 0])
    steps = _random_steps(grammar)
    words, frequencies = _random_words(grammar)
    tags = [f"T{k}" for k in range(_N_TAGS)]
    for part, first in enumerate(range(0, n_sentences, _AT_A_TIME), 1):
        # A whole part is drawn also where a piece of it is wanted: the first are always the same.
        rng = np.random.default_rng([random_state, part])
        lengths = rng.integers(_SHORTEST, _LONGEST + 1, _AT_A_TIME)
        drawn = _random_tags(rng, steps, lengths)
        seen_as = np.where(
            rng.random(len(drawn)) < _MISPLACED, rng.integers(_N_TAGS, size=len(drawn)), drawn
        )
        ranks = np.searchsorted(frequencies, rng.random(len(drawn)))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        offsets = offsets[: min(_AT_A_TIME, n_sentences - first) + 1]
        n_tokens = int(offsets[-1])
        chosen = (ranks * _N_TAGS + seen_as)[:n_tokens].tolist()
        columns = [[words[i] for i in chosen], [tags[k] for k in drawn[:n_tokens].tolist()]]
        yield TokenColumns(columns, offsets)


def _random_steps(rng: np.random.Generator) -> Floats:
    """Sums of the probabilities of each tag's successors; the last row is for first tags."""
    shares = np.full((_N_TAGS + 1, _N_TAGS), 0.01)
    for row in shares:
        row[rng.permutation(_N_TAGS)[:4]] += rng.dirichlet(np.ones(4))
    return np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)


def _random_words(rng: np.random.Generator) -> tuple[list[str], Floats]:
    """Words, those of equal rank side by side; and sums of the frequencies of the ranks."""
    per_tag = _N_WORDS // _N_TAGS
    letters = list(_LETTERS)
    endings = ["".join(rng.choice(letters, 2)) for _ in range(_N_TAGS)]
    words = []
    for rank in range(per_tag):
        stem, rest = "", rank + 1
        while rest:
            rest, digit = divmod(rest, len(letters))
            stem += letters[digit]
        for tag in range(_N_TAGS):
            ending = endings[tag if rng.random() < 0.7 else int(rng.integers(_N_TAGS))]
            words.append(f"{stem}{letters[tag]}{ending}")
    frequencies = 1.0 / np.arange(1, per_tag + 1)
    return words, np.cumsum(frequencies / frequencies.sum())


def _random_tags(rng: np.random.Generator, steps: Floats, lengths: Ints) -> Ints:
    """Tags of sentences of these lengths, one after the other."""
    table = np.empty((len(lengths), _LONGEST), np.int64)
    tag = np.full(len(lengths), _N_TAGS)
    for t in range(_LONGEST):
        tag = (steps[tag] < rng.random(len(lengths))[:, None]).sum(axis=1)
        tag = np.minimum(tag, _N_TAGS - 1)  # sums may end a little below 1
        table[:, t] = tag
    return table[np.arange(_LONGEST) < lengths[:, None]]


LETTERS = "ABCDEFGHIJKLMNOPQRST"
_MATCH, _SUBSTITUTE, _INSERT, _DELETE = range(4)


class HomologueSearch(NamedTuple):
    """Strings, and for each of them candidates of which one is its homologue.

    Attributes
    ----------
    natives : list of str
        One string for each example.
    candidates : list of list of str
        The homologue of the string and its decoys, in random order.
    homologues : ndarray of int64, shape (n_examples,)
        Which of the candidates is the homologue.
    alignments : list of ndarray of int64, shape (n_pairs, 2)
        Paired positions in the native and in the homologue.
    """

    natives: list[str]
    candidates: list[list[str]]
    homologues: Ints
    alignments: list[Ints]


def make_homologues(
    n_examples: int = 100,
    *,
    n_decoys: int = 10,
    length: int = 50,
    n_operations: int = 30,
    operations: Sequence[float] = (0.2, 0.4, 0.2, 0.2),
    random_state: int | np.random.Generator | None = 0,
) -> HomologueSearch:
    """Make the synthetic data of Tsochantaridis et al. (2005), section 5.3.

    Letter c = 1..20 of the alphabet A..T has probability c / 210 wherever a letter is drawn. A
    homologue comes from a stretch of its native at a random place: operations drawn one by one
    copy a letter, replace it by the next of the alphabet (T by A), insert a drawn one, or leave
    one out. Drawn letters around the result, at a random place, fill it up to the full length.
    Decoys are drawn.

    Parameters
    ----------
    n_examples : int, default=100
        Number of native strings.
    n_decoys : int, default=10
        Candidates of each that are not related to it.
    length : int, default=50
        Length of all strings.
    n_operations : int, default=30
        Number of operations that make the related part of a homologue.
    operations : sequence of 4 floats, default=(0.2, 0.4, 0.2, 0.2)
        Probabilities of match, substitution, insertion and deletion.
    random_state : int, Generator or None, default=0
        Seed; the same seed gives the same strings.

    Returns
    -------
    HomologueSearch

    Examples
    --------
    >>> data = make_homologues(3, n_decoys=2)
    >>> len(data.natives), len(data.candidates[0]), len(data.natives[0])
    (3, 3, 50)
    """
    if n_examples < 1 or n_decoys < 0:
        raise ValueError(f"expected n_examples >= 1 and n_decoys >= 0: {n_examples}, {n_decoys}")
    if not 0 <= n_operations <= length:
        raise ValueError(f"expected 0 <= n_operations <= length: {n_operations}, {length}")
    chances = np.asarray(operations, dtype=np.float64)
    if chances.shape != (4,) or chances.min() < 0 or not np.isclose(chances.sum(), 1.0):
        raise ValueError(f"operations must be 4 probabilities that sum to 1, got {operations!r}")
    rng = np.random.default_rng(random_state)
    data = HomologueSearch([], [], np.empty(n_examples, np.int64), [])
    for i in range(n_examples):
        native = _draw(rng, length)
        homologue, pairs = _mutate(rng, native, rng.choice(4, n_operations, p=chances))
        strings = [_draw(rng, length) for _ in range(n_decoys)]
        place = int(rng.integers(n_decoys + 1))
        strings.insert(place, homologue)
        data.natives.append(_spell(native))
        data.candidates.append([_spell(codes) for codes in strings])
        data.homologues[i] = place
        data.alignments.append(pairs)
    return data


def _draw(rng: np.random.Generator, length: int) -> Ints:
    """Random letters."""
    weights = np.arange(1.0, len(LETTERS) + 1.0)
    return rng.choice(len(LETTERS), length, p=weights / weights.sum())


def _spell(codes: Ints) -> str:
    """Letters of codes."""
    return "".join(LETTERS[c] for c in codes)


def _mutate(rng: np.random.Generator, native: Ints, operations: Ints) -> tuple[Ints, Ints]:
    """A homologue of a string, and the pairs of positions they share."""
    n_read = int((operations != _INSERT).sum())
    n_written = int((operations != _DELETE).sum())
    i = int(rng.integers(len(native) - n_read + 1))
    j = int(rng.integers(len(native) - n_written + 1))
    homologue = _draw(rng, len(native))  # letters that no operation writes stay as they are
    pairs = []
    for operation in operations:
        if operation in (_MATCH, _SUBSTITUTE):
            homologue[j] = (native[i] + (operation == _SUBSTITUTE)) % len(LETTERS)
            pairs.append((i, j))
        i += operation != _INSERT
        j += operation != _DELETE
    return homologue, np.array(pairs, dtype=np.int64).reshape(-1, 2)


#: Names of the parts, and where they are in a face of unit size, (row, column) from its middle.
FACE_PARTS = {
    "nose": (0.06, 0.0),
    "left eye": (-0.16, -0.2),
    "right eye": (-0.16, 0.2),
    "left brow": (-0.31, -0.22),
    "right brow": (-0.31, 0.22),
    "left of mouth": (0.24, -0.15),
    "right of mouth": (0.24, 0.15),
    "chin": (0.42, 0.0),
}
#: Edges of a tree of the parts, by their numbers.
FACE_TREE = ((0, 1), (0, 2), (1, 3), (2, 4), (0, 5), (5, 6), (0, 7))


class Faces(NamedTuple):
    """Images of faces for training and for testing.

    Attributes
    ----------
    X_train, X_test : ndarray of float64, shape (n_faces, size, size)
        Grey images, values around 0.
    y_train, y_test : ndarray of int64, shape (n_faces, 8, 2)
        Row and column of each part, in the order of `FACE_PARTS`.
    """

    X_train: Floats
    y_train: Ints
    X_test: Floats
    y_test: Ints


def make_faces(
    n_train: int = 200,
    n_test: int = 100,
    *,
    size: int = 32,
    noise: float = 0.3,
    deformation: float = 0.03,
    random_state: int | None = 0,
) -> Faces:
    """Draw faces whose parts are displaced from their usual places, over a cluttered ground.

    A face has its own middle, width and height; each part moves with the part it hangs on, and a
    little on its own. Eyes, brows, nose, corners of the mouth and chin are small strokes and dots
    of varying contrast, and strokes of the same kinds lie about as distractors: one part alone is
    hard to tell from them, all parts together are not.

    Parameters
    ----------
    n_train, n_test : int
        Numbers of images.
    size : int, default=32
        Rows and columns of an image.
    noise : float, default=0.3
        Standard deviation of noise added to the pixels.
    deformation : float, default=0.03
        Standard deviation of a part's own displacement, as a share of the size.
    random_state : int, optional
        Seed; the same seed gives the same faces.

    Returns
    -------
    Faces

    Examples
    --------
    >>> faces = make_faces(n_train=3, n_test=1, size=20)
    >>> faces.X_train.shape, faces.y_train.shape
    ((3, 20, 20), (3, 8, 2))
    """
    if n_train < 1 or n_test < 1:
        raise ValueError(f"expected at least one face each, found n_train={n_train}, {n_test=}")
    if size < 16:
        raise ValueError(f"expected size >= 16, found {size}")
    if not (noise >= 0.0 and deformation >= 0.0):
        raise ValueError(f"expected noise and deformation >= 0, found {noise} and {deformation}")
    rng = np.random.default_rng(random_state)
    drawn = [_draw_face(rng, size, noise, deformation) for _ in range(n_train + n_test)]
    X = np.array([image for image, _ in drawn])
    y = np.array([positions for _, positions in drawn])
    return Faces(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def _draw_face(
    rng: np.random.Generator, size: int, noise: float, deformation: float
) -> tuple[Floats, Ints]:
    """One image and the positions of its parts."""
    usual = np.array(list(FACE_PARTS.values()))
    stretch = rng.normal(1.0, 0.08, 2)
    middle = 0.5 + rng.normal(0.0, 0.04, 2)
    spots = np.empty_like(usual)
    spots[0] = middle + usual[0] * stretch
    for parent, child in FACE_TREE:
        offset = (usual[child] - usual[parent]) * stretch
        spots[child] = spots[parent] + offset + rng.normal(0.0, deformation, 2)
    positions = np.clip(np.rint(spots * size - 0.5), 1, size - 2).astype(np.int64)
    image = np.zeros((size, size))
    scale = size / 32.0
    for part, (row, column) in enumerate(positions):
        _draw_part(image, part, row, column, scale, rng.uniform(0.7, 1.3))
    for _ in range(6):
        row, column = rng.uniform(1, size - 2, 2)
        _draw_part(image, int(rng.integers(8)), row, column, scale, rng.uniform(0.3, 0.8))
    return image + rng.normal(0.0, noise, image.shape), positions


def _draw_part(
    image: Floats, part: int, row: float, column: float, scale: float, contrast: float
) -> None:
    """Add the stroke or dot of one kind of part."""
    rows, columns = np.mgrid[: image.shape[0], : image.shape[1]]
    y, x = (rows - row) / scale, (columns - column) / scale
    side = -1.0 if part in (1, 3, 5) else 1.0
    if part == 0:  # nose: an upright stroke with a foot
        mark = _stroke(x, 0.7) * _stroke(y + 1.2, 2.2) + _stroke(y - 1.6, 0.7) * _stroke(x, 1.8)
    elif part in (1, 2):  # eyes: a dark dot in a bright ring
        radius = np.hypot(y, x)
        mark = 1.2 * _stroke(radius - 2.3, 0.7) - 1.4 * _stroke(radius, 1.1)
    elif part in (3, 4):  # brows: strokes that fall outwards
        mark = -1.2 * _stroke(y - 0.35 * side * x, 0.8) * _stroke(x, 2.4)
    elif part in (5, 6):  # corners of the mouth: strokes that rise outwards
        mark = 1.3 * _stroke(y + 0.8 * side * x, 0.8) * _stroke(x + 0.5 * side, 1.8)
    else:  # chin: a wide bow
        mark = -1.0 * _stroke(y - 1.0 + 0.12 * x**2, 0.8) * _stroke(x, 3.2)
    image += contrast * mark


def _stroke(distance: Floats, width: float) -> Floats:
    """A soft line of this width around distance 0."""
    return np.exp(-((distance / width) ** 2))


_N_DIGITS = 10
_N_SUCCESSORS = 3
_SHORTEST_WORD, _LONGEST_WORD = 4, 12


class DigitWords(NamedTuple):
    """Words of digit images for training and for testing.

    Attributes
    ----------
    X_train, X_test : list of ndarray of float64, shape (length, 64)
        Images of the digits of each word, pixels between 0 and 1.
    y_train, y_test : list of ndarray of int64, shape (length,)
        The digits.
    """

    X_train: list[Floats]
    y_train: list[Ints]
    X_test: list[Floats]
    y_test: list[Ints]


def make_digit_words(
    n_train: int = 500, n_test: int = 500, *, noise: float = 0.0, random_state: int | None = 0
) -> DigitWords:
    """Make words of real handwritten digits in which neighbours tell about each other.

    The digits of a word of 4 to 12 letters follow a Markov chain over the ten digits, in which
    most steps lead to one of three successors of a digit. Each digit is shown as an image drawn
    from scikit-learn's ``load_digits``; half of the images serve for training, the other half for
    testing.

    Parameters
    ----------
    n_train, n_test : int, default=500
        Numbers of words.
    noise : float, default=0.0
        Standard deviation of noise added to the pixels (which stay between 0 and 1). The more
        there is, the more the context of a digit helps to read it.
    random_state : int, optional
        Seed; the same seed gives the same words.

    Returns
    -------
    DigitWords

    Examples
    --------
    >>> words = make_digit_words(n_train=2, n_test=1)
    >>> len(words.X_train), words.X_train[0].shape[1]
    (2, 64)
    """
    if n_train < 1 or n_test < 1:
        raise ValueError(f"expected at least one word each, found n_train={n_train}, {n_test=}")
    if not noise >= 0.0:
        raise ValueError(f"expected noise >= 0, found {noise}")
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(random_state)
    start, steps = _random_grammar(rng)
    order = rng.permutation(len(digits))
    half = len(digits) // 2
    words: list[tuple[list[Floats], list[Ints]]] = []
    for n_words, chosen in ((n_train, order[:half]), (n_test, order[half:])):
        y = [_random_word(rng, start, steps) for _ in range(n_words)]
        words.append((_draw_images(rng, y, images[chosen] / 16.0, digits[chosen], noise), y))
    (X_train, y_train), (X_test, y_test) = words
    return DigitWords(X_train, y_train, X_test, y_test)


def _random_grammar(
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Start and step probabilities; each digit prefers few successors but allows all."""
    start = rng.dirichlet(np.ones(_N_DIGITS))
    steps = np.full((_N_DIGITS, _N_DIGITS), 0.1 / _N_DIGITS)
    for digit in range(_N_DIGITS):
        successors = rng.choice(_N_DIGITS, _N_SUCCESSORS, replace=False)
        steps[digit, successors] += 0.9 * rng.dirichlet(np.full(_N_SUCCESSORS, 2.0))
    return start, steps / steps.sum(axis=1, keepdims=True)


def _random_word(rng: np.random.Generator, start: Floats, steps: Floats) -> Ints:
    """Walk through the grammar."""
    word = np.empty(rng.integers(_SHORTEST_WORD, _LONGEST_WORD + 1), dtype=np.int64)
    word[0] = rng.choice(_N_DIGITS, p=start)
    for t in range(1, len(word)):
        word[t] = rng.choice(_N_DIGITS, p=steps[word[t - 1]])
    return word


def _draw_images(
    rng: np.random.Generator,
    words: list[Ints],
    images: Floats,
    digits: Ints,
    noise: float,
) -> list[Floats]:
    """Choose an image for each digit of each word."""
    of_digit = [np.flatnonzero(digits == digit) for digit in range(_N_DIGITS)]
    drawn = []
    for word in words:
        chosen = [of_digit[digit][rng.integers(len(of_digit[digit]))] for digit in word]
        pixels = images[chosen]
        if noise > 0.0:
            pixels = np.clip(pixels + rng.normal(0.0, noise, pixels.shape), 0.0, 1.0)
        drawn.append(pixels)
    return drawn
