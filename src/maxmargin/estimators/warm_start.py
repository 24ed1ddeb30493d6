"""What a training takes from earlier ones: a warm start, a fitted model as prior, logged calls.

Calls of `partial_fit` are kept in a file. After a crash the same calls are made again, from the
first one on. Those that the file has return at once, with what the last of them left; from there
training resumes, bit-identical.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..checkpoints import Checkpoint
from ..core.formulation import Formulation
from ..core.problem import Problem
from ..core.result import Result
from ..core.weight_constraints import WeightConstraints
from ..engine.training.state import Arrays, add_prefix, from_file, from_text, strip_prefix, to_text
from ..engine.training.state import fingerprint as content_of
from ..solvers.checkpoint_group import result_arrays, result_of
from ..solvers.online.learner import Learner, Seen
from ..solvers.online.solver import OnlineSolver
from ..utils.schema import as_annotated
from ..utils.sparse_format import check_sparse
from ..utils.types import Floats
from .parameters import training_options

__all__ = [
    "Kept",
    "PartialFitLog",
    "all_classes",
    "beginning",
    "check_prior",
    "fingerprint",
    "one_pass",
    "open_log",
    "prior_mean",
]


class Kept(NamedTuple):
    """What a warm start needs of the fit before.

    The problem may refer to arrays of the user, who may have written to them since; ``held`` is
    what it had in it then.
    """

    fingerprint: str
    problem: Problem
    held: str | None

    @classmethod
    def of(cls, fingerprint: str, problem: Problem) -> Kept:
        """A problem as it is now, of data with this fingerprint."""
        return cls(fingerprint, problem, content_of(problem))

    @property
    def is_untouched(self) -> bool:
        """Whether the problem is still that of the fit before."""
        return self.held is not None and content_of(self.problem) == self.held

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, as the hash of equal objects differs where they share others."""
        return _copied, (self.fingerprint, self.problem, self.is_untouched)


def _copied(fingerprint: str, problem: Problem, is_untouched: bool) -> Kept:
    """What was kept, out of a pickle."""
    return Kept(fingerprint, problem, content_of(problem) if is_untouched else None)


def beginning(earlier: Result | None) -> Result | None:
    """Where training goes on from, which it changes: an online learner is copied, planes are not.

    Planes may be large, and can be found again.
    """
    if earlier is None or not isinstance(earlier.state, Learner):
        return earlier
    return dataclasses.replace(earlier, state=earlier.state.copy())


