"""Commands with the options and files of SVM-struct: conventions, outputs, errors."""

import itertools
import re
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.svm import LinearSVC

import maxmargin as mm
from brute_grammar import GrammarTwin, random_tree
from conftest import find_data
from maxmargin.cli import main, make_parser
from maxmargin.formats import read_trees, write_svmlight, write_trees
from maxmargin.persistence import load_model
from maxmargin.solvers import NSlack, OneSlack


def run(*arguments):
    return main([str(argument) for argument in arguments])


def reported(text, name):
    """A number that a command prints behind a name."""
    found = re.search(rf"{re.escape(name)}\s*:?\s*(?:\w+=)?(-?[\d.]+)", text)
    assert found is not None, f"no {name!r} in {text}"
    return float(found[1])


def weights_of(path, tool):
    """Weights as the other tool would have them."""
    estimator, extra = load_model(path)
    assert extra["tool"] == tool
    return extra.get("weights", 1.0) * np.asarray(estimator.result_.w)


# ----- defaults, as the tools' own help texts have them ------------------------------------------

LEARNING = {
    "v": 1,
    "c": 0.01,
    "p": 1,
    "o": 2,
    "t": 0,
    "model": "svm_struct_model",
    "k": 100,
    "f": 5,
}
CLASSIFYING = {"v": 2, "model": "svm_struct_model", "output": "svm_predictions"}
DEFAULTS = {
    "svm-hmm-learn": {**LEARNING, "e": 0.1, "l": 1, "order": 1, "emissions": 0},
    "svm-multiclass-learn": {**LEARNING, "e": 0.1, "l": 0},
    "svm-perf-learn": {**LEARNING, "e": 0.1, "l": 2, "bias": 1.0, "fraction": 0.0},
    "svm-rank-learn": {**LEARNING, "e": 0.001, "l": 1},
    "svm-cfg-learn": {**LEARNING, "e": 0.1, "l": 0},
    **{f"{tool}-classify": CLASSIFYING for tool in ("svm-hmm", "svm-multiclass", "svm-cfg")},
    **{f"{tool}-classify": CLASSIFYING for tool in ("svm-perf", "svm-rank")},
}


@pytest.mark.parametrize("command", DEFAULTS)
def test_defaults_are_those_of_the_tool(command):
    """What is not listed is None: an option without effect, or -w, which is chosen for speed."""
    given = vars(make_parser().parse_args([command, "data"]))
    other = ("run", "parser_", "commands_", "debug", "data")
    found = {k: v for k, v in given.items() if v is not None and k not in other}
    assert found == DEFAULTS[command]


# ----- svm-multiclass ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def iris(tmp_path_factory):
    """Classes 1, 2, 3."""
    path = tmp_path_factory.mktemp("iris") / "train.dat"
    X, y = load_iris(return_X_y=True)
    write_svmlight(path, X[::3], y[::3] + 1)
    return path, y[::3]


@pytest.mark.parametrize("rescaling", [1, 2])
@pytest.mark.parametrize("slack", [1, 2])
@pytest.mark.parametrize("loss", [0, 1])
def test_multiclass_objective_is_that_of_svm_multiclass(
    iris, tmp_path, capsys, rescaling, slack, loss
):
    path, y = iris
    model, output = tmp_path / "model", tmp_path / "predictions"
    options = ("-c", 5, "-e", 0.01, "-o", rescaling, "-p", slack, "-l", loss)
    assert run("svm-multiclass-learn", *options, path, model) == 0
    primal = reported(capsys.readouterr().out, "Primal objective value")
    assert run("svm-multiclass-classify", path, model, output) == 0
    table = np.loadtxt(output)
    scores = table[:, 1:]
    assert scores.shape == (len(y), 3)
    assert np.array_equal(table[:, 0], scores.argmax(axis=1) + 1)
    costs = np.abs(np.subtract.outer(y, np.arange(3))) ** 2.0
    if loss == 0:
        costs = 100.0 * (costs > 0)
    costs = np.sqrt(costs) if slack == 2 else costs
    margins = scores - scores[np.arange(len(y)), y][:, None]
    hinges = costs * (1 + margins) if rescaling == 1 else costs + margins
    slacks = np.maximum(hinges.max(axis=1), 0.0) ** slack
    w = weights_of(model, "svm-multiclass")
    expected = 0.5 * w @ w + 5.0 / len(y) * slacks.sum()
    assert primal == pytest.approx(expected, rel=1e-4)


