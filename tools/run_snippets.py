"""Run the fenced ``python`` blocks of markdown files: ``python tools/run_snippets.py README.md``.

The blocks of a file run in order, each with a namespace of its own, in one temporary folder per
file. Blocks marked ``shell`` run in a shell, in the same folder; those of other languages are shown
only. A failure is reported with the file and line of the markdown source.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Iterator
from pathlib import Path

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<language>[\w+-]*)")


def snippets(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield first line number, language and source of each fenced block that is run."""
    opening = None
    start = 0
    block: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if opening is None:
            opening = _FENCE.match(line)
            start, block = number + 1, []
        elif re.fullmatch(rf" *{opening['fence']}[`~]* *", line):
            if opening["language"] in ("python", "shell"):
                yield start, opening["language"], "\n".join(block) + "\n"
            opening = None
        else:
            indent = opening["indent"]
            block.append(line.removeprefix(indent))
    if opening is not None:
        raise ValueError(f"line {start - 1}: fenced block is not closed")


def run_snippet(source: str, path: Path, line: int) -> None:
    """Execute one block as a main module whose line numbers are those of the markdown file."""
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    previous = sys.modules["__main__"]
    sys.modules["__main__"] = module  # classes defined by the block can then be pickled
    try:
        exec(compile("\n" * (line - 1) + source, str(path), "exec"), module.__dict__)
    finally:
        sys.modules["__main__"] = previous


def run_shell(source: str) -> None:
    """Run commands in a shell, which ends at the first that fails."""
    subprocess.run(["bash", "-euo", "pipefail", "-c", source], check=True)


def run_file(path: Path) -> int:
    """Run every block of a file; return how many there were."""
    count = 0
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for line, language, source in snippets(path.read_text(encoding="utf-8")):
                start = time.perf_counter()
                try:
                    if language == "shell":
                        run_shell(source)
                    else:
                        run_snippet(source, path, line)
                except (Exception, SystemExit) as error:
                    traceback.print_exc()
                    raise SystemExit(
                        f"{path.name}:{_failing_line(error, path, line)}: failed"
                    ) from None
                print(f"{path.name}:{line}: ok ({time.perf_counter() - start:.1f} s)", flush=True)
                count += 1
        finally:
            os.chdir(home)
    return count


def _failing_line(error: BaseException, path: Path, line: int) -> int:
    """Line of the markdown file that was running, or the block's first line."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno or line
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path) and frame.lineno]
    return lines[0] if lines else line


def main() -> None:
    paths = [Path(name).resolve() for name in sys.argv[1:]]
    if not paths:
        raise SystemExit("usage: run_snippets.py FILE.md ...")
    for path in paths:
        if run_file(path) == 0:
            raise SystemExit(f"{path.name}: has no python snippet to run")


if __name__ == "__main__":
    main()
