"""Public data sets: found in a folder, downloaded from a server, verified."""

import gzip
import http.server
import io
import lzma
import os
import socket
import threading
import zipfile

import numpy as np
import pytest

from conftest import find_data
from maxmargin import datasets
from maxmargin.datasets import loading, public

TRAIN = "El DA O\nAbogado NC B-PER\n\nMadrid NP B-LOC\n"
TEST = "Subrayó VMI O\n"
SIZES = {
    "conll2000": (8936, 2012),
    "conll2002": (8323, 1915, 1517),
    "ocr_letters": (626, 6251),
    "mq2008": (9630, 2707, 2874),
    "yeast": (1500, 917),
    "scene": (1211, 1196),
    "ud_english_ewt": (12544, 2001, 2077),
}


@pytest.fixture
def server():
    """A server of what is in ``served``: bytes by path, or (bytes, promised length)."""
    served, requested = {}, []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requested.append(self.path)
            if self.path not in served:
                self.send_error(404)
                return
            content = served[self.path]
            content, length = content if isinstance(content, tuple) else (content, len(content))
            self.send_response(200)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        running.served, running.requested = served, requested
        running.address = f"http://127.0.0.1:{running.server_port}"
        yield running
        running.shutdown()
        thread.join()


def small_set(tmp_path, address):
    """CoNLL-2000 with a sentence or two, checksums included."""
    sums = {}
    for part, text in (("train", TRAIN), ("test", TEST)):
        path = tmp_path / "reference.txt"
        path.write_text(text, encoding="utf-8")
        sums[part] = loading._digest(loading._read_tagged(path))
    return loading._SETS["conll2000"]._replace(url=address + "/{}.txt", sha256=sums)


@pytest.fixture
def small(tmp_path, server, monkeypatch):
    """The small set, at the server in plain files."""
    monkeypatch.setitem(loading._SETS, "conll2000", small_set(tmp_path, server.address))
    monkeypatch.delenv("MAXMARGIN_DATA", raising=False)
    server.served |= {"/train.txt": TRAIN.encode(), "/test.txt": TEST.encode()}
    return server


def fetch(home, **options):
    return datasets.fetch_conll2000(data_home=home, **options)


def check_small(data):
    assert data.X_train == [[("El", "DA"), ("Abogado", "NC")], [("Madrid", "NP")]]
    assert data.y_train == [["O", "B-PER"], ["B-LOC"]]
    assert data.X_test == [[("Subrayó", "VMI")]] and data.y_test == [["O"]]
    assert "CoNLL-2000" in data.DESCR


def test_downloads_once(small, tmp_path):
    home = tmp_path / "new" / "home"
    check_small(fetch(home))
    assert sorted(path.name for path in (home / "conll2000").iterdir()) == ["test.txt", "train.txt"]
    assert small.requested == ["/train.txt", "/test.txt"]
    check_small(fetch(home))
    assert len(small.requested) == 2


def test_downloads_an_archive_once(small, tmp_path, monkeypatch):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("c/train.txt", TRAIN)
        archive.writestr("c/test.txt", TEST)
    small.served["/all.zip"] = packed.getvalue()
    url = f"{small.address}/all.zip#c/{{}}.txt"
    monkeypatch.setitem(loading._SETS, "conll2000", loading._SETS["conll2000"]._replace(url=url))
    check_small(fetch(tmp_path))
    assert small.requested == ["/all.zip"]


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_reads_plain_and_compressed_files(ending, small, tmp_path):
    opener = {"": open, ".gz": gzip.open, ".xz": lzma.open}[ending]
    (tmp_path / "conll2000").mkdir()
    for part, text in (("train", TRAIN), ("test", TEST)):
        with opener(tmp_path / "conll2000" / f"{part}.txt{ending}", "wb") as stream:
            stream.write(text.encode("latin-1" if part == "test" else "utf-8"))
    check_small(fetch(tmp_path, download_if_missing=False))
    assert not small.requested


def test_the_environment_names_the_folder(small, tmp_path, monkeypatch):
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path / "chosen"))
    check_small(fetch(None))
    assert (tmp_path / "chosen" / "conll2000" / "train.txt").is_file()


def test_the_home_folder_is_the_default(small, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    check_small(fetch(None))
    assert (tmp_path / "maxmargin_data" / "conll2000" / "train.txt").is_file()


def test_missing_and_not_to_be_downloaded(small, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        fetch(tmp_path, download_if_missing=False)
    message = str(caught.value)
    assert str(tmp_path / "conll2000" / "train.txt") in message
    assert f"{small.address}/train.txt" in message and "data_home=" in message
    assert not small.requested


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        (TEST.encode(), "SHA-256"),
        (b"<html>Log in</html>\n", "3 columns"),
        ((TRAIN.encode()[:20], len(TRAIN.encode())), r"20 (of|bytes)"),
        (None, "404"),
    ],
    ids=["wrong checksum", "another page", "truncated", "not found"],
)
def test_failed_downloads_leave_nothing(served, expected, small, tmp_path):
    home = tmp_path / "home"
    if served is None:
        del small.served["/train.txt"]
    else:
        small.served["/train.txt"] = served
    with pytest.raises(OSError, match=expected) as caught:
        fetch(home)
    assert f"{small.address}/train.txt" in str(caught.value)
    assert str(home / "conll2000" / "train.txt") in str(caught.value)
    assert not any(path.is_file() for path in home.rglob("*"))
    assert not list(home.rglob(".download-*"))


