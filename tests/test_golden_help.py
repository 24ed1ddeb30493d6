"""The help of every command and task is what was last read: files of tests/golden/.

After a change of options, write them again and read the difference:

    python -m tests.test_golden_help
"""

import argparse
import contextlib
import io
import re
from pathlib import Path

import pytest

from maxmargin.cli import main, make_parser
from maxmargin.cli.tasks import TASKS

GOLDEN = Path(__file__).parent / "golden"


def helps() -> dict[str, str]:
    """Normalised help by name of the file: ``train-tag.txt`` for ``maxmargin train tag``."""
    parsers = _subcommands(make_parser())
    names = {parser.prog.split()[-1]: parser for parser in parsers.values()}  # without aliases
    calls = [[], *([name] for name in names)]
    calls += [[name, inner] for name, parser in names.items() for inner in _subcommands(parser)]
    calls += [[name, task] for name in ("train", "path", "cross-validate") for task in TASKS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "1000")  # no option is broken into lines
        patch.setenv("NO_COLOR", "1")  # Python 3.14 has colours
        return {f"{'-'.join(call) or 'maxmargin'}.txt": normalised(shown(call)) for call in calls}


def shown(call: list[str]) -> str:
    """What the command prints."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        main([*call, "--help"])
    return output.getvalue()


def normalised(text: str) -> str:
    """The help without what differs from one version of argparse to another.

    The usage, line breaks before and in descriptions, and ``-o MODEL, --output MODEL``, which
    has its value once from Python 3.13 on.
    """
    text = re.sub(r"(--?[\w-]+) (\S+), (--[\w-]+) \2", r"\1, \3 \2", text.partition("\n\n")[2])
    text = re.sub(r"(?<=\S)\n {15,}(?=\S)", "  ", text)
    return re.sub(r"(?<=\S)  +", "  ", text).strip() + "\n"


def _subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Parsers of commands by name, none for a command without any."""
    kinds = argparse._SubParsersAction
    found = [action.choices for action in parser._actions if isinstance(action, kinds)]
    return dict(found[0]) if found else {}


@pytest.fixture(scope="module")
def current() -> dict[str, str]:
    return helps()


def test_every_command_and_task_has_a_file(current):
    assert set(current) == {path.name for path in GOLDEN.glob("*.txt")}
    assert {"maxmargin.txt", "demo.txt", *(f"train-{task}.txt" for task in TASKS)} <= set(current)


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.glob("*.txt")))
def test_the_help_is_what_was_read(name, current):
    expected = (GOLDEN / name).read_text(encoding="utf-8")
    assert current.get(name) == expected, "to accept it: python -m tests.test_golden_help"


def write() -> None:
    """Write the files anew."""
    GOLDEN.mkdir(exist_ok=True)
    for path in GOLDEN.glob("*.txt"):
        path.unlink()
    for name, text in helps().items():
        (GOLDEN / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
