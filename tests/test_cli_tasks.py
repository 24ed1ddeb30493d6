"""Every task of the command line: train, predict, evaluate, as files and as a filter."""

import argparse
import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import maxmargin as mm
from cli_tasks import MAKE, make_files
from maxmargin.cli import main
from maxmargin.cli.files import UNITS, read_model
from maxmargin.cli.tasks import TASKS

FILLED_IN = ("depend", "parse", "align", "label-tree")  # whose predictions are files like the input


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, a labelled and an unlabelled file of each task."""
    folder = tmp_path_factory.mktemp("tasks")
    for task in MAKE:
        train, test = make_files(task, 60), make_files(task, 12, seed=1)
        (folder / f"{task}.train").write_text("".join(train.labelled))
        (folder / f"{task}.test").write_text("".join(test.labelled))
        (folder / f"{task}.bare").write_text("".join(test.bare))
        model = str(folder / f"{task}.mm")
        arguments = ["train", task, str(folder / f"{task}.train"), "-o", model, "-q"]
        assert main([*arguments, *train.options]) == 0, task
    return folder


def predicted(folder, task, name, capsys, *options):
    """What predict writes for a file."""
    capsys.readouterr()
    data = name if name == "-" else str(folder / f"{task}.{name}")
    assert main(["predict", str(folder / f"{task}.mm"), data, *options]) == 0
    printed = capsys.readouterr()
    assert "warning" not in printed.err
    return printed.out


def test_all_tasks_have_files():
    assert set(MAKE) == set(TASKS)
    assert {task.unit for task in TASKS.values()} == set(UNITS)


@pytest.mark.parametrize("task", MAKE)
def test_labels_are_not_needed_and_not_looked_at(folder, task, capsys):
    labelled = predicted(folder, task, "test", capsys)
    bare = predicted(folder, task, "bare", capsys)
    if task in ("tag", "segment"):  # which keep the column of labels
        rows = [line.split() for line in labelled.splitlines()]
        labelled = "".join(f"{' '.join([row[0], row[-1]] if row else [])}\n" for row in rows)
    assert labelled == bare != ""


@pytest.mark.parametrize("task", MAKE)
def test_predictions_are_as_good_as_evaluate_says(folder, task, capsys):
    test = make_files(task, 12, seed=1)
    model, data = str(folder / f"{task}.mm"), str(folder / f"{task}.test")
    assert main(["evaluate", model, data]) == 0
    assert len(capsys.readouterr().out) > 20
    assert main(["evaluate", model, data, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["task"] == task
    score = report
    for name in test.score:
        score = score[name]
    assert test.least <= score <= 1.0, report


@pytest.mark.parametrize("task", FILLED_IN)
def test_predictions_can_be_read_as_input(folder, task, capsys):
    text = predicted(folder, task, "bare", capsys)
    again = folder / f"{task}.again"
    again.write_text(text)
    assert predicted(folder, task, "again", capsys) == text or task == "align"  # titles grow
    assert main(["evaluate", str(folder / f"{task}.mm"), str(again), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    perfect = {"depend": "las", "parse": "f1", "align": "f1", "label-tree": "accuracy"}
    assert report[perfect[task]] == 1.0


@pytest.mark.parametrize("task", MAKE)
def test_unlabelled_files_are_not_evaluated_or_learned_from(folder, task, capsys):
    bare, new = str(folder / f"{task}.bare"), str(folder / "never.mm")
    if task in ("parse", "align"):  # flat trees are trees, and rows without gaps may be aligned
        return
    options = make_files(task, 1).options
    for arguments in (
        ["evaluate", str(folder / f"{task}.mm"), bare],
        ["train", task, bare, "-o", new, *options],
    ):
        assert main(arguments) == 1
        message = capsys.readouterr().err.strip().splitlines()[-1]
        assert message.startswith(f"maxmargin: error: {bare}"), message


OTHER_LOSSES = [(t.name, loss) for t in TASKS.values() for loss in t.losses[1:]]


@pytest.mark.parametrize(("task", "loss"), OTHER_LOSSES)
def test_losses_that_a_task_declares(task, loss, tmp_path):
    files = make_files(task, 12)
    (tmp_path / "data").write_text("".join(files.labelled))
    train = ["train", task, str(tmp_path / "data"), "-o", str(tmp_path / "new.mm"), *files.options]
    assert main([*train, "-q", "--loss", loss, "--max-passes", "3"]) in (0, 3)
    assert mm.load(tmp_path / "new.mm").loss == loss


# ----- several answers ----------------------------------------------------------------------------


@pytest.mark.parametrize("task", MAKE)
def test_answers_that_a_task_has(folder, task, capsys):
    for name, options in (("k", ["--k", "2"]), ("scores", ["--scores"])):
        if name in TASKS[task].answers:
            assert predicted(folder, task, "bare", capsys, *options)
        else:
            model, data = str(folder / f"{task}.mm"), str(folder / f"{task}.bare")
            assert main(["predict", model, data, *options]) == 2
            assert (
                f"--{name} is not available for models of the task '{task}'"
                in capsys.readouterr().err
            )


def test_the_k_best_of_everything(folder, capsys):
    """The first is what predict gives, and scores are those of the estimator."""
    for task in ("tag", "segment", "depend", "label-tree"):
        blocks = predicted(folder, task, "bare", capsys, "--k", "3").strip().split("\n\n")
        plain = predicted(folder, task, "bare", capsys).strip().split("\n\n")
        assert len(blocks) == 3 * len(plain), task
        firsts = [block.partition("\n")[2] for block in blocks[::3]]
        assert firsts == plain, task
        scores = [float(block.splitlines()[0].rpartition(" ")[2]) for block in blocks]
        assert all(a >= b for a, b in zip(scores[::3], scores[1::3], strict=True))
        assert [block.splitlines()[0].split()[3] for block in blocks[:4]] == ["1", "2", "3", "1"]
    inputs = [[(word,) for word in text.split()] for text in make_files("tag", 12, seed=1).bare]
    expected = mm.load(folder / "tag.mm").predict_k(inputs, 1)
    text = predicted(folder, "tag", "bare", capsys, "--scores")
    shown = [float(line.rpartition(" ")[2]) for line in text.splitlines() if line[:1] == "#"]
    assert shown == pytest.approx([score for ((_, score),) in expected], rel=1e-6)


def test_scores_of_rows(folder, capsys):
    best = predicted(folder, "multiclass", "bare", capsys).split()
    ranked = predicted(folder, "multiclass", "bare", capsys, "--scores").splitlines()
    assert [line.partition(":")[0] for line in ranked] == best
    assert all(len(line.split()) == 4 for line in ranked)
    two = predicted(folder, "multiclass", "bare", capsys, "--k", "2").splitlines()
    assert [line.split() for line in two] == [line.split()[:2] for line in ranked]
    on = [
        ",".join(pair.split(":")[0] for pair in line.split() if float(pair.split(":")[1]) > 0)
        for line in predicted(folder, "multilabel", "bare", capsys, "--scores").splitlines()
    ]
    assert on == predicted(folder, "multilabel", "bare", capsys).split("\n")[:-1]
    for line in predicted(folder, "measure", "bare", capsys, "--scores").splitlines():
        label, score = line.split()
        assert (label == "1") == (float(score) > 0)
    cuts = mm.load(folder / "ordinal.mm").thresholds_
    for line in predicted(folder, "ordinal", "bare", capsys, "--scores").splitlines():
        grade, score = line.split()
        assert grade == ["low", "medium", "high"][sum(float(score) > cuts)]


def test_measures_of_rankings_have_scores_only(folder, capsys):
    data, model = str(folder / "measure.train"), str(folder / "roc.mm")
    train = ["train", "measure", data, "-o", model, "-q", "--measure", "roc_auc", "--C", "100"]
    assert main(train) == 0
    assert main(["predict", model, data]) == 0
    scores = [float(line) for line in capsys.readouterr().out.splitlines()]
    expected = mm.load(model).decision_function(mm.formats.read_svmlight(data).X)
    assert scores == pytest.approx(expected.tolist())


def test_parse_reads_columns_of_words_and_tags(folder, capsys):
    (folder / "parse.columns").write_text("the DT\ncat NN\nran VBD\n. .\n\ndog NN\n( VBD\n")
    trees = predicted(folder, "parse", "columns", capsys).splitlines()
    assert trees[0] == "(S (NP (DT the) (NN cat)) (VP (VBD ran)) (. .))"
    assert trees[1] == "(S (NP (NN dog)) (VP (VBD -LRB-)))"


def test_a_grammar_of_relative_frequencies_is_used_like_the_other(folder, capsys):
    trees = mm.formats.read_trees(folder / "parse.train").trees
    mm.PCFGParser().fit(trees).save(folder / "pcfg.mm")
    for command in ("predict", "evaluate"):
        assert main([command, str(folder / "pcfg.mm"), str(folder / "parse.test")]) == 0
    assert "trees right" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: mm.HomologyRanker().fit([("AC", ["AC", "GG"])], [(0, ("AC", "AC"))]),
            "HomologyRanker",
        ),
        (
            lambda: mm.TreeLabeler(tree=[(0, 1)]).fit(
                {"nodes": np.eye(4).reshape(2, 2, 4), "edges": np.ones((2, 1, 3))}, [[0, 1], [1, 0]]
            ),
            "needs features of edges",
        ),
        (
            lambda: mm.SequenceSegmenter().fit([np.eye(2)], [[(0, 1, "a")]]),
            "trained on feature vectors",
        ),
    ],
)
def test_models_whose_inputs_no_file_holds(make, message, tmp_path, capsys):
    make().save(tmp_path / "model.mm")
    assert main(["predict", str(tmp_path / "model.mm"), "x"]) == 1
    printed = capsys.readouterr().err
    assert message in printed and "from Python" in printed


# ----- as a filter --------------------------------------------------------------------------------


class Trickle(io.StringIO):
    """A standard input that comes in small pieces, cut anywhere."""

    def __init__(self, content, size):
        super().__init__()
        self.buffer = io.BytesIO(content)
        self.buffer.read1 = lambda _: self.buffer.read(size)


@pytest.mark.parametrize("task", MAKE)
def test_a_stream_is_labelled_as_the_file_is(folder, task, monkeypatch, capsys):
    for name in ("bare", "test"):
        content = (folder / f"{task}.{name}").read_bytes()
        whole = predicted(folder, task, name, capsys)
        for size in (7, 64, 10**6):
            monkeypatch.setattr(sys, "stdin", Trickle(content, size))
            assert predicted(folder, task, "-", capsys) == whole, (task, name, size)


@pytest.mark.parametrize(
    ("task", "bad"),
    [
        ("tag", "a b c\n"),
        ("multiclass", "1 x:2\n"),
        ("depend", "1\ta\n"),
        ("parse", "(S (NP) (VP (VBD x)))\n"),
        ("align", "# t\n>a\nAC\n>b\nA?\n"),
        ("label-tree", "1 0 A 0:1\n"),
    ],
)
def test_errors_count_the_lines_of_the_stream(folder, task, bad, monkeypatch, capsys):
    text = "".join(make_files(task, 12, seed=1).labelled)
    line = text.count("\n") + bad.count("\n")
    monkeypatch.setattr(sys, "stdin", Trickle((text + bad).encode(), 50))
    assert main(["predict", str(folder / f"{task}.mm"), "-"]) == 1
    message = capsys.readouterr().err.strip().splitlines()[-1]
    assert message.startswith(f"maxmargin: error: <stdin>:{line}:"), message


def test_a_stream_without_anything_is_refused(folder, monkeypatch, capsys):
    for task in MAKE:
        monkeypatch.setattr(sys, "stdin", Trickle(b"\n \n", 10))
        assert main(["predict", str(folder / f"{task}.mm"), "-"]) == 1
        assert "<stdin>: no " in capsys.readouterr().err


def test_documents_and_comments_alone_are_no_pieces(folder, monkeypatch, capsys):
    text = "-DOCSTART- O\n\noslo O\n\n-DOCSTART- O\n\n"
    monkeypatch.setattr(sys, "stdin", Trickle(text.encode(), 5))
    assert predicted(folder, "tag", "-", capsys) == "oslo O B-LOC\n\n"
    text = "# a\n\n1 0 _ 1:1\n2 1 _\n3 1 _\n\n# b\n"
    monkeypatch.setattr(sys, "stdin", Trickle(text.encode(), 5))
    assert predicted(folder, "label-tree", "-", capsys).startswith("1 0 A 1:1\n")


def test_a_short_sentence_is_not_taken_for_another_kind(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", Trickle(b"1,5\n2,5\n\noslo\n", 8))
    assert [line.split()[:1] for line in predicted(folder, "tag", "-", capsys).splitlines()] == [
        ["1,5"],
        ["2,5"],
        [],
        ["oslo"],
        [],
    ]
    monkeypatch.setattr(sys, "stdin", Trickle((folder / "depend.test").read_bytes(), 100))
    assert main(["predict", str(folder / "tag.mm"), "-"]) == 1
    assert "<stdin>: this is a CoNLL-U treebank" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_streams_of_other_encodings(folder, encoding, monkeypatch, capsys):
    content = "oslo\nö\n\nfar\n".encode(encoding)
    monkeypatch.setattr(sys, "stdin", Trickle(content, 3))
    target = str(folder / f"out.{encoding}")
    model = str(folder / "tag.mm")
    assert main(["predict", model, "-", "--encoding", encoding, "-o", target]) == 0
    with open(target, encoding=encoding) as stream:
        assert stream.read().split()[::2] == ["oslo", "ö", "far"]


def test_a_filter_answers_before_the_end(folder):
    """A real pipe: every answer is there before the next question is asked."""
    command = [sys.executable, "-m", "maxmargin", "predict", str(folder / "tag.mm"), "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for words in (["oslo", "is"], ["far"], ["paris", "."]):
            process.stdin.write(("\n".join(words) + "\n\n").encode())
            process.stdin.flush()
            answer = [process.stdout.readline().split() for _ in words]
            assert [row[0].decode() for row in answer] == words
            assert process.stdout.readline() == b"\n"
        process.stdin.close()
        assert process.stdout.read() == b"" and process.wait(timeout=60) == 0


@pytest.mark.parametrize("task", MAKE)
def test_reports(folder, task, tmp_path, capsys):
    model, test, page = folder / f"{task}.mm", folder / f"{task}.test", tmp_path / "report.html"
    assert main(["report", str(model), "--test", str(test), "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "Certificate" in text and 'id="scores"' in text
    capsys.readouterr()
    assert main(["report", str(model), "-o", str(page)]) == 1
    assert "--force" in capsys.readouterr().err
    assert main(["report", str(model), "-o", str(page), "--force"]) == 0
    assert 'id="scores"' not in page.read_text(encoding="utf-8")


def test_reports_order_the_worst_mistakes(folder, tmp_path):
    page, test, ordered = tmp_path / "report.html", tmp_path / "wrong.txt", {}
    lines = (folder / "tag.test").read_text().splitlines()
    test.write_text("".join(f"{re.sub('B-.*', 'O', line)}\n" for line in lines))
    given = ["report", str(folder / "tag.mm"), "--test", str(test), "-o", str(page)]
    for order in ("rate", "margin", "count"):
        assert main([*given, "--force", "--worst", order]) == 0
        ordered[order] = page.read_text(encoding="utf-8")
    assert "largest share of errors first" in ordered["rate"]
    assert "most errors first" in ordered["count"]
    assert ", margin " in ordered["margin"] and ", margin " not in ordered["rate"]
    with pytest.raises(SystemExit):
        main([*given, "--worst", "length"])


@pytest.mark.parametrize("task", MAKE)
def test_scores_of_files_folds_and_reports_are_the_same(folder, task, capsys):
    capsys.readouterr()
    model, test = str(folder / f"{task}.mm"), str(folder / f"{task}.test")
    assert main(["evaluate", model, test, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    estimator = mm.load(model)
    given = argparse.Namespace(data=test, encoding="utf-8", separator=None)
    examples = TASKS[task].examples(read_model(model, test), given)
    tally = TASKS[task].count(estimator, examples)
    if "intervals" in told:
        scores = {name: own["score"] for name, own in told["intervals"]["scores"].items()}
        assert scores == pytest.approx({name: own.score for name, own in tally.scores.items()})
    else:
        assert task == "measure"
        assert tally.scores[told["measure"]].score == pytest.approx(told["value"])


@pytest.mark.parametrize("task", MAKE)
def test_weights_are_shortened(folder, task, tmp_path, capsys):
    model = str(tmp_path / "short.mm")
    train = ["train", task, str(folder / f"{task}.train"), *make_files(task, 1).options]
    assert main([*train, "-o", model, "--compact", "0.2"]) == 0
    short, trained = mm.load(model), mm.load(folder / f"{task}.mm")
    assert short.result_.status == "compacted" and short.result_.relative_gap <= 0.2
    kept, before = (np.count_nonzero(own.result_.w) for own in (short, trained))
    assert f"{kept} of {before} weights were kept" in capsys.readouterr().err
    assert kept < before or task in ("parse", "align", "label-tree")  # few, and none can go
    assert short.result_.dual == trained.result_.dual


def test_weights_that_cannot_be_shortened(folder, tmp_path, capsys):
    data, model = str(folder / "multiclass.train"), str(tmp_path / "model.mm")
    train = ["train", "multiclass", data, "-o", model, "--C", "10"]
    for wrong in (["--compact", "0.01"], ["--compact", "nan"], ["--compact", "inf"]):
        assert main([*train, *wrong]) == 2
        assert "--compact must be above --tol, 0.01" in capsys.readouterr().err
    for wrong in (["--solver", "sgd"], ["--slack", "none", "--solver", "n_slack"]):
        assert main([*train, "--compact", "0.1", *wrong]) == 2
        assert "--compact needs a certified gap" in capsys.readouterr().err
    assert main([*train, "--compact", "0.99", "--max-passes", "2"]) == 3  # not what was asked for
    assert "the model was not compacted" in capsys.readouterr().err
    assert mm.load(model).result_.status == "max_passes"


@pytest.mark.parametrize("task", MAKE)
def test_cross_validation(folder, task, capsys):
    capsys.readouterr()
    options = make_files(task, 1).options
    data = str(folder / f"{task}.train")
    assert main(["cross-validate", task, data, "--folds", "2", "--json", "-q", *options]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["folds"]) == 2 and report["mean"]
