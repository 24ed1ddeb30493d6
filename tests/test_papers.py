"""Tables and figures of the papers: they run on tiny slices; pages are what was recorded."""

import json
import subprocess
import sys

import pytest

from conftest import REPOSITORY, find_data


@pytest.fixture
def papers(monkeypatch):
    """The benchmarks are not installed."""
    monkeypatch.syspath_prepend(str(REPOSITORY))
    from benchmarks.papers import recording

    return recording


def test_pages_are_those_of_the_records(papers):
    for name, text in papers.pages().items():
        page = papers.PAGES / name
        assert page.read_text(encoding="utf-8") == text, (
            f"{name}: python -m benchmarks papers --pages"
        )


def test_pictures_are_there(papers):
    for paper in papers.PAPERS:
        for name, exhibit in papers.read(paper).items():
            if exhibit.panels:
                assert (papers.PAGES / papers.PICTURES / f"{paper}-{name}.png").exists(), name


def test_records_say_what_was_measured(papers):
    for paper in papers.PAPERS:
        for name, exhibit in papers.read(paper).items():
            assert not exhibit.about["quick"], (paper, name)
            for claim in exhibit.claims:
                assert claim.holds in (True, False, None) and claim.finding, claim


@pytest.mark.slow
@pytest.mark.parametrize(
    ("paper", "exhibit", "files"),
    [
        ("franc-2014", "table-1", ["usps/usps.npz", "ocr_letters/letters.npz"]),
        ("joachims-2009", "figure-6", ["ptb_sample/wsj_0001-0199.mrg.xz", "covtype/covtype.npz"]),
        ("lee-jang-2010", "table-1", ["mnist/train-images-idx3-ubyte.xz"]),
        ("chang-yih-2013", "table-1", ["conll2002/esp.train.xz"]),
        ("tsochantaridis-2005", "table-3", ["conll2002/esp.train.xz"]),
    ],
)
def test_exhibits_run(tmp_path, paper, exhibit, files):
    for name in files:
        find_data(name)
    command = [sys.executable, "-m", "benchmarks", "papers", paper, exhibit, "--quick"]
    done = subprocess.run(
        [*command, "--output", str(tmp_path)], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / paper / f"{exhibit}.json").read_text())
    assert record["tables"] or record["panels"]
    assert str(REPOSITORY) not in json.dumps(record)


def test_an_unknown_exhibit_is_refused(papers):
    with pytest.raises(SystemExit, match="franc-2014 has no table-9; it has table-1"):
        papers.run("franc-2014", ["table-9"], None, papers.RECORDED)
