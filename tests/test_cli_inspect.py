"""``maxmargin inspect``: models as they are in their files."""

import json
import re

import numpy as np
import pytest

import maxmargin as mm
from cli_corpus import refused, write_corpus
from every_estimator import KINDS
from maxmargin.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspect")
    data = write_corpus(folder / "train.txt", 30)
    assert (
        main(["train", "tag", str(data), "-o", str(folder / "tagger.mm"), "-q", "--C", "0.5"]) == 0
    )
    return folder


def inspected(capsys, *arguments):
    """The contents of a model, as JSON."""
    assert main(["inspect", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_contents_of_a_tagger(folder, capsys):
    found = inspected(capsys, folder / "tagger.mm", "--top", 3)
    tagger = mm.load(folder / "tagger.mm")
    assert found["task"] == "tag" and found["estimator"] == "SequenceTagger"
    assert found["labels"] == tagger.classes_.tolist()
    assert found["sizes"]["features"] == tagger.n_features_in_
    assert found["sizes"]["weights_not_0"] == np.count_nonzero(tagger.coef_)
    assert found["parameters"]["C"] == 0.5 and found["given"][0] == "C"
    result = tagger.result_
    for name in ("primal", "dual", "gap", "relative_gap", "n_passes", "seconds", "status"):
        assert found["certificate"][name] == getattr(result, name)
    assert found["certificate"]["tol"] == tagger.tol
    for label, pairs in tagger.top_features(3).items():
        assert [tuple(pair) for pair in found["features"][label]["for"]] == pairs
    for label, pairs in tagger.top_features(3, against=True).items():
        assert [tuple(pair) for pair in found["features"][label]["against"]] == pairs
    assert np.array_equal(found["transitions"]["weights"], tagger.transition_weights_)
    assert [tuple(t) for t in found["top_transitions"]["for"]] == tagger.top_transitions(3)


def test_text_of_a_tagger(folder, capsys):
    assert main(["inspect", str(folder / "tagger.mm"), "--top", "2"]) == 0
    text = capsys.readouterr().out
    tagger = mm.load(folder / "tagger.mm")
    assert f"primal          {tagger.result_.primal:.6g}" in text
    assert "features of B-NP" in text and re.search(r"^  C +0\.5$", text, re.M)
    row = next(line for line in text.splitlines() if line.startswith("B-NP  "))
    shown = [0.0 if cell == "." else float(cell) for cell in row.split()[1:]]
    assert shown == pytest.approx(tagger.transition_weights_[0], abs=5e-4)


def test_one_label(folder, capsys):
    path = folder / "tagger.mm"
    tagger, found = mm.load(path), inspected(capsys, path, "--label", "I-NP")
    assert list(found["features"]) == ["I-NP"]
    k = tagger.classes_.tolist().index("I-NP")
    own = found["transitions_of_label"]
    assert list(own["to"].values()) == tagger.transition_weights_[k].tolist()
    assert list(own["from"].values()) == tagger.transition_weights_[:, k].tolist()
    assert main(["inspect", str(path), "--label", "I-NP"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("features of I-NP") and "certificate" not in text
    refused(["inspect", str(path), "--label", "X"], "has the labels B-NP, B-VP, I-NP", capsys)


def test_wide_tables_are_shown_on_request(folder, capsys):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(20, 3)) for _ in range(3)]
    y = [list(range(20))] * 3
    mm.SequenceTagger(max_passes=1, tol=None, random_state=0).fit(X, y).save(folder / "wide.mm")
    for more, expected in (([], False), (["--transitions"], True)):
        assert main(["inspect", str(folder / "wide.mm"), *more]) == 0
        assert ("from \\ to" in capsys.readouterr().out) is expected


@pytest.mark.parametrize("name", sorted(set(KINDS) - {"own"}))  # made of code, and never in a file
def test_every_estimator_can_be_inspected(name, tmp_path, capsys):
    kind = KINDS[name]
    kind.make(max_passes=1, tol=None).fit(*kind.first).save(tmp_path / "model.mm")
    found = inspected(capsys, tmp_path / "model.mm")
    assert found["certificate"]["status"] and found["sizes"]["weights"] > 0
    assert main(["inspect", str(tmp_path / "model.mm")]) == 0
    assert "certificate" in capsys.readouterr().out


def test_what_is_no_model(folder, capsys):
    refused(["inspect", str(folder / "train.txt")], "train.txt", capsys)
    refused(["inspect", "-"], "cannot be read from standard input", capsys)
    with pytest.raises(SystemExit) as stopped:
        main(["inspect", str(folder / "tagger.mm"), "--top", "0"])
    assert stopped.value.code == 2
