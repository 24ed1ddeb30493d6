"""The two commands that each tool of SVM-struct has; light, like `options`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...registry import import_name
from ..signals import Signals
from .options import Option, add_options, classify_options, echo_notes, make_parser

__all__ = ["StructTool"]


class StructTool(NamedTuple):
    """A tool: its name, the options of both commands, and the module that does the work.

    That module has ``learn(arguments, signals)`` and ``classify(arguments)``, which return exit
    codes.
    """

    name: str
    module: str
    lines: str  # what its files look like
    writes: str  # and its predictions
    learning: tuple[Option, ...]
    classifying: tuple[Option, ...] = classify_options()

    @property
    def commands(self) -> tuple[str, str]:
        """Names of the commands."""
        return f"{self.name}-learn", f"{self.name}-classify"

    def add_parsers(self, commands: Any) -> list[argparse.ArgumentParser]:
        """Describe the commands."""
        learn, classify = self.commands
        their = self.name.replace("-", "_")
        first = make_parser(
            commands,
            learn,
            f"{their}_learn, by maxmargin: its options and files. Lines are {self.lines}.\n"
            "The model is a file of maxmargin's own.",
        )
        add_options(first, self.learning)
        first.add_argument("data", help="training file")
        first.add_argument("model", nargs="?", default="svm_struct_model", help="model to write")
        first.set_defaults(run=lambda *given: self._run("learn", self.learning, *given))
        second = make_parser(
            commands,
            classify,
            f"{their}_classify, by maxmargin, with a model of 'maxmargin {learn}'. Writes\n"
            f"{self.writes}.",
        )
        second.add_argument("-h", action="help", help="show this text and end")
        add_options(second, self.classifying)
        second.add_argument("data", help="test file")
        second.add_argument("model", nargs="?", default="svm_struct_model", help="model to read")
        second.add_argument("output", nargs="?", default="svm_predictions", help="file to write")
        second.set_defaults(run=lambda *given: self._run("classify", self.classifying, *given))
        return [first, second]

    def _run(
        self,
        what: str,
        options: Sequence[Option],
        arguments: argparse.Namespace,
        signals: Signals,
    ) -> int:
        """Do what a command is for."""
        echo_notes(arguments, options)
        return int(import_name(f"cli.dropins.{self.module}", what)(arguments, signals))
