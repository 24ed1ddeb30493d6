"""The command line: ``list``, ``run`` and ``papers``."""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from maxmargin.solvers import SOLVERS

from .case import Options
from .machine import machine, versions
from .papers import PAPERS, recording
from .papers.exhibit import Options as PaperOptions
from .plot import plot
from .runner import CaseReport, run_case
from .table import table

#: Name on the command line, and the module whose ``cases(options)`` is run.
BENCHMARKS = {
    "conll2000": ".datasets.conll2000",
    "ocr": ".datasets.ocr_letters",
    "dcd": ".datasets.dcd",
    "conll2002": ".datasets.conll2002",
    "usps": ".datasets.usps",
    "mnist": ".datasets.mnist",
    "classes": ".datasets.classes",
    "measures": ".datasets.measures",
    "taxonomy": ".datasets.taxonomy",
    "alignment": ".datasets.alignment",
    "ptb": ".datasets.ptb",
    "dependencies": ".datasets.dependencies",
    "faces": ".datasets.faces",
    "mq2008": ".datasets.mq2008",
    "multilabel": ".datasets.multilabel",
    "ordinal": ".datasets.ordinal",
    "snakes": ".datasets.snakes",
    "segments": ".datasets.segments",
    "orders": ".datasets.orders",
    "partial": ".datasets.partial",
    "costs": ".datasets.costs",
    "kernels": ".datasets.kernels",
    "confidence": ".datasets.confidence",
    "cutting-planes": ".datasets.cutting_planes",
    "overhead": ".overhead",
    "tolerance": ".tolerance",
    "stiff": ".stiff",
    "memory": ".memory",
    "budget": ".budget",
    "stream": ".stream",
    "paths": ".datasets.paths",
    "own-problem": ".own_problem",
    "predict": ".predicting",
    "cores": ".cores",
    "cluster": ".cluster",
}
RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """List or run benchmarks."""
    chosen = _parser().parse_args(arguments)
    if chosen.command == "list":
        for name, module in BENCHMARKS.items():
            about = import_module(module, __package__).__doc__ or ""
            print(f"{name:10s} {about.splitlines()[0]}")
        print(f"solvers: {', '.join(SOLVERS)}; peers: LinearSVC, python-crfsuite, LightGBM, mord")
        return 0
    if chosen.command == "papers":
        if chosen.pages:
            recording.write_pages()
        else:
            how = PaperOptions(chosen.quick, chosen.repeat)
            recording.main(chosen.paper, chosen.exhibits, how, chosen.output)
        return 0
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("maxmargin").setLevel(logging.WARNING)
    solvers = tuple(chosen.solvers) if chosen.solvers else None
    options = Options(solvers, chosen.peers, chosen.quick, chosen.only)
    run(chosen.names or list(BENCHMARKS), options, chosen.repeat, chosen.output)
    return 0


def run(names: Sequence[str], options: Options, repeat: int, output: Path) -> Path:
    """Run benchmarks by name; write JSON and pictures, print the table, return the JSON's path."""
    output.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%S"),
        "machine": machine(),
        "versions": versions(),
        "options": {"repeat": repeat, **vars(options)},
        "benchmarks": {},
    }
    path = output / f"run-{time.strftime('%Y%m%d-%H%M%S')}.json"
    everything: list[CaseReport] = []
    for name in names:
        module = import_module(BENCHMARKS[name], __package__)
        reports = [
            run_case(case, repeat, evaluated=not options.quick)
            for case in module.cases(options)
            if options.only in case.name
        ]
        everything += reports
        record["benchmarks"][name] = [report.as_json() for report in reports]
        # After every data set, so that an interrupted run leaves what it has.
        path.write_text(json.dumps(record, indent=1), encoding="utf-8")
        if hasattr(module, "draw"):  # a picture of its own
            module.draw(output / f"{name}.png")
        else:
            plot(reports, output / f"{name}.png")
    print(table(everything))
    missed = sum(finding.ok is False for report in everything for finding in report.findings)
    print(f"\n{missed} targets missed; figures and single runs: {path.name}")
    return path


def _parser() -> argparse.ArgumentParser:
    """Arguments."""
    parser = argparse.ArgumentParser("python -m benchmarks", description="Benchmarks of maxmargin.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="what there is")
    running = commands.add_parser("run", help="run benchmarks")
    running.add_argument(
        "names", nargs="*", metavar="NAME", help=f"{', '.join(BENCHMARKS)}; or all"
    )
    running.add_argument("--solvers", nargs="+", choices=SOLVERS, help="ours to run")
    running.add_argument("--no-peers", dest="peers", action="store_false", help="ours only")
    running.add_argument("--only", default="", metavar="TEXT", help="cases with this in their name")
    running.add_argument("--repeat", type=int, default=3, help="timed runs of each (default: 3)")
    running.add_argument("--output", type=Path, default=RESULTS, help="folder for JSON and plots")
    running.add_argument("--quick", action="store_true", help="tiny slices: does everything work?")
    papers = commands.add_parser("papers", help="run tables and figures of the papers again")
    papers.add_argument("paper", nargs="?", choices=PAPERS, metavar="PAPER", help=", ".join(PAPERS))
    papers.add_argument(
        "exhibits", nargs="*", metavar="EXHIBIT", help="table-1, figure-2, ...; or all"
    )
    papers.add_argument("--repeat", type=int, default=1, help="timed runs of each (default: 1)")
    papers.add_argument("--output", type=Path, help="folder for JSON (default: the recorded runs)")
    papers.add_argument("--quick", action="store_true", help="tiny slices: does everything work?")
    papers.add_argument("--pages", action="store_true", help="write docs/papers from the records")
    return parser
