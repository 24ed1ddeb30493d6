"""CoNLL-2000 chunking: 8,936 sentences, 22 tags, 318,370 features, 22 of them at each token."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import maxmargin as mm
from maxmargin.core.formulation import C_from_paper
from maxmargin.features import WindowFeatures, chunking_templates
from maxmargin.formats import TokenColumns

from .. import tagging
from ..case import Case, Contestant, Options, Outcome, Target
from ..fresh import fresh_process
from ..peers import crfsuite
from ..solvers import ours

PAPER_C = 1000
MOST_SECONDS = {0.1: 6, 0.01: 20}
SVM_HMM = {0.1: "SVM-HMM 3.10: 137 s", 0.01: "SVM-HMM 3.10: not in several minutes"}
ROUNDS = 10
EARLY_EPSILON = 0.5  # loose, and yet past F1 93.4


def read(part: str, limit: int | None = None) -> TokenColumns:
    """Words, POS and chunk tags of the first sentences of "train" or "test", or of all."""
    return tagging.read(f"conll2000/{part}.txt.xz", limit)


def limit_of(quick: bool) -> int | None:
    """Number of sentences to use."""
    return 100 if quick else None


class Chunking(tagging.Tagging):
    """The data as arrays, and tags of the test part by weights."""

    def __init__(self, quick: bool) -> None:
        self.limit = limit_of(quick)
        train, test = read("train", self.limit), read("test", self.limit)
        super().__init__(train, test, chunking_templates())
        self.C = C_from_paper(PAPER_C, train.n_sequences, "joachims")


def cases(options: Options) -> Iterator[Case]:
    """Two precisions, the time to a good F1, memory, and online solvers."""
    yield _memory(options)
    data = Chunking(options.quick)
    yield from (_to_epsilon(data, epsilon, options) for epsilon in MOST_SECONDS)
    yield _to_f1(data, options)
    yield _perceptrons(data, options)


def _to_epsilon(data: Chunking, epsilon: float, options: Options) -> Case:
    """Certified to an epsilon."""
    figures = {"passes": "28", "primal": "1272.4", "dual": "1178.8"} if epsilon == 0.1 else {}
    seconds = MOST_SECONDS[epsilon]
    aim = "aim: 3 s" if epsilon == 0.1 else ""
    return Case(
        f"CoNLL-2000 C_paper = {PAPER_C}, epsilon = {epsilon:g}",
        [ours(name, data.problem, data.C, epsilon=epsilon) for name in options.of_ours(["auto"])],
        [
            Target("time", "auto", "cpu", SVM_HMM[epsilon], "s", at_most=seconds, note=aim),
            Target("chunk F1", "auto", "f1", "SVM-HMM: 93.77", "%", at_least=93.5),
            *(
                Target(name, "auto", name, f"SVM-HMM: {figures[name]}" if figures else "")
                for name in ("passes", "primal", "dual")
            ),
        ],
        data.problem,
        data.C,
        data.decode,
        data.truth,
    )


def _to_f1(data: Chunking, options: Options) -> Case:
    """From the file to a tagger with F1 >= 93.4, next to python-crfsuite's averaged perceptron."""
    contestants = [_tagger(data)]
    if options.peers:
        read_train = partial(read, "train", data.limit)
        if crfsuite.is_installed():
            contestants += [
                crfsuite.averaged_perceptron(read_train, data.test, rounds) for rounds in (5, 10)
            ]
        else:
            print(crfsuite.HOW_TO_INSTALL)
    label, five, ten = "SequenceTagger", "crfsuite 5 rounds", "crfsuite 10 rounds"
    return Case(
        "CoNLL-2000 time to F1 >= 93.4, from the file",
        contestants,
        [
            Target("time", label, "cpu", "crfsuite: 5.5 s + 4 s loading", "s"),
            Target("chunk F1", label, "f1", "crfsuite, 5 rounds: 93.5", "%", at_least=93.4),
            Target(
                "time / crfsuite's 5 rounds with loading",
                label,
                "cpu",
                "crfsuite, same run",
                at_most=1.0,
                relative_to=(five, "cpu"),
            ),
            Target(
                "time / crfsuite's 5 rounds without loading",
                label,
                "cpu",
                "crfsuite, same run",
                at_most=1.0,
                relative_to=(five, "training_cpu"),
            ),
            *(
                Target(f"{peer}: {what}", peer, measure, reference, unit)
                for peer, f1, seconds in ((five, 93.5, 5.5), (ten, 93.4, 7.6))
                for what, measure, reference, unit in (
                    ("chunk F1", "f1", str(f1), "%"),
                    ("training", "training_cpu", f"{seconds} s", "s"),
                    ("reading and loading", "loading_cpu", "4 s", "s"),
                )
            ),
        ],
        truth=data.truth,
    )


def _perceptrons(data: Chunking, options: Options) -> Case:
    """Averaged perceptrons, round by round; the other online solvers beside them."""
    names = options.of_ours(["perceptron", "mira", "sgd", "pegasos"])
    contestants = [ours(name, data.problem, data.C, max_passes=ROUNDS) for name in names]
    peer = f"crfsuite {ROUNDS} rounds"
    if options.peers and crfsuite.is_installed():
        read_train = partial(read, "train", data.limit)
        contestants.append(crfsuite.averaged_perceptron(read_train, data.test, ROUNDS))
    same = "crfsuite, same run"
    return Case(
        f"CoNLL-2000 online, {ROUNDS} rounds",
        contestants,
        [
            Target(
                "a round / crfsuite's",
                "perceptron",
                "per_round",
                same,
                at_most=0.5,
                relative_to=(peer, "per_round"),
            ),
            Target(
                "training / crfsuite's without loading",
                "perceptron",
                "cpu",
                same,
                at_most=0.5,
                relative_to=(peer, "training_cpu"),
            ),
            Target(
                "F1 / crfsuite's",
                "perceptron",
                "f1",
                same,
                at_least=1.0 - 0.3 / 93.5,
                relative_to=(peer, "f1"),
                note="0.3 points",
            ),
            *(
                Target(f"{name}: {what}", name, measure, unit=unit)
                for name in (*names, peer)
                for what, measure, unit in (("a round", "per_round", "s"), ("F1", "f1", "%"))
            ),
        ],
        data.problem,
        data.C,
        data.decode,
        data.truth,
    )


def fit_tagger(limit: int | None, epsilon: float) -> mm.SequenceTagger:
    """Our estimator as a user calls it: read, build features, train."""
    train = read("train", limit)
    tagger = mm.SequenceTagger(
        C=C_from_paper(PAPER_C, train.n_sequences, "joachims"),
        features=WindowFeatures(chunking_templates()),
        tol=None,
        epsilon=epsilon,
        random_state=0,
    )
    return tagger.fit(train.select([0, 1]), train.split(2))


def _tagger(data: Chunking) -> Contestant:
    """The estimator as a contestant."""

    def run() -> Outcome:
        tagger = fit_tagger(data.limit, EARLY_EPSILON)
        measures = {"passes": tagger.result_.n_passes}
        return Outcome(measures, tag=lambda: tagger.predict(data.test.select([0, 1])))

    def warm_up() -> None:
        fit_tagger(200, epsilon=0.01)

    return Contestant("SequenceTagger", run, warm_up)


def _memory(options: Options) -> Case:
    """Largest resident memory of a process that reads the file and trains."""
    return Case(
        "CoNLL-2000 memory of a fit, epsilon = 0.1",
        [fresh_process("memory", options.quick)],
        [Target("peak memory", "memory", "peak_mb", "SVM-HMM: 600 MB", "MB", at_most=1000)],
    )
