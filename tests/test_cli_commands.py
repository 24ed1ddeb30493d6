"""Commands that all tasks get by what the table of tasks says of them."""

import json

import pytest

from cli_tasks import MAKE, make_files
from maxmargin.cli import main

#: Whose score is not a sum over examples.
OF_ALL_ROWS = ("measure",)
#: Whose examples cannot be taken apart, so far.
#: Where the report has the score that models are chosen by.
PLACES = {
    "tag": {"accuracy": ["accuracy"]},
    "segment": {"f1": ["chunks", "f1"]},
    "multiclass": {"accuracy": ["accuracy"]},
    "multilabel": {"f1": ["micro", "f1"], "subset_accuracy": ["subset_accuracy"]},
    "ordinal": {"mean_absolute_error": ["mean_absolute_error"]},
    "rank": {"ndcg@10": ["ndcg", "10"]},
    "depend": {"las": ["las"], "uas": ["uas"], "exact": ["exact"]},
    "parse": {"f1": ["f1"]},
    "align": {"f1": ["f1"]},
    "label-tree": {"accuracy": ["accuracy"], "sequence_accuracy": ["tree_accuracy"]},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A training file, a test file and a poor model of each task."""
    folder = tmp_path_factory.mktemp("commands")
    for task in MAKE:
        train, test = make_files(task, 30), make_files(task, 12, seed=1)
        (folder / f"{task}.train").write_text("".join(train.labelled))
        (folder / f"{task}.test").write_text("".join(test.labelled))
        arguments = ["train", task, str(folder / f"{task}.train"), "-o", str(folder / f"{task}.mm")]
        assert main([*arguments, "-q", *train.options, "--tol", "0.9", "--C", "0.01"]) == 0, task
    return folder


def report_of(capsys, *arguments):
    """What a command writes as JSON."""
    capsys.readouterr()
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("task", MAKE)
def test_intervals_and_comparisons(folder, task, capsys):
    model, data = folder / f"{task}.mm", folder / f"{task}.test"
    report = report_of(capsys, "evaluate", model, data)
    if task in OF_ALL_ROWS:
        assert "intervals" not in report
        return
    found = report["intervals"]["scores"]
    for name, place in PLACES[task].items():
        expected = report
        for key in place:
            expected = expected[key]
        assert found[name]["score"] == pytest.approx(expected), name
        assert found[name]["low"] <= found[name]["score"] <= found[name]["high"]
    report = report_of(capsys, "evaluate", model, data, "--against", model)
    assert all(own["p"] == 1.0 for own in report["against"]["scores"].values())


@pytest.mark.parametrize("task", MAKE)
def test_training_is_watched(folder, task, capsys):
    options = make_files(task, 1).options
    files = [str(folder / f"{task}.train"), "--dev", str(folder / f"{task}.test")]
    call = ["train", task, *files, "-o", str(folder / f"{task}-dev.mm"), "--patience", "3"]
    capsys.readouterr()
    assert main([*call, *options]) == 0
    report = report_of(capsys, "evaluate", folder / f"{task}-dev.mm", folder / f"{task}.test")
    if task in OF_ALL_ROWS:
        assert report["value"] > 0.4
        return
    name = next(iter(PLACES[task]))
    assert report["intervals"]["scores"][name]["score"] > (-1 if name.endswith("error") else 0.4)


@pytest.mark.parametrize("task", MAKE)
def test_cross_validation_and_path(folder, task, capsys):
    options = [*make_files(task, 1).options, "--tol", "0.5", "-q"]
    data = str(folder / f"{task}.train")
    report = report_of(capsys, "cross-validate", task, data, "--folds", 2, *options)
    scores = [fold["scores"] for fold in report["folds"]]
    assert len(scores) == 2 and list(scores[0]) == list(report["mean"])
    if "--C" in options:
        del options[options.index("--C") : options.index("--C") + 2]
    report = report_of(capsys, "path", task, data, "--folds", 2, "--Cs", "0.1,1", *options)
    assert report["best_C"] in (0.1, 1.0) and len(report["points"]) == 2
    best = min if report["score"].endswith("error") else max
    assert report["best_score"] == best(point["score"] for point in report["points"])


@pytest.mark.parametrize("task", MAKE)
def test_models_are_inspected(folder, task, capsys):
    found = report_of(capsys, "inspect", folder / f"{task}.mm")
    assert found["task"] == task and found["certificate"]["tol"] == 0.9
