"""What notebooks show, what scikit-learn's tools hand on, and other containers of data."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from every_estimator import KINDS, make
from maxmargin.core.result import Progress
from maxmargin.features import WindowFeatures
from maxmargin.progress import ProgressDisplay
from maxmargin.utils import sklearn_bases

X, Y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
WORDS = [["the", "cat"], ["a", "dog", "barks"], ["dogs"], ["the", "dog", "and", "cats"]] * 3
TAGS = [["D", "N"], ["D", "N", "V"], ["N"], ["D", "N", "C", "N"]] * 3


def classifier(**parameters):
    return mm.MulticlassSVM(tol=0.1, random_state=0, **parameters)


# ----- what notebooks show ----------------------------------------------------------------------


def test_pictures_of_estimators_link_to_their_pages(monkeypatch):
    class Mine(mm.MulticlassSVM):
        pass

    monkeypatch.setattr(sklearn_bases, "documentation", lambda: "https://example.org/docs")
    page = 'href="https://example.org/docs/api/generated/maxmargin.MulticlassSVM.html"'
    assert page in classifier()._repr_html_()
    assert page in make_pipeline(StandardScaler(), classifier())._repr_html_()
    assert "example.org" not in Mine()._repr_html_()
    assert "maxmargin.PCFGParser.html" in mm.PCFGParser()._repr_html_()
    monkeypatch.setattr(sklearn_bases, "documentation", lambda: None)
    assert "maxmargin.MulticlassSVM.html" not in classifier()._repr_html_()


def test_the_address_is_that_of_the_package(monkeypatch):
    def says(*urls):
        sklearn_bases.documentation.cache_clear()
        known = SimpleNamespace(get_all=lambda name: list(urls) or None)
        monkeypatch.setattr(sklearn_bases.metadata, "metadata", lambda name: known)
        return sklearn_bases.documentation()

    assert says() is None
    assert says("Source, https://example.org/git") is None
    assert says("Source, x", "Documentation, https://example.org/a/") == "https://example.org/a"
    sklearn_bases.documentation.cache_clear()


def test_results_show_a_table_and_a_plot(tmp_path):
    result = classifier().fit(X, Y).result_
    shown = result._repr_html_()
    assert shown.startswith("<pre>status") and "relative gap" in shown and "</pre>" in shown
    figure = result.plot(tmp_path / "plot.png", x="passes")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["duality gap", "objective"]
    assert (tmp_path / "plot.png").stat().st_size > 1000


def test_plots_without_matplotlib_say_what_is_missing(monkeypatch):
    result = classifier().fit(X, Y).result_
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "maxmargin\[plot\]"'):
        result.plot()


class Notebook:
    """Stands for IPython in a notebook: one output that is replaced."""

    def __init__(self, is_kernel=True):
        self.texts = []
        shell = SimpleNamespace(kernel=object()) if is_kernel else SimpleNamespace()
        self.get_ipython = lambda: shell
        self.display = SimpleNamespace(display=self._display)

    def _display(self, data, raw, display_id):
        assert raw and display_id
        self.update(data, raw)
        return self

    def update(self, data, raw):
        assert set(data) == {"text/plain"}
        self.texts.append(data["text/plain"])


@pytest.mark.parametrize("is_kernel", [True, False])
def test_progress_in_a_notebook_is_one_line_of_text(monkeypatch, capsys, is_kernel):
    notebook = Notebook(is_kernel)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook.display)
    with ProgressDisplay(10) as display:
        for k in range(3):
            display(Progress(float(k), 10 * k, None, 1.0, None, 3, 8.0, 0.1))
    assert ("2.0 passes" in capsys.readouterr().err) is not is_kernel
    assert bool(notebook.texts) is is_kernel
    if is_kernel:
        assert notebook.texts[0] == "training" and len(notebook.texts) == 5
        assert "2.0 passes" in notebook.texts[-1]


# ----- scikit-learn's callbacks -----------------------------------------------------------------


class Listener:
    """A callback of scikit-learn's that writes down what it hears, and may end training."""

    def __init__(self, stop_after=None):
        self.heard, self.stop_after, self.fitted = [], stop_after, []

    def setup(self, estimator, context):
        self.heard.append("setup")

    def teardown(self, estimator, context):
        self.heard.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.heard.append((f"begin {context.task_name}", context.task_id))
        self.data = (X, y, metadata)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.heard.append((f"end {context.task_name}", context.task_id))
        self.fitted.append(fitted_estimator)
        return context.task_name == "iteration" and context.task_id == self.stop_after


