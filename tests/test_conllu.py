"""CoNLL-U files: what is read, what is kept, what is refused."""

import io
import lzma

import pytest

from conftest import find_data
from maxmargin.formats import read_conllu, write_conllu

TEXT = """\
# sent_id = 1
# text = I don't sleep.
1\tI\tI\tPRON\tPRP\t_\t4\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\tsleep\tsleep\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No
4.1\t_\t_\t_\t_\t_\t_\t_\t0:root\t_
5\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_

# sent_id = 2
1\t# 1\t#\tSYM\tNN\t_\t0\troot\t_\t_
# a comment at the end

"""


@pytest.fixture
def treebank(tmp_path):
    path = tmp_path / "trees.conllu"
    path.write_text(TEXT, encoding="utf-8")
    return read_conllu(path)


def written(treebank):
    stream = io.StringIO()
    write_conllu(stream, treebank)
    return stream.getvalue()


def test_words_and_trees(treebank):
    assert (treebank.n_sentences, treebank.n_words) == (2, 6)
    assert treebank.tokens()[0][1] == ("do", "AUX", "VBP")
    assert treebank.tokens(2)[0][2] == ("not",)
    assert treebank.heads() == [[4, 4, 4, 0, 4], [0]]
    assert treebank.labeled_heads()[1] == [(0, "root")]
    assert treebank.select([1]).tokens() == [[("# 1", "SYM", "NN")]]


def test_round_trip(treebank, tmp_path):
    assert written(treebank) == TEXT
    path = tmp_path / "copy.conllu.gz"
    write_conllu(path, treebank)
    assert read_conllu(path)._replace(source=treebank.source) == treebank


def test_windows_line_ends_and_no_last_line_end(tmp_path, treebank):
    path = tmp_path / "trees.conllu"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.rstrip("\n").replace("\n", "\r\n").encode())
    assert read_conllu(path)._replace(source=treebank.source) == treebank


def test_other_trees(treebank):
    changed = treebank.with_trees([[2, 4, 4, 0, 4], [0]])
    assert changed.labeled_heads()[0] == [
        (2, "_"),
        (4, "aux"),
        (4, "advmod"),
        (0, "root"),
        (4, "punct"),
    ]
    assert written(changed) == TEXT.replace("\t4\tnsubj", "\t2\t_")
    labeled = treebank.with_trees([treebank.labeled_heads()[0], [(0, "dep")]])
    assert written(labeled) == TEXT.replace("NN\t_\t0\troot", "NN\t_\t0\tdep")
    assert treebank.heads()[0][0] == 4  # the original is left as it was
    with pytest.raises(ValueError, match="expected 2 trees, got 1"):
        treebank.with_trees([[0]])
    with pytest.raises(ValueError, match="sentence 1 has 1 words but its tree has 2"):
        treebank.with_trees([[4, 4, 4, 0, 4], [0, 1]])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "1\ta\ta\tX\tX\t_\t0\troot",
            "t.conllu:2: expected the 10 columns of CoNLL-U, separated by tabs, found 8",
        ),
        ("2\ta\ta\tX\tX\t_\t0\troot\t_\t_", "t.conllu:2: expected the word number 1, found '2'"),
        ("1\ta\ta\tX\tX\t_\t3\troot\t_\t_", "t.conllu:2: the head is '3', expected a number"),
        ("1\ta\ta\tX\tX\t_\tx\troot\t_\t_", "t.conllu:2: the head is 'x', expected a number"),
        ("1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_", "t.conllu:1: a sentence without words"),
        ("# nothing", "t.conllu: no words found"),
    ],
)
def test_bad_files_are_refused(tmp_path, line, message):
    path = tmp_path / "t.conllu"
    path.write_text(f"# id\n{line}\n\n", encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_conllu(path)


def test_words_without_heads_can_be_read(tmp_path):
    path = tmp_path / "t.conllu"
    path.write_text("1\ta\ta\tX\tX\t_\t_\t_\t_\t_\n", encoding="utf-8")
    treebank = read_conllu(path)
    assert treebank.tokens() == [[("a", "X", "X")]]
    with pytest.raises(ValueError, match=r"t\.conllu:1: the head is '_'"):
        treebank.heads()


def test_treebank_of_english():
    path = find_data("ud_english_ewt/en_ewt-ud-dev.conllu.xz")
    treebank = read_conllu(path)
    assert (treebank.n_sentences, treebank.n_words) == (2001, 25147)
    assert written(treebank) == lzma.open(path, "rt", encoding="utf-8", newline="").read()
