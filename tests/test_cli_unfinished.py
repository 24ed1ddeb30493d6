"""Training that is interrupted, or ends early: what becomes of the models, old and new."""

import os
import signal
import subprocess
import sys
import time

import pytest

import maxmargin as mm
from cli_corpus import files, posix, write_hard_corpus
from maxmargin.cli import main
from maxmargin.progress import ProgressDisplay

pytestmark = pytest.mark.usefixtures("default_signals")


def test_an_unfinished_model_does_not_replace_another(corpus_folder, capsys):
    before = (corpus_folder / "model.mm").read_bytes()
    stop = ["train", "tag", "ok.txt", "--tol", "0", "--max-passes", "1", "-o"]
    assert main([*stop, "model.mm"]) == 3
    printed = capsys.readouterr()
    assert "saved model.mm.partial" in printed.out
    assert "model.mm is left as it was" in printed.err and "model.mm.partial" in printed.err
    assert (corpus_folder / "model.mm").read_bytes() == before
    assert not mm.load("model.mm.partial").result_.converged
    assert main([*stop, "model.mm", "-q"]) == 3  # an earlier one may be better
    assert os.path.exists("model.mm.partial-2")
    assert main([*stop, "new.mm", "-q"]) == 3
    assert mm.load("new.mm").result_.status == "max_passes"
    assert main([*stop, "model.mm", "-q", "--force"]) == 3
    assert mm.load("model.mm").result_.status == "max_passes"
    assert main(["train", "tag", "ok.txt", "-o", "model.mm", "-q"]) == 0
    assert mm.load("model.mm").result_.converged


def test_solvers_without_a_gap_finish_their_passes(corpus_folder):
    train = ["train", "tag", "ok.txt", "-o", "online.mm", "-q", "--solver", "perceptron"]
    assert main(train) == 0
    assert mm.load("online.mm").solver == "perceptron"
    assert main([*train, "--max-time", "0"]) == 3
    assert os.path.exists("online.mm.partial")


def test_the_exit_code_says_that_a_finished_model_is_elsewhere(corpus_folder, capsys):
    before = (corpus_folder / "model.mm").read_bytes()
    train = ["train", "tag", "ok.txt", "-o", "model.mm", "-q", "--solver", "perceptron"]
    assert main(train) == 4
    assert "it is certified, and the new one is not" in capsys.readouterr().err
    assert mm.load("model.mm.partial").solver == "perceptron"
    assert (corpus_folder / "model.mm").read_bytes() == before
    assert main([*train, "--force"]) == 0


def send_after_first_record(monkeypatch, number):
    """Let a signal come when the first progress is shown."""
    show = ProgressDisplay.__call__

    def shown(display, progress):
        show(display, progress)
        if len(display.history) == 1:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(ProgressDisplay, "__call__", shown)


@posix
def test_an_interrupted_search_says_that_nothing_was_saved(corpus_folder, monkeypatch, capsys):
    hard = str(write_hard_corpus(corpus_folder / "hard.txt", 60))
    limits = ["--tol", "0", "--max-time", "60"]
    send_after_first_record(monkeypatch, signal.SIGTERM)
    search = ["path", "tag", hard, "--dev", hard, "--Cs", "1000", "-o", "new.mm", *limits]
    assert main(search) == 128 + signal.SIGTERM
    last = capsys.readouterr().err.splitlines()[-1]
    said = "maxmargin: interrupted before all C were evaluated; nothing was saved"
    assert last == f"{said} (with --checkpoint FILE it could be resumed)"
    assert not os.path.exists("new.mm")
    assert main(["cross-validate", "tag", hard, "--C", "1000", *limits]) == 128 + signal.SIGTERM
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "maxmargin: interrupted in fold 1 of 5"


@posix
def test_resuming_is_promised_only_from_a_checkpoint(corpus_folder, monkeypatch, capsys):
    def interrupt(*_):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("maxmargin.cli.commands.path._path", interrupt)
    search = ["path", "tag", "ok.txt", "--checkpoint", "kept"]
    assert main(search) == 130
    assert "--resume" not in capsys.readouterr().err
    (corpus_folder / "kept-fold0").write_bytes(b"a checkpoint")
    assert main([*search, "--resume"]) == 130
    assert "--resume continues from kept" in capsys.readouterr().err


