"""Calls everything that takes sparse matrices with damaged ones; run as a process of its own.

It prints each case before it is tried, so that the last line names one that crashes, and those that
do not end with the right error. ``python -m tests.damaged_sparse [estimator ...]``
"""

import inspect
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.optimize import LinearConstraint
from tests.every_estimator import KINDS, ONLINE, Interval

import maxmargin as mm
from maxmargin.features import KernelMap, PackedSequences
from maxmargin.formats import write_svmlight

warnings.simplefilter("ignore")
FAR = 10**9


def _set(name, change):
    """A damage: another value of an attribute."""

    def damage(matrix):
        setattr(matrix, name, change(getattr(matrix, name)))

    return damage


def _entry(name, place, value):
    """A damage: another number in an array."""

    def damage(matrix):
        getattr(matrix, name)[place] = value

    return damage


def _coords(axis, change):
    def damage(matrix):
        coords = list(matrix.coords)
        coords[axis] = change(coords[axis])
        matrix.coords = tuple(coords)

    return damage


def _first(change):
    """A change of the first entry."""

    def changed(array):
        array = array.copy()
        array[0] = change
        return array

    return changed


def _key(key, value=1.0):
    def damage(matrix):
        matrix._dict[key] = value

    return damage


COMPRESSED = {
    "indptr beyond the data": _entry("indptr", -1, FAR),
    "indptr beyond it in between": _entry("indptr", 1, FAR),
    "negative indptr": _entry("indptr", 1, -5),
    "indptr from elsewhere": _entry("indptr", 0, 2),
    "falling indptr": _set("indptr", lambda a: np.append(a[:-2], [a[-1], a[-1] - 1])),
    "short indptr": _set("indptr", lambda a: a[:-1]),
    "long indptr": _set("indptr", lambda a: np.append(a, a[-1])),
    "no indptr": _set("indptr", lambda a: a[:0]),
    "indptr of floats": _set("indptr", lambda a: a.astype(float)),
    "index beyond": _entry("indices", -1, FAR),
    "index just beyond": _entry("indices", -1, 99),
    "negative index": _entry("indices", 0, -1),
    "few indices": _set("indices", lambda a: a[:-3]),
    "many indices": _set("indices", lambda a: np.append(a, a)),
    "indices of floats": _set("indices", lambda a: a.astype(float)),
    "indices of objects": _set("indices", lambda a: a.astype(object)),
    "indices in a list": _set("indices", lambda a: a.tolist()),
    "no indices": _set("indices", lambda a: None),
    "few values": _set("data", lambda a: a[:-3]),
    "values of words": _set("data", lambda a: a.astype(str)),
    "values of objects": _set("data", lambda a: a.astype(object)),
    "complex values": _set("data", lambda a: a * 1j),
    "values in a column": _set("data", lambda a: a[:, None]),
    "another shape": _set("_shape", lambda s: (s[0] * 1000, s[1])),
    "a narrow shape": _set("_shape", lambda s: (s[0], 1)),
}
DAMAGES = {
    "csr": COMPRESSED,
    "csc": {**COMPRESSED, "another shape": _set("_shape", lambda s: (s[0], s[1] + 1))},
    "bsr": {
        **COMPRESSED,
        "other blocks": _set("data", lambda a: np.ones((len(a), 5, 7))),
        "no blocks": _set("data", lambda a: np.ones((len(a), 0, 0))),
    },
    "coo": {
        "row beyond": _coords(0, _first(FAR)),
        "column beyond": _coords(1, _first(FAR)),
        "negative row": _coords(0, _first(-1)),
        "negative column": _coords(1, _first(-FAR)),
        "few rows": _coords(0, lambda a: a[:-1]),
        "many columns": _coords(1, lambda a: np.append(a, a)),
        "columns of floats": _coords(1, lambda a: a.astype(float)),
        "few values": _set("data", lambda a: a[:-1]),
        "values of words": _set("data", lambda a: a.astype(str)),
        "one axis": _set("coords", lambda c: c[:1]),
    },
    "dia": {
        "few offsets": _set("offsets", lambda a: a[:-1]),
        "many offsets": _set("offsets", lambda a: np.append(a, a + FAR)),
        "offsets of floats": _set("offsets", lambda a: a.astype(float)),
        "repeated offsets": _set("offsets", lambda a: a * 0),
        "flat values": _set("data", lambda a: a.ravel()),
    },
    "lil": {
        "index beyond": lambda m: m.rows[0].append(FAR) or m.data[0].append(1.0),
        "huge index": lambda m: m.rows[0].append(10**400) or m.data[0].append(1.0),
        "negative index": lambda m: m.rows[0].append(-1) or m.data[0].append(1.0),
        "index of a word": lambda m: m.rows[0].append("x") or m.data[0].append(1.0),
        "value missing": lambda m: m.rows[0].append(0),
        "value of a word": lambda m: m.rows[0].append(0) or m.data[0].append("x"),
        "huge value": lambda m: m.rows[0].append(0) or m.data[0].append(10**400),
        "row is None": _entry("rows", 0, None),
        "few rows": _set("rows", lambda a: a[:-1]),
        "few values": _set("data", lambda a: a[:-1]),
    },
    "dok": {
        "row beyond": _key((FAR, 0)),
        "column beyond": _key((0, FAR)),
        "negative row": _key((-1, 0)),
        "negative column": _key((0, -FAR)),
        "one index": _key(0),
        "three indices": _key((0, 0, 0)),
        "no index": _key(("a", "b")),
        "huge index": _key((10**400, 0)),
        "value of a word": _key((0, 0), "x"),
        "huge value": _key((0, 0), 10**400),
    },
}


