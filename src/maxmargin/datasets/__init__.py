"""Small data sets for demonstrations and tests, made without a download."""

from maxmargin.datasets.digit_words import DigitWords, make_digit_words

__all__ = ["DigitWords", "make_digit_words"]
