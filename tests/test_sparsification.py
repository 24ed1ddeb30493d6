"""Shorter weights: certified like those of training, and the same after a file."""

import numpy as np
import pytest

import maxmargin as mm
from constrained import KINDS as CONSTRAINTS
from constrained import objective as of_all
from every_estimator import KINDS, make
from maxmargin import persistence
from maxmargin.core.formulation import Formulation
from maxmargin.datasets import make_digit_words
from maxmargin.features import WindowFeatures
from maxmargin.formats import model_values
from maxmargin.formats.model_values import array_from, shortest_form
from maxmargin.solvers import sparsification
from maxmargin.solvers.sparsification import sparsify
from solving import solve
from structures import small_case

LINEAR = [kind for kind in KINDS if not kind.startswith("kernel")]
TOL = 0.3  # the models are trained to 0.1


@pytest.fixture(scope="module")
def words():
    return make_digit_words(n_train=30, n_test=10, noise=0.2)


def objective(model, X, y, C):
    """Of a multiclass model with zero-one loss, in plain numpy."""
    scores = np.hstack([X, np.ones((len(X), 1))]) @ model.result_.w.reshape(-1, 3)
    gold = scores[np.arange(len(y)), y]
    wrong = np.where(np.arange(3) == y[:, None], 0.0, 1.0 + scores - gold[:, None])
    return 0.5 * model.result_.w @ model.result_.w + C * wrong.max(axis=1).sum()


def test_the_certificate_is_that_of_the_new_weights():
    rng = np.random.default_rng(1)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 20)) + y[:, None]
    model = mm.MulticlassSVM(C=0.7, tol=0.01, random_state=0).fit(X, y)
    before = model.result_
    assert model.compact(X, y, tol=0.05) is model
    after = model.result_
    assert not np.array_equal(before.w, after.w) and after.status == "compacted"
    assert after.primal == pytest.approx(objective(model, X, y, 0.7), rel=1e-12)
    assert after.dual == before.dual and before.relative_gap < after.relative_gap <= 0.05
    assert np.count_nonzero(after.w) < np.count_nonzero(before.w)
    assert np.array_equal(model.result_.w.reshape(21, 3)[:20].T, model.coef_)


def test_a_checkpoint_of_the_training_is_left_alone(tmp_path):
    X, y = KINDS["classes"].first
    model = make("classes", training={"checkpoint": tmp_path / "kept"}).fit(X, y)
    kept = (tmp_path / "kept").read_bytes()
    assert model.compact(X, y, tol=TOL).result_.status == "compacted"
    assert (tmp_path / "kept").read_bytes() == kept


def test_not_one_step_more_would_do(monkeypatch):
    """With the digits that were chosen, dropping a step more is too much; so are fewer digits."""
    y = np.arange(40) % 3
    X = np.random.default_rng(2).normal(size=(40, 30)) + y[:, None]
    model = mm.MulticlassSVM(C=1.0, tol=0.001, random_state=0).fit(X, y)
    dual, tol, tried = model.result_.dual, 0.01, []
    rounded = sparsification._rounded
    monkeypatch.setattr(sparsification, "_rounded", lambda w, b: tried.append(b) or rounded(w, b))
    w = model.result_.w
    model.compact(X, y, tol=tol)
    kept, bits = np.count_nonzero(model.result_.w), tried[-1]

    def gap(weights):
        model.result_.w[:] = weights
        primal = objective(model, X, y, 1.0)
        return (primal - dual) / primal

    fewest = rounded(w, bits)
    order = np.argsort(np.abs(fewest), kind="stable")
    assert np.count_nonzero(fewest) == len(w) <= sparsification.STEPS  # so that steps are weights
    assert gap(sparsification._without(fewest, order[: len(w) - kept])) <= tol
    assert gap(sparsification._without(fewest, order[: len(w) - kept + 1])) > tol
    own = gap(w)
    assert gap(fewest) <= own + 0.25 * (tol - own) < gap(rounded(w, bits - 1))


