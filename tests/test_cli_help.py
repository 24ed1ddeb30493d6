"""The help of commands: the options of a task with that task, and full phrases."""

import argparse
import re

import pytest

from maxmargin.cli import main, make_parser
from maxmargin.cli.options import OPTIONS
from maxmargin.cli.tasks import TASKS

COMMANDS = ["train", "path", "cross-validate"]
#: Options of some tasks, wherever they are described.
SOME = {*OPTIONS, "fit_intercept", "separator", "loss", "stream", "max_features"}


def help_of(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, "--help"])
    assert stopped.value.code == 0
    return capsys.readouterr().out


def listed(text):
    """Options that a help describes, not those that it mentions."""
    flags = re.findall(r"^  (?:-\w(?: \w+)?, )?--([a-zA-Z][\w-]*)", text, re.MULTILINE)
    return {flag.replace("-", "_") for flag in flags}


def parsers():
    """All commands, and those of commands."""
    todo = [make_parser()]
    while todo:
        parser = todo.pop()
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                todo += action.choices.values()
        yield parser


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_lists_tasks_and_what_all_of_them_have(command, capsys):
    text = help_of(capsys, command)
    for name in TASKS:
        assert re.search(rf"^  {name} +\w", text, re.MULTILINE)
    assert not listed(text) & SOME and {"tol", "solver", "encoding"} <= listed(text)
    assert f"maxmargin {command} TASK --help lists the options of a task" in text


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("task", TASKS.values(), ids=list(TASKS))
def test_the_help_of_a_task_has_its_own_options_only(command, task, capsys):
    text = help_of(capsys, command, task.name)
    expected = {*task.options, *(["loss"] if task.losses else [])}
    if command == "cross-validate":  # probabilities change no scores
        expected -= {"probability"}
    if task.streams and command == "train":
        expected |= {"stream", "max_features"}
    assert listed(text) & SOME == expected
    assert listed(text) - SOME == listed(help_of(capsys, command))  # what all tasks have
    assert text.startswith(f"usage: maxmargin {command} {task.name} DATA")
    assert ("Feature templates are" in text) is ("features" in task.options)
    for other in TASKS.values():
        assert (other.description[:30] in " ".join(text.split())) is (other is task)
    told = " ".join(text.split())
    assert f"at which training stops (default {task.tol:g})" in told
    if len(task.losses) > 1:
        assert f"loss to minimise: {task.losses[0]} (default), " in told or len(task.losses) == 2


def test_help_by_task(capsys):
    rank, measure = (
        " ".join(help_of(capsys, "train", name).split()) for name in ("rank", "measure")
    )
    assert "--loss ndcg counts" in rank and "precision_at_k" not in rank
    assert "precision_at_k and recall_at_k label" in measure and "ndcg" not in measure


def test_every_help_is_a_phrase():
    """Not the end of one that begins with the name of the option."""
    ends = re.compile(r"(of|from|over|between|then|to|default|by|in|those|with) ?\b(?!--)")
    for parser in parsers():
        for action in parser._actions:
            if action.help and action.help != argparse.SUPPRESS:
                text = f"{parser.prog} {action.option_strings or action.dest}: {action.help}"
                is_end = ends.match(action.help) and not action.help.startswith("with --")
                assert not is_end and len(action.help.split()) > 1, text


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            ["train", "tag", "x", "-o", "m", "--grades", "a,b"],
            "--grades is for the task 'ordinal' only, not for 'tag'",
        ),
        (
            ["path", "rank", "x", "--features", "ner"],
            "--features is for the tasks 'tag' and 'segment' only, not for 'rank'",
        ),
        (
            ["train", "segment", "x", "-o", "m", "--stream"],
            "--stream is for the task 'tag' only, not for 'segment'",
        ),
    ],
)
def test_options_of_other_tasks_are_named(arguments, message, capsys):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["cross-validate", "tag", "x", "--probability"], "--probability is an option of train,"),
        (["cross-validate", "tag", "x", "--stream"], "--stream is an option of train, not of"),
        (
            ["path", "tag", "x", "--C", "1"],
            "--C is an option of train, cross-validate, not of path",
        ),
    ],
)
def test_options_of_other_commands_are_named(arguments, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
