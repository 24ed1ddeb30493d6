"""Structural SVMs: learn to predict sequences, trees, alignments and other structured outputs.

    import maxmargin as mm

    tagger = mm.SequenceTagger(C=1.0).fit(X, Y)      # one label per token
    tagger.result_.relative_gap                      # certified distance from the optimum
    tagger.save("tagger.mm"); mm.load("tagger.mm")

Names are imported when they are first used: scikit-learn and Numba take a second to load, which
``import maxmargin`` alone should not cost.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._jit import kernel
    from .estimators.alignment import SequenceAligner
    from .estimators.dependency import DependencyParser
    from .estimators.grammar import GrammarParser, PCFGParser
    from .estimators.multiclass import MulticlassSVM
    from .estimators.sequence import SequenceTagger
    from .estimators.structural import StructuralSVM
    from .estimators.tree import TreeLabeler
    from .features import ClassFeatures, Taxonomy
    from .formulation import Formulation
    from .persistence import load
    from .problem import Planes, Problem, check_problem

__version__ = "0.1.0"

__all__ = [
    "ClassFeatures",
    "DependencyParser",
    "Formulation",
    "GrammarParser",
    "MulticlassSVM",
    "PCFGParser",
    "Planes",
    "Problem",
    "SequenceAligner",
    "SequenceTagger",
    "StructuralSVM",
    "Taxonomy",
    "TreeLabeler",
    "__version__",
    "check_problem",
    "kernel",
    "load",
]

_HOME = {
    "ClassFeatures": ".features.class_features",
    "DependencyParser": ".estimators.dependency",
    "Formulation": ".formulation",
    "GrammarParser": ".estimators.grammar",
    "MulticlassSVM": ".estimators.multiclass",
    "PCFGParser": ".estimators.grammar",
    "Planes": ".problem",
    "Problem": ".problem",
    "SequenceAligner": ".estimators.alignment",
    "SequenceTagger": ".estimators.sequence",
    "StructuralSVM": ".estimators.structural",
    "Taxonomy": ".problems.classes.taxonomy",
    "TreeLabeler": ".estimators.tree",
    "check_problem": ".problem",
    "kernel": "._jit",
    "load": ".persistence",
}


_FOLDERS = ("datasets", "features", "formats", "metrics", "report", "solvers")


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    if name in _FOLDERS:
        return importlib.import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names, whether imported yet or not."""
    return sorted({*_FOLDERS, *__all__})
