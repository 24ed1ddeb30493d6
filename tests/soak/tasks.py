"""Every structure that the package learns."""

from .alignment_tasks import alignments, homologues
from .class_tasks import class_features, classes, own_problem, taxonomy
from .dependency_tasks import dependencies
from .grammar_tasks import grammars
from .label_tasks import chains, label_trees, parts
from .rank_tasks import grades, pairs_of_grades, rankings
from .sample_tasks import samples
from .set_tasks import label_sets, segments

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
    label_sets,
    segments,
    rankings,
    grades,
    pairs_of_grades,
    samples,
)
