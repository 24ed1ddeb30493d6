"""A fit is all or nothing: it replaces the model of before as a whole, or leaves it as it was."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._compiling import compiling_for
from ..progress import running_clock
from ..registry import task_of
from .sklearn_callbacks import console_callbacks

__all__ = ["TransactionalFit"]


class TransactionalFit:
    """Base class whose ``fit`` and ``partial_fit``, also those of subclasses, work on a draft.

    A draft is a shallow copy of the estimator. What a fit has set or removed there is taken over in
    one step when it returns, so that neither an error on the way nor a callback that predicts ever
    meets half of a new model with half of the old one. What the old model's attributes refer to
    must not be changed in place. An error that is to leave the new model there, such as that of an
    interrupt after which the best weights so far are kept, is raised by `_after_fit`.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("fit", "partial_fit"):
            if name in cls.__dict__:
                method = cls.__dict__[name]
                if hasattr(method, "method"):  # an OnlineMethod
                    method.method = _on_a_copy(method.method)
                else:
                    setattr(cls, name, _on_a_copy(method))

    def _before_fit(self) -> None:
        """Called before a fit: raises for parameters that are none."""

    def _after_fit(self) -> None:
        """Called when a fit has been taken over."""


def _on_a_copy(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method change a draft of the estimator, and take the changes over if it returns."""
    fit_copy = console_callbacks(fit) if fit.__name__ == "fit" else fit

    @functools.wraps(fit)
    def fit_all_or_nothing(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "_is_draft" in vars(self):  # called by the fit of a subclass
            return fit(self, *args, **kwargs)
        self._before_fit()
        before = dict(vars(self))
        draft = object.__new__(type(self))
        draft.__dict__.update(before, _is_draft=True)
        verbose = int(getattr(self, "verbose", 0)) if fit.__name__ == "fit" else 0
        with compiling_for(task_of(type(self))), running_clock("features", verbose):
            returned = fit_copy(draft, *args, **kwargs)
        after = vars(draft)
        after.pop("_is_draft")
        changed = {name: after[name] for name in after if after[name] is not before.get(name, self)}
        # Not all of it comes from the draft: a callback may have set attributes of the estimator.
        stays = {
            name: value for name, value in vars(self).items() if name in after or name not in before
        }
        self.__dict__ = {**stays, **changed}
        self._after_fit()
        return self if returned is draft else returned

    return fit_all_or_nothing
