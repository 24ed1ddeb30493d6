"""Online learning of chains: decode a sequence, change the weights, go on to the next."""

from __future__ import annotations

import numpy as np

from ..._jit import kernel
from ...engine.online_steps import SCALE, single_step
from .kernels import add_loss, chain_scores, fill_potentials, loss_of, viterbi, write_difference


@kernel
def chain_online(chain, examples, weights, forbidden, rule, state, work, row):
    """A step of an online solver for each sequence, at the weights the one before has left.

    The candidate of a sequence is its best labelling (``rule.plain``), or maximises
    ``Delta - <dpsi, w>``; its plane is (Delta, dpsi). With w = scale * v the latter is found at v
    with Delta / scale, so w itself is never made.

    In: ``chain`` (ChainData), ``weights`` of all examples, ``forbidden`` (K + 2, K) with -inf for
    forbidden transitions, first and last labels and 0 elsewhere. ``work`` (ChainScratch) and
    ``row`` (Planes for the longest row) are scratch. ``state`` is changed.
    """
    K = chain.n_labels
    v = state.v
    transition = np.empty((K, K))
    for r in range(len(examples)):
        i = examples[r]
        first = chain.offsets[i]
        length = chain.offsets[i + 1] - first
        gold = chain.labels[first : first + length]
        fill_potentials(chain, v, forbidden, transition, work.start, work.stop)
        chain_scores(chain.rows, first, length, v, K, work.start, work.stop, work.unary)
        loss_unit = 1.0 / length if chain.normalized else 1.0
        if not rule.plain:
            unit_at_v = loss_unit / state.numbers[SCALE]
            add_loss(chain, work.unary, first, length, gold, unit_at_v)
        viterbi(work.unary, length, transition, K, work.forward, work.path)
        row.indptr[1] = 0
        wrong, loss = loss_of(chain, first, length, gold, work.path, loss_unit)
        if wrong > 0:
            row.indptr[1] = write_difference(chain, first, length, gold, work.path, False, row, 0)
        single_step(row, 0, i, loss, loss, 1.0, weights[i], rule, state)
