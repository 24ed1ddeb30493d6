"""Labels of the nodes of a tree."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..task import Task

if TYPE_CHECKING:
    from ...formats import LabelTrees
    from ...formats.label_trees import Node
    from ...formats.opening import Source
    from ..evaluation import Evaluation
    from ..files import Model
    from ..training import Examples, Training

__all__ = ["LABEL_TREE"]


class LabelTreeTask(Task):
    """Labels of the nodes of a tree."""

    name = "label-tree"
    reads = ("LABEL_TREES",)
    expects = "label trees, on each line number, head and label of a node and index:value pairs"
    description = (
        "Labels the nodes of a tree. Reads examples that all have the same tree, separated by "
        "empty lines; on each line the number of a node, that of its head (0: root; _ on all "
        "lines: the tree is learned), its label (_: unknown) and its features: 2 1 adult 3:0.5 "
        "7:1."
    )
    writes = "the file with the labels filled in"
    scores = (
        "fractions of nodes and of whole trees that are right, the accuracy of each node, and "
        "precision, recall and F1 of every label"
    )
    losses = ("hamming", "normalized_hamming", "zero_one")
    unit = "commented block"
    answers = ("k", "scores")
    options = ("fit_intercept",)

    def make(self, arguments: argparse.Namespace) -> Training:
        """A labeler, to be trained on label trees."""
        from ...estimators.trees.tree import TreeLabeler
        from ..files import open_input
        from ..training import Examples, Training, say, shared_parameters

        trees = _read(open_input(arguments.data), arguments)
        trees.check_known()
        if all(len({own[v] for own in trees.labels}) < 2 for v in range(len(trees.X))):
            raise ValueError(
                f"{trees.source}: every node has only one label, expected at least 2 different "
                "ones at some node"
            )
        n_features = trees.X[0].shape[1]
        say(arguments, f"{len(trees.nodes)} trees of {len(trees.X)} nodes, {n_features} features")
        estimator = TreeLabeler(
            tree=trees.edges,
            **shared_parameters(arguments, self),
        )
        return Training(estimator, Examples(trees.X, trees.labels, by_node=True))

    def load_schema(self, path: str, estimator: Any, extra: dict[str, Any]) -> None:
        """Only models without features of edges have files here."""
        if estimator.n_edge_features_in_:
            raise ValueError(f"{path}: the model needs features of edges; use it from Python")

    def predict(self, model: Model, source: Source, arguments: argparse.Namespace) -> str:
        """The file with its labels filled in."""
        from ..evaluation import answer_line, number_of_answers

        trees, X = _read_for(model, source, arguments)
        k = number_of_answers(arguments)
        if k is None:
            found = model.estimator.predict(X).tolist()
            return "".join(_written(own, ys) for own, ys in zip(trees.nodes, found, strict=True))
        ranked = model.estimator.predict_k(X, k)
        return "".join(
            f"{answer_line(number, score)}\n{_written(own, labels.tolist())}"
            for own, listed in zip(trees.nodes, ranked, strict=True)
            for number, (labels, score) in enumerate(listed, 1)
        )

    def evaluate(self, model: Model, arguments: argparse.Namespace) -> Evaluation:
        """Scores of labelled trees, and tables of them."""
        import numpy as np

        from ...metrics import label_scores, sequence_accuracy
        from ...metrics.tallies import tally_of_tags
        from ...utils.tables import named_values, percent
        from ..evaluation import Evaluation, as_json, confusions, count_unknown, error_lines
        from ..files import open_input

        trees, X = _read_for(model, open_input(arguments.data), arguments)
        trees.check_known()
        gold = trees.labels
        predicted = [[str(y) for y in ys] for ys in model.estimator.predict(X).tolist()]
        scores = label_scores(gold, predicted)
        flat_gold = [y for ys in gold for y in ys]
        of_nodes = np.mean(np.array(gold) == np.array(predicted), axis=0).tolist()
        known = {str(label) for labels in model.estimator.classes_ for label in labels.tolist()}
        report = {
            "trees": len(gold),
            "nodes": len(flat_gold),
            "accuracy": scores.accuracy,
            "tree_accuracy": sequence_accuracy(gold, predicted),
            "node_accuracies": of_nodes,
            "unknown_labels": count_unknown(flat_gold, known),
            "confusions": confusions(flat_gold, [y for ys in predicted for y in ys]),
            "labels": as_json(scores.per_label),
        }
        head = [
            ("trees", str(len(gold))),
            ("nodes right", f"{percent(scores.accuracy)} %"),
            ("trees all right", f"{percent(sequence_accuracy(gold, predicted))} %"),
        ]
        head += [(f"node {v} right", f"{percent(share)} %") for v, share in enumerate(of_nodes, 1)]
        text = f"{named_values(head)}\n\n{scores}"
        text = "\n".join([text, *error_lines(report)])
        tally = tally_of_tags(gold, predicted, set())._replace(unit="trees")
        return Evaluation(report, text, tally)

    def examples(self, model: Model, arguments: argparse.Namespace) -> Examples:
        """A labelled file for a model."""
        from ..files import open_input
        from ..training import Examples

        trees, X = _read_for(model, open_input(arguments.data), arguments)
        trees.check_known()
        return Examples(X, trees.labels, by_node=True)


LABEL_TREE = LabelTreeTask()


def _read(source: Source, arguments: argparse.Namespace) -> LabelTrees:
    """Read label trees."""
    from ...formats import read_label_trees
    from ..files import check_kind

    check_kind(source, LABEL_TREE, arguments.encoding)
    return read_label_trees(source, encoding=arguments.encoding)


def _read_for(
    model: Model, source: Source, arguments: argparse.Namespace
) -> tuple[LabelTrees, list[Any]]:
    """Read label trees for a trained model; their features come with as many columns as it has."""
    from ...utils.warn import warn_user

    trees, widths = _read(source, arguments), model.estimator.n_features_in_
    if len(trees.X) != len(widths):
        line = trees.nodes[0][0].line
        raise ValueError(f"{source}:{line}: {len(trees.X)} nodes, but the model has {len(widths)}")
    if trees.edges is not None:
        found, expected = (
            {frozenset(e) for e in es} for es in (trees.edges, model.estimator.tree_)
        )
        if found != expected:
            listed = ", ".join(f"{a + 1}-{b + 1}" for a, b in model.estimator.tree_)
            line = trees.nodes[0][0].line
            raise ValueError(
                f"{source}:{line}: the tree differs from that of the model, which has the edges "
                f"{listed:.60}; write _ for all heads to use the tree of the model"
            )
    unknown = {int(f) for x, n in zip(trees.X, widths, strict=True) for f in x.indices if f >= n}
    if unknown:
        warn_user(f"{source}: features unknown to the model are left out ({len(unknown)} of them)")
    X = []
    for matrix, width in zip(trees.X, widths, strict=True):
        if matrix.shape[1] < width:
            matrix.resize(matrix.shape[0], width)
        X.append(matrix[:, :width])
    return trees, X


def _written(nodes: list[Node], labels: list[Any]) -> str:
    """An example with other labels."""
    lines = (
        f"{number} {'_' if node.head is None else node.head} {label} {node.pairs}".rstrip()
        for number, (node, label) in enumerate(zip(nodes, labels, strict=True), 1)
    )
    return "".join(f"{line}\n" for line in lines) + "\n"
