"""Plausible mistakes of custom problems: `check_problem` names each, however it is called."""

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.core.cutting_planes import Planes

K, N_INPUTS = 4, 3
RNG = np.random.default_rng(0)
X = list(RNG.normal(size=(10, N_INPUTS)))
Y = [int(label) for label in RNG.integers(0, K, 10)]
COSTS = RNG.integers(1, 6, (K, K)) * (1.0 - np.eye(K))  # not symmetric

CALLS = {
    "nothing": {},
    "candidates": {"candidates": lambda x, rng: int(rng.integers(K))},
    "outputs": {"outputs": lambda x: range(K)},
}


class Costed(mm.Problem):
    """Four classes that cost more or less to mistake for each other."""

    rescalings = ("margin", "slack", "none")
    n_features = K * N_INPUTS

    def joint_feature(self, x, y):
        features = np.zeros((K, N_INPUTS))
        features[y] = x
        return features.ravel()

    def loss(self, y, y_hat):
        return float(COSTS[y, y_hat])

    def scores(self, x, w):
        return w.reshape(K, N_INPUTS) @ x

    def most_violated(self, x, y, w, rescaling):
        scores = self.scores(x, w)
        gains = scores - scores[y]
        if rescaling == "none":
            return int(np.argmax(np.where(np.arange(K) == y, -np.inf, gains)))
        values = COSTS[y] * (1.0 + gains) if rescaling == "slack" else COSTS[y] + gains
        return int(np.argmax(values))

    def predict(self, x, w):
        return int(np.argmax(self.scores(x, w)))


class Rows(Costed):
    """With its own oracle, which makes the rows itself."""

    most_violated = mm.Problem.most_violated

    def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
        rows, losses = [], []
        for i in indices:
            x, y = self.X[i], self.Y[i]
            y_hat = Costed.most_violated(self, x, y, w, rescaling)
            rows.append(self.row(x, y, y_hat))
            losses.append(self.loss(y, y_hat))
        matrix = sp.csr_matrix(np.array(rows))
        return Planes(matrix.indptr, matrix.indices, matrix.data, np.array(losses))

    def row(self, x, y, y_hat):
        return self.joint_feature(x, y) - self.joint_feature(x, y_hat)


def inverted(self, x, w):
    return int(np.argmin(self.scores(x, w)))


def second_best(self, x, w):
    return int(np.argsort(self.scores(x, w))[-2])


def first_class(self, x, w):
    return 0


def changes_x(self, x, w):
    found = Costed.predict(self, x, w)
    x -= x.mean()
    return found


def changes_w(self, x, w):
    w /= np.linalg.norm(w) + 1.0
    return Costed.predict(self, x, w)


def guesses(self, x, w):
    return int(np.random.default_rng().integers(K))


def search_for(values):
    """A search for the largest of ``values(self, y, gains)``."""

    def most_violated(self, x, y, w, rescaling):
        scores = self.scores(x, w)
        return int(np.argmax(values(self, y, scores - scores[y])))

    return most_violated


def search_changes_x(self, x, y, w, rescaling):
    found = Costed.most_violated(self, x, y, w, rescaling)
    x *= 2.0
    return found


def search_changes_w(self, x, y, w, rescaling):
    w += 1.0
    return Costed.most_violated(self, x, y, w, rescaling)


def search_guesses(self, x, y, w, rescaling):
    if np.random.default_rng().random() < 0.5:
        return Costed.most_violated(self, x, y, w, rescaling)
    return y


def remembers_the_search(self, x, y, w, rescaling):
    self.seen = getattr(self, "seen", 0) + 1
    return Costed.most_violated(self, x, y, w, rescaling)


def features_of_state(self, x, y):
    return Costed.joint_feature(self, x, y) * (1.0 + getattr(self, "seen", 0))


def noisy_features(self, x, y):
    return Costed.joint_feature(self, x, y) + 1e-3 * np.random.default_rng().normal(size=12)


def short_features(self, x, y):
    features = Costed.joint_feature(self, x, y)
    return features if y == 0 else features[:-1]


def long_features(self, x, y):
    features = Costed.joint_feature(self, x, y)
    return sp.csr_matrix(np.append(features, 0.0)) if y == K - 1 else features


def numbers_from_one(self, x, y):
    return {1 + y * N_INPUTS + k: float(value) for k, value in enumerate(x)}


def features_change_x(self, x, y):
    x /= 1.0 + np.linalg.norm(x)
    return Costed.joint_feature(self, x, y)


