"""Public data sets: read from a folder, or downloaded where they are missing; always verified.

The same set is passed around in several forms (plain, compressed, other encodings, ARFF or
svmlight), so the checksums here are not those of files: they are SHA-256 sums of the data after
parsing. A fetcher returns exactly those data, wherever they come from, or raises.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import os
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..formats import (
    open_binary,
    open_text,
    read_columns,
    read_conllu,
    read_svmlight,
    write_atomically,
)
from ..formats.opening import PathLike

__all__ = ["LABELS", "bunch_of", "load_parts"]

_TIMEOUT = 30.0  # seconds without a byte
_COMPRESSED = ("", ".gz", ".xz", ".bz2")


class _DataSet(NamedTuple):
    """Where a data set is found, and how it is read and verified."""

    read: Callable[[Path], Any]
    description: str
    page: str
    places: tuple[str, ...]  # in data_home, by part; plain or compressed
    url: str  # by part, with "#member" for a file in a zip archive; "" if people must get it
    sha256: dict[str, str]  # of the parsed data of each part, see `_digest`


# -- Reading ------------------------------------------------------------------------------------
def _read_tagged(path: Path) -> tuple[list[list[tuple[str, ...]]], list[list[str]]]:
    """Tokens (word, part of speech) and tags of a column file; old files are in Latin-1."""
    with open_binary(path) as stream:
        content = stream.read()
    try:
        content.decode()
        encoding = "utf-8"
    except UnicodeDecodeError:
        encoding = "latin-1"
    data = read_columns(path, encoding=encoding, n_columns=3)
    words, tags_of_speech, tags = (
        [list(map(str, own)) for own in data.split(column)] for column in range(3)
    )
    return [list(zip(*own, strict=True)) for own in zip(words, tags_of_speech, strict=True)], tags


def _read_letters(path: Path) -> tuple[Any, Any, Any, Any]:
    """Pixels and labels of all letters, length and fold of each word; from text or an npz file."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return arrays["pixels"], arrays["labels"], arrays["lengths"], arrays["folds"]
    with open_text(path) as stream:
        rows = [line.split() for line in stream]
    if not rows or any(len(row) != 6 + 128 for row in rows):
        raise ValueError(f"{path}: expected lines of 134 fields (see {_OCR})")
    table = np.array([row[2:3] + row[5:] for row in rows], dtype=np.int64)
    last = np.flatnonzero(table[:, 0] == -1)  # no next letter
    labels = np.array([ord(row[1]) - ord("a") for row in rows])
    return table[:, 2:], labels, np.diff(last, prepend=-1), table[last, 1]


def _read_label_sets(path: Path) -> tuple[Any, Any]:
    """Inputs and indicators of labels, from Mulan's ARFF or from svmlight."""
    name = next(name for name in LABELS if path.name.startswith(name))
    n_features, n_labels = _N_FEATURES[name], len(LABELS[name])
    if ".arff" in path.suffixes:
        with open_text(path) as stream:
            rows = [line for line in stream if line[:1] not in "@%\n"]
        table = np.loadtxt(rows, delimiter=",", ndmin=2)
        if table.shape[1:] != (n_features + n_labels,):
            raise ValueError(f"{path}: expected rows of {n_features + n_labels} numbers")
        return table[:, :n_features], table[:, n_features:].astype(np.int64)
    data = read_svmlight(path, n_features, multilabel=True)
    indicators = np.zeros((len(data.y), n_labels), dtype=np.int64)
    for i, own in enumerate(data.y):
        indicators[i, list(own)] = 1
    return data.X.toarray(), indicators


def _read_queries(path: Path) -> tuple[Any, Any, Any]:
    """Documents, grades and queries."""
    data = read_svmlight(path, 46)
    if data.qid is None:
        raise ValueError(f"{path}: expected qid: on every line")
    return data.X.toarray(), data.y, data.qid


