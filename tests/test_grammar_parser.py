"""Parsers: derivations and back, predictions against all derivations, files, scores, errors."""

import itertools
import logging
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maxmargin as mm
from brute_grammar import grammar_case, nodes_of, random_tree
from conftest import find_data
from maxmargin.formats import Tree, clean_tree, parse_tree, read_trees
from maxmargin.metrics import bracket_scores
from maxmargin.problems.grammar.data import GrammarDecoder, encode
from maxmargin.problems.grammar.k_best import best_derivations
from maxmargin.problems.grammar.rules import Grammar, derive
from structures import STRUCTURES

TREES = [
    "(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)) (. .))",
    "(S (NP (NP (DT the) (NN cat)) (PP (IN on) (NP (DT a) (NN mat)))) (VP (VBZ sleeps)) (. .))",
    "(S (NP (PRP it)) (VP (VBZ sees) (NP (DT the) (NN cat)) (PP (IN on) (NP (NNS mats)))) (. .))",
    "(S (S (VP (VB go))) (, ,) (NP (PRP he)) (VP (VBZ says)) (. .))",
]
SENTENCES = [parse_tree(text).leaves() for text in TREES]


# ----- derivations ------------------------------------------------------------------------------


def check_reversible(trees, horizontal, vertical):
    """Trees come back from their encoded derivations, and each of n words has 2n - 1 nodes."""
    derivations = [derive(tree, horizontal, vertical) for tree in trees]
    sentences = [tree.tags() for tree in trees]
    grammar = Grammar.induce(derivations, sentences)
    grammar = Grammar.from_state(grammar.to_state())
    nodes = encode(grammar, derivations, sentences)
    decoder, base = GrammarDecoder(grammar), 0
    for tree, steps in zip(trees, derivations, strict=True):
        words = tree.words()
        assert len(steps) == 2 * len(words) - 1
        assert decoder.tree(nodes, words, base) == tree
        base += len(steps)


@pytest.mark.nojit
@given(st.integers(0, 2**32 - 1), st.sampled_from([None, 0, 1, 2]), st.integers(1, 3))
def test_derivations_are_reversible(seed, horizontal, vertical):
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, int(rng.integers(1, 12))) for _ in range(4)]
    check_reversible(trees, horizontal, vertical)


def test_penn_treebank_is_reversible():
    treebank = read_trees(find_data("ptb_sample/wsj_0001-0199.mrg.xz"))
    assert len(treebank.trees) == 3914 and treebank.ids[-1] == "wsj_0199"
    trees = [clean_tree(tree) for tree in treebank.trees]
    assert sum(len(tree.words()) for tree in trees) == 94084
    labels = {node.label for tree in trees for node in tree.subtrees() if not node.is_tag}
    assert len(labels) == 27 and "ADVP|PRT" in labels  # 26 categories and one odd label
    check_reversible(trees, 1, 2)


def test_rules_without_markovisation_are_those_of_the_treebank():
    parser = mm.PCFGParser().fit(["(S (A a) (B b) (C c))", "(S (A a) (C c) (B b))"])
    for tags, is_known in ((["A", "B", "C"], True), (["A", "C", "C"], False)):
        assert parser.predict([tags])[0].is_fallback != is_known
    markov = mm.PCFGParser(horizontal=0).fit(["(S (A a) (B b) (C c))", "(S (A a) (C c) (B b))"])
    assert not markov.predict([["A", "C", "B"]])[0].is_fallback


# ----- search -----------------------------------------------------------------------------------


