"""Packing of sequences, feature dictionaries and window features."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import maxmargin as mm
from conftest import find_data
from maxmargin.features import (
    FeatureDictionary,
    PackedSequences,
    WindowFeatures,
    chunking_templates,
    holds_named_features,
    ner_templates,
    pack_sequences,
    pos_templates,
    words_templates,
)
from maxmargin.features.window.templates import parse_template, word_shape
from maxmargin.formats import TokenColumns, read_columns

# --- packing --------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(1, 4), st.integers(0, 2**32)
)
def test_packing_round_trip(lengths, width, seed):
    rng = np.random.default_rng(seed)
    X = [np.where(rng.random((n, width)) < 0.5, 0, rng.normal(size=(n, width))) for n in lengths]
    kinds = {
        "dense": X,
        "lists": [x.tolist() for x in X],
        "csr": [sp.csr_array(x) for x in X],
        "coo matrix": [sp.coo_matrix(x) for x in X],
    }
    for name, given_as in kinds.items():
        tokens, offsets = pack_sequences(given_as)
        assert offsets.tolist() == np.cumsum([0, *lengths]).tolist() and offsets.dtype == np.int64
        dense = tokens.toarray() if sp.issparse(tokens) else tokens
        assert sp.issparse(tokens) == (name in ("csr", "coo matrix"))
        for i, x in enumerate(X):
            np.testing.assert_array_equal(dense[offsets[i] : offsets[i + 1]], x)


def test_types_of_packed_values():
    assert pack_sequences([np.ones((2, 3), np.float32)]).tokens.dtype == np.float32
    mixed = [np.ones((2, 3), np.float32), np.ones((2, 3))]
    assert pack_sequences(mixed).tokens.dtype == np.float64
    assert pack_sequences([np.ones((2, 3), bool)]).tokens.dtype == np.float64
    fortran = pack_sequences([np.asfortranarray(np.ones((2, 3)))]).tokens
    assert fortran.flags.c_contiguous
    matrix = pack_sequences([sp.csr_matrix(np.eye(2, dtype=int))]).tokens
    assert matrix.dtype == np.float64 and matrix.indices.dtype == np.int32


def test_a_cube_is_a_list_of_equal_lengths():
    cube = np.arange(24.0).reshape(2, 3, 4)
    tokens, offsets = pack_sequences(cube)
    assert offsets.tolist() == [0, 3, 6]
    np.testing.assert_array_equal(tokens[3:], cube[1])


def test_unsorted_and_repeated_indices_are_tidied_in_a_copy():
    untidy = sp.csr_matrix(
        (np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3)
    )
    tokens = pack_sequences([untidy]).tokens
    assert tokens.indices.tolist() == [0, 2] and tokens.data.tolist() == [2.0, 5.0]
    assert untidy.indices.tolist() == [2, 0, 2]


def test_packed_sequences_pass_through():
    packed = pack_sequences([np.ones((2, 3))])
    assert pack_sequences(packed).tokens is packed.tokens


GOOD = np.ones((2, 3))
HOLE = np.array([[1.0, 1.0, 1.0], [1.0, np.nan, 1.0]])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "at least one sequence"),
        ("words", "expected a list of sequences, found str 'words'"),
        (np.ones((2, 3)), r"expected a list of sequences, found ndarray of shape \(2, 3\)"),
        (sp.eye(3), r"X is one sparse matrix of shape \(3, 3\)"),
        ({"a": 1}, "expected a list of sequences, found dict"),
        (7, "expected a list of sequences, found int 7"),
        ([GOOD, "word"], "sequence 1 is str 'word'"),
        ([GOOD, 3], "sequence 1 is int 3"),
        ([GOOD, {}], "sequence 1 is dict"),
        ([GOOD, np.ones((0, 3))], "sequence 1 is empty"),
        ([sp.csr_array(GOOD), sp.csr_array((0, 3))], "sequence 1 is empty"),
        ([GOOD, np.ones((2, 4))], "sequence 1 has 4 features per token, expected 3"),
        ([sp.csr_array(GOOD), sp.csr_array((2, 4))], "sequence 1 has 4 features per token"),
        ([GOOD, np.ones(3)], r"sequence 1 has shape \(3,\)"),
        ([GOOD, np.ones((1, 2, 3))], r"sequence 1 has shape \(1, 2, 3\)"),
        ([GOOD, HOLE], "sequence 1, token 1 has a NaN"),
        ([GOOD, np.full((2, 3), np.inf)], "sequence 1, token 0 has a NaN or infinite"),
        ([sp.csr_array(GOOD), sp.csr_array(HOLE)], "sequence 1, token 1 has a NaN"),
        ([GOOD, sp.csr_array(GOOD)], "sequence 1 is sparse"),
        ([sp.csr_array(GOOD), GOOD], "sequence 1 is ndarray"),
        ([GOOD, GOOD.astype(complex)], "sequence 1 has values of type complex128"),
        ([GOOD, np.array([["a", "b", "c"]])], "sequence 1 has values of type <U1"),
        ([[[1, 2], [3]]], "sequence 0, token 1 has 1 features, expected 2"),
        ([["the", "cat"]], "sequence 0, token 0 is str 'the'"),
        ([[{"a": 1}]], "fit a FeatureDictionary"),
        (np.ones((2, 0, 3)), "sequence 0 is empty"),
        (np.ones((0, 2, 3)), "at least one sequence"),
    ],
)
def test_bad_sequences_are_named(X, message):
    with pytest.raises(ValueError, match=message):
        pack_sequences(X)


def test_infinity_of_both_signs_is_found():
    with pytest.raises(ValueError, match="sequence 0, token 1"):
        pack_sequences([np.array([[1.0, 1.0], [np.inf, -np.inf]])])


def test_values_may_be_large_but_not_too_large():
    assert pack_sequences([np.full((2, 2), 1e100)]).tokens.max() == 1e100
    with pytest.raises(ValueError, match=r"token 1 has the value -2e.100, .* too large"):
        pack_sequences([np.array([[0.0], [-2e100]])])


def test_expected_number_of_features():
    with pytest.raises(ValueError, match="3 features per token, expected 5"):
        pack_sequences([GOOD], n_features=5)
    assert pack_sequences([GOOD], n_features=3).tokens.shape == (2, 3)


# --- feature dictionary ---------------------------------------------------------------------------


def test_dicts():
    X = [[{"word": "the", "cap": True, "length": 3}, {"word": "cat"}], [{"word": "the"}]]
    dictionary = FeatureDictionary().fit(X)
    assert dictionary.feature_names_ == ["word=the", "cap", "length", "word=cat"]
    tokens, offsets = pack_sequences(X, dictionary)
    assert tokens.toarray().tolist() == [[1, 1, 3, 0], [0, 0, 0, 1], [1, 0, 0, 0]]
    assert offsets.tolist() == [0, 2, 3]
    assert tokens.indices.dtype == np.int32 and tokens.has_sorted_indices


def test_feature_strings_add_up_and_unknown_ones_drop_out():
    dictionary = FeatureDictionary()
    tokens, _ = dictionary.fit_transform([[["a", "b", "a"], []], [("b",), {"b"}]])
    assert dictionary.feature_names_ == ["b", "a"]
    assert tokens.toarray().tolist() == [[1, 2], [0, 0], [1, 0], [1, 0]]
    unseen, _ = dictionary.transform([[["z", "a"], ["z"]]])
    assert unseen.toarray().tolist() == [[0, 1], [0, 0]]


def test_min_count_and_zero_values():
    X = [[{"a": 1.0, "b": 0.0}, {"a": np.float32(2), "c": np.bool_(False), "d": np.int64(1)}]]
    assert FeatureDictionary().fit(X).feature_names_ == ["a", "d"]
    assert FeatureDictionary(min_count=2).fit(X).feature_names_ == ["a"]
    with pytest.raises(ValueError, match="no features"):
        FeatureDictionary(min_count=3).fit(X)


def test_dictionary_state_survives_json():
    X = [[["a", "b"], ["b"]]]
    dictionary = FeatureDictionary().fit(X)
    again = FeatureDictionary.from_state(json.loads(json.dumps(dictionary.to_state())))
    assert again.get_feature_names_out().tolist() == ["b", "a"]
    assert again.transform(X).tokens.toarray().tolist() == [[1, 1], [1, 0]]
    with pytest.raises(NotFittedError):
        clone(dictionary).transform(X)


def test_nested_features_are_those_of_python_crfsuite():
    """Its ItemSequence shows what it makes of a token; strings are joined by "=" here."""
    tokens = [
        {"w": "x", "b": True, "f": False, "n": 2, "neg": -1.5},
        {"d": {"a": 1.5, "b": "q", "c": {"z": True}}, "l": ["u", "v"], "s": {"k"}},
        ["a", "b"],
        {},
    ]
    dictionary = FeatureDictionary()
    packed = dictionary.fit_transform([tokens[:1], tokens[1:]])
    names = dictionary.get_feature_names_out()
    found = [
        {names[f]: value for f, value in zip(row.indices, row.data, strict=True)}
        for row in (packed.tokens[[t]] for t in range(4))
    ]
    assert found == [
        {"w=x": 1, "b": 1, "n": 2, "neg": -1.5},
        {"d:a": 1.5, "d:b=q": 1, "d:c:z": 1, "l:u": 1, "l:v": 1, "s:k": 1},
        {"a": 1, "b": 1},
        {},
    ]
    pycrfsuite = pytest.importorskip("pycrfsuite")
    items = pycrfsuite.ItemSequence(tokens)
    theirs = [{k: v for k, v in token.items() if v} for token in items.items()]
    ours = [{name.replace("=", ":"): v for name, v in token.items()} for token in found]
    assert ours == theirs
    assert FeatureDictionary().fit([items]).n_features_out_ == len(names)


def test_lists_and_dicts_in_one_sequence():
    tagger = mm.SequenceTagger(random_state=0)
    X = [[{"w": {"one": "a"}}, ["b", "b"]], [["b"], {"w": {"one": "a"}}]]
    y = [["A", "B"], ["B", "A"]]
    assert tagger.fit(X, y).predict(X) == y
    assert tagger.features_.feature_names_ == ["b", "w:one=a"]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[{"a": 1}], [{"a": 1}, {"a": None}]], "sequence 1, token 1, feature 'a': value None"),
        ([[{"a": 1}], [{}, {"b": 1, "a": np.nan}]], "sequence 1, token 1, feature 'a': a NaN"),
        ([[{"a": 1}, {3: 1}]], "sequence 0, token 1: feature name 3"),
        ([[{"a": {"b": [None]}}]], "sequence 0, token 0 holds NoneType None"),
        ([[{"a": {"b": None}}]], "sequence 0, token 0, feature 'a:b': value None is of type"),
        ([[["a"]], [["a"], "b"]], "sequence 1, token 1 is str 'b'"),
        ([[["a"], ["b", 3]]], "sequence 0, token 1 holds int 3"),
        ([[["a"]], []], "sequence 1 is empty"),
        ([[["a"]], "bc"], "sequence 1 is str 'bc'"),
    ],
)
def test_bad_named_features_are_named(X, message):
    with pytest.raises(ValueError, match=message):
        FeatureDictionary().fit(X)


def test_holds_named_features():
    assert holds_named_features([[{"a": 1}]])
    assert holds_named_features([[[], ["a"]]])
    assert not holds_named_features([[[1.0]]])
    assert not holds_named_features([np.ones((1, 1))])
    assert not holds_named_features([["word"]])


# --- templates ------------------------------------------------------------------------------------


def test_templates_of_parts_of_speech():
    assert pos_templates(2) == [
        *("prefix1(w[0])", "suffix1(w[0])", "prefix2(w[0])", "suffix2(w[0])"),
        *("prefix1(w[-1])", "suffix1(w[-1])", "prefix2(w[-1])", "suffix2(w[-1])"),
        *("prefix1(w[1])", "suffix1(w[1])", "prefix2(w[1])", "suffix2(w[1])"),
        "length(w[0])",
    ]
    window = WindowFeatures(["length(w[0])", "length(w[1])"]).fit([["a", "bcd", "xyz"]])
    names = [name for name in map(str, window.get_feature_names_out()) if "pad" not in name]
    assert sorted(names) == ["length(w[0])=1", "length(w[0])=3", "length(w[1])=3"]


def test_template_sets():
    assert [len(t()) for t in (chunking_templates, ner_templates, words_templates)] == [22, 28, 13]
    for templates in (chunking_templates(), ner_templates(), words_templates(), pos_templates()):
        assert len(set(map(parse_template, templates))) == len(templates)
        assert ["|".join(map(str, parse_template(t))) for t in templates] == templates


@pytest.mark.parametrize(
    "template",
    ["", "w", "w[]", "w[x]", "w[0", "lower(w[0]", "w[0])", "upper(w[0])", "prefix(w[0])",
     "prefix0(w[0])", "lower3(w[0])", "length2(w[0])", "w[0]|", "0[0]", "w[10000]",
     "prefix99999(w[0])", 3],
)  # fmt: skip
def test_bad_templates(template):
    with pytest.raises(ValueError, match="template"):
        WindowFeatures([template]).fit([["a"]])


def test_word_shape():
    shapes = {"Confidence": "Xxx", "IBM": "XX", "1990-91": "dd-dd", "a": "x", "U.S.": "X.X."}
    assert {word: word_shape(word) for word in shapes} == shapes


# --- window features ------------------------------------------------------------------------------

TINY = [[("The", "DT"), ("cat", "NN")], [("the", "DT")]]


def plain_features(sequence, templates):
    """Feature names of each token, one template at a time."""
    functions = {
        "": lambda s, n: s,
        "lower": lambda s, n: s.lower(),
        "shape": lambda s, n: word_shape(s),
        "prefix": lambda s, n: s[:n],
        "suffix": lambda s, n: s[-n:],
    }
    names = []
    for t in range(len(sequence)):
        names.append([])
        for template in templates:
            parts = []
            for atom in parse_template(template):
                at = t + atom.offset
                if 0 <= at < len(sequence):
                    text = sequence[at]["wp".index(atom.column)]
                    value = functions[atom.transform](text, atom.length)
                else:
                    value = "<pad>"
                parts.append(f"{atom}={value}")
            names[-1].append("|".join(parts))
    return names


WORDS = st.text("aAbB1.", min_size=1, max_size=4)
SENTENCES = st.lists(
    st.lists(st.tuples(WORDS, st.sampled_from("XYZ")), min_size=1, max_size=6),
    min_size=1,
    max_size=5,
)
MANY = sorted({*chunking_templates(), *ner_templates(), "w[-3]|shape(w[1])|p[0]"})


@given(SENTENCES, SENTENCES, st.integers(1, 3))
def test_window_features_equal_the_plain_definition(train, test, min_count):
    window = WindowFeatures(MANY, min_count=min_count)
    plain = [names for sequence in train for names in plain_features(sequence, MANY)]
    counts = {}
    for name in (name for names in plain for name in names):
        counts[name] = counts.get(name, 0) + 1
    kept = {name for name, count in counts.items() if count >= min_count}
    if not kept:
        with pytest.raises(ValueError, match="no feature"):
            window.fit(train)
        return
    fitted = window.fit_transform(train)
    names = window.get_feature_names_out()
    assert set(names) == kept and len(names) == len(kept) == window.n_features_out_
    assert [counts[name] for name in names] == sorted((counts[n] for n in kept), reverse=True)
    moved = WindowFeatures.from_state(window.to_state())
    results = [(train, fitted)]
    results += [(data, w.transform(data)) for data in (train, test) for w in (window, moved)]
    for data, packed in results:
        assert packed.offsets.tolist() == np.cumsum([0, *map(len, data)]).tolist()
        rows = [r for sequence in data for r in plain_features(sequence, MANY)]
        assert packed.tokens.shape == (len(rows), len(names))
        for row, expected in enumerate(rows):
            a, b = packed.tokens.indptr[row : row + 2]
            indices = packed.tokens.indices[a:b]
            assert (np.diff(indices) > 0).all()
            assert set(names[indices]) == set(expected) & kept
        assert (packed.tokens.data == 1.0).all()


def test_search_and_table_give_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    train, test = (
        [[(str(w), str(w % 3)) for w in rng.integers(20, size=8)] for _ in range(20)]
        for _ in range(2)
    )
    window = WindowFeatures().fit(train)
    table = window.transform(test).tokens
    one_by_one = [window.transform([sequence]).tokens for sequence in test]  # too few for a table
    assert (sp.vstack(one_by_one) != table).nnz == 0
    monkeypatch.setattr("maxmargin.features.window.keys.LARGEST_TABLE", 0)
    again = WindowFeatures().fit(train)
    assert again.get_feature_names_out().tolist() == window.get_feature_names_out().tolist()
    assert (again.transform(test).tokens != table).nnz == 0


def test_columns_tuples_and_words_are_the_same_data():
    flat = TokenColumns([["The", "cat", "the"], ["DT", "NN", "DT"]], np.array([0, 2, 3]))
    a, b = WindowFeatures().fit_transform(flat), WindowFeatures().fit_transform(TINY)
    assert (a.tokens != b.tokens).nnz == 0 and a.offsets.tolist() == b.offsets.tolist()
    words = [[word for word, _ in sequence] for sequence in TINY]
    ones = [[(word,) for word in sequence] for sequence in words]
    a, b = WindowFeatures().fit_transform(words), WindowFeatures().fit_transform(ones)
    assert (a.tokens != b.tokens).nnz == 0
    c = WindowFeatures().fit_transform([np.array(sequence) for sequence in words])
    assert (a.tokens != c.tokens).nnz == 0
    assert a.tokens.indices.dtype == np.int32
    assert isinstance(a, PackedSequences)
    window = WindowFeatures().fit(words)
    assert (pack_sequences(words, window).tokens != a.tokens).nnz == 0


def test_named_columns():
    window = WindowFeatures(["word[0]|tag[-1]"], columns=["word", "tag"]).fit(TINY)
    assert "word[0]=cat|tag[-1]=DT" in window.get_feature_names_out()


def test_parameters_are_untouched_and_clone_works():
    window = WindowFeatures(columns=["w", "p"], min_count=2).fit(TINY)
    assert window.get_params() == {"templates": None, "columns": ["w", "p"], "min_count": 2}
    with pytest.raises(NotFittedError):
        clone(window).transform(TINY)


@pytest.mark.parametrize(
    "features",
    [
        WindowFeatures(["w[0]", "w[-1]|w[0]", "suffix2(w[1])"]),
        WindowFeatures.from_templates("U00:%x[-2,0]\nU01:%x[-1,0]/%x[0,0]"),
        FeatureDictionary(),
    ],
)
def test_names_of_some_features_are_those_among_all(features, monkeypatch):
    X = [["the", "cat", "sleeps"], ["a", "dog"]]
    if isinstance(features, FeatureDictionary):
        X = [[{"w": w, "n": len(w)} for w in x] for x in X]
    y = [["D", "N", "V"], ["D", "N"]]
    tagger = mm.SequenceTagger(features=features, random_state=0).fit(X, y)
    every = tagger.features_.get_feature_names_out().tolist()
    assert len(set(every)) == len(every)
    for numbers in ([], [3, 0, 3], list(range(len(every)))[::-1]):
        found = tagger.features_.names_of(np.array(numbers, np.int64))
        assert list(found) == [every[f] for f in numbers]
    # Of millions of features an explanation names those of its tokens alone.
    monkeypatch.delattr(type(tagger.features_), "get_feature_names_out")
    shown = {one.name for d in tagger.explain(X[0]).decisions for one in d.evidence}
    assert shown & set(every)


def test_state_is_arrays_and_json():
    state = WindowFeatures().fit(TINY).to_state()
    arrays = {key: value for key, value in state.items() if isinstance(value, np.ndarray)}
    rest = {key: value for key, value in state.items() if key not in arrays}
    assert {str(a.dtype) for a in arrays.values()} == {"int32", "int64"}
    again = WindowFeatures.from_state({**json.loads(json.dumps(rest)), **arrays})
    fresh = WindowFeatures().fit(TINY)
    assert again.get_feature_names_out().tolist() == fresh.get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="inconsistent"):
        WindowFeatures.from_state({**state, "bounds": state["bounds"][:-1]})


@pytest.mark.parametrize("key", [-1, 99, 2**40])
def test_keys_that_no_features_have_are_refused(key):
    state = WindowFeatures(["w[0]"]).fit([[["a"], ["b"], ["c"]]]).to_state()
    assert WindowFeatures.from_state(state).n_features_out_ == 3
    keys = state["keys"].copy()
    keys[1] = key
    with pytest.raises(ValueError, match="keys of no features"):
        WindowFeatures.from_state({**state, "keys": keys})


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (
            [[("a", "b")], [("a", "b"), ("a",)]],
            r"sequence 1, token 1 is \('a',\), expected a tuple of 2",
        ),
        ([["a", 3]], "sequence 0, token 1 is 3, expected a string"),
        ([["a", ("b",)]], "sequence 0, token 1 is"),
        ([[("a", None)]], "sequence 0, token 0 is"),
        ([["a"], []], "sequence 1 is empty"),
        ([["a"], "bc"], "sequence 1 is str 'bc'"),
        ([[()]], r"sequence 0, token 0 is \(\), expected a string"),
        ([[("a",), "b"]], "sequence 0, token 1 is 'b', expected a tuple of 1 strings"),
        ([[{"w": "a"}]], "sequence 0, token 0 is"),
        ([], "at least one sequence"),
        (TokenColumns([["a"]], np.array([0, 2])), "expected columns of 2 tokens"),
        (TokenColumns([["a"]], np.array([0, 0, 1])), "sequence 0 is empty"),
    ],
)
def test_bad_tokens_are_named(X, message):
    with pytest.raises(ValueError, match=message):
        WindowFeatures().fit(X)


def test_parameters_that_do_not_fit_the_data():
    with pytest.raises(ValueError, match=r"expected 3 columns \(w, p, c\), found 2"):
        WindowFeatures(columns=["w", "p", "c"]).fit(TINY)
    with pytest.raises(ValueError, match=r"'q\[0\]': no column 'q', the data has w, p"):
        WindowFeatures(["q[0]"]).fit(TINY)
    with pytest.raises(ValueError, match="given twice"):
        WindowFeatures(["w[0]", "w[+0]"]).fit(TINY)
    with pytest.raises(ValueError, match="at least one template"):
        WindowFeatures([]).fit(TINY)
    with pytest.raises(ValueError, match=r"expected 2 columns \(w, p\).*found 1"):
        WindowFeatures().fit(TINY).transform([["a"]])


def test_too_many_combinations():
    words = [[str(k) for k in range(3000)]]
    with pytest.raises(ValueError, match="too many combinations"):
        WindowFeatures(["|".join(f"w[{k}]" for k in range(6))]).fit(words)


def test_conll2000_chunking_features():
    train = read_columns(find_data("conll2000/train.txt.xz")).select([0, 1])
    window = WindowFeatures(chunking_templates())
    tokens, offsets = window.fit_transform(train)
    assert tokens.shape == (211727, 318370)
    assert (np.diff(tokens.indptr) == 22).all()
    assert len(offsets) == 8937
    frequencies = np.bincount(tokens.indices)
    assert (np.diff(frequencies) <= 0).all()


@pytest.mark.parametrize("templates", [["w[-1]|w[0]", "suffix2(w[0])"], ["U0:%x[-1,0]/%x[0,0]"]])
def test_names_of_some_features_are_those_of_all(templates):
    window = WindowFeatures(templates).fit([["the", "cat", "sat"], ["the", "dog"]])
    every = window.get_feature_names_out().tolist()
    assert window.names_of(np.arange(len(every))) == every
    assert window.names_of(np.array([3, 1])) == [every[3], every[1]]
    window.fit([["a", "bird"]])  # others, and their names
    assert window.names_of([0]) == window.get_feature_names_out()[:1].tolist()


@pytest.mark.parametrize("features", [WindowFeatures, "ner"])
def test_what_is_no_extractor_is_named(features):
    with pytest.raises(ValueError, match=r"features must be an extractor such as WindowFeatures\("):
        mm.SequenceTagger(features=features).fit([["a", "b"]], [["D", "N"]])


def test_templates_of_two_columns_for_one_name_those_of_words():
    with pytest.raises(ValueError, match=r"no column 'p', the data has w \(for words alone"):
        WindowFeatures(["w[0]", "p[0]"]).fit([["a", "b"]])