def _read_treebank(
    path: Path,
) -> tuple[list[list[tuple[str, ...]]], list[list[tuple[int, str]]]]:
    """Words as (form, UPOS, XPOS), and (head, relation) of each."""
    treebank = read_conllu(path)
    return treebank.tokens(), treebank.labeled_heads()


def _digest(data: Any) -> str:
    """SHA-256 of parsed data: arrays as 64-bit numbers, sentences as JSON."""
    digest = hashlib.sha256()
    for part in data:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.shape}".encode())
            digest.update((part.astype("<f8") + 0.0).tobytes())  # 0.0 also for -0.0
        else:
            digest.update(json.dumps(part).encode())
    return digest.hexdigest()


# -- The sets -----------------------------------------------------------------------------------
_GITHUB = "https://raw.githubusercontent.com"
_NLTK = f"{_GITHUB}/nltk/nltk_data/gh-pages/packages/corpora"
_UD = f"{_GITHUB}/UniversalDependencies/UD_English-EWT/r2.16"
_OCR = "https://ai.stanford.edu/~btaskar/ocr"
_LETOR = (
    "https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval"
)
# Mulan's own archives are .rar files, which Python cannot open; this is a copy of their content.
_MULAN = "https://mulan.sourceforge.net/datasets-mlc.html"
_MULAN_COPY = (
    f"{_GITHUB}/henrygouk/meka-metric-learning/f6754beb035554a21c3c6eed798c0e4373f97392/datasets"
)
_N_FEATURES = {"yeast": 103, "scene": 294}
LABELS = {
    "yeast": [f"Class{k}" for k in range(1, 15)],
    "scene": ["Beach", "Sunset", "FallFoliage", "Field", "Mountain", "Urban"],
}

