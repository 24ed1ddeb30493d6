"""What the command line says to those who know its options and nothing of Python."""

import argparse
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest

import maxmargin as mm
from cli_corpus import write_corpus
from maxmargin.cli import _in_options, make_parser
from maxmargin.cli import main as run
from maxmargin.cli.options import CERTIFIED_SOLVERS, MEASURES, ONLINE_SOLVERS
from maxmargin.cli.tasks import TASKS
from maxmargin.features import pos_templates
from maxmargin.problems.measures.measure import MeasureName
from maxmargin.solvers import SOLVERS, is_online
from maxmargin.utils.validation import ParameterError


def train(folder, *options):
    data = str(write_corpus(folder / "train.txt", 8))
    return data, run(["train", "tag", data, "-o", str(folder / "model.mm"), "-q", *options])


def test_unknown_templates_are_answered_by_the_known_ones(tmp_path, capsys):
    _, code = train(tmp_path, "--features", "nope")
    assert code == 2
    said = capsys.readouterr().err
    assert "--features nope: this is neither one of chunking, ner, pos, words nor a file" in said


def test_templates_of_taggers_have_a_name(tmp_path):
    _, code = train(tmp_path, "--features", "pos")
    assert code == 0
    assert mm.load(tmp_path / "model.mm").features_.templates_ == pos_templates()


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_swapped_files_are_noticed(command, tmp_path, capsys):
    data, code = train(tmp_path)
    assert code == 0
    model = str(tmp_path / "model.mm")
    assert run([command, data, model]) == 2
    assert (
        f"{data} is not a model file, but {model} is: name the model first"
        in capsys.readouterr().err
    )
    assert run([command, data, data]) == 1  # no model at all
    assert "name the model first" not in capsys.readouterr().err


def test_every_option_has_a_help_text():
    groups = [a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction)]
    for name, parser in groups[0].choices.items():
        assert [a.dest for a in parser._actions if not a.help] == [], name


def test_errors_name_options_not_parameters(tmp_path, capsys):
    _, code = train(tmp_path, "--max-passes", "-1")
    said = capsys.readouterr().err
    assert code != 0 and "--max-passes" in said and "max_passes" not in said
    _, code = train(tmp_path, "--slack", "none", "--solver", "auto")
    said = capsys.readouterr().err
    assert code != 0 and "--slack none" in said and "slack='none'" not in said


def test_a_demo_whose_reader_leaves_says_nothing():
    script = f"{sys.executable} -m maxmargin demo --words 30 --no-plot | head -n 1"
    done = subprocess.run(script, shell=True, capture_output=True, text=True, timeout=300)
    assert "Error" not in done.stderr and "Broken" not in done.stderr


def test_class_weights_by_text_of_numbers():
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"'0', of type str; the class of y is 0, of type int"):
        mm.MulticlassSVM(class_weight={"0": 1.0, "1": 2.0}).fit(X, y)


@pytest.mark.parametrize(
    "options, message",
    [
        (["--tol", "-1"], "--tol must be a number >= 0, got -1.0"),
        (["--slack", "none"], "--solver auto does not support --slack none"),
        (["--slack", "none"], "use --solver n_slack"),
    ],
)
def test_values_are_refused_in_words_of_the_command_line(options, message, tmp_path, capsys):
    assert run(["train", "multiclass", "x", "-o", str(tmp_path / "m.mm"), *options]) == 2
    assert message in capsys.readouterr().err


def test_switches_are_named_as_they_are_given(tmp_path, capsys):
    rows = [(1, 3), (2, 4), (3, 0), (4, 3)]  # 1-3 and 2-4 cross
    data = tmp_path / "trees.conllu"
    data.write_text("".join(f"{t}\ta\t_\tN\tN\t_\t{head}\tx\t_\t_\n" for t, head in rows) + "\n")
    command = ["train", "depend", str(data), "-o", str(tmp_path / "m.mm"), "-q"]
    assert run([*command, "--on-violation", "raise"]) == 1
    said = capsys.readouterr().err
    assert f"the first is {data}:1." in said and "Set --no-projective, or" in said
    assert "True" not in said and "False" not in said


