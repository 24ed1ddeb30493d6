"""Mistakes in the files of every task are answered with file and line."""

import os

import pytest

from cli_corpus import refused
from cli_tasks import make_files
from maxmargin.cli import main

WORD = "{}\ta\ta\tX\tX\t_\t{}\t{}\t_\t_\n"


def words(*arcs):
    """A sentence of CoNLL-U with these heads and relations."""
    return "".join(WORD.format(t, *arc) for t, arc in enumerate(arcs, 1)) + "\n"


GOOD = words((0, "root"), (1, "obj"))
BAD = [
    # segment
    ("segment", "a B-X\nb NN\n", "data:2: the label is 'NN', expected O, or B"),
    ("segment", "a O\nb B-X\nc\n", "data:3: expected 2 columns, found 1"),
    ("segment", "a O\nb O\n", "data: all labels are 'O'"),
    # depend
    ("depend", GOOD + words((0, "root"), ("_", "obj")), "data:5: the head is '_'"),
    ("depend", GOOD + words((0, "root"), (3, "obj")), "data:5: the head is '3', expected a number"),
    ("depend", GOOD + words((0, "r"), (3, "x"), (2, "x")), "data:4: the heads of word 2 run in"),
    ("depend", GOOD + words((0, "root"), (0, "root")), "data:4: 2 words hang on the root"),
    ("depend", GOOD + "1\ta\n", "data:4: expected the 10 columns"),
    # multilabel
    ("multilabel", "1,2 1:1\n1,1 1:2\n", "data:2: expected different labels"),
    ("multilabel", "1,2 1:1\n1,a 1:2\n", "data:2: expected a label that is a number"),
    ("multilabel", "1,2 1:1\n3 qid:1 1:2\n", "data:2: expected qid: on every line or on none"),
    # ordinal
    ("ordinal", "low 1:1\nbad 1:2\n", "data:2: the grade 'bad' is not one of those of --grades"),
    ("ordinal", "1 1:1\n2 1:2\n", "data:1: the grade 1 is not one of those of --grades"),
    # rank
    ("rank", "1 qid:1 1:1\n2 1:2\n", "data:2: expected qid: on every line"),
    ("rank", "1 1:1\n2 1:2\n", "data: this is an svmlight file, expected svmlight with queries"),
    ("rank", "a qid:1 1:1\nb qid:1 1:2\n", "data:1: the relevance is 'a', expected a number"),
    ("rank", "1 qid:x 1:1\n2 qid:1 1:2\n", "data:1: expected a whole number after qid:"),
    # measure
    ("measure", "# two\n1 1:1\n2 1:2\n3 1:3\n", "data:4: found a third class, 3"),
    ("measure", "1 1:1\n1 1:2\n", "data: all labels are 1"),
    # parse
    ("parse", "(S (NN a))\n(S (NP (NN a) (VP (VBD b)))\n", "data:2: a bracket that is opened here"),
    ("parse", "(S (NP (NN a)))\n(S\n (NP (-NONE- *)))\n", "data:2: no words in the tree"),
    ("parse", "(S (NP (NN a)))\n(S (NP the cat))\n", "data:2: the word 'the' below 'NP'"),
    # align
    ("align", ">a\nAC-T\n>b\nACG\n", "data:3: b has 3 columns, but a has 4"),
    ("align", "# 1\n>a\nAC\n>b\nAC\n# 2\n>c\nAC\n", "data:7: c is the only sequence"),
    ("align", ">a\nAC\n>b\n--\n", "data:3: b has no letters, only gaps"),
    ("align", ">a\nAC\n>b\nA5\n", "data:4: expected letters and gaps, found '5'"),
    # label-tree
    ("label-tree", "1 0 A 1:1\n2 1 _\n", "data:2: the label is '_'"),
    ("label-tree", "1 0 A 1:1\n3 1 B\n", "data:2: expected the node number 2, found '3'"),
    ("label-tree", "1 0 A 1:1\n2 x B\n", "data:2: expected the number of the head or _"),
    ("label-tree", "1 0 A 1:1\n2\n", "data:2: expected number, head and label first"),
    ("label-tree", "1 0 A 2:1 1:1\n2 1 B\n", "data:1: expected increasing indices"),
    ("label-tree", "1 0 A 1:1\n2 1 B\n\n1 0 A\n", "data:4: 1 nodes, but the example of line 1"),
    ("label-tree", "1 0 A 1:1\n2 1 B\n\n1 0 A\n2 0 B\n", "data:5: the head is 0, but 1 in line 2"),
    ("label-tree", "1 0 A 1:1\n2 _ B\n", "data:2: the head is _, but others are known"),
    ("label-tree", "1 0 A 1:1\n2 5 B\n", "data:2: the head is 5, expected a number from 0 to 2"),
    ("label-tree", "1 0 A 1:1\n2 0 B\n", "data:1: 2 nodes have the head 0, expected one root"),
    ("label-tree", "1 0 A 1:1\n2 3 B\n3 2 B\n", "data:2: the heads of this node run in a circle"),
    ("label-tree", "1 0 A 1:1\n2 1 B\n", "data: every node has only one label"),
]


