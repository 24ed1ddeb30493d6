"""`TrainingOptions`: one parameter of every estimator for all of how a training runs."""

import dataclasses
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from every_estimator import KINDS
from maxmargin.formats.model_values import renamed_parameters

X = np.random.default_rng(0).normal(size=(30, 3))
Y = (X[:, 0] > 0).astype(int)
NAMES = [field.name for field in dataclasses.fields(mm.TrainingOptions)]


class Connection:
    """Stands for a client of a cluster, which nobody can copy."""

    scheduler_address = "tcp://127.0.0.1:1"

    def __reduce__(self):
        raise AssertionError("a connection was copied")


class Counter:
    """A callback with a state."""

    def __init__(self):
        self.n_calls = 0

    def __call__(self, progress):
        self.n_calls += 1


@pytest.mark.parametrize("kind", KINDS)
def test_one_option_is_set_and_the_others_stay(kind):
    for given in ({"cache_mb": 5.0}, mm.TrainingOptions(cache_mb=5.0)):
        model = KINDS[kind].make(training=given)
        assert model.get_params()["training"] is given
        if not isinstance(given, dict):
            assert model.get_params()["training__cache_mb"] == 5.0
        model.set_params(training__on_interrupt="return", C=3.0)
        assert model.training == mm.TrainingOptions(cache_mb=5.0, on_interrupt="return")
        assert model.C == 3.0 and given in ({"cache_mb": 5.0}, mm.TrainingOptions(cache_mb=5.0))
        assert clone(model).training == model.training
    model = KINDS[kind].make().set_params(training__resume=True)
    assert model.training == mm.TrainingOptions(resume=True)
    model.set_params(training=None)
    assert model.training is None
    both = model.set_params(training={"cache_mb": 2.0}, training__resume=True)
    assert both.training == mm.TrainingOptions(cache_mb=2.0, resume=True)


def test_unknown_options_are_named():
    said = "training has no option 'cache'; its options are " + ", ".join(NAMES)
    with pytest.raises(ValueError, match=said):
        mm.MulticlassSVM(training={"cache": 1}).fit(X, Y)
    with pytest.raises(ValueError, match=said):
        mm.MulticlassSVM().set_params(training__cache=1)
    with pytest.raises(
        TypeError, match=r"TrainingOptions has no option 'max_time'.*estimator itself"
    ):
        mm.TrainingOptions(max_time=1)


def test_they_are_shown_without_defaults():
    assert repr(mm.TrainingOptions()) == "TrainingOptions()"
    options = mm.TrainingOptions(cache_mb=2.0, resume=True)
    assert repr(options) == "TrainingOptions(resume=True, cache_mb=2.0)"
    assert repr(mm.MulticlassSVM(training=options)) == f"MulticlassSVM(training={options})"
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.resume = False


@pytest.mark.parametrize("form", [dict, mm.TrainingOptions])
def test_clones_share_the_connection_and_copy_the_rest(form):
    connection, counter = Connection(), Counter()
    model = mm.MulticlassSVM(training=form(cluster=connection, callbacks=[counter]))
    copied = clone(model).training
    assert copied.cluster is connection
    assert copied.callbacks[0] is not counter and isinstance(copied.callbacks[0], Counter)
    stored = pickle.loads(pickle.dumps(model)).training
    assert stored.cluster == Connection.scheduler_address


def test_clones_without_scikit_learn():
    script = (
        "import sys, maxmargin as mm\n"
        "from maxmargin.utils.sklearn_bases import clone\n"
        "class Connection:\n"
        "    def __reduce__(self): raise AssertionError\n"
        "given = {'cluster': Connection(), 'cache_mb': 3.0}\n"
        "for training in (given, mm.TrainingOptions(**given)):\n"
        "    model = clone(mm.SequenceTagger(C=2.0, training=training))\n"
        "    assert model.training.cluster is given['cluster'] and model.C == 2.0\n"
        "    assert model.training.cache_mb == 3.0\n"
        "assert 'sklearn' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_searches_and_pipelines():
    grid = {"training__cache_mb": [1.0, 2.0], "C": [0.1, 1.0]}
    options = mm.TrainingOptions(on_interrupt="return")
    for search in (GridSearchCV, mm.SearchCV):
        found = search(mm.MulticlassSVM(training=options), grid, cv=2).fit(X, Y)
        assert found.best_estimator_.training.on_interrupt == "return"
        assert found.best_estimator_.training.cache_mb in (1.0, 2.0)
    pipeline = make_pipeline(StandardScaler(), mm.MulticlassSVM())
    pipeline.set_params(multiclasssvm__training__cache_mb=4.0).fit(X, Y)
    assert pipeline[-1].training.cache_mb == 4.0


@pytest.mark.parametrize("form", [dict, mm.TrainingOptions])
def test_files_keep_what_they_can(form, tmp_path):
    path = tmp_path / "c"
    model = mm.MulticlassSVM(training=form(cache_mb=4.0, checkpoint=path, resume=True)).fit(X, Y)
    model.save(tmp_path / "m")
    assert mm.load(tmp_path / "m").training == form(cache_mb=4.0)
    model.set_params(training__callbacks=[Counter()])
    with pytest.warns(UserWarning, match="cannot store callbacks"):
        model.save(tmp_path / "m")
    assert mm.load(tmp_path / "m").training == mm.TrainingOptions(cache_mb=4.0)


def test_parameters_of_older_files():
    old = {"C": 2.0, "cache_mb": 1024.0, "on_interrupt": "raise"}
    assert renamed_parameters("MulticlassSVM", old) == {"C": 2.0}
    new = renamed_parameters("MulticlassSVM", {**old, "cache_mb": 5.0})
    assert new == {"C": 2.0, "training": {"$type": "TrainingOptions", "params": {"cache_mb": 5.0}}}
    plain = {"order": 2, "emission_order": 0, "eta": 1.0, "label_tuples": "seen"}
    assert renamed_parameters(
        "SequenceTagger", {**plain, "kernel": "linear", "gamma": "scale"}
    ) == {
        "order": 2,
        "kernel": "linear",
    }
    kernel = {"kernel": "rbf", "gamma": 0.1, "n_basis": 4}
    assert renamed_parameters("SequenceTagger", {**plain, "eta": 0.5, **kernel}) == {
        "order": {"transitions": 2, "emissions": 0, "label_tuples": "seen", "eta": 0.5},
        "kernel": {
            "$type": "KernelMap",
            "params": {"kernel": "rbf", "gamma": 0.1, "n_components": 4},
        },
    }


@pytest.mark.parametrize("kind", ["kernel tagger", "higher-order tagger"])
def test_files_keep_kernels_and_orders(kind, tmp_path):
    model = KINDS[kind].make(random_state=0).fit(*KINDS[kind].first)
    model.save(tmp_path / "m")
    loaded = mm.load(tmp_path / "m")
    assert repr(loaded) == repr(model)
    assert loaded.fit(*KINDS[kind].first).coef_.tolist() == model.coef_.tolist()
