"""Dual coordinate descent on CoNLL-2000 and OCR letters.

Relative gap against passes and time of the three algorithms that Chang & Yih (2013) compare in
their Fig. 1, and the F1 of the best of them over their grid of C, with squared and with linear
slacks, next to the online solvers and python-crfsuite.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from maxmargin.core.formulation import Formulation
from maxmargin.solvers import solvers_for

from ..case import FORMULATION, Case, Contestant, Options, ProblemMaker, Target
from ..data import chain_problem
from ..peers import crfsuite
from ..solvers import ours
from . import conll2000, ocr_letters

L2 = Formulation(rescaling="margin", slack="l2", sqrt_loss=False)
FAMILY = ("dcd", "dcd_light", "cpd")
GAP = 0.01
MOST_PASSES = 60  # the slow ones are stopped here, and counted as if they had arrived
FIGURE_C = {"CoNLL-2000": 0.05, "OCR letters": 0.1}

GRID = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0)  # the paper's
ROUNDS = 25
GRID_GAP = 0.02  # F1 hardly changes beyond
L1 = FORMULATION  # not in the paper
# C of the grid by F1 on held-out parts of the training part (`held_out.py`); the test part had no
# say. There, linear slacks are the better ones.
BEST_C = {L2: 0.05, L1: 0.1}
BEST = L1
OTHERS = {  # solver, slacks and C: the best of those tried by the same protocol
    "dcd_light": ("dcd_light", L2, BEST_C[L2]),
    "cpd": ("cpd", L2, BEST_C[L2]),
    "perceptron": ("perceptron", L1, 1.0),  # has no use for C
    "mira": ("mira", L1, 0.01),
    "mira without a cap": ("mira", L1, 1e3),  # as in the paper, which did not choose its C
    "sgd": ("sgd", L1, 0.1),
}
NOISE = 0.12  # of F1 in %: two standard errors of a difference on these 2,012 sentences (bootstrap)


def cases(options: Options) -> Iterator[Case]:
    """The figure, then the grid of C."""
    chunking = conll2000.Chunking(options.quick)
    yield _figure("CoNLL-2000", chunking.problem, options)
    words = ocr_letters.without_fold(ocr_letters.load(), 0)
    if options.quick:
        words = ocr_letters.first(words, 60)
    problem = partial(chain_problem, words.pixels, words.offsets, words.letters, 26)
    yield _figure("OCR letters", problem, options)
    if "dcd" in options.of_ours(FAMILY):
        yield _grid(chunking, options)


def _figure(name: str, problem: ProblemMaker, options: Options) -> Case:
    """Who reaches a relative gap of 1 % in the fewest passes."""
    C = FIGURE_C[name]
    contestants = [
        ours(solver, problem, C, tol=GAP, max_passes=MOST_PASSES, formulation=L2, once=True)
        for solver in options.of_ours(FAMILY)
        if solver in solvers_for(L2)
    ]
    slower = [solver for solver in FAMILY if solver != "dcd"]
    return Case(
        f"{name}, squared slacks, C = {C:g}, gap {GAP:.0%}",
        contestants,
        [
            *(
                Target(
                    f"passes of dcd / {solver}",
                    "dcd",
                    "passes",
                    f"{solver}, same run, at most {MOST_PASSES} passes",
                    at_most=1.0,
                    relative_to=(solver, "passes"),
                )
                for solver in slower
            ),
            *(
                Target(f"{solver}: {what}", solver, measure, unit=unit)
                for solver in FAMILY
                for what, measure, unit in (
                    ("passes", "passes", ""),
                    ("time", "cpu", "s"),
                    ("relative gap", "relative_gap", ""),
                )
            ),
        ],
        problem,
        C,
        formulation=L2,
    )


def _grid(data: conll2000.Chunking, options: Options) -> Case:
    """F1 and time of ``dcd`` for every C of the paper, next to its family and a peer."""
    grid = [(slack, C) for slack in BEST_C for C in GRID]
    contestants: list[Contestant] = [
        ours(
            "dcd",
            data.problem,
            C,
            tol=GRID_GAP,
            max_passes=ROUNDS,
            formulation=slack,
            label=_label(slack, C),
            once=C != BEST_C[slack],
        )
        for slack, C in grid
    ]
    others = {
        label: other
        for label, other in OTHERS.items()
        if options.solvers is None or other[0] in options.solvers
    }
    contestants += [
        ours(
            name,
            data.problem,
            C,
            tol=GRID_GAP if name in FAMILY else None,
            max_passes=ROUNDS,
            formulation=slack,
            label=label,
            once=True,
        )
        for label, (name, slack, C) in others.items()
    ]
    peer = f"crfsuite {ROUNDS} rounds"
    if options.peers and crfsuite.is_installed():
        read_train = partial(conll2000.read, "train", data.limit)
        contestants.append(crfsuite.averaged_perceptron(read_train, data.test, ROUNDS))
    return Case(
        f"CoNLL-2000 dcd, at most {ROUNDS} passes",
        contestants,
        [
            *(target for slack, C in grid for target in _of_grid(slack, C, peer)),
            *(target for name in (*others, peer) for target in _of_other(name)),
            Target(f"{peer}: training", peer, "training_cpu", unit="s"),
            Target(f"{peer}: reading and loading", peer, "loading_cpu", unit="s"),
        ],
        decode=data.decode,
        truth=data.truth,
    )


def _label(slack: Formulation, C: float) -> str:
    """Name of a contestant."""
    return f"dcd {slack.slack} C = {C:g}"


def _of_grid(slack: Formulation, C: float, peer: str) -> Iterator[Target]:
    """What is reported of one C; the limits are for the best one."""
    label, best = _label(slack, C), slack == BEST and C == BEST_C[slack]
    yield Target(
        f"{label}: F1",
        label,
        "f1",
        "SVM-HMM: 93.77" if best else "",
        "%",
        at_least=93.75 if best else None,
    )
    yield Target(f"{label}: passes", label, "passes")
    if C == BEST_C[slack]:
        yield Target(
            f"{label}: time / crfsuite's training",
            label,
            "cpu",
            "crfsuite, same run",
            at_most=1.0,
            relative_to=(peer, "training_cpu"),
        )


def _of_other(name: str) -> Iterator[Target]:
    """F1 of the rest of the family and of the peer: is one better by more than noise?"""
    best = _label(BEST, BEST_C[BEST])
    yield Target(f"{name}: F1", name, "f1", unit="%")
    yield Target(
        f"F1 of dcd / {name}'s",
        best,
        "f1",
        "same run",
        at_least=1.0 - NOISE / 100.0,
        relative_to=(name, "f1"),
    )
