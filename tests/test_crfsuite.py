"""CRFsuite's data files, and its commands."""

import io
import re

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.cli import main, make_parser
from maxmargin.cli.dropins import crfsuite
from maxmargin.formats import read_crfsuite

DATA = """\
B-NP\tw[0]=An\tw[1]=A.P.\tlength:2\r
I-NP\tw[0]=A.P.\tw[1]=Green\tlength:4.5e0\tlength:.5

O\ttime=10\\:30\tback\\\\slash\tboth\\\\:2\ttwice\ttwice
O\tw[0]=:\t

O
"""


def test_attributes_and_their_escapes(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text(DATA)
    data = read_crfsuite(path)
    assert data.y == [["B-NP", "I-NP"], ["O", "O"], ["O"]]
    assert data.X == [
        [
            {"w[0]=An": 1, "w[1]=A.P.": 1, "length": 2},
            {"w[0]=A.P.": 1, "w[1]=Green": 1, "length": 5},
        ],
        [{"time=10:30": 1, "back\\slash": 1, "both\\": 2, "twice": 2}, {"w[0]=": 1}],
        [{}],
    ]
    assert data.n_tokens == 5 and data.n_sequences == 3
    assert data.offsets.tolist() == [0, 2, 4, 5] and data.lines.tolist() == [1, 2, 4, 5, 7]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A\tx\nB\ty:z\n", r"data.txt:2: expected NAME:NUMBER, found 'y:z'; a colon in a name is"),
        ("A\tx\n\nB\ty:nan\n", "data.txt:3: expected NAME:NUMBER"),
        ("A\tx\n\ty\n", "data.txt:2: expected a label first"),
        ("\n\n", "data.txt: no tokens found"),
        ("A\tx:1:2\n", "data.txt:1: expected NAME:NUMBER"),
        ("the DT B\ncat NN I\n\n", "data.txt: no line has a tab, .*'maxmargin train tag'"),
    ],
)
def test_malformed_lines_are_named(tmp_path, text, message):
    path = tmp_path / "data.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(str(tmp_path)) + "/" + message):
        read_crfsuite(path)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Sentences whose tags follow from their words."""
    path = tmp_path_factory.mktemp("crfsuite") / "train.txt"
    tags = {"the": "D", "a": "D", "cat": "N", "dog": "N", "sees": "V", "10:30": "T"}
    rng = np.random.default_rng(0)
    with path.open("w") as stream:
        for _ in range(20):
            words = rng.choice(list(tags), size=int(rng.integers(2, 6)))
            for t, word in enumerate(words):
                fields = [tags[word], "w=" + word.replace(":", "\\:"), f"length:{len(word)}"]
                if t == 0:
                    fields.append("__BOS__")
                stream.write("\t".join(fields) + "\n")
            stream.write("\n")
    return path


@pytest.fixture(scope="module")
def model(corpus, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "crf.model"
    assert main(["crfsuite", "learn", "-q", "-m", str(path), "-p", "c2=0.05", str(corpus)]) == 0
    return path


def test_learning_is_that_of_the_tagger(corpus, model):
    """C = 1 / (2 c2)."""
    data = read_crfsuite(corpus)
    tagger = mm.SequenceTagger(C=10.0, random_state=0).fit(data.X, data.y)
    assert np.array_equal(mm.load(model).coef_, tagger.coef_)


def test_tags_with_and_without_the_reference(corpus, model, capsys):
    data = read_crfsuite(corpus)
    assert main(["crfsuite", "tag", "-m", str(model), str(corpus)]) == 0
    plain = capsys.readouterr().out
    blocks = [block.split("\n") for block in plain.removesuffix("\n\n").split("\n\n")]
    assert blocks == data.y  # the words tell the tags
    assert main(["crfsuite", "tag", "-r", "-m", str(model), str(corpus)]) == 0
    pairs = capsys.readouterr().out
    assert pairs == re.sub(r"(?m)^(.+)$", r"\1\t\1", plain)


def test_performance_has_the_form_of_crfsuite(model, tmp_path, capsys):
    path = tmp_path / "test.txt"
    path.write_text("D\tw=the\nN\tw=cat\n\nV\tw=dog\nD\tw=a\n\nX\tw=sees\n")
    assert main(["crfsuite", "tag", "-qt", "-m", str(model), str(path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Performance by label (#match, #model, #ref) (precision, recall, F1):",
        "    D: (2, 2, 2) (1.0000, 1.0000, 1.0000)",
        "    N: (1, 2, 1) (0.5000, 1.0000, 0.6667)",
        "    T: (0, 0, 0) (0.0000, 0.0000, 0.0000)",
        "    V: (0, 1, 1) (0.0000, 0.0000, 0.0000)",
        "    X: (0, 0, 1) (0.0000, 0.0000, 0.0000)",
        "Macro-average precision, recall, F1: (0.300000, 0.400000, 0.333333)",
        "Item accuracy: 3 / 5 (0.6000)",
        "Instance accuracy: 1 / 3 (0.3333)",
    ]


def test_dump_lists_all_weights(model, capsys):
    assert main(["crfsuite", "dump", str(model)]) == 0
    text = capsys.readouterr().out
    tagger = mm.load(model)
    transitions = re.findall(r"^  \(1\) (\S+) --> (\S+): (\S+)$", text, re.MULTILINE)
    states = re.findall(r"^  \(0\) (.+) --> (\S+): (\S+)$", text, re.MULTILINE)
    assert len(transitions) == np.count_nonzero(tagger.transition_weights_)
    total = sum(float(weight) for *_, weight in [*transitions, *states])
    assert total == pytest.approx(tagger.coef_.sum(), abs=1e-4)
    numbers = {label: k for k, label in enumerate(tagger.classes_)}
    for a, b, weight in transitions:
        expected = tagger.transition_weights_[numbers[a], numbers[b]]
        assert float(weight) == pytest.approx(expected, abs=1e-6)
    names = tagger.features_.feature_names_
    found = {(name, label): float(weight) for name, label, weight in states}
    f = names.index("w=10:30")
    expected = tagger.coef_[f * len(numbers) + numbers["T"]]
    assert found["w=10:30", "T"] == pytest.approx(expected, abs=1e-6)
    assert [line.split(": ", 1)[1] for line in _block(text, "LABELS")] == list(numbers)
    assert [line.split(": ", 1)[1] for line in _block(text, "ATTRIBUTES")] == names


def _block(text, name):
    return text.split(f"{name} = {{\n")[1].split("\n}")[0].splitlines()


def test_holdout_is_tested_on(corpus, tmp_path, capsys):
    whole = read_crfsuite(corpus)
    assert main(["crfsuite", "learn", "-g", "4", "-e", "2", str(corpus)]) == 0
    text = capsys.readouterr().out
    assert "15 instances," in text and "Instance accuracy: 5 / 5" in text
    assert f"Item accuracy: {sum(map(len, whole.y[1::4]))} /" in text
    assert main(["crfsuite", "learn", "-e", "2", str(corpus), str(corpus)]) == 0
    assert "Instance accuracy: 20 / 20" in capsys.readouterr().out
    assert main(["crfsuite", "learn", "-e", "2", str(corpus)]) == 2
    assert main(["crfsuite", "learn", "-g", "1", str(corpus)]) == 2


@pytest.mark.parametrize(("algorithm", "solver"), [("ap", "perceptron"), ("pa", "mira")])
def test_online_algorithms(corpus, tmp_path, algorithm, solver):
    path = tmp_path / "model"
    options = ["-a", algorithm, "-p", "max_iterations=3", "-q", "-m", str(path)]
    assert main(["crfsuite", "learn", *options, str(corpus)]) == 0
    tagger = mm.load(path)
    assert tagger.solver == solver and tagger.result_.n_passes == 3


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], {"C": 0.5, "min_count": 0}),
        (["-a", "l2sgd"], {"C": 0.5, "min_count": 0}),
        (["-a", "ap"], {"solver": "perceptron", "max_passes": 100, "min_count": 0}),
        (["-a", "pa"], {"solver": "mira", "max_passes": 100, "min_count": 0}),
    ],
)
def test_defaults_are_those_of_crfsuite(options, expected):
    arguments = make_parser().parse_args(["crfsuite", "learn", *options])
    assert crfsuite._parameters(arguments) == expected
    others = {"model": None, "type": "1d", "split": None, "holdout": None, "data": ["-"]}
    assert {name: getattr(arguments, name) for name in others} == others


def test_online_algorithms_make_a_pass_at_least(corpus, capsys):
    given = ["-a", "ap", "-p", "max_iterations=0"]
    assert main(["crfsuite", "learn", *given, str(corpus)]) == 2
    assert "-p max_iterations must be at least 1, got 0" in capsys.readouterr().err


def test_parameters_are_noted_or_refused(corpus, tmp_path, capsys):
    path = tmp_path / "model"
    given = ["-p", "feature.minfreq=3", "-p", "c1=1", "-p", "max_iterations=5"]
    assert main(["crfsuite", "learn", "-q", *given, "-m", str(path), str(corpus)]) == 0
    notes = capsys.readouterr().err.splitlines()
    assert (
        "-a lbfgs: a structural SVM is trained instead of a CRF, with C = 1 / (2 c2) = 0.5"
        in (notes[0])
    )
    assert notes[1:] == [
        "maxmargin: note: -p c1 has no effect here",
        "maxmargin: note: -p max_iterations has no effect here",
    ]
    assert mm.load(path).features_.min_count == 3
    for wrong in ("c2", "c2=x", "c2=0", "nothing=1", "feature.minfreq=-1"):
        assert main(["crfsuite", "learn", "-p", wrong, str(corpus)]) == 2
        assert f"-p {wrong.partition('=')[0]}" in capsys.readouterr().err or wrong == "c2"
    for wrong in (["-a", "svm"], ["-x"], ["-z"]):
        with pytest.raises(SystemExit) as stopped:
            main(["crfsuite", "learn", *wrong, str(corpus)])
        assert stopped.value.code == 2
    assert main(["crfsuite", "tag", "-p", "-m", str(path), str(corpus)]) == 1
    assert "'crfsuite learn --probability'" in capsys.readouterr().err
    assert main(["crfsuite", "learn", "-m", str(corpus), str(corpus)]) == 1
    assert main(["crfsuite", "dump", str(corpus)]) == 1


def test_probabilities_in_the_form_of_crfsuite(corpus, tmp_path, capsys):
    """Of whole sequences (-p), of the labels found (-i) and of all labels (-l), by enumeration."""
    path = str(tmp_path / "model")
    learn = ["crfsuite", "learn", "-q", "-m", path, "-p", "c2=5", "--probability"]
    assert main([*learn, str(corpus)]) == 0
    tagger, data = mm.load(path), read_crfsuite(corpus)
    X = [x for x in data.X if len(x) <= 3]
    short = tmp_path / "short.txt"
    short.write_text(
        "".join(
            "".join("\t".join(["?", *map(_field, token.items())]) + "\n" for token in x) + "\n"
            for x in X
        )
    )
    capsys.readouterr()
    assert main(["crfsuite", "tag", "-p", "-i", "-l", "-r", "-m", path, str(short)]) == 0
    blocks = capsys.readouterr().out.split("\n\n")[:-1]
    labels = tagger.classes_.tolist()
    for x, block in zip(X, blocks, strict=True):
        ranked = tagger.predict_k([x], len(labels) ** len(x))[0]
        scores = np.array([score for _, score in ranked]) / tagger.calibration_.temperature
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        head, *lines = block.splitlines()
        assert head == f"@probability\t{shares[0]:.6f}"
        for t, line in enumerate(lines):
            marginals = {
                label: sum(p for (ys, _), p in zip(ranked, shares, strict=True) if ys[t] == label)
                for label in labels
            }
            best = ranked[0][0][t]
            rest = "\t".join(f"{label}:{share:.6f}" for label, share in marginals.items())
            assert line == f"?\t{best}:{marginals[best]:.6f}\t{rest}"


def _field(attribute):
    """An attribute as it stands in a file."""
    name, value = attribute
    return f"{name.replace(chr(92), chr(92) * 2).replace(':', chr(92) + ':')}:{value!r}"


def test_python_crfsuite_reads_the_same(corpus, tmp_path):
    """Its own trainer and ours see the same attributes, by the names of its model."""
    pycrfsuite = pytest.importorskip("pycrfsuite")
    data = read_crfsuite(corpus)
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params={"max_iterations": 3}, verbose=False)
    for x, y in zip(data.X, data.y, strict=True):
        trainer.append(x, y)
    trainer.train(str(tmp_path / "theirs"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "theirs"))
    theirs = {name for name, _ in tagger.info().state_features}
    ours = set(mm.SequenceTagger(random_state=0).fit(data.X, data.y).features_.feature_names_)
    assert ours == theirs


def test_train_tag_reads_attributes(corpus, model, tmp_path, capsys):
    path = tmp_path / "tagger.mm"
    command = ["train", "tag", str(corpus), "-o", str(path), "-q", "--C", "10"]
    assert main(command) == 0
    assert np.array_equal(mm.load(path).coef_, mm.load(model).coef_)
    assert main(["predict", str(path), str(corpus)]) == 0
    ours = capsys.readouterr().out
    assert main(["crfsuite", "tag", "-m", str(path), str(corpus)]) == 0
    assert capsys.readouterr().out == ours
    assert main(["evaluate", str(model), str(corpus)]) == 0
    assert "token accuracy       100.00 %" in capsys.readouterr().out
    assert main([*command, "--features", "words"]) == 2
    assert "--features is for column files" in capsys.readouterr().err
    assert main([*command, "--format", "columns"]) == 1  # lines of different widths
    uniform = tmp_path / "uniform.txt"
    uniform.write_text("A\tx\tb\nB\ty\tb\n\nA\tx\tb\n")
    command = ["train", "tag", str(uniform), "-o", str(tmp_path / "m"), "-q"]
    assert main([*command, "--format", "crfsuite"]) == 0
    assert mm.load(tmp_path / "m").classes_.tolist() == ["A", "B"]
    uniform.write_text("B-X\tx=1\nO\ty=1\n\nI-X\tx=1\n")
    assert main([*command, "--constraints", "bio", "--on-violation", "raise"]) == 1
    assert f"{uniform}:4: " in capsys.readouterr().err
    uniform.write_text("A\tx=1\nA\ty=1\n")
    assert main(command) == 1
    assert "all labels are 'A'" in capsys.readouterr().err


COLUMNS = "the DT D\ncat NN N\n\nthe DT D\n"


@pytest.mark.parametrize("text", [COLUMNS, COLUMNS.replace(" ", "\t"), "the\ncat\n"])
def test_files_without_any_known_attribute_are_refused(model, tmp_path, capsys, text):
    path = tmp_path / "columns.txt"
    path.write_text(text)
    for command in (
        ["crfsuite", "tag", "-m", str(model), str(path)],
        ["predict", str(model), str(path)],
        ["evaluate", str(model), str(path)],
    ):
        assert main(command) == 1
        out, err = capsys.readouterr()
        assert not out and f"error: {path}: " in err and "'maxmargin train tag'" in err


def test_sentences_of_a_stream_may_have_no_known_attribute(model, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"D\tw=new\n\n")))
    assert main(["predict", str(model), "-"]) == 0
    assert capsys.readouterr().out.endswith("\n\n")


def test_models_of_other_formats_cannot_be_compared(corpus, model, tmp_path, capsys):
    (tmp_path / "columns.txt").write_text(COLUMNS)
    other = str(tmp_path / "columns.mm")
    assert main(["train", "tag", str(tmp_path / "columns.txt"), "-o", other, "-q"]) == 0
    for first, second, data in (
        (other, str(model), str(tmp_path / "columns.txt")),
        (str(model), other, str(corpus)),
    ):
        assert main(["evaluate", first, data, "--against", second]) == 1
        assert f"--against {second}: one of the two models" in capsys.readouterr().err


def test_files_that_are_no_models_are_not_replaced(corpus, tmp_path, capsys):
    notes = tmp_path / "notes"
    notes.write_text("mine")
    assert main(["crfsuite", "learn", "-q", "-m", str(notes), str(corpus)]) == 1
    assert "not a model; give another name after -m, or remove it" in capsys.readouterr().err
    assert notes.read_text() == "mine"
    assert main(["crfsuite", "learn", "-q", "-m", "-", str(corpus)]) == 1
    assert "name a file after -m" in capsys.readouterr().err


def test_what_is_not_offered_has_a_hint(corpus, model, capsys):
    with pytest.raises(SystemExit):
        main(["crfsuite", "learn", "-x", str(corpus)])
    assert "-x is not offered here: use 'maxmargin cross-validate tag" in capsys.readouterr().err
    assert main(["predict", str(model), str(corpus), "--confidence"]) == 2
    assert "'maxmargin crfsuite tag -i'" in capsys.readouterr().err