def damaged(dense, formats=tuple(DAMAGES)):
    """Sparse copies of a matrix, each damaged in another way, and what was done to them."""
    for container in ("matrix", "array"):
        for form in formats:
            make = getattr(sp, f"{form}_{container}")
            for name, damage in DAMAGES[form].items():
                matrix = make(np.asarray(dense, dtype=float))
                damage(matrix)
                yield f"{form}_{container}, {name}", matrix


def attempt(case, names, call, *given, **options):
    """Make a call, which must end with ValueError that one of these is damaged."""
    print(case, flush=True)
    try:
        call(*given, **options)
    except ValueError as error:
        said = [f"{name} is a damaged sparse" for name in names or ()]
        said.append("needs kernel='linear'")  # of what others do not offer
        if names and not any(words in str(error) for words in said):
            print(f"WRONG {case}: {error}")
    except Exception as error:
        if names is not None:
            print(f"WRONG {case}: {type(error).__name__}: {error}")
    else:
        print(f"WRONG {case}: no error")


def methods_with_inputs(model):
    """Public methods that take X or x, and the rest of what they need."""
    known = {"k": 2, "Cs": [0.1, 1.0], "tol": 0.5}
    for name in dir(type(model)):
        method = None if name.startswith("_") else getattr(model, name, None)
        if not callable(method):
            continue
        parameters = inspect.signature(method).parameters
        given = {key: value for key, value in known.items() if key in parameters}
        if "X" in parameters or "x" in parameters:
            yield name, method, given, "y" in parameters, "x" in parameters


def sparse_rows(X):
    """Damaged inputs that are one matrix, and what errors call them."""
    for case, matrix in damaged(X):
        yield case, matrix, ["X"]


def sparse_sequences(X):
    """Those that are a matrix for each sequence, or packed."""
    for case, matrix in damaged(X[1]):
        yield case, [sp.csr_matrix(X[0]), matrix, *map(sp.csr_array, X[2:])], ["sequence 1"]
    tokens, offsets = np.concatenate(X), np.cumsum([0, *map(len, X)])
    for case, matrix in damaged(tokens, ("csr",)):
        names = [] if "narrow" in case else ["X.tokens", "X"]  # that is a number of features
        yield f"packed, {case}", PackedSequences(matrix, offsets), names


def sparse_nodes(X):
    """Those that are a matrix for each node."""
    nodes = [X[:, v] for v in range(X.shape[1])]
    for case, matrix in damaged(nodes[1]):
        yield case, [nodes[0], matrix, *nodes[2:]], ["X at node 1"]


def no_sparse(X):
    """For estimators that take none: any error will do."""
    for case, matrix in damaged(np.eye(3, 4), ("csr", "coo", "lil")):
        yield case, matrix, None
        yield f"{case}, in a list", [matrix] * len(X), None


SHAPES = {
    "classes": sparse_rows,
    "described": sparse_rows,
    "kernel classes": sparse_rows,
    "kernel measure": sparse_rows,
    "sets": sparse_rows,
    "sets in a tree": sparse_rows,
    "grades": sparse_rows,
    "grades by pairs": sparse_rows,
    "ranker": sparse_rows,
    "performance": sparse_rows,
    "tagger": sparse_sequences,
    "kernel tagger": sparse_sequences,
    "higher-order tagger": sparse_sequences,
    "segmenter": sparse_sequences,
    "labels": sparse_nodes,
}


def try_estimator(kind):
    """All methods of an estimator with X, and with y where that may be sparse."""
    X, y = KINDS[kind].first
    options = {"C": 1.0, "random_state": 0}
    model = KINDS[kind].make(tol=0.5, **options).fit(X, y)
    shaped = SHAPES.get(kind, no_sparse)
    for name, method, given, takes_y, takes_one in methods_with_inputs(model):
        given = {**given, **({"y": y} if takes_y else {})}
        if takes_one:
            rows = X[:1] if shaped is sparse_rows else np.ones((3, 3))
            names = ["x", "X"] if shaped is sparse_rows else None
            for case, row in damaged(rows):
                attempt(f"{kind}.{name}, {case}", names, method, row, **given)
            continue
        for case, inputs, names in shaped(X):
            attempt(f"{kind}.{name}, {case}", names, method, inputs, **given)
        if takes_y and shaped is sparse_rows:
            for case, matrix in damaged(y if np.ndim(y) == 2 else np.column_stack([y, y])):
                attempt(f"{kind}.{name}, y: {case}", ["y"], method, X, **{**given, "y": matrix})
    if kind in ONLINE:
        model = KINDS[kind].make(solver="perceptron", **options)
        for case, inputs, names in shaped(X):
            attempt(
                f"{kind}.partial_fit, {case}", names, model.partial_fit, inputs, y, **ONLINE[kind]
            )


