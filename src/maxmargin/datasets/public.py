"""Fetchers of public data sets: what `loading` finds or downloads, in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..formats.opening import PathLike
from .loading import LABELS, bunch_of, load_parts

__all__ = [
    "fetch_conll2000",
    "fetch_conll2002",
    "fetch_mq2008",
    "fetch_ocr_letters",
    "fetch_scene",
    "fetch_ud_english_ewt",
    "fetch_yeast",
]


def fetch_conll2000(*, data_home: PathLike | None = None, download_if_missing: bool = True) -> Any:
    """Load the chunking data of CoNLL-2000: English, 8,936 and 2,012 sentences.

    Parameters
    ----------
    data_home : str or path-like, optional
        Folder of data sets, which may hold ``conll2000/train.txt`` and ``test.txt``, plain or
        compressed. The default is ``$MAXMARGIN_DATA``, or else ``~/maxmargin_data``.
    download_if_missing : bool, default=True
        Download files that are missing, from the copy of nltk_data; if False, raise.

    Returns
    -------
    data : Bunch
        ``X_train``, ``X_test``: lists of sentences, each a list of tuples (word, part of speech);
        ``y_train``, ``y_test``: lists of chunk tags such as "B-NP"; ``DESCR``.

    Raises
    ------
    FileNotFoundError
        A file is missing and was not to be downloaded; the message says where to get it and where
        to put it.
    OSError
        The download failed, or a file does not hold the expected data (SHA-256 of its content).

    Examples
    --------
    >>> data = fetch_conll2000()                            # doctest: +SKIP
    >>> data.X_train[0][:2], data.y_train[0][:2]            # doctest: +SKIP
    ([('Confidence', 'NN'), ('in', 'IN')], ['B-NP', 'B-PP'])
    """
    return bunch_of("conll2000", load_parts("conll2000", data_home, download_if_missing))


def fetch_conll2002(*, data_home: PathLike | None = None, download_if_missing: bool = True) -> Any:
    """Load the Spanish named entities of CoNLL-2002: 8,323, 1,915 and 1,517 sentences.

    Parameters
    ----------
    data_home : str or path-like, optional
        Folder of data sets, which may hold ``conll2002/esp.train``, ``esp.testa`` and
        ``esp.testb``, plain or compressed. The default is ``$MAXMARGIN_DATA``, or else
        ``~/maxmargin_data``.
    download_if_missing : bool, default=True
        Download files that are missing, from the copy of nltk_data; if False, raise.

    Returns
    -------
    data : Bunch
        ``X_train``, ``X_dev``, ``X_test``: lists of sentences, each a list of tuples (word, part of
        speech); ``y_train``, ``y_dev``, ``y_test``: lists of tags such as "B-PER"; ``DESCR``. The
        part for development is ``esp.testa``.

    Raises
    ------
    FileNotFoundError, OSError
        As `fetch_conll2000`.
    """
    parts = load_parts("conll2002", data_home, download_if_missing)
    names = {"train": "train", "testa": "dev", "testb": "test"}
    return bunch_of("conll2002", {names[part]: data for part, data in parts.items()})


def fetch_ocr_letters(
    *,
    train_folds: Sequence[int] = (0,),
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
) -> Any:
    """Load handwritten words, letter by letter: 6,877 words, images of 16 x 8 pixels.

    Parameters
    ----------
    train_folds : sequence of int, default=(0,)
        Folds, 0 to 9, to train on; the other folds are the test part. ``range(1, 10)`` is the other
        usual protocol.
    data_home : str or path-like, optional
        Folder of data sets, which may hold ``ocr_letters/letter.data``, plain or compressed, or
        ``ocr_letters/letters.npz``. The default is ``$MAXMARGIN_DATA``, or else
        ``~/maxmargin_data``.
    download_if_missing : bool, default=True
        Download a file that is missing, from Ben Taskar's page; if False, raise.

    Returns
    -------
    data : Bunch
        ``X_train``, ``X_test``: lists of arrays of shape (length, 128), pixels 0.0 or 1.0;
        ``y_train``, ``y_test``: lists of arrays of letters "a" to "z"; ``DESCR``.

    Raises
    ------
    ValueError
        Folds that are not 0 to 9, or none to train or to test on.
    FileNotFoundError, OSError
        As `fetch_conll2000`.
    """
    chosen = set(train_folds)
    if not chosen or not chosen < set(range(10)):
        raise ValueError(f"train_folds must be one to nine of the folds 0 to 9, got {train_folds}")
    pixels, labels, lengths, folds = load_parts("ocr_letters", data_home, download_if_missing)[
        "all"
    ]
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))[labels]
    ends = np.cumsum(lengths, dtype=np.int64)[:-1]
    X, y = np.split(pixels.astype(np.float64), ends), np.split(letters, ends)
    is_train = [int(fold) in chosen for fold in folds]
    parts = {}
    for name, wanted in (("train", True), ("test", False)):
        own = [i for i, train in enumerate(is_train) if train == wanted]
        parts[name] = [X[i] for i in own], [y[i] for i in own]
    return bunch_of("ocr_letters", parts)


def fetch_mq2008(
    *, fold: int = 1, data_home: PathLike | None = None, download_if_missing: bool = True
) -> Any:
    """Load a fold of the ranking data MQ2008 (LETOR 4.0): 784 queries, 15,211 documents.

    The files cannot be downloaded by a program: get ``MQ2008.rar`` from the address that the error
    message names, and unpack it in ``data_home``.

    Parameters
    ----------
    fold : int, default=1
        One of the five official folds, 1 to 5.
    data_home : str or path-like, optional
        Folder of data sets, which may hold the folder ``MQ2008``. The default is
        ``$MAXMARGIN_DATA``, or else ``~/maxmargin_data``.
    download_if_missing : bool, default=True
        Without effect: see above.

    Returns
    -------
    data : Bunch
        ``X_train``, ``X_dev``, ``X_test``: arrays of shape (n_documents, 46); ``y_train``,
        ``y_dev``, ``y_test``: grades 0 to 2; ``qid_train``, ``qid_dev``, ``qid_test``: the query of
        each document; ``DESCR``.

    Raises
    ------
    ValueError
        There is no such fold.
    FileNotFoundError, OSError
        As `fetch_conll2000`.
    """
    if fold not in range(1, 6):
        raise ValueError(f"fold must be 1 to 5, got {fold}")
    loaded = load_parts("mq2008", data_home, download_if_missing)
    # Fold 1 trains on S1 to S3, validates on S4 and tests on S5; the others follow in a ring.
    ring = [loaded[str((fold - 1 + k) % 5 + 1)] for k in range(5)]
    pieces = {"train": ring[:3], "dev": ring[3:4], "test": ring[4:]}
    return bunch_of(
        "mq2008",
        {name: tuple(map(np.concatenate, zip(*own, strict=True))) for name, own in pieces.items()},
    )


def fetch_yeast(*, data_home: PathLike | None = None, download_if_missing: bool = True) -> Any:
    """Load the multilabel data yeast: 1,500 and 917 genes, 103 features, 14 labels.

    Parameters
    ----------
    data_home : str or path-like, optional
        Folder of data sets, which may hold ``yeast/yeast-train.arff`` and ``yeast-test.arff``, or
        ``multilabel/yeast_train.svm`` and ``yeast_test.svm``, plain or compressed. The default is
        ``$MAXMARGIN_DATA``, or else ``~/maxmargin_data``.
    download_if_missing : bool, default=True
        Download files that are missing, from a copy of Mulan's; if False, raise.

    Returns
    -------
    data : Bunch
        ``X_train``, ``X_test``: arrays of shape (n_examples, n_features); ``y_train``, ``y_test``:
        arrays of shape (n_examples, n_labels), 1 where an example has a label; ``target_names``;
        ``DESCR``.

    Raises
    ------
    FileNotFoundError, OSError
        As `fetch_conll2000`.
    """
    parts = load_parts("yeast", data_home, download_if_missing)
    return bunch_of("yeast", parts, target_names=list(LABELS["yeast"]))


def fetch_scene(*, data_home: PathLike | None = None, download_if_missing: bool = True) -> Any:
    """Load the multilabel data scene: 1,211 and 1,196 photographs, 294 features, 6 labels.

    Parameters
    ----------
    data_home : str or path-like, optional
        Folder of data sets, which may hold ``scene/scene-train.arff`` and ``scene-test.arff``, or
        ``multilabel/scene_train.svm`` and ``scene_test.svm``, plain or compressed. The default is
        ``$MAXMARGIN_DATA``, or else ``~/maxmargin_data``.
    download_if_missing : bool, default=True
        Download files that are missing, from a copy of Mulan's; if False, raise.

    Returns
    -------
    data : Bunch
        As of `fetch_yeast`.

    Raises
    ------
    FileNotFoundError, OSError
        As `fetch_conll2000`.
    """
    parts = load_parts("scene", data_home, download_if_missing)
    return bunch_of("scene", parts, target_names=list(LABELS["scene"]))


def fetch_ud_english_ewt(
    *, data_home: PathLike | None = None, download_if_missing: bool = True
) -> Any:
    """Load the treebank UD English EWT, release 2.16: 12,544, 2,001 and 2,077 sentences.

    Other releases, and columns that are not returned here, are read by `formats.read_conllu`.

    Parameters
    ----------
    data_home : str or path-like, optional
        Folder of data sets, which may hold ``ud_english_ewt/en_ewt-ud-train.conllu``, ``-dev`` and
        ``-test``, plain or compressed. The default is ``$MAXMARGIN_DATA``, or else
        ``~/maxmargin_data``.
    download_if_missing : bool, default=True
        Download files that are missing, from the treebank's repository; if False, raise.

    Returns
    -------
    data : Bunch
        ``X_train``, ``X_dev``, ``X_test``: lists of sentences, each a list of tuples (form, coarse
        tag, fine tag); ``y_train``, ``y_dev``, ``y_test``: lists of tuples (head, relation), head 0
        for the root; ``DESCR``.

    Raises
    ------
    FileNotFoundError, OSError
        As `fetch_conll2000`.
    """
    return bunch_of("ud_english_ewt", load_parts("ud_english_ewt", data_home, download_if_missing))
