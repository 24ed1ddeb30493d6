"""What a start costs: modules that are not imported before somebody needs them."""

import os
import subprocess
import sys

import pytest

FILES = {
    "tags.txt": "the D\ncat N\n\na D\ndog N\nbarks V\n\n",
    "classes.dat": "1 1:1 2:0.5\n2 1:-1 3:1\n3 2:1 3:-1\n",
    "tokens.dat": "1 qid:1 1:1 2:0.5\n2 qid:1 1:-1\n2 qid:2 2:1 3:-1\n1 qid:2 1:1\n",
    "binary.dat": "1 1:1 2:0.5\n-1 1:-1 3:1\n1 2:1\n",
    "queries.dat": "2 qid:1 1:1 2:0.5\n1 qid:1 1:-1 3:1\n1 qid:2 1:0.2\n3 qid:2 2:1\n",
    "trees.mrg": "(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))\n(S (NP (NN we)) (VP (VBZ go)))\n",
    "attributes.txt": "D\tw=the\nN\tw=cat\n\nD\tw=a\nN\tw=dog\n\n",
}
#: Of others, and parts of our own, that take long to import and that no command below needs.
HEAVY = ["sklearn", "pandas", "joblib", "matplotlib", "narwhals", "dask", "distributed", "rich"]
HEAVY += ["scipy.stats", "scipy.optimize", "scipy.spatial", "scipy.special"]
HEAVY += [f"maxmargin.{part}" for part in ("cluster", "report", "datasets", "features.kernels.map")]
NUMERIC = ["numpy", "scipy", "numba"]

START = """
import sys
{first}
tops = {listed}
found = sorted(name for name in sys.modules if any((name + ".").startswith(t + ".") for t in tops))
print("imported:", found)
"""


