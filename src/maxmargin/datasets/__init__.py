"""Small data sets for demonstrations and tests, made without a download."""

from maxmargin.datasets.alignments import HomologueSearch, make_homologues
from maxmargin.datasets.digit_words import DigitWords, make_digit_words

__all__ = ["DigitWords", "HomologueSearch", "make_digit_words", "make_homologues"]
