"""Measures that need a process of their own: import time, first-fit overhead, peak memory.

``python -m benchmarks.fresh NAME [--quick]`` measures itself and prints JSON; see `MEASURES`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]


def fresh_process(what: str, quick: bool) -> Any:
    """A contestant that measures in a new process; the first one only warms the caches."""
    from .case import Contestant, Outcome

    command = [sys.executable, "-m", f"{__package__}.fresh", what] + ["--quick"] * quick

    def run() -> Outcome:
        done = subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE)
        return Outcome(json.loads(done.stdout))

    def warm_up() -> None:
        run()

    return Contestant(what, run, warm_up)


def first_class_fit(quick: bool) -> dict[str, float]:
    """Import and first fit of the classifier."""
    return _overhead("MulticlassSVM", lambda X, y: (X, y))


def first_sequence_fit(quick: bool) -> dict[str, float]:
    """Import and first fit of the tagger."""
    return _overhead("SequenceTagger", lambda X, y: (X.reshape(12, 5, 5), y.reshape(12, 5)))


def _overhead(name: str, shaped: Callable[[Any, Any], tuple[Any, Any]]) -> dict[str, float]:
    """Seconds of the imports, and how much longer a first fit takes than a second one."""
    marks = [_clocks()]
    import maxmargin as mm

    marks.append(_clocks())
    import numba  # noqa: F401
    import numpy as np
    import scipy.sparse  # noqa: F401
    import sklearn.base  # noqa: F401

    marks.append(_clocks())
    estimator = getattr(mm, name)(random_state=0)
    marks.append(_clocks())
    X = np.random.default_rng(0).normal(size=(60, 5))
    X, y = shaped(X, np.arange(60) % 3)
    fits = [_clocks()]
    for _ in range(2):
        estimator.fit(X, y)
        fits.append(_clocks())
    found = {}
    for k, clock in enumerate(("cpu", "wall")):
        first, second = fits[1][k] - fits[0][k], fits[2][k] - fits[1][k]
        found[f"bare_import_{clock}"] = marks[1][k] - marks[0][k]
        found[f"dependencies_{clock}"] = marks[2][k] - marks[1][k]
        found[f"import_{clock}"] = marks[3][k] - marks[0][k]
        found[f"first_fit_{clock}"] = first - second
    return found


def _clocks() -> tuple[float, float]:
    """CPU and wall time."""
    return time.process_time(), time.perf_counter()


def memory(quick: bool) -> dict[str, float]:
    """Largest resident memory of a process that reads CoNLL-2000 and trains to epsilon = 0.1."""
    from .datasets.conll2000 import fit_tagger, limit_of

    fit_tagger(limit_of(quick), epsilon=0.1)
    return {"peak_mb": peak_memory() / 1e6}


def large_query(quick: bool) -> dict[str, float]:
    """Training of a ranker on one query of 100,000 drawn documents; time and memory of the fit."""
    import numpy as np

    import maxmargin as mm

    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(5_000 if quick else 100_000, 46)), rng.normal(size=46)
    y = np.clip(np.rint(X @ w / 4.0 + rng.normal(size=len(X)) + 1.0), 0, 4)
    model = mm.RankSVM(C=100.0, loss="normalized_swaps", random_state=0)
    model.fit(X[:100], y[:100])  # loads the kernels
    before, started = peak_memory(), time.process_time()
    model.fit(X, y)
    return {
        "fit_cpu": time.process_time() - started,
        "extra_mb": (peak_memory() - before) / 1e6,
        "right": 100.0 * model.score(X, y),
        "converged": float(model.result_.converged),
    }


def peak_memory() -> int:
    """Largest resident memory of this process so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # Linux's ru_maxrss also counts the parent that started us; the high-water mark does not.
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return int(lines["VmHWM"].split()[0]) * 1024
    import resource

    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


MEASURES = {
    "first-class-fit": first_class_fit,
    "first-sequence-fit": first_sequence_fit,
    "memory": memory,
    "large-query": large_query,
}

if __name__ == "__main__":
    print(json.dumps(MEASURES[sys.argv[1]]("--quick" in sys.argv)))
