"""Parse trees of files of bracketed trees."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from ..._warn import warn_user
from ...estimators.grammar import GrammarParser
from ...formats import Tree, clean_tree, open_text, read_columns, read_trees
from ...formats.opening import Source
from ...formats.recognising import Kind
from ...metrics import bracket_scores
from ...metrics.tallies import tally_of_trees
from ...registry import PARSE
from ..evaluation import Evaluation, number_of_answers, written_score
from ..files import Model, at_lines, check_kind, open_input
from ..options import SEPARATORS
from ..training import Examples, Plan, Training, say, shared_parameters

__all__ = ["evaluate", "examples", "load_schema", "plan", "predict"]

SHORT = 40  # words of sentences that EVALB tells apart
SAMPLE = 1000  # letters by which trees are told from columns
_TREE = re.compile(r"\s*\(\S")
_BRACKETS = str.maketrans({"(": "-LRB-", ")": "-RRB-"})  # as the Penn Treebank has them


def plan(arguments: argparse.Namespace) -> Plan:
    """How to train; see `maxmargin.cli.tasks`."""
    return Plan([], partial(_make, arguments))


def _make(arguments: argparse.Namespace) -> Training:
    """A parser, to be trained on trees."""
    source = open_input(arguments.data)
    check_kind(source, PARSE, arguments.encoding)
    trees, lines = _read_trees(source, arguments)
    n_words = sum(len(tree.words()) for tree in trees)
    say(arguments, f"{len(trees)} trees, {n_words} words")
    estimator = GrammarParser(
        terminals=arguments.terminals or "tags",
        horizontal=arguments.horizontal,
        vertical=arguments.vertical or 1,
        span_features=arguments.span_features,
        lexical_features=arguments.lexical_features,
        **shared_parameters(arguments, PARSE),
    )

    def fit() -> None:
        with at_lines("tree", source, lines):
            estimator.fit(trees)

    return Training(fit, estimator, {"task": PARSE.name}, Examples(trees, None))


def load_schema(path: str, estimator: Any, extra: dict[str, Any]) -> None:
    """Nothing more need be known of files of trees."""


def predict(model: Model, source: Source, arguments: argparse.Namespace) -> str:
    """One tree on each line; with --k or --scores, behind its number and score."""
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
        warn_user(f"{source}: {n_fallbacks} sentences have no derivation, and get flat trees")
    return "".join(f"{line}\n" for line in lines)


def evaluate(model: Model, arguments: argparse.Namespace) -> Evaluation:
    """Scores of trees as EVALB has them."""
    source = open_input(arguments.data)
    check_kind(source, PARSE, arguments.encoding)
    gold, _ = _read_trees(source, arguments, keep_empty=True)
    predicted = model.estimator.predict(gold)
    scores = bracket_scores(gold, predicted)
    report: dict[str, Any] = {"task": model.task.name, "trees": len(gold), **scores._asdict()}
    text = f"{len(gold)} trees\n\n{scores}"
    short = [i for i, tree in enumerate(gold) if len(tree.words()) <= SHORT]
    if 0 < len(short) < len(gold):
        some = bracket_scores([gold[i] for i in short], [predicted[i] for i in short])
        report[f"up_to_{SHORT}_words"] = {"trees": len(short), **some._asdict()}
        text += f"\n\n{len(short)} trees of up to {SHORT} words\n\n{some}"
    return Evaluation(report, text, tally_of_trees(gold, predicted))


def examples(model: Model, arguments: argparse.Namespace) -> Examples:
    """A labelled file for a model; see `maxmargin.cli.tasks`."""
    source = open_input(arguments.data)
    check_kind(source, PARSE, arguments.encoding)
    return Examples(_read_trees(source, arguments)[0], None)


def _read_trees(
    source: Source, arguments: argparse.Namespace, *, keep_empty: bool = False
) -> tuple[list[Tree], Sequence[int]]:
    """Read trees as they are learned, and the lines on which they begin.

    One of null elements alone has no words: a sentence to predict for, not to learn from.
    """
    treebank = read_trees(source, encoding=arguments.encoding)
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
    kind = check_kind(source, PARSE, arguments.encoding, needs_labels=False)
    with open_text(source, arguments.encoding) as stream:
        begins_as_tree = _TREE.match(stream.read(SAMPLE)) is not None
    if kind is Kind.TREES or begins_as_tree:
        return list(_read_trees(source, arguments, keep_empty=True)[0])
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
