"""Runs exhibits, records them as JSON, and makes pages and pictures of the records."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ..data import REPOSITORY
from ..machine import machine, versions
from ..plot import COLOURS
from . import PAPERS
from .exhibit import Exhibit, Options, Panel, claim_line, markdown

RECORDED = Path(__file__).parent / "recorded"
PAGES = REPOSITORY / "docs" / "papers"
PICTURES = "../images/papers"


def run(paper: str, names: Sequence[str], options: Options, output: Path) -> None:
    """Run exhibits of a paper, all where none is named, and record each when it is done."""
    exhibits = import_module(PAPERS[paper], __package__).EXHIBITS
    unknown = set(names) - set(exhibits)
    if unknown:
        raise SystemExit(f"{paper} has no {', '.join(unknown)}; it has {', '.join(exhibits)}")
    for name in names or exhibits:
        print(f"{paper} {name}", flush=True)
        started = time.process_time()
        exhibit = exhibits[name](options)
        exhibit.about = _about(time.process_time() - started, options)
        path = output / paper / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(exhibit.as_json(), indent=1) + "\n", encoding="utf-8")
        print(markdown(name, exhibit, None), flush=True)


def _about(seconds: float, options: Options) -> dict[str, Any]:
    """Where and when it was measured."""
    here, found = machine(), versions()
    return {
        "date": time.strftime("%Y-%m-%d"),
        "commit": found["commit"],
        "machine": f"{here['processor']}, {here['cores']} cores",
        "versions": found,
        "seconds": seconds,
        **options._asdict(),
    }


def read(paper: str, recorded: Path = RECORDED) -> dict[str, Exhibit]:
    """The recorded exhibits of a paper, in the paper's order."""
    exhibits = import_module(PAPERS[paper], __package__).EXHIBITS
    paths = {name: recorded / paper / f"{name}.json" for name in exhibits}
    return {
        name: Exhibit.from_json(json.loads(path.read_text(encoding="utf-8")))
        for name, path in paths.items()
        if path.exists()
    }


def pages() -> dict[str, str]:
    """The documentation's pages by file name, from the records."""
    found: dict[str, str] = {}
    claims, unrecorded = [], []
    for paper, module_name in PAPERS.items():
        module = import_module(module_name, __package__)
        exhibits = read(paper)
        if not exhibits:
            unrecorded.append(paper)
            continue
        missing = [name for name in module.EXHIBITS if name not in exhibits]
        sections = [
            markdown(name, exhibit, f"{PICTURES}/{paper}-{name}.png" if exhibit.panels else None)
            for name, exhibit in exhibits.items()
        ]
        opening = f"# {module.TITLE}\n\n{module.REFERENCE}\n\n{module.DIFFERS}\n\n    python -m benchmarks papers {paper}\n"
        if missing:
            opening += f"\nNot recorded yet: {', '.join(missing)}.\n"
        found[f"{paper}.md"] = "\n".join([opening, *sections])
        lines = [claim_line(claim) for exhibit in exhibits.values() for claim in exhibit.claims]
        claims.append("\n".join([f"## [{module.TITLE}]({paper}.md)\n", *lines]) + "\n")
    if unrecorded:
        claims.append(f"Not recorded yet: {', '.join(unrecorded)}.\n")
    contents = [
        "```{toctree}",
        ":hidden:",
        "",
        *(name.removesuffix(".md") for name in found),
        "```",
    ]
    found["index.md"] = "\n".join([INDEX, *claims, *contents, ""])
    return found


INDEX = """# The papers, run again

Every table and figure of the five papers that this package follows, with our figures beside the printed ones. One command runs
them again; data that cannot be had are replaced by others, which each section says. Below are the papers' claims, and whether they
hold here.

    python -m benchmarks papers                       # everything: hours
    python -m benchmarks papers franc-2014 table-2    # one table
    python -m benchmarks papers --quick               # tiny slices: does everything work?
    python -m benchmarks papers --pages               # these pages, from the recorded runs
"""


def write_pages(folder: Path = PAGES) -> None:
    """Write the pages and their pictures."""
    folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    for paper in PAPERS:
        for name, exhibit in read(paper).items():
            if exhibit.panels:
                path = folder / PICTURES / f"{paper}-{name}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                draw(exhibit.panels, path)


def draw(panels: Sequence[Panel], path: Path) -> None:
    """All panels in one picture, three in a row."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    columns = min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(4.4 * columns, 3.3 * rows), dpi=90, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    labels = list(dict.fromkeys(label for panel in panels for label in panel.curves))
    for axes, panel in zip(grid, panels, strict=False):
        for label, points in panel.curves.items():
            if points:
                colour = COLOURS[labels.index(label) % len(COLOURS)]
                marker = "o-" if len(points) < 12 else "-"
                axes.plot(
                    *zip(*points, strict=True), marker, ms=3.5, lw=1.4, color=colour, label=label
                )
        axes.set_title(panel.title, fontsize=10, loc="left")
        axes.set_xlabel(panel.x)
        axes.set_ylabel(panel.y)
        for axis in panel.log:
            getattr(axes, f"set_{axis}scale")("log")
            getattr(axes, f"{axis}axis").set_minor_formatter(NullFormatter())
        axes.grid(True, color="#e6e8eb")
        axes.spines[["top", "right"]].set_visible(False)
        if panel.curves:
            axes.legend(frameon=False, fontsize=8)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    figure.savefig(path)


def main(paper: str | None, names: Iterable[str], options: Options, output: Path | None) -> None:
    """What ``python -m benchmarks papers`` does."""
    for each in [paper] if paper else PAPERS:
        run(each, list(names), options, output or RECORDED)
