"""``maxmargin train tag --stream``: data that stay in a file."""

import errno
import os

import pytest

import maxmargin as mm
from cli_corpus import refused
from maxmargin.cli import main
from maxmargin.features import storing
from maxmargin.formats import read_columns

TRAIN = ["train", "tag", "ok.txt", "-q", "--tol", "1e-5"]


def leftovers():
    """Files that a streamed training would leave."""
    return [name for name in os.listdir() if "packed" in name]


def test_the_model_is_that_of_training_in_memory(corpus_folder, capsys):
    assert main([*TRAIN, "-o", "memory.mm", "--min-count", "2"]) == 0
    assert main([*TRAIN, "-o", "stream.mm", "--min-count", "2", "--stream"]) == 0
    stream, memory = mm.load("stream.mm"), mm.load("memory.mm")
    assert stream.result_.primal == pytest.approx(memory.result_.primal, rel=3e-5)
    names = stream.features_.get_feature_names_out().tolist()
    assert names == memory.features_.get_feature_names_out().tolist()
    assert not hasattr(stream.features, "templates_"), "they would be saved twice"
    words = read_columns("ok.txt").select([0, 1])
    assert stream.predict(words) == memory.predict(words)
    assert main(["evaluate", "stream.mm", "ok.txt"]) == 0
    assert leftovers() == []
    assert main([*TRAIN, "-o", "few.mm", "--stream", "--max-features", "3"]) == 0
    assert mm.load("few.mm").n_features_in_ == 3
    assert main([*TRAIN, "-o", "short.mm", "--stream", "--compact", "0.1"]) == 0


def test_what_cannot_be_streamed_is_refused(corpus_folder, capsys):
    streamed = [*TRAIN, "-o", "m", "--stream"]
    other = ["train", "segment", "ok.txt", "-o", "m"]
    refused([*other, "--stream"], "--stream is for the task 'tag' only", capsys, 2)
    refused([*other, "--max-features", "3"], "--max-features is for the task 'tag'", capsys, 2)
    refused(
        [*TRAIN, "-o", "m", "--max-features", "3"], "--max-features requires --stream", capsys, 2
    )
    refused([*streamed, "--probability"], "--probability trains on parts", capsys, 2)
    refused([*streamed, "--order", "2"], "--order above 1 lists tuples", capsys, 2)
    drop = ["--constraints", "bio", "--on-violation", "drop"]
    refused([*streamed, *drop], "--on-violation changes the data", capsys, 2)
    stdin = ["train", "tag", "-", "-o", "m", "--stream"]
    refused(stdin, "expected the name of a file, got '-'", capsys, 2)
    refused([*streamed, "--format", "crfsuite"], "--stream is for column files", capsys, 2)
    refused([*streamed, "--label-column", "7"], "no label column 7", capsys)
    with open("one.txt", "w", encoding="utf-8") as stream:
        stream.write("a X\n\nb X\n")
    one = ["train", "tag", "one.txt", "-o", "m", "--stream"]
    refused(one, "one.txt: y has only one label", capsys)
    with open("odd.txt", "w", encoding="utf-8") as stream:
        stream.write("a X\nb Y\n\nc X Z\n")
    odd = ["train", "tag", "odd.txt", "-o", "m", "--stream"]
    refused(odd, "odd.txt:4: expected 2 columns, found 3 (line 1 has 2)", capsys)
    refused([*TRAIN, "-o", "no/m", "--stream"], "there is no folder no", capsys)
    assert leftovers() == [] and not os.path.exists("m")


def test_a_full_disk_is_an_error_and_leaves_nothing(corpus_folder, capsys, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(storing.PackedWriter, "_spool", full)
    refused([*TRAIN, "-o", "m", "--stream"], "No space left on device", capsys)
    assert leftovers() == [] and not os.path.exists("m")
