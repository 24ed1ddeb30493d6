"""Packed sequences in files: what is written comes back, and damage is told."""

import errno
import json
import os
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import SequenceTagger
from maxmargin.datasets import make_sentences
from maxmargin.engine.rows import is_mapped
from maxmargin.features import PackedSequences, StoredLabels, WindowFeatures, storing
from maxmargin.features import streaming as streaming_module
from maxmargin.features.streaming import pack_stream
from maxmargin.formats import TokenColumns, read_columns, read_columns_in_parts

TEMPLATES = ["w[0]", "w[-1]|w[0]", "suffix2(w[0])"]


def random_parts(rng, n_parts=3, n_features=7):
    """Sequences with labels, in parts."""
    for _ in range(n_parts):
        lengths = rng.integers(1, 5, size=4)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        tokens = sp.random_array((offsets[-1], n_features), density=0.4, rng=rng, format="csr")
        y = [rng.choice(["b", "a", "c"], n).tolist() for n in lengths]
        yield PackedSequences(tokens, offsets), y


@pytest.fixture
def stored(tmp_path):
    """A file, its parts, and all labels."""
    parts = list(random_parts(np.random.default_rng(0)))
    PackedSequences.write(tmp_path / "data.packed", iter(parts))
    return tmp_path / "data.packed", parts


def test_what_is_written_comes_back(stored):
    path, parts = stored
    packed = PackedSequences.open(path, verify=True)
    assert (packed.tokens != sp.vstack([part.tokens for part, _ in parts])).nnz == 0
    lengths = np.concatenate([np.diff(part.offsets) for part, _ in parts])
    assert np.array_equal(np.diff(packed.offsets), lengths)
    assert packed.labels.classes == ("a", "b", "c")
    assert packed.labels.of(range(12)) == [labels for _, y in parts for labels in y]
    assert all(map(is_mapped, (packed.tokens.indices, packed.tokens.data, packed.labels.codes)))
    assert not is_mapped(np.array(packed.tokens.indices))


def test_a_part_is_mapped_too_and_finds_its_way_to_another_process(stored):
    whole = PackedSequences.open(stored[0])
    for part in (whole.part(3, 9), pickle.loads(pickle.dumps(whole.part(3, 9)))):
        first, last = whole.offsets[3], whole.offsets[9]
        assert (part.tokens != whole.tokens[first:last]).nnz == 0
        assert part.labels.of(range(6)) == whole.labels.of(range(3, 9))
        assert part.labels.classes == whole.labels.classes
        assert is_mapped(part.tokens.indices)
    assert np.array_equal(whole.part(3, 9).part(1, 2).offsets, whole.part(4, 5).offsets)
    with pytest.raises(ValueError, match="has sequences 0 to 11, got a request for 5 to 12"):
        PackedSequences.open(stored[0], 5, 13)


def test_a_part_has_no_sequences_of_others(stored):
    part = PackedSequences.open(stored[0], 3, 9)
    for first, end in ((-1, 3), (2, 7), (4, 4)):
        with pytest.raises(ValueError, match="there are sequences 0 to 5, got a request for"):
            part.part(first, end)


def test_another_file_of_the_same_name_is_told(stored):
    """What is mapped stays as it was; what would be mapped again would be something else."""
    path, parts = stored
    whole = PackedSequences.open(path)
    sent, before = pickle.dumps(whole), whole.tokens.toarray()
    PackedSequences.write(path, parts[::-1])
    assert np.array_equal(whole.tokens.toarray(), before)
    for again in (lambda: whole.part(0, 2), lambda: pickle.loads(sent)):
        with pytest.raises(ValueError, match="not the file that was opened"):
            again()


def test_stored_sequences_are_stored_again_with_their_labels(stored, tmp_path):
    whole = PackedSequences.open(stored[0])
    PackedSequences.write(tmp_path / "x", [whole.part(5, 12), whole.part(0, 5)])
    again = PackedSequences.open(tmp_path / "x", verify=True)
    assert again.labels.of(range(12)) == whole.labels.of([*range(5, 12), *range(5)])
    assert (again.part(0, 7).tokens != whole.part(5, 12).tokens).nnz == 0


