"""Estimators, what the command line does with them, and what their files may hold: one entry each.

``import maxmargin``, model files, the command line and the tests read these lists; an estimator is
added by an entry here. Modules stand as text, relative to the package, and are imported when they
are first used: every start of the command line reads this file.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

from .defaults import MEASURE_TOL, TOL

__all__ = [
    "ESTIMATORS",
    "SAVED_TUPLES",
    "SAVED_VALUES",
    "TASKS",
    "Estimator",
    "Task",
    "entry_of",
    "import_name",
    "task_of",
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
    losses: tuple[str, ...]  # what --loss takes, the default first; without any, there is no --loss
    unit: str  # what a stream is cut into, by its name in `cli.chunks`
    answers: tuple[str, ...] = ()  # "k", "scores", "confidence", where predict has these options
    reads_unlabelled: tuple[str, ...] = ()  # kinds of files that can be labelled only
    options: tuple[str, ...] = ()  # of those options of train that not every task has
    tol: float = TOL  # where training stops unless --tol says otherwise
    streams: bool = False  # whether train has --stream, for data larger than memory


class Estimator(NamedTuple):
    """A class for users, and where it lives."""

    name: str
    module: str
    task: Task | None = None
    is_saved: bool = True  # whether model files hold it
    report: str = "losses"  # its outputs, as `maxmargin.report.subjects` describes them


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
    unit="block",
    answers=("k", "scores", "confidence"),
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
        "calibrate",
    ),
    streams=True,
)
SEGMENT = Task(
    "segment",
    "cli.tasks.segment",
    reads=("COLUMNS",),
    expects="CoNLL columns, one token on each line",
    description="Columns as for tag, with labels that tell segments: O, and B-TYPE and I-TYPE (or "
    "IOBES). Whole segments are scored, with their lengths.",
    writes="its columns with a column of B-, I- and O labels as one more",
    scores="precision, recall and F1 of the segments of every type, as conlleval has them",
    losses=("segments", "hamming", "f1", "zero-one"),
    unit="block",
    options=(
        "intercept",
        "templates",
        "label_column",
        "min_count",
        "max_length",
        "on_violation",
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
    unit="line",
    answers=("k", "scores", "confidence"),
    reads_unlabelled=("UNLABELLED_SVMLIGHT",),
    options=("intercept", "calibrate"),
)
MULTILABEL = Task(
    "multilabel",
    "cli.tasks.multilabel",
    reads=("MULTILABEL", "SVMLIGHT"),
    expects="svmlight, labels between commas and index:value pairs on each line",
    description="svmlight with any number of labels between commas before the pairs of a line, "
    "none included: 1,3,7 2:0.5 9:1.",
    writes="the labels, between commas, on each line",
    scores="labels all right, Hamming loss, F1 of examples, micro and macro averages, and "
    "precision, recall and F1 of every label",
    losses=("hamming", "f1", "zero-one"),
    unit="line",
    answers=("scores",),
    reads_unlabelled=("UNLABELLED_SVMLIGHT",),
    options=("intercept", "edges"),
)
ORDINAL = Task(
    "ordinal",
    "cli.tasks.ordinal",
    reads=("SVMLIGHT",),
    expects="svmlight, a grade and index:value pairs on each line",
    description="svmlight with a grade first on each line: whole numbers, or words in the order of "
    "--grades.",
    writes="one grade on each line",
    scores="mean absolute error, accuracy, quadratically weighted kappa, and precision, recall and "
    "F1 of every grade",
    losses=("absolute", "pairs"),
    unit="line",
    answers=("scores",),
    reads_unlabelled=("UNLABELLED_SVMLIGHT",),
    options=("grades",),
)
RANK = Task(
    "rank",
    "cli.tasks.rank",
    reads=("LETOR", "QUERIES"),
    expects="svmlight with queries, a relevance, qid: and index:value pairs on each line",
    description="svmlight with queries, as LETOR and SVM-rank have it: a relevance, qid:N and the "
    "pairs of a document on each line.",
    writes="the score of each document on a line",
    scores="NDCG at 1, 3, 5 and 10, MAP, and the share of pairs in the right order",
    losses=("swaps", "normalized-swaps", "ndcg", "average-precision"),
    unit="line",
    answers=("scores",),
    reads_unlabelled=("UNLABELLED_SVMLIGHT",),
    options=("k",),
)
MEASURE = Task(
    "measure",
    "cli.tasks.measure",
    reads=("SVMLIGHT",),
    expects="svmlight, one of two classes and index:value pairs on each line",
    description="svmlight with two classes, the larger label the positive one; training is for the "
    "--measure of the whole file.",
    writes="one class on each line; for measures of rankings, scores",
    scores="the measure trained for, accuracy, precision, recall, F1, precision at the break-even "
    "point, area under the ROC curve and average precision",
    losses=(),
    unit="line",
    answers=("scores",),
    reads_unlabelled=("UNLABELLED_SVMLIGHT",),
    options=("intercept", "measure", "k", "beta", "floor"),
    tol=MEASURE_TOL,
)
DEPEND = Task(
    "depend",
    "cli.tasks.depend",
    reads=("CONLLU",),
    expects="CoNLL-U, ten columns between tabs for each word",
    description="CoNLL-U: ten columns between tabs for each word, an empty line between sentences. "
    "Trees are learned from FORM, UPOS and XPOS.",
    writes="the file with HEAD and DEPREL filled in",
    scores="unlabelled and labelled attachment (UAS, LAS) of all words and without punctuation, "
    "sentences right, and labelled attachment of every relation",
    losses=("hamming", "normalized-hamming", "zero-one"),
    unit="sentence",
    answers=("k", "scores"),
    options=("projective", "on_violation", "relations", "hash_bits"),
)
PARSE = Task(
    "parse",
    "cli.tasks.parse",
    reads=("TREES",),
    expects="trees in brackets, (S (NP (DT the) (NN cat)) ...)",
    description="Trees in brackets as in the Penn Treebank, on one line or several; null elements "
    "and function tags are left out. What is predicted may also be columns, word and tag on each "
    "line.",
    writes="a tree on each line",
    scores="precision, recall and F1 of labelled constituents, as EVALB has them, and exact "
    "matches, of all sentences and of those of up to 40 words",
    losses=("f1", "zero-one"),
    unit="tree",
    answers=("k", "scores"),
    reads_unlabelled=("COLUMNS",),
    options=("terminals", "horizontal", "vertical", "span_features", "lexical_features"),
)
ALIGN = Task(
    "align",
    "cli.tasks.align",
    reads=("FASTA",),
    expects="FASTA, sequences with - for gaps, a line with # before each alignment",
    description="Aligned FASTA: the sequences below a line that begins with # are one alignment, "
    "of which every two rows are an example. To be aligned, sequences need no gaps.",
    writes="FASTA, the two rows of every pair below a line with # and their names",
    scores="the share of pairs of letters found, precision, recall and F1 of pairs, and exact "
    "matches",
    losses=("pairs", "residues", "zero-one"),
    unit="titled",
    answers=("k", "scores"),
    options=("mode", "gaps", "symmetric"),
)
LABEL_TREE = Task(
    "label-tree",
    "cli.tasks.label_tree",
    reads=("LABEL_TREES",),
    expects="label trees, on each line number, head and label of a node and index:value pairs",
    description="Examples that all have one tree, an empty line between them: on each line the "
    "number of a node, that of its head (0: root; _ on all lines: the tree is learned), its label "
    "(_: not known) and its features, 2 1 adult 3:0.5 7:1.",
    writes="the file with the labels filled in",
    scores="nodes and trees right, the accuracy of each node, and precision, recall and F1 of "
    "every label",
    losses=("hamming", "normalized-hamming", "zero-one"),
    unit="commented block",
    answers=("k", "scores"),
    options=("intercept",),
)

#: Those with a task first, in the order in which the command line names the tasks.
ESTIMATORS = (
    Estimator("SequenceTagger", "estimators.sequence", TAG, report="sequences"),
    Estimator("SequenceSegmenter", "estimators.segments", SEGMENT, report="segments"),
    Estimator("MulticlassSVM", "estimators.multiclass", MULTICLASS, report="classes"),
    Estimator("MultilabelSVM", "estimators.multilabel", MULTILABEL, report="sets"),
    Estimator("OrdinalSVM", "estimators.ordinal", ORDINAL, report="classes"),
    Estimator("RankSVM", "estimators.ranking", RANK, report="rankings"),
    Estimator("PerformanceSVM", "estimators.performance", MEASURE, report="measures"),
    Estimator("DependencyParser", "estimators.dependency", DEPEND, report="dependencies"),
    Estimator("GrammarParser", "estimators.grammar", PARSE, report="parses"),
    Estimator("PCFGParser", "estimators.grammar", PARSE, report="parses"),
    Estimator("SequenceAligner", "estimators.alignment", ALIGN, report="alignments"),
    Estimator("TreeLabeler", "estimators.tree", LABEL_TREE, report="trees"),
    Estimator("SetMatcher", "estimators.matching", report="matchings"),
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
    "WindowFeatures": "features.window.features",
}
#: NamedTuples that they hold.
SAVED_TUPLES = {
    "ArcTemplates": SavedTuple("problems.dependency.features", "groups"),
    "ChainConstraints": SavedTuple("problems.chain.constraints", "masks"),
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
    return cls.__name__ if entry is None or entry.task is None else entry.task.name
