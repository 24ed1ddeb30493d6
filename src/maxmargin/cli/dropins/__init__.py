"""Commands with the arguments and files of other tools, so that scripts for those keep working.

`options` describes the commands, and is read at every start; the files of the tools' names do the
work. They read the data before they import estimators, which takes longer. C, epsilon and the scale
of the weights are converted by `learning`. Models are files of maxmargin's own.
"""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

from .options import TOOLS, add_crfsuite

__all__ = ["add_parsers", "list_commands"]


def add_parsers(commands: Any) -> list[argparse.ArgumentParser]:
    """Describe all commands."""
    parsers = [parser for tool in TOOLS for parser in tool.add_parsers(commands)]
    return [*parsers, *add_crfsuite(commands)]


def list_commands() -> str:
    """Lines of help that name them."""
    names = ", ".join(name for tool in TOOLS for name in tool.commands)
    return textwrap.fill(
        f"drop-ins for other tools, with their options and files: {names}, crfsuite",
        width=96,
        subsequent_indent="  ",
        break_on_hyphens=False,
    )
