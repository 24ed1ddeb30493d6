"""Small files for tests of the command line."""

import gzip
import lzma
import os

import numpy as np
import pytest

from maxmargin.cli import main

posix = pytest.mark.skipif(os.name == "nt", reason="files and signals of Windows are different")

NOUNS, VERBS = ["cat", "dog", "bird", "cow"], ["sat", "ran", "sang"]


def write_corpus(path, n, labels=True, seed=0):
    """Sentences of words, tags of speech and chunk labels."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n):
        for word, pos, label in (
            (rng.choice(["the", "a"]), "DT", "B-NP"),
            (rng.choice(NOUNS), "NN", "I-NP"),
            (rng.choice(VERBS), "VB", "B-VP"),
            (".", ".", "O"),
        ):
            if rng.random() < 0.9 or label == "B-NP":
                lines.append(f"{word} {pos} {label}" if labels else f"{word} {pos}")
        lines.append("")
    text = "\n".join(lines) + "\n"
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opener(path, "wt", encoding="utf-8") as file:
        file.write(text)
    return path


def write_hard_corpus(path, n=300):
    """Labels at random: training takes long to reach any precision."""
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(n):
        words, labels = rng.integers(0, 50, 8), rng.integers(0, 5, 8)
        lines += [f"w{w} L{k}" for w, k in zip(words, labels, strict=True)] + [""]
    path.write_text("\n".join(lines))
    return path


def files(folder):
    """Contents by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(arguments, message, capsys, code=1):
    """Run a command that must end with one line of explanation."""
    assert main(arguments) == code
    printed = capsys.readouterr()
    lines = printed.err.strip().splitlines()
    assert lines[-1].startswith("maxmargin: error: ") and message in lines[-1], printed.err
    assert "Traceback" not in printed.err and printed.out == ""