@pytest.mark.parametrize(("task", "text", "message"), BAD, ids=[f"{b[0]}-{b[2]}" for b in BAD])
def test_training_files(task, text, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_text(text)
    options = make_files(task, 1).options
    refused(["train", task, "data", "-o", "new.mm", "-q", *options], message, capsys)
    assert not os.path.exists("new.mm")


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("segment", ["--max-segment-length", "0"], None),
        ("depend", ["--hash-bits", "50"], "--hash-bits must be from 8 to 30, got 50"),
        ("ordinal", ["--grades", "a"], "--grades must be at least 2 different names"),
        ("ordinal", ["--grades", "a,,b"], "--grades must be at least 2 different names"),
        ("rank", ["--k", "5"], "--k of rank requires --loss ndcg"),
        ("measure", ["--measure", "precision_at_k"], "--k must be a whole number >= 1"),
        ("measure", ["--loss", "f1"], "the task 'measure' has no --loss"),
        ("multilabel", ["--loss", "hinge"], "--loss of multilabel must be hamming, f1 or"),
        ("tag", ["--grades", "a,b"], "--grades is for the task 'ordinal' only"),
        ("rank", ["--fit-intercept"], "--fit-intercept is for the tasks 'tag', 'segment'"),
    ],
)
def test_options(task, options, message, tmp_path, monkeypatch, capsys):
    """They are found wrong before a file is read: there is none."""
    monkeypatch.chdir(tmp_path)
    arguments = ["train", task, "absent", "-o", "new.mm", *options]
    if message is None:  # argparse's own
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
    else:
        refused(arguments, message, capsys, code=2)


@pytest.mark.parametrize(
    ("task", "text", "message"),
    [
        ("rank", "1 qid:1 1:1\n-1 qid:1 1:1\n", "data:2: the relevance is negative, but NDCG"),
        (
            "ordinal",
            "# a\nlow 1:1\nnone 1:1\n",
            "data:3: the grade 'none' is not one of those of the model",
        ),
        (
            "measure",
            "1 1:1\n5 1:1\n",
            "data:2: the class 5 is not one of the model's classes, [-1, 1]",
        ),
        ("measure", "1 1:1\n1 1:1\n", "data: all rows have the same class"),
        ("label-tree", "1 0 A 1:1\n2 1 B\n", "data:1: 2 nodes, but the model has 3"),
        (
            "label-tree",
            "1 0 A 1:1\n2 1 C\n3 2 E\n",
            "data:1: the tree differs from that of the model",
        ),
    ],
)
def test_files_that_do_not_fit_the_model(task, text, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    files = make_files(task, 20)
    (tmp_path / "train").write_text("".join(files.labelled))
    assert main(["train", task, "train", "-o", "model.mm", "-q", *files.options]) == 0
    (tmp_path / "data").write_text(text)
    refused(["evaluate", "model.mm", "data"], message, capsys)


def test_words_as_grades_need_an_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_text("low 1:1\nhigh 1:2\n")
    refused(["train", "ordinal", "data", "-o", "new.mm"], "give their order", capsys)


def test_relations_that_are_not_there_are_not_learned(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_text(words((0, "_"), (1, "_")) * 3)
    train = ["train", "depend", "data", "-o", "new.mm", "-q", "--hash-bits", "10"]
    assert main(train) == 0
    assert "DEPREL is '_' everywhere, so only heads are learned" in capsys.readouterr().err
    assert main(["predict", "new.mm", "data"]) == 0
    assert capsys.readouterr().out == words((0, "_"), (1, "_")) * 3


def test_a_file_without_empty_lines_is_one_sequence(tmp_path, capsys):
    path = tmp_path / "whole.txt"
    path.write_text("the D\ncat N\nsees V\n")
    assert main(["train", "tag", str(path), "-o", str(tmp_path / "m"), "--max-passes", "1"]) == 3
    lines = capsys.readouterr().err.splitlines()
    assert "all 3 tokens are one sequence: an empty line ends one" in lines[0]
    assert lines[1] == "1 sequence, 3 tokens"
