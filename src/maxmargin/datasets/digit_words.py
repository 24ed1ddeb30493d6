"""Words of handwritten digits: real images, arranged by a hidden Markov grammar."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..utils.types import Floats, Ints

__all__ = ["DigitWords", "make_digit_words"]

_N_DIGITS = 10
_N_SUCCESSORS = 3
_SHORTEST, _LONGEST = 4, 12


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
    word = np.empty(rng.integers(_SHORTEST, _LONGEST + 1), dtype=np.int64)
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