def try_others():
    """All else that takes sparse matrices."""
    X, y = KINDS["classes"].first
    for case, matrix in damaged(np.eye(3, 2) + 0.1):
        names = ["class_features"]
        model = mm.MulticlassSVM(class_features=matrix)
        attempt(f"class_features, {case}", names, model.fit, X, y)
        attempt(f"ClassFeatures, {case}", names, mm.ClassFeatures, [0, 1, 2], matrix)
    fit = mm.MulticlassSVM().fit
    for case, matrix in damaged(np.ones((len(X), 3))):
        for name in ("costs", "prior", "sample_weight"):
            attempt(f"{name}, {case}", [], fit, X, y, **{name: matrix})
        attempt(f"qid, {case}", [], mm.RankSVM().fit, X, y, qid=matrix)
    for case, matrix in damaged(np.ones((3, 3))):
        attempt(f"loss, {case}", [], mm.MulticlassSVM(loss=matrix).fit, X, y)
    basis = KernelMap("rbf").fit(X)
    ranker = mm.RankSVM(tol=0.5).fit(X, y)
    search = mm.SearchCV(mm.MulticlassSVM(tol=0.5), [0.1, 1.0], cv=2)
    folder = Path(tempfile.mkdtemp())
    for case, matrix in damaged(X):
        attempt(f"KernelMap.fit, {case}", ["X"], KernelMap("rbf").fit, matrix)
        attempt(f"KernelMap.transform, {case}", ["X"], basis.transform, matrix)
        attempt(f"SearchCV, {case}", ["X"], search.fit, matrix, y)
        kernel = mm.MulticlassSVM(kernel=Kernel(matrix))
        attempt(f"own kernel, {case}", ["what kernel gave"], kernel.fit, X, y)
        attempt(f"write_svmlight, {case}", ["X"], write_svmlight, folder / "out", matrix, y)
    for case, row in damaged(X[:1]):
        attempt(f"explain y_hat, {case}", ["x"], ranker.explain, X[0], row)
    for case, matrix in damaged(X, ("csr",)):
        packed = [PackedSequences(matrix, np.array([0, len(X)]))]
        case = f"PackedSequences.write, {case}"
        attempt(case, ["X.tokens"], PackedSequences.write, folder / "out", packed)
    try_structural(X)


class Kernel:
    """A kernel that gives a damaged matrix."""

    def __init__(self, matrix):
        self.matrix = matrix

    def __call__(self, left, right):
        return self.matrix


class Damaged(Interval):
    """A problem with damaged features."""

    n_features = 2

    def __init__(self, matrix):
        self.matrix = matrix

    def joint_feature(self, x, y):
        return self.matrix

    def most_violated(self, x, y, w, rescaling):
        return (0, 1)


def try_structural(X):
    """Problems for general outputs, with sparse inputs and features."""
    good = [sp.csr_matrix(X[:4]), sp.csr_matrix(X[4:8])]
    unlimited = [(rows, None) for rows in good]
    chosen, outputs = [0, 1], [[0, 1, 0, 1], [1, 0, 0, 0]]
    candidates = mm.StructuralSVM(mm.CandidateProblem(), tol=0.5).fit(good, chosen)
    programs = mm.StructuralSVM(mm.LinearProgramProblem(), tol=0.5).fit(unlimited, outputs)
    for name in ("fit", "predict", "score", "losses", "score_outputs"):
        for case, matrix in damaged(X[:4]):
            given = [[good[0], matrix], *([] if name == "predict" else [chosen])]
            attempt(f"candidates.{name}, {case}", ["X[1]"], getattr(candidates, name), *given)
            pairs = [unlimited[0], (matrix, None)]
            given = [pairs, *([] if name == "predict" else [outputs])]
            attempt(f"programs.{name}, {case}", ["x[0]"], getattr(programs, name), *given)
    for case, matrix in damaged(np.ones((2, 4))):
        limit = LinearConstraint(np.ones((2, 4)), 0, 4)
        limit.A = matrix
        limited = [(good[0], limit), unlimited[1]]
        names = ["A of a constraint"]
        attempt(f"constraint, {case}", names, programs.fit, limited, outputs)
        attempt(f"constraint at last, {case}", names, programs.predict, limited)
    X, y = KINDS["own"].first
    for case, matrix in damaged(np.ones((1, 2))):
        model = mm.StructuralSVM(Damaged(matrix))
        attempt(f"joint_feature, {case}", ["joint_feature(x, y)"], model.fit, X, y)


if __name__ == "__main__":
    for kind in sys.argv[1:]:
        try_others() if kind == "others" else try_estimator(kind)
    print("done")
