"""The command line and its files: what it writes over, what it refuses, where a model goes."""

import bz2
import errno
import gzip
import io
import json
import lzma
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import maxmargin as mm
from cli_corpus import write_corpus, write_hard_corpus
from maxmargin.cli import main
from maxmargin.formats import writing
from maxmargin.persistence import save_model
from maxmargin.progress import ProgressDisplay

posix = pytest.mark.skipif(os.name == "nt", reason="files and signals of Windows are different")


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A folder with a corpus and its model, as bytes."""
    folder = tmp_path_factory.mktemp("good")
    corpus, model = write_corpus(folder / "ok.txt", 10), folder / "model.mm"
    assert main(["train", "tag", str(corpus), "-o", str(model), "-q"]) == 0
    return corpus.read_bytes(), model.read_bytes()


@pytest.fixture
def folder(good, tmp_path, monkeypatch):
    """A fresh folder with ok.txt and model.mm, which is the current one."""
    (tmp_path / "ok.txt").write_bytes(good[0])
    (tmp_path / "model.mm").write_bytes(good[1])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(arguments, message, capsys, code=1):
    assert main(arguments) == code
    printed = capsys.readouterr()
    lines = printed.err.strip().splitlines()
    assert lines[-1].startswith("maxmargin: error: ") and message in lines[-1], printed.err
    assert "Traceback" not in printed.err and printed.out == ""


# ----- never over an input ------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("name", ["ok.txt", "./ok.txt", "symbolic", "hard", "{folder}/ok.txt"])
def test_inputs_are_never_written_over(folder, name, capsys):
    (folder / "symbolic").symlink_to("ok.txt")
    os.link("ok.txt", "hard")
    before = files(folder)
    output = name.format(folder=folder)
    for arguments in (
        ["train", "tag", "ok.txt", "-o", output],
        ["train", "tag", "ok.txt", "-o", output, "--force"],
        ["train", "tag", "hard", "-o", output, "--force"],
        ["predict", "model.mm", "ok.txt", "-o", output],
    ):
        refused(arguments, "would be overwritten", capsys)
    assert files(folder) == before


def test_templates_and_the_model_are_inputs_too(folder, capsys):
    (folder / "t.txt").write_text("w[0]\n")
    before = files(folder)
    train = ["train", "tag", "ok.txt", "--templates", "t.txt", "--force", "-o", "t.txt"]
    refused(train, "t.txt: this is a file that is read, which would be overwritten", capsys)
    predict = ["predict", "model.mm", "ok.txt", "-o", "model.mm"]
    refused(predict, "model.mm: this is a file that is read, which would be", capsys)
    assert files(folder) == before


def test_the_standard_input_is_an_input(folder, capsys):
    before = files(folder)
    saved = os.dup(0)
    try:
        with open("ok.txt", "rb") as stream:
            os.dup2(stream.fileno(), 0)
        refused(["train", "tag", "-", "-o", "ok.txt", "--force"], "the standard input", capsys)
    finally:
        os.dup2(saved, 0)
        os.close(saved)
    assert files(folder) == before


def test_other_files_are_not_replaced_by_chance(folder, capsys):
    (folder / "notes.txt").write_text("do not lose me")
    (folder / "other.mm").write_bytes((folder / "model.mm").read_bytes())
    before = files(folder)
    refused(["train", "tag", "ok.txt", "-o", "notes.txt"], "a file of this name that is no", capsys)
    refused(["predict", "model.mm", "ok.txt", "-o", "other.mm"], "there is a model of", capsys)
    refused(["demo", "--output", "other.mm", "--words", "5"], "other.mm: ", capsys)
    predict = ["predict", "model.mm", "ok.txt", "-o", "notes.txt"]
    refused(predict, "notes.txt: there is a file of this name; give another", capsys)
    assert files(folder) == before
    assert main([*predict, "--force"]) == 0
    assert len((folder / "notes.txt").read_text()) > len((folder / "ok.txt").read_text())
    assert main(["train", "tag", "ok.txt", "-o", "notes.txt", "--force", "-q"]) == 0
    assert mm.load("notes.txt").result_.converged
    (folder / "empty").touch()
    assert main(["train", "tag", "ok.txt", "-o", "empty", "-q"]) == 0


# ----- unfinished models --------------------------------------------------------------------------


def test_an_unfinished_model_does_not_replace_another(folder, capsys):
    before = (folder / "model.mm").read_bytes()
    stop = ["train", "tag", "ok.txt", "--tol", "0", "--max-passes", "1", "-o"]
    assert main([*stop, "model.mm"]) == 3
    printed = capsys.readouterr()
    assert "saved model.mm.partial" in printed.out
    assert "model.mm is left as it was" in printed.err and "model.mm.partial" in printed.err
    assert (folder / "model.mm").read_bytes() == before
    assert not mm.load("model.mm.partial").result_.converged
    assert main([*stop, "model.mm", "-q"]) == 3  # an earlier one may be better
    assert os.path.exists("model.mm.partial-2")
    assert main([*stop, "new.mm", "-q"]) == 3
    assert mm.load("new.mm").result_.status == "max_passes"
    assert main([*stop, "model.mm", "-q", "--force"]) == 3
    assert mm.load("model.mm").result_.status == "max_passes"
    assert main(["train", "tag", "ok.txt", "-o", "model.mm", "-q"]) == 0
    assert mm.load("model.mm").result_.converged


def test_solvers_without_a_gap_finish_their_passes(folder):
    train = ["train", "tag", "ok.txt", "-o", "online.mm", "-q", "--solver", "perceptron"]
    assert main(train) == 0
    assert mm.load("online.mm").solver == "perceptron"
    assert main([*train, "--max-time", "0"]) == 3
    assert os.path.exists("online.mm.partial")


def send_after_first_record(monkeypatch, number):
    """Let a signal come when the first progress is shown."""
    show = ProgressDisplay.__call__

    def shown(display, progress):
        show(display, progress)
        if len(display.history) == 1:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(ProgressDisplay, "__call__", shown)


@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_keeps_both_models(folder, monkeypatch, capsys, name):
    number = getattr(signal, name)
    before, handler = (folder / "model.mm").read_bytes(), signal.getsignal(number)
    hard = str(write_hard_corpus(folder / "hard.txt", 60))
    train = ["train", "tag", hard, "--C", "1000", "--tol", "0", "--max-time", "60", "-o"]
    send_after_first_record(monkeypatch, number)
    assert main([*train, "model.mm"]) == 128 + number
    printed = capsys.readouterr()
    assert "model.mm is left as it was, for training was interrupted" in printed.err
    assert (folder / "model.mm").read_bytes() == before
    loaded = mm.load("model.mm.partial")
    assert loaded.result_.status == "interrupted" and loaded.result_.gap > 0
    assert loaded.on_interrupt == "raise" and loaded.callbacks == () and loaded.verbose == 0
    assert main([*train, "new.mm"]) == 128 + number
    assert mm.load("new.mm").result_.status == "interrupted"
    assert signal.getsignal(number) == handler


@posix
def test_a_signal_while_saving_lets_the_model_be_saved(folder, monkeypatch):
    sync = os.fsync

    def interrupted_sync(handle):
        os.kill(os.getpid(), signal.SIGTERM)
        sync(handle)

    monkeypatch.setattr(os, "fsync", interrupted_sync)
    with pytest.raises(SystemExit) as ended:  # the folder is brought to the disk too: a second one
        main(["train", "tag", "ok.txt", "-o", "model.mm", "-q"])
    assert ended.value.code == 128 + signal.SIGTERM
    monkeypatch.setattr(os, "fsync", sync)
    assert sorted(os.listdir(folder)) == ["model.mm", "ok.txt"]
    assert mm.load("model.mm").result_.converged


@posix
def test_a_signal_that_gets_lost_is_found(folder, monkeypatch, capfd):
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
    hard = str(write_hard_corpus(folder / "hard.txt", 60))
    train = ["train", "tag", hard, "--C", "1000", "--tol", "0", "--max-time", "60", "-o", "new.mm"]
    assert main(train) == 128 + signal.SIGTERM
    assert mm.load("new.mm").result_.status == "interrupted"
    assert "Exception ignored" not in capfd.readouterr().err and sys.unraisablehook is hook


@posix
def test_a_signal_that_others_turn_into_an_error_is_a_signal(folder, monkeypatch, capsys):
    """As a module does that is just being imported."""

    def interrupted_import(path):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10.0)
        except KeyboardInterrupt:
            raise ImportError("PLEASE READ THIS") from None

    monkeypatch.setattr("maxmargin.cli.data.load_model", interrupted_import)
    assert main(["predict", "model.mm", "ok.txt"]) == 128 + signal.SIGTERM
    assert capsys.readouterr().err == "maxmargin: interrupted\n"


@posix
def test_a_second_signal_ends_at_once(folder):
    before = files(folder)
    hard = str(write_hard_corpus(folder / "hard.txt"))
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
        # A job in the background inherits deaf ears for Ctrl-C; its child must not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
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
    assert before.items() <= files(folder).items()
    assert sorted(os.listdir(folder)) == ["hard.txt", "model.mm", "ok.txt"]


# ----- outputs that fail --------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["train", "predict", "demo"])
def test_outputs_are_tried_before_the_work(folder, command, monkeypatch, capsys):
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
    (folder / "kept.png").touch()
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


def test_a_model_survives_a_full_disk(folder, tmp_path_factory, monkeypatch, capsys):
    before = (folder / "model.mm").read_bytes()
    refuge = tmp_path_factory.mktemp("refuge")
    monkeypatch.setattr("tempfile.tempdir", str(refuge))
    monkeypatch.setattr("maxmargin.cli.outputs.check_writable", lambda path: None)
    fill_disk(monkeypatch, lambda target: target.parent == folder)
    assert main(["train", "tag", "ok.txt", "-o", "model.mm"]) == 1
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("maxmargin: error: model.mm: No space left on device")
    assert str(refuge / "model.mm.partial") in last
    assert mm.load(refuge / "model.mm.partial").result_.converged
    assert (folder / "model.mm").read_bytes() == before
    fill_disk(monkeypatch, lambda target: True)
    refused(["train", "tag", "ok.txt", "-o", "model.mm", "-q"], "No space left on device", capsys)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_devices(folder, tmp_path_factory, monkeypatch, capsys):
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


def test_a_dash_is_the_standard_input_or_output(folder, monkeypatch, capsys):
    content = (folder / "ok.txt").read_bytes()
    monkeypatch.setattr(sys, "stdin", Stdin(content))
    assert main(["train", "tag", "-", "-o", "new.mm", "-q"]) == 0
    assert np.allclose(mm.load("new.mm").coef_, mm.load("model.mm").coef_, atol=1e-3)
    assert main(["predict", "model.mm", "ok.txt", "-o", "out.txt"]) == 0
    capsys.readouterr()
    for output in ([], ["-o", "-"]):
        monkeypatch.setattr(sys, "stdin", Stdin(content))
        assert main(["predict", "model.mm", "-", *output]) == 0
        assert capsys.readouterr().out == (folder / "out.txt").read_text()
    monkeypatch.setattr(sys, "stdin", Stdin(content))
    assert main(["evaluate", "model.mm", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == 1.0
    monkeypatch.setattr(sys, "stdin", Stdin(b"a b c\nd e\n"))
    refused(["evaluate", "model.mm", "-"], "<stdin>:2: expected 3 columns", capsys)
    monkeypatch.setattr(sys, "stdin", Stdin(b"1 1:1\nx 2:1\n"))
    refused(["train", "multiclass", "-", "-o", "new.mm"], "<stdin>:2: expected a label", capsys)
    refused(["train", "tag", "ok.txt", "-o", "-"], "name a file after -o", capsys)
    refused(["predict", "-", "ok.txt"], "name its file", capsys)
    assert not os.path.exists("-")


def in_thread(work):
    """Do something at the same time; a pipe has two ends."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


