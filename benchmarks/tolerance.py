"""Test scores and times by `tol`: how small a gap is worth its time to a user of the estimators?

Every estimator is called as a user calls it, at a C that suits the data and at a larger one. The
times are CPU seconds of `fit`, which builds the features too; scores are of a part that was not
trained on.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import maxmargin as mm
from maxmargin.datasets import FACE_TREE, make_faces
from maxmargin.features import AMINO_ACIDS, WindowFeatures, chunking_templates, ner_templates
from maxmargin.formats import read_svmlight
from maxmargin.metrics import chunk_scores

from . import tagging
from .case import Case, Contestant, Options, Outcome, Target
from .data import data_path
from .datasets import alignment, dependencies, mnist, ocr_letters, ptb, taxonomy, usps
from .solvers import CpuClock

TOLERANCES = (1e-1, 1e-2, 3e-3, 1e-3)
MOST_SECONDS = 900.0
WARM_UP_EXAMPLES = 60
QUICK = 100  # examples of tiny slices


class Task(NamedTuple):
    """An estimator without C and tol, data to train on, and what its test score is."""

    score_name: str
    make: Callable[..., Any]
    train: tuple[Any, Any]
    score: Callable[[Any], float]  # of a fitted estimator, between 0 and 1
    first: Callable[[Any, int], Any]  # so many examples of X or of y

    def part(self, n: int) -> tuple[Any, Any]:
        """A few examples."""
        return self.first(self.train[0], n), self.first(self.train[1], n)


def cases(options: Options) -> Iterator[Case]:
    """Each data set, at two values of C."""
    for data_set, (load, Cs) in TASKS.items():
        names = {f"tolerance: {data_set}, C = {C:g}": C for C in Cs}
        wanted = [name for name in names if options.only in name]
        if wanted:
            task = load()
            if options.quick:
                task = task._replace(train=task.part(QUICK))
            yield from (_case(name, task, names[name]) for name in wanted)


def _case(name: str, task: Task, C: float) -> Case:
    """One data set and C; the smallest tolerance is what the others are compared with."""
    smallest = _label(TOLERANCES[-1])
    targets = []
    for label in map(_label, TOLERANCES):
        targets += [
            Target(f"{label}: {task.score_name}", label, "score", unit="%"),
            Target(f"{label}: training", label, "training", unit="s"),
            Target(
                f"{label}: time / that of {smallest}",
                label,
                "training",
                relative_to=(smallest, "training"),
            ),
        ]
    return Case(
        name,
        [_contestant(task, C, tol, warm_up=tol == TOLERANCES[0]) for tol in TOLERANCES],
        targets,
    )


def _label(tol: float) -> str:
    """Name of a contestant."""
    return f"tol = {tol:g}"


def _contestant(task: Task, C: float, tol: float, warm_up: bool) -> Contestant:
    """The estimator at a tolerance; one of them has to get all kernels compiled."""

    def fit(X: Any, y: Any, **parameters: Any) -> Any:
        return task.make(C=C, random_state=0, **parameters).fit(X, y)

    def run() -> Outcome:
        clock = CpuClock()
        started = time.process_time()
        estimator = fit(
            *task.train, tol=tol, max_time=MOST_SECONDS, training={"callbacks": [clock]}
        )
        seconds = time.process_time() - started
        result = estimator.result_
        return Outcome(
            {
                "training": seconds,
                "score": 100.0 * task.score(estimator),
                "passes": result.n_passes,
                "gap": result.relative_gap,
                "converged": float(result.converged),
            },
            curve=clock.curve(result, result.n_examples),
        )

    def prepare() -> None:
        if warm_up:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # few passes, and few of the classes
                task.score(fit(*task.part(WARM_UP_EXAMPLES), tol=1e-6, max_passes=20))

    return Contestant(_label(tol), run, prepare)


# ----- sequences --------------------------------------------------------------------------------


def _tagging(train: str, test: str, templates: list[str]) -> Task:
    """A column file of chunks or entities."""
    data, held_out = tagging.read(train), tagging.read(test)

    def first(part: Any, n: int) -> Any:
        return part[:n] if isinstance(part, list) else tagging.first(part, n)

    def score(tagger: Any) -> float:
        return chunk_scores(held_out.split(2), tagger.predict(held_out.select([0, 1]))).f1

    return Task(
        "F1",
        lambda **p: mm.SequenceTagger(features=WindowFeatures(templates), **p),
        (data.select([0, 1]), data.split(2)),
        score,
        first,
    )


def _spanish() -> Task:
    """Entities of CoNLL-2002."""
    files = "conll2002/esp.train.xz", "conll2002/esp.testb.xz"
    return _tagging(*files, ner_templates())


def _chunks() -> Task:
    """Chunks of CoNLL-2000."""
    files = "conll2000/train.txt.xz", "conll2000/test.txt.xz"
    return _tagging(*files, chunking_templates())


def _letters() -> Task:
    """OCR letters, folds 1 to 9 for training."""
    words = ocr_letters.load()
    X, y = (np.split(a, words.offsets[1:-1]) for a in (words.pixels, words.letters))
    train, test = (np.flatnonzero((words.folds == 0) == held_out) for held_out in (False, True))
    X_test, y_test = [X[i] for i in test], [y[i] for i in test]
    return Task(
        "letters right",
        lambda **p: mm.SequenceTagger(fit_intercept=True, **p),
        ([X[i] for i in train], [y[i] for i in train]),
        lambda tagger: tagger.score(X_test, y_test),
        _from_the_start,
    )


# ----- classes ----------------------------------------------------------------------------------


def _classes(train: tuple[Any, Any], test: tuple[Any, Any]) -> Task:
    """A multiclass problem."""
    return Task("accuracy", mm.MulticlassSVM, train, lambda m: m.score(*test), _spread_out)


def _usps() -> Task:
    """USPS digits."""
    return _classes(usps.load(None), usps.load(None, "test"))


def _mnist() -> Task:
    """MNIST digits, all of them."""
    return _classes(mnist.load(None), mnist.load(None, "test"))


def _newsgroups() -> Task:
    """20 newsgroups."""
    data = taxonomy.load_newsgroups(None)
    return _classes((data.X, data.y), (data.X_test, data.y_test))


def _images() -> Task:
    """ImCLEF07A, the leaves as classes."""
    data = taxonomy.load_images(None)
    return _classes((data.X, data.y), (data.X_test, data.y_test))


def _binary(file: str, n_features: int) -> Task:
    """A binary data set in two svmlight files."""
    train, test = (
        read_svmlight(data_path(f"binary/{file}_{part}.svm.gz"), n_features)
        for part in ("train", "test")
    )
    return _classes((train.X, train.y), (test.X, test.y))


def _adult() -> Task:
    """Adult, a9a."""
    return _binary("a9a", 123)


def _reuters() -> Task:
    """Reuters acquisitions."""
    return _binary("reuters_acq", 9947)


def _covertype() -> Task:
    """Covertype: 30,000 rows to train on and as many to test on."""
    n = 30_000
    arrays = np.load(data_path("covtype/covtype.npz"))
    chosen = np.random.default_rng(0).permutation(len(arrays["label"]))[: 2 * n]
    numeric = arrays["numeric"][chosen].astype(np.float64)
    numeric = (numeric - numeric[:n].mean(axis=0)) / numeric[:n].std(axis=0)
    kinds = [np.eye(m)[arrays[k][chosen] - 1] for k, m in (("wilderness", 4), ("soil", 40))]
    X, y = np.hstack([numeric, *kinds]), arrays["label"][chosen]
    return _classes((X[:n], y[:n]), (X[n:], y[n:]))


# ----- trees and alignments ---------------------------------------------------------------------


def _dependencies() -> Task:
    """EWT: the first 1,000 sentences for training."""
    bank = dependencies.read_ewt()
    return Task(
        "UAS",
        mm.DependencyParser,
        (bank.X[:1000], bank.Y[:1000]),
        lambda parser: parser.score(bank.X_test, bank.Y_test),
        _from_the_start,
    )


def _constituents() -> Task:
    """Penn sample: sentences of at most 15 words, four fifths for training."""
    part = ptb.folds(ptb.load(ptb.LONGEST))[0]
    return Task(
        "F1",
        lambda **p: mm.GrammarParser(span_features=True, **ptb.GRAMMAR, **p),
        (part.train, part.train),
        lambda parser: parser.score(part.test),
        _from_the_start,
    )


def _alignments() -> Task:
    """BAliBASE, trimmed sequences: families of even numbers for training."""
    families = alignment.load_families("BBS", None)
    parts: list[list[Any]] = [[], []]
    for number, examples in families.items():
        parts[number % 2] += examples
    (X, Y), (X_test, Y_test) = (
        ([(x, y) for x, y, _ in part], [pairs for *_, pairs in part]) for part in parts
    )
    return Task(
        "pair accuracy",
        lambda **p: mm.SequenceAligner(
            mode="global", symmetric=True, end_gaps="own", alphabet=AMINO_ACIDS + "X", **p
        ),
        (X, Y),
        lambda aligner: aligner.score(X_test, Y_test),
        _from_the_start,
    )


def _faces() -> Task:
    """Drawn faces: 500 for training, 500 to test on."""
    faces = make_faces(500, 500, size=24, noise=0.4)
    return Task(
        "minus the mean deviation",
        lambda **p: mm.PartLocator(tree=FACE_TREE, **p),
        (faces.X_train, faces.y_train),
        lambda finder: finder.score(faces.X_test, faces.y_test) / 100.0,
        _from_the_start,
    )


def _from_the_start(part: Any, n: int) -> Any:
    """The first examples."""
    return part[:n]


def _spread_out(part: Any, n: int) -> Any:
    """Some examples of all parts of the data, which may be sorted by class."""
    rows = np.linspace(0, part.shape[0] - 1, n).astype(np.int64)
    return sparse.csr_matrix(part)[rows] if sparse.issparse(part) else part[rows]


#: Data sets, and a C that suits them with a larger one.
TASKS: dict[str, tuple[Callable[[], Task], tuple[float, float]]] = {
    "Spanish entities": (_spanish, (0.1, 1.0)),
    "CoNLL-2000 chunks": (_chunks, (0.1, 1.0)),
    "OCR letters": (_letters, (0.1, 1.0)),
    "USPS": (_usps, (0.01, 0.1)),
    "MNIST": (_mnist, (0.01, 0.1)),
    "20 newsgroups": (_newsgroups, (1.0, 10.0)),
    "ImCLEF07A": (_images, (1.0, 10.0)),
    "a9a": (_adult, (0.1, 10.0)),
    "Reuters acquisitions": (_reuters, (1.0, 10.0)),
    "Covertype": (_covertype, (0.01, 1.0)),
    "EWT dependencies": (_dependencies, (0.01, 0.1)),
    "Penn sample": (_constituents, (1.0, 10.0)),
    "BAliBASE, trimmed": (_alignments, (0.003, 0.03)),
    "faces": (_faces, (0.02, 0.2)),
}
