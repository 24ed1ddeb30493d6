"""A process that trains, again and again, until it is told to stop; see `signals`.

python -m tests.soak.trainee SEED NUMBER SOLVER raise|return MODEL
"""

import sys
import time
import warnings

import numpy as np

from .tasks import TASKS

LIMIT = 60.0  # seconds; training that goes on for so long has lost its signal


def make(seed, number, solver, on_interrupt):
    """A task, and an estimator that trains as long as rounding allows."""
    task = TASKS[number % len(TASKS)](np.random.default_rng([seed, number]))
    sqrt_loss = None if task.has_sqrt_loss and not task.margin_only else False
    options = {"tol": 0.0, "max_passes": 1000, "max_time": LIMIT, "random_state": 0}
    model = task.make(C=100.0, solver=solver, sqrt_loss=sqrt_loss, **options)
    return task, model.set_params(training__on_interrupt=on_interrupt)


def main(seed, number, solver, on_interrupt, path):
    warnings.simplefilter("ignore")
    task, model = make(int(seed), int(number), solver, on_interrupt)
    print("ready", flush=True)
    outcome, status, end = "returned", "none", time.monotonic() + LIMIT
    try:
        while status != "interrupted" and time.monotonic() < end:
            status = task.fit(model).result_.status
    except KeyboardInterrupt:
        outcome = "raised"
    if hasattr(model, "result_"):
        status = model.result_.status
        assert np.isfinite(model.result_.w).all() and len(task.predict(model)) == task.n_examples
        if task.savable:
            model.save(path)
    print(outcome, status, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
