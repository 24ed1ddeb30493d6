"""First fits with an empty cache of kernels, and what each change to Numba buys.

``python -m benchmarks.cold_start`` prints CPU seconds of a first fit and prediction of every
estimator, imports included, each in a process of its own; with names of estimators, of those.
``python -m benchmarks.cold_start --patches`` leaves out one patch of
`maxmargin.jit.numba_patches` at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
REPEAT = 5  # warm fits, the shortest of which counts


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print one line for each process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("estimators", nargs="*")
    parser.add_argument("--patches", action="store_true", help="leave out one patch at a time")
    parser.add_argument("--without", nargs="*", help="these alone")
    parser.add_argument("--measure", action="store_true", help="in this process, as JSON")
    chosen = parser.parse_args(arguments)
    if chosen.measure:
        print(json.dumps(measure(*chosen.estimators)))
        return
    from maxmargin.cli.commands.warm_up import MADE_UP
    from maxmargin.jit.numba_patches import NEEDED

    left_out = chosen.without or (["0", *NEEDED, "1"] if chosen.patches else ["0"])
    names = chosen.estimators or list(LARGE if chosen.patches else MADE_UP)
    for name in names:
        for patch in left_out:
            found = in_new_process(name, patch)
            warm = f", warm fit {found['warm']:6.2f} s" if "warm" in found else ""
            without = "" if patch == "0" else f"without {patch}" if patch != "1" else "plain Numba"
            print(f"{name:18s} {without:22s} first fit {found['cold']:6.2f} s{warm}", flush=True)


def in_new_process(name: str, without: str) -> dict[str, float]:
    """What `measure` finds there, with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", __spec__.name, "--measure", name],
            cwd=REPOSITORY,
            env=os.environ | {"NUMBA_CACHE_DIR": folder, "MAXMARGIN_PLAIN_NUMBA": without},
            check=True,
            stdout=subprocess.PIPE,
        )
    return json.loads(done.stdout)


def measure(name: str) -> dict[str, float]:
    """CPU seconds of this process up to a first prediction, and of a fit of more data later."""
    import maxmargin as mm
    from maxmargin.cli.commands.warm_up import MADE_UP

    warnings.simplefilter("ignore")
    parameters, X, y = MADE_UP[name]()
    getattr(mm, name)(**parameters).fit(X, y).predict(X)
    found = {"cold": sum(os.times()[:2])}
    if name in LARGE:
        parameters, X, y = LARGE[name]()
        seconds = []
        for _ in range(1 + REPEAT):  # the first may need kernels that few data do not
            started = time.process_time()
            getattr(mm, name)(**parameters).fit(X, y)
            seconds.append(time.process_time() - started)
        found["warm"] = min(seconds[1:])
    return found


def _tagged_words() -> tuple[dict[str, Any], Any, Any]:
    import numpy as np

    from maxmargin.features import WindowFeatures

    rng = np.random.default_rng(0)
    tags = [rng.integers(12, size=15) for _ in range(1500)]
    words = [[f"w{rng.zipf(1.4) % 2000 + 100 * tag}" for tag in row] for row in tags]
    y = [[f"T{tag}" for tag in row] for row in tags]
    return {"features": WindowFeatures(), "epsilon": 0.1, "random_state": 0}, words, y


def _classes() -> tuple[dict[str, Any], Any, Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    y = rng.integers(12, size=30_000)
    return {"C": 0.1, "random_state": 0}, rng.normal(size=(len(y), 60)) + np.eye(12, 60)[y], y


def _dependencies() -> tuple[dict[str, Any], Any, Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    sentences, heads = [], []
    for _ in range(300):
        n = int(rng.integers(6, 16))
        words = rng.zipf(1.4, size=n) % 500
        sentences.append([(f"w{word}", f"T{word % 9}") for word in words])
        heads.append([0, *(int(rng.integers(max(1, k - 2), k + 1)) for k in range(1, n))])
    return {"hash_bits": 16, "epsilon": 0.1, "random_state": 0}, sentences, heads


LARGE: dict[str, Callable[[], tuple[dict[str, Any], Any, Any]]] = {
    "SequenceTagger": _tagged_words,
    "MulticlassSVM": _classes,
    "DependencyParser": _dependencies,
}

if __name__ == "__main__":
    main()
