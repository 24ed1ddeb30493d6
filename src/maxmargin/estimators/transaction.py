"""A fit is all or nothing: it replaces the model of before as a whole, or leaves it as it was.

Callbacks of scikit-learn 1.9 and later (``set_callbacks``) hear of it, beside those of the package:
a fit is their root task, every iteration of the solver a subtask; a callback that returns True at
the end of an iteration ends training, as our own do. Weights on the way are not shown to anybody,
so ``fitted_estimator`` is there at the end of the fit, and None at that of an iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..core.result import Callback, Progress
from ..jit.compiling import compiling_for
from ..progress import running_clock
from ..registry import task_of

__all__ = ["transaction"]

Value = TypeVar("Value")
Work = Callable[[Any, tuple[Callback, ...]], Value]


def transaction(
    estimator: Any, work: Work[Value], *, verbose: int = 0, heard: dict[str, Any] | None = None
) -> Value:
    """Let a function change a draft of the estimator, and take the changes over if it returns.

    A draft is a shallow copy of the estimator. What was set or removed there is taken over in one
    step, so that neither an error on the way nor a callback that predicts ever meets half of a new
    model with half of the old one. What the old model's attributes refer to must not be changed in
    place.

    Parameters
    ----------
    estimator : estimator
        What is fitted.
    work : callable
        ``work(draft, callbacks)``; the callbacks are to be called in every iteration.
    verbose : int
        How much of the progress is shown.
    heard : dict, optional
        The arguments of the fit, for callbacks of scikit-learn; None where they hear of nothing.

    Returns
    -------
    object
        What ``work`` has returned.
    """
    before = dict(vars(estimator))
    draft = object.__new__(type(estimator))
    draft.__dict__.update(before)
    has_listeners = "_skl_callbacks" in before or "_parent_callback_ctx" in before
    with compiling_for(task_of(type(estimator))), running_clock("features", verbose):
        if heard is not None and has_listeners:
            returned = _heard(draft, work, heard)
        else:
            returned = work(draft, ())
    after = vars(draft)
    changed = {
        name: after[name] for name in after if after[name] is not before.get(name, estimator)
    }
    # Not all of it comes from the draft: a callback may have set attributes of the estimator.
    stays = {
        name: value
        for name, value in vars(estimator).items()
        if name in after or name not in before
    }
    estimator.__dict__ = {**stays, **changed}
    return returned


def _heard(draft: Any, work: Work[Value], arguments: dict[str, Any]) -> Value:
    """Work of which scikit-learn's callbacks hear."""
    from sklearn.callback import with_callbacks

    metadata = {k: v for k, v in arguments.items() if k not in ("X", "y") and v is not None}
    data = {"X": arguments.get("X"), "y": arguments.get("y"), "metadata": metadata or None}

    def run(draft: Any) -> Value:
        context = draft._init_callback_context(max_subtasks=None)

        def hear(progress: Progress) -> bool:
            inner = context.subcontext(task_name="iteration")
            inner.call_on_fit_task_begin(estimator=draft, **data)
            return bool(inner.call_on_fit_task_end(estimator=draft, **data))

        context.call_on_fit_task_begin(estimator=draft, **data)
        returned = work(draft, (hear,))
        context.call_on_fit_task_end(
            estimator=draft, reconstruction_attributes=lambda: _learned(draft), **data
        )
        return returned

    returned: Value = with_callbacks(run)(draft)
    return returned


def _learned(draft: Any) -> dict[str, Any]:
    """Attributes that are not parameters, nor the callbacks' own."""
    own = ("_skl_callbacks", "_skl_callbacks_to_teardown")
    parameters = draft.get_params(deep=False)
    return {
        name: value
        for name, value in vars(draft).items()
        if name not in parameters and name not in own and "_callback_" not in name
    }