@posix
def test_named_pipes(folder, capsys):
    content = (folder / "ok.txt").read_bytes()
    data, model, found = folder / "data", folder / "pipe", []
    os.mkfifo(data)
    os.mkfifo(model)
    threads = [
        in_thread(lambda: data.write_bytes(content)),
        in_thread(lambda: found.append(model.read_bytes())),
    ]
    assert main(["train", "tag", "data", "-o", "pipe", "-q"]) == 0
    for thread in threads:
        thread.join(timeout=30)
    (folder / "new.mm").write_bytes(found[0])
    in_thread(lambda: data.write_bytes(content))
    assert main(["evaluate", "new.mm", "data", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == 1.0


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_results_are_not_lost_in_silence(folder, command, monkeypatch, capsys):
    class Full(io.TextIOWrapper):
        def flush(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full(io.BytesIO()))
    assert main([command, "model.mm", "ok.txt"]) == 1
    assert "error: standard output: No space left on device" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdout", None)
    assert main([command, "model.mm", "ok.txt"]) == 1
    assert "error: the standard output is closed" in capsys.readouterr().err


@posix
def test_a_reader_that_does_not_read_on(folder):
    (folder / "long.txt").write_bytes((folder / "ok.txt").read_bytes() * 2000)
    pipe = f"{sys.executable} -m maxmargin predict model.mm long.txt | head -n 1"
    command = ["bash", "-c", f"{pipe}; echo ${{PIPESTATUS[0]}}"]
    done = subprocess.run(command, capture_output=True, text=True)
    # On a busy machine kernels are announced that take long to be read.
    told = [line for line in done.stderr.splitlines() if not line.startswith("compiling")]
    assert told == [] and done.stdout.splitlines()[1] == "0", done


def test_silent_readers_do_not_stop_the_training(folder, monkeypatch):
    class Deaf(io.StringIO):
        def write(self, text):
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(sys, "stderr", Deaf())
    monkeypatch.setattr(sys, "stdout", Deaf())
    assert main(["train", "tag", "ok.txt", "-o", "new.mm"]) == 0
    assert mm.load("new.mm").result_.converged


# ----- what is in a file --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("1 qid:1 1:1 # a\n2 qid:1 2:1 # b\n", "svm_hmm"),
        ("1 qid:1 1:1\n2 qid:2 2:1\n", "qid:"),
        ("1 qid:1 1:1 #docid = a\n2 qid:2 2:1 #docid = b\n", "LETOR"),
        ("1,2 1:1\n2 2:1\n", "several labels"),
        ("# text\n1\ta\ta\tX\tX\t_\t0\troot\t_\t_\n", "read_conllu"),
        ("(S (NP (PRP it)) (VP (VBZ works)))\n", "read_trees"),
        (">a\nACGT\n>b\nAC\n", "read_fasta"),
        ("a,x\nb,y\n", "commas"),
        ("ELF\0\1", "a binary file"),
    ],
)
def test_other_kinds_of_files_are_named(folder, text, what, capsys):
    (folder / "data").write_text(text)
    for arguments in (
        ["train", "tag", "data", "-o", "new.mm"],
        ["train", "multiclass", "data", "-o", "new.mm"],
        ["predict", "model.mm", "data"],
        ["evaluate", "model.mm", "data"],
    ):
        refused(arguments, what, capsys)
    assert not os.path.exists("new.mm")


