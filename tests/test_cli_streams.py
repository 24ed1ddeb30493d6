"""Outputs of the command line that fail, standard input and output, and pipes."""

import errno
import io
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import maxmargin as mm
from cli_corpus import posix, refused
from maxmargin.cli import main
from maxmargin.formats import writing

# ----- outputs that fail --------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["train", "predict", "demo"])
def test_outputs_are_tried_before_the_work(corpus_folder, command, monkeypatch, capsys):
    def work(*_, **__):
        raise AssertionError("too late")

    monkeypatch.setattr(mm.SequenceTagger, "fit", work)
    monkeypatch.setattr(mm.SequenceTagger, "predict", work)
    os.mkdir("folder.png")
    before = sorted(os.listdir())
    begin = {
        "train": ["train", "tag", "ok.txt", "-o"],
        "predict": ["predict", "model.mm", "ok.txt", "-o"],
        "demo": ["demo", "--words", "5", "--output"],
    }[command]
    refused([*begin, "none/a.png"], "none/a.png: there is no folder none", capsys)
    refused([*begin, "folder.png"], "folder.png: Is a directory", capsys)
    monkeypatch.setattr(os, "access", lambda path, *_: str(path).endswith(".mm"))
    (corpus_folder / "kept.png").touch()
    refused([*begin, "kept.png"], "kept.png: Permission denied", capsys)
    os.unlink("kept.png")
    assert sorted(os.listdir()) == before


def fill_disk(monkeypatch, is_full):
    """Let writing fail in the folders for which ``is_full``."""
    make = writing._new_file_beside

    def no_space(target):
        if is_full(target):
            raise OSError(errno.ENOSPC, "No space left on device", str(target) + ".temporary")
        return make(target)

    monkeypatch.setattr(writing, "_new_file_beside", no_space)


def test_a_model_survives_a_full_disk(corpus_folder, tmp_path_factory, monkeypatch, capsys):
    before = (corpus_folder / "model.mm").read_bytes()
    refuge = tmp_path_factory.mktemp("refuge")
    monkeypatch.setattr("tempfile.tempdir", str(refuge))
    monkeypatch.setattr("maxmargin.cli.files.check_writable", lambda path: None)
    fill_disk(monkeypatch, lambda target: target.parent == corpus_folder)
    assert main(["train", "tag", "ok.txt", "-o", "model.mm"]) == 1
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("maxmargin: error: model.mm: No space left on device")
    assert str(refuge / "model.mm.partial") in last
    assert mm.load(refuge / "model.mm.partial").result_.converged
    assert (corpus_folder / "model.mm").read_bytes() == before
    fill_disk(monkeypatch, lambda target: True)
    refused(["train", "tag", "ok.txt", "-o", "model.mm", "-q"], "No space left on device", capsys)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_devices(corpus_folder, tmp_path_factory, monkeypatch, capsys):
    refuge = tmp_path_factory.mktemp("refuge")
    monkeypatch.setattr("tempfile.tempdir", str(refuge))
    assert main(["train", "tag", "ok.txt", "-o", "/dev/full", "-q"]) == 1
    assert "/dev/full: No space left" in capsys.readouterr().err
    assert mm.load(refuge / "full.partial").result_.converged
    refused(["predict", "model.mm", "ok.txt", "-o", "/dev/full"], "/dev/full: No space", capsys)
    assert main(["train", "tag", "ok.txt", "-o", "/dev/null", "-q"]) == 0


# ----- standard input and output, pipes -----------------------------------------------------------


class Stdin(io.StringIO):
    """A standard input with bytes."""

    def __init__(self, content):
        super().__init__()
        self.buffer = io.BytesIO(content)


def test_a_dash_is_the_standard_input_or_output(corpus_folder, monkeypatch, capsys):
    content = (corpus_folder / "ok.txt").read_bytes()
    monkeypatch.setattr(sys, "stdin", Stdin(content))
    assert main(["train", "tag", "-", "-o", "new.mm", "-q"]) == 0
    assert np.allclose(mm.load("new.mm").coef_, mm.load("model.mm").coef_, atol=1e-3)
    assert main(["predict", "model.mm", "ok.txt", "-o", "out.txt"]) == 0
    capsys.readouterr()
    for output in ([], ["-o", "-"]):
        monkeypatch.setattr(sys, "stdin", Stdin(content))
        assert main(["predict", "model.mm", "-", *output]) == 0
        assert capsys.readouterr().out == (corpus_folder / "out.txt").read_text()
    monkeypatch.setattr(sys, "stdin", Stdin(content))
    assert main(["evaluate", "model.mm", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == 1.0
    monkeypatch.setattr(sys, "stdin", Stdin(b"a b c\nd e\n"))
    refused(["evaluate", "model.mm", "-"], "<stdin>:2: expected 3 columns", capsys)
    monkeypatch.setattr(sys, "stdin", Stdin(b"1 1:1\nx 2:1\n"))
    refused(["train", "multiclass", "-", "-o", "new.mm"], "<stdin>:2: expected a label", capsys)
    refused(["train", "tag", "ok.txt", "-o", "-"], "name a file after -o", capsys)
    refused(["predict", "-", "ok.txt"], "give the name of its file", capsys)
    assert not os.path.exists("-")


def in_thread(work):
    """Do something at the same time; a pipe has two ends."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


@posix
def test_named_pipes(corpus_folder, capsys):
    content = (corpus_folder / "ok.txt").read_bytes()
    data, model, found = corpus_folder / "data", corpus_folder / "pipe", []
    os.mkfifo(data)
    os.mkfifo(model)
    threads = [
        in_thread(lambda: data.write_bytes(content)),
        in_thread(lambda: found.append(model.read_bytes())),
    ]
    assert main(["train", "tag", "data", "-o", "pipe", "-q"]) == 0
    for thread in threads:
        thread.join(timeout=30)
    (corpus_folder / "new.mm").write_bytes(found[0])
    in_thread(lambda: data.write_bytes(content))
    assert main(["evaluate", "new.mm", "data", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == 1.0


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_results_are_not_lost_in_silence(corpus_folder, command, monkeypatch, capsys):
    class Full(io.TextIOWrapper):
        def flush(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full(io.BytesIO()))
    assert main([command, "model.mm", "ok.txt"]) == 1
    assert "error: standard output: No space left on device" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdout", None)
    assert main([command, "model.mm", "ok.txt"]) == 1
    assert "error: standard output is closed" in capsys.readouterr().err


@posix
def test_a_reader_that_does_not_read_on(corpus_folder):
    (corpus_folder / "long.txt").write_bytes((corpus_folder / "ok.txt").read_bytes() * 2000)
    pipe = f"{sys.executable} -m maxmargin predict model.mm long.txt | head -n 1"
    command = ["bash", "-c", f"{pipe}; echo ${{PIPESTATUS[0]}}"]
    done = subprocess.run(command, capture_output=True, text=True)
    # On a busy machine kernels are announced that take long to be read.
    told = [line for line in done.stderr.splitlines() if not line.startswith("compiling")]
    assert told == [] and done.stdout.splitlines()[1] == "0", done


def test_silent_readers_do_not_stop_the_training(corpus_folder, monkeypatch):
    class Deaf(io.StringIO):
        def write(self, text):
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(sys, "stderr", Deaf())
    monkeypatch.setattr(sys, "stdout", Deaf())
    assert main(["train", "tag", "ok.txt", "-o", "new.mm"]) == 0
    assert mm.load("new.mm").result_.converged
