"""Estimators, their tasks on the command line, and what their files may hold: one entry each.

``import maxmargin``, model files, the command line and the tests read these lists; an estimator is
added by an entry here. Modules stand as text, relative to the package, and are imported when they
are first used: every start of the command line reads this file.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

__all__ = [
    "ESTIMATORS",
    "SAVED_PARAMETERS",
    "SAVED_TUPLES",
    "SAVED_VALUES",
    "Estimator",
    "entry_of",
    "import_name",
    "task_of",
]


class Estimator(NamedTuple):
    """A class for users, and where it lives."""

    name: str
    module: str
    task: str | None = None  # of the command line, see `maxmargin.cli.tasks`
    is_saved: bool = True  # whether model files hold it
    report: str = "losses"  # its outputs, as `maxmargin.report.subjects` describes them


class SavedTuple(NamedTuple):
    """Where a NamedTuple lives, and what a file calls its items."""

    module: str
    items: str


ESTIMATORS = (
    Estimator("SequenceTagger", "estimators.sequences.sequence", "tag", report="sequences"),
    Estimator("SequenceSegmenter", "estimators.sequences.segments", "segment", report="segments"),
    Estimator("MulticlassSVM", "estimators.tabular.multiclass", "multiclass", report="classes"),
    Estimator("MultilabelSVM", "estimators.tabular.multilabel", "multilabel", report="sets"),
    Estimator("OrdinalSVM", "estimators.tabular.ordinal", "ordinal", report="classes"),
    Estimator("RankSVM", "estimators.tabular.ranking", "rank", report="rankings"),
    Estimator("PerformanceSVM", "estimators.tabular.performance", "measure", report="measures"),
    Estimator("DependencyParser", "estimators.trees.dependency", "depend", report="dependencies"),
    Estimator("GrammarParser", "estimators.trees.grammar", "parse", report="parses"),
    Estimator("PCFGParser", "estimators.trees.grammar", "parse", report="parses"),
    Estimator("SequenceAligner", "estimators.sequences.alignment", "align", report="alignments"),
    Estimator("HomologyRanker", "estimators.sequences.alignment", report="homologues"),
    Estimator("TreeLabeler", "estimators.trees.tree", "label-tree", report="trees"),
    Estimator("PartLocator", "estimators.trees.part_locator", report="positions"),
    Estimator("SetMatcher", "estimators.matching", report="matchings"),
    Estimator("GraphLabeler", "estimators.graph", report="graphs"),
    # Made of code of the user's own, which no file holds.
    Estimator("StructuralSVM", "estimators.structural", is_saved=False),
)

#: Other classes that model files hold: by ``to_state`` and ``from_state``; extractors that are not
#: fitted, by their parameters.
SAVED_VALUES = {
    "ClassFeatures": "features.class_features",
    "FeatureDictionary": "features.dictionary",
    "Taxonomy": "problems.classes.taxonomy",
    "WindowFeatures": "features.window.features",
}
#: Parameters of estimators that are objects: files hold the parameters of these.
SAVED_PARAMETERS = {
    "KernelMap": "features.kernels.map",
    "TrainingOptions": "estimators.parameters",
}
#: NamedTuples that they hold.
SAVED_TUPLES = {
    "ArcTemplates": SavedTuple("problems.dependency.features", "groups"),
    "ChainConstraints": SavedTuple("problems.chain.layout", "masks"),
}


def import_name(module: str, name: str) -> Any:
    """A name of a module of this package."""
    return getattr(importlib.import_module(f".{module}", __package__), name)


def entry_of(cls: type) -> Estimator | None:
    """The entry of a class; None for any other class, such as a subclass of the user's."""
    for entry in ESTIMATORS:
        if (cls.__module__, cls.__qualname__) == (f"{__package__}.{entry.module}", entry.name):
            return entry
    return None


def task_of(cls: type) -> str:
    """The task of an estimator, or of what it inherits from; its name where there is none."""
    entry = next((found for base in cls.__mro__ if (found := entry_of(base)) is not None), None)
    return cls.__name__ if entry is None or entry.task is None else entry.task