def test_multiclass_epsilon_bounds_the_gap(iris, tmp_path, capsys):
    """C epsilon, in units of losses of 100."""
    gaps = {}
    for epsilon in (1, 0.01):
        assert run("svm-multiclass-learn", "-c", 50, "-e", epsilon, iris[0], tmp_path / "m") == 0
        gaps[epsilon] = reported(capsys.readouterr().out, "Upper bound on duality gap")
        assert gaps[epsilon] <= 50 * epsilon
    assert gaps[0.01] < gaps[1]


def test_multiclass_agrees_with_liblinear(tmp_path, capsys):
    """Crammer & Singer's SVM: C_liblinear = C / (100 n), for losses of 1, and weights 1/100."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16.0, y[:300]
    path, model = tmp_path / "train.dat", tmp_path / "model"
    write_svmlight(path, X, y + 1)
    assert run("svm-multiclass-learn", "-c", 3000, "-e", 0.001, path, model) == 0
    primal = reported(capsys.readouterr().out, "Primal objective value")
    peer = LinearSVC(
        C=3000 / (100 * 300),
        multi_class="crammer_singer",
        fit_intercept=False,
        tol=1e-6,
        max_iter=100000,
    ).fit(X, y)
    scores = 100.0 * X @ peer.coef_.T
    losses = 100.0 * (np.arange(10) != y[:, None])
    slacks = (losses + scores).max(axis=1) - scores[np.arange(300), y]
    w = 100.0 * peer.coef_.ravel()
    best = 0.5 * w @ w + 3000 / 300 * slacks.sum()
    assert primal == pytest.approx(best, rel=1e-3)


def test_multiclass_prints_what_scripts_look_for(iris, tmp_path, capsys):
    path, y = iris
    model, output = tmp_path / "model", tmp_path / "predictions"
    assert run("svm-multiclass-learn", "-c", 100, "-v", 0, path, model) == 0
    assert capsys.readouterr().out == ""
    assert run("svm-multiclass-classify", path, model, output) == 0
    wrong = int(np.sum(np.loadtxt(output)[:, 0] != y + 1))
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"Average loss on test set: {100 * wrong / len(y):.4f}",
        f"Zero/one-error on test set: {100 * wrong / len(y):.2f}% ({len(y) - wrong} correct, "
        f"{wrong} incorrect, {len(y)} total)",
    ]


def test_classes_of_a_test_file_may_be_unknown(iris, tmp_path, capsys):
    model, output, test = tmp_path / "model", tmp_path / "predictions", tmp_path / "test"
    assert run("svm-multiclass-learn", "-c", 100, "-v", 0, iris[0], model) == 0
    test.write_text("0 1:5 2:3 3:1.5 4:0.2 9:1\n3 1:6 2:3 3:5 4:2\n")
    assert run("svm-multiclass-classify", test, model, output) == 0
    assert [line.split()[0] for line in output.read_text().splitlines()] == ["1", "3"]
    assert "(1 correct, 1 incorrect, 2 total)" in capsys.readouterr().out


def test_two_classes_with_one_missing_between(tmp_path, capsys):
    path, model, output = tmp_path / "t.dat", tmp_path / "m", tmp_path / "p"
    path.write_text("1 1:1\n3 2:1\n1 1:2\n3 2:2 7:0\n")
    assert run("svm-multiclass-learn", "-c", 100, path, model) == 0
    assert "no examples of 1 classes, such as 2" in capsys.readouterr().err
    assert run("svm-multiclass-classify", path, model, output) == 0
    rows = [line.split() for line in output.read_text().splitlines()]
    assert [row[0] for row in rows] == ["1", "3", "1", "3"]
    assert {row[2] for row in rows} == {"0.000000"}
    assert float(rows[0][1]) == -float(rows[0][3]) > 0


# ----- svm-hmm ----------------------------------------------------------------------------------


WORDS = """\
1 qid:1 1:1 3:0.5 # a
2 qid:1 2:1 # b

