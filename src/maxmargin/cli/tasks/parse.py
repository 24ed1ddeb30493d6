"""Parse trees of files of bracketed trees."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..task import Task

if TYPE_CHECKING:
    from ...formats import Tree
    from ...formats.opening import Source
    from ..evaluation import Evaluation
    from ..files import Model
    from ..training import Examples, Training

__all__ = ["TASK", "read_clean_trees"]

SHORT = 40  # words of sentences that EVALB counts apart

SAMPLE = 1000  # letters by which trees are recognised

_TREE = re.compile(r"\s*\(\S")

_BRACKETS = str.maketrans({"(": "-LRB-", ")": "-RRB-"})  # as the Penn Treebank has them


class ParseTask(Task):
    """Parse trees of files of bracketed trees."""

    name = "parse"
    reads = ("TREES",)
    expects = "trees in brackets, (S (NP (DT the) (NN cat)) ...)"
    description = (
        "Predicts the phrase structure tree of a sentence. Reads trees in brackets as in the Penn "
        "Treebank, each on one line or several; null elements and function tags are left out. "
        "predict also reads columns, a word and its tag on each line."
    )
    writes = "one tree on each line"
    scores = (
        "precision, recall and F1 of labelled constituents, as EVALB computes them, and exact "
        "matches, of all sentences and of those of up to 40 words"
    )
    losses = ("f1", "zero_one")
    unit = "tree"
    answers = ("k", "scores")
    reads_unlabelled = ("COLUMNS",)
    options = ("terminals", "horizontal", "vertical", "span_features", "lexical_features")

    def make(self, arguments: argparse.Namespace) -> Training:
        """A parser, to be trained on trees."""
        from ...estimators.trees.grammar import GrammarParser
        from ..files import at_lines, check_kind, open_input
        from ..training import Examples, Training, say, shared_parameters

        source = open_input(arguments.data)
        check_kind(source, self, arguments.encoding)
        trees, lines = read_clean_trees(source, arguments.encoding)
        n_words = sum(len(tree.words()) for tree in trees)
        say(arguments, f"{len(trees)} trees, {n_words} words")
        estimator = GrammarParser(
            terminals=arguments.terminals or "tags",
            horizontal=arguments.horizontal,
            vertical=arguments.vertical or 1,
            span_features=arguments.span_features,
            lexical_features=arguments.lexical_features,
            **shared_parameters(arguments, self),
        )

        located = partial(at_lines, "tree", source, lines)
        return Training(estimator, Examples(trees), located=located)

    def predict(self, model: Model, source: Source, arguments: argparse.Namespace) -> str:
        """One tree on each line; with --k or --scores, behind its number and score."""
        from ...utils.warn import warn_user
        from ..evaluation import number_of_answers, written_score

        sentences = _read_sentences(model, source, arguments)
        k = number_of_answers(arguments)
        if k is None:
            trees = model.estimator.predict(sentences)
            lines = [str(tree) for tree in trees]
        else:
            ranked = model.estimator.predict_k(sentences, k)
            trees = [tree for own in ranked for tree, _ in own]
            lines = [
                f"{number} {written_score(score)} {tree}"
                for own in ranked
                for number, (tree, score) in enumerate(own, 1)
            ]
        n_fallbacks = sum(tree.is_fallback for tree in trees)
        if n_fallbacks:
            warn_user(
                f"{source}: {n_fallbacks} of {len(trees)} sentences have no derivation by the "
                "grammar and get flat trees"
            )
        return "".join(f"{line}\n" for line in lines)

    def evaluate(self, model: Model, arguments: argparse.Namespace) -> Evaluation:
        """Scores of trees as EVALB has them."""
        from ...metrics import bracket_scores
        from ...metrics.tallies import tally_of_trees
        from ..evaluation import Evaluation
        from ..files import check_kind, open_input

        source = open_input(arguments.data)
        check_kind(source, self, arguments.encoding)
        gold, _ = read_clean_trees(source, arguments.encoding, keep_empty=True)
        predicted = model.estimator.predict(gold)
        scores = bracket_scores(gold, predicted)
        report: dict[str, Any] = {"trees": len(gold), **scores._asdict()}
        text = f"{len(gold)} trees\n\n{scores}"
        short = [i for i, tree in enumerate(gold) if len(tree.words()) <= SHORT]
        if 0 < len(short) < len(gold):
            some = bracket_scores([gold[i] for i in short], [predicted[i] for i in short])
            report[f"up_to_{SHORT}_words"] = {"trees": len(short), **some._asdict()}
            text += f"\n\n{len(short)} trees of up to {SHORT} words\n\n{some}"
        return Evaluation(report, text, tally_of_trees(gold, predicted))

    def examples(self, model: Model, arguments: argparse.Namespace) -> Examples:
        """A labelled file for a model."""
        from ..files import check_kind, open_input
        from ..training import Examples

        source = open_input(arguments.data)
        check_kind(source, self, arguments.encoding)
        return Examples(read_clean_trees(source, arguments.encoding)[0], None)


TASK = ParseTask()


def read_clean_trees(
    source: Source, encoding: str, *, keep_empty: bool = False
) -> tuple[list[Tree], Sequence[int]]:
    """Read trees as they are learned, and the lines on which they begin.

    One of null elements alone has no words: a sentence to predict for, not to learn from.
    """
    from ...formats import Tree, clean_tree, read_trees

    treebank = read_trees(source, encoding=encoding)
    trees = []
    for tree, line in zip(treebank.trees, treebank.lines, strict=True):
        try:
            trees.append(clean_tree(tree))
        except ValueError as error:
            if not keep_empty:
                raise ValueError(f"{source}:{line}: {error}") from None
            trees.append(Tree(tree.label, ()))
    return trees, treebank.lines


def _read_sentences(model: Model, source: Source, arguments: argparse.Namespace) -> list[Any]:
    """Sentences of trees, or of columns with a word and a tag (or one of them) on each line."""
    from ...formats import open_text, read_columns
    from ...formats.recognising import Kind
    from ..files import check_kind
    from ..options import SEPARATORS

    kind = check_kind(source, TASK, arguments.encoding, needs_labels=False)
    with open_text(source, arguments.encoding) as stream:
        begins_as_tree = _TREE.match(stream.read(SAMPLE)) is not None
    if kind is Kind.TREES or begins_as_tree:
        return list(read_clean_trees(source, arguments.encoding, keep_empty=True)[0])
    data = read_columns(
        source, encoding=arguments.encoding, separator=SEPARATORS[arguments.separator or "auto"]
    )
    if len(data.columns) > 2:
        raise ValueError(
            f"{source}: {len(data.columns)} columns, expected a word and its tag on each line, or "
            "trees in brackets"
        )
    needs_tags = model.estimator.terminals == "tags" or getattr(
        model.estimator, "lexical_features", False
    )
    sentences = [
        [tuple(field.translate(_BRACKETS) for field in token) for token in sentence]
        for sentence in data.sequences()
    ]
    if len(data.columns) == 2:
        return sentences
    if needs_tags:
        raise ValueError(f"{source}: one column, but the model needs words and their tags")
    return [[word for (word,) in sentence] for sentence in sentences]