def test_files_of_the_other_task_are_named(folder, capsys):
    (folder / "data.svm").write_text("1 1:1\n2 2:1\n3 1:2 2:1\n")
    refused(["train", "tag", "data.svm", "-o", "new.mm"], "'maxmargin train multiclass'", capsys)
    refused(["predict", "model.mm", "data.svm"], "this is an svmlight file", capsys)
    refused(["train", "multiclass", "ok.txt", "-o", "new.mm"], "'maxmargin train tag'", capsys)
    refused(["predict", "model.mm", "model.mm"], "order of the arguments", capsys)
    assert main(["train", "multiclass", "data.svm", "-o", "classes.mm", "-q"]) == 0
    refused(["evaluate", "classes.mm", "ok.txt"], "this is a file of CoNLL columns", capsys)
    (folder / "bare.svm").write_text("1:1\n2:1\n")
    refused(["evaluate", "classes.mm", "bare.svm"], "without labels", capsys)
    assert main(["predict", "classes.mm", "bare.svm"]) == 0
    assert capsys.readouterr().out == "1\n2\n"


def test_compressed_files_need_no_ending(folder):
    content = (folder / "ok.txt").read_bytes()
    for module in (gzip, lzma, bz2):
        (folder / "data").write_bytes(module.compress(content))
        assert main(["train", "tag", "data", "-o", "new.mm", "-q"]) == 0
        assert np.allclose(mm.load("new.mm").coef_, mm.load("model.mm").coef_, atol=1e-3)


