"""Dependency trees of CoNLL-U files, parse trees of files of bracketed trees."""

from __future__ import annotations

import argparse
import io
import re
from collections.abc import Iterator, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..console import UsageError
from ..task import Task

if TYPE_CHECKING:
    from ...formats import ConlluTreebank, Tree
    from ...formats.opening import Source
    from ..evaluation import Evaluation
    from ..files import Model
    from ..training import Examples, Plan, Training

__all__ = ["DEPEND", "PARSE", "read_clean_trees"]

HASH_BITS = range(8, 31)

_UNKNOWN = "_"

_PUNCTUATION = "PUNCT"


class DependTask(Task):
    """Dependency trees of CoNLL-U files."""

    name = "depend"
    reads = ("CONLLU",)
    expects = "CoNLL-U, ten columns between tabs for each word"
    description = (
        "Predicts the dependency tree of a sentence. Reads CoNLL-U: ten columns separated by tabs "
        "for each word, an empty line between sentences. Features are made of FORM, UPOS and "
        "XPOS."
    )
    writes = "the file with HEAD and DEPREL filled in"
    scores = (
        "unlabelled and labelled attachment scores (UAS, LAS) with and without punctuation, "
        "fraction of sentences that are all right, and labelled attachment of every relation"
    )
    losses = ("hamming", "normalized_hamming", "zero_one")
    unit = "sentence"
    answers = ("k", "scores")
    options = ("projective", "on_violation", "labeled", "hash_bits")
    violations = ("raise", "drop", "repair", "keep")
    option_help = MappingProxyType(
        {
            "on_violation": "what to do with training trees that have crossing arcs, unless "
            "--no-projective is given: end with an error (raise), leave them out (drop), lift the "
            "crossing arcs (repair), or train on them as they are (keep, the default)"
        }
    )

    def plan(self, arguments: argparse.Namespace) -> Plan:
        """How to train."""
        from ..training import Plan

        if arguments.hash_bits is not None and arguments.hash_bits not in HASH_BITS:
            raise UsageError(
                f"--hash-bits must be from {HASH_BITS[0]} to {HASH_BITS[-1]}, got "
                f"{arguments.hash_bits}"
            )
        if arguments.on_violation and arguments.projective is False:
            raise UsageError(
                "--on-violation cannot be combined with --no-projective, which allows crossing arcs"
            )
        return Plan([], partial(_make_parser, arguments))

    def predict(self, model: Model, source: Source, arguments: argparse.Namespace) -> str:
        """The file, with the trees found."""
        from ...formats import write_conllu
        from ..evaluation import number_of_answers

        treebank = _read(source, arguments, keep_empty=True)
        k = number_of_answers(arguments)
        if k is not None:
            treebank = _answers(treebank, model.estimator.predict_k(treebank, k))
        else:
            treebank = treebank.with_trees(model.estimator.predict(treebank))
        text = io.StringIO()
        write_conllu(text, treebank)
        return text.getvalue()

    def evaluate(self, model: Model, arguments: argparse.Namespace) -> Evaluation:
        """Scores of a parser, and tables of them."""
        from ...formats.conllu import UPOS
        from ...metrics import attachment_scores, relation_scores
        from ...metrics.tallies import tally_of_heads
        from ...utils.tables import named_values, percent
        from ..evaluation import Evaluation, as_json, count_unknown, error_lines
        from ..files import open_input

        treebank = _read(open_input(arguments.data), arguments)
        is_labeled = model.estimator.classes_ is not None
        gold: list[Any] = treebank.labeled_heads() if is_labeled else treebank.heads()
        predicted = model.estimator.predict(treebank)
        scores = attachment_scores(gold, predicted)
        ignored = [[row[UPOS] == _PUNCTUATION for row in sentence] for sentence in treebank.rows]
        n_ignored = sum(map(sum, ignored))
        report: dict[str, Any] = {
            "sentences": treebank.n_sentences,
            "words": treebank.n_words,
            "uas": scores.uas,
            "las": scores.las,
            "exact": scores.exact,
            "confusions": [],
            "unknown_labels": {},
        }
        head = [("sentences", str(treebank.n_sentences)), ("words", str(treebank.n_words))]
        text = f"{named_values(head)}\n\n{scores}"
        if 0 < n_ignored < treebank.n_words:
            without = attachment_scores(gold, predicted, ignore=ignored)
            shares = {"uas": without.uas, "las": without.las, "exact": without.exact}
            report["without_punctuation"] = {**shares, "words": treebank.n_words - n_ignored}
            named = [(name.upper(), shares[name]) for name in ("uas", "las")]
            listed = ", ".join(f"{name} {percent(x)} %" for name, x in named if x is not None)
            text += f"\n\nwithout punctuation: {listed}"
        if is_labeled:
            relations = relation_scores(gold, predicted)
            given = [relation for sentence in gold for _, relation in sentence]
            report["relations"] = as_json(relations.per_relation)
            report["unknown_labels"] = count_unknown(given, set(model.estimator.classes_.tolist()))
            text += f"\n\n{relations}"
        text = "\n".join([text, *error_lines(report)])
        return Evaluation(report, text, tally_of_heads(gold, predicted))

    def examples(self, model: Model, arguments: argparse.Namespace) -> Examples:
        """A labelled file for a model."""
        from ..files import open_input
        from ..training import Examples

        treebank = _read(open_input(arguments.data), arguments)
        treebank.heads()  # raises where one is missing
        return Examples(treebank, None)


