"""What the command line finds in files: kinds, encodings, mistakes, and options that do not fit."""

import bz2
import gzip
import json
import lzma
import os

import numpy as np
import pytest

import maxmargin as mm
from cli_corpus import refused
from maxmargin.cli import main
from maxmargin.persistence import save_model
from maxmargin.solvers import Auto


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("1 qid:1 1:1 # a\n2 qid:1 2:1 # b\n", "svm_hmm"),
        ("1 qid:1 1:1\n2 qid:2 2:1\n", "'maxmargin train rank'"),
        ("1 qid:1 1:1 #docid = a\n2 qid:2 2:1 #docid = b\n", "'maxmargin train rank'"),
        ("1,2 1:1\n2 2:1\n", "'maxmargin train multilabel'"),
        ("1 0 A 1:1\n2 1 B 2:1\n", "'maxmargin train label-tree'"),
        ("# text\n1\ta\ta\tX\tX\t_\t0\troot\t_\t_\n", "'maxmargin train depend'"),
        ("(S (NP (PRP it)) (VP (VBZ works)))\n", "'maxmargin train parse'"),
        (">a\nACGT\n>b\nAC\n", "'maxmargin train align'"),
        ("a,x\nb,y\n", "commas"),
        ("ELF\0\1", "a binary file"),
    ],
)
def test_other_kinds_of_files_are_named(corpus_folder, text, what, capsys):
    (corpus_folder / "data").write_text(text)
    for arguments in (
        ["train", "tag", "data", "-o", "new.mm"],
        ["train", "multiclass", "data", "-o", "new.mm"],
        ["predict", "model.mm", "data"],
        ["evaluate", "model.mm", "data"],
    ):
        refused(arguments, what, capsys)
    assert not os.path.exists("new.mm")


def test_files_of_the_other_task_are_named(corpus_folder, capsys):
    (corpus_folder / "data.svm").write_text("1 1:1\n2 2:1\n3 1:2 2:1\n")
    refused(["train", "tag", "data.svm", "-o", "new.mm"], "'maxmargin train multiclass'", capsys)
    refused(["predict", "model.mm", "data.svm"], "this is an svmlight file", capsys)
    refused(["train", "multiclass", "ok.txt", "-o", "new.mm"], "'maxmargin train tag'", capsys)
    refused(["predict", "model.mm", "model.mm"], "order of the arguments", capsys)
    assert main(["train", "multiclass", "data.svm", "-o", "classes.mm", "-q"]) == 0
    refused(["evaluate", "classes.mm", "ok.txt"], "this is a file of CoNLL columns", capsys)
    (corpus_folder / "bare.svm").write_text("1:1\n2:1\n")
    refused(["evaluate", "classes.mm", "bare.svm"], "without labels", capsys)
    assert main(["predict", "classes.mm", "bare.svm"]) == 0
    assert capsys.readouterr().out == "1\n2\n"


def test_compressed_files_need_no_ending(corpus_folder):
    content = (corpus_folder / "ok.txt").read_bytes()
    for module in (gzip, lzma, bz2):
        (corpus_folder / "data").write_bytes(module.compress(content))
        assert main(["train", "tag", "data", "-o", "new.mm", "-q"]) == 0
        assert np.allclose(mm.load("new.mm").coef_, mm.load("model.mm").coef_, atol=1e-3)


def test_encodings(corpus_folder, capsys):
    (corpus_folder / "data").write_bytes("für IN A\nZürich NN B\n".encode("latin-1"))
    train = ["train", "tag", "data", "-o", "new.mm", "-q"]
    refused(train, "data:1: not valid utf-8 text", capsys)
    main(train)
    assert "--encoding" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main([*train, "--encoding", "klingon"])
    assert ended.value.code == 2 and "unknown text encoding 'klingon'" in capsys.readouterr().err
    assert main([*train, "--encoding", "latin-1"]) == 0
    assert main(["predict", "new.mm", "data", "--encoding", "latin-1", "-o", "out"]) == 0
    assert (corpus_folder / "out").read_text("latin-1") == "für IN A A\nZürich NN B B\n\n"
    (corpus_folder / "wide").write_text("für IN A\nZürich NN B\n", encoding="utf-16")
    refused(["predict", "new.mm", "wide"], "--encoding utf-16", capsys)
    assert main(["evaluate", "new.mm", "wide", "--encoding", "utf-16"]) == 0


def test_tabs_may_be_the_only_separators(corpus_folder, capsys):
    (corpus_folder / "data").write_text("New York\tNNP\tB\n\tX\tO\n\nis\tVB\tO\n")
    train = ["train", "tag", "data", "-o", "new.mm", "-q"]
    refused(train, "data:2: expected 4 columns", capsys)
    assert main([*train, "--separator", "tab"]) == 0
    assert main(["predict", "new.mm", "data"]) == 0  # the model knows how its file was read
    assert capsys.readouterr().out == "New York\tNNP\tB\tB\n\tX\tO\tO\n\nis\tVB\tO\tO\n\n"
    assert main(["evaluate", "new.mm", "data", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == 1.0
    refused(["evaluate", "new.mm", "data", "--separator", "auto"], "data:2: expected 4", capsys)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no tokens found"),
        (b"\n \n\t\n", "no tokens found"),
        (b"a\nb\n", "one column only"),
        (b"a x\rb y\r", "lines end in"),
        (b"a x\nb x\n", "data: all labels are 'x', expected at least 2"),
        (b"a X x\nb x\n", "data:2: expected 3 columns, found 2 (line 1 has 3)"),
    ],
)
def test_bad_column_files(corpus_folder, content, message, capsys):
    (corpus_folder / "data").write_bytes(content)
    refused(["train", "tag", "data", "-o", "new.mm"], message, capsys)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1\n2\n", "data: no features found"),
        (b"0.5 1:1\n1.5 1:2\n", "data: found the label 0.5, expected classes"),
        (b"1 1:1\n99999999999999999999 1:2\n", "data: found the label 1e+20, expected classes"),
        (b"1 1:1\n1 1:2\n", "data: all labels are 1, expected at least 2"),
        (b"1 1:1\n2 1:1e999\n", "data:2: expected a finite value"),
    ],
)
def test_bad_svmlight_files(corpus_folder, content, message, capsys):
    (corpus_folder / "data").write_bytes(content)
    refused(["train", "multiclass", "data", "-o", "new.mm"], message, capsys)