def test_more_entries_than_32_bits_count(tmp_path):
    """A file with a hole: the first of its tokens would have more than 2^31 entries."""
    n = 2**31 + 10
    arrays, place = [], 64
    with (tmp_path / "x").open("wb") as stream:
        stream.write(storing.MAGIC)
        for name, length, last in (
            ("indices", n, [0, 1, 2, 1]),
            ("values", n, [1.0, 2.0, 3.0, 4.0]),
            ("indptr", 4, [0, n - 4, n - 1, n]),
            ("offsets", 3, [0, 1, 3]),
            ("labels", 3, [0, 1, 0]),
        ):
            content = np.array(last, storing.TYPES[name])
            arrays.append(storing._Stored(name, place, length, 0))
            place += length * content.itemsize
            stream.seek(place - content.nbytes)
            stream.write(content.tobytes())
            place = storing._aligned(place)
        text = json.dumps(storing._Header(3, ["a", "b"], arrays)._asdict()).encode()
        stream.seek(place)
        stream.write(text + storing._ending(text))
    packed = PackedSequences.open(tmp_path / "x", 1, 2)
    assert packed.tokens.toarray().tolist() == [[1.0, 2.0, 3.0], [0.0, 4.0, 0.0]]
    assert packed.labels.of([0]) == [["b", "a"]]


def test_sequences_without_labels(tmp_path):
    PackedSequences.write(tmp_path / "x", [PackedSequences(np.eye(3), np.array([0, 1, 3]))])
    packed = PackedSequences.open(tmp_path / "x")
    assert packed.labels is None and packed.tokens.toarray().tolist() == np.eye(3).tolist()
    with pytest.raises(ValueError, match="y is missing, and X is not stored with labels"):
        SequenceTagger().fit(packed)


def test_what_cannot_be_stored_is_refused_and_leaves_nothing(tmp_path):
    (packed, y), other = random_parts(np.random.default_rng(1), 2)
    wide = PackedSequences(np.ones((1, 9)), np.array([0, 1]))
    for parts, message in (
        ([], "expected at least one sequence"),
        ([packed, wide], "sequence 4 has 9 features per token, expected 7"),
        ([packed, other], "sequence 4: expected labels of all sequences, or of none"),
        ([(packed, y), (packed, y[:3])], "sequence 7 has . tokens but no labels"),
        ([(packed, [*y, ["a"]])], "sequence 4 has no tokens but 1 labels"),
        (
            [(packed, [y[0], [*y[1], "a"], *y[2:]])],
            f"{len(y[1])} tokens but {len(y[1]) + 1} labels",
        ),
        ([([np.eye(7)], [["a"] * 7])], "got tuple of list, list .features.pack_sequences"),
        ([(packed, [[True] * len(one) for one in y])], "all strings, or all whole numbers"),
        ([(packed, [[2**63] * len(one) for one in y])], "whole numbers .of 64 bits"),
        ([(packed, [[[]] * len(one) for one in y])], "sequence 0 on: labels must be all strings"),
        ([(packed, iter(y))], "expected labels as a list of lists"),
        ([(packed, 3)], "expected labels as a list of lists"),
        ([[packed, y]], "parts that are PackedSequences, or pairs .* got list .features"),
        (packed, "parts that are PackedSequences, or pairs .* got"),
        ([PackedSequences(sp.csr_array((1, 2**31)), np.array([0, 1]))], "features are too many"),
        ([packed._replace(offsets=packed.offsets[:-1])], "offsets must run from 0"),
    ):
        with pytest.raises(ValueError, match=message):
            PackedSequences.write(tmp_path / "x", parts)
    assert os.listdir(tmp_path) == []


