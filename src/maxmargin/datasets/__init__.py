"""Data sets for demonstrations and tests, made without a download."""

from .digit_words import DigitWords, make_digit_words
from .synthetic import (
    FACE_PARTS,
    FACE_TREE,
    Faces,
    HomologueSearch,
    make_faces,
    make_homologues,
    make_sentences,
)

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
