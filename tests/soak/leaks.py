"""Part `leaks`: the same again and again takes no more memory, files or threads.

What is no longer used goes at once: problems, stores and models in cycles of references would stay,
with all their arrays, until Python happens to look for cycles.
"""

import gc
import os
import tempfile
import threading
import tracemalloc
import warnings

import numpy as np
from numba.core.runtime import _nrt_python, rtsys

import maxmargin as mm
from maxmargin.engine.parallel import threads

from .solving import fit_or_refuse, random_setting
from .tasks import TASKS

REPEATS = 6
ROUNDS = 3
MOST_BYTES = 20_000  # that Python may have more after all repeats: records of warnings and such
MOST_RSS = 30  # MB


def prepare(rng, number):
    """One training that is repeated."""
    task = TASKS[number % len(TASKS)](rng)
    setting = random_setting(rng, task)
    while setting.formulation.slack == "none":
        setting = random_setting(rng, task)
    setting = setting._replace(tol=0.05)
    return f"{task.name}: {task.make}\n{setting}", lambda: run(task, setting)


def once(task, setting):
    """Train with a checkpoint, predict, save and load."""
    model = task.make(**setting.parameters())
    with tempfile.TemporaryDirectory() as folder:
        options = {"checkpoint": os.path.join(folder, "c"), "checkpoint_every": 0.0}
        model.set_params(max_time=None, training=options)
        fit_or_refuse(task, model, setting)
        task.predict(model)
        if task.savable:
            path = os.path.join(folder, "model.mm")
            model.set_params(solver="auto").save(path)
            task.predict(mm.load(path))


def run(task, setting):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        once(task, setting)
        once(task, setting)
        check_cycles(task, setting)
        check_growth(task, setting)


def check_cycles(task, setting):
    """No arrays wait for the search for cycles."""
    gc.collect()
    gc.disable()
    try:
        once(task, setting)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found = sorted({type(item).__name__ for item in gc.garbage if is_large(item)})
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not found, f"only the search for cycles would free {', '.join(found)}"


def is_large(item):
    """Whether an object holds arrays."""
    held = gc.get_referents(item)
    held += [value for inner in held if isinstance(inner, dict) for value in inner.values()]
    return any(isinstance(value, np.ndarray) for value in held)


def check_growth(task, setting):
    """Counts are what they were before."""
    before = counts()
    tracemalloc.start()
    try:
        once(task, setting)
        # What calls of kernels keep grows less and less; what leaks, grows every time.
        more = min(more_after_repeats(task, setting) for _ in range(ROUNDS))
    finally:
        tracemalloc.stop()
    after = counts()
    assert more < MOST_BYTES, f"{more} bytes more after {REPEATS} times"
    for name in ("files", "threads", "arrays of kernels"):
        assert after[name] <= before[name], f"{name}: {before[name]}, then {after[name]}"
    # The pool's begin when they are needed, so that there may be more, up to its size.
    assert after["pool"] <= threads._pool._size, f"{after['pool']} threads of the pool"
    assert after["MB"] < before["MB"] + MOST_RSS, f"MB: {before['MB']}, then {after['MB']}"


def more_after_repeats(task, setting):
    """Bytes that Python has more."""
    gc.collect()
    start = tracemalloc.get_traced_memory()[0]
    for _ in range(REPEATS):
        once(task, setting)
    gc.collect()
    return tracemalloc.get_traced_memory()[0] - start


def counts():
    """What a process has of everything."""
    gc.collect()
    _nrt_python.memsys_enable_stats()
    kernels = rtsys.get_allocation_stats()
    with open("/proc/self/statm") as stream:
        pages = int(stream.read().split()[1])
    pool = sum(thread.name.startswith("maxmargin_") for thread in threading.enumerate())
    return {
        "files": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count() - pool,
        "pool": pool,
        "arrays of kernels": kernels.alloc - kernels.free,
        "MB": pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
    }
