"""``maxmargin convert``: data files in other forms."""

import numpy as np
import pytest
from scipy import sparse

from cli_corpus import refused, write_corpus
from maxmargin.cli import main
from maxmargin.features import WindowFeatures, words_templates
from maxmargin.formats import read_columns, read_svmlight
from maxmargin.metrics import chunks

BIO = "a B-X\nb I-X\nc B-X\nd O\ne B-Y\n\nf I-X\ng I-Y\n\n"


def converted(capsys, *arguments):
    """What a call writes to standard output."""
    assert main(["convert", *map(str, arguments)]) == 0
    return capsys.readouterr().out


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "bio.txt").write_text(BIO)
    return tmp_path / "bio.txt"


def tags(text):
    return [line.split()[1] for line in text.splitlines() if line]


def test_schemes_of_tags(corpus, capsys):
    there = converted(capsys, corpus, "--to", "iobes")
    assert tags(there) == ["B-X", "E-X", "S-X", "O", "S-Y", "S-X", "S-Y"]
    (corpus.parent / "iobes.txt").write_text(there)
    back = converted(capsys, corpus.parent / "iobes.txt", "--to", "bio")
    assert tags(back) == ["B-X", "I-X", "B-X", "O", "B-Y", "B-X", "B-Y"]
    assert [line.split()[:1] for line in back.splitlines()] == [
        line.split()[:1] for line in BIO.splitlines()
    ]
    assert main(["convert", str(corpus), "--to", "io"]) == 0
    printed = capsys.readouterr()
    assert tags(printed.out) == ["I-X", "I-X", "I-X", "O", "I-Y", "I-X", "I-Y"]
    assert "were merged: 1 of them" in printed.err


@pytest.mark.parametrize("scheme", ["bio", "iobes"])
def test_schemes_say_the_same(scheme, tmp_path, capsys):
    rng = np.random.default_rng(0)
    drawn = rng.choice(["O", "B-X", "I-X", "E-X", "S-X", "B-Y", "I-Y"], (90, 6)).tolist()
    text = "\n\n".join("\n".join(f"{tag} w" for tag in sequence) for sequence in drawn)
    (tmp_path / "any.txt").write_text(text + "\n")
    (tmp_path / "new.txt").write_text(
        converted(capsys, tmp_path / "any.txt", "--to", scheme, "--label-column", "0")
    )
    found = read_columns(tmp_path / "new.txt").split(0)
    assert [chunks(own) for own in found] == [chunks(own) for own in drawn]
    letters = {tag[0] for own in found for tag in own}
    assert letters == ({"O", "B", "I"} if scheme == "bio" else {"O", "B", "I", "E", "S"})


def test_columns_of_a_treebank(tmp_path, capsys):
    rows = ["# text = We go .", "1\tWe\twe\tPRON\tPRP\t_\t2\tnsubj\t_\t_"]
    rows += ["2-3\tgo.\t_\t_\t_\t_\t_\t_\t_\t_", "2\tgo\tgo\tVERB\tVBP\t_\t0\troot\t_\t_"]
    (tmp_path / "bank.conllu").write_text(
        "\n".join([*rows, "3\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_\n\n"])
    )
    assert converted(capsys, tmp_path / "bank.conllu", "--to", "columns") == (
        "We PRP PRON\ngo VBP VERB\n. . PUNCT\n\n"
    )
    options = ["--fields", "FORM,deprel", "--separator", "tab"]
    assert converted(capsys, tmp_path / "bank.conllu", "--to", "columns", *options) == (
        "We\tnsubj\ngo\troot\n.\tpunct\n\n"
    )
    call = ["convert", str(tmp_path / "bank.conllu"), "--to", "columns", "--fields", "form,x"]
    refused(call, "--fields: unknown field 'x', expected some of id, form", capsys, code=2)


def test_numbers_of_a_test_file_are_those_of_the_training_file(tmp_path, capsys):
    train, test = write_corpus(tmp_path / "a.txt", 20), write_corpus(tmp_path / "b.txt", 10, seed=5)
    with open(test, "a", encoding="utf-8") as file:
        file.write("zebra NN I-NP\n")
    for name in ("a", "b"):
        call = [f"{tmp_path}/{name}.txt", "--to", "svm-hmm", "-o", f"{tmp_path}/{name}.dat"]
        converted(capsys, *call, "--dictionary", tmp_path / "words.tsv")
    entries = [line.split("\t") for line in (tmp_path / "words.tsv").read_text().splitlines()]
    labels = {name: int(number) for kind, number, name in entries if kind == "label"}
    features = {name: int(number) for kind, number, name in entries if kind == "feature"}
    assert sorted(labels.values()) == list(range(1, len(labels) + 1))
    columns = {path: read_columns(path) for path in (train, test)}
    extractor = WindowFeatures(words_templates()).fit(columns[train].select([0, 1]))
    order = [features[name] - 1 for name in extractor.get_feature_names_out()]
    for path in (train, test):
        expected = sparse.csr_matrix(extractor.transform(columns[path].select([0, 1])).tokens)
        written = read_svmlight(path.with_suffix(".dat"), n_features=len(features))
        assert np.array_equal(written.X.toarray()[:, order], expected.toarray())
        assert written.y.tolist() == [labels[tag] for tag in columns[path].columns[-1]]
        lengths = np.diff(columns[path].offsets)
        assert written.qid.tolist() == np.repeat(np.arange(1, len(lengths) + 1), lengths).tolist()
    assert "# zebra" in (tmp_path / "b.dat").read_text()
    (tmp_path / "c.txt").write_text("the DT B-ODD\n")
    call = ["convert", str(tmp_path / "c.txt"), "--to", "svm-hmm", "--dictionary"]
    refused([*call, str(tmp_path / "words.tsv")], "the label 'B-ODD' is not in", capsys)
    refused([*call, str(train)], "a.txt:1: expected label or feature", capsys)


def test_arrays(tmp_path, capsys):
    data = tmp_path / "data.svm"
    data.write_text("1 qid:3 1:0.5 4:2\n2 qid:4 2:1\n")
    converted(capsys, data, "--to", "npz", "-o", tmp_path / "data.npz")
    found, expected = np.load(tmp_path / "data.npz"), read_svmlight(data)
    X = sparse.csr_matrix((found["data"], found["indices"], found["indptr"]), found["shape"])
    assert np.array_equal(X.toarray(), expected.X.toarray())
    assert found["y"].tolist() == [1, 2] and found["qid"].tolist() == [3, 4]


def test_bad_arguments(corpus, capsys):
    call = ["convert", str(corpus), "--to"]
    refused([*call, "svm-hmm"], "--to svm-hmm requires --dictionary", capsys, code=2)
    refused(
        [*call, "bio", "--dictionary", "d"], "--dictionary requires --to svm-hmm", capsys, code=2
    )
    refused([*call, "npz"], "arrays cannot be written to standard output", capsys, code=2)
    refused([*call, "bio", "-o", str(corpus)], "would be overwritten", capsys)
    refused([*call, "bio", "--label-column", "2"], "no label column 2", capsys)
    refused([*call, "bio", "--label-column", "0"], "bio.txt:1: the label is 'a'", capsys)
    other = corpus.parent / "other.txt"
    other.write_text("something\n")
    refused([*call, "bio", "-o", str(other)], "--force to replace it", capsys)
    assert main([*call, "bio", "-o", str(other), "--force"]) == 0
    assert other.read_text().startswith("a B-X\n")
