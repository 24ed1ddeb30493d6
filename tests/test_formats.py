"""Column files and svmlight files, plain and compressed, good and bad."""

import bz2
import gzip
import io
import lzma
import os
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file
from sklearn.svm import LinearSVC

from conftest import find_data
from maxmargin.formats import (
    open_text,
    read_columns,
    read_svmlight,
    write_columns,
    write_svmlight,
)
from maxmargin.formats.recognising import Kind, recognise
from maxmargin.formats.svmlight import _read_carefully

OPENERS = {"": open, ".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def write(path, content):
    data = content if isinstance(content, bytes) else content.encode()
    with OPENERS[path.suffix if path.suffix in OPENERS else ""](path, "wb") as stream:
        stream.write(data)
    return path


# --- column files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["txt", "gz", "xz", "bz2"])
def test_read_columns(tmp_path, suffix):
    path = write(tmp_path / f"a.{suffix}", "The DT\ncat NN\n\n\nRuns\tVB\n")
    data = read_columns(path)
    assert data.columns == [["The", "cat", "Runs"], ["DT", "NN", "VB"]]
    assert data.offsets.tolist() == [0, 2, 3] and data.offsets.dtype == np.int64
    assert (data.n_sequences, data.n_tokens) == (2, 3)
    assert data.sequences() == [[("The", "DT"), ("cat", "NN")], [("Runs", "VB")]]
    assert data.split(-1) == [["DT", "NN"], ["VB"]]
    assert data.select([1]).columns == [["DT", "NN", "VB"]]


def test_windows_line_ends_byte_order_mark_and_document_starts(tmp_path):
    text = "\ufeff-DOCSTART- -X- O O\r\n\r\na x\r\n-DOCSTART-\r\nb y\r\n"
    data = read_columns(write(tmp_path / "a", text))
    assert data.sequences() == [[("a", "x")], [("b", "y")]]


def test_document_starts_may_be_indented_and_are_not_written(tmp_path):
    data = read_columns(write(tmp_path / "a", "a x\n  -DOCSTART- x\nb y\n"))
    assert data.sequences() == [[("a", "x")], [("b", "y")]]
    with pytest.raises(ValueError, match="token 1: '-DOCSTART-' cannot be written, it would be"):
        write_columns(tmp_path / "b", [["a", "-DOCSTART-"], ["x", "y"]], [0, 2])


def test_comments_do_not_cut_a_sequence(tmp_path):
    path = write(tmp_path / "a", "# top\na x\n# inside\nb y\n\n# last\nc z\n")
    assert read_columns(path, comment="#").offsets.tolist() == [0, 2, 3]
    write(path, "# top\na x\n# inside\nb\n")
    with pytest.raises(ValueError, match=r"a:4: expected 2 columns, found 1"):
        read_columns(path, comment="#")


def test_a_no_break_space_is_part_of_a_token(tmp_path):
    path = write(tmp_path / "a", "10\u00a0000 CD\n\u3000 NN\n")
    assert read_columns(path).columns == [["10\u00a0000", "\u3000"], ["CD", "NN"]]


def test_explicit_separator_keeps_spaces_and_empty_fields(tmp_path):
    path = write(tmp_path / "a", "New York\tNNP\n\tNN\n")
    assert read_columns(path, separator="\t").columns == [["New York", ""], ["NNP", "NN"]]


@pytest.mark.parametrize("separator", [None, " "])
def test_bad_column_count_is_named(tmp_path, separator):
    path = write(tmp_path / "a.txt", "a x\n\nb y\nc y z\n")
    with pytest.raises(ValueError, match=r"a\.txt:4: expected 2 columns, found 3"):
        read_columns(path, separator=separator)
    with pytest.raises(ValueError, match=r"a\.txt:1: expected 3 columns, found 2"):
        read_columns(path, separator=separator, n_columns=3)


@pytest.mark.parametrize("content", ["", "\n\n", "-DOCSTART- O\n"])
def test_no_tokens(tmp_path, content):
    with pytest.raises(ValueError, match=r"a\.txt: no tokens"):
        read_columns(write(tmp_path / "a.txt", content))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
@pytest.mark.parametrize("read", [read_columns, read_svmlight])
def test_truncated_and_foreign_compressed_files(tmp_path, suffix, read):
    path = tmp_path / f"a{suffix}"
    write(path, "".join(f"{k} {k + 1}:{k}\n" for k in range(1000)))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=rf"a\{suffix}: truncated or damaged"):
        read(path)
    path.write_bytes(b"plain text, not compressed")
    with pytest.raises(ValueError, match=rf"a\{suffix}: "):
        read(path)


