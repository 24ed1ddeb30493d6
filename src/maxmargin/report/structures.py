"""What a report says of structured outputs: sequences, trees, parses, alignments, matchings."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np

from ..estimators.sequences.alignment_model import as_pairs
from ..estimators.trees.tree_labels import tree_inputs_at
from ..formats import ConlluTreebank, Tree, Treebank, as_tree
from ..metrics import are_chunk_tags, hamming, segments_to_tags, tags_to_segments
from ..metrics.sets import pair_counts
from ..metrics.tallies import (
    tally_of_alignments,
    tally_of_heads,
    tally_of_labels,
    tally_of_losses,
    tally_of_segments,
    tally_of_tags,
    tally_of_trees,
)
from ..metrics.trees import bracket_counts
from ..utils.types import Floats
from ..utils.validation import is_list
from .drawings import alignment, dependency_tree, parse_tree, parts_of_image, tagged_sentence
from .subjects import (
    Errors,
    Labels,
    Subject,
    confidences_of,
    count_labels,
    known_labels,
    score_gaps,
    sequence_at,
    words_of,
)

__all__ = [
    "describe_alignments",
    "describe_dependencies",
    "describe_graphs",
    "describe_homologues",
    "describe_losses",
    "describe_matchings",
    "describe_parses",
    "describe_positions",
    "describe_segments",
    "describe_sequences",
    "describe_trees",
]

RIGHT_CHUNK = "A chunk is right if its ends and its type are."


def describe_sequences(estimator: Any, X: Any, y: Any) -> Subject:
    """Labels of all tokens."""
    found = estimator.predict(X)
    true = known_labels(y)
    wrong = hamming(true, found)
    flat_true = [label for own in true for label in own]
    flat_found = [label for own in found for label in own]
    lengths = [len(own) for own in true]
    by_label = [count_labels("Labels", true, found, enumerate)]
    if are_chunk_tags({*flat_true, *flat_found}):
        spans = tags_to_segments(true), tags_to_segments(found)
        by_label.insert(0, count_labels("Chunks", *spans, note=RIGHT_CHUNK))
    confidences = confidences_of(estimator, X, flat_true, flat_found)
    starts = np.concatenate([[0], np.cumsum(lengths)])

    def margins() -> Any:
        known = set(estimator.classes_.tolist())
        return score_gaps(estimator, X, true, found, lambda own: {*own} <= known)

    def draw(i: int) -> tuple[str, str]:
        sure = None if confidences is None else confidences[0][starts[i] : starts[i + 1]]
        words = words_of(sequence_at(X, i))
        title = f"sequence {i}: {int(wrong[i])} of {lengths[i]} labels wrong"
        return title, tagged_sentence(words, true[i], found[i], sure)

    return Subject(
        tally_of_tags(true, found, {*flat_true, *flat_found}),
        Errors(wrong, lengths, margins),
        draw,
        by_label,
        Labels(flat_true, flat_found),
        confidences,
        example_at=lambda i: (sequence_at(X, i), true[i]),
    )


RIGHT_SEGMENT = "A segment is right if its ends and its label are."


def describe_segments(estimator: Any, X: Any, y: Any) -> Subject:
    """Segments, drawn as the tags that they are."""
    found = estimator.predict(X)
    true = [[tuple(segment) for segment in own] for own in y]
    errors = [len(set(a) ^ set(b)) for a, b in zip(true, found, strict=True)]
    sizes = [len(a) + len(b) for a, b in zip(true, found, strict=True)]

    def draw(i: int) -> tuple[str, str]:
        words = words_of(sequence_at(X, i))
        tags, guesses = segments_to_tags([true[i], found[i]], [len(words)] * 2)
        missed, extra = len(set(true[i]) - set(found[i])), len(set(found[i]) - set(true[i]))
        title = f"sequence {i}: {missed} segments missed, {extra} false"
        return title, tagged_sentence(words, tags, guesses)

    return Subject(
        tally_of_segments(true, found),
        Errors(errors, sizes),
        draw,
        [count_labels("Segments", true, found, note=RIGHT_SEGMENT)],
        example_at=lambda i: (sequence_at(X, i), true[i]),
    )


FORM = 1
RIGHT_ARC = "An arc is right if its head and its relation are."


def describe_dependencies(estimator: Any, X: Any, y: Any = None) -> Subject:
    """Heads of words, and labels of arcs if the parser has them."""
    is_labeled = estimator.classes_ is not None
    if y is None and isinstance(X, ConlluTreebank):
        y = X.labeled_heads() if is_labeled else X.heads()
    true, found = known_labels(y, "word"), [list(tree) for tree in estimator.predict(X)]
    if is_labeled and not all(is_list(arc) for tree in true for arc in tree):
        raise ValueError("the parser has labels; expected a pair (head, label) for each word of y")
    errors = [
        sum(a != b for a, b in zip(s, t, strict=True)) for s, t in zip(true, found, strict=True)
    ]

    def draw(i: int) -> tuple[str, str]:
        if isinstance(X, ConlluTreebank):
            words = [row[FORM] for row in X.rows[i]]
        else:
            words = words_of(X[i])
        title = f"sentence {i}: {errors[i]} of {len(words)} arcs wrong"
        if not is_labeled:
            return title, dependency_tree(words, true[i], found[i])
        (heads, labels), (guesses, guessed) = (
            zip(*tree, strict=True) for tree in (true[i], found[i])
        )
        return title, dependency_tree(words, heads, guesses, labels, guessed)

    labels, by_label = None, []
    if is_labeled:
        of_true, of_found = (
            [str(label) for tree in trees for _, label in tree] for trees in (true, found)
        )
        labels = Labels(of_true, of_found, "Labels of words, whether their heads are right or not.")
        by_label = [count_labels("Arcs by relation", true, found, _arcs, RIGHT_ARC)]

    def margins() -> Floats:
        known = set() if labels is None else set(estimator.classes_.tolist())

        def is_known(tree: Any) -> bool:
            return labels is None or {label for _, label in tree} <= known

        return score_gaps(estimator, X, true, found, is_known)

    return Subject(
        tally_of_heads(true, found),
        Errors(errors, [len(tree) for tree in true], margins),
        draw,
        by_label,
        labels,
        confidences=_dependencies_confidences(estimator, X, true, found),
        example_at=lambda i: (sequence_at(X, i), true[i]),
    )


def _arcs(tree: Any) -> Iterator[tuple[int, Any, str]]:
    """Words with their heads and relations."""
    return ((t, head, str(label)) for t, (head, label) in enumerate(tree))


def _dependencies_confidences(
    estimator: Any, X: Any, true: list[Any], found: list[Any]
) -> tuple[Floats, Floats] | None:
    """Probabilities of the arcs found, and whether they are right."""
    if not hasattr(estimator, "calibration_"):
        return None
    labels = [] if estimator.classes_ is None else estimator.classes_.tolist()
    sure = [
        table[(t, arc[0], labels.index(arc[1])) if labels else (t, arc)]
        for table, tree in zip(estimator.predict_proba(X), found, strict=True)
        for t, arc in enumerate(tree)
    ]
    right = [a == b for s, t in zip(true, found, strict=True) for a, b in zip(s, t, strict=True)]
    return np.array(sure), np.array(right, np.float64)


def describe_parses(estimator: Any, X: Any, y: Any = None) -> Subject:
    """Constituents of sentences; X may be the true trees themselves."""
    given = X if y is None else y
    true = [as_tree(tree) for tree in (given.trees if isinstance(given, Treebank) else given)]
    inputs = true if y is None else X
    found = estimator.predict(inputs)
    counts, _ = bracket_counts(true, found)
    sizes = counts[:, 0] + counts[:, 1]
    errors = sizes - 2 * counts[:, 2]

    def draw(i: int) -> tuple[str, str]:
        missed, extra = counts[i, 0] - counts[i, 2], counts[i, 1] - counts[i, 2]
        title = f"sentence {i}: {missed} constituents missed, {extra} false"
        return title, parse_tree(found[i], true[i])

    return Subject(
        tally_of_trees(true, found),
        Errors(errors, sizes, lambda: score_gaps(estimator, inputs, true, found)),
        draw,
        confidences=_parses_confidences(estimator, inputs, true, found),
        example_at=lambda i: (inputs[i], true[i]),
    )


def _parses_confidences(
    estimator: Any, X: Any, true: list[Tree], found: list[Any]
) -> tuple[Floats, Floats] | None:
    """Probabilities of the constituents found, and whether they are right."""
    if not hasattr(estimator, "calibration_"):
        return None
    pairs = [
        (probabilities.get(span, 0.0), span in set(tree.spans()))
        for probabilities, tree, own in zip(estimator.predict_proba(X), true, found, strict=True)
        for span in dict.fromkeys(own.spans())
        if probabilities  # none of a sentence that the grammar does not derive
    ]
    if not pairs:
        return None
    sure, right = np.array(pairs, np.float64).T
    return sure, right


def describe_trees(estimator: Any, X: Any, y: Any) -> Subject:
    """Labels of nodes."""
    found = estimator.predict(X)
    true, guesses = known_labels(y, "node"), found.tolist()
    wrong = hamming(true, guesses)

    def draw(i: int) -> tuple[str, str]:
        nodes = [f"node {v}" for v in range(len(true[i]))]
        title = f"tree {i}: {int(wrong[i])} of {len(nodes)} labels wrong"
        return title, tagged_sentence(nodes, true[i], guesses[i])

    flat_true, flat_found = (
        [name for own in ys for (name,) in _of_nodes(own)] for ys in (true, guesses)
    )
    scores = tally_of_tags(true, guesses, set())
    return Subject(
        scores._replace(unit="trees"),
        Errors(wrong, [len(own) for own in true]),
        draw,
        [count_labels("Labels", true, guesses, _of_nodes)],
        Labels(flat_true, flat_found),
        _trees_confidences(estimator, X, true, found),
        example_at=lambda i: (tree_inputs_at(X, np.array([i])), true[i]),
    )


def describe_graphs(estimator: Any, X: Any, y: Any) -> Subject:
    """Labels of the nodes of graphs."""
    true = known_labels([np.ravel(own).tolist() for own in y], "node")
    found = [own.tolist() for own in estimator.predict(X)]
    wrong = hamming(true, found)

    def draw(i: int) -> tuple[str, str]:
        nodes = [f"node {v}" for v in range(len(true[i]))]
        title = f"graph {i}: {int(wrong[i])} of {len(nodes)} labels wrong"
        return title, tagged_sentence(nodes, true[i], found[i])

    return Subject(
        tally_of_tags(true, found, set())._replace(unit="graphs"),
        Errors(wrong, [len(own) for own in true]),
        draw,
        [count_labels("Labels", true, found, enumerate)],
        Labels([label for own in true for label in own], [label for own in found for label in own]),
        example_at=lambda i: (X[i], true[i]),
    )


def _of_nodes(labels: list[Any]) -> Iterator[tuple[str]]:
    """Labels with the numbers of their nodes."""
    return ((f"{v}: {label}",) for v, label in enumerate(labels))


def _trees_confidences(
    estimator: Any, X: Any, true: list[Any], found: Any
) -> tuple[Floats, Floats] | None:
    """Probabilities of the labels found, and whether they are right."""
    if not hasattr(estimator, "calibration_"):
        return None
    sure, right = [], []
    for v, table in enumerate(estimator.predict_proba(X)):
        labels = estimator.classes_[v].tolist()
        for i, label in enumerate(found[:, v].tolist()):
            sure.append(table[i, labels.index(label)])
            right.append(label == true[i][v])
    return np.array(sure), np.array(right, np.float64)


def describe_positions(estimator: Any, X: Any, y: Any) -> Subject:
    """Parts that are far from where they should be."""
    true, found = np.asarray(y), estimator.predict(X)
    far = np.sqrt(((true - found) ** 2).sum(axis=2)).mean(axis=1)

    def draw(i: int) -> tuple[str, str]:
        return f"image {i}: parts {far[i]:.2f} pixels off, on average", parts_of_image(
            X[i], true[i], found[i]
        )

    tally = tally_of_losses(far)
    scores = {"mean_distance": tally.scores["mean_loss"]}
    return Subject(tally._replace(unit="images", scores=scores), Errors(far), draw)


LONGEST_SEQUENCE = 500  # letters of a sequence that are shown


def describe_alignments(estimator: Any, X: Any, y: Any) -> Subject:
    """Aligned pairs of letters."""
    found = estimator.predict(X)
    true = [as_pairs(own, x[0], x[1], i) for i, (x, own) in enumerate(zip(X, y, strict=True))]
    n_true, _, n_right = pair_counts(true, found).T
    missed = n_true - n_right

    def draw(i: int) -> tuple[str, str]:
        title = f"pair {i}: {missed[i]:.0f} of {n_true[i]:.0f} pairs missed"
        return title, alignment(X[i][0], X[i][1], found[i], true[i])

    return Subject(
        tally_of_alignments(true, found),
        Errors(missed, n_true),
        draw,
        example_at=lambda i: (X[i], true[i]),
    )


def describe_homologues(estimator: Any, X: Any, y: Any) -> Subject:
    """Which candidates are the homologues; y may also have their alignments."""
    found = estimator.predict(X)
    true = [int(own[0] if isinstance(own, (tuple, list)) else own) for own in y]
    numbers = np.asarray(found).tolist()

    def draw(i: int) -> tuple[str, str]:
        native, candidates = X[i]
        rows = [
            ("native", native),
            ("found", candidates[numbers[i]]),
            ("true", candidates[true[i]]),
        ]
        lines = "\n".join(
            f"{name:7}{''.join(map(str, row)):.{LONGEST_SEQUENCE}}" for name, row in rows
        )
        title = f"example {i}: candidate {numbers[i]}, but it is {true[i]}"
        return title, f'<div class="pair wrapped">{escape(lines)}</div>'

    wrong = [float(a != b) for a, b in zip(true, numbers, strict=True)]
    return Subject(
        tally_of_labels(true, numbers), Errors(wrong), draw, example_at=lambda i: (X[i], true[i])
    )


def describe_matchings(estimator: Any, X: Any, y: Any) -> Subject:
    """Partners of the items of the first set."""
    for i, (x, own) in enumerate(zip(X, y, strict=True)):
        estimator._matcher.check_output(np.asarray(x), own, f"example {i}: ")
    true = [np.asarray(own).tolist() for own in y]
    found = [np.asarray(own).tolist() for own in estimator.predict(X)]
    wrong = hamming(true, found)

    def draw(i: int) -> tuple[str, str]:
        items = [f"item {k}" for k in range(len(true[i]))]
        title = f"example {i}: {int(wrong[i])} of {len(items)} partners wrong"
        return title, tagged_sentence(items, true[i], found[i])

    scores = tally_of_tags(true, found, set())
    return Subject(
        scores._replace(unit="matchings"),
        Errors(wrong, [len(own) for own in true]),
        draw,
        example_at=lambda i: (X[i], true[i]),
    )


LONGEST_OUTPUT = 2000


def describe_losses(estimator: Any, X: Any, y: Any) -> Subject:
    """Losses by the estimator's own score, example by example."""
    losses = np.array([-estimator.score([x], [output]) for x, output in zip(X, y, strict=True)])
    found = estimator.predict(X)

    def margins() -> Any:
        return score_gaps(estimator, X, y, found)

    def draw(i: int) -> tuple[str, str]:
        shown = (
            f"{name}: {value!r:.{LONGEST_OUTPUT}}"
            for name, value in (("true", y[i]), ("found", found[i]))
        )
        return f"example {i}: loss {losses[i]:.4g}", f"<pre>{escape(chr(10).join(shown))}</pre>"

    return Subject(tally_of_losses(losses), Errors(losses, None, margins), draw)