_SETS = {
    "conll2000": _DataSet(
        _read_tagged,
        "CoNLL-2000 chunking: Wall Street Journal sections 15-18 (8,936 sentences) and 20 (2,012) "
        "with part-of-speech and chunk tags. The text is from the Penn Treebank (LDC).",
        "https://www.clips.uantwerpen.be/conll2000/chunking/",
        ("conll2000/{}.txt",),
        f"{_NLTK}/conll2000.zip#conll2000/{{}}.txt",
        {
            "train": "f2ca2ab64e484e7be39cd2ce57ab3f24eaffa9a846c89eb964e1a82bf5d9135b",
            "test": "e1d93feb50027c3c876a4018eee9fcd892563888b597755cccdcd8fd67af3421",
        },
    ),
    "conll2002": _DataSet(
        _read_tagged,
        "CoNLL-2002 named entities, Spanish: EFE newswire, 8,323 / 1,915 / 1,517 sentences with "
        "part-of-speech and entity tags (PER, LOC, ORG, MISC). For research only.",
        "https://www.clips.uantwerpen.be/conll2002/ner/",
        ("conll2002/esp.{}",),
        f"{_NLTK}/conll2002.zip#conll2002/esp.{{}}",
        {
            "train": "69551eb93baf0d8b12b1535ef1d591796d401ba10a85e4c161851ba947c35cdf",
            "testa": "b650dff142e01d1c710716f9e34c340edb355fae9ba0f15c841f9242e1e93552",
            "testb": "66005bb5ee0cfa060ca5d705c9b1137dcc729c0611b1b763fffa41d7bf944f6f",
        },
    ),
    "ocr_letters": _DataSet(
        _read_letters,
        "OCR letters: 6,877 handwritten words, 52,152 images of 16 x 8 pixels, first letters left "
        "out, 10 folds. Collected by Rob Kassel (MIT), prepared by Ben Taskar.",
        _OCR,
        ("ocr_letters/letter.data", "ocr_letters/letters.npz"),
        f"{_OCR}/letter.data.gz",
        {"all": "c12e94c67c28a3c9b479594422c1b69e3386f794cfba4503184fc89792a1c9c6"},
    ),
    "mq2008": _DataSet(
        _read_queries,
        "MQ2008 of LETOR 4.0: 784 queries, 15,211 documents, 46 features normalised by query, "
        "grades 0 to 2, five folds. Microsoft's terms of LETOR apply.",
        f"{_LETOR}/letor-4-0/",
        ("MQ2008/Fold{next}/test.txt", "MQ2008/S{}.txt", "ranking/mq2008_S{}.svm"),
        "",  # a .rar archive behind a form
        {
            "1": "b1a63ce542afbd6883296eb20ee906c5ba4772cb3537537a5108b7409f25862f",
            "2": "abd5b1ce9d0f4e89ff9438a467103e8831069707d0e6d68633d79c8bc565312d",
            "3": "006c58a3f047eebd4f1b6d98b87d4921bc383d97ce5c13ba8b040caa9774a365",
            "4": "0948e07f49be3e0f06e3611f0b047b34b6085f3dd26b425c55bab8d0056d760d",
            "5": "cb3c38f2299064324094ba3f799e4c87f75007b4b5ca5c3bb1176615f78872bb",
        },
    ),
    "yeast": _DataSet(
        _read_label_sets,
        "Yeast: 14 functional classes of genes, 1,500 / 917 examples, 103 features (Elisseeff and "
        "Weston 2001; Mulan's split).",
        _MULAN,
        ("yeast/yeast-{}.arff", "multilabel/yeast_{}.svm"),
        f"{_MULAN_COPY}/yeast/yeast-{{}}.arff",
        {
            "train": "df8f4fb47bb59068e87311c199cb96bb077f5bf423f9002647c3552d0169818f",
            "test": "2e91a5ad226c2eea23da7a3f8e0d73f8abd35b98b3cfbf3add03ff0526436008",
        },
    ),
    "scene": _DataSet(
        _read_label_sets,
        "Scene: 6 kinds of scenery in photographs, 1,211 / 1,196 examples, 294 features (Boutell "
        "et al. 2004; Mulan's split).",
        _MULAN,
        ("scene/scene-{}.arff", "multilabel/scene_{}.svm"),
        f"{_MULAN_COPY}/scene/scene-{{}}.arff",
        {
            "train": "4a7fc5f0028955dda80f7db9ac37f57c62081cc2c000c5d7dedbc6ba744c0540",
            "test": "ee5c04c4841b1b30747de2f740cd5e04894a4037330416ba1259a14b5b0da61b",
        },
    ),
    "ud_english_ewt": _DataSet(
        _read_treebank,
        "Universal Dependencies English EWT, release 2.16: 12,544 / 2,001 / 2,077 sentences. "
        "CC BY-SA 4.0.",
        "https://universaldependencies.org/treebanks/en_ewt/index.html",
        ("ud_english_ewt/en_ewt-ud-{}.conllu",),
        f"{_UD}/en_ewt-ud-{{}}.conllu",
        {
            "train": "f0fb2abd1edc4e62bcc49ba98a4a399989c5050cccb4a4c9d7a501c26b2dfe8e",
            "dev": "dbbbe59219b57d381f023ecd634d437379bcb4938c20fb72ec7e911439a2128b",
            "test": "32dc5ae2464cf360480878440ce69e8693c6245a18a0ca5d7d4eac34ddb71f04",
        },
    ),
}


# -- Finding and downloading --------------------------------------------------------------------
def load_parts(name: str, data_home: PathLike | None, download_if_missing: bool) -> dict[str, Any]:
    """Verified data of each part of a set."""
    home = Path(data_home or os.environ.get("MAXMARGIN_DATA") or "~/maxmargin_data").expanduser()
    data_set = _SETS[name]
    downloads: dict[str, bytes] = {}  # archives hold several parts
    parts = {}
    for part in data_set.sha256:
        path = _find(data_set, part, home)
        if path is not None:
            try:
                parts[part] = _read_verified(data_set, part, path)
            except (OSError, ValueError) as error:
                raise OSError(
                    f"{path}: {error}. Replace the file, or remove it to download it again; "
                    "maxmargin.formats has readers for other releases."
                ) from error
        elif download_if_missing and data_set.url:
            parts[part] = _download(data_set, part, home, downloads)
        else:
            raise FileNotFoundError(
                f"{name} is not in {home}: no file {' or '.join(_places(data_set, part))}. "
                + _remedy(data_set, part, home)
            )
    return parts


