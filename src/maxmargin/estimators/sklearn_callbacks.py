"""Callbacks of scikit-learn 1.9 and later (``set_callbacks``), beside those of the package.

A fit is their root task, every iteration of the solver a subtask; a callback that returns True at
the end of an iteration ends training, as our own do. Weights on the way are not shown to anybody,
so ``fitted_estimator`` is there at the end of the fit, and None at that of an iteration.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from ..result import Progress

__all__ = ["console_callbacks", "iteration_callback"]


class _Fit(NamedTuple):
    """The root task of a fit, and what it was given."""

    context: Any
    data: dict[str, Any]


def console_callbacks(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Let a fit of a draft tell scikit-learn's callbacks that it begins and ends."""
    names = inspect.signature(fit)

    def fit_with_callbacks(draft: Any, *args: Any, **kwargs: Any) -> Any:
        given = dict(names.bind(draft, *args, **kwargs).arguments)
        given.pop("self", None)
        metadata = {k: v for k, v in given.items() if k not in ("X", "y") and v is not None}
        data = {"X": given.get("X"), "y": given.get("y"), "metadata": metadata or None}
        context = draft._init_callback_context(max_subtasks=None)
        draft._told_fit = _Fit(context, data)
        try:
            context.call_on_fit_task_begin(estimator=draft, **data)
            returned = fit(draft, *args, **kwargs)
            context.call_on_fit_task_end(
                estimator=draft, reconstruction_attributes=lambda: _learned(draft), **data
            )
        finally:
            del draft._told_fit
        return returned

    @functools.wraps(fit)
    def fit_maybe_with_callbacks(draft: Any, *args: Any, **kwargs: Any) -> Any:
        has_callbacks = hasattr(draft, "_skl_callbacks") or hasattr(draft, "_parent_callback_ctx")
        if not has_callbacks:
            return fit(draft, *args, **kwargs)
        from sklearn.callback import with_callbacks

        return with_callbacks(fit_with_callbacks)(draft, *args, **kwargs)

    return fit_maybe_with_callbacks


def iteration_callback(draft: Any) -> tuple[Callable[[Progress], bool], ...]:
    """What tells scikit-learn's callbacks of iterations, if there are any."""
    told: _Fit | None = vars(draft).get("_told_fit")
    if told is None:
        return ()

    def tell(progress: Progress) -> bool:
        context = told.context.subcontext(task_name="iteration")
        context.call_on_fit_task_begin(estimator=draft, **told.data)
        return bool(context.call_on_fit_task_end(estimator=draft, **told.data))

    return (tell,)


def _learned(draft: Any) -> dict[str, Any]:
    """Attributes that are not parameters, nor the callbacks' own."""
    own = ("_is_draft", "_told_fit", "_skl_callbacks", "_skl_callbacks_to_teardown")
    parameters = draft.get_params(deep=False)
    return {
        name: value
        for name, value in vars(draft).items()
        if name not in parameters and name not in own and "_callback_" not in name
    }
