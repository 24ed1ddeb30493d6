"""When more iterations would change nothing: the end of training that no limit ends."""

from __future__ import annotations

from collections.abc import Callable

from ...core.objective import Certificate, Stopping
from ...utils.schema import Count, Number
from .state import OWN, Checkpointable, declare_state

__all__ = ["ROUNDING", "BoundGap", "Plateau", "StallDetector"]

WINDOW = 20  # iterations in which something has to move
LESS = 0.99  # of the gap: this counts as a move
RISE = 1e-14  # relative rise of the dual value that does: more than rounding
PROGRESS = 1e-10  # relative rise of the dual value that needs no certificate to be believed
NO_BETTER = 3  # certificates in a row that are no better than one before
# The same, where bounds of the oracle keep the gap: they get better by leaps, as weights move.
NO_TIGHTER = 5
ROUNDING = 1e-9  # relative gap from which on rounding is what is left of it


class Plateau(Checkpointable):
    """Tells when a gap, or an estimate of it, has not fallen for a while."""

    state_fields = declare_state(_lowest=Number, _since=Count)

    def __init__(self) -> None:
        self._lowest = float("inf")
        self._since = 0

    def seen(self, gap: float, window: int = WINDOW) -> bool:
        """Take note of a gap; True every ``window`` times where it does not fall."""
        if gap < min(self._lowest, LESS * self._lowest):
            self._lowest, self._since = gap, 0
        else:
            self._since += 1
        return self._since > 0 and self._since % window == 0


class BoundGap(Checkpointable):
    """Tells when bounds of the oracle keep a gap from falling that its candidates would close."""

    state_fields = declare_state(_found=Number, _lowest=Number, _no_better=Count)

    def __init__(self) -> None:
        self._found = float("inf")  # lowest primal value by the candidates found alone
        self._lowest = float("inf")
        self._no_better = 0

    @property
    def lasts(self) -> bool:
        """Whether the gap has not fallen for a while, for the bounds alone."""
        return self._no_better >= NO_TIGHTER

    def note(self, primal: float, found: float, best: Certificate, stopping: Stopping) -> None:
        """Take note of a primal value, and of that by the candidates found; ``best`` is so far.

        It counts where candidates would do, and what bounds add is more than is allowed.
        """
        self._found = min(self._found, found)
        if stopping.is_satisfied(Certificate(primal, found)) or not stopping.is_satisfied(
            Certificate(found, best.dual)
        ):
            return
        if best.gap < min(self._lowest, LESS * self._lowest):
            self._lowest, self._no_better = best.gap, 0
        else:
            self._no_better += 1

    def part_of(self, certificate: Certificate) -> float | None:
        """How much of the gap of a certificate is due to the bounds; None without any."""
        if self._found == float("inf"):
            return None
        return max(0.0, min(certificate.primal - self._found, certificate.gap))

    def explains(self, certificate: Certificate, stopping: Stopping) -> bool:
        """Whether bounds alone are why a certificate does not meet the criterion."""
        feature_block = self.part_of(certificate)
        return feature_block is not None and not stopping.is_satisfied(
            Certificate(certificate.primal, certificate.primal - feature_block)
        )


class StallDetector(Checkpointable):
    """Tells when neither bound moves any more.

    Rounding ends all progress at last, at a gap that may be above the target: always where the
    target is 0. Until then every few iterations lower the gap or raise the dual value. (Not always
    both: where the dual is known to 16 digits the gap may have 8, and get smaller still.) Estimates
    of the gap may be too low once, and never again: where they do not fall certificates tell.
    """

    state_fields = declare_state(
        _plateau=OWN,
        _best=tuple[Number, Number] | None,
        _dual=Number | None,
        _no_better=Count,
    )

    def __init__(self) -> None:
        self._plateau = Plateau()
        self._best: Certificate | None = None  # or its two values, from arrays
        self._dual: float | None = None
        self._no_better = 0

    def seen(
        self,
        estimate: float,
        dual: float,
        certify: Callable[[], Certificate],
        negligible: bool = False,
    ) -> bool:
        """Take note of an iteration, with its gap as far as known; True if nothing moves.

        ``certify`` is a pass of true oracle calls; it is asked for only where estimates stay, and
        the dual value too. Where the gap may be ``negligible``, no more than rounding, nothing is
        waited for.
        """
        if not self._plateau.seen(estimate, 1 if negligible else WINDOW):
            return False
        before, self._dual = self._dual, dual
        if before is None or dual > before + PROGRESS * abs(before):
            return False
        best, now = self._best and Certificate(*self._best), certify()
        if (
            best is None
            or now.dual > best.dual + RISE * abs(best.dual)
            or now.gap < min(best.gap, LESS * best.gap)
        ):
            self._best, self._no_better = now, 0
            return False
        self._no_better += 1
        return self._no_better >= NO_BETTER
