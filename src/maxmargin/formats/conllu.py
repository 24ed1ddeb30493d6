"""CoNLL-U treebanks: ten columns per word, comments, multiword tokens; read, changed, written back.

A line of a sentence is a word (``ID`` 1, 2, ...), a multiword token (``3-4``), an empty node
(``5.1``) or a comment (``# ...``). Words are what is parsed; the other lines are kept where they
are, so that a file that is read and written comes out as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from .opening import BadLine, NumberedLines, PathLike, Source, read_blocks
from .writing import write_text_atomically

__all__ = ["ConlluTreebank", "read_conllu", "write_conllu"]

ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC = range(10)
_OTHER_ID = re.compile(r"[0-9]+-[0-9]+|[0-9]+\.[0-9]+")
_NUMBER = re.compile(r"[0-9]{1,9}")


class ConlluTreebank(NamedTuple):
    """Sentences of a CoNLL-U file.

    Attributes
    ----------
    rows : list of list of list of str
        ``rows[i][t]`` are the fields of word t of sentence i, ten unless the file has others.
    others : list of list of (int, str)
        Comments, multiword tokens and empty nodes of each sentence: each with the number of words
        before it.
    source : str or None
        Name of the file the sentences are from.
    lines : list of list of int, or None
        Line of each word in that file, from 1.
    """

    rows: list[list[list[str]]]
    others: list[list[tuple[int, str]]]
    source: str | None = None
    lines: list[list[int]] | None = None

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""
        return len(self.rows)

    @property
    def n_words(self) -> int:
        """Number of words in all sentences."""
        return sum(map(len, self.rows))

    def tokens(self, *columns: int) -> list[list[tuple[str, ...]]]:
        """Words as tuples of fields: form, coarse and fine tag unless other columns are named."""
        chosen = columns or (FORM, UPOS, XPOS)
        return [[tuple(row[c] for c in chosen) for row in sentence] for sentence in self.rows]

    def heads(self) -> list[list[int]]:
        """Head of each word, 0 for the root; every word must have one."""
        found = []
        for i, sentence in enumerate(self.rows):
            try:
                found.append([int(row[HEAD]) for row in sentence])
            except ValueError:
                t = next(t for t, row in enumerate(sentence) if not row[HEAD].isdecimal())
                raise ValueError(
                    f"{self.place(i, t)}: the head is {sentence[t][HEAD]!r}, expected a number"
                ) from None
        return found

    def place(self, sentence: int, word: int) -> str:
        """Where a word is, for messages: file and line, or the numbers of sentence and word."""
        if self.lines is None:
            return f"sentence {sentence}, word {word + 1}"
        return f"{self.source}:{self.lines[sentence][word]}"

    def labeled_heads(self) -> list[list[tuple[int, str]]]:
        """Head and relation of each word."""
        return [
            [(head, row[DEPREL]) for head, row in zip(heads, sentence, strict=True)]
            for heads, sentence in zip(self.heads(), self.rows, strict=True)
        ]

    def select(self, sentences: Iterable[int]) -> ConlluTreebank:
        """Some of the sentences."""
        chosen = list(sentences)
        lines = None if self.lines is None else [self.lines[i] for i in chosen]
        rows, others = [self.rows[i] for i in chosen], [self.others[i] for i in chosen]
        return ConlluTreebank(rows, others, self.source, lines)

    def with_trees(self, trees: Sequence[Sequence[Any]]) -> ConlluTreebank:
        """A copy with other trees.

        Parameters
        ----------
        trees : list of sequences
            For each sentence the heads of its words, or pairs (head, relation). Without
            relations, a changed head loses the relation it had.
        """
        if len(trees) != len(self.rows):
            raise ValueError(f"expected {len(self.rows)} trees, got {len(trees)}")
        rows = []
        for i, (sentence, tree) in enumerate(zip(self.rows, trees, strict=True)):
            if len(tree) != len(sentence):
                raise ValueError(
                    f"sentence {i} has {len(sentence)} words but its tree has {len(tree)}"
                )
            rows.append([_with_arc(row, arc) for row, arc in zip(sentence, tree, strict=True)])
        return self._replace(rows=rows)


def _with_arc(row: list[str], arc: Any) -> list[str]:
    """Fields of a word with another head, or another (head, relation)."""
    changed = list(row)
    if isinstance(arc, tuple):
        changed[HEAD], changed[DEPREL] = str(int(arc[0])), str(arc[1])
    elif changed[HEAD] != str(int(arc)):
        changed[HEAD], changed[DEPREL] = str(int(arc)), "_"
    return changed


def read_conllu(
    path: Source, *, encoding: str = "utf-8", keep_empty: bool = False
) -> ConlluTreebank:
    """Read a CoNLL-U file.

    Parameters
    ----------
    path : str or path-like
        Plain text, or ``.gz``, ``.xz``, ``.bz2``.
    encoding : str, default="utf-8"
        Text encoding.
    keep_empty : bool, default=False
        Keep sentences without words, such as comments between blank lines: a parser can predict
        for them, but not be trained on them.

    Returns
    -------
    ConlluTreebank
        All sentences.

    Raises
    ------
    ValueError
        A word without ten columns, IDs that do not count 1, 2, ..., a head that is no word of the
        sentence, a sentence of empty nodes alone unless ``keep_empty``, or a file without words;
        the message names file and line.
    """

    def sentence(lines: NumberedLines) -> _Sentence | None:
        found = _read_sentence(lines)
        if found.words or keep_empty:
            return found
        if any(not line.startswith("#") for _, line in found.others):
            raise BadLine("a sentence without words")
        return None

    found = [own for own in read_blocks(path, sentence, encoding=encoding) if own is not None]
    if not found:
        raise ValueError(f"{path}: no words found, expected ten columns per line")
    rows, others, numbers = (list(column) for column in zip(*found, strict=True))
    return ConlluTreebank(rows, others, str(path), numbers)


class _Sentence(NamedTuple):
    """Words of a sentence, its other lines, and the line numbers of the words."""

    words: list[list[str]]
    others: list[tuple[int, str]]
    numbers: list[int]


def _read_sentence(lines: NumberedLines) -> _Sentence:
    """Read the lines of a sentence."""
    words: list[list[str]] = []
    others: list[tuple[int, str]] = []
    numbers = []
    for number, line in lines:
        fields = line.split("\t")
        if line.startswith("#"):
            others.append((len(words), line))
            continue
        if len(fields) != 10:
            raise BadLine(
                f"expected the 10 columns of CoNLL-U, separated by tabs, found {len(fields)}",
                number,
            )
        if _OTHER_ID.fullmatch(fields[ID]):
            others.append((len(words), line))
            continue
        if fields[ID] != str(len(words) + 1):
            raise BadLine(
                f"expected the word number {len(words) + 1}, found {fields[ID]!r:.40}", number
            )
        words.append(fields)
        numbers.append(number)
    for number, word in zip(numbers, words, strict=True):
        head = word[HEAD]
        if head != "_" and not (_NUMBER.fullmatch(head) and int(head) <= len(words)):
            raise BadLine(
                f"the head is {head!r:.40}, expected a number from 0 to {len(words)}", number
            )
    return _Sentence(words, others, numbers)


def write_conllu(
    target: PathLike | TextIO, treebank: ConlluTreebank, *, encoding: str = "utf-8"
) -> None:
    """Write a CoNLL-U file.

    Parameters
    ----------
    target : path-like or text stream
        A file is written whole or not at all, and compressed if it ends in ``.gz``, ``.xz``
        or ``.bz2``.
    treebank : ConlluTreebank
        What to write.
    encoding : str, default="utf-8"
        Text encoding of a file; a stream has its own.
    """
    if isinstance(target, (str, Path)) or hasattr(target, "__fspath__"):
        with write_text_atomically(target, encoding) as stream:
            _write(stream, treebank)
    else:
        _write(target, treebank)


def _write(stream: TextIO, treebank: ConlluTreebank) -> None:
    """Write all sentences to an open stream."""
    for words, others in zip(treebank.rows, treebank.others, strict=True):
        places = [place for place, _ in others]
        cuts = [0, *places, len(words)]
        lines = []
        for (start, end), (_, other) in zip(pairwise(cuts), [*others, (0, "")], strict=True):
            lines += ["\t".join(row) for row in words[start:end]]
            lines.append(other)
        stream.write("\n".join(lines) + "\n")
