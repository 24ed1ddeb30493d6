"""``maxmargin train --dev``: weights chosen by a held-out file."""

import json
import os
import re

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_digits

import maxmargin as mm
from cli_corpus import refused, write_corpus, write_hard_corpus
from maxmargin.cli import main
from maxmargin.formats import read_svmlight


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dev")
    write_corpus(folder / "train.txt", 40)
    write_corpus(folder / "dev.txt", 10, seed=1)
    X, y = load_digits(return_X_y=True)
    X = X / 16 + 0.3 * np.random.default_rng(0).normal(size=X.shape)
    dump_svmlight_file(X[:300], y[:300], str(folder / "train.svm"), zero_based=False)
    dump_svmlight_file(X[300:500], y[300:500], str(folder / "dev.svm"), zero_based=False)
    return folder


def train(folder, *options, output="model.mm"):
    """Train classes, with a file to judge by."""
    files = ["multiclass", folder / "train.svm", "--dev", folder / "dev.svm"]
    where = ["-o", folder / output, "--force"]
    return main(["train", *map(str, [*files, *where, *options])])


def told(text):
    """Scores that were better than all before; the last of all, and how many there were."""
    better = re.findall(r"^dev accuracy ([\d.]+) %, the best so far", text, re.M)
    found = re.search(r"^dev accuracy ([\d.]+) %, the best of (\d+) evaluations", text, re.M)
    return [float(score) for score in better], float(found[1]), int(found[2])


def test_the_best_weights_are_saved_with_their_own_certificate(folder, capsys):
    assert train(folder, "--C", "10") == 0
    printed = capsys.readouterr()
    better, summary, number = told(printed.err)
    assert number > len(better) > 2 and sorted(set(better)) == better and summary == better[-1]
    model, dev = mm.load(folder / "model.mm"), read_svmlight(folder / "dev.svm")
    assert 100 * model.score(dev.X, dev.y) == pytest.approx(summary, abs=0.006)
    # Its certificate, afresh.
    data, result = read_svmlight(folder / "train.svm"), model.result_
    scores = model.decision_function(data.X)
    classes = model.classes_.tolist()
    truth = np.array([classes.index(label) for label in data.y.tolist()])
    wrong = np.arange(len(classes)) != truth[:, None]
    slacks = (scores + wrong).max(axis=1) - scores[np.arange(300), truth]
    w = model._get_weights()
    assert result.primal == pytest.approx(0.5 * w @ w + 10 * slacks.sum())
    assert f"objective {result.primal:.6g}, certified gap {result.gap:.4g}" in printed.out
    assert result.status == "early_stopping" and result.relative_gap > 0.01
    exact = mm.MulticlassSVM(C=10.0, tol=1e-4, random_state=0).fit(data.X, data.y).result_
    assert result.dual <= exact.primal <= result.primal


def test_patience_stops(folder, capsys):
    assert train(folder, "--C", "10", output="long.mm") == 0
    everything, _, most = told(capsys.readouterr().err)
    assert train(folder, "--C", "10", "--patience", "2", output="short.mm") == 0
    some, _, number = told(capsys.readouterr().err)
    assert number < most and everything[: len(some) - 1] == some[: len(some) - 1]
    long, short = (mm.load(folder / name).result_ for name in ("long.mm", "short.mm"))
    assert short.n_passes < long.n_passes and short.status == "early_stopping"


def test_a_tagger_is_judged_by_its_chunks(folder, capsys):
    files = [str(folder / "train.txt"), "--dev", str(folder / "dev.txt")]
    assert main(["train", "tag", *files, "-o", str(folder / "tagger.mm")]) == 0
    found = re.findall(r"^dev F1 ([\d.]+) %", capsys.readouterr().err, re.M)
    assert main(["evaluate", str(folder / "tagger.mm"), files[2], "--json"]) == 0
    f1 = json.loads(capsys.readouterr().out)["chunks"]["f1"]
    assert float(found[-1]) == pytest.approx(100 * f1, abs=0.006)
    assert main(["train", "tag", *files, "-o", str(folder / "tagger.mm"), "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_limits_still_mean_an_early_end(tmp_path, capsys):
    data = str(write_hard_corpus(tmp_path / "hard.txt", 30))
    to = ["-o", str(tmp_path / "model.mm"), "--C", "10", "--max-passes", "2", "-q"]
    assert main(["train", "tag", data, "--dev", data, *to]) == 3


def test_bad_arguments(folder, capsys):
    files = ["train", "multiclass", str(folder / "train.svm"), "-o", str(folder / "none.mm")]
    dev = ["--dev", str(folder / "dev.svm")]
    refused([*files, "--patience", "2"], "--patience requires --dev", capsys, code=2)
    hard = ["--slack", "none", "--solver", "n_slack"]
    refused([*files, *dev, *hard], "--dev cannot be combined with --slack none", capsys, code=2)
    refused([*files, "-q", "--dev", "nowhere"], "nowhere: No such file", capsys)
    refused([*files, "-q", "--dev", str(folder / "dev.txt")], "expected svmlight", capsys)
    refused([*files[:-1], dev[1], *dev], "which would be overwritten", capsys)
    both = ["train", "multiclass", "-", "-o", str(folder / "none.mm"), "--dev", "-"]
    refused(both, "standard input cannot be both", capsys, code=2)
    assert not (folder / "none.mm").exists()
    with pytest.raises(SystemExit) as stopped:
        main([*files, *dev, "--patience", "0"])
    assert stopped.value.code == 2


def test_the_training_file_is_no_held_out_file(corpus_folder, capsys):
    os.link("ok.txt", "same.txt")
    (corpus_folder / "other.txt").write_bytes((corpus_folder / "ok.txt").read_bytes())
    for name, warns in (("ok.txt", True), ("same.txt", True), ("other.txt", False)):
        main(["train", "tag", "ok.txt", "-o", "new.mm", "--dev", name, "--max-passes", "1"])
        assert ("--dev is the training file itself" in capsys.readouterr().err) == warns
