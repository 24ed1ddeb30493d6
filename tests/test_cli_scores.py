"""What evaluate tells, against counts made here and scikit-learn's."""

import json
import re

import numpy as np
import pytest
from sklearn import metrics
from sklearn.preprocessing import MultiLabelBinarizer

import maxmargin as mm
from cli_tasks import make_files
from maxmargin.cli import main
from maxmargin.metrics import grade_scores, relation_scores, set_scores


class Evaluated:
    """A weak model of a task, its report and what it predicts for the same file."""

    def __init__(self, folder, task, capsys, *options):
        # Few examples and a small C: there should be mistakes to count.
        train, self.test = make_files(task, 6), make_files(task, 40, seed=3)
        model, data = str(folder / "model.mm"), folder / "test"
        (folder / "train").write_text("".join(train.labelled))
        data.write_text("".join(self.test.labelled))
        weak = [*train.options, "--C", "0.05", *options]
        assert main(["train", task, str(folder / "train"), "-o", model, "-q", *weak]) == 0
        capsys.readouterr()
        assert main(["evaluate", model, str(data), "--json"]) == 0
        self.report = json.loads(capsys.readouterr().out)
        assert main(["predict", model, str(data)]) == 0
        self.predicted = capsys.readouterr().out
        self.estimator = mm.load(model)

    def gold(self):
        """First fields of the lines."""
        return [line.split()[0] for line in self.test.labelled]


def test_sets_of_labels(tmp_path, capsys):
    evaluated = Evaluated(tmp_path, "multilabel", capsys)
    names = ["7", "12", "30"]
    binarizer = MultiLabelBinarizer(classes=names)
    gold = binarizer.fit_transform(
        [
            line.split()[0].split(",") if ":" not in line.split()[0] else []
            for line in evaluated.test[0]
        ]
    )
    found = binarizer.transform(
        [line.split(",") if line else [] for line in evaluated.predicted.split("\n")[:-1]]
    )
    report = evaluated.report
    assert 0.0 < report["subset_accuracy"] < 1.0
    assert report["subset_accuracy"] == pytest.approx(metrics.accuracy_score(gold, found))
    assert report["hamming_loss"] == pytest.approx(metrics.hamming_loss(gold, found))
    for average in ("micro", "macro"):
        expected = metrics.precision_recall_fscore_support(
            gold, found, average=average, zero_division=0
        )
        assert tuple(report[average].values()) == pytest.approx(expected[:3])
    examples = metrics.f1_score(gold, found, average="samples", zero_division=1)
    assert report["example_f1"] == pytest.approx(examples)


def test_unknown_labels_of_sets_count():
    scores = set_scores([{"a", "new"}, {"a"}], [{"a"}, set()], labels=["a", "b"])
    assert scores.hamming_loss == pytest.approx(2 / 6) and list(scores.per_label) == [
        "a",
        "b",
        "new",
    ]
    assert scores.micro.recall == pytest.approx(1 / 3) and scores.example_f1 == pytest.approx(1 / 3)


def test_files_of_other_labels_altogether(tmp_path, capsys):
    (tmp_path / "train").write_text("1,2 1:1\n2 2:1\n 1:1 2:1\n")
    (tmp_path / "test").write_text("7,8 1:1\n8 2:1\n")
    model = str(tmp_path / "model.mm")
    assert main(["train", "multilabel", str(tmp_path / "train"), "-o", model, "-q"]) == 0
    assert main(["evaluate", model, str(tmp_path / "test")]) == 0
    printed = capsys.readouterr()
    assert "label '8' is unknown to the model: 2 counted as wrong" in printed.out
    assert "knows none of the labels in this file" in printed.err
    assert "trained on 1, 2" in printed.err


def test_grades(tmp_path, capsys):
    evaluated = Evaluated(tmp_path, "ordinal", capsys)
    order = {"low": 0, "medium": 1, "high": 2}
    gold = [order[grade] for grade in evaluated.gold()]
    found = [order[grade] for grade in evaluated.predicted.split()]
    report = evaluated.report
    error = metrics.mean_absolute_error(gold, found)
    assert report["mean_absolute_error"] == pytest.approx(error) and error > 0
    assert report["accuracy"] == pytest.approx(metrics.accuracy_score(gold, found))
    kappa = metrics.cohen_kappa_score(gold, found, weights="quadratic", labels=[0, 1, 2])
    assert report["kappa"] == pytest.approx(kappa)


def test_kappa_on_random_grades():
    rng = np.random.default_rng(0)
    gold, found = rng.integers(0, 5, (2, 200))
    scores = grade_scores(gold.tolist(), found.tolist(), range(5))
    kappa = metrics.cohen_kappa_score(gold, found, weights="quadratic")
    assert scores.kappa == pytest.approx(kappa)
    assert scores.within_one == pytest.approx(np.mean(abs(gold - found) <= 1))
    assert np.isnan(grade_scores([1, 1], [1, 1], [0, 1]).kappa)


