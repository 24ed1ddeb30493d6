"""Every structure that can be learned, one entry each: `test_every_structure.py` runs on all.

To register a structure, write a brute-force twin, a function that draws a small problem with it,
and an entry here.
"""

import functools
from collections import ChainMap
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from brute_alignment import alignment_case, decode_alignments, homologue_case
from brute_classes import FORMS, class_feature_case, python_case
from brute_dependency import decode_trees, rank_trees, tree_case
from brute_general import (
    candidate_case,
    decode_candidates,
    decode_joint_kernel,
    decode_slots,
    factor_case,
    joint_kernel_case,
    matching_case,
    program_case,
)
from brute_grammar import grammar_case
from brute_graph import decode_graphs, graph_case
from brute_higher_order import decode_higher_order, history_case, rank_histories
from brute_measures import (
    decode_labels_of_sample,
    decode_ranking_of_sample,
    measure_case,
)
from brute_multilabel import decode_label_sets, multilabel_case
from brute_ordinal import threshold_case
from brute_ranking import ranking_case
from brute_segments import decode_segments, segment_case
from brute_trees import (
    decode_labels,
    decode_positions,
    grid_case,
    label_case,
    rank_labels,
    rank_positions,
)
from cases import (
    CHAIN_LOSSES,
    CLASS_LOSSES,
    Case,
    chain_case,
    decode_chains,
    decode_classes,
    multiclass_case,
)

NODE_LOSSES = ("hamming", "normalized_hamming", "zero_one")


def always(loss, rescaling, sqrt_loss):
    return True


def never(loss, rescaling, sqrt_loss):
    return False


def margin_only(rescaling, sqrt_loss):
    return (rescaling, sqrt_loss) == ("margin", False)


def plain_losses(rescaling, sqrt_loss):
    return not sqrt_loss


def where_losses_add_up(loss, rescaling, sqrt_loss):
    return loss == "zero_one" or rescaling == "none" or (rescaling, sqrt_loss) == ("margin", False)


def where_losses_are_sums(loss, rescaling, sqrt_loss):
    return loss != "zero_one" and (rescaling, sqrt_loss) == ("margin", False)


class Structure(NamedTuple):
    """What there is to be tested of one structure."""

    #: ``make(rng, loss=..., **options)`` draws a small problem and its twin.
    make: Callable[..., Case]
    losses: tuple[str, ...]
    #: Draws options of ``make``.
    options: st.SearchStrategy[dict[str, Any]]
    #: Options of the problems that all solvers are trained on.
    training: tuple[dict[str, Any], ...] = ({},)
    #: Multiplies C in training: small where joint features are long.
    scale: float = 1.0
    #: Whether matrices may come in any of `cases.LAYOUTS`, by the option "layout".
    layouts: bool = False
    #: Whether rows are given in parts, too.
    parts: bool = False
    #: ``finds(rescaling, sqrt_loss)`` tells what the oracle searches for.
    finds: Callable[[str, bool], bool] = lambda rescaling, sqrt_loss: True
    #: What it says of all else.
    not_found: str = ""
    #: ``k_best(loss, rescaling, sqrt_loss)`` tells for what the k best outputs are found.
    k_best: Callable[[str, str, bool], bool] = always
    #: What `Problem.k_best` says where they are not.
    refusal: str = ""
    #: ``decode(case, w)`` has the best output of each example, in the form of the twin.
    decode: Callable[[Case, np.ndarray], list] | None = None
    #: ``rank(case, w, k)`` lists the k best outputs of each example with their scores.
    rank: Callable[[Case, np.ndarray, int], list] | None = None


def drawn(*groups, **strategies):
    """A strategy for options, from groups of strategies by name."""
    return st.fixed_dictionaries(dict(ChainMap(strategies, *groups)))


def flags(*names):
    return {name: st.booleans() for name in names}


def sizes(**ranges):
    return {name: st.integers(*bounds) for name, bounds in ranges.items()}


def lengths(longest, most):
    return {"lengths": st.lists(st.integers(1, longest), min_size=1, max_size=most)}


