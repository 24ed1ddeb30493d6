"""Every structure that the package learns."""

from alignment_tasks import alignments, homologues
from class_tasks import class_features, classes, own_problem, taxonomy
from dependency_tasks import dependencies
from grammar_tasks import grammars
from label_tasks import chains, label_trees, parts

TASKS = (
    classes,
    chains,
    dependencies,
    label_trees,
    alignments,
    own_problem,
    grammars,
    taxonomy,
    parts,
    homologues,
    class_features,
)
