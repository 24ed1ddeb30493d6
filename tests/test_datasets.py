"""Data sets made without a download."""

import numpy as np
import pytest

from maxmargin.datasets import make_digit_words


def test_digit_words_have_the_promised_shape():
    words = make_digit_words(n_train=30, n_test=20)
    assert [len(part) for part in words] == [30, 30, 20, 20]
    for x, y in zip(words.X_train + words.X_test, words.y_train + words.y_test, strict=True):
        assert x.shape == (len(y), 64) and x.dtype == np.float64
        assert 4 <= len(y) <= 12
        assert 0.0 <= x.min() and x.max() <= 1.0
        assert set(y.tolist()) <= set(range(10))


def test_images_show_their_digits_and_are_not_shared():
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    known = {tuple(image): digit for image, digit in zip(images / 16.0, digits, strict=True)}
    words = make_digit_words(n_train=100, n_test=100)
    train = {tuple(image) for image in np.vstack(words.X_train)}
    test = {tuple(image) for image in np.vstack(words.X_test)}
    assert not train & test
    found = [known[tuple(image)] for image in np.vstack(words.X_test)]
    assert found == np.concatenate(words.y_test).tolist()


def test_neighbours_tell_about_each_other():
    y = make_digit_words(n_train=500, n_test=1).y_train
    counts = np.zeros((10, 10))
    for word in y:
        np.add.at(counts, (word[:-1], word[1:]), 1)
    favourites = np.sort(counts, axis=1)[:, -3:].sum()
    assert favourites / counts.sum() > 0.8


def test_the_seed_decides():
    first, again, other = (make_digit_words(5, 5, noise=0.3, random_state=s) for s in (1, 1, 2))
    for a, b in zip(first.X_train + first.y_test, again.X_train + again.y_test, strict=True):
        np.testing.assert_array_equal(a, b)
    assert any(not np.array_equal(a, b) for a, b in zip(first.y_test, other.y_test, strict=True))


def test_noise_stays_within_bounds_and_changes_pixels():
    quiet = make_digit_words(5, 5)
    noisy = make_digit_words(5, 5, noise=0.5)
    pixels = np.vstack(noisy.X_train)
    assert 0.0 <= pixels.min() and pixels.max() <= 1.0
    assert len(np.unique(pixels)) > len(np.unique(np.vstack(quiet.X_train)))


@pytest.mark.parametrize("arguments", [{"n_train": 0}, {"n_test": 0}, {"noise": -1.0}])
def test_bad_parameters(arguments):
    with pytest.raises(ValueError, match="expected"):
        make_digit_words(**arguments)