def fingerprint(*parts: Any) -> str:
    """Hash of the content of arrays, matrices and small values."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        if sp.issparse(part):
            arrays = [part.data, part.indices, part.indptr]
            digest.update(f"sparse{part.shape}".encode())
        elif isinstance(part, np.ndarray) and part.dtype != object:
            arrays = [part]
        else:
            arrays = []
            digest.update(part if isinstance(part, bytes) else repr(part).encode())
        for array in arrays:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


# ----- priors: fitted models that others are to differ from as little as they can -----------------


def check_prior(prior: Any, estimator: Any, same: tuple[str, ...]) -> None:
    """Raise ValueError unless a prior is a fitted model of the kind that these parameters make."""
    check_sparse(prior, "prior")
    kind = type(estimator).__name__
    if not isinstance(prior, type(estimator)):
        raise ValueError(f"prior must be a fitted {kind}, got {prior!r:.60}")
    prior._check_fitted()
    for name in same:
        own, other = getattr(estimator, name), getattr(prior, name)
        if own is not other and own != other:
            raise ValueError(
                f"prior must have been fitted with the same {name}: {own!r:.40}, got {other!r:.40}"
            )


def all_classes(seen: NDArray[Any], known: NDArray[Any]) -> NDArray[Any]:
    """The classes of some data and those that a prior knows; ValueError if they cannot be mixed."""
    try:
        together = np.union1d(seen, known)
        texts = [classes.dtype.kind in "US" for classes in (seen, known, together)]
        lost = texts[2] and not (texts[0] and texts[1])
    except TypeError:  # of objects that have no order
        lost = True
    if lost:  # numbers would have become strings
        raise ValueError(
            f"y has classes such as {seen.tolist()[0]!r:.40}, but those of the prior are of "
            f"another type, such as {known.tolist()[0]!r:.40}"
        )
    return together


def prior_mean(mean: Floats | None) -> WeightConstraints | None:
    """Constraints with this mean, if there is one."""
    if mean is None:
        return None
    return WeightConstraints(mean=np.ascontiguousarray(mean, dtype=np.float64))


@dataclass(frozen=True)
class PartialFitLog:
    """Calls of `partial_fit` so far, and the file that keeps them.

    Attributes
    ----------
    file : Checkpoint
        Where they are kept.
    calls : tuple of str
        What each of them was given, as a hash.
    done : tuple of str
        The same of those that were in the file.
    found : dict of str to array
        What the file has of the last of these, until that is reached.
    ended : bool
        Whether a call was interrupted: what comes after would not be found again.
    """

    file: Checkpoint
    calls: tuple[str, ...]
    done: tuple[str, ...]
    found: Arrays
    ended: bool = False

    @classmethod
    def at(
        cls, path: str | os.PathLike[str], every: float, identity: dict[str, str], resume: bool
    ) -> PartialFitLog:
        """A stream at its beginning, with what the file has if that is to be gone on with."""
        file = Checkpoint(path, every, identity)
        found = file.load() if resume else None
        if found is None:
            return cls(file, (), (), {})
        arrays, _ = found
        with from_file(file.path):
            calls = as_annotated(from_text(arrays["stream"])["calls"], tuple[str, ...], "calls")
        return cls(file, (), calls, arrays)

    def is_at(self, path: str | os.PathLike[str]) -> bool:
        """Whether this is where the stream is kept."""
        return self.file.path == os.path.realpath(path)

    def has(self, call: str) -> bool:
        """Whether the file has the next call, which is this one; ValueError for another one."""
        k = len(self.calls)
        if k >= len(self.done):
            return False
        if call != self.done[k]:
            raise ValueError(
                f"{self.file.path}: the checkpoint has {len(self.done)} calls of partial_fit, and "
                f"number {k + 1} is not this one. To resume, make the same calls from the first "
                "one on, with the same examples and parameters; calls that are already done "
                "return at once. To train on other examples remove the file, or set resume=False"
            )
        return True

    def result(self, solver: OnlineSolver, problem: Problem, formulation: Formulation) -> Result:
        """What the last of the calls in the file has returned, and left for the next one."""
        n_features = int(problem.n_features or 0)
        with from_file(self.file.path):
            result = result_of(strip_prefix("result", self.found))
            if len(result.w) != n_features:
                raise ValueError(f"result.w: expected {n_features} weights, found {len(result.w)}")
            learner = strip_prefix("learner", self.found)
            state = solver.learner_of(learner, n_features, formulation.constraints)
        return replace(result, state=state)

    def followed_by(self, call: str, result: Result, before: Result | None) -> PartialFitLog:
        """The stream after one more call; it is written where it is time to.

        Of a call that was interrupted nothing is kept, but all that was ``before``.
        """
        if self.ended:
            return self
        if len(self.calls) < len(self.done):
            calls = (*self.calls, call)
            return replace(self, calls=calls, found=self.found if calls != self.done else {})
        if result.status == "interrupted":
            if before is not None and self.calls:
                self._write(before)
            return replace(self, ended=True)
        after = replace(self, calls=(*self.calls, call))
        if self.file.is_due:
            after._write(result)
        return after

    def _write(self, last: Result) -> None:
        """Write what the last call has left."""
        assert isinstance(last.state, Learner)
        told = {"stream": to_text({"calls": self.calls})}
        learner = add_prefix("learner", last.state.arrays())
        self.file.write({**told, **add_prefix("result", result_arrays(last)), **learner})


def open_log(
    model: Any, solver: OnlineSolver, problem: Problem, formulation: Formulation
) -> tuple[PartialFitLog | None, dict[str, str]]:
    """What keeps the calls of `partial_fit`, if they are kept, and what they depend on."""
    options = training_options(model.training)
    if options.checkpoint is None:
        return None, {}
    settings = solver.settings(problem, formulation, float(model.C))
    log: PartialFitLog | None = getattr(model, "_stream", None)
    if log is None or not log.is_at(options.checkpoint):
        earlier: Result | None = getattr(model, "_online", None)
        if earlier is not None:
            assert isinstance(earlier.state, Learner)
            before = fingerprint(*earlier.state.arrays().values())
        else:
            before = fingerprint(model._weights) if hasattr(model, "result_") else "none"
        identity = {
            "method": "partial_fit",
            **settings,
            "weights before the first call": before,
        }
        place, every = options.checkpoint, float(options.checkpoint_every)
        log = PartialFitLog.at(place, every, identity, bool(options.resume))
    return log, settings


def one_pass(
    model: Any,
    solver: OnlineSolver,
    problem: Problem,
    formulation: Formulation,
    content: str,
    sample_weight: Floats | None,
    earlier: Result | None,
) -> Result:
    """One more pass over examples, from an earlier result or from the weights there are."""
    if earlier is not None:
        assert isinstance(earlier.state, Learner)
        if content in earlier.state.seen.contents:
            earlier.state.counted = problem
    elif hasattr(model, "result_") and model._n_weights() == problem.n_features:
        n = model.result_.n_examples
        seen = Seen(count=float(n), weight=float(n))
        earlier = replace(model.result_, w=model._weights, state=seen)
    result = solver.solve(
        problem,
        formulation,
        float(model.C),
        sample_weight=sample_weight,
        warm_start=earlier,
        callbacks=tuple(training_options(model.training).callbacks),
    )
    assert isinstance(result.state, Learner)
    result.state.seen.contents.add(content)
    result.state.forget_examples()
    return result
