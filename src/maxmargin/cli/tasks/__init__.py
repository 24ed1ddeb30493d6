"""The tasks of the command line: what each reads, trains, writes and scores.

Every start of the command line imports these files; they import estimators and all that is numeric
in functions, when they are called.
"""

from ..task import Task
from .align import ALIGN
from .classes import MULTICLASS, MULTILABEL, ORDINAL
from .label_tree import LABEL_TREE
from .scores import MEASURE, RANK
from .sequences import SEGMENT, TAG
from .trees import DEPEND, PARSE

__all__ = ["TASKS", "Task"]

_TASKS = (
    *(TAG, SEGMENT, MULTICLASS, MULTILABEL, ORDINAL, RANK),
    *(MEASURE, DEPEND, PARSE, ALIGN, LABEL_TREE),
)
#: By name, in the order in which the help lists them.
TASKS: dict[str, Task] = {task.name: task for task in _TASKS}
