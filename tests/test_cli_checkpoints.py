"""``maxmargin train --checkpoint FILE --resume``."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import maxmargin as mm
from cli_corpus import posix, refused, write_corpus, write_hard_corpus
from maxmargin.cli import main
from resuming import outcome

TRAIN = ["train", "tag", "ok.txt", "--tol", "1e-6", "--C", "10", "-q"]
KEPT = ["--checkpoint", "kept", "--checkpoint-every", "0"]


def test_training_goes_on(corpus_folder, capsys):
    assert main([*TRAIN, "-o", "whole.mm"]) == 0
    assert main([*TRAIN, *KEPT, "-o", "model.mm", "--max-passes", "4"]) == 3
    assert os.path.exists("kept") and os.path.exists("kept.1")
    goes_on = [*TRAIN[:-1], *KEPT, "-o", "model.mm", "--resume"]
    assert main([*goes_on, "--max-passes", "5"]) == 3
    assert (
        "the same command with --resume and a larger --max-passes continues"
        in capsys.readouterr().err
    )
    assert main(goes_on) == 0
    assert outcome(mm.load("model.mm").result_) == outcome(mm.load("whole.mm").result_)
    assert not os.path.exists("kept") and not os.path.exists("kept.1")
    assert main([*goes_on, "--force"]) == 0
    assert "kept does not exist yet: training starts afresh" in capsys.readouterr().err


def test_training_goes_on_with_held_out_data(corpus_folder, capsys):
    write_corpus(Path("dev.txt"), 20, seed=1)
    write_corpus(Path("other.txt"), 20, seed=2)
    train = [*TRAIN[:-1], "--dev", "dev.txt"]

    def summary():
        told = capsys.readouterr().err.splitlines()
        return [line for line in told if "the best of" in line]

    assert main([*train, "-o", "whole.mm"]) == 0
    expected_summary = summary()
    assert len(expected_summary) == 1
    assert main([*train, *KEPT, "-o", "model.mm", "--max-passes", "4"]) == 3
    capsys.readouterr()
    other = [*TRAIN, "--dev", "other.txt", *KEPT, "-o", "m", "--resume"]
    refused(other, "with another held-out data", capsys)
    goes_on = [*train, *KEPT, "-o", "model.mm", "--resume"]
    assert main([*goes_on, "--max-passes", "6"]) == 3
    capsys.readouterr()
    assert main(goes_on) == 0
    found, expected = mm.load("model.mm").result_, mm.load("whole.mm").result_
    assert outcome(found) == outcome(expected)
    assert summary() == expected_summary


def test_a_better_unfinished_model_replaces_a_worse_one(corpus_folder):
    def gap():
        return mm.load("mine.mm").result_.relative_gap

    train = [*TRAIN, *KEPT, "-o", "mine.mm"]
    assert main([*train, "--max-passes", "4"]) == 3
    before = gap()
    assert main([*train, "--max-passes", "10", "--resume"]) == 3
    assert gap() < before and not os.path.exists("mine.mm.partial")
    before = gap()
    assert main([*TRAIN, "-o", "mine.mm", "--max-passes", "15"]) == 3  # maybe of other data
    assert gap() == before and mm.load("mine.mm.partial").result_.relative_gap < before
    os.remove("kept")
    os.remove("kept.1")
    assert main([*train, "--max-passes", "2", "--resume"]) == 3
    assert gap() == before and os.path.exists("mine.mm.partial-2")


def test_wrong_use(corpus_folder, capsys):
    refused([*TRAIN, "-o", "m", "--resume"], "--resume requires --checkpoint", capsys, 2)
    alone = [*TRAIN, "-o", "m", "--checkpoint-every", "3"]
    refused(alone, "--checkpoint-every requires --checkpoint", capsys, 2)
    refused([*TRAIN, "-o", "m", "--checkpoint", "ok.txt"], "a file of its own", capsys)
    refused([*TRAIN, "-o", "m", "--checkpoint", "m"], "a file of its own", capsys)
    refused([*TRAIN, "-o", "m", "--checkpoint", "no/c"], "there is no folder no", capsys)
    assert main([*TRAIN, *KEPT, "-o", "m", "--max-passes", "4"]) == 3
    refused([*TRAIN, *KEPT, "-o", "m"], "continue from it with --resume", capsys)
    other = [*TRAIN, *KEPT, "-o", "m", "--resume", "--C", "2"]
    refused(other, "with another C (10.0 there, 2.0 here)", capsys)
    with pytest.raises(SystemExit):
        main([*TRAIN, "--checkpoint-every", "-1"])
    assert os.path.exists("kept")


@posix
@pytest.mark.usefixtures("default_signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_processes_that_are_ended_go_on(tmp_path, number):
    """A signal saves the best model too, and the checkpoint stays beside it."""
    data, model, kept = write_hard_corpus(tmp_path / "hard", 60), tmp_path / "m", tmp_path / "c"
    train = ["train", "tag", str(data), "--C", "10", "--tol", "0", "--max-passes", "300", "-q"]
    command = [*train, "-o", str(model), "--checkpoint", str(kept)]
    process = subprocess.Popen(
        [sys.executable, "-m", "maxmargin", *command, "--checkpoint-every", "0"]
    )
    while not os.path.exists(f"{kept}.1"):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait() == (143 if number == signal.SIGTERM else -number)
    assert model.exists() == (number == signal.SIGTERM)
    assert main([*command, "--resume", "--force"]) == 3
    assert main([*train, "-o", str(tmp_path / "whole")]) == 3
    found, expected = (mm.load(path).result_ for path in (model, tmp_path / "whole"))
    assert outcome(found) == outcome(expected)