@pytest.mark.parametrize("kind", LINEAR)
def test_every_linear_estimator(kind, tmp_path):
    X, y = KINDS[kind].first
    model = make(kind).fit(X, y)
    if model.result_.relative_gap is None:
        with pytest.raises(ValueError, match="certified gap"):
            model.compact(X, y, tol=TOL)
        return
    params, before = model.get_params(), model.result_
    model.compact(X, y, tol=TOL)
    assert model.get_params() == params
    assert model.result_.relative_gap <= TOL and model.result_.primal >= before.dual
    w = model.result_.w
    assert np.array_equal(w, w.astype(np.float32))
    if kind != "own":  # code of the user's cannot be saved
        model.save(tmp_path / "model.mm")
        loaded = mm.load(tmp_path / "model.mm")
        assert np.array_equal(loaded.result_.w, w)
        assert repr(loaded.predict(X)) == repr(model.predict(X))


def test_a_compacted_file_is_shorter_and_predicts_the_same(words, tmp_path):
    X, y = words.X_train, words.y_train
    model = mm.SequenceTagger(C=0.1, tol=0.01).fit(X, y)
    model.save(tmp_path / "long.mm")
    loaded = mm.load(tmp_path / "long.mm").compact(X, y, tol=0.05)
    loaded.save(tmp_path / "short.mm")
    assert (tmp_path / "short.mm").stat().st_size < 0.5 * (tmp_path / "long.mm").stat().st_size
    short = mm.load(tmp_path / "short.mm")
    assert np.array_equal(short.coef_, loaded.coef_)
    assert short.predict(words.X_test) == loaded.predict(words.X_test)
    assert short.result_.relative_gap == loaded.result_.relative_gap <= 0.05
    assert np.array_equal(model.compact(X, y, tol=0.05).coef_, short.coef_)


@pytest.mark.parametrize("by_folds", [True, False])
def test_a_compacted_model_keeps_its_probabilities(by_folds):
    y = np.arange(60) % 3
    X = np.random.default_rng(1).normal(size=(60, 20)) + y[:, None]
    model = mm.MulticlassSVM(C=0.7, tol=0.01, random_state=0, probability=by_folds).fit(X, y)
    if not by_folds:
        model.calibrate(X, y)
    before = model.predict_proba(X)
    model.compact(X, y, tol=0.02)
    assert model.result_.status == "compacted" and model.probability is by_folds
    assert np.abs(model.predict_proba(X) - before).max() < 0.1
    assert not np.array_equal(model.predict_proba(X), before)


def test_what_cannot_be_compacted_is_refused():
    X, y = KINDS["classes"].first
    model = make("classes").fit(X, y)
    before = model.result_.w.copy()
    with pytest.raises(ValueError, match="larger than the relative gap that the model has"):
        model.compact(X, y, tol=model.result_.relative_gap)
    with pytest.raises(ValueError, match="data and parameters of the training: the objective"):
        model.compact(X[::-1], y, tol=TOL)
    with pytest.raises(ValueError, match="data and parameters of the training"):
        model.compact(*KINDS["classes"].second, tol=TOL)
    with pytest.raises(ValueError, match="data and parameters of the training"):
        make("classes").set_params(C=1.0).fit(X, y).set_params(C=2.0).compact(X, y, tol=TOL)
    weighted = make("classes").fit(X, y, sample_weight=np.arange(1.0, 13.0))
    with pytest.raises(ValueError, match="data and parameters of the training"):
        weighted.compact(X, y, tol=TOL)
    weighted.compact(X, y, tol=TOL, sample_weight=np.arange(1.0, 13.0))
    assert np.array_equal(model.result_.w, before)
    with pytest.raises(ValueError, match="has none"):
        mm.MulticlassSVM(solver="perceptron").fit(X, y).compact(X, y, tol=TOL)
    with pytest.raises(ValueError, match="kernel='linear'"):
        make("kernel classes").fit(X, y).compact(X, y, tol=TOL)
    sequences, labels = KINDS["tagger"].first
    unknown = [[None, *label[1:]] for label in labels]
    with pytest.raises(ValueError, match="labels that are all known"):
        make("tagger").fit(sequences, unknown).compact(sequences, unknown, tol=TOL)
    with pytest.raises(ValueError, match="hard margin"):
        hard = mm.MulticlassSVM(slack="none", solver="n_slack").fit(np.eye(3), range(3))
        hard.compact(np.eye(3), range(3), tol=TOL)


# ----- forms of arrays in files -----------------------------------------------------------------

RNG = np.random.default_rng(0)
N = 5000
ARRAYS = {
    "plain": RNG.choice(RNG.normal(size=50), N),
    "planes": (RNG.integers(-100, 100, N) / 64).astype(np.float32),
    "differences": np.sort(RNG.integers(-(2**62), 2**62, N) >> 40),
    "ranks": np.argsort(np.argsort(RNG.integers(0, 5, N), kind="stable")).astype(np.int32),
}