DEPEND = DependTask()


def _make_parser(arguments: argparse.Namespace) -> Training:
    """A parser, to be trained on a treebank."""
    from ...estimators.trees.dependency import DependencyParser
    from ...utils.warn import warn_user
    from ..files import at_lines, open_input
    from ..training import Examples, Training, say, shared_parameters

    treebank = _read(open_input(arguments.data), arguments)
    treebank.heads()  # raises where one is missing
    say(arguments, f"{treebank.n_sentences} sentences, {treebank.n_words} words")
    wanted, has_relations = arguments.labeled is not False, _has_relations(treebank)
    if wanted and not has_relations:
        warn_user(f"{treebank.source}: DEPREL is '_' everywhere, so only heads are learned")
    chosen = {} if arguments.hash_bits is None else {"hash_bits": arguments.hash_bits}
    estimator = DependencyParser(
        projective=arguments.projective is not False,
        on_violation=arguments.on_violation or "keep",
        labeled=wanted and has_relations,
        **chosen,
        **shared_parameters(arguments, DEPEND),
    )

    lines = [own[0] for own in treebank.lines or []]
    located = partial(at_lines, "sentence", treebank.source, lines)
    return Training(estimator, Examples(treebank), located=located)


def _read(
    source: Source, arguments: argparse.Namespace, *, keep_empty: bool = False
) -> ConlluTreebank:
    """Read a treebank, heads or not."""
    from ...formats import read_conllu
    from ..files import check_kind

    check_kind(source, DEPEND, arguments.encoding)
    return read_conllu(source, encoding=arguments.encoding, keep_empty=keep_empty)


def _has_relations(treebank: ConlluTreebank) -> bool:
    """Whether any word has a relation."""
    from ...formats.conllu import DEPREL

    return any(row[DEPREL] != _UNKNOWN for sentence in treebank.rows for row in sentence)


def _answers(treebank: ConlluTreebank, ranked: list[list[tuple[Any, float]]]) -> ConlluTreebank:
    """Every sentence once for each of its trees, with a comment that has its number and score."""
    from ..evaluation import answer_line

    def sentences() -> Iterator[tuple[int, Any, str]]:
        for i, trees in enumerate(ranked):
            for number, (tree, score) in enumerate(trees, 1):
                yield i, tree, answer_line(number, score)

    listed = list(sentences())
    repeated = treebank.select(i for i, _, _ in listed).with_trees([tree for _, tree, _ in listed])
    others = [[(0, line), *own] for own, (_, _, line) in zip(repeated.others, listed, strict=True)]
    return repeated._replace(others=others)


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


PARSE = ParseTask()


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

    kind = check_kind(source, PARSE, arguments.encoding, needs_labels=False)
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