# a comment
2 qid:2 2:1 3:1
2 qid:2 1:0.5
1 qid:2 1:2
3 qid:7 3:1
1 qid:7 1:1 2:-1
"""
TAGS = [[1, 2], [2, 2, 1], [3, 1]]
FEATURES = [
    [[1, 0, 0.5], [0, 1, 0]],
    [[0, 1, 1], [0.5, 0, 0], [2, 0, 0]],
    [[0, 0, 1], [1, -1, 0]],
]


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "words.dat"
    path.write_text(WORDS)
    return path


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize(
    ("rescaling", "slack", "loss"), [(2, 1, 1), (1, 1, 1), (2, 2, 1), (2, 1, 0)]
)
def test_hmm_objective_is_that_of_svm_hmm(words, tmp_path, capsys, order, rescaling, slack, loss):
    """All labellings are listed, with weights for all tuples of tags."""
    options = ("-c", 30, "-e", 0.001, "-o", rescaling, "-p", slack, "-l", loss, "--t", order)
    model = tmp_path / "model"
    if order == 0 and (rescaling, slack, loss) != (2, 1, 1):
        assert run("svm-hmm-learn", *options, words, model) == 2
        return
    assert run("svm-hmm-learn", *options, words, model) == 0
    primal = reported(capsys.readouterr().out, "Primal objective value")
    estimator = mm.load(model)
    w = weights_of(model, "svm-hmm")
    assert len(w) == 9 + (9 if order else 0) + (27 if order == 2 else 0)

    def score(x, tags):
        emissions = w[:9].reshape(3, 3)
        total = sum(np.dot(row, emissions[:, tag - 1]) for row, tag in zip(x, tags, strict=True))
        if order >= 1:
            pairs = estimator.transition_weights_
            total += sum(pairs[a - 1, b - 1] for a, b in itertools.pairwise(tags))
        if order == 2:
            triples = estimator.longer_transition_weights_
            total += sum(triples[tuple(tags[i : i + 3])] for i in range(len(tags) - 2))
        return total

    slacks = 0.0
    for x, right in zip(FEATURES, TAGS, strict=True):
        worst = 0.0
        for tags in itertools.product((1, 2, 3), repeat=len(right)):
            cost = sum(a != b for a, b in zip(tags, right, strict=True))
            cost = float(cost > 0) if loss == 0 else cost
            cost = np.sqrt(cost) if slack == 2 else cost
            margin = score(x, list(tags)) - score(x, right)
            worst = max(worst, cost * (1 + margin) if rescaling == 1 else cost + margin)
        slacks += worst**slack
    assert primal == pytest.approx(0.5 * w @ w + 30.0 / 3 * slacks, rel=1e-4)


def test_hmm_writes_tags_and_its_losses(words, tmp_path, capsys):
    model, output = tmp_path / "model", tmp_path / "tags"
    assert run("svm-hmm-learn", "-c", 1000, "-e", "0.1", words, model) == 0
    assert run("svm-hmm-classify", "--b", 100, words, model, output) == 0
    assert output.read_text().split() == [str(tag) for tags in TAGS for tag in tags]
    capsys.readouterr()
    test = tmp_path / "test.dat"
    test.write_text("2 qid:1 1:1 3:0.5\n2 qid:1 2:1\n1 qid:2 1:1 9:4\n")
    assert run("svm-hmm-classify", test, model, output) == 0
    text = capsys.readouterr().out
    wrong = sum(a != b for a, b in zip(output.read_text().split(), "221", strict=True))
    assert wrong == 1  # the first token is tagged 1
    assert reported(text, "Average loss on test set") == 0.5
    assert "Zero/one-error on test set: 50.00% (1 correct, 1 incorrect, 2 total)" in text
    assert reported(text, "Average loss per token") == 0.3333


@pytest.mark.parametrize("algorithm", [0, 3])
def test_algorithms_find_the_same_objective(words, tmp_path, capsys, algorithm):
    options = ("-c", 10, "-e", 0.001, "-w", algorithm)
    assert run("svm-hmm-learn", *options, words, tmp_path / "model") == 0
    found = reported(capsys.readouterr().out, "Primal objective value")
    assert run("svm-hmm-learn", "-c", 10, "-e", 0.001, words, tmp_path / "model") == 0
    expected = reported(capsys.readouterr().out, "Primal objective value")
    assert found == pytest.approx(expected, abs=2 * 10 * 0.001)
    estimator = mm.load(tmp_path / "model")
    assert estimator.solver == "auto"


@pytest.mark.parametrize(
    ("options", "solver"),
    [
        ([], "auto"),
        (["-w", "0", "-k", "7"], NSlack(batch=7, tol=None, epsilon=0.5)),
        (["-w", "1"], NSlack(batch=100, tol=None, epsilon=0.5)),
        (["-w", "3", "-f", "9"], OneSlack(cache_size=0, tol=None, epsilon=0.5)),
        (["-w", "4", "-f", "9"], OneSlack(cache_size=9, tol=None, epsilon=0.5)),
        (["-w", "4"], OneSlack(cache_size=5, tol=None, epsilon=0.5)),
    ],
)
def test_w_k_and_f_are_those_of_svm_struct(words, tmp_path, monkeypatch, options, solver):
    seen = []

    def fit(self, X, y, **others):
        seen.append(self.solver)
        return plain(self, X, y, **others)

    plain = mm.SequenceTagger.fit
    monkeypatch.setattr(mm.SequenceTagger, "fit", fit)
    assert run("svm-hmm-learn", "-c", 10, "-e", 0.5, *options, words, tmp_path / "model") == 0
    assert seen == [solver]


def test_ocr_letters_as_svm_hmm(tmp_path, capsys):
    """SVM-HMM 3.10 ends at a primal value of 2666.5; epsilon leaves a gap of 100."""
    arrays = np.load(find_data("ocr_letters/letters.npz"))
    word = np.repeat(np.arange(len(arrays["lengths"])), arrays["lengths"])
    fold = arrays["folds"][word]
    X = np.hstack([arrays["pixels"], np.ones((len(word), 1), np.uint8)])
    for name, rows in (("train", fold != 0), ("test", fold == 0)):
        write_svmlight(
            tmp_path / name, X[rows], arrays["labels"][rows].astype(int) + 1, qid=word[rows]
        )
    model = tmp_path / "model"
    assert run("svm-hmm-learn", "-c", 1000, "-e", 0.1, tmp_path / "train", model) == 0
    text = capsys.readouterr().out
    assert abs(reported(text, "Primal objective value") - 2666.5) <= 100
    assert reported(text, "Dual objective value") <= 2666.5
    assert run("svm-hmm-classify", tmp_path / "test", model, tmp_path / "tags") == 0
    assert reported(capsys.readouterr().out, "Average loss per token") <= 0.13


# ----- svm-perf ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_classes(tmp_path_factory):
    path = tmp_path_factory.mktemp("perf") / "train.dat"
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(40, 4)), 3)
    y = np.where(X[:, 0] + rng.normal(size=40) > 0.4, 1, -1)
    write_svmlight(path, X, y)
    return path, X, y


@pytest.mark.parametrize("bias", [0, 1, 2.5])
@pytest.mark.parametrize("loss", [1, 2, 3, 4, 5, 10])
def test_perf_objective_is_that_of_svm_perf(two_classes, tmp_path, capsys, bias, loss):
    """c_light = 100 c / n for the error rate; pairs of rows for the ROC area; else all tables."""
    path, _, y = two_classes
    model, output = tmp_path / "model", tmp_path / "scores"
    options = ("-c", 2, "-e", 0.001, "-l", loss, "--b", bias)
    assert run("svm-perf-learn", *options, path, model) == 0
    primal = reported(capsys.readouterr().out, "Primal objective value")
    assert run("svm-perf-classify", path, model, output) == 0
    scores = np.loadtxt(output)
    if loss == 2:
        slack = 100.0 / len(y) * np.maximum(1 - y * scores, 0).sum()
    elif loss == 10:
        pairs = np.subtract.outer(scores[y > 0], scores[y < 0])
        slack = 100.0 * np.maximum(1 - pairs, 0).mean()
    else:
        slack = slack_of_svm_perf(loss, y, scores)
    w = weights_of(model, "svm-perf")
    assert len(w) == (5 if bias else 4)
    assert primal == pytest.approx(0.5 * w @ w + 2 * slack, rel=1e-4)


def slack_of_svm_perf(loss, y, scores):
    """Of all tables: a positive and b negative rows, the best ones, are labelled positive."""
    high, low = (np.sort(scores[rows])[::-1] for rows in (y > 0, y < 0))
    P, slack = len(high), 0.0
    for a in range(P + 1):
        for b in range(len(low) + 1):
            allowed, value = {
                1: (True, 2 * a / (P + a + b)),
                3: (a + b == P, a / P),
                4: (a + b >= P // 2, a / max(a + b, 1)),
                5: (a + b <= 2 * P, a / P),
            }[loss]
            if allowed:
                margin = 100 / len(y) * (high[a:].sum() - low[:b].sum())
                slack = max(slack, 100 * (1 - value) - margin)
    return slack


@pytest.mark.parametrize("loss", [1, 3, 4, 5])
def test_perf_prints_measures(two_classes, tmp_path, capsys, loss):
    path, _, y = two_classes
    model, output = tmp_path / "model", tmp_path / "scores"
    assert run("svm-perf-learn", "-c", 10, "-l", loss, path, model) == 0
    assert "note" not in capsys.readouterr().err
    estimator = mm.load(model)
    positive = int(np.sum(y > 0))
    assert estimator.k == {4: positive // 2, 5: 2 * positive}.get(loss)
    assert run("svm-perf-classify", path, model, output) == 0
    text = capsys.readouterr().out
    scores = np.loadtxt(output)
    hits = int(np.sum((scores > 0) & (y > 0)))
    f1 = 200 * hits / (np.sum(scores > 0) + positive)
    assert reported(text, "F1") == pytest.approx(f1, abs=0.005)
    pairs = np.subtract.outer(scores[y > 0], scores[y < 0])
    area = 100 * np.mean((pairs > 0) + 0.5 * (pairs == 0))  # weights may be zero
    assert reported(text, "ROCArea") == pytest.approx(area, abs=0.005)
    assert reported(text, "Accuracy") == pytest.approx(
        100 * np.mean((scores > 0) == (y > 0)), abs=0.005
    )


def test_perf_without_labels(two_classes, tmp_path, capsys):
    path, X, _ = two_classes
    model = tmp_path / "model"
    assert run("svm-perf-learn", "-c", 1, "-v", 0, path, model) == 0
    write_svmlight(tmp_path / "test", X[:3], [0, 0, 0])
    assert run("svm-perf-classify", tmp_path / "test", model, tmp_path / "out") == 0
    told = capsys.readouterr()
    assert told.out == "" and "3 lines without a label" in told.err
    assert len((tmp_path / "out").read_text().splitlines()) == 3
    assert run("svm-perf-learn", tmp_path / "test", model) == 1
    assert "test:1: expected a label above or below 0" in capsys.readouterr().err


# ----- svm-rank ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def queries(tmp_path_factory):
    path = tmp_path_factory.mktemp("rank") / "train.dat"
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(30, 4)), 3)
    y = np.clip(np.round(X[:, 0] + rng.normal(size=30)), 0, 2).astype(int)
    qid = np.repeat([1, 2, 5, 9], [10, 8, 9, 3])
    y[qid == 9] = 1  # nothing to rank
    write_svmlight(path, X, y, qid)
    return path, y, qid


@pytest.mark.parametrize("loss", [1, 2])
def test_rank_objective_is_that_of_svm_rank(queries, tmp_path, capsys, loss):
    path, y, qid = queries
    model, output = tmp_path / "model", tmp_path / "scores"
    assert run("svm-rank-learn", "-c", 3, "-l", loss, path, model) == 0
    text = capsys.readouterr().out
    assert run("svm-rank-classify", path, model, output) == 0
    told = capsys.readouterr().out
    scores = np.loadtxt(output)
    slacks, swapped, shares, n_pairs = 0.0, 0, [], 0
    for query in np.unique(qid):
        rows = np.flatnonzero(qid == query)
        pairs = [scores[i] - scores[j] for i in rows for j in rows if y[i] > y[j]]
        n_pairs += len(pairs)
        total = sum(max(1 - difference, 0) for difference in pairs)
        slacks += total / len(pairs) if loss == 2 and pairs else total
        wrong = sum(difference <= 0 for difference in pairs)
        swapped += wrong
        shares.append(wrong / len(pairs) if pairs else 0.0)
    w = weights_of(model, "svm-rank")
    expected = 0.5 * w @ w + 3 / 4 * slacks
    assert reported(text, "Primal objective value") == pytest.approx(expected, rel=1e-4)
    largest = 3 * 0.001 * (n_pairs / 4 if loss == 1 else 1)
    assert reported(text, "Upper bound on duality gap") <= largest
    assert reported(told, "Total Num Swappedpairs") == swapped
    assert reported(told, "Avg Swappedpairs Percent") == pytest.approx(
        100 * np.mean(shares), abs=0.005
    )
    assert reported(told, "Average loss on test set") == pytest.approx(np.mean(shares), abs=5e-5)


# ----- svm-cfg ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    """Small trees, and sentences with several derivations."""
    path = tmp_path_factory.mktemp("cfg") / "train.mrg"
    rng = np.random.default_rng(7)
    trees = [random_tree(rng, n) for n in (4, 1, 3, 2)]
    write_trees(path, trees)
    return path, trees


@pytest.mark.parametrize("rescaling", [1, 2])
@pytest.mark.parametrize("slack", [1, 2])
@pytest.mark.parametrize("loss", [0, 1])
def test_cfg_objective_has_losses_of_100(treebank, tmp_path, capsys, rescaling, slack, loss):
    """All derivations are listed."""
    path, trees = treebank
    model = tmp_path / "model"
    options = ("-c", 3, "-e", 0.01, "-o", rescaling, "-p", slack, "-l", loss)
    assert run("svm-cfg-learn", *options, path, model) == 0
    text = capsys.readouterr().out
    primal = reported(text, "Primal objective value")
    assert reported(text, "Upper bound on duality gap") <= 3 * 0.01
    problem = SimpleNamespace(decoder=SimpleNamespace(grammar=mm.load(model).grammar_))
    sentences = [tree.tags() for tree in trees]
    name = {0: "zero_one", 1: "f1"}[loss]
    twin = GrammarTwin(problem, trees, sentences, [], [], None, 1, name)
    assert max(len(twin.outputs(i)) for i in range(4)) > 1
    w = weights_of(model, "svm-cfg")
    slacks = 0.0
    for i in range(len(trees)):
        right, worst = w @ twin.psi(i, twin.truth(i)), 0.0
        for y in twin.outputs(i):
            cost = (100.0 * twin.loss(i, y)) ** (1 / slack)
            margin = w @ twin.psi(i, y) - right
            worst = max(worst, cost * (1 + margin) if rescaling == 1 else cost + margin)
        slacks += worst**slack
    assert primal == pytest.approx(0.5 * w @ w + 3 / 4 * slacks, rel=1e-4)
    assert slacks > 1.0  # not a problem without errors


TREES = """\
(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)) (. .))
( (S (NP-SBJ (PRP we)) (VP (VBP see) (NP (DT a) (NN dog)))) )
"""
OTHER_TREES = """\
(S (NP (DT a) (NN dog)) (VP (VBZ barks)) (. .))
(S (NP (DT the) (NN man)) (VP (VBP see)) (. .))
(S (NP (PRP we)) (VP (VBP see) (DT the) (NN cat)))
(S (UH oh))
"""


@pytest.mark.parametrize("loss", [0, 1])
def test_cfg_writes_trees_and_scores(tmp_path, capsys, loss):
    train, test = tmp_path / "train.mrg", tmp_path / "test.mrg"
    model, output = tmp_path / "model", tmp_path / "trees"
    train.write_text(TREES)
    test.write_text(OTHER_TREES)
    assert run("svm-cfg-learn", "-c", 1000, "-l", loss, train, model) == 0
    assert run("svm-cfg-classify", train, model, output) == 0
    assert [str(tree) for tree in read_trees(output).trees] == [
        "(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)) (. .))",
        "(S (NP (PRP we)) (VP (VBP see) (NP (DT a) (NN dog))))",
    ]
    assert "(2 correct, 0 incorrect, 2 total)" in capsys.readouterr().out
    assert run("svm-cfg-classify", test, model, output) == 0
    text, warned = capsys.readouterr()
    assert "2 of 4 sentences have no derivation" in warned
    lines = output.read_text().splitlines()
    assert lines[0] == "(S (NP (DT a) (NN dog)) (VP (VBZ barks)) (. .))"
    assert lines[2] == "(S (NP (PRP we)) (VP (VBP see) (NP (DT the) (NN cat))))"
    assert len(lines) == 4
    # 3, 3, 3, 1 constituents are true; 3, 1, 4, 1 are predicted, and 3, 1, 3, 1 of them right.
    losses = [0, 50, 100 / 7, 0] if loss == 1 else [0, 100, 100, 0]
    assert reported(text, "Average loss on test set") == pytest.approx(np.mean(losses), abs=5e-5)
    assert "Zero/one-error on test set: 50.00% (2 correct, 2 incorrect, 4 total)" in text
    assert reported(text, "Precision") == 88.89
    assert reported(text, "Recall") == 80.0
    assert reported(text, "F1") == 84.21
    assert reported(text, "Exact match") == 50.0


def test_cfg_models_are_parsers(tmp_path):
    (tmp_path / "train.mrg").write_text(TREES)
    assert run("svm_cfg_learn", "-c", 10, "-v", 0, tmp_path / "train.mrg", tmp_path / "m") == 0
    parser = mm.load(tmp_path / "m")
    assert isinstance(parser, mm.GrammarParser)
    assert parser.C == 10 / 2 / 100 and parser.epsilon == 0.1 / 100


# ----- options and errors -----------------------------------------------------------------------


def test_options_without_effect_are_noted(words, tmp_path, capsys):
    options = ("-h", 5, "-m", 40, "-#", 1000, "-y", 0, "-a", "alphas", "--b", 10)
    assert run("svm-hmm-learn", "-c", 10, *options, words, tmp_path / "model") == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "note:" in line]
    assert [note.split()[2] for note in notes] == ["-y", "-m", "-h", "-#", "-a", "--b"]
    assert not (tmp_path / "alphas").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["-z", "1"],
        ["--q", "1"],
        ["-c", "-1"],
        ["-c", "nan"],
        ["-e", "0"],
        ["-l", "7"],
        ["-p", "3"],
        ["-t", "2"],
        ["-w", "3", "-p", "2"],
        ["--t", "1", "--e", "2"],
        ["--t", "0", "--e", "1"],
    ],
)
def test_unknown_options_and_values_are_refused(words, tmp_path, capsys, options):
    try:
        code = run("svm-hmm-learn", *options, words, tmp_path / "model")
    except SystemExit as stopped:
        code = stopped.code
    assert code == 2
    assert options[0] in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def test_zero_one_loss_of_svm_perf_is_refused(two_classes, tmp_path, capsys):
    assert run("svm-perf-learn", "-l", 0, two_classes[0], tmp_path / "m") == 2
    assert run("svm-perf-learn", "-l", 4, "--p", 1.5, two_classes[0], tmp_path / "m") == 2
    assert run("svm-perf-learn", "-l", 5, "--p", 0.5, two_classes[0], tmp_path / "m") == 2
    assert "--p of -l 5 must be at least 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("tool", "text", "message"),
    [
        ("svm-hmm", "1 1:1\n2 1:2\n", "bad.dat:1: expected qid:"),
        (
            "svm-hmm",
            "# c\n1 qid:1 1:1\n2 qid:2 1:1\n\n1 qid:1 1:3\n",
            "bad.dat:5: qid:1 comes again",
        ),
        ("svm-hmm", "1 qid:1 1:1\n1.5 qid:1 1:1\n", "bad.dat:2: expected a tag"),
        ("svm-hmm", "1 qid:1 1:1\n2 qid:x 1:1\n", "bad.dat:2: expected a whole number after qid"),
        ("svm-hmm", "1 qid:1 1:1\n2 qid:1 one\n", "bad.dat:2: expected index:value"),
        ("svm-hmm", "1 qid:1 1:1\n1 qid:1 1:2\n", "all labels are 1"),
        ("svm-hmm", "N qid:1 1:1\nV qid:1 1:2\n", "bad.dat:1: expected a number as label"),
        ("svm-multiclass", "1 1:1\n0 1:2\n", "bad.dat:2: expected a class 1, 2"),
        ("svm-multiclass", "1 1:1\n2 2:1 1:2\n", "bad.dat:2: expected increasing indices"),
        ("svm-multiclass", "", "no examples found"),
        ("svm-perf", "1 1:1\n1 1:2\n", "found only one of both"),
        ("svm-rank", "1 qid:1 1:1\n1 qid:1 1:2\n", "no query has lines of different relevance"),
        ("svm-rank", "1 1:1\n2 1:2\n", "bad.dat:1: expected qid:"),
        ("svm-cfg", "(S (NP (DT the) (NN cat)))\n(S (NP (DT a))\n", "bad.dat:2: a bracket"),
        ("svm-cfg", "(S (NN a))\n(S (-NONE- *))\n", "bad.dat:2: no words in the tree"),
        ("svm-cfg", "1 1:1\n2 1:2\n", "this is an svmlight file, expected trees in brackets"),
        ("svm-hmm", "the DT B\ncat NN I\n\na DT B\n", "this is a file of CoNLL columns"),
    ],
)
def test_malformed_files_are_named_with_the_line(tmp_path, capsys, tool, text, message):
    path = tmp_path / "bad.dat"
    path.write_text(text)
    assert run(f"{tool}-learn", path, tmp_path / "model") == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def test_models_of_other_tools_are_refused(words, iris, tmp_path, capsys):
    assert run("svm-multiclass-learn", "-v", 0, iris[0], tmp_path / "model") == 0
    assert run("svm-hmm-classify", words, tmp_path / "model", tmp_path / "out") == 1
    assert "needs a model of svm-hmm-learn" in capsys.readouterr().err
    assert run("svm-hmm-learn", words, words) == 1  # the data is not written over
    assert words.read_text() == WORDS
    assert run("svm-hmm-learn", "-v", 0, words, tmp_path / "model") == 0  # an old model is
    assert run("svm-hmm-classify", words, tmp_path / "model", tmp_path / "model") == 1


def test_files_have_the_default_names_of_svm_struct(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("svm_hmm_learn", "-v", 0, words) == 0  # as the tools themselves are called
    assert run("svm_hmm_classify", "-v", 0, words) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "svm_predictions",
        "svm_struct_model",
    ]


def test_help_lists_the_commands(capsys):
    with pytest.raises(SystemExit):
        run("--help")
    text = capsys.readouterr().out
    for name in ("svm-hmm", "svm-multiclass", "svm-perf", "svm-rank", "svm-cfg"):
        assert f"{name}-learn" in text and f"{name}-classify" in text
        for flag in ("-?", "--help"):
            with pytest.raises(SystemExit) as stopped:
                run(f"{name}-learn", flag)
            assert stopped.value.code == 0
