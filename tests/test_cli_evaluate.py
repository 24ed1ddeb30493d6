"""``maxmargin evaluate``: intervals, and two models compared."""

import io
import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_digits

import maxmargin as mm
from cli_corpus import refused, write_corpus
from maxmargin.cli import main
from maxmargin.cli.evaluation import error_lines
from maxmargin.formats import read_columns
from maxmargin.metrics import chunk_f1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    train = str(write_corpus(folder / "train.txt", 60))
    write_corpus(folder / "test.txt", 80, seed=3)
    for name, templates in (("good", "w[0]"), ("poor", "w[3]")):
        (folder / f"{name}.templates").write_text(f"{templates}\n")
        wanted = [
            "--features",
            str(folder / f"{name}.templates"),
            "-o",
            str(folder / f"{name}.mm"),
        ]
        assert main(["train", "tag", train, "-q", *wanted]) == 0
    X, y = load_digits(return_X_y=True)
    dump_svmlight_file(X[:300] / 16, y[:300], str(folder / "train.svm"), zero_based=False)
    dump_svmlight_file(X[300:500] / 16, y[300:500], str(folder / "test.svm"), zero_based=False)
    to = ["-o", str(folder / "classes.mm"), "--C", "0.1", "-q"]
    assert main(["train", "multiclass", str(folder / "train.svm"), *to]) == 0
    return folder


def evaluated(capsys, *arguments):
    """The report of a call, as JSON."""
    assert main(["evaluate", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_intervals_of_a_tagger(folder, capsys):
    report = evaluated(capsys, folder / "poor.mm", folder / "test.txt")
    found = report["intervals"]
    assert found["unit"] == "sequences" and found["n_units"] == 80 and found["level"] == 0.95
    names = ["f1", "precision", "recall", "accuracy", "sequence_accuracy"]
    assert list(found["scores"]) == names
    for name in names:
        expected = report["chunks"][name] if name in names[:3] else report[name]
        own = found["scores"][name]
        assert own["score"] == pytest.approx(expected)
        assert own["low"] < own["score"] < own["high"]
    # Sentences drawn one by one, and judged as a whole.
    data = read_columns(folder / "test.txt")
    gold, guess = data.split(-1), mm.load(folder / "poor.mm").predict(data.select([0, 1]))
    rng = np.random.default_rng(1)
    values = []
    for _ in range(300):
        chosen = rng.integers(0, 80, 80)
        values.append(chunk_f1([gold[i] for i in chosen], [guess[i] for i in chosen]))
    ends = [found["scores"]["f1"][end] for end in ("low", "high")]
    assert ends == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=0.02)
    wider = evaluated(capsys, folder / "poor.mm", folder / "test.txt", "--level", 99)
    assert wider["intervals"]["scores"]["f1"]["low"] < ends[0]
    assert evaluated(capsys, folder / "poor.mm", folder / "test.txt") == report  # the same seed
    assert "intervals" not in evaluated(
        capsys, folder / "poor.mm", folder / "test.txt", "--resamples", 0
    )


def test_intervals_of_classes_in_words(folder, capsys):
    assert main(["evaluate", str(folder / "classes.mm"), str(folder / "test.svm")]) == 0
    text = capsys.readouterr().out
    assert "intervals  score   from     to" in text
    assert "(95 % intervals by 1000 resamples of 200 examples)" in text


def test_a_better_model_is_told_from_a_worse_one(folder, capsys):
    files = folder / "good.mm", folder / "test.txt"
    report = evaluated(capsys, *files, "--against", folder / "poor.mm")
    poor = evaluated(capsys, folder / "poor.mm", folder / "test.txt")
    found = report["against"]["scores"]["f1"]
    assert found["score"] == pytest.approx(report["chunks"]["f1"])
    assert found["other"] == pytest.approx(poor["chunks"]["f1"])
    assert found["difference"] == pytest.approx(found["score"] - found["other"])
    assert 0 < found["low"] < found["difference"] < found["high"] and found["p"] < 0.01
    assert main(["evaluate", *map(str, files), "--against", str(folder / "poor.mm")]) == 0
    assert "approximate randomization" in capsys.readouterr().out


def test_a_model_against_itself(folder, capsys, monkeypatch):
    content = (folder / "test.txt").read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    report = evaluated(capsys, folder / "poor.mm", "-", "--against", folder / "poor.mm")
    for found in report["against"]["scores"].values():
        assert found["p"] == 1.0 and found["difference"] == found["low"] == found["high"] == 0.0


def test_models_that_cannot_be_compared(folder, capsys):
    files = ["evaluate", str(folder / "good.mm"), str(folder / "test.txt")]
    refused(
        [*files, "--against", str(folder / "classes.mm")],
        "a model of the task 'multiclass', expected one of the task 'tag'",
        capsys,
    )
    refused([*files, "--against", str(folder / "none.mm")], "No such file", capsys)
    refused(
        [*files, "--against", str(folder / "poor.mm"), "--resamples", "0"],
        "--against requires --resamples of at least 1",
        capsys,
        code=2,
    )
    for bad in (["--level", "100"], ["--level", "x"], ["--resamples", "-1"], ["--seed", "a"]):
        with pytest.raises(SystemExit) as stopped:
            main([*files, *bad])
        assert stopped.value.code == 2


def test_a_single_unit_has_no_interval(folder, capsys):
    (folder / "one.txt").write_text("the DT B-NP\ncat NN I-NP\n")
    assert "intervals" not in evaluated(capsys, folder / "good.mm", folder / "one.txt")


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_words_and_numbers_are_never_compared(task, tmp_path, capsys):
    train, test, model = (tmp_path / name for name in ("train.svm", "test.svm", "model.mm"))
    train.write_text("1 1:1\n2 2:1\n1 1:0.9\n2 2:0.8\n")
    test.write_text("a 1:1\nb 2:1\n")
    assert main(["train", task, str(train), "-o", str(model), "-q"]) == 0
    said = "the labels are words, such as 'a'; the model was trained on numbers, such as 1"
    page = str(tmp_path / "page.html")
    refused(["evaluate", str(model), str(test)], said, capsys)
    refused(["report", str(model), "--test", str(test), "-o", page], said, capsys)


def test_all_scores_are_printed_alike(folder, tmp_path, capsys):
    train = tmp_path / "train.svm"
    train.write_text("1,2 1:1\n2 2:1\n1 1:0.9\n1 1:0.7\n" * 3)
    assert main(["train", "multilabel", str(train), "-o", str(tmp_path / "model.mm"), "-q"]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "model.mm"), str(train)]) == 0
    text = capsys.readouterr().out.splitlines()
    (loss,) = (line.split()[2] for line in text if line.startswith("Hamming loss"))
    (interval,) = (line.split()[2] for line in text if line.startswith("hamming loss"))
    assert loss == interval  # both in per cent
    files = [str(folder / "train.txt"), "--folds", "2"]
    assert main(["cross-validate", "tag", *files]) == 0
    printed = capsys.readouterr()
    fold = re.search(r"fold 1 of 2: F1 (\d+\.\d\d) %", printed.err)
    assert fold and fold[1] in printed.out


def test_long_labels_do_not_run_together():
    errors = [{"true": "Maria NNP B-PER", "predicted": "O", "count": 3}]
    lines = error_lines({"confusions": errors, "unknown_labels": {}})
    assert lines[-1].split("  ")[1:3] == ["Maria NNP B-PER", "O"]
