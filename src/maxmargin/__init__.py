"""Structural SVMs: learn to predict sequences, trees, alignments and other structured outputs.

    import maxmargin as mm

    tagger = mm.SequenceTagger(C=1.0).fit(X, Y)      # one label per token
    tagger.result_.relative_gap                      # certified distance from the optimum
    tagger.save("tagger.mm"); mm.load("tagger.mm")

Names are imported when they are first used: NumPy, SciPy and Numba take a second to load, which
``import maxmargin`` alone should not cost. scikit-learn takes longer, and is not imported at all
before somebody needs it (`sklearn_bases`). Until ``__main__`` listens, Ctrl-C shows a traceback.
"""

from __future__ import annotations

from ._version import __version__ as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .checking import check_problem as check_problem
    from .cluster import ClusterSolver as ClusterSolver
    from .core.cutting_planes import BoundedPlanes as BoundedPlanes
    from .core.cutting_planes import Planes as Planes
    from .core.formulation import Formulation as Formulation
    from .core.problem import Problem as Problem
    from .core.weight_constraints import WeightConstraints as WeightConstraints
    from .estimators.graph import GraphLabeler as GraphLabeler
    from .estimators.matching import SetMatcher as SetMatcher
    from .estimators.parameters import TrainingOptions as TrainingOptions
    from .estimators.selection.path import RegularizationPath as RegularizationPath
    from .estimators.selection.path import path as path
    from .estimators.selection.search_cv import SearchCV as SearchCV
    from .estimators.sequences.alignment import HomologyRanker as HomologyRanker
    from .estimators.sequences.alignment import SequenceAligner as SequenceAligner
    from .estimators.sequences.segments import SequenceSegmenter as SequenceSegmenter
    from .estimators.sequences.sequence import SequenceTagger as SequenceTagger
    from .estimators.structural import StructuralSVM as StructuralSVM
    from .estimators.tabular.multiclass import MulticlassSVM as MulticlassSVM
    from .estimators.tabular.multilabel import MultilabelSVM as MultilabelSVM
    from .estimators.tabular.ordinal import OrdinalSVM as OrdinalSVM
    from .estimators.tabular.performance import PerformanceSVM as PerformanceSVM
    from .estimators.tabular.ranking import RankSVM as RankSVM
    from .estimators.trees.dependency import DependencyParser as DependencyParser
    from .estimators.trees.grammar import GrammarParser as GrammarParser
    from .estimators.trees.grammar import PCFGParser as PCFGParser
    from .estimators.trees.part_locator import PartLocator as PartLocator
    from .estimators.trees.tree import TreeLabeler as TreeLabeler
    from .features import ClassFeatures as ClassFeatures
    from .features import Taxonomy as Taxonomy
    from .features.graphs import Graph as Graph
    from .features.graphs import make_grid as make_grid
    from .features.graphs import make_knn_graph as make_knn_graph
    from .features.graphs import make_superpixel_graph as make_superpixel_graph
    from .persistence import load as load
    from .problems.general.assignment import AssignmentProblem as AssignmentProblem
    from .problems.general.candidates import CandidateProblem as CandidateProblem
    from .problems.general.factor_tree import Factors as Factors
    from .problems.general.factor_tree import FactorTree as FactorTree
    from .problems.general.joint_kernel import JointKernelProblem as JointKernelProblem
    from .problems.general.linear_program import LinearProgramProblem as LinearProgramProblem
    from .problems.general.slots import SlotProblem as SlotProblem
    from .versions import show_versions as show_versions

_HOME = {
    "AssignmentProblem": "problems.general.assignment",
    "BoundedPlanes": "core.cutting_planes",
    "CandidateProblem": "problems.general.candidates",
    "ClassFeatures": "features.class_features",
    "ClusterSolver": "cluster",
    "FactorTree": "problems.general.factor_tree",
    "Factors": "problems.general.factor_tree",
    "Formulation": "core.formulation",
    "Graph": "features.graphs",
    "JointKernelProblem": "problems.general.joint_kernel",
    "LinearProgramProblem": "problems.general.linear_program",
    "Planes": "core.cutting_planes",
    "Problem": "core.problem",
    "RegularizationPath": "estimators.selection.path",
    "SearchCV": "estimators.selection.search_cv",
    "SlotProblem": "problems.general.slots",
    "Taxonomy": "problems.classes.taxonomy",
    "TrainingOptions": "estimators.parameters",
    "WeightConstraints": "core.weight_constraints",
    "check_problem": "checking",
    "load": "persistence",
    "make_grid": "features.graphs",
    "make_knn_graph": "features.graphs",
    "make_superpixel_graph": "features.graphs",
    "path": "estimators.selection.path",
    "show_versions": "versions",
}
_FOLDERS = ("datasets", "features", "formats", "jit", "metrics", "report", "solvers")


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    import importlib

    from .registry import ESTIMATORS, import_name

    if name in _FOLDERS:
        return importlib.import_module(f".{name}", __name__)
    home = {**{entry.name: entry.module for entry in ESTIMATORS}, **_HOME}
    if name == "__all__":
        return ["__version__", *home]
    if name not in home:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = import_name(home[name], name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names, whether imported yet or not."""
    return sorted({*_FOLDERS, *__getattr__("__all__")})
