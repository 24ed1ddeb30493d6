"""Run the code of markdown pages and examples: ``python tools/run_snippets.py README.md``.

The ``python`` and ``shell`` blocks of a page run in order in one temporary folder; Python blocks
share one namespace. Blocks of other languages are only shown. A failure is reported with the file
and line of the markdown source.

A block may be followed directly by a block ``output``: what it printed (shell blocks: on both
streams). ``--record`` writes these blocks. Without it, an output that is no longer what the block
prints is a failure: words must be equal and numbers within 5 %; spaces do not count, and neither do
durations and memory.

Blocks after a line ``<!-- data: conll2002 -->`` need that folder of ``$MAXMARGIN_DATA``
(``../shared/data`` by default); without it they are skipped, and those before the line run. Blocks
save pictures as ``NAME.png``; ``--record`` copies them to ``docs/images``.

In an example of the gallery the blocks are cells, between lines ``# %%``. A cell of text that
begins with ``.. code-block:: output`` shows what the cell before printed, and a line
``.. data: conll2002`` in the docstring names the data. The open figure becomes
``docs/images/gallery/NAME.png``.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import itertools
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<language>[\w+-]*)")
_MEASURED = re.compile(r"[\d.]+(?:e[-+]?\d+)? ?(?:[mµun]?s|seconds?|minutes?|min|[kKMG]i?B|%CPU)\b")
_OUTPUT, _COMMENT = "# .. code-block:: output", "#     "  # in cells of text
_NUMBER = re.compile(r"((?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w))")


@dataclass
class Block:
    """A fenced block: its language, its lines and where they are."""

    language: str
    indent: str
    start: int  # number of the first line inside the fence, from 1
    lines: list[str]

    @property
    def stop(self) -> int:
        """Number of the closing fence's line."""
        return self.start + len(self.lines)

    @property
    def text(self) -> str:
        """Its lines, as one string."""
        return "\n".join(self.lines) + "\n"


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    opening = None
    for number, line in enumerate(text.splitlines(), start=1):
        if opening is None:
            opening = _FENCE.match(line)
            if opening is not None:
                block = Block(opening["language"], opening["indent"], number + 1, [])
        elif re.fullmatch(rf" *{opening['fence']}[`~]* *", line):
            yield block
            opening = None
        else:
            block.lines.append(line.removeprefix(block.indent))
    if opening is not None:
        raise ValueError(f"line {block.start - 1}: fenced block is not closed")


def cells(text: str) -> Iterator[tuple[Block, Block | None]]:
    """Yield the cells of an example that are run, each with its output block, if any."""
    lines = text.splitlines()
    begin = ast.parse(text).body[0].end_lineno or 0  # behind the docstring
    starts = [i for i in range(begin, len(lines)) if lines[i].startswith("# %%")]
    pending = None
    for start, stop in itertools.pairwise([begin, *starts, len(lines)]):
        code = next((i for i in range(start, stop) if not lines[i].startswith("#")), stop)
        output = None
        if lines[start + 1 : start + 2] == [_OUTPUT]:
            first = last = start + 3
            while last < code and re.match(r"#(?: {5}|$)", lines[last]):
                last += 1
            while last > first and lines[last - 1] == "#":
                last -= 1
            shown = [line.removeprefix(_COMMENT).removeprefix("#") for line in lines[first:last]]
            output = Block("output", _COMMENT, first + 1, shown)
        if pending is not None:
            yield pending, output
        pending = Block("python", "", code + 1, lines[code:stop]) if code < stop else None
    if pending is not None:
        yield pending, None


def snippets(text: str) -> Iterator[tuple[Block, Block | None]]:
    """Yield the blocks that are run, each with the output block that follows it, if any."""
    lines = text.splitlines()
    for block, after in itertools.pairwise([*blocks(text), None]):
        if block is None or block.language not in ("python", "shell"):
            continue
        if after is not None and after.language == "output":
            between = lines[block.stop : after.start - 2]
            yield block, None if any(line.strip() for line in between) else after
        else:
            yield block, None


def same_output(recorded: str, printed: str) -> bool:
    """True if words are equal and numbers, other than durations and memory, within 5 %."""
    return all(
        new is not None and old is not None and (old == new or _close(old, new))
        for old, new in itertools.zip_longest(_tokens(recorded), _tokens(printed))
    )


def _tokens(text: str) -> list[str]:
    """Words and numbers, in turn."""
    tokens = _NUMBER.split(_MEASURED.sub("...", text))
    return [" ".join(token.split()) for token in tokens]


def _close(old: str, new: str) -> bool:
    """True for numbers within 5 %, or a unit of their last decimal place."""
    try:
        difference = abs(float(old) - float(new))
    except ValueError:
        return False
    places = min(len(number.partition(".")[2]) for number in (old, new))
    unit = 0.0 if places == 0 or "e" in (old + new).lower() else 10.0**-places
    return difference <= max(0.05 * max(abs(float(old)), abs(float(new))), 1.000001 * unit)


