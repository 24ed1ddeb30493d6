"""What the command line says to those who know its options and nothing of Python."""

import argparse
import subprocess
import sys

import numpy as np
import pytest

import maxmargin as mm
from cli_corpus import write_corpus
from maxmargin.cli import main as run
from maxmargin.cli import make_parser


def train(folder, *options):
    data = str(write_corpus(folder / "train.txt", 8))
    return data, run(["train", "tag", data, "-o", str(folder / "model.mm"), "-q", *options])


def test_unknown_templates_are_answered_by_the_known_ones(tmp_path, capsys):
    _, code = train(tmp_path, "--templates", "nope")
    assert code == 2
    said = capsys.readouterr().err
    assert "--templates nope: neither chunking, ner, words nor a file" in said


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_swapped_files_are_noticed(command, tmp_path, capsys):
    data, code = train(tmp_path)
    assert code == 0
    model = str(tmp_path / "model.mm")
    assert run([command, data, model]) == 2
    assert f"{model} is a model, {data} is none: name the model first" in capsys.readouterr().err
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
        (["--solver", "foo"], "--solver must be auto, sda,"),
        (["--tol", "-1"], "--tol must be a number >= 0, got -1.0"),
        (["--slack", "none"], "solver 'auto' needs --slack l1 or l2, got --slack none"),
        (["--slack", "none"], "solvers that can: n_slack"),
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
