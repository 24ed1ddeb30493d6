"""Whatever bytes a text file holds, readers give its content or the error that names it."""

import numpy as np
import pytest

from maxmargin.formats import (
    clean_tree,
    read_columns,
    read_conllu,
    read_fasta,
    read_svmlight,
    read_taxonomy,
    read_trees,
)
from maxmargin.formats.svmlight import _read_carefully

GOOD = {
    read_columns: b"The DT B-NP\ncat NN I-NP\n\nRuns VB O\n-DOCSTART- -X- O\n\na b c\n",
    read_svmlight: b"1 1:0.5 3:2e5 # note\n-1 2:1\n+3 1:1\n",
    read_conllu: b"# c\n1\tI\tI\tP\tP\t_\t2\tn\t_\t_\n1-2\tId\t_\t_\t_\t_\t_\t_\t_\t_\n"
    b"2\tdo\tdo\tAUX\tVBP\t_\t0\taux\t_\t_\n\n",
    read_trees: b"( (S (NP (DT the) (NN cat)) (VP (VBZ sleeps))))\nid (S (NP (PRP it)))\n",
    read_fasta: b">one first\nACDE\nfg hi*\n\n>two\nK-L.M\n",
    read_taxonomy: b"node\tparent\tclass\na\troot\t1\nb\troot\t2\nc\ta\t3\n",
}
PIECES = [
    *(b"99999999999999999999", b"9" * 5000, b"2147483648", b"-1", b"nan", b"inf", b"1e999", b"1_0"),
    *(b"0x10", "²".encode(), "٣".encode(), b"1-2", b"1.1", b"qid:", b":", b"#", b"(", b")", b"_"),
    *(b"((" * 1500, b"\t", b"\n", b"\r", b"  ", b"\0", b"\xff", b"\xc3", b"\x1c", b"\xef\xbb\xbf"),
]


def damaged(text, rng):
    """A text with a few changes: other bytes, bytes that are missing, pieces that are too much."""
    data = bytearray(text)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(len(data) + 1))
        change = rng.random()
        if change < 0.3:
            data[at : at + 1] = bytes([rng.integers(256)])
        elif change < 0.5:
            del data[at : at + int(rng.integers(1, 6))]
        else:
            data[at:at] = PIECES[rng.integers(len(PIECES))]
    return bytes(data)


@pytest.mark.parametrize("read", GOOD, ids=[read.__name__ for read in GOOD])
@pytest.mark.filterwarnings("error")
def test_only_errors_that_name_the_file(read, tmp_path):
    path = tmp_path / "some.txt"
    rng = np.random.default_rng(0)
    n_refused = 0
    for _ in range(300):
        path.write_bytes(damaged(GOOD[read], rng))
        try:
            content = read(path)
            if read is read_svmlight:
                other = _read_carefully(path, None)
                assert content.y.tolist() == other.y.tolist()
                assert content.X.shape == other.X.shape and (content.X != other.X).nnz == 0
        except ValueError as error:
            assert type(error) is ValueError and str(error).startswith(f"{path}:"), repr(error)
            assert len(str(error)) < 500 + len(str(path))
            n_refused += 1
    assert 20 < n_refused < 300


def test_trees_can_be_walked_if_they_can_be_read(tmp_path):
    path = tmp_path / "deep.txt"
    path.write_text("(A " * 199 + "(B b)" + ")" * 199)
    tree = read_trees(path).trees[0]
    assert len(tree.spans()) == 199 and clean_tree(tree).leaves() == [("b", "B")]
    assert str(tree) == path.read_text() and hash(tree) == hash(read_trees(path).trees[0])
    path.write_text("(A\n" * 300 + "(B b)" + ")" * 300)
    with pytest.raises(ValueError, match=r"deep\.txt:201: expected at most 200 brackets"):
        read_trees(path)


def test_classes_that_look_alike_stay_apart(tmp_path):
    path = tmp_path / "tree.tsv"
    path.write_text("a\troot\t7\nb\troot\t07\n")
    assert sorted(read_taxonomy(path).classes) == ["07", "7"]


def test_an_empty_fasta_file_is_named(tmp_path):
    path = tmp_path / "empty.fa"
    path.write_text("; nothing\n")
    with pytest.raises(ValueError, match=r"empty\.fa: no sequences"):
        read_fasta(path)
