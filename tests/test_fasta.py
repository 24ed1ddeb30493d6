"""FASTA files, and what is wrong with them."""

import gzip

import pytest

from maxmargin.formats import FastaRecord, read_fasta, read_fasta_groups, write_fasta

TEXT = """; a comment
>one first of them
ACDE
fg hi*

>two
K-L.M
"""


def write(folder, text, name="some.fa"):
    (folder / name).write_text(text)
    return folder / name


def test_records(tmp_path):
    assert read_fasta(write(tmp_path, TEXT)) == [
        FastaRecord("one", "ACDEFGHI", "first of them"),
        FastaRecord("two", "K-L.M"),
    ]


def test_windows_lines_and_compressed_files(tmp_path):
    with gzip.open(tmp_path / "some.fa.gz", "wt", newline="") as stream:
        stream.write(TEXT.replace("\n", "\r\n"))
    assert read_fasta(tmp_path / "some.fa.gz") == read_fasta(write(tmp_path, TEXT))


def test_groups(tmp_path):
    text = ">a\nAA\n# empty\n# set 1\n>b\nBB\n>c\nCC\n#set 2\n>d\nDD\n"
    groups = read_fasta_groups(write(tmp_path, text))
    names = [(title, [record.name for record in records]) for title, records in groups]
    assert names == [("", ["a"]), ("set 1", ["b", "c"]), ("set 2", ["d"])]
    assert read_fasta_groups(write(tmp_path, "")) == []


def test_round_trip(tmp_path):
    records = [FastaRecord("long", "ACDEF" * 50, "a name"), FastaRecord("short", "A")]
    write_fasta(tmp_path / "out.fa.xz", records)
    assert read_fasta(tmp_path / "out.fa.xz") == records


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ACGT\n", "some.fa:1: expected '>'"),
        (">a\nAC\n>\nAC\n", "some.fa:3: expected a name"),
        (">a\n\n>b\nAC\n", "some.fa:1: a has no sequence"),
        (">a\nAC\n>b\n", "some.fa:3: b has no sequence"),
        (">a\nAC\nA1\n", "some.fa:3: expected letters and gaps, found '1'"),
    ],
)
def test_what_is_wrong(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_fasta(write(tmp_path, text))
