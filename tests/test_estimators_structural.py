"""StructuralSVM: a problem in plain Python, from fit to score."""

import numpy as np
import pytest
from sklearn.base import clone

import maxmargin as mm


class Classes(mm.Problem):
    """Three classes with zero-one loss, in plain Python."""

    def __init__(self, K=3, n_inputs=2):
        self.K = K
        self.n_features = K * n_inputs

    def joint_feature(self, x, y):
        psi = np.zeros((self.K, len(x)))
        psi[y] = x
        return psi.ravel()

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def most_violated(self, x, y, w, rescaling):
        return max(range(self.K), key=lambda k: self.loss(y, k) + w @ self.joint_feature(x, k))

    def predict(self, x, w):
        return max(range(self.K), key=lambda k: w @ self.joint_feature(x, k))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 3, 30).tolist()
    centres = np.array([[3.0, 0.0], [-2.0, 2.0], [-2.0, -2.0]])
    return [centres[y] + rng.normal(size=2) for y in Y], Y


@pytest.fixture(scope="module")
def fitted(data):
    return mm.StructuralSVM(Classes(), C=0.1, tol=1e-3, random_state=0).fit(*data)


def test_agrees_with_the_native_classes(fitted, data):
    native = mm.MulticlassSVM(C=0.1, fit_intercept=False, tol=1e-5).fit(np.array(data[0]), data[1])
    assert fitted.result_.primal == pytest.approx(native.result_.primal, rel=1e-3)
    assert fitted.result_.converged


def test_score_is_minus_the_mean_loss(fitted, data):
    wrong = np.array(fitted.predict(data[0])) != np.array(data[1])
    assert fitted.score(*data) == pytest.approx(-wrong.mean())
    assert fitted.score(*data) > -0.2
    only = fitted.score(*data, sample_weight=np.eye(30)[3])
    assert only == -float(wrong[3])


def test_score_outputs(fitted, data):
    X, Y = data
    best = fitted.score_outputs(X, fitted.predict(X))
    assert np.all(best >= fitted.score_outputs(X, Y) - 1e-12)
    psi = fitted.problem.joint_feature(X[0], Y[0])
    assert fitted.score_outputs(X[:1], Y[:1])[0] == pytest.approx(psi @ fitted.coef_)


def test_training_data_is_not_kept(fitted):
    assert len(fitted.problem_.X) == 0
    assert clone(fitted).problem.K == 3


def test_dict_features(data):
    class Named(Classes):
        def joint_feature(self, x, y):
            return {y * 2: x[0], y * 2 + 1: x[1]}

        def predict(self, x, w):
            scores = w.reshape(3, 2) @ x
            return int(np.argmax(scores))

        def most_violated(self, x, y, w, rescaling):
            return int(np.argmax(w.reshape(3, 2) @ x + (np.arange(3) != y)))

    model = mm.StructuralSVM(Named(), C=0.1, random_state=0).fit(*data)
    assert model.score(*data) > -0.2
    assert model.score_outputs(data[0][:2], data[1][:2]).shape == (2,)


def test_warm_start(data):
    model = mm.StructuralSVM(Classes(), C=0.1, warm_start=True, random_state=0).fit(*data)
    first = model.result_
    model.set_params(C=0.2).fit(*data)
    assert model.result_.state is first.state
    X, Y = list(data[0]), list(data[1])
    Y[0] = (Y[0] + 1) % 3
    assert model.fit(X, Y).result_.state is not first.state
    Y[1] = (Y[1] + 1) % 3  # the same lists, with other content
    second = model.result_
    assert model.fit(X, Y).result_.state is not second.state


def test_warm_start_on_what_cannot_be_compared_starts_afresh(data):
    problem = Classes()
    problem.helper = lambda: None  # cannot be pickled
    model = mm.StructuralSVM(problem, C=0.1, warm_start=True, random_state=0).fit(*data)
    first = model.result_
    assert model.fit(*data).result_.state is not first.state


def test_save_says_what_to_do(fitted, tmp_path):
    with pytest.raises(ValueError, match=r"StructuralSVM cannot be saved.*coef_ with numpy.save"):
        fitted.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
