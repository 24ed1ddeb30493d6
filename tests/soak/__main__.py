"""Soak of the package: random cases for as many minutes as are given.

    python -m tests.soak --seed 1 --minutes 10                    # all parts
    python -m tests.soak --seed 1 --minutes 10 --cases 50         # 50 cases of each part at most
    python -m tests.soak --seed 1 --part solvers --case 41        # one case again
    python -m tests.soak --part mutations --cases 1000000 --minutes 600     # over night

Every case is drawn from its seed, part and number alone, so that it can be run again by itself.
"""

import argparse
import faulthandler
import logging
import os
import sys
import textwrap
import threading
import time
import traceback
import warnings

import numpy as np

from maxmargin.engine import oracle

from . import bad_inputs, crashes, files, leaks, mutations, operations, signals, solving

# A part: what makes case n, (description, function that runs it), and its share of the time.
PARTS = {
    "solvers": (solving.prepare, 0.4),
    "operations": (operations.prepare, 0.15),
    "leaks": (leaks.prepare, 0.05),
    "bad": (bad_inputs.prepare, 0.1),
    "mutations": (mutations.prepare, 0.05),
    "files": (files.prepare, 0.1),
    "signals": (signals.prepare, 0.2),
    "crashes": (crashes.prepare, 0.1),
}
HANGS_AFTER = 600.0  # seconds; solvers have limits far below that


def main():
    arguments = parse_arguments()
    faulthandler.enable()
    GUARD.start()
    logging.getLogger("maxmargin").setLevel(logging.ERROR)
    warnings.filterwarnings("error", category=RuntimeWarning, module="maxmargin")
    oracle.CHUNK_WORK, oracle.FEWEST = 1.0, 2  # threads have pieces to search in small data too
    print(f"seed {arguments.seed}", flush=True)
    chosen = PARTS if arguments.part is None else [arguments.part]
    total = sum(PARTS[part][1] for part in chosen)
    n_failed = 0
    for part in chosen:
        seconds = 60.0 * arguments.minutes * PARTS[part][1] / total
        n_failed += run_part(arguments, part, seconds)
    return 1 if n_failed else 0


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--cases", type=int, metavar="N", help="end a part after N cases")
    parser.add_argument("--case", type=int, metavar="N", help="run case N of the part only")
    parser.add_argument("-v", "--verbose", action="store_true", help="name every case")
    arguments = parser.parse_args()
    if arguments.case is not None and arguments.part is None:
        parser.error("--case needs --part")
    if arguments.cases is not None and arguments.cases < 1:
        parser.error("--cases must be at least 1")
    return arguments


def run_part(arguments, part, seconds):
    """Run the cases of a part one after the other; returns how many failed."""
    first, most = (0, arguments.cases) if arguments.case is None else (arguments.case, 1)
    started, n_cases, n_failed, elapsed = time.monotonic(), 0, 0, 0.0
    while n_cases == 0 or (elapsed < seconds and n_cases != most):
        number, began = first + n_cases, time.monotonic()
        n_failed += not run_case(arguments.seed, part, number)
        if arguments.verbose:
            print(f"{part} case {number}: {time.monotonic() - began:.2f} s", flush=True)
        n_cases += 1
        elapsed = time.monotonic() - started
    print(f"{part}: {n_cases} cases, {n_failed} failed, {elapsed:.0f} s", flush=True)
    return n_failed


def run_case(seed, part, number):
    """Run one case; tells of a failure, and returns whether there was none."""
    rng = np.random.default_rng([seed, list(PARTS).index(part), number])
    again = f"python -m tests.soak --seed {seed} --part {part} --case {number}"
    description = "no description yet"
    GUARD.watch(again)
    try:
        description, run = PARTS[part][0](rng, number)
        run()
        return True
    except Exception:
        print(f"\nFAILED: {again}\n{textwrap.indent(str(description), '    ')}")
        print(textwrap.indent(traceback.format_exc(limit=-4), "    "), flush=True)
        return False


class Guard(threading.Thread):
    """Ends the process if a case goes on for too long, which no exception could do."""

    def __init__(self):
        super().__init__(daemon=True)
        self.began, self.again = time.monotonic(), ""

    def watch(self, again):
        """A new case has begun."""
        self.began, self.again = time.monotonic(), again

    def run(self):
        while time.monotonic() - self.began < HANGS_AFTER:
            time.sleep(1.0)
        print(f"\nFAILED: {self.again}\n    still running after {HANGS_AFTER:.0f} s", flush=True)
        faulthandler.dump_traceback()
        os._exit(1)


GUARD = Guard()


if __name__ == "__main__":
    sys.exit(main())
