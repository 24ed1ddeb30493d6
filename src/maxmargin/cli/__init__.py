"""The command line: ``maxmargin COMMAND``.

`commands` has a file for each command, `tasks` a class for each task, `dropins` the commands of
other tools; what they share is in this folder.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from .._version import __version__
from ..jit.compiling import compiling_for
from . import dropins
from .commands import (
    convert,
    cross_validate,
    demo,
    evaluate,
    inspect,
    path,
    predict,
    report,
    train,
    warm_up,
)
from .console import (
    DONE,
    ERROR,
    EXIT_CODES,
    WRONG_USE,
    Signals,
    UsageError,
    drop_output,
    echo,
    finish_output,
    warn,
)
from .options import either, underscored

__all__ = ["main"]

EXAMPLES = """\
examples:
  maxmargin demo                                    see it work, without any data
  maxmargin train tag train.txt -o model.mm         train a tagger on CoNLL columns
  maxmargin evaluate model.mm test.txt              evaluate it on another file
  maxmargin predict model.mm new.txt -o tagged.txt  tag new text
  maxmargin train --help                            list the tasks, such as tag and rank
  maxmargin train tag --help                        list the options of one task"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; by default those of the process.

    Returns
    -------
    int
        Exit code: 0, 1 for an error (one line on standard error says what is wrong), 2 for
        arguments that make no sense, 3 for training that stopped before it converged,
        130 after Ctrl-C.
    """
    parser = make_parser()
    if not (sys.argv[1:] if argv is None else argv):
        parser.print_help(sys.stderr)  # says more to beginners than that a command is missing
        return WRONG_USE
    arguments, unknown = parser.parse_known_args(_hyphenated(argv or sys.argv[1:]))
    if unknown:
        arguments.parser_.error(_refusal(unknown, arguments.parser_, arguments.commands_))
    with warnings.catch_warnings(), Signals() as signals:
        warnings.showwarning = _Warnings(arguments.parser_)
        try:
            from ..progress import running_clock  # numpy, which help does without

            with running_clock("starting"), compiling_for(getattr(arguments, "task", None)):
                code = int(arguments.run(arguments, signals))
            finish_output()
            return code
        except BrokenPipeError:  # as of `maxmargin predict ... | head`
            drop_output()
            return DONE
        except KeyboardInterrupt as interrupt:
            echo(f"maxmargin: interrupted {interrupt}".rstrip())
            return signals.code
        except Exception as error:
            from ..utils.validation import ParameterError  # numpy, as above

            if arguments.debug:
                echo(traceback.format_exc().rstrip())
            if signals.explain_errors:
                echo("maxmargin: interrupted")
                return signals.code
            text = _in_options(error, arguments.parser_)
            echo(f"maxmargin: error: {' '.join(text.split())}")
            return WRONG_USE if isinstance(error, (UsageError, ParameterError)) else ERROR


def _hyphenated(words: Sequence[str]) -> list[str]:
    """Arguments in which the names of options have hyphens, also where they had underscores."""
    end = words.index("--") if "--" in words else len(words)
    options = (
        re.sub(r"^--\w[^=]*", lambda m: m[0].replace("_", "-"), word) for word in words[:end]
    )
    return [*options, *words[end:]]


class _Parser(argparse.ArgumentParser):
    """A parser that suggests what was meant; its commands are listed by the help, once.

    Hyphens and underscores are alike in values that are one of some words.
    """

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        """Options that begin so; one in the other case is suggested, not called ambiguous."""
        written = option_string.partition("=")[0]
        found: list[Any] = super()._get_option_tuples(option_string)  # type: ignore[misc]
        if len(found) > 1:
            for flag in self._option_string_actions:
                if flag != written and flag.lower() == written.lower():
                    self.error(f"unrecognized arguments: {written} (did you mean {flag}?)")
        return found

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        value = super()._get_value(action, arg_string)  # type: ignore[misc]
        if isinstance(value, str) and isinstance(action.choices, (list, tuple)):
            meant = [
                str(c) for c in action.choices if str(c).replace("-", "_") == underscored(value)
            ]
            return meant[0] if meant else value
        return value

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        near = difflib.get_close_matches(str(value), list(map(str, action.choices)), 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        if isinstance(action.choices, dict):  # of commands, by name
            self.error(f"there is no command {value!r:.40}{hint}; {self.prog} --help lists them")
        listed = either([str(choice) for choice in action.choices])
        raise argparse.ArgumentError(action, f"expected {listed}, got {value!r:.40}{hint}")


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(
        prog="maxmargin",
        description="Structural SVMs: train, apply and evaluate models from the command line.",
        epilog=f"{EXAMPLES}\n\n{dropins.list_commands()}\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version",
        action="version",
        help="show the version and exit",
        version=f"maxmargin {__version__}",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    modules = (
        *(demo, train, predict, evaluate, inspect, report),
        *(cross_validate, path, convert, warm_up),
    )
    own = [module.add_parser(commands) for module in modules]
    for added in [*own, *dropins.add_parsers(commands)]:
        added.add_argument(
            "--debug", action="store_true", help="show the Python traceback of an error"
        )
        added.set_defaults(parser_=added, commands_=commands.choices)  # no option has such names
    return parser


def _refusal(unknown: list[str], parser: Any, commands: dict[str, Any]) -> str:
    """What to say of arguments that a command does not have."""
    flags = [word.partition("=")[0] for word in unknown if word.startswith("--")]
    for flag in flags:
        others = [name for name in commands if flag in commands[name]._option_string_actions]
        if others:
            command = parser.prog.rpartition(" ")[2]
            return f"{flag} is an option of {', '.join(others)}, not of {command}"
    options = {flag.lower(): flag for flag in parser._option_string_actions}
    near = [
        options[best]
        for flag in flags
        for best in difflib.get_close_matches(flag.lower(), options, 1)
    ]
    if not flags and "--test" in options and len(unknown) == 1:
        near = ["--test", *unknown]
    hint = f" (did you mean {' '.join(near)}?)" if near else ""
    return f"unrecognized arguments: {' '.join(unknown)}{hint}"


def _in_words(error: Exception) -> str:
    """What is wrong, for the user."""
    if isinstance(error, OSError):
        named = error.filename is not None and error.strerror is not None
        return f"{error.filename or repr('')}: {error.strerror}" if named else str(error)
    if isinstance(error, MemoryError):
        return f"not enough memory {error}"
    if isinstance(error, (ValueError, ImportError)):
        return str(error)
    kind = type(error).__name__
    return f"{kind}: {error} (this is a defect of maxmargin; --debug shows where it comes from)"


def _in_options(message: Exception | str, parser: argparse.ArgumentParser) -> str:
    """What an error or warning says, with the parser's options for the parameters of Python.

    ``C`` of a `ParameterError`, ``slack='l1'``, ``projective=False`` and ``max_passes``, which can
    be nothing else, become ``--C``, ``--slack l1``, ``--no-projective`` and ``--max-passes``.
    """
    from ..utils.validation import ParameterError  # numpy, which help does without

    flags = {
        action.dest: flag
        for flag, action in reversed(parser._option_string_actions.items())
        if flag.startswith("--")
    }

    def written(found: re.Match[str]) -> str:
        flag, value = flags[found["name"]], found["value"]
        negative = f"--no-{flag[2:]}"
        if value in ("False", "None"):
            return negative if negative in parser._option_string_actions else f"no {flag}"
        return flag if value == "True" else f"{flag} {found['values'].replace(chr(39), '')}"

    if isinstance(message, ParameterError) and message.name in flags:
        problem = message.problem.replace("None or ", "").replace("got None", "none was given")
        text = f"{flags[message.name]} {problem}"
    else:
        text = _in_words(message) if isinstance(message, Exception) else message
    before, value = r"(?<![\w./'\"-])", r"(?P<value>[\w-]+(?:\.\w+)*|'[^']*')"
    text = re.sub(
        rf"{before}(?P<name>{'|'.join(flags)})=(?P<values>{value}(?:(?:,| or) '[^']*')*)",
        written,
        text,
    )
    compound = "|".join(name for name in flags if "_" in name) or "(?!)"
    return re.sub(rf"{before}({compound})(?![\w./'\"=])", lambda m: flags[m[0]], text)


class _Warnings:
    """Shows warnings without the line of code that gave them, and only once if numbers differ."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser
        self.shown: set[str] = set()

    def __call__(self, message: Warning | str, *_: Any, **__: Any) -> None:
        kind = re.sub(r"\d+", "0", str(message))
        if kind not in self.shown:
            self.shown.add(kind)
            warn(_in_options(str(message), self.parser))