@given(STRUCTURES["grammar"].options, st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_best_derivations_are_those_of_the_largest_scores(options, seed, k):
    rng = np.random.default_rng(seed)
    problem, twin = grammar_case(rng, **options)
    w = rng.normal(size=twin.n_features)
    decoder = problem.decoder
    for i, (nodes, base, score) in enumerate(decoder.parse(problem.sentences, w)):
        assert score == pytest.approx(twin.best_score(i, w), abs=1e-9)
        assert w[decoder.psi(problem.sentences, i, nodes, base)].sum() == pytest.approx(score)
    lengths = np.diff(problem.sentences.offsets)
    i = int(np.argmax(lengths))
    first, last = problem.sentences.offsets[i : i + 2]
    alone = problem.sentences._replace(
        offsets=np.array([0, last - first]),
        terminals=problem.sentences.terminals[first:last],
        views=np.ascontiguousarray(problem.sentences.views[:, first:last]),
    )
    found = best_derivations(decoder, alone, w, k)
    expected = sorted((float(w @ twin.psi(i, y)) for y in twin.outputs(i)), reverse=True)[:k]
    assert [score for _, score in found] == pytest.approx(expected, abs=1e-9)
    words = [f"w{t}" for t in range(last - first)]
    assert len({str(decoder.tree(nodes, words)) for nodes, _ in found}) == len(found)
    for nodes, score in found:
        assert w[decoder.psi(alone, 0, nodes, 0)].sum() == pytest.approx(score, abs=1e-9)


# ----- estimators -------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["f1", "zero_one"])
def test_a_parser_learns_its_treebank(loss):
    parser = mm.GrammarParser(C=10.0, loss=loss, random_state=0).fit(TREES)
    assert [str(tree) for tree in parser.predict(SENTENCES)] == TREES
    assert parser.score(TREES) == 1.0 == parser.score(SENTENCES, TREES)
    scores = parser.score_outputs(SENTENCES, TREES)
    for best, tree, score in zip(parser.predict_k(SENTENCES, 3), TREES, scores, strict=True):
        assert 1 <= len(best) <= 3
        assert str(best[0][0]) == tree and best[0][1] == pytest.approx(score)
        assert all(a >= b for (_, a), (_, b) in itertools.pairwise(best))
    assert parser.result_.converged


def test_sentences_of_any_kind():
    parser = mm.GrammarParser(random_state=0).fit(SENTENCES, TREES)
    tags = [[tag for _, tag in sentence] for sentence in SENTENCES]
    by_tags = parser.predict(tags)
    assert [tree.tags() for tree in by_tags] == tags == [tree.words() for tree in by_tags]
    trees = [parse_tree(text) for text in TREES]
    assert parser.predict(trees) == parser.predict(SENTENCES)
    assert parser.predict([]) == []


def test_words_as_terminals():
    options = {"terminals": "words", "min_word_count": 1, "random_state": 0, "C": 10.0}
    parser = mm.GrammarParser(**options).fit(TREES)
    words = [[word for word, _ in sentence] for sentence in SENTENCES]
    assert [str(tree) for tree in parser.predict(words)] == TREES
    unknown = parser.predict([["a", "zebra", "sleeps", "."]])[0]
    assert unknown.is_fallback and unknown.words() == ["a", "zebra", "sleeps", "."]
    rare = mm.PCFGParser(terminals="words", min_word_count=2).fit(TREES)
    tree = rare.predict([["the", "zebra", "sleeps", "."]])[0]  # like "sees", "mats", "says", "on"
    assert tree.words()[1] == "zebra"


def test_span_features_tell_apart_what_rules_cannot():
    """Two N below N on the left or on the right: the same rules, and the last tag decides."""
    trees = [
        "(S (N (N (N (x 1)) (N (x 2))) (N (x 3))) (y 4))",
        "(S (N (N (x 1)) (N (N (x 2)) (N (x 3)))) (z 4))",
    ]
    parser = mm.GrammarParser(C=100.0, span_features=True, random_state=0).fit(trees)
    assert [str(tree) for tree in parser.predict([parse_tree(t) for t in trees])] == trees
    plain = mm.GrammarParser(C=100.0, random_state=0).fit(trees)
    assert len(parser.coef_) > len(plain.coef_)
    wrong = [str(tree) for tree in plain.predict([parse_tree(t) for t in trees])]
    assert sum(a != b for a, b in zip(wrong, trees, strict=True)) == 1
    lexical = mm.GrammarParser(lexical_features=True, min_word_count=1, random_state=0).fit(trees)
    assert len(lexical.coef_) > len(plain.coef_)


def test_fallback_trees_are_flagged():
    parser = mm.GrammarParser(max_sentence_length=7, random_state=0).fit(TREES)
    unknown_tag = [("what", "WP"), ("?", ".")]
    odd, long, fine = ["NN", "DT"], ["DT"] * 8, SENTENCES[0]
    trees = parser.predict([unknown_tag, odd, long, fine])
    assert [tree.is_fallback for tree in trees] == [True, True, True, False]
    assert str(trees[0]) == "(S (WP what) (. ?))"
    (tree, score), *others = parser.predict_k([odd], 4)[0]
    assert tree.is_fallback and score == -np.inf and not others
    assert bracket_scores(TREES[:1], [Tree("S", trees[3].children, True)]).n_fallbacks == 1
    assert parser.score_outputs([odd], ["(X (NN a) (DT b))"])[0] == -np.inf


def test_words_for_tags_are_noticed():
    parser = mm.PCFGParser().fit(TREES)
    words = [[word for word, _ in sentence] for sentence in SENTENCES]
    with pytest.warns(UserWarning, match=r"18 of 23 tags are unknown .*'the'.*pairs") as caught:
        assert all(tree.is_fallback for tree in parser.predict(words))
    assert len(caught) == 1 and caught[0].filename == __file__
    with pytest.warns(UserWarning, match="trained on tags"):
        parser.predict_k(words[:1], 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parser.predict([["WP", "VBZ", "."], ["DT", "NN"], *SENTENCES])
        parser.predict([])


def test_long_sentences_are_left_out_of_training(caplog):
    with caplog.at_level(logging.WARNING, "maxmargin"):
        parser = mm.GrammarParser(max_sentence_length=4, random_state=0)
        parser.fit(TREES, sample_weight=[1.0, 2.0, 3.0, 4.0])
    assert "3 of 4 sentences" in caplog.text
    assert not any("PP" in parser.grammar_.describe(r) for r in range(parser.grammar_.n_rules))


@pytest.mark.parametrize("options", [{}, {"span_features": True, "lexical_features": True}])
def test_a_model_file_keeps_the_parser(options, tmp_path):
    parser = mm.GrammarParser(horizontal=1, vertical=2, random_state=0, **options).fit(TREES)
    parser.save(tmp_path / "parser.mm")
    loaded = mm.load(tmp_path / "parser.mm")
    assert loaded.get_params() == parser.get_params()
    assert loaded.predict(SENTENCES) == parser.predict(SENTENCES)
    assert loaded.predict_k(SENTENCES, 3) == parser.predict_k(SENTENCES, 3)
    assert loaded.predict([["WP", ".", "."]])[0].is_fallback


def test_a_model_file_keeps_the_baseline(tmp_path):
    parser = mm.PCFGParser(horizontal=1).fit(TREES)
    parser.save(tmp_path / "parser.mm")
    loaded = mm.load(tmp_path / "parser.mm")
    assert loaded.get_params() == parser.get_params() and not hasattr(loaded, "result_")
    assert loaded.predict_k(SENTENCES, 3) == parser.predict_k(SENTENCES, 3)


def test_relative_frequencies():
    trees = ["(S (A (a 1)) (B (b 2)))", "(S (A (a 1)) (B (b 2)))", "(S (B (b 1)) (A (a 2)))"]
    parser = mm.PCFGParser().fit(trees)
    scores = parser.score_outputs([parse_tree(t) for t in trees], trees)
    assert np.exp(scores) == pytest.approx([2 / 3, 2 / 3, 1 / 3])
    grammar, totals = parser.grammar_, {}
    for r, parent in enumerate(grammar.parents().tolist()):
        totals[parent] = totals.get(parent, 0.0) + np.exp(parser.coef_[r])
    assert list(totals.values()) == pytest.approx([1.0] * len(totals))


@pytest.mark.parametrize(
    "options, X, Y, message",
    [
        ({"loss": "bleu"}, TREES, None, "loss must be"),
        ({"terminals": "letters"}, TREES, None, "terminals must be"),
        ({"vertical": 0}, TREES, None, "vertical must be"),
        ({"horizontal": -1}, TREES, None, "horizontal must be"),
        ({"max_sentence_length": 2}, TREES, None, "no sentence has at most"),
        ({}, [], None, "at least one tree"),
        ({}, [*TREES, "(S (NP"], None, "tree 4: .*never closed"),
        ({}, [*TREES, "(S (-NONE- *))"], None, "tree 4: no words"),
        ({}, SENTENCES[:2], TREES, "first without a partner: 2"),
        ({}, [*SENTENCES[:3], ["DT", "NN"]], TREES, "sentence 3 is DT NN"),
        ({}, [*SENTENCES[:3], []], TREES, "sentence 3 is empty"),
        ({}, [*SENTENCES[:3], "DT NN"], TREES, "sentence 3 is 'DT NN'"),
        ({}, [*SENTENCES[:3], [1, 2]], TREES, "sentence 3 has 1"),
    ],
)
def test_bad_input(options, X, Y, message):
    with pytest.raises(ValueError, match=message):
        mm.GrammarParser(random_state=0, **options).fit(X, Y)


def test_bad_k():
    parser = mm.PCFGParser().fit(TREES)
    with pytest.raises(ValueError, match="k must be"):
        parser.predict_k(SENTENCES, 0)


@pytest.mark.nojit
def test_nodes_of_listed_derivations_are_as_many_as_they_must():
    problem, twin = grammar_case(np.random.default_rng(0))
    for i in range(problem.n_examples):
        n = len(twin.sentences[i])
        assert all(len(nodes_of(y)) == 2 * n - 1 for y in twin.outputs(i))


def test_treebanks_are_lists_of_trees(tmp_path):
    path = tmp_path / "trees.mrg"
    path.write_text("(S (NP (D the) (N cat)) (VP (V sleeps)))\n")
    bank = read_trees(path)
    assert mm.PCFGParser().fit(bank).predict(bank.trees) == bank.trees
    with pytest.raises(ValueError, match="expected a list of trees, got '"):
        mm.PCFGParser().fit("(S (N cats))")