def first_line_with_data(text: str, folder: Path) -> tuple[float, list[str]]:
    """Number of the line after which blocks need data, and which of these are not in a folder."""
    match = re.search(r"^(?:<!-- data: ([\w -]+?) *-->|\.\. data: ([\w -]+))$", text, re.M)
    if match is None:
        return math.inf, []
    names = (match[1] or match[2]).split()
    missing = [name for name in names if not (folder / name).exists()]
    return text.count("\n", 0, match.start()) + 1, missing


@contextlib.contextmanager
def page_surroundings(path: Path) -> Iterator[types.ModuleType]:
    """Work in a temporary folder, as the main module of the page."""
    home, environment, main = Path.cwd(), dict(os.environ), sys.modules["__main__"]
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.chdir(folder)
            os.environ |= {"MPLBACKEND": "Agg", "COLUMNS": "100"}  # the same for everyone
            os.environ.pop("MAXMARGIN_DATA", None)  # pages say from which line on they need data
            sys.modules["__main__"] = module  # classes defined by the page can then be pickled
            yield module
        finally:
            sys.modules["__main__"] = main
            os.environ.clear()
            os.environ.update(environment)
            os.chdir(home)


def run_block(block: Block, path: Path, module: types.ModuleType) -> str:
    """Run a block and return what it printed. Its line numbers are those of the page."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as stream:
        try:
            if block.language == "shell":
                command = ["bash", "-euo", "pipefail", "-c", block.text]
                subprocess.run(command, check=True, stdout=stream, stderr=subprocess.STDOUT)
            else:
                code = compile("\n" * (block.start - 1) + block.text, str(path), "exec")
                with contextlib.redirect_stdout(stream):
                    exec(code, module.__dict__)
        except (Exception, SystemExit) as error:
            stream.seek(0)
            print(stream.read())
            traceback.print_exc()
            line = _failing_line(error, path, block.start)
            raise SystemExit(f"{path.name}:{line}: failed") from None
        stream.seek(0)
        return "\n".join(line.rstrip() for line in stream.read().strip("\n").splitlines())


def _failing_line(error: BaseException, path: Path, line: int) -> int:
    """Line of the markdown file that was running, or the block's first line."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno or line
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path) and frame.lineno]
    return lines[0] if lines else line


def save_figure(name: str) -> None:
    """Save the figure that an example shows, as sphinx-gallery would."""
    if "matplotlib.pyplot" in sys.modules:
        pyplot = sys.modules["matplotlib.pyplot"]
        if pyplot.get_fignums():
            pyplot.gcf().savefig(name, dpi=100)
        pyplot.close("all")


def run_page(path: Path, images: Path, record: bool = False) -> list[str]:
    """Run every block of a page; return what is no longer as recorded."""
    text = path.read_text(encoding="utf-8")
    data = Path(os.environ.get("MAXMARGIN_DATA") or ROOT.parent / "shared" / "data").resolve()
    line_of_data, missing = first_line_with_data(text, data)
    lines, stale = text.splitlines(), []
    replaced = []
    with page_surroundings(path) as module:
        for block, output in cells(text) if path.suffix == ".py" else snippets(text):
            if block.start > line_of_data:
                if missing:
                    names = ", ".join(missing)
                    print(f"{path.name}:{block.start}: skipped, its data are not there: {names}")
                    break
                os.environ["MAXMARGIN_DATA"] = str(data)
            start = time.perf_counter()
            printed = run_block(block, path, module)
            print(
                f"{path.name}:{block.start}: ok ({time.perf_counter() - start:.1f} s)", flush=True
            )
            if output is not None and not same_output(output.text, printed):
                stale.append(f"{path.name}:{output.start}: printed instead:\n{printed}")
            if output is not None:
                replaced.append((output, [output.indent + line for line in printed.splitlines()]))
        if path.suffix == ".py":
            save_figure(f"{path.stem}.png")
        for figure in sorted(Path().glob("*.png")):
            if record:
                shutil.copy(figure, images / figure.name)
            elif not (images / figure.name).exists():
                stale.append(f"{path.name}: {figure.name} is not in {images}")
    if record:
        for output, new in reversed(replaced):
            lines[output.start - 1 : output.stop - 1] = [line.rstrip() for line in new]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return []
    return stale


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description="Run the python and shell blocks of markdown pages, and examples."
    )
    parser.add_argument("pages", nargs="+", type=Path, metavar="FILE", help="pages and examples")
    parser.add_argument(
        "--record", action="store_true", help="write what blocks print into the output blocks"
    )
    parser.add_argument(
        "--images", type=Path, default=ROOT / "docs/images", help="folder of recorded figures"
    )
    options = parser.parse_args(arguments)
    stale = []
    for path in options.pages:
        is_example = path.suffix == ".py"
        if not is_example and not any(snippets(path.read_text(encoding="utf-8"))):
            raise SystemExit(f"{path}: has no python or shell block to run")
        images = options.images.resolve() / ("gallery" if is_example else "")
        images.mkdir(exist_ok=True)
        stale += run_page(path.resolve(), images, options.record)
    if stale:
        print("\n\n".join(stale))
        raise SystemExit(f"{len(stale)} not as recorded: run_snippets.py --record PAGE renews them")


if __name__ == "__main__":
    main()