@pytest.fixture
def listener():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    return Listener()


def test_callbacks_of_scikit_learn_hear_of_fits_and_iterations(listener):
    model = mm.MulticlassSVM(tol=1e-4, random_state=0)
    weight = np.ones(len(Y))
    plain = clone(model).fit(X, Y, sample_weight=weight)
    assert model.set_callbacks(listener).fit(X, Y, weight) is model
    n = len(model.result_.history)
    iterations = [(f"{what} iteration", k) for k in range(n) for what in ("begin", "end")]
    assert n > 1
    assert listener.heard == ["setup", ("begin fit", 0), *iterations, ("end fit", 0), "teardown"]
    assert listener.data[0] is X and listener.data[1] is Y
    assert list(listener.data[2]) == ["sample_weight"]
    assert np.array_equal(plain.coef_, model.coef_)
    assert listener.fitted[:-1] == [None] * n
    fitted = listener.fitted[-1]
    assert fitted is not model and np.array_equal(fitted.predict(X), model.predict(X))
    assert not [name for name in vars(model) if "told" in name or "ctx" in name or "draft" in name]


def test_they_end_training_as_our_own_do(listener):
    listener.stop_after = 1
    model = mm.MulticlassSVM(tol=1e-6, random_state=0).set_callbacks(listener)
    with pytest.warns(match="a callback ended training"):
        model.fit(X, Y)
    ours = mm.MulticlassSVM(
        tol=1e-6, random_state=0, training={"callbacks": [lambda p: p.oracle_calls > 149]}
    )
    with pytest.warns(match="a callback ended training"):
        ours.fit(X, Y)
    assert model.result_.status == ours.result_.status == "callback"
    assert np.array_equal(model.coef_, ours.coef_)


def test_they_are_torn_down_after_an_error(listener):
    model = classifier().set_callbacks(listener)
    with pytest.raises(ValueError):
        model.fit(X, Y[:-1])
    assert listener.heard[-1] == "teardown" and not hasattr(model, "coef_")
    listener.heard.clear()
    model.fit(X, Y)
    assert listener.heard[0] == "setup" and listener.heard[-1] == "teardown"


def test_both_kinds_at_once_and_other_estimators(listener):
    seen = []
    model = make("tagger", training={"callbacks": [seen.append]}).set_callbacks(listener)
    model.fit(*KINDS["tagger"].first)
    assert len(seen) == len(model.result_.history) == len(listener.fitted) - 1
    heard = len(listener.heard)
    model.compact(*KINDS["tagger"].first, tol=0.5)
    assert len(listener.heard) == heard and model._skl_callbacks == [listener]
    with pytest.raises(TypeError, match="FitCallback"):
        classifier().set_callbacks(seen.append)


def test_those_of_a_search_reach_us(capsys):
    callback = pytest.importorskip("sklearn.callback", reason="from scikit-learn 1.9 on")
    if not hasattr(GridSearchCV, "set_callbacks"):
        pytest.skip("this version's searches have no callbacks")

    class Propagated(Listener):
        max_propagation_depth = None

    listener = Propagated()
    assert isinstance(listener, callback.AutoPropagatedCallback)
    search = GridSearchCV(classifier(), {"C": [0.1, 1.0]}, cv=2).set_callbacks(listener)
    search.fit(X, Y)
    names = [heard[0] for heard in listener.heard if isinstance(heard, tuple)]
    assert names.count("begin iteration") >= 5  # four of folds, one with all data
    assert listener.heard.count("setup") == 1


