"""Part `operations`: what users do to one estimator, one thing after the other.

Whatever came before, a fit that succeeds is as good as the first one, and one that fails leaves the
model as it was.
"""

import pickle

import numpy as np
from sklearn.exceptions import NotFittedError

from .solving import (
    ONLINE,
    check_fit,
    check_predictions,
    check_same,
    fit_or_refuse,
    random_setting,
    saved_and_loaded,
)
from .tasks import TASKS

BAD_PARAMETERS = (
    {"C": -1.0},
    {"C": np.nan},
    {"tol": -1.0},
    {"tol": "small"},
    {"solver": "nonsense"},
    {"solver": "bcfw", "slack": "l2"},
    {"rescaling": "sideways"},
    {"slack": "l3"},
    {"random_state": "dice"},
)


class OwnError(Exception):
    """What a user's callback raises."""


class Story:
    """An estimator, and what is known of it."""

    def __init__(self, rng, task):
        self.rng, self.task = rng, task
        self.told = []
        self.model = task.make(warm_start=bool(rng.random() < 0.5))
        self.examples = None  # known from the first fit on
        self.operations = [
            self.fit,
            self.fit,
            self.refused_data,
            self.refused_parameters,
            self.refused_weights,
            self.failing_callback,
            self.stopped_by_callback,
            self.interrupted,
            self.predict,
            self.pickled,
            self.saved,
        ]
        if hasattr(type(self.model), "partial_fit"):
            self.operations.append(self.partial_fit)

    def run(self, n_operations=8):
        for _ in range(n_operations):
            operation = self.operations[int(self.rng.integers(len(self.operations)))]
            try:
                operation()
            except Exception as error:
                raise AssertionError(f"after {self.told}: {operation.__name__}") from error

    def tell(self, what):
        self.told.append(what)

    # ----- what succeeds ------------------------------------------------------------------------

    def new_setting(self):
        """Parameters for the next fit; the solver by its name."""
        setting = random_setting(self.rng, self.task)
        while setting.formulation.slack == "none" or setting.solver in ONLINE:
            setting = random_setting(self.rng, self.task)
        return setting._replace(options={}, tol=0.05)

    def fit(self):
        setting = self.new_setting()
        self.tell(setting)
        self.model.set_params(**setting.parameters())
        assert fit_or_refuse(self.task, self.model, setting)
        self.examples = self.task.list_examples(self.model)
        check_fit(self.model.result_, self.examples, setting)

    def partial_fit(self):
        solver = str(self.rng.choice(ONLINE))
        self.tell(f"partial_fit with {solver}")
        formulation = {"rescaling": "margin", "slack": "l1", "sqrt_loss": None}
        self.model.set_params(solver=solver, max_passes=None, **formulation)
        self.model.partial_fit(self.task.X, self.task.Y)
        self.examples = self.task.list_examples(self.model)
        self.check()

    def stopped_by_callback(self):
        setting = self.new_setting()
        self.tell("a callback that ends training")
        self.model.set_params(**setting.parameters(), training__callbacks=[lambda progress: True])
        try:
            assert fit_or_refuse(self.task, self.model, setting)
        finally:
            self.model.set_params(training__callbacks=())
        assert self.model.result_.status in ("callback", "converged"), self.model.result_
        self.examples = self.task.list_examples(self.model)
        check_fit(self.model.result_, self.examples, setting, must_converge=False)

    def interrupted(self):
        """Ctrl-C: the best model so far is kept, whether fit raises or returns."""
        setting, answer = self.new_setting(), str(self.rng.choice(["raise", "return"]))
        wait = iter(range(int(self.rng.integers(4))))

        def callback(progress):
            if next(wait, None) is None:
                raise KeyboardInterrupt

        self.tell(f"Ctrl-C, on_interrupt={answer!r}")
        training = {"callbacks": [callback], "on_interrupt": answer}
        self.model.set_params(**setting.parameters(), training=training)
        raised = False
        try:
            assert fit_or_refuse(self.task, self.model, setting)
        except KeyboardInterrupt:
            raised = True
        finally:
            self.model.set_params(training__callbacks=())
        result = self.model.result_
        assert raised == (result.status == "interrupted" and answer == "raise"), result.status
        self.examples = self.task.list_examples(self.model)
        check_fit(result, self.examples, setting, must_converge=False)

    def predict(self):
        self.tell("predict")
        self.check()

    def pickled(self):
        self.tell("pickle")
        self.model = pickle.loads(pickle.dumps(self.model))
        self.check()

    def saved(self):
        if self.examples is None or not self.task.savable:
            return
        self.tell("save and load")
        loaded = saved_and_loaded(self.model)
        check_same(self.task, self.model, loaded)
        self.model = loaded
        self.check()

    def check(self):
        """Predictions follow from the weights; without a fit there are none."""
        if self.examples is not None:
            check_predictions(self.rng, self.task, self.model, self.examples)
            return
        try:
            self.task.predict(self.model)
        except NotFittedError:
            return
        raise AssertionError("predicts without having been fitted")

    # ----- what is refused ----------------------------------------------------------------------

    def refused(self, fit, expected=ValueError):
        """A fit that fails with one kind of error and changes nothing."""
        before = None if self.examples is None else self.model.result_.w.copy()
        predicted = None if before is None else self.keys()
        try:
            fit()
        except expected:
            pass
        else:
            raise AssertionError("nothing was refused")
        if before is not None:
            assert np.array_equal(self.model.result_.w, before), "the weights have changed"
            assert self.keys() == predicted, "the predictions have changed"
        self.check()

    def keys(self):
        return self.task.keys(self.model)

    def refused_data(self):
        which = int(self.rng.integers(len(self.task.refusals)))
        self.tell(f"refusal {which}")
        self.refused(lambda: self.model.fit(*self.task.refusals[which]))

    def refused_parameters(self):
        bad = BAD_PARAMETERS[int(self.rng.integers(len(BAD_PARAMETERS)))]
        self.tell(bad)
        good = {name: self.model.get_params()[name] for name in bad}
        self.model.set_params(**bad)
        try:
            self.refused(lambda: self.task.fit(self.model))
        finally:
            self.model.set_params(**good)

    def refused_weights(self):
        n = self.task.n_examples
        weights = [np.ones(n + 1), -np.ones(n), np.full(n, np.nan), np.full(n, np.inf)]
        bad = weights[int(self.rng.integers(len(weights)))]
        self.tell(f"sample_weight={bad}")
        self.refused(lambda: self.task.fit(self.model, bad))

    def failing_callback(self):
        def callback(progress):
            raise OwnError

        self.tell("a callback that fails")
        self.model.set_params(training__callbacks=[callback])
        try:
            self.refused(lambda: self.task.fit(self.model), OwnError)
        finally:
            self.model.set_params(training__callbacks=())


def prepare(rng, number):
    """One estimator and eight operations."""
    task = TASKS[number % len(TASKS)](rng)
    return f"{task.name}: {task.make}", Story(rng, task).run
