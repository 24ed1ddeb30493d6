"""Online learning of chains: decode a sequence, change the weights, go on to the next."""

from __future__ import annotations

from ..._jit import kernel
from ...engine.online_steps import SCALE, single_step
from .kernels import chain_scores, viterbi, write_difference


@kernel
def chain_online(chain, examples, weights, barred, rule, state, work, row):
    """A step of an online solver for each sequence, at the weights the one before has left.

    The candidate of a sequence is its best labelling (``rule.plain``), or maximises
    ``Delta - <dpsi, w>``; its plane is (Delta, dpsi). With w = scale * v the latter is found at v
    with Delta / scale, so w itself is never made.

    In: ``chain`` (ChainData), ``weights`` of all examples, ``barred`` (K + 2, K) with -inf for
    forbidden transitions, first and last labels and 0 elsewhere. ``work`` (ChainScratch) and
    ``row`` (Planes with room for the longest row) are scratch. ``state`` is changed.
    """
    K = chain.n_labels
    v = state.v
    first_transition = chain.n_inputs * K
    first_start = first_transition + K * K
    transition = barred[:K].copy()
    for r in range(len(examples)):
        i = examples[r]
        first = chain.offsets[i]
        length = chain.offsets[i + 1] - first
        truth = chain.labels[first : first + length]
        for j in range(K):
            base = first_transition + j * K
            for k in range(K):
                transition[j, k] = v[base + k] + barred[j, k]
        for k in range(K):
            work.start[k] = barred[K, k]
            work.stop[k] = barred[K + 1, k]
            if chain.boundary:
                work.start[k] += v[first_start + k]
                work.stop[k] += v[first_start + K + k]
        chain_scores(chain.rows, first, length, v, K, work.start, work.stop, work.unary)
        loss_unit = 1.0 / length if chain.normalized else 1.0
        if not rule.plain:
            scaled = loss_unit / state.numbers[SCALE]
            for t in range(length):
                for k in range(K):
                    work.unary[t, k] += scaled
                work.unary[t, truth[t]] -= scaled
        viterbi(work.unary, length, transition, K, work.forward, work.path)
        wrong = 0
        for t in range(length):
            if work.path[t] != truth[t]:
                wrong += 1
        row.indptr[1] = 0
        loss = 0.0
        if wrong > 0:
            loss = 1.0 if chain.zero_one else wrong * loss_unit
            row.indptr[1] = write_difference(chain, first, length, truth, work.path, False, row, 0)
        single_step(row, 0, i, loss, loss, 1.0, weights[i], rule, state)
