"""Parameters of the estimators: written once, the same for Python, scikit-learn and the reader."""

import dataclasses
import inspect
import re

import pytest
from sklearn.base import clone

import maxmargin as mm
from maxmargin.cli import make_parser
from maxmargin.cli.tasks import TASKS
from maxmargin.cli.training import shared_parameters
from maxmargin.estimators.base import MaxMarginEstimator
from maxmargin.registry import ESTIMATORS
from maxmargin.solvers import make_solver
from maxmargin.utils import defaults

TRAINED = [
    mm.DependencyParser,
    mm.GrammarParser,
    mm.HomologyRanker,
    mm.MulticlassSVM,
    mm.PartLocator,
    mm.SequenceAligner,
    mm.SequenceTagger,
    mm.StructuralSVM,
    mm.TreeLabeler,
]
SHARED = [field.name for field in dataclasses.fields(MaxMarginEstimator)]


def make(cls, *args, **parameters):
    return cls(*((mm.Problem(),) if cls is mm.StructuralSVM else ()), *args, **parameters)


def documented(cls):
    """Names and defaults of the parameters, as the docstring tells them."""
    section = inspect.getdoc(cls).split("Parameters\n----------\n")[1].split("\n\nAttributes\n")[0]
    kinds = dict(re.findall(r"^(\w+) : (.*)$", section, re.MULTILINE))
    return {name: kind.partition("default=")[2] or "None" for name, kind in kinds.items()}


@pytest.mark.parametrize("cls", [*TRAINED, mm.PCFGParser])
def test_docstring_tells_every_parameter_with_its_default(cls):
    told = documented(cls)
    signature = inspect.signature(cls).parameters
    assert sorted(told) == sorted(signature)
    for name, parameter in signature.items():
        if parameter.default is not inspect.Parameter.empty:
            assert eval(told[name]) == parameter.default, name
    assert "{" + "parameters of" not in cls.__doc__


@pytest.mark.parametrize("cls", TRAINED)
def test_every_trained_estimator_has_the_shared_parameters(cls):
    assert set(SHARED) <= set(make(cls).get_params())


def test_the_precision_is_the_same_for_estimators_solvers_and_the_command_line():
    assert make_solver("auto").tol == defaults.TOL
    assert {make(cls).tol for cls in TRAINED} == {defaults.TOL}
    for entry in ESTIMATORS:
        if entry.task is not None and entry.name != "PCFGParser":
            told = make_parser().parse_args(["train", entry.task, "data", "-o", "model"])
            given = shared_parameters(told, TASKS[entry.task])
            assert given["tol"] == getattr(mm, entry.name)().tol, entry.name


@pytest.mark.parametrize("cls", TRAINED)
def test_c_is_the_first_parameter_and_may_be_given_by_position(cls):
    assert make(cls, 3.0).C == 3.0
    with pytest.raises(TypeError, match="positional"):
        make(cls, 3.0, "slack")


@pytest.mark.parametrize("cls", TRAINED)
def test_unknown_parameter_is_refused_by_name(cls):
    with pytest.raises(TypeError, match="unexpected keyword argument 'regularisation'"):
        make(cls, regularisation=1.0)


@pytest.mark.parametrize("cls", TRAINED)
def test_parameters_are_cloned_set_and_shown(cls):
    model = make(cls, 2.0, tol=0.1, training=mm.TrainingOptions(on_interrupt="return"))
    again = clone(model)
    assert (again.C, again.tol, again.training) == (2.0, 0.1, model.training)
    assert again.set_params(tol=0.2).tol == 0.2 and model.tol == 0.1
    assert "on_interrupt='return'" in repr(model) and "epsilon" not in repr(model)
    assert model != again and hash(model) == hash(model)  # two models are never equal


def test_on_interrupt_is_one_of_two_words():
    with pytest.raises(ValueError, match="on_interrupt must be 'raise' or 'return', got 'stop'"):
        mm.MulticlassSVM(training={"on_interrupt": "stop"}).fit([[0.0], [1.0]], [0, 1])