def test_no_network(small, tmp_path, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
    monkeypatch.setitem(loading._SETS, "conll2000", small_set(tmp_path, address))
    with pytest.raises(OSError, match=r"Without a connection, get .* and save it as"):
        fetch(tmp_path / "home")


def test_a_server_that_says_nothing(small, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setitem(loading._SETS, "conll2000", small_set(tmp_path, address))
        with pytest.raises(OSError, match="timed out"):
            fetch(tmp_path / "home")


def test_a_folder_that_cannot_be_written(small, tmp_path):
    home = tmp_path / "home"
    home.write_text("a file, so that no folder can be made there, whoever runs this")
    with pytest.raises(OSError, match="data_home="):
        fetch(home)
    assert not small.requested


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(small, tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    with pytest.raises(OSError, match="Permission denied"):
        fetch(home)
    assert not small.requested


def test_a_damaged_file_is_not_accepted(small, tmp_path):
    check_small(fetch(tmp_path))
    path = tmp_path / "conll2000" / "train.txt"
    path.write_text(TRAIN.replace("B-LOC", "B-ORG"))
    with pytest.raises(OSError, match="does not hold the expected data"):
        fetch(tmp_path)


def test_letters_as_text(tmp_path):
    rng = np.random.default_rng(0)
    pixels = rng.integers(2, size=(3, 128))
    path = tmp_path / "letter.data"
    heads = [(1, "o", 2, 1, 1, 0), (2, "m", -1, 1, 2, 0), (3, "a", -1, 2, 1, 4)]
    path.write_text(
        "".join("\t".join(map(str, [*h, *p])) + "\t\n" for h, p in zip(heads, pixels, strict=True))
    )
    arrays = tmp_path / "letters.npz"
    np.savez(arrays, pixels=pixels, labels=[14, 12, 0], lengths=[2, 1], folds=[0, 4])
    read = loading._read_letters(path)
    for found, expected in zip(read, loading._read_letters(arrays), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert loading._digest(read) == loading._digest(loading._read_letters(arrays))


def test_label_sets_as_arff(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4, 103)).round(3), rng.integers(2, size=(4, 14))
    X[0, 3] = 0.0
    arff, svm = tmp_path / "yeast-train.arff", tmp_path / "yeast_train.svm"
    rows = [",".join([*map(str, a), *map(str, b)]) for a, b in zip(X, y, strict=True)]
    rows[0] = rows[0].replace(",0.0,", ",-0,")
    arff.write_text(
        "@relation 'yeast: -C -14'\n\n@attribute Att1 numeric\n@data\n" + "\n".join(rows)
    )
    lines = []
    for a, b in zip(X, y, strict=True):
        pairs = [f"{k + 1}:{value}" for k, value in enumerate(a) if value]
        lines.append(" ".join([",".join(map(str, np.flatnonzero(b))), *pairs]) + "\n")
    svm.write_text("".join(lines))
    for path in (arff, svm):
        found, labels = loading._read_label_sets(path)
        np.testing.assert_array_equal(found, X)
        np.testing.assert_array_equal(labels, y)
    sums = {loading._digest(loading._read_label_sets(path)) for path in (arff, svm)}
    assert len(sums) == 1


def test_mq2008_is_found_in_the_official_folders(tmp_path):
    """S1 is what fold 2 is tested on."""
    path = tmp_path / "MQ2008" / "Fold2" / "test.txt"
    path.parent.mkdir(parents=True)
    path.write_text("2 qid:7 1:0.5 2:0.000000 #docid = GX1\n")
    data_set = loading._SETS["mq2008"]
    assert loading._find(data_set, "1", tmp_path) == path
    X, y, qid = data_set.read(path)
    assert X.shape == (1, 46) and y.tolist() == [2] and qid.tolist() == [7]
    with pytest.raises(FileNotFoundError, match=r"letor-4-0/ and put it there"):
        datasets.fetch_mq2008(data_home=tmp_path / "empty")


@pytest.mark.parametrize("name", SIZES)
def test_real_files_hold_the_expected_data(name):
    folder = {"mq2008": "ranking", "yeast": "multilabel", "scene": "multilabel"}.get(name, name)
    home = find_data(folder).parent
    data = getattr(datasets, f"fetch_{name}")(data_home=home, download_if_missing=False)
    parts = ("train", "test") if len(SIZES[name]) == 2 else ("train", "dev", "test")
    for part, size in zip(parts, SIZES[name], strict=True):
        assert len(data[f"X_{part}"]) == len(data[f"y_{part}"]) == size


def test_folds(monkeypatch):
    S = {str(k): (np.full((2, 46), k), np.full(2, k), np.full(2, k)) for k in range(1, 6)}
    monkeypatch.setattr(public, "load_parts", lambda *_: S)
    data = datasets.fetch_mq2008(fold=4)
    assert data.qid_train.tolist() == [4, 4, 5, 5, 1, 1]
    assert data.y_dev.tolist() == [2, 2] and data.X_test[:, 0].tolist() == [3, 3]
    with pytest.raises(ValueError, match="fold must be 1 to 5, got 6"):
        datasets.fetch_mq2008(fold=6)


@pytest.mark.parametrize("folds", [(), (10,), range(10)])
def test_folds_of_letters(folds):
    with pytest.raises(ValueError, match="train_folds must be one to nine"):
        datasets.fetch_ocr_letters(train_folds=folds)