@pytest.mark.parametrize("form", ARRAYS)
def test_forms_lose_nothing(form):
    array = ARRAYS[form]
    name, content = shortest_form(array)
    assert name == form
    back = array_from(name, array.dtype.str, content)
    assert back.dtype == array.dtype and np.array_equal(back, array)


@pytest.mark.parametrize(
    "array",
    [
        np.array([2**63 - 1, -(2**63)] * 1000),  # differences that wrap around
        np.full(N, -0.0),
        np.array([np.inf, -np.inf, 1e-320, 5.0] * 2000),
        np.arange(N, dtype=">i4"),
        np.arange(N, dtype=np.uint8),
        np.arange(2 * N)[::2],
        np.arange(N)[::-1],
        RNG.permutation(N),
        np.zeros((N, 2)),
        np.empty(0),
        np.zeros(N, bool),
    ],
    ids=str,
)
def test_forms_of_odd_arrays(array):
    name, content = shortest_form(array)
    back = array_from(name, array.dtype.str, content)
    assert back.dtype.type == array.dtype.type and back.shape == array.shape
    assert back.tobytes() == array.astype(array.dtype.newbyteorder("=")).tobytes()


@pytest.mark.parametrize(
    "form, dtype, content",
    [
        ("spiral", "<i8", np.zeros((8, 3), np.uint8)),
        ("differences", "<f8", np.zeros((8, 3), np.uint8)),
        ("planes", "O", np.zeros((8, 3), np.uint8)),
        ("planes", "<i8", np.zeros((4, 3), np.uint8)),
        ("planes", "<i8", np.zeros((8, 3), np.int64)),
        ("planes", "<i8", np.zeros(8, np.uint8)),
    ],
)
def test_forms_that_are_none_are_refused(form, dtype, content):
    with pytest.raises(ValueError, match=r"no form|read as bytes"):
        array_from(form, dtype, content)


def test_files_of_the_first_schema_are_read(monkeypatch, tmp_path):
    sentences = [[f"w{i + j}" for j in range(8)] for i in range(300)]
    tags = [["a", "b"] * 4] * 300
    model = mm.SequenceTagger(features=WindowFeatures(), tol=0.1).fit(sentences, tags)
    model.save(tmp_path / "new.mm")
    with monkeypatch.context() as patch:
        patch.setattr(persistence, "SCHEMA", 1)
        patch.setattr(model_values, "shortest_form", lambda array: ("plain", array))
        model.save(tmp_path / "old.mm")
    assert (tmp_path / "new.mm").stat().st_size < 0.9 * (tmp_path / "old.mm").stat().st_size
    for name in ("old.mm", "new.mm"):
        loaded = mm.load(tmp_path / name)
        assert np.array_equal(loaded.coef_, model.coef_)
        assert loaded.predict(sentences) == model.predict(sentences)


# ----- with constraints on weights --------------------------------------------------------------


@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_shorter_weights_satisfy_the_constraints(kind):
    case = small_case("candidates", "costs", 0)
    constraints = CONSTRAINTS[kind](np.random.default_rng(3), case.twin.n_features)
    formulation = Formulation(constraints=constraints)
    trained = solve("n_slack", case.problem, 0.5, formulation, tol=1e-4)
    short = sparsify(trained, 0.2, case.problem, formulation, 0.5)
    assert not np.array_equal(short.w, trained.w) and short.relative_gap <= 0.2
    assert short.primal == pytest.approx(of_all(case.twin, formulation, 0.5, short.w), rel=1e-9)


def test_a_model_drawn_to_another_is_compacted():
    rng = np.random.default_rng(4)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 6)) + y[:, None]
    prior = mm.MulticlassSVM(C=0.1, random_state=0).fit(X[:30], y[:30])
    model = mm.MulticlassSVM(C=0.1, random_state=0).fit(X[30:], y[30:], prior=prior)
    dual = model.result_.dual
    model.compact(X[30:], y[30:], tol=0.1, prior=prior)
    assert model.result_.dual == dual and model.result_.relative_gap <= 0.1
    with pytest.raises(ValueError, match="data and parameters of the training"):
        model.compact(X[30:], y[30:], tol=0.2)