def test_undecodable_bytes_are_named(tmp_path):
    path = write(tmp_path / "a.txt.gz", b"a x\nb y\nc\xff z\n")
    with pytest.raises(ValueError, match=r"a\.txt\.gz:3: not valid utf-8"):
        read_columns(path)
    assert read_columns(path, encoding="latin-1").columns[0][2] == "c\u00ff"


def test_a_missing_file_stays_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_columns(tmp_path / "none.gz")


FIELDS = st.text(st.characters(exclude_characters=" \t\r\n\0\ufeff", codec="utf-8"), min_size=1)


@given(st.data(), st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 3))
def test_columns_round_trip(tmp_path_factory, data, lengths, width):
    path = tmp_path_factory.mktemp("round") / "a.txt"
    field = FIELDS.filter(lambda text: not text.startswith("-DOCSTART-"))
    total = sum(lengths)
    columns = [data.draw(st.lists(field, min_size=total, max_size=total)) for _ in range(width)]
    offsets = np.cumsum([0, *lengths])
    write_columns(path, columns, offsets)
    again = read_columns(path)
    assert again.columns == columns
    assert again.offsets.tolist() == offsets.tolist()


def test_files_are_decompressed_whatever_their_name(tmp_path):
    for module in (gzip, lzma, bz2):
        path = write(tmp_path / "a.txt", module.compress(b"a x\nb y\n"))
        assert read_columns(path).columns == [["a", "b"], ["x", "y"]]


