"""What checkpoints keep of joint kernels: points, coordinates, and outputs of any kind."""

import json
import os
import re
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

import maxmargin as mm
from brute_general import KernelLabels
from joint_kernels import Climbing, Labelling, LabellingObjects, kernel, kernel_examples
from maxmargin.core.formulation import Formulation
from maxmargin.engine.parallel import processes
from maxmargin.problems.general.kernel_points import output_key
from maxmargin.problems.general.output_texts import OutputTexts
from maxmargin.solvers import make_solver
from resuming import KERNELS, outcome

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{start}")
    for start in ("planes are made of", "the problem.s search is not exact")
]

# ----- points -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [KernelLabels, LabellingObjects, Climbing])
def test_points_are_what_they_were(kind):
    problem, again = kernel(kind), kernel(kind)
    make_solver("auto", max_passes=6).solve(problem, Formulation(), 2.0)
    again.restore_features({name: array.copy() for name, array in problem.feature_arrays().items()})
    one, other = problem._space, again._space
    assert other.factor.tobytes() == one.factor.tobytes() and other.size == one.size > 9
    assert all(x is problem.X[i] for i, x in zip(one.examples, one.points.inputs, strict=True))
    assert (other.examples, other._places, other._cached) == (
        (one.examples, one._places, one._cached)
    )
    assert other.report == one.report and other._largest == one._largest
    assert list(other._seen) == list(one._seen)
    for i, seen in one._seen.items():
        assert other._seen[i].rows == seen.rows
        assert other._seen[i].n_known.tolist() == seen.n_known.tolist()
        assert other._seen[i].table.tobytes() == seen.table.tobytes()
    assert output_key(other.points.outputs) == output_key(one.points.outputs)
    # What is written again is the same.
    written, rewritten = problem.feature_arrays(), again.feature_arrays()
    assert written.keys() == rewritten.keys()
    assert all(np.array_equal(rewritten[name], array) for name, array in written.items())


def test_only_what_is_known_is_written():
    """Not the room that tables and factor have for more."""
    problem = kernel(max_points=2000)
    make_solver("auto", max_passes=6).solve(problem, Formulation(), 2.0)
    n_bytes = sum(array.nbytes for array in problem.feature_arrays().values())
    assert n_bytes < 0.5 * problem.kernel_report.n_bytes


def test_the_same_problem_goes_on_though_it_has_points(tmp_path):
    """As after a Ctrl-C in a notebook; points that came after the checkpoint are dropped."""
    solver = make_solver("auto", tol=1e-4, max_passes=2, checkpoint=tmp_path / "c")
    problem = kernel()
    solver.solve(problem, Formulation(), 2.0)
    more = make_solver("auto", tol=1e-4, checkpoint=tmp_path / "c", resume=True)
    found = more.solve(problem, Formulation(), 2.0)
    expected = make_solver("auto", tol=1e-4).solve(kernel(), Formulation(), 2.0)
    assert outcome(found) == outcome(expected)


def test_a_training_that_is_over_predicts(tmp_path):
    X, Y = kernel_examples()
    training = {"checkpoint": tmp_path / "c", "resume": True}
    options = {"C": 2.0, "random_state": 0, "training": training}
    first = mm.StructuralSVM(KernelLabels(), **options).fit(X, Y)
    again = mm.StructuralSVM(KernelLabels(), **options).fit(X, Y)
    assert len(first.coef_) > 9 and again.coef_.tobytes() == first.coef_.tobytes()
    assert again.predict(X) == first.predict(X)
    with pytest.raises(ValueError, match="another data"):
        mm.StructuralSVM(KernelLabels(), **options).fit(X, [*Y[:-1], (1, 1, 1, 0)])


# ----- outputs ------------------------------------------------------------------------------------


class Pair(NamedTuple):
    a: int
    b: int


PLAIN = [
    *(None, True, 3, -(10**30), 0.1, float("inf"), "a", "\ud800", b"\0a", ""),
    *((1, (2.0, "b")), [1, [2]], {1, 2}, frozenset({"a"}), {"a": [1, (2,)], 3: None}, (), {}),
    *(np.int32(4), np.float32(0.1), np.bool_(True), np.str_("ab"), np.datetime64("2020-01-01")),
    *(np.arange(6.0).reshape(2, 3), np.arange(6).reshape(3, 2).T, np.zeros((0, 2), np.int8)),
    *(np.array(["a", "bc"]), np.array([1, (2, 3)], object), np.array(1.5)),
]