@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_keeps_both_models(corpus_folder, monkeypatch, capsys, name):
    number = getattr(signal, name)
    before, handler = (corpus_folder / "model.mm").read_bytes(), signal.getsignal(number)
    hard = str(write_hard_corpus(corpus_folder / "hard.txt", 60))
    train = ["train", "tag", hard, "--C", "1000", "--tol", "0", "--max-time", "60", "-o"]
    send_after_first_record(monkeypatch, number)
    assert main([*train, "model.mm"]) == 128 + number
    printed = capsys.readouterr()
    assert "model.mm is left as it was, because training was interrupted" in printed.err
    assert (corpus_folder / "model.mm").read_bytes() == before
    loaded = mm.load("model.mm.partial")
    assert loaded.result_.status == "interrupted" and loaded.result_.gap > 0
    assert loaded.training == mm.TrainingOptions() and loaded.verbose == 0
    assert main([*train, "new.mm"]) == 128 + number
    assert mm.load("new.mm").result_.status == "interrupted"
    assert signal.getsignal(number) == handler


@posix
def test_a_signal_while_saving_lets_the_model_be_saved(corpus_folder, monkeypatch):
    sync = os.fsync

    def interrupted_sync(handle):
        os.kill(os.getpid(), signal.SIGTERM)
        sync(handle)

    monkeypatch.setattr(os, "fsync", interrupted_sync)
    with pytest.raises(SystemExit) as ended:  # the folder is brought to the disk too: a second one
        main(["train", "tag", "ok.txt", "-o", "model.mm", "-q"])
    assert ended.value.code == 128 + signal.SIGTERM
    monkeypatch.setattr(os, "fsync", sync)
    assert sorted(os.listdir(corpus_folder)) == ["model.mm", "ok.txt"]
    assert mm.load("model.mm").result_.converged


@posix
def test_a_signal_that_gets_lost_is_found(corpus_folder, monkeypatch, capfd):
    """In a destructor exceptions are dropped; training ends all the same, and nothing is shown."""

    class Loser:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGTERM)
            for _ in range(1000):  # the handler is called between two steps
                pass

    show = ProgressDisplay.__call__

    def shown(display, progress):
        show(display, progress)
        if len(display.history) == 1:
            Loser()

    monkeypatch.setattr(ProgressDisplay, "__call__", shown)
    hook = sys.unraisablehook
    hard = str(write_hard_corpus(corpus_folder / "hard.txt", 60))
    train = ["train", "tag", hard, "--C", "1000", "--tol", "0", "--max-time", "60", "-o", "new.mm"]
    assert main(train) == 128 + signal.SIGTERM
    assert mm.load("new.mm").result_.status == "interrupted"
    assert "Exception ignored" not in capfd.readouterr().err and sys.unraisablehook is hook


@posix
def test_a_signal_that_others_turn_into_an_error_is_a_signal(corpus_folder, monkeypatch, capsys):
    """As a module does that is just being imported."""

    def interrupted_import(path):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10.0)
        except KeyboardInterrupt:
            raise ImportError("PLEASE READ THIS") from None

    monkeypatch.setattr("maxmargin.cli.files.load_model", interrupted_import)
    assert main(["predict", "model.mm", "ok.txt"]) == 128 + signal.SIGTERM
    assert capsys.readouterr().err == "maxmargin: interrupted\n"


@posix
def test_a_second_signal_ends_at_once(corpus_folder):
    before = files(corpus_folder)
    hard = str(write_hard_corpus(corpus_folder / "hard.txt"))
    script = (
        "import sys, time\n"
        "from maxmargin import cli\n"
        "from maxmargin.progress import ProgressDisplay\n"
        "def shown(display, progress):\n"
        "    try:\n"
        "        print('training', flush=True)\n"
        "        time.sleep(60)\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted', flush=True)\n"
        "        time.sleep(60)\n"
        "ProgressDisplay.__call__ = shown\n"
        "sys.exit(cli.main(sys.argv[1:]))\n"
    )
    train = ["train", "tag", hard, "-o", "model.mm", "--C", "1000", "--tol", "0"]
    process = subprocess.Popen(
        [sys.executable, "-c", script, *train],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "training\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGINT and "Traceback" not in err
    del before["ok.txt"]
    assert before.items() <= files(corpus_folder).items()
    assert sorted(os.listdir(corpus_folder)) == ["hard.txt", "model.mm", "ok.txt"]
