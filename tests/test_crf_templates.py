"""Templates of CRF++ and Wapiti."""

import re

import numpy as np
import pytest

import maxmargin as mm
from cli_corpus import write_corpus
from maxmargin.cli import main
from maxmargin.features import WindowFeatures, read_templates
from maxmargin.formats import read_columns

TEMPLATES = """\
# Unigram
U00:%x[-2,0]
U01:%x[0,0]
U02:%x[1,0]
U05:%x[-1,0]/%x[0,1]
u06:%x[-1,1]/%x[0,1]/%x[2,1]

# Bigram
B
"""
SENTENCES = [
    [("He", "PRP"), ("reckons", "VBZ"), ("the", "DT")],
    [("The", "DT")],
    [("a", "DT"), ("reckons", "NN")],
]


def expand(templates, sentence, t):
    """Features of a token as CRF++ makes them: by putting strings in place of %x[row,column]."""

    def value(match):
        place, column = t + int(match[2]), int(match[3])
        if place < 0:
            return f"_B{place}"
        if place >= len(sentence):
            return f"_B+{place - len(sentence) + 1}"
        text = sentence[place][column]
        return text.lower() if match[1] == "X" else text

    return [re.sub(r"%([xX])\[\s*(-?\d+),(\d+)\]", value, template) for template in templates]


def features_of(window, sentences):
    packed = window.transform(sentences)
    names = window.get_feature_names_out()
    return [sorted(names[packed.tokens[[t]].indices]) for t in range(packed.tokens.shape[0])]


@pytest.mark.parametrize("extra", ["", "U90:%X[0,0]|%x[ 3,1]", "*91:%x[-3,0]%x[-3,1]"])
def test_features_are_those_of_crf_plus_plus(extra):
    found = read_templates(TEMPLATES + extra)
    window = WindowFeatures.from_templates(TEMPLATES + extra).fit(SENTENCES)
    assert window.templates_ == found.unigram
    expected = [
        sorted(expand(found.unigram, sentence, t))
        for sentence in SENTENCES
        for t in range(len(sentence))
    ]
    assert features_of(window, SENTENCES) == expected
    distinct = {name for names in expected for name in names}
    assert set(window.get_feature_names_out()) == distinct
    assert window.n_features_out_ == len(distinct)
    again = WindowFeatures.from_state(window.to_state())
    assert features_of(again, SENTENCES) == expected


def test_positions_outside_are_told_apart():
    window = WindowFeatures(["U0:%x[-2,0]"]).fit([["a", "b", "c"]])
    assert set(window.get_feature_names_out()) == {"U0:_B-1", "U0:_B-2", "U0:a"}
    assert features_of(window, [["x", "a", "y", "z"]]) == [["U0:_B-2"], ["U0:_B-1"], [], ["U0:a"]]


def test_padding_of_other_templates_is_one_value():
    window = WindowFeatures(["w[-2]", "U0:%x[-2,0]"]).fit([["a", "b", "c"]])
    assert "w[-2]=<pad>" in window.get_feature_names_out()


def test_templates_are_sorted_by_kind(tmp_path):
    path = tmp_path / "template"
    path.write_text("U00:%x[0,0]\n\nB01:%x[0,1]\n# B\n*02:%x[0,0]\n")
    found = read_templates(path)
    assert found.unigram == ["U00:%x[0,0]", "*02:%x[0,0]"]
    assert found.bigram == ["B01:%x[0,1]", "*02:%x[0,0]"]
    assert not found.has_transitions
    assert read_templates(TEMPLATES).has_transitions
    window = WindowFeatures.from_templates(path, kind="bigram", min_count=2)
    assert window.templates == found.bigram and window.min_count == 2
    with pytest.raises(ValueError, match="no templates of pairs"):
        WindowFeatures.from_templates(TEMPLATES, kind="bigram")
    with pytest.raises(ValueError, match="kind must be"):
        WindowFeatures.from_templates(TEMPLATES, kind="B")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("U00:%x[0,0]\nX01:%x[0,0]\n", "templates:2: template 'X01:%x[0,0]': expected U, B or"),
        ("U00:%x[0,0]\nU01:%x[0]\n", "templates:2: .*expected %x.row,column., found %x.0."),
        ("U00:%x[0,0]\nU01:%x[0\n", "templates:2: .*expected U, B or"),
        ("U00:%x[0,0]\nU01\n", "templates:2: .*no %x.row,column.; for a constant"),
        ('U00:%t[0,0,"^A"]\n', "templates:1: .*%t is not known"),
        ("U0:%x[0,0]\nU01:%x[0," + "9" * 5000 + "]", "templates:2: .{,80}expected.{,100}$"),
        ("B\nB01:%x[0,0]\n", "templates: no templates of labels"),
        ("\n", "templates: no templates of labels"),
    ],
)
def test_bad_templates_are_named_with_the_line(text, message):
    with pytest.raises(ValueError, match=message.replace("[0,0]", r"\[0,0\]")):
        read_templates(text)


def test_templates_that_share_features_are_refused():
    with pytest.raises(ValueError, match="share their features"):
        WindowFeatures(["U:%x[0,0]", "U:%x[1,0]"]).fit([["a", "b"]])
    with pytest.raises(ValueError, match="is given twice"):
        WindowFeatures(["U:%x[0,0]", "U:%x[0,0]"]).fit([["a", "b"]])
    with pytest.raises(ValueError, match="no column 1, the data has 1"):
        WindowFeatures(["U:%x[0,1]"]).fit([["a", "b"]])
    twice = WindowFeatures(["U1:%x[0,0]", "U2:%x[0,0]"]).fit([["a"]])
    assert twice.get_feature_names_out().tolist() == ["U1:a", "U2:a"]


def test_command_line_takes_templates(tmp_path, capsys):
    data = write_corpus(tmp_path / "train.txt", 20)
    template, model = tmp_path / "template", tmp_path / "model.mm"
    template.write_text("U00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\nB\nB01:%x[0,1]\n")
    command = ["train", "tag", str(data), "-o", str(model), "-q", "--features", str(template)]
    assert main(command) == 0
    tagger = mm.load(model)
    assert tagger.features_.templates_ == ["U00:%x[0,0]", "U01:%x[-1,0]/%x[0,0]"]
    assert tagger.transition_features.templates == ["B01:%x[0,1]"]
    columns = read_columns(data)
    X, y = columns.select([0, 1]), columns.split(-1)
    again = mm.SequenceTagger(
        features=WindowFeatures.from_templates(template),
        transition_features=WindowFeatures.from_templates(template, kind="bigram"),
        random_state=0,
    ).fit(X, y)
    assert np.array_equal(tagger.coef_, again.coef_)
    assert main(["evaluate", str(model), str(data), "--json"]) == 0
    capsys.readouterr()
    template.write_text("U00:%x[0,0]\n")
    assert main(command) == 0
    assert "has no template B" in capsys.readouterr().err
    template.write_text("U00:%x[0,0]\nU01:%x[0,9]\n")
    assert main(command) == 1
    assert "no column 9" in capsys.readouterr().err
    template.write_text("U00:%x[0,0]\nw[0]\n")
    assert main(command) == 1
    assert f"{template}:2: template 'w[0]': expected U, B or" in capsys.readouterr().err
