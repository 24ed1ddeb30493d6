"""What ``import maxmargin`` offers, and what it does not cost."""

import inspect
import subprocess
import sys

import pytest

import maxmargin as mm


def test_public_names():
    for name in mm.__all__:
        assert getattr(mm, name) is not None
        assert name in dir(mm)
    assert mm.metrics.token_accuracy and "metrics" in dir(mm)
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        mm.Nonsense  # noqa: B018


def test_import_is_light():
    """scikit-learn and Numba, a second together, are loaded when they are needed."""
    script = (
        "import sys, maxmargin\n"
        "assert maxmargin.__version__\n"
        "heavy = {'sklearn', 'numba', 'scipy', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "maxmargin.jit, maxmargin.Planes\n"
        "assert 'sklearn' not in sys.modules\n"
        "from maxmargin.jit import kernel\n"
        "assert not hasattr(maxmargin, 'kernel') and 'numba' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


ESTIMATORS = [name for name in mm.__all__ if hasattr(getattr(mm, name), "fit")]
MOST_CLASSES, MOST_METHODS = 9, 60


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_are_made_of_few_classes_and_methods(name):
    """What is more is an object or a function that they use, not a class that they inherit."""
    own = [cls for cls in getattr(mm, name).__mro__ if cls.__module__.startswith("maxmargin")]
    methods = {
        attribute
        for cls in own
        for attribute, value in vars(cls).items()
        if inspect.isroutine(value) or isinstance(value, (property, staticmethod, classmethod))
    }
    assert len(own) <= MOST_CLASSES, own
    assert len(methods) <= MOST_METHODS, sorted(methods)


#: A tagger leaves room for its objective, an L1 penalty and hidden states.
MOST_PARAMETERS = {"SequenceTagger": 27}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_constructors_have_few_parameters(name):
    """How a training runs is in ``training``, and what belongs together is in one parameter."""
    parameters = inspect.signature(getattr(mm, name)).parameters
    assert len(parameters) <= MOST_PARAMETERS.get(name, 30), list(parameters)
