"""The registry says what is there: classes, tasks, options and what files hold."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import maxmargin as mm
from every_estimator import KINDS
from maxmargin import registry
from maxmargin.cli import make_parser
from maxmargin.cli.options import OPTIONS
from maxmargin.cli.tasks import TASKS
from maxmargin.estimators.base import Savable
from maxmargin.formats.recognising import Kind
from maxmargin.persistence import save_model


def classes_of_estimators():
    """All public estimators there are, found by their files."""
    found = set()
    package = Path(mm.__file__).parent
    for path in (package / "estimators").rglob("*.py"):
        name = ".".join(path.relative_to(package).with_suffix("").parts)
        module = importlib.import_module(f"maxmargin.{name}")
        classes = (value for value in vars(module).values() if inspect.isclass(value))
        found |= {cls for cls in classes if issubclass(cls, Savable) and hasattr(cls, "fit")}
    return found


def test_every_estimator_has_an_entry():
    listed = [registry.import_name(entry.module, entry.name) for entry in registry.ESTIMATORS]
    assert set(listed) == classes_of_estimators() and len(listed) == len(set(listed))
    for entry, cls in zip(registry.ESTIMATORS, listed, strict=True):
        assert registry.entry_of(cls) is entry
        assert getattr(mm, entry.name) is cls
        assert entry.name in mm.__all__


@pytest.mark.parametrize("entry", registry.ESTIMATORS, ids=lambda entry: entry.name)
def test_an_estimator_is_no_heap_of_mixins(entry):
    """Abilities are objects that it holds, or functions: few classes, and few methods."""
    importlib.import_module("sklearn.base")  # whose classes take the place of some of ours
    ours = [
        cls for cls in getattr(mm, entry.name).__mro__ if cls.__module__.startswith("maxmargin.")
    ]
    kinds = (property, staticmethod, classmethod)
    methods = {
        name
        for cls in ours
        for name, value in vars(cls).items()
        if inspect.isfunction(value) or isinstance(value, kinds)
    }
    assert len(ours) <= 9 and len(methods) <= 60


def test_tests_of_all_estimators_know_every_entry():
    made = {type(kind.make()).__name__ for kind in KINDS.values()} | {"PCFGParser"}  # no solver
    assert made == {entry.name for entry in registry.ESTIMATORS}


def test_type_checkers_see_the_same_names():
    """They do not run the code, so they have a list of their own."""
    seen = set()
    for node in ast.walk(ast.parse(Path(mm.__file__).read_text())):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            seen |= {alias.asname for line in node.body for alias in line.names} - {None}
    assert {*seen, "__version__"} == set(mm.__all__)


def test_a_subclass_is_not_saved_as_its_base(tmp_path):
    class MulticlassSVM(mm.MulticlassSVM):
        """Named like its base class, but with code that a file cannot hold."""

    X, y = KINDS["classes"].first
    with pytest.raises(ValueError, match="is not a class of this package"):
        save_model(MulticlassSVM().fit(X, y), tmp_path / "model")


def test_what_files_hold_is_there():
    for name, module in registry.SAVED_VALUES.items():
        cls = registry.import_name(module, name)
        assert cls.to_state and cls.from_state
    for name, module in registry.SAVED_PARAMETERS.items():
        assert registry.import_name(module, name)().get_params()
    for name, (module, _) in registry.SAVED_TUPLES.items():
        assert issubclass(registry.import_name(module, name), tuple)


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_tasks_are_complete(task):
    for function in ("predict", "evaluate", "examples"):
        assert function in vars(type(task))
    assert {"make", "plan"} & set(vars(type(task)))
    assert {*task.reads, *task.reads_unlabelled} <= set(Kind.__members__)
    entries = [entry for entry in registry.ESTIMATORS if entry.task == task.name]
    assert entries and all(entry.is_saved for entry in entries)
    known = vars(make_parser().parse_args(["train", task.name, "data", "-o", "model"]))
    assert set(task.options) <= set(known)


def test_options_belong_to_tasks():
    assert set(OPTIONS) <= {name for task in TASKS.values() for name in task.options}