def test_encodings(folder, capsys):
    (folder / "data").write_bytes("für IN A\nZürich NN B\n".encode("latin-1"))
    train = ["train", "tag", "data", "-o", "new.mm", "-q"]
    refused(train, "data:1: not valid utf-8 text", capsys)
    main(train)
    assert "--encoding" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main([*train, "--encoding", "klingon"])
    assert ended.value.code == 2 and "unknown text encoding 'klingon'" in capsys.readouterr().err
    assert main([*train, "--encoding", "latin-1"]) == 0
    assert main(["predict", "new.mm", "data", "--encoding", "latin-1", "-o", "out"]) == 0
    assert (folder / "out").read_text("latin-1") == "für IN A A\nZürich NN B B\n\n"
    (folder / "wide").write_text("für IN A\nZürich NN B\n", encoding="utf-16")
    refused(["predict", "new.mm", "wide"], "--encoding utf-16", capsys)
    assert main(["evaluate", "new.mm", "wide", "--encoding", "utf-16"]) == 0


def test_tabs_may_be_the_only_separators(folder, capsys):
    (folder / "data").write_text("New York\tNNP\tB\n\tX\tO\n\nis\tVB\tO\n")
    train = ["train", "tag", "data", "-o", "new.mm", "-q"]
    refused(train, "data:2: expected 4 columns", capsys)
    assert main([*train, "--separator", "tab"]) == 0
    assert main(["predict", "new.mm", "data"]) == 0  # the model knows how its file was read
    assert capsys.readouterr().out == "New York\tNNP\tB\tB\n\tX\tO\tO\n\nis\tVB\tO\tO\n\n"
    assert main(["evaluate", "new.mm", "data", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == 1.0
    refused(["evaluate", "new.mm", "data", "--separator", "auto"], "data:2: expected 4", capsys)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no tokens found"),
        (b"\n \n\t\n", "no tokens found"),
        (b"a\nb\n", "one column only"),
        (b"a x\rb y\r", "lines end in"),
        (b"a x\nb x\n", "data: all labels are 'x', expected at least 2"),
        (b"a X x\nb x\n", "data:2: expected 3 columns, found 2 (line 1 has 3)"),
    ],
)
def test_bad_column_files(folder, content, message, capsys):
    (folder / "data").write_bytes(content)
    refused(["train", "tag", "data", "-o", "new.mm"], message, capsys)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1\n2\n", "data: no features found"),
        (b"0.5 1:1\n1.5 1:2\n", "data: found the label 0.5, expected classes"),
        (b"1 1:1\n99999999999999999999 1:2\n", "data: found the label 1e+20, expected classes"),
        (b"1 1:1\n1 1:2\n", "data: all labels are 1, expected at least 2"),
        (b"1 1:1\n2 1:1e999\n", "data:2: expected a finite value"),
    ],
)
def test_bad_svmlight_files(folder, content, message, capsys):
    (folder / "data").write_bytes(content)
    refused(["train", "multiclass", "data", "-o", "new.mm"], message, capsys)


