"""Strings that are found by their bytes have the numbers that dictionaries give."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.features import WindowFeatures
from maxmargin.features.tokens import TokenChunks, as_token_columns
from maxmargin.features.window import keys

TEMPLATES = ["w[0]", "prefix1(w[0])", "suffix1(w[0])", "prefix3(w[-1])", "suffix2(w[1])"]
OTHERS = ["lower(w[0])", "shape(w[0])", "suffix3(p[0])"]
LETTERS = ["a", "b", "B", "é", "ß", "漢", "🙂", "\ud800", " ", "\0", "7"]


def drawn(rng, n, letters=LETTERS):
    """Sentences of pairs of short strings, some of them empty."""
    return [
        [
            tuple("".join(rng.choice(letters, rng.integers(0, 6))) for _ in range(2))
            for _ in range(rng.integers(1, 9))
        ]
        for _ in range(n)
    ]


@pytest.mark.parametrize("templates", [TEMPLATES, [*TEMPLATES, *OTHERS], ["shape(w[0])", "p[0]"]])
@pytest.mark.parametrize("separators", [False, True])
def test_codes_are_those_of_dictionaries(templates, separators, monkeypatch):
    rng = np.random.default_rng(0)
    letters = [*LETTERS, "\n"] if separators else LETTERS
    features = WindowFeatures(templates).fit(drawn(rng, 60, letters))
    new = drawn(rng, 40, letters)
    found = features.code(new).codes
    monkeypatch.setattr(keys, "find_strings", lambda *given: False)
    assert (features.code(new).codes == found).all()
    assert (found < 0).any() and (found > 0).any()


def test_a_new_fit_has_new_tables():
    features = WindowFeatures(["w[0]"]).fit([["a", "b"]])
    assert features.code([["b", "a", "c"]]).codes.tolist() == [[2], [1], [-1]]
    features.fit([["c", "b", "a"]])
    assert features.code([["b", "a", "c"]]).codes.tolist() == [[2], [3], [1]]


def test_what_is_no_string_is_not_known():
    features = WindowFeatures(["w[0]"]).fit([["a", "b"]])
    columns = as_token_columns([["a", "b", "a"]])
    columns.columns[0][1] = 7
    assert features.code(columns).codes.tolist() == [[1], [-1], [1]]


@pytest.mark.parametrize("as_columns", [False, True])
def test_pieces_make_up_all(as_columns):
    sentences = drawn(np.random.default_rng(1), 12)
    whole = as_token_columns(sentences)
    pieces = TokenChunks(whole if as_columns else sentences)
    some = [pieces.columns(0, 5), pieces.columns(5, 12)]
    assert (pieces.offsets == whole.offsets).all()
    assert [a + b for a, b in zip(*(piece.columns for piece in some), strict=True)] == whole.columns
    assert (some[1].offsets == whole.offsets[5:] - whole.offsets[5]).all()


@pytest.mark.parametrize(
    ("last", "place"),
    [(["a", 1], "sequence 3, token 1"), ([("a",), ("b",)], "sequence 3, token 0")],
)
def test_errors_of_pieces_name_the_place_among_all(last, place):
    pieces = TokenChunks([["a"], ["b", "c"], ["d"], last])
    pieces.columns(0, 2)
    with pytest.raises(ValueError, match=place):
        pieces.columns(3, 4)
