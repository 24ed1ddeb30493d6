"""Trees: brackets in and out, other libraries' trees, cleaning, and scores as EVALB counts."""

import lzma

import pytest

from maxmargin.formats import Tree, as_tree, clean_tree, parse_tree, read_trees, write_trees
from maxmargin.metrics import bracket_scores

CAT = Tree("S", (Tree("NP", (Tree("DT", ("the",)), Tree("NN", ("cat",)))), Tree("VB", ("sat",))))
CAT_TEXT = "(S (NP (DT the) (NN cat)) (VB sat))"


class Foreign(list):
    """A tree as nltk has them: a list with a label method."""

    def __init__(self, label, children):
        super().__init__(children)
        self._label = label

    def label(self):
        return self._label


def test_brackets():
    assert parse_tree(CAT_TEXT) == CAT and str(CAT) == CAT_TEXT
    assert parse_tree(f"(  {CAT_TEXT}\n)") == CAT
    assert CAT.leaves() == [("the", "DT"), ("cat", "NN"), ("sat", "VB")]
    assert CAT.words() == ["the", "cat", "sat"] and CAT.tags() == ["DT", "NN", "VB"]
    assert CAT.spans() == [("S", 0, 3), ("NP", 0, 2)]
    assert [node.label for node in CAT.subtrees()] == ["S", "NP", "DT", "NN", "VB"]
    assert Tree("S", CAT.children, is_fallback=True) == CAT


@pytest.mark.parametrize(
    "value",
    [
        CAT,
        CAT_TEXT,
        ("S", ("NP", ("DT", "the"), ("NN", "cat")), ("VB", "sat")),
        ["S", ["NP", ["DT", "the"], ["NN", "cat"]], ("VB", "sat")],
        Foreign(
            "S",
            [
                Foreign("NP", [Foreign("DT", ["the"]), Foreign("NN", ["cat"])]),
                Foreign("VB", ["sat"]),
            ],
        ),
    ],
)
def test_trees_of_any_kind(value):
    assert as_tree(value) == CAT


@pytest.mark.parametrize(
    "value, message",
    [
        ("(S (NP", "never closed"),
        ("(S (A a)))", "without an open bracket"),
        ("(S)", "expected a label and what is below it"),
        ("()", "expected a label and what is below it"),
        ("no brackets", "expected one tree in brackets, found 0"),
        ("(A a) (B b)", "found 2"),
        ("(S the (NN cat))", "'the' below 'S' has no tag"),
        (("S",), "expected a tree"),
        ((1, "a"), "expected a label"),
        (Foreign("S", []), "nothing is below 'S'"),
        (None, "expected a tree"),
    ],
)
def test_what_is_no_tree(value, message):
    with pytest.raises(ValueError, match=message):
        as_tree(value)


def test_cleaning():
    text = (
        "(S (NP-SBJ-1 (-LRB- -LRB-) (NNP A)) (VP (VBD was) (VP (VBN seen) (NP (-NONE- *-1)) "
        "(NP=2 (NP (NN x)) (SBAR (-NONE- 0) (S (-NONE- *T*)))))))"
    )
    expected = "(S (NP (-LRB- -LRB-) (NNP A)) (VP (VBD was) (VP (VBN seen) (NP (NN x)))))"
    assert str(clean_tree(parse_tree(text))) == expected
    with pytest.raises(ValueError, match="no words"):
        clean_tree(parse_tree("(S (NP (-NONE- *)))"))


def test_files(tmp_path):
    path = tmp_path / "trees.mrg.xz"
    path.write_bytes(
        lzma.compress(f"a_1\t{CAT_TEXT}\n\n( (S (A a)\n  (B b)) )\n(X x)(Y y)".encode())
    )
    treebank = read_trees(path)
    assert treebank.ids == ["a_1", "", "", ""]
    assert [str(tree) for tree in treebank.trees] == [CAT_TEXT, "(S (A a) (B b))", "(X x)", "(Y y)"]
    write_trees(tmp_path / "again.txt", treebank.trees)
    assert read_trees(tmp_path / "again.txt").trees == treebank.trees


@pytest.mark.parametrize(
    "text, message",
    [
        ("(A a)\n(S (A a)\n", "bad.txt:2: .*never closed"),
        ("(A a)\n\n(B b))\n", "bad.txt:3: found '\\)'"),
        ("(A a)\n(S (A a)\n b)\n", "bad.txt:3: the word 'b'"),
        ("nothing here\n", "bad.txt: no trees"),
    ],
)
def test_bad_files(text, message, tmp_path):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_trees(path)


# ----- scores -----------------------------------------------------------------------------------


def test_brackets_are_counted_as_evalb_does():
    true = "(S (NP (NP (NN a)) (, ,) (NP (NN b))) (VP (VB c) (PRT (RP d))) (. .))"
    # The comma does not count, so that NP over "a ," is NP over "a"; PRT and ADVP are the same.
    mine = "(S (NP (NP (NN a) (, ,)) (NP (NN b))) (VP (VB c) (ADVP (RP d)) (. .)))"
    scores = bracket_scores([true], [mine])
    assert scores[:4] == (1.0, 1.0, 1.0, 1.0)
    assert (scores.n_true, scores.n_predicted, scores.n_correct) == (6, 6, 6)
    strict = bracket_scores([true], [mine], ignored_tags=(), equal_labels={})
    assert (strict.n_true, strict.n_predicted, strict.n_correct) == (6, 6, 3)
    assert strict.f1 == 0.5 and strict.exact_match == 0.0


def test_repeated_constituents_count_as_often_as_they_occur():
    true, mine = "(A (B (A (x 1) (y 2))))", "(A (A (A (x 1) (y 2))))"
    scores = bracket_scores([true, true], [mine, true])
    assert (scores.n_true, scores.n_predicted, scores.n_correct) == (6, 6, 5)
    assert scores.precision == scores.recall == pytest.approx(5 / 6)
    assert scores.exact_match == 0.5
    top = bracket_scores(["(TOP (A (x 1)))"], ["(A (x 1))"])
    assert top.exact_match == 1.0 and top.n_true == 1


def test_nothing_in_common():
    scores = bracket_scores(["(A (x 1) (x 2))"], ["(B (x 1) (x 2))"])
    assert scores[:4] == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "true, mine, message",
    [
        ([CAT], [], "y_true has 1 trees, y_pred has 0"),
        ([], [], "no trees, expected at least one"),
        ([CAT, CAT], [CAT, "(A a)"], "tree 1 has 3 words in y_true, 1 in y_pred"),
    ],
)
def test_bad_pairs(true, mine, message):
    with pytest.raises(ValueError, match=message):
        bracket_scores(true, mine)