# ----- metadata ---------------------------------------------------------------------------------


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_costs_and_weights_go_through_pipelines_and_searches(routing):
    costs = np.where(np.eye(3)[Y] > 0, 0.0, 1.0 + 3.0 * (np.arange(3) == 0))
    weight = np.linspace(0.5, 2.0, len(Y))
    asking = classifier().set_fit_request(costs=True, sample_weight=True)
    asking.set_score_request(sample_weight=True)
    direct = classifier().fit(X, Y, costs=costs, sample_weight=weight)
    piped = make_pipeline(StandardScaler(with_std=False, with_mean=False), asking)
    piped[0].set_fit_request(sample_weight=False)
    piped.fit(X, Y, costs=costs, sample_weight=weight)
    assert np.array_equal(piped[-1].coef_, direct.coef_)
    assert not np.array_equal(direct.coef_, classifier().fit(X, Y).coef_)
    search = GridSearchCV(asking, {"C": [1.0]}, cv=2)
    search.fit(X, Y, costs=costs, sample_weight=weight)
    assert np.array_equal(search.best_estimator_.coef_, direct.coef_)


def test_known_labels_go_through_pipelines(routing):
    tagger = mm.SequenceTagger(tol=0.1).set_predict_request(fixed=True)
    model = make_pipeline(WindowFeatures(), tagger).fit(WORDS, TAGS)
    fixed = [["V", None], *[None] * (len(WORDS) - 1)]
    assert model.predict(WORDS, fixed=fixed)[0][0] == "V" != model.predict(WORDS)[0][0]


def test_queries_go_through_searches(routing):
    mixed = np.random.default_rng(0).permutation(len(Y))
    X_, y, qid = X[mixed], Y[mixed], np.arange(len(Y)) // 10
    ranker = mm.RankSVM(tol=0.1, random_state=0)
    asking = clone(ranker).set_fit_request(qid=True).set_score_request(qid=True)
    search = GridSearchCV(asking, {"C": [1.0]}, cv=2).fit(X_, y, qid=qid)
    direct = clone(ranker).fit(X_, y, qid=qid)
    assert not np.array_equal(direct.coef_, clone(ranker).fit(X_, y).coef_)
    assert np.array_equal(search.best_estimator_.coef_, direct.coef_)


# ----- containers -------------------------------------------------------------------------------

TABULAR = ["classes", "described", "sets", "sets in a tree", "grades", "grades by pairs", "ranker"]
SPARSE = [sp.csr_array, sp.csr_matrix, sp.coo_array, sp.csc_matrix]


@pytest.mark.parametrize("kind", [*TABULAR, "performance"])
def test_sparse_arrays_and_matrices_are_the_same(kind):
    inputs, outputs = KINDS[kind].first
    inputs = np.where(np.abs(inputs) < 0.7, 0.0, inputs)
    expected = make(kind).fit(sp.csr_array(inputs), outputs)
    dense = make(kind).fit(inputs, outputs)
    assert np.allclose(expected.result_.primal, dense.result_.primal, rtol=0.2)
    for container in SPARSE:
        model = make(kind).fit(container(inputs), outputs)
        assert np.array_equal(model.result_.w, expected.result_.w), container
        found = model.predict(container(inputs))
        assert repr(found) == repr(expected.predict(inputs)), container


@pytest.mark.parametrize("container", SPARSE)
@pytest.mark.parametrize("kind", ["tagger", "segmenter"])
def test_sequences_of_sparse_arrays_and_matrices(kind, container):
    inputs, outputs = KINDS[kind].first
    expected = make(kind).fit([sp.csr_array(x) for x in inputs], outputs)
    model = make(kind).fit([container(x) for x in inputs], outputs)
    assert np.array_equal(model.coef_, expected.coef_)
    assert repr(model.predict([container(x) for x in inputs])) == repr(expected.predict(inputs))


