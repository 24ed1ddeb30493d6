"""``maxmargin path``: the best C by held-out scores."""

import json
import os

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_digits

import maxmargin as mm
from cli_corpus import refused, write_corpus
from maxmargin.cli import main
from maxmargin.cli.held_out import split
from maxmargin.cli.numbers import values_of_C
from maxmargin.cli.training import Examples
from maxmargin.engine.training.run import Run
from maxmargin.formats import read_columns, read_svmlight
from maxmargin.metrics import chunk_f1

CS = [0.0001, 0.01, 1.0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("path")
    write_corpus(folder / "train.txt", 30)
    write_corpus(folder / "dev.txt", 20, seed=1)
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    X = X / 16 + 0.5 * rng.normal(size=X.shape)  # hard enough for C to matter
    dump_svmlight_file(X[:150], y[:150], str(folder / "train.svm"), zero_based=False)
    dump_svmlight_file(X[150:400], y[150:400], str(folder / "dev.svm"), zero_based=False)
    return folder


def found(capsys, *arguments):
    """The report of a call, as JSON."""
    assert main(["path", *map(str, arguments), "--json", "-q"]) == 0
    return json.loads(capsys.readouterr().out)


def classifier(C):
    return mm.MulticlassSVM(C=C, random_state=0, tol=1e-3)


def test_best_C_by_a_file(folder, capsys):
    files = folder / "train.svm", "--dev", folder / "dev.svm"
    report = found(capsys, "multiclass", *files, "--Cs", "0.0001,0.01,1", "--tol", 1e-3)
    train, dev = read_svmlight(folder / "train.svm"), read_svmlight(folder / "dev.svm")
    assert report["score"] == "accuracy" and [p["C"] for p in report["points"]] == CS
    scores = []
    for point in report["points"]:
        alone = classifier(point["C"]).fit(train.X, train.y)
        scores.append(alone.score(dev.X, dev.y))
        assert point["objective"] == pytest.approx(alone.result_.primal, rel=2e-3)
        assert point["relative_gap"] <= 1e-3
        assert point["score"] == pytest.approx(scores[-1], abs=0.02)
    assert max(scores) - min(scores) > 0.03  # or else the best would be any
    best = max(report["points"], key=lambda point: point["score"])
    assert (report["best_C"], report["best_score"]) == (best["C"], best["score"])


def test_the_model_judged_best_is_saved(folder, capsys):
    model = folder / "best.mm"
    files = ["multiclass", str(folder / "train.svm"), "--dev", str(folder / "dev.svm")]
    assert main(["path", *files, "--Cs", "0.0001:1:3", "-o", str(model)]) == 0
    text = capsys.readouterr().out
    saved = mm.load(model)
    dev = read_svmlight(folder / "dev.svm")
    told = f"best C {saved.C:g}: accuracy {100 * saved.score(dev.X, dev.y):.2f}"
    assert told in text and "certified gap" in text and f"saved {model}" in text
    rows = [line.split() for line in text.splitlines()[1:4]]
    assert [float(row[0]) for row in rows] == pytest.approx(CS)
    own = next(row for row in rows if row[-1] == "best")
    assert float(own[0]) == saved.C
    assert float(own[1]) == pytest.approx(saved.result_.primal, rel=1e-5)
    assert saved.verbose == 0 and saved.result_.relative_gap <= 0.01


def test_best_C_of_a_tagger_by_parts(folder, capsys):
    data, model = folder / "train.txt", folder / "tagger.mm"
    options = ["--Cs", "0.01,1", "--folds", "3", "--seed", "2"]
    report = found(capsys, "tag", data, *options)
    read = read_columns(data)
    X, y = read.select([0, 1]), read.split(-1)
    make = mm.SequenceTagger(features=mm.features.WindowFeatures(), random_state=2)
    expected = []
    for train, test in split(Examples(X, y), 3, 2):
        models = mm.path(make, train.X, train.y, [0.01, 1.0])
        expected.append([chunk_f1(test.y, models.at(C).predict(test.X)) for C in (0.01, 1.0)])
    means = np.mean(expected, axis=0)
    assert [point["score"] for point in report["points"]] == pytest.approx(means)
    assert report["best_C"] == (0.01, 1.0)[int(np.argmax(means))]
    assert main(["path", "tag", str(data), *options, "-o", str(model)]) == 0
    printed = capsys.readouterr()
    assert printed.err.count("of 3: best C") == 3
    saved = mm.load(model)
    assert saved.C == report["best_C"] and saved.result_.n_examples == 30  # of the whole file
    assert main(["evaluate", str(model), str(folder / "dev.txt"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0.9


@pytest.mark.parametrize("judge", [["--dev", "dev.svm"], ["--folds", "2"]])
def test_json_is_alone_on_the_standard_output(folder, capsys, monkeypatch, judge):
    monkeypatch.chdir(folder)
    files = ["multiclass", "train.svm", *judge, "-o", "json.mm", "--force"]
    assert main(["path", *files, "--Cs", "0.01,1", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["best_C"] == mm.load("json.mm").C
    assert "certified gap" in printed.err and "saved json.mm" in printed.err


@pytest.mark.parametrize("judge", [["--dev", "dev.svm"], ["--folds", "2"]])
def test_the_best_model_is_calibrated(folder, capsys, monkeypatch, judge):
    monkeypatch.chdir(folder)
    files = ["multiclass", "train.svm", *judge, "--Cs", "0.01,1", "-q", "--force", "--probability"]
    assert main(["path", *files, "-o", "calibrated.mm"]) == 0
    saved, dev = mm.load("calibrated.mm"), read_svmlight("dev.svm")
    found = saved.calibration_.temperature
    if "--dev" in judge:  # by that file, without more fits
        assert found == pytest.approx(saved.calibrate(dev.X, dev.y).calibration_.temperature)
    capsys.readouterr()
    assert main(["predict", "calibrated.mm", "dev.svm", "--confidence"]) == 0
    shares = [float(line.split()[1]) for line in capsys.readouterr().out.splitlines()]
    assert shares == pytest.approx(saved.predict_proba(dev.X).max(axis=1), abs=1e-5)


def test_values_of_C():
    assert values_of_C("1,0.1,1") == [0.1, 1.0]
    assert values_of_C("0.001:10:5") == pytest.approx([1e-3, 1e-2, 0.1, 1, 10])
    assert values_of_C("2:8:1") == [2.0]


def test_bad_arguments(folder, capsys):
    files = ["path", "multiclass", str(folder / "train.svm")]
    dev = ["--dev", str(folder / "dev.svm")]
    for bad in ("0,1", "a", "1:2", "1:2:0", "0:1:3", "inf", "", "1:2:x"):
        with pytest.raises(SystemExit) as stopped:
            main([*files, "--Cs", bad])
        assert stopped.value.code == 2
        assert "expected positive numbers separated by commas" in capsys.readouterr().err
    for bad in ([*dev, "--folds", "3"], ["--folds", "1"], ["--C", "1"]):
        with pytest.raises(SystemExit) as stopped:
            main([*files, *bad])
        assert stopped.value.code == 2
    capsys.readouterr()
    refused([*files, "--solver", "sgd"], "--solver sgd returns no certificate", capsys, code=2)
    refused([*files, "--slack", "none", "--solver", "n_slack"], "no C", capsys, code=2)
    refused([*files, "--probability"], "--probability requires -o", capsys, code=2)
    twice = ["path", "multiclass", "-", "--dev", "-"]
    refused(twice, "both the training file and", capsys, code=2)
    refused([*files, "--dev", "nowhere"], "nowhere: No such file", capsys)
    refused([*files, *dev, "-o", dev[1]], "which would be overwritten", capsys)
    refused([*files, *dev, "-o", files[2]], "which would be overwritten", capsys)


@pytest.mark.parametrize("judge", [["--dev", "dev.svm"], ["--folds", "2"]])
def test_a_path_goes_on(folder, capsys, monkeypatch, judge):
    """After a Ctrl-C in the middle of it; the files go away at the end."""
    monkeypatch.chdir(folder)
    command = ["path", "multiclass", "train.svm", *judge, "--Cs", "0.01,1,100", "--tol", "1e-4"]
    command += ["--force", "-q", "--probability"]
    assert main([*command, "-o", "whole.mm"]) == 0
    scores = scores_of(capsys.readouterr().out)
    kept = [*command, "-o", "kept.mm", "--checkpoint", "kept"]
    note, seen = Run.note, []

    def interrupted(self, progress):
        seen.append(progress)
        if len(seen) == 30:
            raise KeyboardInterrupt
        note(self, progress)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "note", interrupted)
        assert main(kept) == 130
    told = "before all C were evaluated; nothing was saved; --resume continues from kept"
    assert told in capsys.readouterr().err
    assert main(kept) == 1  # there is a checkpoint
    assert "continue from it with --resume" in capsys.readouterr().err
    assert main([*kept, "--resume"]) == 0
    assert scores_of(capsys.readouterr().out) == scores
    assert mm.load("kept.mm").coef_ == pytest.approx(mm.load("whole.mm").coef_, abs=1e-4)
    assert not [name for name in os.listdir() if name.startswith("kept") and name != "kept.mm"]


def scores_of(table):
    """Values of C and their scores."""
    return [(line.split()[0], line.split()[4]) for line in table.splitlines()[1:4]]
