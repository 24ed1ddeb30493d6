"""``maxmargin cross-validate``: parts of files, and models trained on them."""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_digits

import maxmargin as mm
from cli_corpus import refused, write_corpus, write_hard_corpus
from maxmargin.cli import main
from maxmargin.cli.held_out import split
from maxmargin.cli.tasks import TASKS
from maxmargin.cli.training import Examples
from maxmargin.formats import TokenColumns, read_columns, read_label_trees, read_svmlight
from maxmargin.metrics import chunk_f1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folds")
    write_corpus(folder / "train.txt", 30)
    X, y = load_digits(return_X_y=True)
    dump_svmlight_file(X[:200] / 16, y[:200], str(folder / "train.svm"), zero_based=False)
    return folder


def columns_of(lengths):
    """Sequences whose tokens are called by their places."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    names = [f"{i}.{t}" for i, n in enumerate(lengths) for t in range(n)]
    return TokenColumns([names, names[::-1]], offsets, "file", np.arange(1, len(names) + 1))


def test_sequences_are_taken_as_a_whole():
    data = columns_of([2, 1, 3, 2])
    for chosen in ([2, 0], [3], [0, 1, 2, 3], []):
        own = data.take(chosen)
        expected = [data.sequences()[i] for i in chosen]
        assert own.sequences() == expected and own.n_sequences == len(chosen)
        lines = [data.lines[data.columns[0].index(token[0])] for s in expected for token in s]
        assert own.lines.tolist() == lines and own.source == "file"


@pytest.mark.parametrize("n_folds", [2, 3, 7])
def test_every_example_is_held_out_once(n_folds):
    X, y = np.arange(40.0).reshape(20, 2), [f"y{i}" for i in range(20)]
    for inputs in (X, sparse.csr_matrix(X), X.tolist()):
        folds = list(split(Examples(inputs, y, {"extra": np.arange(20)}), n_folds, 0))
        assert len(folds) == n_folds
        seen = [label for fold in folds for label in fold.test.y]
        assert sorted(seen) == sorted(y)
        for train, test in folds:
            assert len(test.y) in (20 // n_folds, 20 // n_folds + 1)
            assert not {*train.y} & {*test.y} and len(train.y) + len(test.y) == 20
            for part in (train, test):
                rows = part.X.toarray() if sparse.issparse(part.X) else np.asarray(part.X)
                numbers = [int(label[1:]) for label in part.y]
                assert np.array_equal(rows, X[numbers])
                assert part.params["extra"].tolist() == numbers
    again = [fold.test.y for fold in split(Examples(X, y), n_folds, 0)]
    assert again == [fold.test.y for fold in folds]
    assert again != [fold.test.y for fold in split(Examples(X, y), n_folds, 1)]


def test_groups_stay_together():
    groups = np.array([3, 3, 1, 1, 1, 7, 8, 8, 3])
    folds = list(split(Examples(np.eye(9), groups, groups=groups), 3, 0))
    for train, test in folds:
        assert not {*train.groups.tolist()} & {*test.groups.tolist()}
    assert sorted(np.concatenate([test.groups for _, test in folds])) == sorted(groups)
    with pytest.raises(
        ValueError, match=r"--folds must be at most the number of groups .*, 4, got 5"
    ):
        list(split(Examples(np.eye(9), groups, groups=groups), 5, 0))


def test_a_task_without_counts_of_its_own_is_judged_as_in_its_report():
    X, y = load_digits(return_X_y=True)
    model = mm.MulticlassSVM(C=0.01, tol=0.5, random_state=0).fit(X[:100] / 16, y[:100])
    tally = TASKS["multiclass"].count(model, Examples(X[100:200] / 16, y[100:200]))
    score = model.score(X[100:200] / 16, y[100:200])
    assert tally.scores["accuracy"].score == pytest.approx(score)


def validated(capsys, *arguments):
    """The report of a call, as JSON."""
    assert main(["cross-validate", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_scores_of_taggers(folder, capsys):
    found = validated(capsys, "tag", folder / "train.txt", "--folds", 3, "--C", 0.1, "--seed", 4)
    data = read_columns(folder / "train.txt")
    examples = Examples(data.select([0, 1]), data.split(-1))
    expected = []
    for train, test in split(examples, 3, 4):
        tagger = mm.SequenceTagger(
            features=mm.features.WindowFeatures(), C=0.1, random_state=4
        ).fit(train.X, train.y)
        expected.append(chunk_f1(test.y, tagger.predict(test.X)))
    scores = [fold["scores"]["f1"] for fold in found["folds"]]
    assert scores == pytest.approx(expected)
    assert found["mean"]["f1"] == pytest.approx(np.mean(expected))
    assert found["standard_deviation"]["f1"] == pytest.approx(np.std(expected, ddof=1))
    assert sum(fold["n_units"] for fold in found["folds"]) == 30


def test_scores_of_trees_of_labels(tmp_path, capsys):
    """Their features are matrices of nodes, with the examples in rows."""
    data = tmp_path / "trees.txt"
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(23):
        on = rng.random(3) < 0.5
        lines += [
            f"{v + 1} {min(v, 1)} {'ab'[int(on[v] ^ (rng.random() < 0.2))]}" for v in range(3)
        ]
        lines[-3:] = [f"{line} {v + 1}:{on[v]:d}" for v, line in enumerate(lines[-3:])] + [""]
    data.write_text("\n".join(lines))
    found = validated(capsys, "label-tree", data, "--folds", 4, "-q")
    trees = read_label_trees(data)
    part = np.array_split(np.random.default_rng(0).permutation(23), 4)
    for held_out, fold in zip(part, found["folds"], strict=True):
        rest = np.setdiff1d(np.arange(23), held_out)
        labels = np.array(trees.labels)
        alone = mm.TreeLabeler(tree=trees.edges, random_state=0)
        alone.fit([X[rest] for X in trees.X], labels[rest].tolist())
        right = alone.predict([X[np.sort(held_out)] for X in trees.X]) == labels[np.sort(held_out)]
        assert fold["n_units"] == len(held_out)
        assert fold["scores"]["accuracy"] == pytest.approx(right.mean())
    assert main(["path", "label-tree", str(data), "--dev", str(data), "--Cs", "0.01,1", "-q"]) == 0
    assert "best C 1: accuracy" in capsys.readouterr().out


def test_table_of_classes(folder, capsys):
    data = str(folder / "train.svm")
    assert main(["cross-validate", "multiclass", data, "--folds", "4", "--C", "0.1"]) == 0
    printed = capsys.readouterr()
    rows = [line.split() for line in printed.out.splitlines()]
    assert rows[0][:3] == ["fold", "examples", "accuracy"] and len(rows) == 7
    assert [row[1] for row in rows[1:5]] == ["50"] * 4
    shares = [float(row[2]) for row in rows[1:5]]
    assert float(rows[5][1]) == pytest.approx(np.mean(shares), abs=0.01)
    assert float(rows[6][2]) == pytest.approx(np.std(shares, ddof=1), abs=0.01)
    assert printed.err.count("of 4: accuracy") == 4
    loaded = read_svmlight(data)
    assert loaded.X.shape[0] == 200


def test_training_that_stops_early_is_told(tmp_path, capsys):
    data = write_hard_corpus(tmp_path / "hard.txt", 20)
    limits = ["--max-passes", "1", "--C", "10", "-q"]
    assert main(["cross-validate", "tag", str(data), "--folds", "2", *limits]) == 3
    assert "raise --max-passes" in capsys.readouterr().err


def test_bad_arguments(folder, capsys):
    data = str(folder / "train.txt")
    refused(
        ["cross-validate", "tag", data, "--folds", "31"], "in the training file, 30, got 31", capsys
    )
    refused(["cross-validate", "tag", data, "--C", "-1"], "C must be a positive", capsys, code=2)
    refused(["cross-validate", "tag", "nowhere"], "nowhere: No such file", capsys)
    for bad in ("1", "x"):
        with pytest.raises(SystemExit) as stopped:
            main(["cross-validate", "tag", data, "--folds", bad])
        assert stopped.value.code == 2