def test_measures(tmp_path, capsys):
    evaluated = Evaluated(tmp_path, "measure", capsys, "--measure", "error")
    gold = np.array([label == "+1" for label in evaluated.gold()])
    found = np.array([label == "1" for label in evaluated.predicted.split()])
    scores = evaluated.estimator.decision_function(mm.formats.read_svmlight(tmp_path / "test").X)
    told = evaluated.report["measures"]
    assert told["accuracy"] == pytest.approx(metrics.accuracy_score(gold, found))
    assert evaluated.report["value"] == told["accuracy"]
    assert told["roc_auc"] == pytest.approx(metrics.roc_auc_score(gold, scores))
    assert told["average_precision"] == pytest.approx(metrics.average_precision_score(gold, scores))
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(
        gold, found, average="binary", zero_division=0
    )
    assert (told["precision"], told["recall"], told["f1"]) == pytest.approx((precision, recall, f1))
    best = np.argsort(-scores, kind="stable")[: gold.sum()]
    assert told["prbep"] == pytest.approx(gold[best].mean())


def test_rankings(tmp_path, capsys):
    evaluated = Evaluated(tmp_path, "rank", capsys)
    relevance = np.array([float(grade) for grade in evaluated.gold()])
    qid = np.array([int(re.search(r"qid:(\d+)", line)[1]) for line in evaluated.test.labelled])
    scores = np.array([float(line) for line in evaluated.predicted.split()])
    right = total = 0
    gains, precisions = [], []
    for q in np.unique(qid):
        y, s = relevance[qid == q], scores[qid == q]
        pairs = [(a, b) for a in range(len(y)) for b in range(len(y)) if y[a] > y[b]]
        total += len(pairs)
        right += sum(s[a] > s[b] for a, b in pairs)
        if y.max() > 0:
            gains.append(metrics.ndcg_score([2.0**y - 1.0], [s], k=3))
        precisions.append(metrics.average_precision_score(y > 0, s) if y.max() > 0 else 0.0)
    assert evaluated.report["pair_accuracy"] == pytest.approx(right / total) and right < total
    assert evaluated.report["ndcg"]["3"] == pytest.approx(np.mean(gains))
    assert evaluated.report["map"] == pytest.approx(np.mean(precisions))


def conlleval(gold, found):
    """Chunks of BIO tags that are in order: precision, recall and F1 by sets."""

    def chunks(tags):
        text = " ".join(tags) + " "
        starts = np.cumsum([0] + [len(tag) + 1 for tag in tags]).tolist()
        return {
            (starts.index(m.start()), m[1], m[0].count(" "))
            for m in re.finditer(r"B-(\S+) (?:I-\1 )*", text)
        }

    a, b = chunks(gold), chunks(found)
    return len(a & b) / len(b), len(a & b) / len(a), 2 * len(a & b) / (len(a) + len(b))


@pytest.mark.parametrize("task", ["tag", "segment"])
def test_chunks(task, tmp_path, capsys):
    evaluated = Evaluated(tmp_path, task, capsys)
    rows = [line.split() for line in evaluated.predicted.splitlines()]
    # An empty line is a token outside, so that no chunk goes over it.
    gold, found = ([row[k] if row else "O" for row in rows] for k in (1, 2))
    precision, recall, f1 = conlleval(gold, found)
    told = evaluated.report["chunks"]
    assert (told["precision"], told["recall"], told["f1"]) == pytest.approx((precision, recall, f1))


def test_attachments(tmp_path, capsys):
    evaluated = Evaluated(tmp_path, "depend", capsys, "--max-passes", "1", "--solver", "perceptron")
    gold, found = (
        [line.split("\t") for line in text.splitlines() if line and line[0] != "#"]
        for text in ("".join(evaluated.test.labelled), evaluated.predicted)
    )
    heads = np.array([a[6] == b[6] for a, b in zip(gold, found, strict=True)])
    arcs = heads & np.array([a[7] == b[7] for a, b in zip(gold, found, strict=True)])
    counts = np.array([row[3] != "PUNCT" for row in gold])
    report = evaluated.report
    assert (report["uas"], report["las"]) == pytest.approx((heads.mean(), arcs.mean()))
    without = report["without_punctuation"]
    expected = (heads[counts].mean(), arcs[counts].mean(), counts.sum())
    assert (without["uas"], without["las"], without["words"]) == pytest.approx(expected)
    subjects = np.array([row[7] == "nsubj" for row in gold])
    assert report["relations"]["nsubj"]["recall"] == pytest.approx(arcs[subjects].mean())


