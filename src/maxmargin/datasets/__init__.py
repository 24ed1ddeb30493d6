"""Data sets: synthetic ones, made without a download, and public ones."""

from .public import (
    fetch_conll2000,
    fetch_conll2002,
    fetch_mq2008,
    fetch_ocr_letters,
    fetch_scene,
    fetch_ud_english_ewt,
    fetch_yeast,
)
from .synthetic import (
    FACE_PARTS,
    FACE_TREE,
    DigitWords,
    Faces,
    HomologueSearch,
    make_digit_words,
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
    "fetch_conll2000",
    "fetch_conll2002",
    "fetch_mq2008",
    "fetch_ocr_letters",
    "fetch_scene",
    "fetch_ud_english_ewt",
    "fetch_yeast",
    "make_digit_words",
    "make_faces",
    "make_homologues",
    "make_sentences",
]
