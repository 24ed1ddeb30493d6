"""Parts of speech: the Penn Treebank sample (45 tags) and UD English EWT (49 tags); words alone.

Features as in Joachims et al. (2009): prefixes and suffixes of the word and of its neighbours, and
the word's length.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from maxmargin.features import pos_templates
from maxmargin.formats import TokenColumns

from .. import tagging
from ..case import Case, Floats, Options, Target
from ..solvers import ours
from .dependencies import Sentence, Treebank, read_ewt, read_penn

C = 0.1


class PartsOfSpeech(tagging.Tagging):
    """Words and fine tags of a treebank."""

    def __init__(self, bank: Treebank) -> None:
        super().__init__(_columns(bank.X), _columns(bank.X_test), pos_templates())

    def accuracy(self, w: Floats) -> float:
        """Of the test part, in percent."""
        true, found = (np.concatenate(list(tags)) for tags in (self.truth, self.decode(w)))
        return 100.0 * float(np.mean(true == found))


def _columns(sentences: object) -> TokenColumns:
    """Word, word and fine tag of each token."""
    listed: list[Sentence] = list(sentences)  # type: ignore[call-overload]
    tokens = [token for sentence in listed for token in sentence]
    words, tags = [token[0] for token in tokens], [token[-1] for token in tokens]
    lengths = [len(sentence) for sentence in listed]
    return TokenColumns([words, words, tags], np.concatenate([[0], np.cumsum(lengths)]))


def cases(options: Options) -> Iterator[Case]:
    """Both treebanks, certified to 1 %."""
    for name, bank in (("Penn sample", read_penn()), ("EWT", read_ewt())):
        data = PartsOfSpeech(bank.first(options.size(100)))
        accuracy = ours("auto", data.problem, C, tol=1e-2)
        yield Case(
            f"{name}, parts of speech",
            [accuracy],
            [Target("time", "auto", "cpu", "", "s"), Target("passes", "auto", "passes")],
            data.problem,
            C,
        )
        print(f"{name}: accuracy {data.accuracy(accuracy.run().w):.2f} %")  # type: ignore[arg-type]