def test_damage_is_told(stored):
    path, _ = stored
    good = path.read_bytes()
    for place in np.linspace(0, len(good) - 1, 60).astype(int).tolist():
        path.write_bytes(good[:place] + bytes([good[place] ^ 0x55]) + good[place + 1 :])
        found = None
        try:
            PackedSequences.open(path, verify=True)
        except ValueError as error:
            found = str(error)
        # Between arrays there are bytes that mean nothing.
        assert (found is None and good[place] == 0) or found.startswith(str(path)), place
        path.write_bytes(good[:place])
        with pytest.raises(ValueError, match=r"truncated|not a file of packed"):
            PackedSequences.open(path)


def test_a_full_disk_names_the_file_and_leaves_the_old_one(stored, monkeypatch):
    path, parts = stored
    before = path.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(storing.PackedWriter, "_spool", full)
    with pytest.raises(OSError, match="No space left") as caught:
        PackedSequences.write(path, parts)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]


# ----- training -----------------------------------------------------------------------------------


def columns_of(parts):
    """All parts in one."""
    parts = list(parts)
    words, tags = ([x for part in parts for x in part.columns[j]] for j in (0, 1))
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    return TokenColumns([words, tags], np.concatenate([[0], np.cumsum(lengths)]))


@pytest.fixture
def sentences():
    """Some sentences in parts of different sizes."""
    data = next(make_sentences(60))
    return [data.take(range(a, b)) for a, b in ((0, 1), (1, 40), (40, 60))]


def test_the_first_of_many_sentences_are_those_of_few():
    few, many = columns_of(make_sentences(30)), columns_of(make_sentences(5_007))
    assert many.n_sequences == 5_007
    assert few.sequences() == many.take(range(30)).sequences()
    other = columns_of(make_sentences(30, random_state=1))
    assert few.sequences() != other.sequences()
    with pytest.raises(ValueError, match="at least one sentence"):
        next(make_sentences(0))


@pytest.mark.parametrize("min_count", [1, 2])
def test_streamed_features_are_those_of_all_data_at_once(
    sentences, min_count, tmp_path, monkeypatch
):
    monkeypatch.setattr(streaming_module, "AT_A_TIME", 100)
    data = columns_of(sentences)
    window = WindowFeatures(TEMPLATES, min_count=min_count)
    fitted = pack_stream(tmp_path / "x", iter(sentences), window)
    assert not hasattr(window, "templates_")
    expected = WindowFeatures(TEMPLATES, min_count=min_count)
    at_once = expected.fit_transform(data.select([0]))
    packed = PackedSequences.open(tmp_path / "x")
    assert (packed.tokens != at_once.tokens).nnz == 0
    assert np.array_equal(packed.offsets, data.offsets)
    assert packed.labels.of(range(60)) == data.split(1)
    own, other = fitted.to_state(), expected.to_state()
    assert all(np.array_equal(own[k], other[k]) for k in ("keys", "ids", "bounds"))
    assert own["vocabularies"] == other["vocabularies"]


def test_no_more_features_than_asked_for(sentences, tmp_path, monkeypatch):
    monkeypatch.setattr(streaming_module, "AT_A_TIME", 100)
    all_of_them = WindowFeatures(TEMPLATES).fit(columns_of(sentences).select([0]))
    fitted = pack_stream(tmp_path / "x", sentences, WindowFeatures(TEMPLATES), max_features=50)
    assert fitted.n_features_out_ == 50 < all_of_them.n_features_out_
    frequent = set(all_of_them.get_feature_names_out()[:20])
    assert frequent <= set(fitted.get_feature_names_out()), "the most frequent are not missed"