@pytest.mark.parametrize(
    "content",
    [b"\xef\xbb\xbfa x\r\nb y\r\n\r\nc x", b"a x\n b\ty \n\n\nc x\n\n", b"a x\nb y\n\nc " + b"x"],
    ids=["windows", "blanks", "no end"],
)
def test_odd_but_good_column_files(folder, content):
    (folder / "data").write_bytes(content)
    assert main(["train", "tag", "data", "-o", "new.mm", "-q"]) == 0
    assert mm.load("new.mm").classes_.tolist() == ["x", "y"]


def test_a_header_is_warned_of(folder, capsys):
    (folder / "data").write_text("word\tner\nOslo\tB\nis\tO\n")
    assert main(["train", "tag", "data", "-o", "new.mm", "-q"]) == 0
    assert "data:1: the only token with the label 'ner'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"n_columns": 7}, "features of 2 columns, but is said to be of files with 7"),
        ({"n_columns": 3, "label_column": 5}, "the labels in column 5"),
        ({"n_columns": "x"}, "'x'"),
        ({"separator": "comma"}, "unknown separator 'comma'"),
    ],
)
def test_models_that_contradict_themselves(folder, extra, message, capsys):
    save_model(mm.load("model.mm"), "odd.mm", extra)
    refused(["predict", "odd.mm", "ok.txt"], message, capsys)
    save_model(mm.load("model.mm"), "fine.mm", {})  # as a Python program saves
    assert main(["evaluate", "fine.mm", "ok.txt"]) == 0