@pytest.mark.parametrize(
    "command, message",
    [
        ("trian", "there is no command 'trian' (did you mean train?)"),
        ("svm-hmm-lern", "there is no command 'svm-hmm-lern' (did you mean svm-hmm-learn?)"),
        ("train tga x -o m", "got 'tga' (did you mean tag?)"),
    ],
)
def test_what_was_meant_is_suggested(command, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        run(command.split())
    said = capsys.readouterr().err
    assert stopped.value.code == 2 and message in said
    assert "svm_hmm_classify" not in said  # the help lists the drop-ins, once


@pytest.mark.parametrize(
    "given, dest, value",
    [
        ("--loss zero-one", "loss", "zero_one"),
        ("--loss=zero_one", "loss", "zero_one"),
        ("--solver n-slack", "solver", "n_slack"),
        ("--measure precision-at-k", "measure", "precision_at_k"),
        ("--max_passes 3", "max_passes", 3),
        ("--max_passes=3", "max_passes", 3),
        ("--on_violation drop", "on_violation", "drop"),
        ("--checkpoint my_file-1", "checkpoint", "my_file-1"),
        ("--checkpoint=my_file-1", "checkpoint", "my_file-1"),
    ],
)
def test_hyphens_and_underscores_are_alike(given, dest, value, monkeypatch):
    found = []
    monkeypatch.setattr("maxmargin.cli.commands.train.run", lambda seen, _: found.append(seen) or 0)
    assert run(["train", "label_tree", "a_b-c", "-o", "m_-", *given.split()]) == 0
    assert getattr(found[0], dest) == value
    assert (found[0].task, found[0].data) == ("label-tree", "a_b-c")


def test_words_after_two_hyphens_are_files(monkeypatch):
    found = []
    monkeypatch.setattr("maxmargin.cli.commands.train.run", lambda seen, _: found.append(seen) or 0)
    assert run(["train", "-o", "m", "--", "tag", "--a_b"]) == 0
    assert found[0].data == "--a_b"


@pytest.mark.parametrize(
    "command, message",
    [
        ("train tag x -o m --solver one_slak", "got 'one_slak' (did you mean one_slack?)"),
        ("train tag x -o m --solver foo", "--solver: expected auto, sda,"),
        ("train measure x -o m --measure foo", "--measure: expected error, f1,"),
        ("train tag x -o m --C x", "--C: expected a number, got 'x'"),
        ("train tag x -o m --label-column x", "--label-column: expected a whole number, got 'x'"),
        ("train tag x -o m --order 4", "--order: expected 1, 2 or 3, got 4"),
        ("train tag x -o m --random-state -1", "expected a whole number >= 0, got '-1'"),
        ("predict m x --k three", "expected a whole number >= 1, got 'three'"),
        ("predict m x --k 0", "expected a whole number >= 1, got '0'"),
    ],
)
def test_values_of_options_are_checked_as_they_are_read(command, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        run(command.split())
    assert stopped.value.code == 2 and message in capsys.readouterr().err


def test_solvers_and_measures_are_those_of_the_package():
    assert {*CERTIFIED_SOLVERS, *ONLINE_SOLVERS} == set(SOLVERS)
    assert all(is_online(name) is (name in ONLINE_SOLVERS) for name in SOLVERS)
    assert get_args(MeasureName) == MEASURES


def test_options_have_the_names_of_parameters():
    groups = [a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction)]
    names = {action.dest for action in groups[0].choices["train"]._actions}
    assert {"random_state", "probability", "features", "fit_intercept", "labeled"} <= names
    own = {"separator", "format", "label_column", "min_count"}  # of files and of features
    for task, estimator in (
        ("tag", mm.SequenceTagger),
        ("segment", mm.SequenceSegmenter),
        ("multiclass", mm.MulticlassSVM),
        ("multilabel", mm.MultilabelSVM),
        ("ordinal", mm.OrdinalSVM),
        ("rank", mm.RankSVM),
        ("measure", mm.PerformanceSVM),
        ("depend", mm.DependencyParser),
        ("parse", mm.GrammarParser),
        ("align", mm.SequenceAligner),
        ("label-tree", mm.TreeLabeler),
    ):
        assert {*TASKS[task].options} - own <= estimator().get_params().keys(), task


@pytest.mark.parametrize(
    "message, expected",
    [
        (ParameterError("C", "must be None or > 0, got 0"), "--C must be > 0, got 0"),
        (ParameterError("k", "must be >= 1; got None"), "--k must be >= 1; none was given"),
        (ParameterError("sqrt_loss", "must be True"), "sqrt_loss must be True"),
        (ValueError("features must be finite"), "features must be finite"),
        (ValueError("use slack='l1' or 'l2', not C=0.5."), "use --slack l1 or l2, not --C 0.5."),
        (ValueError("set projective=False"), "set --no-projective"),
        (ValueError("needs probability=True"), "needs --probability"),
        (ValueError("max_passes is small"), "--max-passes is small"),
        (ValueError("data/max_passes.txt: bad"), "data/max_passes.txt: bad"),
        (ValueError("found 'order=1'"), "found 'order=1'"),
    ],
)
def test_parameters_are_written_as_options(message, expected):
    groups = [a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction)]
    assert _in_options(message, groups[0].choices["train"]) == expected
