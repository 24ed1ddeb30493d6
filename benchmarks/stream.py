"""Data larger than memory: sentences whose features lie in a file, from 10,000 to 1,000,000.

Each size has a process of its own (``python -m benchmarks.stream N``): it generates the sentences,
packs their features to a file (in ``$MAXMARGIN_SCRATCH``, or else where temporary files are; it is
gone at the end), and trains a tagger on the file to a certified gap of 5 %. CPU times, and the most
anonymous memory of each of the two steps; the file's pages are in the page cache, which the system
takes back where it needs memory.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .case import Case, Contestant, Options, Outcome, Target
from .resident import Peak, resident

REPOSITORY = Path(__file__).resolve().parents[1]
SIZES, FEW = (10_000, 30_000, 100_000, 300_000, 1_000_000), (200, 600)
TEMPLATES = ["w[0]", "w[-1]", "w[1]", "suffix2(w[0])", "suffix3(w[0])"]
MIN_COUNT, C, TOLERANCE, MOST_MB = 2, 1.0, 0.05, 2048.0


def measure(n: int) -> dict[str, float]:
    """Pack and train on so many sentences."""
    from maxmargin import SequenceTagger
    from maxmargin.datasets import make_sentences
    from maxmargin.features import PackedSequences, WindowFeatures
    from maxmargin.features.streaming import pack_stream

    def tagger(features: WindowFeatures) -> SequenceTagger:
        return SequenceTagger(features=features, C=C, tol=TOLERANCE)

    with tempfile.TemporaryDirectory(dir=os.environ.get("MAXMARGIN_SCRATCH")) as folder:
        path = Path(folder) / "data.packed"
        pack_stream(path, make_sentences(100), WindowFeatures(TEMPLATES))  # imports and compiles
        started = time.process_time()
        with Peak() as packing:
            found = pack_stream(path, make_sentences(n), WindowFeatures(TEMPLATES, None, MIN_COUNT))
        packed = time.process_time()
        X = PackedSequences.open(path)
        tagger(found).fit(X.part(0, 100))
        begun = time.process_time()
        with Peak() as training:
            result = tagger(found).fit(X).result_
        return {
            "packing": packed - started,
            "training": time.process_time() - begun,
            "passes": float(result.n_passes),
            "gap": 100.0 * float(result.relative_gap or 0.0),
            "converged": float(result.converged),
            "packing_mb": packing.most,
            "training_mb": training.most,
            "mapped_mb": resident("RssFile"),
            "file_mb": path.stat().st_size / 2**20,
            "tokens": float(X.offsets[-1]),
            "weights_mb": len(result.w) * 8 / 2**20,
        }


def cases(options: Options) -> Iterator[Case]:
    """One case for each size."""
    for n in FEW if options.quick else SIZES:
        yield _case(n)


def _case(n: int) -> Case:
    """Sentences of a number."""

    def run() -> Outcome:
        command = [sys.executable, "-m", f"{__package__}.stream", str(n)]
        done = subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE)
        return Outcome(json.loads(done.stdout))

    label = "auto"
    targets = [
        Target("packing", label, "packing", unit="s"),
        Target("training", label, "training", unit="s"),
        Target("passes", label, "passes"),
        Target("certified gap", label, "gap", unit="%", at_most=100 * TOLERANCE),
        Target("anonymous memory, packing", label, "packing_mb", unit="MB", at_most=MOST_MB),
        Target("anonymous memory, training", label, "training_mb", unit="MB", at_most=MOST_MB),
        Target("file", label, "file_mb", unit="MB"),
        Target("one vector of weights", label, "weights_mb", unit="MB"),
    ]
    return Case(f"stream: {n:,} sentences", [Contestant(label, run, once=True)], targets)


def _row(n: int, found: dict[str, float]) -> str:
    """What was found, as a row of the table in docs/large_data.md."""
    return (
        "| {n:,} | {packing:.1f} s | {training:.1f} s | {passes:.1f} | {gap:.1f} % | "
        "{packing_mb:.0f} MB | {training_mb:.0f} MB | {file_mb:.0f} MB |"
    ).format(n=n, **found)


if __name__ == "__main__":
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(143)
    )  # the file goes, too, when it is told to
    size = int(sys.argv[1])
    outcome = measure(size)
    print(_row(size, outcome), file=sys.stderr)
    print(json.dumps(outcome))