MATRICES = {"layout": st.sampled_from(["dense", "csr", "integers"])}
QUERIES = {
    "sizes": st.lists(st.integers(0, 4), min_size=1, max_size=3),
    "kind": st.sampled_from(["grades", "real", "repeated"]),
}
ALIGNMENTS = flags("local", "affine", "symmetric", "own_ends")
GLOBAL = {"local": False, "own_ends": False}
TREES = drawn(lengths(4, 2), flags("single_root")) | drawn(
    lengths(3, 2), flags("single_root"), n_labels=st.just(2)
)

STRUCTURES = {
    "multiclass": Structure(
        multiclass_case,
        CLASS_LOSSES,
        drawn(sizes(n=(1, 6), n_inputs=(1, 5), K=(2, 5)), flags("fit_intercept"), MATRICES),
        training=({}, {"fit_intercept": True, "K": 4}, {"layout": "csr", "n": 8}, {"n": 1}),
        layouts=True,
        decode=decode_classes,
    ),
    "classes with costs of their own": Structure(
        multiclass_case,
        ("own costs",),
        drawn(sizes(n=(1, 6), n_inputs=(1, 5), K=(2, 5)), flags("fit_intercept")),
        training=({}, {"layout": "csr", "n": 8}, {"K": 2, "n": 8}),
        decode=decode_classes,
    ),
    "chain": Structure(
        chain_case,
        CHAIN_LOSSES,
        drawn(
            sizes(n_inputs=(1, 4)),
            lengths(4, 3),
            flags("fit_intercept", "boundary_weights", "constrained"),
            MATRICES,
            K=st.sampled_from([2, 3, 3, 1]),
        ),
        training=(
            {},
            {"fit_intercept": True, "boundary_weights": True},
            {"constrained": True, "lengths": (3, 3, 2, 1, 3)},
            {"layout": "csr", "K": 2, "lengths": (4, 1, 1, 3, 4)},
        ),
        layouts=True,
        parts=True,
        decode=decode_chains,
    ),
    "higher-order chain": Structure(
        history_case,
        (*CHAIN_LOSSES, "costs"),
        drawn(
            sizes(n_inputs=(1, 3), order=(1, 3), emission_order=(0, 1), n_extra=(0, 2)),
            lengths(5, 3),
            flags("fit_intercept", "boundary_weights", "constrained"),
            MATRICES,
            K=st.sampled_from([2, 3, 2, 1]),
            eta=st.sampled_from([1.0, 0.3]),
            tuples=st.sampled_from(["seen", "allowed"]),
        ),
        training=(
            {},
            {"order": 3, "boundary_weights": True, "n_extra": 1, "eta": 0.5},
            {"emission_order": 1, "fit_intercept": True, "tuples": "allowed", "layout": "csr"},
        ),
        layouts=True,
        parts=True,
        k_best=lambda loss, rescaling, sqrt_loss: (
            loss != "costs" or where_losses_add_up(loss, rescaling, sqrt_loss)
        ),
        refusal="chains with costs",
        decode=decode_higher_order,
        rank=rank_histories,
    ),
    "chain with costs": Structure(
        functools.partial(chain_case, costs="random"),
        ("hamming",),
        drawn(
            lengths(4, 3),
            flags("own_rows", "boundary_weights", "constrained"),
            costs=st.sampled_from(["random", "whole"]),
            K=st.sampled_from([2, 3]),
        ),
        training=({}, {"own_rows": True, "constrained": True}),
        parts=True,
        k_best=where_losses_add_up,
        refusal="chains with costs",
        decode=decode_chains,
    ),
    "chain with free labels": Structure(
        functools.partial(chain_case, costs="free"),
        ("normalized_hamming", "zero_one"),
        drawn(lengths(4, 3), flags("own_rows", "constrained"), K=st.sampled_from([2, 3])),
        training=({},),
        parts=True,
        k_best=where_losses_add_up,
        refusal="chains with costs",
        decode=decode_chains,
    ),
    "class features": Structure(
        class_feature_case,
        CLASS_LOSSES,
        drawn(
            sizes(n=(1, 5), n_inputs=(1, 4), K=(2, 5), m=(1, 4)), flags("fit_intercept"), MATRICES
        ),
        training=({}, {"n": 8, "fit_intercept": True}),
        layouts=True,
        parts=True,
    ),
    "grammar": Structure(
        grammar_case,
        ("f1", "zero_one"),
        drawn(
            lengths(5, 4),
            sizes(vertical=(1, 3), n_views=(0, 2)),
            flags("words"),
            horizontal=st.sampled_from([None, 0, 1, 2]),
        ),
        training=({"lengths": (4, 3, 2, 4), "horizontal": 0, "n_views": 1},),
    ),
    "projective tree": Structure(
        tree_case,
        NODE_LOSSES,
        TREES,
        training=({"lengths": (3, 2, 4)}, {"n_labels": 2}),
        scale=0.1,
        k_best=where_losses_add_up,
        refusal="need a loss that decomposes over arcs",
        decode=decode_trees,
        rank=rank_trees,
    ),
    "any tree": Structure(
        functools.partial(tree_case, projective=False),
        NODE_LOSSES,
        TREES,
        training=({"lengths": (3, 3, 2)}, {"n_labels": 2}),
        scale=0.1,
        k_best=where_losses_add_up,
        refusal="need a loss that decomposes over arcs",
        decode=decode_trees,
        rank=rank_trees,
    ),
    "alignment": Structure(
        alignment_case,
        ("pairs", "residues", "zero_one"),
        drawn(sizes(n=(1, 3)), ALIGNMENTS),
        training=({"n": 4, "longest": 3}, {"n": 4, "longest": 3, **GLOBAL}),
        scale=2.0,
        decode=decode_alignments,
    ),
    "homologue": Structure(
        homologue_case,
        ("zero_one",),
        drawn(sizes(n=(1, 3)), ALIGNMENTS),
        training=({"n": 5}, {"n": 5, **GLOBAL}),
        scale=2.0,
    ),
    "label tree": Structure(
        label_case,
        NODE_LOSSES,
        drawn(sizes(V=(1, 4), extra_edge_inputs=(0, 1))),
        k_best=where_losses_add_up,
        refusal="losses that add up over nodes",
        decode=decode_labels,
        rank=rank_labels,
    ),
    "label tree with costs": Structure(
        functools.partial(label_case, costs="random"),
        ("hamming",),
        drawn(sizes(V=(1, 4)), flags("own_rows")),
        k_best=where_losses_add_up,
        refusal="losses that add up over nodes",
    ),
    "label tree with free labels": Structure(
        functools.partial(label_case, costs="free"),
        ("normalized_hamming", "zero_one"),
        drawn(sizes(V=(1, 4)), flags("own_rows")),
        k_best=where_losses_are_sums,
        refusal="losses that add up over nodes",
    ),
    "parts in images": Structure(
        grid_case,
        ("deviation", *NODE_LOSSES),
        drawn(sizes(V=(1, 3), channels=(1, 2)), patch=st.sampled_from([1, 3])),
        k_best=where_losses_add_up,
        refusal="losses that add up over nodes",
        decode=decode_positions,
        rank=rank_positions,
    ),
    "parts in images known in part": Structure(
        grid_case,
        ("deviation", *NODE_LOSSES),
        drawn(sizes(V=(1, 3)), in_part=st.just(True)),
        training=({"in_part": True},),
        k_best=where_losses_are_sums,
        refusal="losses that add up over nodes",
    ),
    "sets of labels": Structure(
        multilabel_case,
        ("hamming", "f1", "zero_one"),
        drawn(
            sizes(n=(1, 4), n_inputs=(1, 3), n_labels=(1, 6)),
            flags("fit_intercept"),
            MATRICES,
            kind=st.sampled_from(["none", "tree", "forest", "cycle"]),
        ),
        training=(
            {"kind": "none", "fit_intercept": True},
            {"kind": "tree"},
            {"kind": "cycle", "n_labels": 3, "layout": "csr"},
        ),
        layouts=True,
        parts=True,
        k_best=never,
        refusal="MultilabelProblem has no search for the k best outputs",
        decode=decode_label_sets,
    ),
    "sets of labels with costs": Structure(
        functools.partial(multilabel_case, costs="free"),
        ("hamming",),
        drawn(
            sizes(n=(1, 4), n_inputs=(1, 3), n_labels=(1, 6)),
            kind=st.sampled_from(["none", "tree", "forest", "cycle"]),
            costs=st.sampled_from(["random", "whole", "free"]),
        ),
        training=({"kind": "none", "costs": "random"}, {"kind": "tree"}),
        parts=True,
        k_best=never,
        refusal="MultilabelProblem has no search for the k best outputs",
    ),
    "swapped pairs": Structure(
        ranking_case,
        ("swaps", "normalized_swaps"),
        drawn(QUERIES, sizes(n_inputs=(1, 4)), MATRICES),
        training=({}, {"kind": "repeated", "sizes": (4, 3, 4)}, {"layout": "csr", "kind": "real"}),
        k_best=never,
        refusal="RankingProblem has no search for the k best outputs",
    ),
    "weighted pairs": Structure(
        functools.partial(ranking_case, weighted=True),
        ("swaps", "normalized_swaps"),
        drawn(
            sizes(n_inputs=(1, 4)),
            MATRICES,
            sizes=st.tuples(st.integers(1, 5)),
            kind=st.sampled_from(["grades", "real", "repeated"]),
        ),
        training=({"sizes": (5,)}, {"sizes": (4,), "layout": "csr", "kind": "real"}),
        finds=margin_only,
        not_found="weights of documents need rescaling='margin' and sqrt_loss=False",
        k_best=never,
        refusal="RankingProblem has no search for the k best outputs",
    ),
    "thresholds": Structure(
        threshold_case,
        ("absolute",),
        drawn(sizes(n=(1, 5), n_inputs=(1, 3), n_grades=(2, 6)), MATRICES),
        training=({}, {"n_grades": 2, "layout": "csr"}, {"n": 3, "n_grades": 6}),
        parts=True,
        k_best=never,
        refusal="ThresholdProblem has no search for the k best outputs",
    ),
    "ranking": Structure(
        ranking_case,
        ("ndcg", "average_precision"),
        drawn(QUERIES, sizes(n_inputs=(1, 4)), MATRICES, k=st.sampled_from([None, 1, 2, 3])),
        training=({"sizes": (5, 2, 4)}, {"kind": "real", "k": 2}, {"layout": "csr"}),
        finds=margin_only,
        not_found="needs rescaling='margin' with slack='l1'",
        k_best=never,
        refusal="RankingProblem has no search for the k best outputs",
    ),
    "labels of a sample": Structure(
        measure_case,
        # The others are these with other parameters: `test_measures.py` has them all.
        ("error", "fbeta", "precision_at_k", "recall_at_precision"),
        drawn(
            sizes(n=(2, 7), n_positive=(1, 5), n_inputs=(1, 3), k=(1, 5)),
            flags("fit_intercept"),
            MATRICES,
            beta=st.sampled_from([0.3, 1.0, 2.0]),
            floor=st.sampled_from([0.2, 0.5, 0.6, 1.0]),
        ),
        training=({}, {"n": 7, "fit_intercept": True}),
        scale=20.0,
        layouts=True,
        k_best=never,
        refusal="MeasureProblem has no search for the k best outputs",
        decode=decode_labels_of_sample,
    ),
    "ranking of a sample": Structure(
        measure_case,
        ("roc_auc", "average_precision"),
        drawn(sizes(n=(2, 6), n_positive=(1, 4), n_inputs=(1, 3)), MATRICES),
        training=({}, {"n": 5, "n_positive": 2}),
        scale=20.0,
        layouts=True,
        finds=lambda rescaling, sqrt_loss: (
            rescaling == "none" or (rescaling == "margin" and not sqrt_loss)
        ),
        not_found="needs rescaling='margin' with slack='l1'",
        k_best=never,
        refusal="MeasureProblem has no search for the k best outputs",
        decode=decode_ranking_of_sample,
    ),
    "ranking of a sample at a recall": Structure(
        measure_case,
        ("precision_at_recall",),
        drawn(
            sizes(n=(2, 6), n_positive=(1, 4), n_inputs=(1, 3)),
            MATRICES,
            floor=st.sampled_from([0.2, 0.5, 0.6, 1.0]),
        ),
        training=({}, {"n": 5, "n_positive": 2}),
        scale=20.0,
        k_best=never,
        refusal="MeasureProblem has no search for the k best outputs",
        decode=decode_ranking_of_sample,
    ),
    "segments": Structure(
        segment_case,
        ("hamming", "segments", "f1", "zero_one"),
        drawn(
            lengths(5, 3),
            sizes(n_inputs=(1, 3)),
            flags("fit_intercept", "last_tokens"),
            MATRICES,
            longest=st.sampled_from([(2, 3), (1,), (4,), (3, 1), (1, 2, 5)]),
        ),
        training=(
            {},
            {"layout": "csr", "fit_intercept": True, "longest": (4,), "last_tokens": False},
        ),
        layouts=True,
        parts=True,
        k_best=never,
        refusal="SegmentProblem has no search for the k best outputs",
        decode=decode_segments,
    ),
    "candidates": Structure(
        candidate_case,
        CLASS_LOSSES,
        drawn(sizes(n=(1, 4), most=(1, 5), n_inputs=(1, 3)), flags("sparse")),
        training=({}, {"sparse": True, "most": 6}),
        decode=decode_candidates,
    ),
    "matchings": Structure(
        matching_case,
        NODE_LOSSES,
        drawn(
            sizes(n_inputs=(1, 3)),
            flags("allow_unmatched", "fit_intercept"),
            sizes=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=3),
        ),
        training=({}, {"allow_unmatched": True, "fit_intercept": True}),
        scale=0.3,
        k_best=never,
        refusal="AssignmentProblem has no search for the k best outputs",
        decode=decode_slots,
    ),
    "0/1 programs": Structure(
        program_case,
        ("hamming", "zero_one"),
        drawn(sizes(n=(1, 2), n_variables=(1, 4), n_inputs=(1, 3)), flags("sparse")),
        training=({"n": 2, "n_variables": 3},),
        k_best=never,
        refusal="LinearProgramProblem has no search for the k best outputs",
        decode=decode_slots,
    ),
    "trees of factors": Structure(
        factor_case,
        ("hamming", "zero_one"),
        drawn(sizes(n=(1, 3), n_variables=(1, 4), most=(1, 3), n_inputs=(1, 3)), flags("forest")),
        training=({}, {"n_variables": 4, "most": 2, "forest": True}),
        k_best=never,
        refusal="FactorTree has no search for the k best outputs",
        decode=decode_slots,
    ),
    "graphs": Structure(
        graph_case,
        ("hamming", "normalized_hamming"),
        drawn(
            sizes(n_inputs=(1, 2), n_edge_inputs=(0, 1), K=(2, 3)),
            flags("costs"),
            sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
            pairwise=st.sampled_from(["full", "symmetric", "potts", "directed"]),
            kind=st.sampled_from(["any", "forest", "ring"]),
            inference=st.sampled_from(["exact", "auto"]),
        ),
        training=({}, {"pairwise": "potts", "K": 3, "costs": True}, {"pairwise": "symmetric"}),
        scale=0.3,
        finds=margin_only,
        not_found="can be found for rescaling='margin' and sqrt_loss=False only",
        k_best=never,
        refusal="GraphProblem has no search for the k best outputs",
        decode=decode_graphs,
    ),
    "joint kernel": Structure(
        joint_kernel_case,
        ("hamming", "zero_one"),
        drawn(lengths(2, 3), sizes(n_labels=(1, 3), n_inputs=(1, 2))),
        training=({}, {"lengths": (1, 2), "n_labels": 3}),
        decode=decode_joint_kernel,
    ),
    "plain Python": Structure(
        python_case,
        CLASS_LOSSES,
        drawn(sizes(n=(1, 5), n_inputs=(1, 4), K=(2, 4)), form=st.sampled_from(FORMS)),
        training=tuple({"form": form} for form in FORMS),
        finds=plain_losses,
        not_found="no oracle for the square root of the loss",
        k_best=never,
        refusal="PythonClasses has no search for the k best outputs",
    ),
}

#: Every structure with every loss it has.
KINDS = [(name, loss) for name, entry in STRUCTURES.items() for loss in entry.losses]
KIND_IDS = [f"{name}-{loss}" for name, loss in KINDS]


@functools.cache
def small_case(name, loss, number):
    """One of the problems that solvers are trained on; whoever asks gets the same."""
    rng = np.random.default_rng([number, len(loss)])
    return STRUCTURES[name].make(rng, loss=loss, **STRUCTURES[name].training[number])