def test_a_tagger_learns_the_same_from_a_file_as_from_memory(sentences, tmp_path):
    window = pack_stream(tmp_path / "x", sentences, WindowFeatures(TEMPLATES))
    packed, data = PackedSequences.open(tmp_path / "x"), columns_of(sentences)
    stored = SequenceTagger(features=window, tol=1e-6).fit(packed)
    usual = SequenceTagger(features=WindowFeatures(TEMPLATES), tol=1e-6)
    usual.fit(data.select([0]), data.split(1))
    assert stored.result_.primal == pytest.approx(usual.result_.primal, rel=3e-6)
    assert stored.classes_.tolist() == usual.classes_.tolist()
    assert stored.predict(data.select([0])) == stored.predict(packed) == data.split(1)
    again = SequenceTagger(features=window, tol=1e-6).fit(packed, data.split(1))
    assert np.array_equal(again.coef_, stored.coef_)
    part = SequenceTagger(features=window).fit(packed.part(10, 30))
    assert part.classes_.tolist() == usual.classes_.tolist()
    with pytest.raises(ValueError, match="other stored sequences"):
        SequenceTagger(features=window).fit(packed.part(0, 5), packed.labels)
    with pytest.raises(ValueError, match="expected the fitted extractor"):
        SequenceTagger(features=WindowFeatures(TEMPLATES)).fit(packed)


def test_broken_constraints_name_the_token(tmp_path):
    tokens = PackedSequences(np.eye(4), np.array([0, 2, 4]))
    PackedSequences.write(tmp_path / "x", [(tokens, [["B-X", "I-X"], ["O", "I-X"]])])
    packed = PackedSequences.open(tmp_path / "x")
    with pytest.raises(ValueError, match="sequence 1, token 1"):
        SequenceTagger(constraints="bio").fit(packed)
    with pytest.warns(UserWarning, match="1 of 2 sequences"):
        SequenceTagger(constraints="bio", on_violation="drop").fit(packed)


def test_scores_by_the_labels_of_the_file(tmp_path):
    tokens = PackedSequences(np.eye(4), np.array([0, 2, 4]))
    PackedSequences.write(tmp_path / "x", [(tokens, [["a", "b"], ["a", "a"]])])
    packed = PackedSequences.open(tmp_path / "x")
    model = SequenceTagger().fit(packed)
    assert packed.n_sequences == tokens.n_sequences == 2
    assert model.score(packed) == model.score(packed, packed.labels) == 1.0
    with pytest.raises(ValueError, match="y is missing, and X is not stored with labels"):
        model.score(tokens)
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(2,\), got shape \(3,\)"):
        model.score(packed, sample_weight=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="sample_weight is 0 for all examples"):
        model.score(packed, sample_weight=[0.0, 0.0])


def test_labels_out_of_range_are_refused():
    tokens = PackedSequences(np.eye(2), np.array([0, 2]))
    labels = StoredLabels(np.array([0, 7], np.int32), tokens.offsets, ("a", "b"))
    with pytest.raises(ValueError, match="labels"):
        SequenceTagger().fit(tokens, labels)


# ----- columns in parts ---------------------------------------------------------------------------

TEXT = "# one\na X\nb Y\n\n-DOCSTART- O\n\nc X\n \t\nd Y\ne Y\n# two\nf X\n\n\n\ng Y"


@pytest.mark.parametrize("size", [1, 2, 7, 10**6])
def test_columns_in_parts_are_the_columns(size, tmp_path):
    path = tmp_path / "data.txt"
    path.write_text(TEXT)
    whole = read_columns(path, comment="#")
    parts = list(read_columns_in_parts(path, comment="#", size=size))
    assert len(parts) == (2 if size > len(TEXT) else 4)
    assert [x for part in parts for x in part.sequences()] == whole.sequences()
    assert np.array_equal(np.concatenate([part.lines for part in parts]), whole.lines)


@pytest.mark.parametrize("size", [3, 10**6])
def test_errors_of_parts_are_those_of_the_whole(size, tmp_path):
    path = tmp_path / "data.txt"
    for text in ("a X\n\nb Y\n\nc X Z\n", "a X\n\nb\0 Y\n", "\n \n\n"):
        path.write_text(text)
        with pytest.raises(ValueError) as expected:
            read_columns(path)
        with pytest.raises(ValueError) as found:
            list(read_columns_in_parts(path, size=size))
        assert str(found.value) == str(expected.value)
