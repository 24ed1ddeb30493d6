"""The one place where problems are asked: parts, batches, checks, counts."""

from types import SimpleNamespace

import numpy as np
import pytest

from cases import chain_case, multiclass_case
from checking import expand_blocks
from maxmargin.core.cutting_planes import Planes, concatenate
from maxmargin.core.formulation import Formulation
from maxmargin.core.problem import Problem
from maxmargin.engine import oracle as asking
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.training.verifying import hinge_values
from maxmargin.engine.violations import violations
from maxmargin.problems.chain.problem import ChainProblem


class Points(Problem):
    """Two labels; the joint feature of (x, y) is x y."""

    n_features = 2

    def joint_feature(self, x, y):
        return x * y

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def most_violated(self, x, y, w, rescaling):
        return max((-1, 1), key=lambda z: self.loss(y, z) + w @ self.joint_feature(x, z))


def points(n=30):
    rng = np.random.default_rng(0)
    return Points().bind(list(rng.normal(size=(n, 2))), list(rng.choice([-1, 1], n)))


@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
def test_parts_and_features_give_the_same_violations(rescaling):
    problem = chain_case(np.random.default_rng(3)).problem
    asked = Oracle(problem, Formulation(rescaling))
    w = np.random.default_rng(4).normal(size=problem.n_features)
    every = np.arange(problem.n_examples)
    in_blocks, in_features = asked.call(every, w), asked.call_features(every, w)
    assert asked.in_blocks and asked.feature_blocks is problem.feature_blocks
    for row in every:
        entries = slice(*in_blocks.planes.indptr[row : row + 2])
        used = in_blocks.planes.indices[entries]
        dense = expand_blocks(asked.feature_blocks, used, in_blocks.planes.values[entries], len(w))
        value = in_blocks.offsets[row] - in_blocks.scales[row] * dense @ w
        assert value == pytest.approx(violations(in_features, w)[row])
    assert np.allclose(asked.violations(w).hinges, hinge_values(problem, asked.formulation, w))


def test_calls_are_counted_once_each():
    asked, w, every = Oracle(points(), Formulation()), np.ones(2), np.arange(30)
    asked.call(every, w)
    asked.call_features(every[:7], w, scale=2.0)
    asked.predictions(every[:3], w)
    asked.predictions(every, w, count=False)
    asked.count(5)
    asked.violations(w)
    assert asked.calls == 30 + 7 + 3 + 5 + 30


def test_large_batches_are_cut_and_put_together_again(monkeypatch):
    monkeypatch.setattr(asking, "FEWEST", 4)
    monkeypatch.setattr(asking, "MOST", 4)
    sizes = []

    class Watched(Points):
        in_threads = True

        def oracle(self, indices, *rest):
            sizes.append(len(indices))
            return super().oracle(indices, *rest)

    problem = Watched().bind(points().X, points().Y)
    w, every = np.array([0.3, -1.0]), np.arange(30)
    whole = Oracle(problem, Formulation()).call(every, w)
    assert sizes == [30]
    asked = Oracle(problem, Formulation())
    with asked.in_threads(2):
        pieces = asked.call(every, w)
    assert asked.threads is None
    assert sorted(sizes[1:]) == [2] + 7 * [4]
    for a, b in zip(whole.planes, pieces.planes, strict=True):
        assert np.array_equal(a, b) and a.dtype == b.dtype


def test_pieces_of_planes():
    row = Planes(np.array([0, 2]), np.array([1, 2], np.int32), np.array([1.0, 2.0]), np.ones(1))
    none = Planes(np.array([0, 0]), np.empty(0, np.int32), np.empty(0), np.zeros(1))
    both = concatenate([row, none, row])
    assert both.indptr.tolist() == [0, 2, 2, 4] and both.losses.tolist() == [1.0, 0.0, 1.0]
    assert both.indices.tolist() == [1, 2, 1, 2]


def test_an_oracle_of_ones_own_is_asked_and_not_what_it_inherits():
    class Own(ChainProblem):
        def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
            return super().oracle(indices, w, rescaling, sqrt_loss)

    class OwnWithParts(Own):
        def accelerators(self, formulation):
            return ChainProblem.accelerators(self, formulation)

    rng = np.random.default_rng(0)
    data = (rng.normal(size=(6, 2)), [0, 3, 6], rng.integers(0, 2, 6))
    assert Own(*data).accelerators(Formulation()) is None
    assert not Oracle(Own(*data), Formulation()).in_blocks
    assert Oracle(OwnWithParts(*data), Formulation()).in_blocks
    assert Oracle(ChainProblem(*data), Formulation()).in_blocks


def test_duck_typed_problems():
    problem = points()
    duck = SimpleNamespace(n_examples=30, n_features=2, oracle=problem.oracle)
    w, every = np.array([0.3, -1.0]), np.arange(30)
    asked, own = Oracle(duck, Formulation()), Oracle(problem, Formulation())
    for method in ("call", "predictions"):
        found, expected = getattr(asked, method)(every, w), getattr(own, method)(every, w)
        assert all(np.array_equal(a, b) for a, b in zip(found.planes, expected.planes, strict=True))
    with pytest.raises(ValueError, match="no search for the k best"):
        asked.call_k_best(every, w, 2)


def test_answers_of_users_are_checked_and_converted():
    def broken(indices, w, rescaling, sqrt_loss):
        return Planes(np.array([0, 1]), np.array([5]), np.ones(1), np.ones(1))

    duck = SimpleNamespace(n_examples=1, n_features=2, oracle=broken)
    with pytest.raises(ValueError, match=r"example 0 has value 1\.0 at index 5"):
        Oracle(duck, Formulation()).call(np.arange(1), np.zeros(2))
    duck.n_features = 6
    planes = Oracle(duck, Formulation()).call(np.arange(1), np.zeros(6)).planes
    assert planes.indices.dtype == np.int32


def test_candidates_worse_than_the_given_output_are_told_once():
    def poor(indices, w, rescaling, sqrt_loss):
        return Planes(np.array([0, 1]), np.array([0], np.int32), np.ones(1), np.ones(1))

    duck = SimpleNamespace(n_examples=1, n_features=1, oracle=poor)
    asked = Oracle(duck, Formulation())
    with pytest.warns(UserWarning, match="example 0 has value -2, worse than the gold output"):
        asked.violations(np.array([3.0]))
    asked.violations(np.array([3.0]))  # a second warning would be an error
    unscaled = Oracle(duck, Formulation("none"))
    assert unscaled.violations(np.array([3.0])).values.tolist() == [-2.0]


def test_subsets_of_a_users_problem():
    problem, w = points(), np.array([0.3, -1.0])
    chosen = np.array([5, 2, 9])
    part, whole = problem.subset(chosen), problem.oracle(chosen, w)
    found = part.oracle(np.arange(3), w)
    assert all(np.array_equal(a, b) for a, b in zip(found, whole, strict=True))


def test_a_check_ends_a_pass():
    class Enough(Exception):
        pass

    def stop():
        raise Enough

    asked = Oracle(multiclass_case(np.random.default_rng(0)).problem, Formulation())
    with pytest.raises(Enough):
        asked.violations(np.zeros(asked.n_features), stop)
