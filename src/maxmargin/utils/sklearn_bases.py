"""scikit-learn's base classes, for estimators that are imported without scikit-learn.

To import scikit-learn takes longer than most commands do. So the classes here stand for its base
classes, and get those as their bases when scikit-learn is imported, whoever imports it: whoever can
see the difference has imported it. Until then an estimator knows its parameters; whatever else
scikit-learn would do for it is done by importing it.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import inspect
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["Classifier", "Estimator", "check_fitted", "clone", "doc_link_template"]

_HOME = "sklearn.base"
#: How the names begin that users know and that estimators have by scikit-learn alone.
_LATER = ("set_", "get_", "_repr_")


class _Alone:
    """What estimators are while nobody has imported scikit-learn: parameters."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith(_LATER):
            _import_sklearn()
            return getattr(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        _import_sklearn()
        return repr(self)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Names of the parameters, in alphabetical order."""
        found = list(inspect.signature(cls.__init__).parameters.values())[1:]
        if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in found):
            _import_sklearn()  # whose error says what is wrong
            return cls._get_param_names()
        return sorted(p.name for p in found if p.kind is not p.VAR_KEYWORD)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by their names, with ``deep`` also those of estimators among them."""
        found = {}
        for name in self._get_param_names():
            value = found[name] = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                found |= {f"{name}__{inner}": v for inner, v in value.get_params().items()}
        return found

    def set_params(self, **params: Any) -> Any:
        """Set parameters; those of an estimator among them by ``name__parameter``."""
        if not params.keys() <= set(self._get_param_names()):
            _import_sklearn()
            return self.set_params(**params)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_clone__(self) -> Any:
        """An unfitted estimator of the same parameters."""
        params = self.get_params(deep=False).items()
        return type(self)(
            **{k: clone(v) if hasattr(v, "get_params") else copy.deepcopy(v) for k, v in params}
        )


@functools.cache
def documentation() -> str | None:
    """The address of the documentation, by what the installed package says of itself."""
    try:
        urls = metadata.metadata("maxmargin").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return None
    known = dict(url.split(", ", 1) for url in urls)
    return known["Documentation"].rstrip("/") if "Documentation" in known else None


def _doc_link_template(estimator: Any) -> str:
    """Where pictures of an estimator link to; without documentation there is no link."""
    home = documentation()
    return "" if home is None else home + "/api/generated/maxmargin.{estimator_name}.html"


#: For estimators, as the attribute that scikit-learn reads.
doc_link_template = property(_doc_link_template)


class _NoClassifier:
    """Bases are replaced one by one: none of those before may be that of two classes."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Accuracy, as ClassifierMixin has it: the base of `Classifier` from then on."""
        _import_sklearn()
        return Classifier.score(self, X, y, sample_weight)  # type: ignore[arg-type]


if TYPE_CHECKING:
    from sklearn.base import BaseEstimator as Estimator
    from sklearn.base import ClassifierMixin as Classifier
else:

    class Estimator(_Alone):
        """Stands for ``BaseEstimator``, and from 1.9 on for ``CallbackSupportMixin``."""

        _doc_link_module = "maxmargin"
        _doc_link_template = doc_link_template

    class Classifier(_NoClassifier):
        """Stands for ``ClassifierMixin``."""


def _inherit(base: ModuleType) -> None:
    """Make scikit-learn's classes the bases of those above."""
    bases = [base.BaseEstimator]
    with contextlib.suppress(ImportError):
        bases.insert(0, importlib.import_module("sklearn.callback").CallbackSupportMixin)
    Estimator.__bases__ = tuple(bases)
    Classifier.__bases__ = (base.ClassifierMixin,)
    for cls in _subclasses(Estimator):  # as if they had been written just now
        super(Estimator, cls).__init_subclass__()


def _import_sklearn() -> Any:
    """The module of its base classes, which are then those of estimators."""
    importlib.import_module(_HOME.partition(".")[0])  # first, as all others do: locks have an order
    base = importlib.import_module(_HOME)
    if Estimator.__bases__ == (_Alone,):  # imported before, or past the watch
        _inherit(base)
    return base


def _subclasses(cls: Any) -> Iterator[Any]:
    """A class and all that inherit from it."""
    yield cls
    for sub in cls.__subclasses__():
        yield from _subclasses(sub)


class _Watch(MetaPathFinder):
    """Sees scikit-learn being imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification that others find, of a loader that tells."""
        if name != _HOME:
            return None
        finders = (finder for finder in sys.meta_path if finder is not self)
        others = (finder for finder in finders if hasattr(finder, "find_spec"))
        found = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            load: Any = spec.loader.exec_module

            def load_and_inherit(module: ModuleType) -> None:
                load(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                _import_sklearn()

            spec.loader.exec_module = load_and_inherit  # type: ignore[method-assign]
        return spec


if _HOME in sys.modules:
    _import_sklearn()  # waits, if another thread is importing it
else:
    sys.meta_path.insert(0, _Watch())


# ----- functions of scikit-learn's that are short ------------------------------------------------


def check_fitted(estimator: Any, attribute: str) -> None:
    """Raise scikit-learn's NotFittedError where the attribute is missing."""
    if not hasattr(estimator, attribute):
        importlib.import_module("sklearn.utils.validation").check_is_fitted(estimator, attribute)


def clone(estimator: Any) -> Any:
    """An unfitted estimator of the same parameters, as scikit-learn's ``clone`` makes it."""
    if _HOME in sys.modules or not isinstance(estimator, Estimator):
        return _import_sklearn().clone(estimator)
    return estimator.__sklearn_clone__()
