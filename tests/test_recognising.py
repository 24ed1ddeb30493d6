"""Files of many kinds are known by how they begin, and ordinary ones are left alone."""

import gzip
import zipfile

import numpy as np
import pytest

import maxmargin as mm
from conftest import find_data
from maxmargin.formats.recognising import SAMPLE_BYTES, Kind, recognise

CONLLU_LINE = "1\tI\tI\tPRON\tPRP\t_\t{head}\tnsubj\t_\t_\n"
FILES = {
    Kind.SVMLIGHT: [
        "1\t1:0.5\t2:1\n2\t1:0.25\n",
        "1 1:0.5 3:2\n-1 2:1 # note\n",
        "cat 1:1\ndog\n",
        "# top\n+1 2:1\n",
    ],
    Kind.UNLABELLED_SVMLIGHT: ["1:0.5 3:2\n2:1\n"],
    Kind.MULTILABEL: ["1,2 1:0.5\n3 2:1\n"],
    Kind.LETOR: ["2 qid:10 1:0.05 2:0.1 #docid = GX0 inc = 1 prob = 0.1\n" * 3],
    Kind.CRFSUITE: [
        "B-NP\tw[0]=An\tw[1]=A.P.\nI-NP\tw[0]=A.P.\t__EOS__\tp=NN\n\nO\tw[0]=.\tw[-1]=a b\n",
        "A\tw=x\nB\tw=y\tlength:2\t__EOS__\n",
    ],
    Kind.SVM_HMM: ["3 qid:1 4:1 9:1 # the\n7 qid:1 5:1 # cat\n"],
    Kind.QUERIES: ["1 qid:1 1:2\n2 qid:2 1:3\n", "1 qid:1 1:2 # a b\n2 qid:2 1:3 # c d\n"],
    Kind.CONLLU: [
        "# text = I\n" + CONLLU_LINE.format(head=0),
        CONLLU_LINE.format(head=0) + "2-3\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n\n",
        (CONLLU_LINE.format(head="_") + "\n").replace("\n", "\r\n"),
    ],
    Kind.TREES: [
        "( (S (NP (DT the) (NN cat)) (VP (VBZ sleeps))))\n",
        "(S\n  (NP (PRP it))\n  (VP (VBZ works)))\n",
        "wsj_1\t(S (NP (PRP it)) (VP (VBZ works)))\n",
    ],
    Kind.FASTA: [">one first\nACDE\nfghi*\n>two\nAC-G\n", "; note\n>a\nACGT\nAC GT\n>b\nA\n"],
    Kind.JSON: ['{"words": ["a"], "tags": ["x"]}\n' * 2, '[{"a": 1}]'],
    Kind.COMMAS: ["word,tag\nNew York,LOC\nis,O\n"],
    Kind.COLUMNS: ["a x\nb y\n\nc z\n", "at\t12:30\nthe\tcat\non\tit\n", "( ( O\n) ) O\n> > O\n"],
    Kind.BINARY: ["ELF\0\1\2\n"],
    None: ["", "\n\n", "word\nword\n", "a x\nb y z\n", "1 1:2\n2 x:3\n", "a b\n" + "c d e\n" * 9],
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in FILES.items() for text in texts]
)
def test_kinds_of_text(tmp_path, kind, text):
    path = tmp_path / "some.file"
    for content in (text.encode(), b"\xef\xbb\xbf" + text.encode(), gzip.compress(text.encode())):
        path.write_bytes(content)
        assert recognise(path) == kind


def test_other_kinds(tmp_path):
    model, archive, array = tmp_path / "m.mm", tmp_path / "a.zip", tmp_path / "a.npy"
    mm.PCFGParser().fit(["(S (N cats))"]).save(model)
    with zipfile.ZipFile(archive, "w") as stream:
        stream.writestr("train.txt", "a x\n")
    np.save(array, np.ones(3))
    wide = tmp_path / "wide.txt"
    wide.write_text("a x\nb y\n", encoding="utf-16")
    found = [recognise(path) for path in (model, archive, array, wide)]
    assert found == [Kind.MODEL, Kind.ZIP, Kind.NUMPY, Kind.UTF_16]
    assert recognise(wide, "utf-16") == Kind.COLUMNS


def test_a_line_cut_by_the_sample_does_not_count(tmp_path):
    path = tmp_path / "long.svm"
    line = "1 " + " ".join(f"{k}:1" for k in range(1, 900)) + "\n"
    path.write_text(line * (SAMPLE_BYTES // len(line) + 2))
    assert recognise(path) == Kind.SVMLIGHT


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("conll2000/train.txt.xz", Kind.COLUMNS),
        ("conll2002/esp.train.xz", Kind.COLUMNS),
        ("binary/a9a_train.svm.gz", Kind.SVMLIGHT),
        ("multilabel/yeast_train.svm.gz", Kind.MULTILABEL),
        ("ranking/mq2008_S1.svm.gz", Kind.QUERIES),
        ("ud_english_ewt/en_ewt-ud-dev.conllu.xz", Kind.CONLLU),
        ("ptb_sample/wsj_0001-0199.mrg.xz", Kind.TREES),
        ("protein_alignment/balibase3_rv11_rv12.afa.xz", Kind.FASTA),
        ("mnist/t10k-labels-idx1-ubyte.xz", Kind.BINARY),
    ],
)
def test_benchmark_data(name, kind):
    assert recognise(find_data(name)) == kind