def _places(data_set: _DataSet, part: str) -> list[str]:
    """Where in data_home a part may be; the test part of fold k of MQ2008 is S(k - 1)."""
    following = int(part) % 5 + 1 if part.isdecimal() else part
    return [place.format(part, next=following) for place in data_set.places]


def _find(data_set: _DataSet, part: str, home: Path) -> Path | None:
    """The file of a part, if it is in data_home."""
    for place in _places(data_set, part):
        for ending in _COMPRESSED:
            if (path := home / (place + ending)).is_file():
                return path
    return None


def _remedy(data_set: _DataSet, part: str, home: Path) -> str:
    """What people can do without a connection."""
    first = home / _places(data_set, part)[0]
    if not data_set.url:
        return f"Get it from {data_set.page} and put it there, as {first}."
    address, _, member = data_set.url.format(part).partition("#")
    what = f"{member} of {address}" if member else address
    return (
        f"Without a connection, get {what} elsewhere (see also {data_set.page}) and save it as "
        f"{first}, plain or compressed by gzip, xz or bzip2; data_home= or $MAXMARGIN_DATA name "
        "another folder."
    )


def _read_verified(data_set: _DataSet, part: str, path: Path) -> Any:
    """Read a file, and compare its data with the checksum."""
    data = data_set.read(path)
    if (found := _digest(data)) != data_set.sha256[part]:
        raise OSError(
            f"{path.name} does not hold the expected data: the SHA-256 sum of its content is "
            f"{found}, expected {data_set.sha256[part]}; it is incomplete, damaged or of another "
            "release"
        )
    return data


def _download(data_set: _DataSet, part: str, home: Path, downloads: dict[str, bytes]) -> Any:
    """Download a part to a new folder in data_home; it gets its place when it is verified."""
    address, _, member = data_set.url.format(part).partition("#")
    target = home / Path(_places(data_set, part)[0]).parent / Path(member or address).name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".download-", dir=target.parent) as folder:
            if address not in downloads:
                downloads[address] = _get(address)
            content = downloads[address]
            if member:
                with zipfile.ZipFile(io.BytesIO(content)) as archive:
                    content = archive.read(member)
            path = Path(folder, target.name)
            with write_atomically(path) as stream:
                stream.write(content)
            data = _read_verified(data_set, part, path)
            os.replace(path, target)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, http.client.HTTPException) as error:
        raise OSError(
            f"{address} could not be downloaded to {target}: {error}. "
            + _remedy(data_set, part, home)
        ) from error
    return data


def _get(address: str) -> bytes:
    """All that an address has."""
    with urllib.request.urlopen(address, timeout=_TIMEOUT) as response:
        content: bytes = response.read()
        expected = response.headers.get("Content-Length")
    if expected is not None and len(content) != int(expected):
        raise OSError(f"the connection ended after {len(content)} of {expected} bytes")
    return content


def bunch_of(name: str, parts: dict[str, tuple[Any, ...]], **others: Any) -> Any:
    """A Bunch with X_train, y_train and so on."""
    from sklearn.utils import Bunch

    kinds = ("X", "y", "qid")
    content = {
        f"{kind}_{part}": own
        for part, data in parts.items()
        for kind, own in zip(kinds, data, strict=False)
    }
    return Bunch(**content, **others, DESCR=f"{_SETS[name].description}\n\n{_SETS[name].page}")
