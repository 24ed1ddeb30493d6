"""A hidden Markov model of tagged words: counts, smoothed, and the most probable tags (Viterbi)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from .case import Floats

RARE = 1  # words seen no more often are known by their spelling only, as unseen ones are
ADDED = 0.1  # to every count


class HiddenMarkovModel:
    """P(tags, words) = P(tag | tag before) P(word | tag), with ends of sentences as tags."""

    def __init__(self, spelling: Callable[[str], str]) -> None:
        self.spelling = spelling

    def fit(self, X: Sequence[Sequence[str]], y: Sequence[Sequence[str]]) -> HiddenMarkovModel:
        """Count."""
        self.tags = sorted({tag for tags in y for tag in tags})
        states = {tag: k for k, tag in enumerate(self.tags)}
        often = Counter(word for words in X for word in words)
        self.known = {word for word, count in often.items() if count > RARE}
        seen = sorted({self.seen(word) for words in X for word in words})
        self.columns = {word: k for k, word in enumerate(seen)}
        n, end = len(states), len(states)
        steps = np.full((n + 1, n + 1), ADDED)  # the last row and column: ends
        words_of = np.full((n, len(seen) + 1), ADDED)  # the last column: spellings never seen
        for words, tags in zip(X, y, strict=True):
            path = [end, *(states[tag] for tag in tags), end]
            np.add.at(steps, (path[:-1], path[1:]), 1.0)
            np.add.at(words_of, (path[1:-1], [self.column(word) for word in words]), 1.0)
        self.steps: Floats = np.log(steps / steps.sum(axis=1, keepdims=True))
        self.words_of: Floats = np.log(words_of / words_of.sum(axis=1, keepdims=True))
        return self

    def predict(self, X: Sequence[Sequence[str]]) -> list[list[str]]:
        """The most probable tags of each sentence."""
        return [self._best(words) for words in X]

    def seen(self, word: str) -> str:
        """A frequent word, or the spelling of another one (no word has a blank in front)."""
        return word if word in self.known else " " + self.spelling(word)

    def column(self, word: str) -> int:
        """Where its probabilities are."""
        return self.columns.get(self.seen(word), len(self.columns))

    def _best(self, words: Sequence[str]) -> list[str]:
        """Viterbi's search."""
        emissions = self.words_of[:, [self.column(word) for word in words]]
        score = self.steps[-1, :-1] + emissions[:, 0]
        before = []
        for t in range(1, len(words)):
            ways = score[:, None] + self.steps[:-1, :-1]
            before.append(ways.argmax(axis=0))
            score = ways.max(axis=0) + emissions[:, t]
        path = [int(np.argmax(score + self.steps[:-1, -1]))]
        for arrows in reversed(before):
            path.append(int(arrows[path[-1]]))
        return [self.tags[k] for k in reversed(path)]
