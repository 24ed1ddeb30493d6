"""Training sequences that break the constraints: told where, left out, or repaired."""

import numpy as np
import pytest

import maxmargin as mm
from conftest import find_data
from maxmargin.cli import main
from maxmargin.features import WindowFeatures
from maxmargin.formats import read_columns

WORDS = [["in", "Oslo"], ["New", "York", "is", "big"], ["Anna", "left"], ["San", "Juan", "is"]]
GOOD = [["O", "B-L"], ["B-L", "I-L", "O", "O"], ["B-P", "O"], ["B-L", "I-L", "O"]]
BAD = [["O", "I-L"], ["B-L", "I-L", "O", "O"], ["I-P", "O"], ["I-L", "I-L", "O"]]


def tagger(**parameters):
    given = {"constraints": "bio", "features": WindowFeatures(), "random_state": 0, **parameters}
    return mm.SequenceTagger(**given)


def test_the_error_says_where_and_what_to_do():
    with pytest.raises(ValueError) as caught:
        tagger().fit(WORDS, [GOOD[0], GOOD[1], BAD[2], BAD[3]])
    message = str(caught.value)
    assert message.startswith("sequence 2, token 0: label 'I-P' opens a sequence, against")
    assert "2 of 4 sequences" in message
    assert "on_violation='repair' makes it 'B-P'" in message and "on_violation='drop'" in message
    with pytest.raises(ValueError, match="sequence 0, token 1: label 'I-L' follows 'O'"):
        tagger().fit(WORDS, BAD)


