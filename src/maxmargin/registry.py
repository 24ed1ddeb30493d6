"""Estimators, what the command line does with them, and what their files may hold: one entry each.

``import maxmargin``, model files, the command line and the tests read these lists; an estimator is
added by an entry here. Modules stand as text, relative to the package, and are imported when they
are first used: every start of the command line reads this file.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

__all__ = [
    "ESTIMATORS",
    "SAVED_TUPLES",
    "SAVED_VALUES",
    "TASKS",
    "Estimator",
    "Task",
    "entry_of",
    "import_name",
]


class Task(NamedTuple):
    """What the command line does with an estimator: ``maxmargin train NAME``.

    The functions that read its files, train, write predictions and score them are in ``module``;
    `maxmargin.cli.tasks` says which they are.
    """

    name: str
    module: str
    reads: tuple[str, ...]  # kinds of labelled files, by their names in `formats.recognising.Kind`
    expects: str  # those files in a few words, for errors
    description: str  # and in more words, for the help
    writes: str  # what predictions look like
    scores: str  # what evaluate tells
    losses: tuple[str, ...]  # what --loss takes, the default first
    reads_unlabelled: tuple[str, ...] = ()  # kinds of files that can be labelled only
    options: tuple[str, ...] = ()  # of those options of train that not every task has


class Estimator(NamedTuple):
    """A class for users, and where it lives."""

    name: str
    module: str
    task: Task | None = None
    is_saved: bool = True  # whether model files hold it


class SavedTuple(NamedTuple):
    """Where a NamedTuple lives, and what a file calls its items."""

    module: str
    items: str


TAG = Task(
    "tag",
    "cli.tasks.tag",
    reads=("COLUMNS", "CRFSUITE"),
    expects="CoNLL columns, one token on each line",
    description="CoNLL columns: one token per line, its fields separated by white space, an empty "
    "line between sequences. One column holds the labels (the last, unless --label-column says "
    "otherwise), the others make the features. Or data files of CRFsuite: a label and its "
    "attributes, with tabs between them.",
    writes="its columns with the predicted label as one more; for attributes the labels only",
    scores="accuracy, the most frequent confusions, and precision, recall and F1 of every label "
    "and, for labels such as B-NP, I-NP and O, of the chunks",
    losses=("hamming", "normalized-hamming", "zero-one"),
    options=(
        "intercept",
        "templates",
        "format",
        "label_column",
        "min_count",
        "constraints",
        "on_violation",
        "boundary_weights",
        "order",
        "separator",
    ),
)
MULTICLASS = Task(
    "multiclass",
    "cli.tasks.multiclass",
    reads=("SVMLIGHT",),
    expects="svmlight, a label and index:value pairs on each line",
    description="svmlight: a label and index:value pairs on each line.",
    writes="one label on each line",
    scores="accuracy, the most frequent confusions, and precision, recall and F1 of every class",
    losses=("zero-one",),
    reads_unlabelled=("UNLABELLED_SVMLIGHT",),
    options=("intercept",),
)

#: Those with a task first, in the order in which the command line names the tasks.
ESTIMATORS = (
    Estimator("SequenceTagger", "estimators.sequence", TAG),
    Estimator("MulticlassSVM", "estimators.multiclass", MULTICLASS),
    Estimator("DependencyParser", "estimators.dependency"),
    Estimator("GrammarParser", "estimators.grammar"),
    Estimator("MultilabelSVM", "estimators.multilabel"),
    Estimator("OrdinalSVM", "estimators.ordinal"),
    Estimator("PCFGParser", "estimators.grammar"),
    Estimator("RankSVM", "estimators.ranking"),
    Estimator("SequenceAligner", "estimators.alignment"),
    Estimator("SequenceSegmenter", "estimators.segments"),
    Estimator("SetMatcher", "estimators.matching"),
    Estimator("TreeLabeler", "estimators.tree"),
    Estimator("PerformanceSVM", "estimators.performance"),
    # Made of code of the user's own, which no file holds.
    Estimator("StructuralSVM", "estimators.structural", is_saved=False),
)

#: By name. Estimators may share a task.
TASKS = {entry.task.name: entry.task for entry in ESTIMATORS if entry.task is not None}

#: Other classes that model files hold: by ``to_state`` and ``from_state``; extractors that are not
#: fitted, by their parameters.
SAVED_VALUES = {
    "ClassFeatures": "features.class_features",
    "FeatureDictionary": "features.dictionary",
    "Taxonomy": "problems.classes.taxonomy",
    "WindowFeatures": "features.window",
}
#: NamedTuples that they hold.
SAVED_TUPLES = {
    "ArcTemplates": SavedTuple("problems.dependency.features", "groups"),
    "ChainConstraints": SavedTuple("problems.chain.problem", "masks"),
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