@pytest.mark.parametrize(
    "content",
    [b"\xef\xbb\xbfa x\r\nb y\r\n\r\nc x", b"a x\n b\ty \n\n\nc x\n\n", b"a x\nb y\n\nc " + b"x"],
    ids=["windows", "blanks", "no end"],
)
def test_odd_but_good_column_files(corpus_folder, content):
    (corpus_folder / "data").write_bytes(content)
    assert main(["train", "tag", "data", "-o", "new.mm", "-q"]) == 0
    assert mm.load("new.mm").classes_.tolist() == ["x", "y"]


def test_a_header_is_warned_of(corpus_folder, capsys):
    (corpus_folder / "data").write_text("word\tner\nOslo\tB\nis\tO\n")
    assert main(["train", "tag", "data", "-o", "new.mm", "-q"]) == 0
    assert "data:1: the only token with the label 'ner'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"n_columns": 7}, "features of 2 columns, but says that it was trained on files with 7"),
        ({"n_columns": 3, "label_column": 5}, "the labels in column 5"),
        ({"n_columns": "x"}, "'x'"),
        ({"separator": "comma"}, "unknown separator 'comma'"),
    ],
)
def test_models_that_contradict_themselves(corpus_folder, extra, message, capsys):
    save_model(mm.load("model.mm"), "odd.mm", extra)
    refused(["predict", "odd.mm", "ok.txt"], message, capsys)
    save_model(mm.load("model.mm"), "fine.mm", {})  # as a Python program saves
    assert main(["evaluate", "fine.mm", "ok.txt"]) == 0


@pytest.mark.parametrize("option", ["--label-column=0", "--min-count=0", "--separator=tab"])
def test_options_of_the_other_task_are_refused(corpus_folder, option, capsys):
    (corpus_folder / "data.svm").write_text("1 1:1\n2 2:1\n")
    train = ["train", "multiclass", "data.svm", "-o", "new.mm", option]
    refused(
        train,
        f"{option.partition('=')[0]} is for the tasks 'tag' and 'segment' only",
        capsys,
        code=2,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--C", "-1"], "C must be a positive, finite number, got -1"),
        (["--C", "1e200"], "--C must be at most 1e+100"),
        (["--tol", "nan"], "tol must be"),
        (["--max-time", "-1"], "--max-time must be"),
        (["--cache-mb", "-1"], "cache-mb must be a finite number >= 0, got -1"),
        (
            ["--solver", "bcfw", "--slack", "l2"],
            "--solver bcfw does not support --slack l2; use --solver auto, sda",
        ),
        (["--loss", "odd"], "--loss of tag must be"),
        (["--on-violation", "drop"], "--on-violation requires --constraints"),
    ],
)
def test_bad_values_are_found_before_a_file_is_read(corpus_folder, options, message, capsys):
    refused(["train", "tag", "absent.txt", "-o", "new.mm", *options], message, capsys, code=2)


def test_the_budget_of_memory(corpus_folder, monkeypatch):
    given = []
    solve = Auto.solve
    monkeypatch.setattr(
        Auto, "solve", lambda self, *args, **kw: given.append(self) or solve(self, *args, **kw)
    )
    train = ["train", "tag", "ok.txt", "-o", "new.mm", "-q"]
    assert main([*train, "--cache-mb", "7"]) == 0
    assert main([*train, "--force"]) == 0
    assert [solver.cache_mb for solver in given] == [7.0, 1024.0]


def test_numbers_of_threads(corpus_folder, monkeypatch, capsys):
    given = []
    solve, predict = Auto.solve, mm.SequenceTagger.predict
    monkeypatch.setattr(
        Auto, "solve", lambda self, *args, **kw: given.append(self) or solve(self, *args, **kw)
    )
    monkeypatch.setattr(
        mm.SequenceTagger,
        "predict",
        lambda self, *args, **kw: given.append(self) or predict(self, *args, **kw),
    )
    assert main(["train", "tag", "ok.txt", "-o", "new.mm", "-q", "--n-jobs", "2"]) == 0
    assert main(["predict", "new.mm", "ok.txt", "--n-jobs", "-1"]) == 0
    assert main(["predict", "new.mm", "ok.txt"]) == 0
    assert [one.n_jobs for one in given] == [2, -1, 2]
    for wrong in ("0", "-2", "two"):
        with pytest.raises(SystemExit):
            main(["predict", "new.mm", "ok.txt", "--n-jobs", wrong])
        assert "expected a whole number >= 1, or -1 for all cores" in capsys.readouterr().err
