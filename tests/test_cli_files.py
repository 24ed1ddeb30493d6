"""The command line and its files: what it writes over, what it refuses, where a model goes."""

import os

import pytest

import maxmargin as mm
from cli_corpus import files, posix, refused, write_corpus
from maxmargin.cli import main
from maxmargin.cli.console import KEPT

# ----- never over an input ------------------------------------------------------------------------


@posix
@pytest.mark.parametrize(
    "name", ["ok.txt", "./ok.txt", "symbolic", "hard", "{corpus_folder}/ok.txt"]
)
def test_inputs_are_never_written_over(corpus_folder, name, capsys):
    (corpus_folder / "symbolic").symlink_to("ok.txt")
    os.link("ok.txt", "hard")
    before = files(corpus_folder)
    output = name.format(corpus_folder=corpus_folder)
    for arguments in (
        ["train", "tag", "ok.txt", "-o", output],
        ["train", "tag", "ok.txt", "-o", output, "--force"],
        ["train", "tag", "hard", "-o", output, "--force"],
        ["predict", "model.mm", "ok.txt", "-o", output],
    ):
        refused(arguments, "would be overwritten", capsys)
    assert files(corpus_folder) == before


def test_templates_and_the_model_are_inputs_too(corpus_folder, capsys):
    (corpus_folder / "t.txt").write_text("w[0]\n")
    before = files(corpus_folder)
    train = ["train", "tag", "ok.txt", "--features", "t.txt", "--force", "-o", "t.txt"]
    refused(train, "t.txt: this is an input file, which would be overwritten", capsys)
    predict = ["predict", "model.mm", "ok.txt", "-o", "model.mm"]
    refused(predict, "model.mm: this is an input file, which would be", capsys)
    assert files(corpus_folder) == before


def test_the_standard_input_is_an_input(corpus_folder, capsys):
    before = files(corpus_folder)
    saved = os.dup(0)
    try:
        with open("ok.txt", "rb") as stream:
            os.dup2(stream.fileno(), 0)
        refused(["train", "tag", "-", "-o", "ok.txt", "--force"], "standard input", capsys)
    finally:
        os.dup2(saved, 0)
        os.close(saved)
    assert files(corpus_folder) == before


def test_other_files_are_not_replaced_by_chance(corpus_folder, capsys):
    (corpus_folder / "notes.txt").write_text("do not lose me")
    (corpus_folder / "other.mm").write_bytes((corpus_folder / "model.mm").read_bytes())
    before = files(corpus_folder)
    refused(["train", "tag", "ok.txt", "-o", "notes.txt"], "that is not a model", capsys)
    refused(
        ["predict", "model.mm", "ok.txt", "-o", "other.mm"],
        "a model file of this name exists",
        capsys,
    )
    refused(["demo", "--output", "other.mm", "--words", "5"], "other.mm: ", capsys)
    predict = ["predict", "model.mm", "ok.txt", "-o", "notes.txt"]
    refused(predict, "notes.txt: a file of this name exists; give another", capsys)
    assert files(corpus_folder) == before
    assert main([*predict, "--force"]) == 0
    assert len((corpus_folder / "notes.txt").read_text()) > len(
        (corpus_folder / "ok.txt").read_text()
    )
    assert main(["train", "tag", "ok.txt", "-o", "notes.txt", "--force", "-q"]) == 0
    assert mm.load("notes.txt").result_.converged
    (corpus_folder / "empty").touch()
    assert main(["train", "tag", "ok.txt", "-o", "empty", "-q"]) == 0


# ----- errors -------------------------------------------------------------------------------------


def test_unexpected_errors_are_one_line(corpus_folder, monkeypatch, capsys):
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
    assert main([*train, "--solver", "perceptron", "--max-passes", "1"]) == KEPT
    assert "because it is certified, and the new one is not" in capsys.readouterr().err
    assert main(["train", "multiclass", str(lines), "-o", str(model), "-q"]) == KEPT
    assert "a SequenceTagger, and the new one a MulticlassSVM" in capsys.readouterr().err
    assert model.read_bytes() == certified
    assert (tmp_path / "model.mm.partial").exists() and (tmp_path / "model.mm.partial-2").exists()
    assert main([*train, "--solver", "perceptron", "--max-passes", "1", "--force"]) == 0
    assert model.read_bytes() != certified
    assert main([*train, "--solver", "mira", "--max-passes", "1"]) == 0  # neither has one
    assert "left as it was" not in capsys.readouterr().err
