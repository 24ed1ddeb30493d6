"""The rescaled violation of a candidate, for kernels; `Formulation.plane_terms` is its numpy form.

The plane of a candidate y with the loss Delta is (b, scale * dpsi), and its violation

    b - <a, w> = b + scale * gain,    gain = <w, psi(x, y)> - <w, psi(x, y_i)> = -<dpsi, w>.

A `mode` says how losses become planes: anything with ``slack`` and ``sqrt_loss``, such as
`modes.SearchMode`. Without rescaling every candidate has the loss 1 and neither is set.
"""

from __future__ import annotations

import math

from ..jit.decorator import kernel


@kernel(inline=True)
def plane_terms(loss, mode):
    """Offset b and scale of the plane of a candidate with this loss."""
    offset = math.sqrt(loss) if mode.sqrt_loss else loss
    return offset, offset if mode.slack else 1.0


@kernel(inline=True)
def plane_value(offset, scale, gain):
    """Violation of a plane whose terms are known."""
    return offset + scale * gain


@kernel(inline=True)
def violation(loss, gain, mode):
    """Violation of a candidate."""
    offset, scale = plane_terms(loss, mode)
    return plane_value(offset, scale, gain)