def imported(folder, first, listed):
    """Run some Python in a process of its own; returns which of the modules it has imported."""
    done = subprocess.run(
        [sys.executable, "-c", START.format(first=first, listed=listed)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    assert last.startswith("imported: "), done.stdout + done.stderr
    return last.removeprefix("imported: ")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small files of all kinds."""
    path = tmp_path_factory.mktemp("start")
    for name, text in FILES.items():
        (path / name).write_text(text * 3 if "qid" not in text else text)
    return path


CHAINS = [
    ["train tag tags.txt -o tags.mm", "predict tags.mm tags.txt"],
    ["train multiclass classes.dat -o classes.mm", "predict classes.mm classes.dat"],
    ["svm-hmm-learn -c 1 tokens.dat h", "svm-hmm-classify tokens.dat h out"],
    ["svm-multiclass-learn -c 1 classes.dat c", "svm-multiclass-classify classes.dat c out"],
    ["svm-perf-learn -c 1 binary.dat p", "svm-perf-classify binary.dat p out"],
    ["svm-rank-learn -c 1 queries.dat r", "svm-rank-classify queries.dat r out"],
    ["svm-cfg-learn -c 1 trees.mrg t", "svm-cfg-classify trees.mrg t out"],
    ["crfsuite learn -m crf attributes.txt", "crfsuite tag -m crf attributes.txt"],
]


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain[0].split(" -")[0])
def test_commands_import_what_they_need(folder, chain):
    model = chain[0].split()
    for command in chain:
        call = f"from maxmargin.cli import main\nassert main({command.split()}) == 0"
        assert imported(folder, call, HEAVY) == "[]", command
    name = model[model.index("-o") + 1] if "-o" in model else None
    if name is not None:
        assert imported(folder, f"import maxmargin\nmaxmargin.load({name!r})", HEAVY) == "[]"


@pytest.mark.parametrize(
    "command", [["--help"], ["train", "--help"], ["svm-hmm-learn", "-?"], ["train", "tag"]]
)
def test_help_and_wrong_options_import_nothing_numeric(folder, command):
    call = f"from maxmargin.cli import main\ntry: main({command})\nexcept SystemExit: pass"
    assert imported(folder, call, NUMERIC) == "[]"


@pytest.mark.parametrize(
    "tool", ["svm-hmm", "svm-multiclass", "svm-perf", "svm-rank", "svm-cfg", "crfsuite"]
)
@pytest.mark.parametrize("data", ["missing", "bad.dat"])
def test_bad_files_are_refused_before_estimators_are_imported(folder, tool, data):
    (folder / "bad.dat").write_text("1 qid:1 1:1\n2 qid:1 one\n")
    if tool == "crfsuite":
        command = ["crfsuite", "learn", data]
        (folder / "bad.dat").write_text("A\tx:y\n")
    else:
        command = [f"{tool}-learn", data, "model"]
    call = f"from maxmargin.cli import main\nassert main({command}) == 1"
    assert imported(folder, call, ["numba", "sklearn"]) == "[]"


SCIKIT_LEARN = """
import pickle, sys
import numpy as np
{before}
import maxmargin as mm
from maxmargin.features import FeatureDictionary

X, y = np.eye(6)[[0, 1, 2] * 4], np.array(["a", "b", "c"] * 4)
model = mm.MulticlassSVM(C=2.0, random_state=0)
words = mm.SequenceTagger(features=FeatureDictionary())
assert model.set_params(tol=0.1).fit(X, y).predict(X).tolist() == y.tolist()
assert model.get_params()["C"] == 2.0 and words.get_params()["features__min_count"] == 1
assert pickle.loads(pickle.dumps(model)).predict(X).tolist() == y.tolist()
{first}
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

assert is_classifier(model) and isinstance(model, (BaseEstimator, ClassifierMixin))
assert isinstance(words, BaseEstimator) and not is_classifier(words)
assert repr(model) == "MulticlassSVM(C=2.0, random_state=0, tol=0.1)", repr(model)
assert "MulticlassSVM" in model._repr_html_() and len(dir(model)) > 20
assert cross_val_score(model, X, y, cv=2).mean() == 1.0
assert GridSearchCV(clone(model), {{"C": [0.1, 1.0]}}, cv=2).fit(X, y).best_score_ == 1.0
assert "C=2.0" in repr(make_pipeline(StandardScaler(), model))
with sklearn.config_context(enable_metadata_routing=True):
    asked = clone(model).set_fit_request(sample_weight=True)
    assert asked.get_metadata_routing().fit.requests["sample_weight"] is True
    piped = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asked)
    assert piped.fit(X, y, sample_weight=np.ones(12)).score(X, y) == 1.0
words.set_params(features__min_count=2)
try:
    model.set_params(nothing=1)
except ValueError as error:
    assert "Invalid parameter 'nothing'" in str(error)
assert pickle.loads(pickle.dumps(model)).predict(X).tolist() == y.tolist()


class Mine(mm.MulticlassSVM):
    pass


assert isinstance(Mine(), BaseEstimator) and "set_fit_request" in dir(Mine())
assert not [finder for finder in sys.meta_path if "maxmargin" in type(finder).__module__]
"""


@pytest.mark.parametrize(
    ("before", "first"),
    [
        ("import sklearn", ""),
        ("", "assert 'sklearn' not in sys.modules"),
        ("", "assert 'sklearn' not in sys.modules\nrepr(model)"),
        ("", "model._repr_html_()"),
        ("", "assert model.score(X, y) == 1.0"),
        ("", "words.set_params(features__min_count=1)"),
        ("", "import importlib.util\nimportlib.util.find_spec('sklearn.base')"),
    ],
)
def test_estimators_are_those_of_scikit_learn_whenever_it_comes(folder, before, first):
    assert imported(folder, SCIKIT_LEARN.format(before=before, first=first), ["nothing"]) == "[]"


def test_subclasses_with_more_parameters_know_their_own_without_scikit_learn(folder):
    first = """
from maxmargin import MulticlassSVM
from maxmargin.utils.sklearn_bases import clone

class Own(MulticlassSVM):
    def __init__(self, C=2.0, **others):
        super().__init__(C=C, **others)

assert Own().get_params() == clone(Own()).get_params() == {"C": 2.0}
"""
    assert imported(folder, first, ["sklearn"]) == "[]"
