"""The command line, from files to models to labels, and its one-line errors."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_digits

import maxmargin as mm
from cli_corpus import posix, write_corpus
from maxmargin.cli import main

COMMANDS = (["inspect"], ["cross-validate"], ["path"], ["convert"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def tagger(folder):
    data = write_corpus(folder / "train.txt.gz", 40)
    model = folder / "tagger.mm"
    assert main(["train", "tag", str(data), "-o", str(model), "-q", "--constraints", "bio"]) == 0
    return str(model)


@pytest.fixture(scope="module")
def digits(folder):
    X, y = load_digits(return_X_y=True)
    train, test = folder / "train.svm", folder / "test.svm"
    dump_svmlight_file(X[:400] / 16, y[:400], str(train), zero_based=False)
    dump_svmlight_file(X[400:600] / 16, y[400:600], str(test), zero_based=False)
    return str(train), str(test)


@pytest.fixture(scope="module")
def classifier(folder, digits):
    model = folder / "classes.mm"
    assert main(["train", "multiclass", digits[0], "-o", str(model), "--C", "0.1", "-q"]) == 0
    return str(model)


def test_version_and_help(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.strip() == f"maxmargin {mm.__version__}"
    for command in ([], ["demo"], ["train"], ["predict"], ["evaluate"], *COMMANDS):
        with pytest.raises(SystemExit) as stopped:
            main([*command, "--help"])
        assert stopped.value.code == 0


def test_without_a_command_the_help_is_shown(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["maxmargin"])
    for arguments in ([], None):
        assert main(arguments) == 2
        out, err = capsys.readouterr()
        assert not out and "evaluate a model on a labelled file" in err


@pytest.mark.parametrize("command", ["train", "path", "cross-validate"])
def test_wrong_use_is_told_in_a_few_lines(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([command, "tagger", "train.txt"])
    assert stopped.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and "'tagger'" in lines[1]


@pytest.mark.parametrize(
    "command, unknown, meant",
    [
        (["train", "tag", "x", "-o", "m"], ["--strem"], " (did you mean --stream?)"),
        (["predict", "m", "x"], ["--njobs=2"], " (did you mean --n-jobs?)"),
        (["crfsuite", "learn"], ["--modle"], " (did you mean --model?)"),
        (["train", "tag", "x", "-o", "m"], ["y"], ""),
        (["train", "tag", "x", "-o", "m"], ["--c=1"], " (did you mean --C?)"),
        (["path", "tag", "x"], ["--c"], " (did you mean --Cs?)"),
        (["report", "m", "-o", "r"], ["x"], " (did you mean --test x?)"),
    ],
)
def test_unknown_options_are_told_with_what_may_be_meant(command, unknown, meant, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*command, *unknown])
    assert stopped.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"maxmargin {command[0]}")  # the usage is the command's, too
    assert last.endswith(f"unrecognized arguments: {unknown[0]}{meant}".replace("--c=1", "--c"))


def test_module_can_be_run():
    done = subprocess.run(
        [sys.executable, "-m", "maxmargin", "--version"], capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.startswith("maxmargin ")


def test_train_reports_the_certificate(folder, capsys):
    data = write_corpus(folder / "few.txt", 5)
    model = folder / "few.mm"
    assert main(["train", "tag", str(data), "-o", str(model), "--features", "words"]) == 0
    printed = capsys.readouterr()
    assert "certified gap" in printed.out and str(model) in printed.out
    assert "5 sequences" in printed.err and "passes" in printed.err
    assert mm.load(model).features_.templates_[0] == "w[-2]"


def test_predict_tags_with_and_without_labels(tagger, folder, capsys):
    labelled = write_corpus(folder / "test.txt.xz", 10, seed=1)
    bare = write_corpus(folder / "bare.txt", 10, labels=False, seed=1)
    assert main(["predict", tagger, str(labelled)]) == 0
    first = capsys.readouterr().out
    rows = [line.split() for line in first.splitlines() if line]
    assert all(len(row) == 4 for row in rows)
    assert np.mean([row[2] == row[3] for row in rows]) > 0.95
    target = folder / "out.txt"
    assert main(["predict", tagger, str(bare), "-o", str(target)]) == 0
    again = [line.split() for line in target.read_text().splitlines() if line]
    assert [row[-1] for row in again] == [row[-1] for row in rows]
    assert first.count("\n\n") == target.read_text().count("\n\n") == 10


def test_evaluate_tags(tagger, folder, capsys):
    data = write_corpus(folder / "eval.txt", 10, seed=2)
    assert main(["evaluate", tagger, str(data)]) == 0
    text = capsys.readouterr().out
    assert "token accuracy" in text and "precision" in text and re.search(r"^NP ", text, re.M)
    assert re.search(r"^B-NP ", text, re.M) and text.count("macro average") == 2
    assert main(["evaluate", tagger, str(data), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["accuracy"] > 0.95 and report["chunks"]["f1"] > 0.9
    assert report["chunks"]["per_type"]["NP"]["n_true"] > 5
    assert report["labels"]["B-NP"]["n_true"] == report["chunks"]["per_type"]["NP"]["n_true"]


def test_evaluate_counts_unknown_labels(tagger, folder, capsys):
    data = folder / "odd.txt"
    data.write_text("the DT B-NP\ncat NN I-NP\nsat VB B-ODD\n")
    assert main(["evaluate", tagger, str(data), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["unknown_labels"] == {"B-ODD": 1}
    assert report["accuracy"] == pytest.approx(2 / 3)
    data.write_text("the DT B-ODD\ncat NN I-ODD\n")
    assert main(["evaluate", tagger, str(data)]) == 0
    printed = capsys.readouterr()
    assert "label 'B-ODD' is unknown to the model: 1 counted as wrong" in printed.out
    assert "the model knows none of the labels in this file" in printed.err
    assert "it was trained on B-NP, B-VP, I-NP, O" in printed.err


def test_label_column_and_template_file(folder, capsys):
    data = folder / "first.txt"
    data.write_text("D the\nN cat\n\nD a\nN dog\n")
    templates = folder / "templates.txt"
    templates.write_text("# the word\nw[0]\n\nsuffix1(w[0])\n")
    model = folder / "first.mm"
    arguments = ["--label-column", "0", "--features", str(templates), "-q"]
    assert main(["train", "tag", str(data), "-o", str(model), *arguments]) == 0
    assert mm.load(model).features_.templates_ == ["w[0]", "suffix1(w[0])"]
    assert main(["evaluate", str(model), str(data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == 1.0
    bare = folder / "bare-first.txt"
    bare.write_text("the\ncat\n")
    assert main(["predict", str(model), str(bare)]) == 0
    assert capsys.readouterr().out == "the D\ncat N\n\n"


def test_classes(classifier, digits, folder, capsys):
    assert main(["evaluate", classifier, digits[1], "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["accuracy"] > 0.75
    assert report["errors"] == round(200 * (1 - report["accuracy"]))
    assert sum(c["count"] for c in report["confusions"]) <= report["errors"]
    assert sum(label["n_true"] for label in report["labels"].values()) == 200
    assert main(["evaluate", classifier, digits[1]]) == 0
    text = capsys.readouterr().out
    assert "200 examples" in text and re.search(r"^7 .* 20$", text, re.M), text
    assert main(["predict", classifier, digits[1]]) == 0
    labels = capsys.readouterr().out.split()
    truth = load_digits(return_X_y=True)[1][400:600]
    assert np.mean(np.array(labels, int) == truth) == pytest.approx(report["accuracy"])
    target = folder / "labels.txt"
    assert main(["predict", classifier, digits[1], "-o", str(target)]) == 0
    assert target.read_text().split() == labels


def test_features_beyond_the_training_set(classifier, folder, capsys):
    data = folder / "wide.svm"
    data.write_text("3 1:0.5 99:1.0\n4 2:0.5\n")
    assert main(["predict", classifier, str(data)]) == 0
    printed = capsys.readouterr()
    assert len(printed.out.split()) == 2
    assert "wide.svm: features unknown to the model are left out (1 of them)" in printed.err
    data.write_text("3 1:0.5\n")
    assert main(["predict", classifier, str(data)]) == 0
    assert "zero_based" not in capsys.readouterr().err
    n_features = mm.load(classifier).n_features_in_
    data.write_text(f"3 5:0.5 {n_features - 1}:1\n")  # as from 0, where the first column is 0
    assert main(["predict", classifier, str(data)]) == 0
    assert "write the file with zero_based=False" in capsys.readouterr().err


def check_error(arguments, pattern, capsys, code=1):
    assert main(arguments) == code
    printed = capsys.readouterr()
    last = printed.err.strip().splitlines()[-1]
    assert re.match(f"maxmargin: error: {pattern}", last), last
    assert "Traceback" not in printed.err


def test_errors_name_file_and_line(tagger, classifier, folder, capsys):
    broken = folder / "broken.txt"
    broken.write_text("the DT B-NP\ncat NN\n")
    model = str(folder / "never.mm")
    check_error(["train", "tag", str(broken), "-o", model], r".*broken\.txt:2: expected 3", capsys)
    check_error(["evaluate", tagger, str(broken)], r".*broken\.txt:2: ", capsys)
    pairs = folder / "broken.svm"
    pairs.write_text("1 1:2\n2 x:3\n")
    check_error(
        ["train", "multiclass", str(pairs), "-o", model], r".*broken\.svm:2: expected index", capsys
    )
    templates = folder / "bad-templates.txt"
    templates.write_text("w[0]\nw[\n")
    corpus = write_corpus(folder / "ok.txt", 3)
    check_error(
        ["train", "tag", str(corpus), "-o", model, "--features", str(templates)],
        r".*bad-templates\.txt:2: ",
        capsys,
    )
    assert not os.path.exists(model)


def test_errors_name_the_file(tagger, classifier, digits, folder, capsys):
    corpus = str(write_corpus(folder / "ok.txt", 3))
    model = str(folder / "never.mm")
    absent = str(folder / "absent.txt")
    train = ["train", "tag"]
    check_error([*train, absent, "-o", model], r".*absent\.txt: No such file", capsys)
    check_error(["predict", absent, corpus], r".*absent\.txt: No such file", capsys)
    check_error(["predict", corpus, corpus], r".*ok\.txt: this is not a model file", capsys)
    check_error([*train, corpus, "-o", model, "--C", "0"], "--C must be a positive", capsys, 2)
    check_error(
        [*train, corpus, "-o", model, "--label-column", "5"], r".*no label column 5", capsys
    )
    check_error(
        ["train", "multiclass", digits[0], "-o", model, "--features", "ner"],
        "--features is for the tasks 'tag' and 'segment' only",
        capsys,
        2,
    )
    check_error(
        [*train, corpus, "-o", str(folder / "no" / "m")], r".*m: there is no folder .*no", capsys
    )
    narrow = folder / "narrow.txt"
    narrow.write_text("the\ncat\n")
    check_error(
        ["predict", tagger, str(narrow)], r".*narrow\.txt:1: 1 columns, but the model", capsys
    )
    bare = str(write_corpus(folder / "bare2.txt", 2, labels=False))
    check_error(["evaluate", tagger, bare], r".*bare2\.txt: no column of labels", capsys)


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_models_without_a_command_line_are_refused(command, tmp_path, capsys):
    path = tmp_path / "matcher.mm"
    mm.SetMatcher().fit([np.eye(2)[:, :, None]], [[0, 1]]).save(path)
    (tmp_path / "test.txt").write_text("cats N\n")
    assert main([command, str(path), str(tmp_path / "test.txt")]) != 0
    assert "matcher.mm: a SetMatcher can be used from Python only" in capsys.readouterr().err


def test_model_of_vectors_is_refused(folder, capsys):
    model = folder / "vectors.mm"
    mm.SequenceTagger().fit([np.eye(2)], [[0, 1]]).save(model)
    check_error(["predict", str(model), "x"], r".*vectors\.mm: .*feature vectors", capsys)


def test_demo(folder, capsys):
    picture = folder / "demo.png"
    assert main(["demo", "--words", "120", "--output", str(picture)]) == 0
    text = capsys.readouterr().out
    accuracies = [float(s) for s in re.findall(r"[#.]{20} +([\d.]+) %", text)]
    assert len(accuracies) == 2 and accuracies[0] > accuracies[1] + 2
    assert re.search(r"^ *sure( +\d+ %)+$", text, re.M)
    objective = re.search(r"objective is ([\d.]+), .* below\n([\d.]+): .* ([\d.]+) %", text)
    primal, dual, percent = map(float, objective.groups())
    rounding = 0.05 + 100 * 0.1 / primal
    assert percent == pytest.approx(100 * (primal - dual) / primal, abs=rounding)
    assert 0.0 < percent <= 1.0
    assert str(picture) in text
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["demo", "--words", "60", "--output", str(folder / "none.png")]) == 0
    assert 'python -m pip install "maxmargin[plot]"' in capsys.readouterr().out
    assert not (folder / "none.png").exists()


@posix
@pytest.mark.parametrize("when", ["imports", "parsing", "exit"])
def test_an_early_interrupt_shows_no_traceback(tmp_path, when):
    """Ctrl-C when the commands are not there yet to answer it, or are over."""
    script = [
        "import atexit, os, signal, sys",
        "from maxmargin.__main__ import run",
        "def interrupt(*_):",
        "    os.kill(os.getpid(), signal.SIGINT)",
        "    for _ in range(1000): pass",
    ]
    if when == "imports":  # which make an error of their own of it
        stub = "from __main__ import interrupt\ntry:\n    interrupt()\n"
        stub += "except KeyboardInterrupt:\n    raise ImportError('PLEASE READ THIS') from None\n"
        (tmp_path / "argparse.py").write_text(stub)
    elif when == "parsing":
        script += ["import argparse", "argparse.ArgumentParser.parse_known_args = interrupt"]
    else:
        script += ["atexit.register(interrupt)"]
    found = subprocess.run(
        [sys.executable, "-c", "\n".join([*script, "sys.exit(run())"]), "inspect", "none.mm"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
    )
    errors = found.stderr.splitlines()
    assert found.returncode == 130 and errors[-1] == "maxmargin: interrupted"
    assert len(errors) == (2 if when == "exit" else 1)