def test_tokens_know_their_lines(tmp_path):
    path = write(tmp_path / "a.txt", "# top\na x\n\n-DOCSTART- x\n# inside\nb y\n")
    data = read_columns(path, comment="#")
    assert data.lines.tolist() == [2, 6] and data.source == str(path)
    assert data.select([0]).lines.tolist() == [2, 6]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a x\nb\0 y\n", r"a\.txt:2: found a NUL"),
        ("a x\rb y\r", r"a\.txt: lines end in \\r"),
    ],
)
def test_odd_text_is_named(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        read_columns(write(tmp_path / "a.txt", content))


def test_tables_between_tabs_round_trip(tmp_path):
    columns = [["New York", "", "a"], ["x", "y z", ""]]
    write_columns(tmp_path / "a", columns, [0, 2, 3], separator="\t")
    assert read_columns(tmp_path / "a", separator="\t").columns == columns
    with pytest.raises(ValueError, match="token 1: all its fields are empty"):
        write_columns(tmp_path / "b", [["a", ""], ["b", " "]], [0, 2], separator="\t")


@pytest.mark.parametrize("read", [read_columns, read_svmlight])
@pytest.mark.parametrize("encoding", ["klingon", "rot13", "", "a\0b", "\udcff"])
def test_unknown_encodings(tmp_path, read, encoding):
    path = write(tmp_path / "a.txt", "a x\nb y\n")
    with pytest.raises(ValueError, match="unknown text encoding"):
        read(path, encoding=encoding)


@pytest.mark.parametrize("suffix", ["txt", "gz", "xz", "bz2"])
def test_write_compressed_and_to_a_stream(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    write_columns(path, [["a", "b"], ["x", "y"]], [0, 1, 2])
    with open_text(path) as stream:
        text = stream.read()
    assert text == "a x\n\nb y\n\n"
    target = io.StringIO()
    write_columns(target, [["a", "b"], ["x", "y"]], [0, 1, 2])
    assert target.getvalue() == text
    assert os.listdir(tmp_path) == [path.name]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = write(tmp_path / "a.txt", "old\n")

    def fail(*_):
        raise OSError(28, "disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_columns(path, [["a"]], [0, 1])
    assert path.read_text() == "old\n"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize(
    ("columns", "offsets", "message"),
    [
        ([["a b"], ["x"]], [0, 1], "token 0, column 0: 'a b'"),
        ([["a"], [""]], [0, 1], "token 0, column 1: ''"),
        ([["a"], ["x", "y"]], [0, 1], "columns of one length"),
        ([["a"]], [0, 2], "offsets from 0 to 1"),
        ([["a"]], [0, 0, 1], "sequence 0 is empty"),
    ],
)
def test_what_cannot_be_written(tmp_path, columns, offsets, message):
    with pytest.raises(ValueError, match=message):
        write_columns(tmp_path / "a", columns, offsets)
    assert os.listdir(tmp_path) == []


def test_conll2000_counts():
    data = read_columns(find_data("conll2000/train.txt.xz"))
    assert (data.n_sequences, data.n_tokens, len(data.columns)) == (8936, 211727, 3)
    assert len(set(data.columns[2])) == 22


def test_conll2002_counts():
    data = read_columns(find_data("conll2002/esp.testa.xz"))
    assert (data.n_sequences, data.n_tokens, len(data.columns)) == (1915, 52923, 3)


# --- svmlight files -------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["svm", "gz", "xz", "bz2"])
def test_read_svmlight(tmp_path, suffix):
    path = write(tmp_path / f"a.{suffix}", "+1 2:0.5 3:1 # note\n\n-1 3:-2\n")
    X, y, qid = read_svmlight(path)
    assert X.toarray().tolist() == [[0, 0.5, 1], [0, 0, -2]]
    assert y.tolist() == [1, -1] and y.dtype == np.int64
    assert qid is None
    assert read_svmlight(path, n_features=5).X.shape == (2, 5)


def test_first_feature_unused_does_not_shift(tmp_path):
    assert read_svmlight(write(tmp_path / "a", "1 2:1\n2 3:1\n")).X.shape == (2, 3)


def test_labels_stay_what_they_are(tmp_path):
    path = tmp_path / "a"
    assert read_svmlight(write(path, "1.5 1:1\n2 1:1\n")).y.tolist() == [1.5, 2.0]
    large = [2**53 + 1, 2**53, -(2**63 - 1)]  # floating-point numbers would confuse the first two
    text = "".join(f"{label} 1:1\n" for label in large)
    assert read_svmlight(write(path, text)).y.tolist() == large
    words = read_svmlight(write(path, "cat 1:1\ndog 2:1\n3 2:2\n".replace("3", "3rd")))
    assert words.y.tolist() == ["cat", "dog", "3rd"]
    assert words.X.toarray().tolist() == [[1, 0], [0, 1], [0, 2]]
    assert read_svmlight(write(path, "2\n3 1:1\n")).X.toarray().tolist() == [[0], [1]]


def test_query_numbers(tmp_path):
    data = read_svmlight(write(tmp_path / "a", "2 qid:7 1:1\n1 qid:9 2:1\n"))
    assert data.qid is not None and data.qid.tolist() == [7, 9]
    assert data.X.toarray().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x 1:1", "expected a label that is a number like the first one, found 'x'"),
        ("1:1 2:1", "expected a label first"),
        ("1,2 2:1", "expected one label, found the list"),
        ("nan 1:1", "expected a finite label"),
        ("1 1:1 2", "expected index:value, found '2'"),
        ("1 1:x", "expected index:value, found '1:x'"),
        ("1 a:1", "expected index:value, found 'a:1'"),
        (
            "1 0:1",
            "expected indices from 1, found '0:1' (scikit-learn's dump_svmlight_file needs zero",
        ),
        ("1 9:1", "expected at most 4 features, found '9:1'"),
        ("1 2:1 1:1", "expected increasing indices, found '1:1' after 2"),
        ("1 2:1 2:1", "expected increasing indices"),
        ("1 1:nan", "expected a finite value"),
        ("1 1:inf", "expected a finite value"),
        ("1 qid:3 1:1", "expected qid: on every line or on none"),
        ("1 qid:x 1:1", "expected a whole number after qid:"),
        ("1 qid:99999999999999999999 1:1", "expected a whole number after qid:"),
        ("1 99999999999999999999:1", "expected indices from 1 to 2147483647"),
        (f"1 {'9' * 5000}:1", "expected indices from 1 to 2147483647"),
        ("1 2147483648:1", "expected indices from 1 to 2147483647"),
        ("1 1:1e999", "expected a finite value, found '1:1e999'"),
        ("1e999 1:1", "expected a finite label"),
        ("1 1_0:1", "expected index:value, found '1_0:1'"),
        ("1 1:1_0", "expected index:value, found '1:1_0'"),
        ("1_0 1:1", "expected a label that is a number like the first one, found '1_0'"),
    ],
)
def test_bad_svmlight_lines_are_named(tmp_path, line, message):
    path = write(tmp_path / "a.svm", f"1 1:1\n\n{line}\n2 1:1\n")
    with pytest.raises(ValueError) as caught:
        read_svmlight(path, n_features=4)
    assert f"a.svm:3: {message}" in str(caught.value) and len(str(caught.value)) < 500


def test_huge_indices_are_named_without_a_limit_too(tmp_path):
    for index in ("2147483648", "9223372036854775807", "9" * 30):
        path = write(tmp_path / "a.svm", f"1 1:1\n2 {index}:1\n")
        with pytest.raises(ValueError, match=r"a\.svm:2: expected indices from 1 to 2147483647"):
            read_svmlight(path)
    assert read_svmlight(write(path, "1 2147483647:1\n2 1:1\n")).X.shape == (2, 2**31 - 1)


def test_svmlight_files_read_by_threads_leave_warnings_as_they_are(tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_text("1 1:0.5 2:1.5 3:2\n" * 20_000)
    before = list(warnings.filters)
    threads = [threading.Thread(target=read_svmlight, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warnings.filters == before


def test_svmlight_without_labels(tmp_path):
    X, y, qid = read_svmlight(write(tmp_path / "a", "1:1 2:0.5\n\n3:1 # c\n"), has_labels=False)
    assert X.toarray().tolist() == [[1, 0.5, 0], [0, 0, 1]] and y is None and qid is None
    with pytest.raises(ValueError, match=r"a:1: expected index:value, found '7'"):
        read_svmlight(write(tmp_path / "a", "7 1:1\n"), has_labels=False)


def test_several_labels_on_a_line(tmp_path):
    text = "3,1 1:1\n2:0.5 # none\n\n 3:1\n7\n"
    X, y, qid = read_svmlight(write(tmp_path / "a", text), 4, multilabel=True)
    assert X.toarray().tolist() == [[1, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert y == [(3, 1), (), (), (7,)] and type(y[0][0]) is int and qid is None
    X, y, qid = read_svmlight(write(tmp_path / "a", "a,b qid:2 1:1\nqid:3 1:2\n"), multilabel=True)
    assert y == [("a", "b"), ()] and qid is not None and qid.tolist() == [2, 3]
    assert read_svmlight(write(tmp_path / "a", "1,2.5 1:1\n"), multilabel=True).y == [(1.0, 2.5)]
    assert read_svmlight(write(tmp_path / "a", "1:1\n2:1\n"), multilabel=True).y == [(), ()]
    for line, message in (
        ("1,,2 1:1", "expected labels between commas, found '1,,2'"),
        ("1,2,1 1:1", "expected different labels, found '1,2,1'"),
        ("1,x 1:1", "expected a label that is a number like the first one, found 'x'"),
        ("1 2 1:1", "expected index:value, found '2'"),
    ):
        with pytest.raises(ValueError, match=rf"a:2: {message}"):
            read_svmlight(write(tmp_path / "a", f"5 1:1\n{line}\n"), multilabel=True)
    with pytest.raises(ValueError, match="several labels on a line and none"):
        read_svmlight(tmp_path / "a", multilabel=True, has_labels=False)


def test_several_labels_as_scikit_learn_reads_them():
    path = find_data("multilabel/enron_test.svm.gz")
    X, y, _ = read_svmlight(path, 1001, multilabel=True)
    X_peer, y_peer = load_svmlight_file(str(path), n_features=1001, multilabel=True)
    assert (X != X_peer).nnz == 0 and y == y_peer


def test_svmlight_encodings(tmp_path):
    path = write(tmp_path / "a", "\ufeff1 1:1\n2 1:2\n")
    assert read_svmlight(path).y.tolist() == [1, 2]
    path = write(tmp_path / "a", "für 1:1\nZug 1:2\n".encode("latin-1"))
    assert read_svmlight(path, encoding="latin-1").y.tolist() == ["für", "Zug"]


def test_a_number_among_words_is_named(tmp_path):
    path = write(tmp_path / "a.svm", "cat 1:1\n7 1:1\n")
    with pytest.raises(ValueError, match=r"a\.svm:2: .*a word like the first one, found '7'"):
        read_svmlight(path)


def test_no_examples(tmp_path):
    with pytest.raises(ValueError, match="no examples"):
        read_svmlight(write(tmp_path / "a", "# nothing\n"))


def test_undecodable_svmlight(tmp_path):
    with pytest.raises(ValueError, match=r"a:2: not valid utf-8"):
        read_svmlight(write(tmp_path / "a", b"1 1:1\nc\xff 1:1\n"))


@given(st.data())
def test_both_parsers_agree(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("svm") / "a"
    finite = st.floats(allow_nan=False, allow_infinity=False)
    row = st.dictionaries(st.integers(1, 9), finite, max_size=5)
    rows = data.draw(st.lists(st.tuples(st.integers(-3, 3), row), min_size=1, max_size=5))
    text = "".join(f"{y} {' '.join(f'{k}:{v!r}' for k, v in sorted(x.items()))}\n" for y, x in rows)
    write(path, text)
    fast, careful = read_svmlight(path, 9), _read_carefully(path, 9)
    np.testing.assert_array_equal(fast.X.toarray(), careful.X.toarray())
    assert fast.y.tolist() == careful.y.tolist() == [y for y, _ in rows]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_written_svmlight_files_are_read_back(tmp_path, suffix):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 4)) * (rng.random((6, 4)) < 0.6) * 10.0 ** rng.integers(-9, 9, (6, 4))
    path, qid = tmp_path / f"a.svm{suffix}", np.array([7, 7, 7, 2, 2, 9])
    for y in (np.array([2, 0, 1, 0, 0, 1]), np.array([0.1, -2.0, 1 / 3, 0.0, 5.0, 1e-30])):
        write_svmlight(path, X, y, qid, comments=[f"docid = GX{k}" for k in range(6)])
        data = read_svmlight(path, n_features=4)
        assert np.array_equal(data.X.toarray(), X)
        assert np.array_equal(data.y, y) and np.array_equal(data.qid, qid)
        assert recognise(path) is Kind.LETOR
    write_svmlight(path, sp.coo_array(X), ["a", "b", "a", "c", "b", "a"])
    data = read_svmlight(path, n_features=4)
    assert np.array_equal(data.X.toarray(), X) and data.qid is None
    assert data.y.tolist() == ["a", "b", "a", "c", "b", "a"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.eye(2), [1]), "X has 2 examples, but y has 1"),
        ((np.eye(2), [1, 2], [1]), "X has 2 examples, but qid has 1"),
        ((np.eye(2), [1, 2], [1.5, 2.0]), "qid must be whole numbers"),
        ((np.eye(2), [1, 2], None, ["x"]), "but comments has 1"),
        ((np.array([[np.nan]]), [1]), "NaN or an infinite value"),
        ((np.eye(2), [1.0, np.inf]), r"y\[1\] is 'inf'"),
        ((np.eye(2), ["a", "b c"]), r"y\[1\] is 'b c'"),
    ],
)
def test_what_cannot_be_written_as_svmlight(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        write_svmlight(tmp_path / "a", *arguments)
    assert not (tmp_path / "a").exists()


def test_svmlight_data_fit_others_estimators(tmp_path):
    """LinearSVC refuses sparse matrices with 64-bit indices."""
    path = tmp_path / "classes.svm"
    path.write_text("1 1:1 3:2\n-1 2:1\n1 1:2\n-1 2:3 3:1\n")
    data = read_svmlight(path)
    assert LinearSVC().fit(data.X, data.y).predict(data.X).tolist() == data.y.tolist()