def test_polars_frames_for_classifiers():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(X, schema=["a", "b", "c", "d"])
    names = np.array(["setosa", "versicolor", "virginica"])[Y]
    expected = classifier().fit(X, names)
    for y in (pl.Series(names.tolist()), names):
        model = classifier().fit(frame, y)
        assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
        assert np.array_equal(model.predict(frame), expected.predict(X))
        assert model.score(frame, y) == expected.score(X, names)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c", "d"]])


def test_polars_frames_of_numbers_are_sequences():
    pl = pytest.importorskip("polars")
    arrays, labels = KINDS["tagger"].first
    given = [pl.DataFrame(array, schema=["a", "b", "c"]) for array in arrays]
    model = make("tagger").fit(given, [pl.Series(y.tolist()) for y in labels])
    expected = make("tagger").fit(arrays, labels)
    assert np.array_equal(model.coef_, expected.coef_)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.predict(given) == expected.predict(arrays)
    with pytest.raises(ValueError, match=r"columns \['a', 'c', 'b'\], but those of the train"):
        model.predict([frame[["a", "c", "b"]] for frame in given])
    with pytest.raises(ValueError, match="X is one DataFrame; expected a list"):
        model.predict(given[0])
    holes = [given[0].with_columns(b=pl.Series([0.0, None, 1.0, 2.0])), *given[1:]]
    with pytest.raises(ValueError, match="sequence 0, token 1 has a NaN"):
        model.predict(holes)
    single = [frame.cast(pl.Float32) for frame in given]
    assert make("tagger").fit(single, labels).predict(single) == expected.predict(arrays)


def test_polars_frames_of_strings_are_sequences():
    pl = pytest.importorskip("polars")
    columns = [[(word, word[:1]) for word in words] for words in WORDS]
    frames = [pl.DataFrame(tokens, schema=["word", "letter"], orient="row") for tokens in columns]
    window = mm.SequenceTagger(tol=0.1, features=WindowFeatures(), random_state=0)
    assert clone(window).fit(frames, TAGS).predict(frames) == clone(window).fit(
        columns, TAGS
    ).predict(columns)
    series = pl.Series(WORDS), pl.Series(TAGS)
    expected = clone(window).fit(WORDS, TAGS).predict(WORDS)
    assert clone(window).fit(*series).predict(series[0]) == expected
    dicts = [[{"word": w, "letter": letter} for w, letter in tokens] for tokens in columns]
    named = mm.SequenceTagger(tol=0.1, random_state=0)
    twin = clone(named).fit(dicts, TAGS)
    assert clone(named).fit(frames, TAGS).predict(frames) == twin.predict(dicts)


def test_polars_frames_for_parsers_and_trees():
    pl = pytest.importorskip("polars")
    sentences, trees = KINDS["dependency"].first
    words = [pl.DataFrame(tokens, schema=["word", "tag"], orient="row") for tokens in sentences]
    arcs = [pl.DataFrame(tree, schema=["head", "label"], orient="row") for tree in trees]
    model = make("dependency").fit(words, arcs)
    assert model.predict(words) == make("dependency").fit(sentences, trees).predict(sentences)
    nodes, labels = KINDS["labels"].first
    model = make("labels").fit(nodes, pl.DataFrame(labels))
    assert model.score(nodes, pl.DataFrame(labels)) == model.score(nodes, labels)


@pytest.mark.parametrize("kind", [*TABULAR, "performance"])
def test_names_of_features_are_kept(kind):
    pd = pytest.importorskip("pandas")
    inputs, outputs = KINDS[kind].first
    model = make(kind).fit(pd.DataFrame(inputs, columns=["a", "b", "c"]), outputs)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert not hasattr(make(kind).fit(inputs, outputs), "feature_names_in_")