MISTAKES = {
    # predict
    "predicts the worst": ({"predict": inverted}, "predict gives example"),
    "predicts the second best": ({"predict": second_best}, "predict gives example"),
    "predicts the first class": ({"predict": first_class}, "predict gives example"),
    "predict changes x": ({"predict": changes_x}, r"predict has changed x of example \d"),
    "predict changes w": ({"predict": changes_w}, "predict has changed the weights"),
    "predict guesses": ({"predict": guesses}, "predict gives example"),
    "predict returns nothing": ({"predict": lambda self, x, w: None}, "predict returned None"),
    # most_violated
    "forgets the loss": (
        {"most_violated": search_for(lambda self, y, gains: gains)},
        "most_violated does not find the best",
    ),
    "forgets the score": (
        {"most_violated": search_for(lambda self, y, gains: COSTS[y])},
        "most_violated does not find the best",
    ),
    "subtracts the loss": (
        {"most_violated": search_for(lambda self, y, gains: gains - COSTS[y])},
        "most_violated does not find the best",
    ),
    "least violated": (
        {"most_violated": search_for(lambda self, y, gains: -gains - COSTS[y])},
        "most_violated does not find the best",
    ),
    "swaps the arguments of the loss": (
        {"most_violated": search_for(lambda self, y, gains: COSTS[:, y] + gains)},
        "most_violated does not find the best",
    ),
    "gold": (
        {"most_violated": lambda self, x, y, w, rescaling: y},
        "most_violated does not find the best",
    ),
    "search changes x": (
        {"most_violated": search_changes_x},
        r"most_violated has changed x of example \d",
    ),
    "search changes w": (
        {"most_violated": search_changes_w},
        "most_violated has changed the weights",
    ),
    "search guesses": ({"most_violated": search_guesses}, "most_violated"),
    # loss
    "loss at gold": ({"loss": lambda self, y, z: 1.0 + COSTS[y, z]}, r"loss\(y, y\) is 1.0"),
    "negative loss": ({"loss": lambda self, y, z: -COSTS[y, z]}, "loss"),
    "loss is not a number": ({"loss": lambda self, y, z: np.nan * COSTS[y, z]}, "loss.* nan"),
    "loss by identity": (
        {
            "bind": lambda self, X, Y: mm.Problem.bind(self, X, [[y] for y in Y]),
            "joint_feature": lambda self, x, y: Costed.joint_feature(self, x, y[0]),
            "loss": lambda self, y, z: float(y is not z),
            "most_violated": lambda self, x, y, w, rescaling: [
                search_for(lambda self, y, gains: (np.arange(K) != y) + gains)(
                    self, x, y[0], w, rescaling
                )
            ],
            "predict": lambda self, x, w: [Costed.predict(self, x, w)],
        },
        r"loss\(y, y_hat\) is 1.0 for example \d, where y_hat is a copy of y",
    ),
    # joint_feature
    "features of the state": (
        {"most_violated": remembers_the_search, "joint_feature": features_of_state},
        "joint_feature.*when called again",
    ),
    "noisy features": ({"joint_feature": noisy_features}, "joint_feature.*when called again"),
    "some features are too few": ({"joint_feature": short_features}, "returned 11 features"),
    "some features are too many": ({"joint_feature": long_features}, "returned 13 features"),
    "features are counted from 1": ({"joint_feature": numbers_from_one}, "returned index 12"),
    "features change x": (
        {"joint_feature": features_change_x},
        r"joint_feature has changed x of example \d",
    ),
}
ORACLE_MISTAKES = {
    "sign of dpsi": (
        {"row": lambda self, x, y, z: -Rows.row(self, x, y, z)},
        "opposite sign",
    ),
    "half of dpsi": (
        {"row": lambda self, x, y, z: -self.joint_feature(x, z)},
        "oracle",
    ),
    "predicts the worst": ({"predict": inverted}, "predict gives example"),
}


def made(base, methods, **options):
    bound = type("Changed", (base,), methods)().bind([x.copy() for x in X], list(Y))
    mm.check_problem(bound, **options)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("base", [Costed, Rows])
def test_right_problems_pass(base, call):
    made(base, {}, rescalings=("margin", "slack", "none"), **call)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake, call):
    if mistake == "loss by identity":
        call = {
            "candidates": {"candidates": lambda x, rng: [int(rng.integers(K))]},
            "outputs": {"outputs": lambda x: [[k] for k in range(K)]},
        }.get(next(iter(call), ""), {})
    methods, message = MISTAKES[mistake]
    with pytest.raises(ValueError, match=message):
        made(Costed, methods, **call)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("mistake", ORACLE_MISTAKES)
def test_mistakes_of_an_oracle_are_named(mistake, call):
    methods, message = ORACLE_MISTAKES[mistake]
    with pytest.raises(ValueError, match=message):
        made(Rows, methods, **call)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_oracle_that_ignores_the_rescaling_is_named(call):
    methods = {"most_violated": search_for(lambda self, y, gains: COSTS[y] + gains)}
    for rescaling in ("slack", "none"):
        with pytest.raises(ValueError, match="most_violated does not find the best"):
            made(Costed, methods, rescalings=(rescaling,), **call)


def test_an_oracle_above_all_outputs_is_named():
    double = {"loss": lambda self, y, z: 2.0 * COSTS[y, z]}
    with pytest.raises(ValueError, match="above that of every listed output"):
        made(
            Rows,
            {"oracle": lambda self, *args, **options: _twice(Rows.oracle(self, *args, **options))},
            outputs=lambda x: range(K),
        )
    double["most_violated"] = search_for(lambda s, y, g: 2.0 * COSTS[y] + g)
    made(Costed, double, rescalings="margin")


def _twice(planes):
    return planes._replace(losses=2.0 * planes.losses)
