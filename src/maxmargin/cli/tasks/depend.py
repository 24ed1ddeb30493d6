"""Dependency trees of CoNLL-U files."""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..console import UsageError
from ..task import Task

if TYPE_CHECKING:
    from ...formats import ConlluTreebank
    from ...formats.opening import Source
    from ..evaluation import Evaluation
    from ..files import Model
    from ..training import Examples, Plan, Training

__all__ = ["TASK"]

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
        return Plan([], partial(_make, arguments))

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


TASK = DependTask()


def _make(arguments: argparse.Namespace) -> Training:
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
        **shared_parameters(arguments, TASK),
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

    check_kind(source, TASK, arguments.encoding)
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
