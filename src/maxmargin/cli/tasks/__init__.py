"""The tasks of the command line, a file each: what it reads, trains, writes and scores.

Every start of the command line imports these files; they import estimators and all that is numeric
in functions, when they are called.
"""

from ..task import Task
from . import (
    align,
    depend,
    label_tree,
    measure,
    multiclass,
    multilabel,
    ordinal,
    parse,
    rank,
    segment,
    tag,
)

__all__ = ["TASKS", "Task"]

_MODULES = (
    *(tag, segment, multiclass, multilabel, ordinal, rank),
    *(measure, depend, parse, align, label_tree),
)
#: By name, in the order in which the help lists them.
TASKS: dict[str, Task] = {module.TASK.name: module.TASK for module in _MODULES}
