"""The k best labellings of trees, and positions of parts, as estimators list them."""

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.datasets import make_faces


def test_labeler_lists_its_best_labellings():
    rng = np.random.default_rng(3)
    Y = np.stack([rng.choice(["a", "b", "c"], 12), rng.choice(["u", "v"], 12)], axis=1)
    X = np.stack([Y[:, :1] == "a", Y[:, 1:] == "u"], axis=1) + 0.5 * rng.normal(size=(12, 2, 1))
    model = mm.TreeLabeler(tree=[(0, 1)], solver="mira", max_passes=5, random_state=0).fit(X, Y)
    for best, answers in zip(model.predict(X), model.predict_k(X, 10), strict=True):
        assert len(answers) == 6 and len({tuple(labels) for labels, _ in answers}) == 6
        assert answers[0][0].tolist() == best.tolist()
        scores = [score for _, score in answers]
        assert scores == sorted(scores, reverse=True) and scores[0] > scores[-1]
    with pytest.raises(ValueError, match="k must be a whole number >= 1"):
        model.predict_k(X, 0)


def test_labeler_lists_its_best_positions():
    faces = make_faces(n_train=10, n_test=3, size=16)
    model = mm.PartLocator(patch=3, C=0.01, solver="mira", max_passes=3, random_state=0).fit(
        faces.X_train, faces.y_train
    )
    for best, answers in zip(
        model.predict(faces.X_test), model.predict_k(faces.X_test, 4), strict=True
    ):
        assert len(answers) == 4 and np.array_equal(answers[0][0], best)
        assert len({positions.tobytes() for positions, _ in answers}) == 4
        scores = [score for _, score in answers]
        assert scores == sorted(scores, reverse=True)