def test_the_error_names_file_and_line(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("in O\nOslo B-L\n\n\nSan I-L\nJuan I-L\n")
    data = read_columns(path)
    with pytest.raises(ValueError, match=r"train\.txt:5: label 'I-L' opens a sequence"):
        tagger().fit(data.select([0]), data.split(-1))


def test_repair_begins_a_chunk_where_none_was_open():
    with pytest.warns(
        UserWarning, match="3 of 11 labels broke .*sequence 0, token 1: 'I-L' became"
    ) as w:
        model = tagger(on_violation="repair").fit(WORDS, BAD)
    assert w[0].filename == __file__
    assert model.predict(WORDS) == GOOD
    assert "B-P" in model.classes_ and "I-P" not in model.classes_
    assert BAD[0] == ["O", "I-L"]  # what was given is not changed
    # The older notation, in which B- stands between neighbours only, becomes the newer one.
    with pytest.warns(UserWarning, match="2 of [0-9]+ labels broke"):
        old = tagger(on_violation="repair").fit([["a", "b", "c"]], [["I-L", "B-L", "I-P"]])
    assert old.predict([["a", "b", "c"]])[0] == ["B-L", "B-L", "B-P"]


def test_drop_leaves_the_sequences_out():
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    labels = [GOOD[0], GOOD[1], GOOD[2], BAD[3]]
    with pytest.warns(UserWarning, match="1 of 4 sequences break .*sequence 3, token 0"):
        model = tagger(on_violation="drop", solver="sda", tol=1e-6)
        model.fit(WORDS, labels, sample_weight=weights)
    assert model.result_.n_examples == 3
    vectors = WindowFeatures().fit(WORDS)
    part = tagger(features=None, solver="sda", tol=1e-6)
    part.fit(
        [vectors.transform([x]).tokens for x in WORDS[:3]], GOOD[:3], sample_weight=weights[:3]
    )
    assert np.allclose(part.coef_, model.coef_, atol=1e-3)
    with pytest.raises(ValueError, match="sample_weight must have shape"), pytest.warns():
        tagger(on_violation="drop").fit(WORDS, labels, sample_weight=weights[:2])
    with pytest.raises(ValueError, match="all sequences break"):
        tagger(on_violation="drop").fit(WORDS[:1], BAD[:1])


@pytest.mark.parametrize("forbidden", [[("O", "I-L")], {"O": ["I-L"]}])
def test_forbidden_pairs(forbidden):
    with pytest.raises(ValueError, match="token 1: label 'I-L' follows 'O', against the con") as e:
        tagger(constraints=forbidden).fit(WORDS, BAD)
    assert "repair" not in str(e.value)
    with pytest.warns(UserWarning, match="1 of 4 sequences break") as w:
        tagger(constraints=forbidden, on_violation="drop").fit(WORDS, BAD)
    assert w[0].filename == __file__
    with pytest.raises(ValueError, match="on_violation='repair' needs constraints='bio'"):
        tagger(constraints=forbidden, on_violation="repair").fit(WORDS, GOOD)


def test_online_learners_too():
    model = tagger(solver="perceptron", on_violation="drop")
    with pytest.warns(UserWarning, match="3 of 4 sequences break"):
        model.partial_fit(WORDS, BAD, classes=["B-L", "I-L", "O", "B-P", "I-P"])
    with pytest.raises(ValueError, match="sequence 0, token 0: label 'I-P' opens"):
        model.set_params(on_violation="raise").partial_fit([["Anna"]], [["I-P"]])


def test_bad_parameters_and_unknown_labels():
    with pytest.raises(ValueError, match="on_violation must be 'raise', 'drop' or 'repair'"):
        tagger(on_violation="ignore").fit(WORDS, GOOD)
    with pytest.warns(
        UserWarning, match="not in y, without effect: 'I-LOC'; the labels are 'B-"
    ) as w:
        tagger(constraints=[("O", "I-LOC"), ("O", "I-L")]).fit(WORDS, GOOD)
    assert w[0].filename == __file__


def test_on_the_command_line(tmp_path, capsys):
    data, model = tmp_path / "train.txt", str(tmp_path / "m.mm")
    text = "\n\n".join(
        "\n".join(f"{w} {y}" for w, y in zip(ws, ys, strict=True))
        for ws, ys in zip(WORDS, BAD, strict=True)
    )
    data.write_text(text)
    train = ["train", "tag", str(data), "-o", model, "-q"]
    assert main([*train, "--constraints", "bio", "--on-violation", "raise"]) == 1
    assert "train.txt:2: label 'I-L' follows 'O'" in capsys.readouterr().err
    assert main([*train, "--constraints", "bio"]) == 0
    assert "3 of 11 labels broke" in capsys.readouterr().err
    assert mm.load(model).on_violation == "repair"
    assert main([*train, "--constraints", "bio", "--on-violation", "drop"]) == 0
    assert mm.load(model).on_violation == "drop"
    assert main([*train, "--on-violation", "drop"]) == 2
    assert "--on-violation requires --constraints" in capsys.readouterr().err


def test_the_official_spanish_data():
    data = read_columns(find_data("conll2002/esp.train.xz"))
    model = tagger(features=WindowFeatures(["w[0]"], min_count=50), max_passes=1)
    X, Y = data.select([0]), data.split(-1)
    with pytest.raises(ValueError, match=r"esp\.train\.xz:221619: label 'I-LOC' opens.*1 of 8323"):
        model.fit(X, Y)
    with pytest.warns(UserWarning, match="1 of 8323 sequences break"):
        model.set_params(on_violation="drop").fit(X, Y)


SEGMENTED = [[(0, 2, "P")], [(0, 3, "P")], [(1, 2, "L")]]


def segmenter(**parameters):
    return mm.SequenceSegmenter(
        features=WindowFeatures(["w[0]"]),
        random_state=0,
        tol=1e-6,
        max_segment_length=2,
        **parameters,
    )


def test_segments_that_are_too_long():
    X = [["a", "b"], ["a", "b", "c"], ["c", "a"]]
    with pytest.raises(ValueError, match=r"sequence 1: .* 3 tokens.*1 of 3 sequences.*'drop'"):
        segmenter().fit(X, SEGMENTED)
    with pytest.warns(
        UserWarning, match="1 of 3 sequences have longer segments than max_segment_length"
    ):
        found = segmenter(on_violation="drop").fit(X, SEGMENTED, sample_weight=[1.0, 2.0, 3.0])
    fitted = WindowFeatures(["w[0]"]).fit(X)
    some = [0, 2]
    expected = segmenter().set_params(features=fitted)
    expected.fit([X[i] for i in some], [SEGMENTED[i] for i in some], sample_weight=[1.0, 3.0])
    known = [found.features_.transform([[w]]).tokens.indices[0] for w in "ab"]
    own = [expected.features_.transform([[w]]).tokens.indices[0] for w in "ab"]
    rows = (len(found.classes_) + 1) + 2 * len(found.classes_)
    for i, j in zip(known, own, strict=True):
        assert np.allclose(
            found.coef_[i * rows : (i + 1) * rows], expected.coef_[j * rows : (j + 1) * rows]
        )
    with pytest.raises(ValueError, match="all sequences have segments that are too long"):
        segmenter(on_violation="drop").fit(X[1:2], SEGMENTED[1:2])
    with pytest.raises(ValueError, match="on_violation must be 'raise' or 'drop', got 'repair'"):
        segmenter(on_violation="repair").fit(X, SEGMENTED)
    online = segmenter(on_violation="drop", solver="perceptron", max_passes=None)
    with pytest.warns(UserWarning, match="1 of 3 sequences have longer segments"):
        online.partial_fit(X, SEGMENTED)
    with pytest.warns(UserWarning, match="1 of 3 sequences have longer segments"):
        online.partial_fit(X, SEGMENTED)


def test_segments_on_the_command_line(tmp_path, capsys):
    data, model = tmp_path / "train.txt", str(tmp_path / "m.mm")
    data.write_text("a B-P\nb I-P\n\na B-P\nb I-P\nc I-P\n\nc O\na B-L\n")
    train = ["train", "segment", str(data), "-o", model, "-q"]
    assert main([*train, "--max-segment-length", "2"]) == 0
    assert "1 of 3 sequences have longer segments than" in capsys.readouterr().err
    assert main([*train, "--max-segment-length", "2", "--on-violation", "raise"]) == 1
    assert "has 3 tokens, more than --max-segment-length, 2" in capsys.readouterr().err
    assert main([*train, "--max-segment-length", "2", "--on-violation", "repair"]) == 2
    assert main([*train, "--on-violation", "drop"]) == 2