def same(one, other):
    """Equal to the bit, with all types."""
    if isinstance(one, np.ndarray):
        if one.dtype == object:
            return one.shape == other.shape and same(one.tolist(), other.tolist())
        told = [(y.dtype, y.shape, y.strides, y.tobytes("A")) for y in (one, other)]
        return told[0] == told[1]
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one.items()), list(other.items()))
    return one == other


@pytest.mark.parametrize("y", PLAIN, ids=lambda y: f"{y!r:.20}".encode("ascii", "replace").decode())
def test_plain_outputs_are_written_out(y):
    texts = OutputTexts(["x"], ["another"], None)
    (again,) = texts.outputs([0], [json.loads(texts.text(0, y))])
    assert same(again, y)
    assert output_key(again) == output_key(y)


@pytest.mark.parametrize("y", [Pair(1, 2), Labelling((1,)), (1, Fraction(1, 2)), [1j]])
def test_other_outputs_are_given_or_listed(y):
    given = OutputTexts(["x"], [y], None)
    assert given.outputs([0], [json.loads(given.text(0, y))])[0] is y
    listed = OutputTexts(["x"], ["another"], lambda x: ["one", y, y])
    text = json.loads(listed.text(0, y))
    assert listed.outputs([0], [text])[0] is y
    with pytest.raises(ValueError, match=r"lists other outputs for example 0 than when the check"):
        OutputTexts(["x"], ["another"], lambda x: [y, "one"]).outputs([0], [text])
    with pytest.raises(ValueError, match=r"lists other outputs for example 0 than when the check"):
        OutputTexts(["x"], ["another"], lambda x: ["one"]).outputs([0], [text])
    kind = type(y).__name__
    with pytest.raises(ValueError, match=rf"of example 0, of type {kind}, cannot be kept in a fi"):
        OutputTexts(["x"], ["another"], None).text(0, y)
    with pytest.raises(ValueError, match="cannot be kept in a file"):
        OutputTexts(["x"], ["another"], lambda x: ["one"]).text(0, y)


def test_outputs_that_no_file_can_keep_are_refused_in_the_first_iteration(tmp_path):
    class Searched(LabellingObjects):
        outputs = mm.JointKernelProblem.outputs

        def argmax(self, x, value):
            return max(LabellingObjects.outputs(self, x), key=value)

    X, Y = kernel_examples()
    model = mm.StructuralSVM(
        Searched(), training={"checkpoint": tmp_path / "c", "checkpoint_every": 1e9}
    )
    seen = []
    with pytest.raises(ValueError, match=re.escape("or else among those that outputs(x) lists")):
        model.set_params(training__callbacks=[seen.append]).fit(X, list(map(Labelling, Y)))
    assert len(seen) <= 1 and os.listdir(tmp_path) == []
    model.set_params(training__checkpoint=None).fit(X, list(map(Labelling, Y)))


def test_dicts_are_equal_in_any_order():
    assert output_key({"a": [1], "b": 2}) == output_key({"b": 2, "a": (1,)})
    assert output_key({"a": 1}) != output_key({("a", 1)}) != output_key((("a", 1),))


# ----- n_jobs -------------------------------------------------------------------------------------


def test_points_are_found_in_one_process(monkeypatch):
    """Others would number points of their own."""
    monkeypatch.setattr(processes, "WORTH_SENDING", 0.0)
    results = []
    for n_jobs in (1, 2):
        solver = make_solver("one_slack", tol=1e-2, max_passes=8, n_jobs=n_jobs)
        results.append(outcome(solver.solve(kernel(), Formulation(), 0.3)))
    assert results[0] == results[1]


def test_every_kind_of_training_has_points():
    """Those that `test_checkpoints` stops: what is not known of outputs is known later."""
    known = set()
    for training in KERNELS.values():
        problem = training.make()
        make_solver("auto", max_passes=3).solve(problem, Formulation(), 2.0)
        known |= {int(n) for seen in problem._space._seen.values() for n in seen.n_known}
    assert len(known) > 3