def test_a_relation_that_the_model_does_not_know_is_told(tmp_path, capsys):
    train = make_files("depend", 6).labelled
    (tmp_path / "train").write_text("".join(train))
    (tmp_path / "test").write_text(train[0].replace("nsubj", "odd"))
    model = str(tmp_path / "model.mm")
    arguments = ["train", "depend", str(tmp_path / "train"), "-o", model, "-q"]
    assert main([*arguments, "--hash-bits", "12"]) == 0
    assert main(["evaluate", model, str(tmp_path / "test")]) == 0
    printed = capsys.readouterr()
    assert "label 'odd' is unknown to the model: 1 counted as wrong" in printed.out
    assert "warning" not in printed.err


def test_relations_are_right_with_their_heads_only():
    gold, found = [[(2, "a"), (0, "b"), (2, "a")]], [[(2, "a"), (0, "a"), (1, "a")]]
    scores = relation_scores(gold, found)
    assert scores.per_relation["a"][:3] == pytest.approx((1 / 3, 1 / 2, 2 / 5))
    assert scores.las == pytest.approx(1 / 3) and scores.per_relation["b"].recall == 0.0


def brackets(text):
    """Labelled spans of a tree without punctuation, by counting brackets."""
    spans, stack, place = [], [], 0
    for token in re.findall(r"\(|\)|[^\s()]+", text):
        if token == "(":
            stack.append([None, place, False])
        elif token == ")":
            label, start, is_tag = stack.pop()
            if not is_tag and place > start:
                spans.append((label, start, place))
        elif stack[-1][0] is None:
            stack[-1][0] = token
        else:
            stack[-1][2] = True
            place += stack[-1][0] != "."
    return spans


def test_constituents(tmp_path, capsys):
    train = "(S (NP (DT the) (NN cat)) (VP (VBD ran)) (. .))\n(S (DT a) (NP (NN b)) (VP (VBD c)))\n"
    test = [
        "(S (NP (DT the) (NN dog)) (VP (VBD sat)) (. .))",
        "(S (NP (DT a)) (NP (NN dog)) (VP (VBD sat)))",
        "(S (NP (NN dog)) (X (VBD sat)) (NP (NN dog)) (VP (VBD sat)))",
    ]
    (tmp_path / "train").write_text(train)
    (tmp_path / "test").write_text("\n".join(test))
    model = str(tmp_path / "model.mm")
    assert main(["train", "parse", str(tmp_path / "train"), "-o", model, "-q"]) == 0
    assert main(["evaluate", model, str(tmp_path / "test"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert main(["predict", model, str(tmp_path / "test")]) == 0
    found = capsys.readouterr().out.splitlines()
    right = n_gold = n_found = exact = 0
    for a, b in zip(map(brackets, test), map(brackets, found), strict=True):
        n_gold, n_found = n_gold + len(a), n_found + len(b)
        exact += sorted(a) == sorted(b)
        right += sum(min(a.count(span), b.count(span)) for span in set(a))
    assert (report["n_true"], report["n_predicted"], report["n_correct"]) == (
        n_gold,
        n_found,
        right,
    )
    assert report["precision"] == pytest.approx(right / n_found)
    assert report["recall"] == pytest.approx(right / n_gold) and 0 < right < n_gold
    assert report["exact_match"] == pytest.approx(exact / 3)
    assert report["n_fallbacks"] == 1


def test_alignments(tmp_path, capsys):
    evaluated = Evaluated(tmp_path, "align", capsys)

    def pairs(text):
        found = []
        for block in text.split("# ")[1:]:
            rows = block.split("\n")[2:5:2]
            places = [np.cumsum([c != "-" for c in row]) for row in rows]
            columns = zip(*rows, *places, strict=True)
            found.append({(i, j) for a, b, i, j in columns if a != "-" and b != "-"})
        return found

    gold, found = pairs("".join(evaluated.test.labelled)), pairs(evaluated.predicted)
    shares = [len(a & b) / len(a) for a, b in zip(gold, found, strict=True)]
    assert evaluated.report["pair_accuracy"] == pytest.approx(np.mean(shares)) and min(shares) < 1.0
    assert evaluated.report["exact"] == pytest.approx(
        np.mean([a == b for a, b in zip(gold, found, strict=True)])
    )


def test_label_trees(tmp_path, capsys):
    evaluated = Evaluated(tmp_path, "label-tree", capsys)
    gold, found = (
        np.array([line.split()[2] for line in text.splitlines() if line]).reshape(-1, 3)
        for text in ("".join(evaluated.test.labelled), evaluated.predicted)
    )
    right = gold == found
    assert evaluated.report["accuracy"] == pytest.approx(right.mean()) and not right.all()
    assert evaluated.report["tree_accuracy"] == pytest.approx(right.all(axis=1).mean())
    assert evaluated.report["node_accuracies"] == pytest.approx(right.mean(axis=0).tolist())