@pytest.mark.parametrize("option", ["--label-column=0", "--min-count=0", "--separator=tab"])
def test_options_of_the_other_task_are_refused(folder, option, capsys):
    (folder / "data.svm").write_text("1 1:1\n2 2:1\n")
    train = ["train", "multiclass", "data.svm", "-o", "new.mm", option]
    refused(train, f"{option.partition('=')[0]} is for the task 'tag' only", capsys, code=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--C", "-1"], "C must be a positive, finite number, got -1"),
        (["--C", "1e200"], "C must be at most 1e+100"),
        (["--tol", "nan"], "tol must be"),
        (["--max-time", "-1"], "--max-time must be"),
        (["--solver", "nonsense"], "solver must be one of"),
        (["--solver", "bcfw", "--slack", "l2"], "solver 'bcfw' needs slack"),
        (["--loss", "odd"], "--loss of tag must be"),
        (["--on-violation", "drop"], "--on-violation is of use with --constraints only"),
    ],
)
def test_bad_values_are_found_before_a_file_is_read(folder, options, message, capsys):
    refused(["train", "tag", "absent.txt", "-o", "new.mm", *options], message, capsys, code=2)


# ----- errors -------------------------------------------------------------------------------------


def test_unexpected_errors_are_one_line(folder, monkeypatch, capsys):
    def fail(*_, **__):
        raise RuntimeError("surprise")

    monkeypatch.setattr(mm.SequenceTagger, "fit", fail)
    train = ["train", "tag", "ok.txt", "-o", "new.mm", "-q"]
    refused(train, "RuntimeError: surprise (this is a defect of maxmargin", capsys)
    assert main([*train, "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_exit_codes_are_documented(capsys):
    for command in ([], ["train"]):
        with pytest.raises(SystemExit):
            main([*command, "--help"])
        text = capsys.readouterr().out
        assert "exit codes" in text and all(f"\n  {code} " in text for code in (0, 1, 2, 3, 130))


def test_another_kind_of_model_or_one_without_certificate_goes_beside(tmp_path, capsys):
    tokens, lines = write_corpus(tmp_path / "tokens.txt", 3), tmp_path / "lines.svm"
    lines.write_text("1 1:1\n2 2:1\n" * 5)
    model = tmp_path / "model.mm"
    train = ["train", "tag", str(tokens), "-o", str(model), "-q"]
    assert main(train) == 0
    certified = model.read_bytes()
    assert main([*train, "--solver", "perceptron", "--max-passes", "1"]) == 0
    assert "for it is certified, and the new one is not" in capsys.readouterr().err
    assert main(["train", "multiclass", str(lines), "-o", str(model), "-q"]) == 0
    assert "a SequenceTagger, and the new one a MulticlassSVM" in capsys.readouterr().err
    assert model.read_bytes() == certified
    assert (tmp_path / "model.mm.partial").exists() and (tmp_path / "model.mm.partial-2").exists()
    assert main([*train, "--solver", "perceptron", "--max-passes", "1", "--force"]) == 0
    assert model.read_bytes() != certified
    assert main([*train, "--solver", "mira", "--max-passes", "1"]) == 0  # neither has one
    assert "left as it was" not in capsys.readouterr().err
