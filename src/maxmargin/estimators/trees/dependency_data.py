"""What a dependency parser is given and what it explains: sentences, trees, arcs known in part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from ...features.containers import as_list, as_tuples
from ...formats import ConlluTreebank
from ...problems.dependency.features import (
    DEFAULT_TEMPLATES,
    ArcKeys,
    ArcTemplates,
    TokenFields,
    arc_feature_names,
)
from ...problems.dependency.kernels import most_arc_features
from ...problems.dependency.partial import ANY, ArcChoices
from ...problems.dependency.problem import check_trees
from ...problems.dependency.scores import arc_features
from ...problems.dependency.trees import crossing_trees, projectivised
from ...utils.schema import Count, Labels
from ...utils.types import Bools, Floats, Ints, Ints32
from ...utils.validation import check_choice, is_list
from ...utils.warn import warn_user
from ..abilities.explanation import (
    Evidence,
    Explanation,
    Part,
    Places,
    best_other,
    differing_parts,
    no_decisions,
)
from ..abilities.partial_labels import choice_of, has_unknown
from ..examples import FlatLabels, Wording, flatten_labels, is_empty, is_hashable

__all__ = [
    "WORDING",
    "DependencyState",
    "allowed_arcs",
    "arc_choices",
    "as_templates",
    "check_on_crossing",
    "explain_arcs",
    "fields_between",
    "flat_arcs",
    "flat_trees",
    "is_partial",
    "labels_of_arcs",
    "projective_heads",
    "sentences_of",
    "some_trees",
    "token_fields",
    "trees_of",
]

WORDING = Wording("sentence", "word", "head")
MOST_HEAD = 2**31 - 1  # that a number of 32 bits can be
ON_CROSSING = ("keep", "raise", "drop", "repair")


class DependencyState(NamedTuple):
    """What a file keeps of a parser."""

    labels: Labels | None
    hash_bits: Count
    templates: ArcTemplates
    projective: bool
    single_root: bool
    sides_apart: bool = False  # the first files did not say


class FlatTrees(NamedTuple):
    """Heads, and labels if there are any, of all tokens of all sentences."""

    heads: Ints32
    labels: FlatLabels | None


def as_templates(given: Any) -> ArcTemplates:
    """Templates of arcs by the parameter."""
    if given is None:
        return ArcTemplates(*DEFAULT_TEMPLATES)
    if not is_list(given) or len(given) != len(ArcTemplates._fields):
        raise ValueError(
            f"features must be ArcTemplates, with {', '.join(ArcTemplates._fields)}, got "
            f"{given!r:.60}"
        )
    return ArcTemplates(*given)


def token_fields(X: Any) -> TokenFields:
    """Check sentences and hash their tokens."""
    sentences = sentences_of(X)
    return fields_between(sentences, 0, len(sentences), {})


def fields_between(
    sentences: list[Any], first: int, end: int, known: dict[str, int]
) -> TokenFields:
    """Check the tokens of some sentences and hash them; see `TokenFields.of`."""
    own = sentences[first:end]
    if not _are_tokens(list(chain.from_iterable(own))):
        for i, sentence in enumerate(own, first):
            for t, token in enumerate(sentence):
                _check_token(i, t, token)
    return TokenFields.of(own, known)


def _are_tokens(tokens: list[Any]) -> bool:
    """Whether these are plain tokens, by looks at all of them in a row."""
    return (
        set(map(type, tokens)) <= {tuple, list}
        and set(map(len, tokens)) <= {2, 3}
        and set(map(type, chain.from_iterable(tokens))) <= {str}
    )


def sentences_of(X: Any) -> list[Any]:
    """The sentences, whose tokens are still to be checked."""
    sentences = X.tokens() if isinstance(X, ConlluTreebank) else as_list(X)
    if isinstance(sentences, (str, bytes)) or not hasattr(sentences, "__len__"):
        raise ValueError(f"X must be a list of sentences, got {type(X).__name__}")
    if len(sentences) == 0:
        raise ValueError("expected at least one sentence, found none")
    sentences = [as_tuples(sentence) for sentence in sentences]
    for i, sentence in enumerate(sentences):
        if not is_list(sentence):
            raise ValueError(f"sentence {i} is {sentence!r:.40}, expected a list of tokens")
        if len(sentence) == 0:
            raise ValueError(f"sentence {i} is empty, expected at least one token")
    return sentences


def _check_token(i: int, t: int, token: Any) -> None:
    """Refuse what is no (word, tag) or (word, tag, fine tag)."""
    if not (
        isinstance(token, (tuple, list))
        and len(token) in (2, 3)
        and all(isinstance(field, str) for field in token)
    ):
        raise ValueError(
            f"sentence {i}, word {t}: {token!r:.60}, expected (word, tag) or "
            "(word, tag, fine tag), all strings"
        )


def flat_arcs(y: Any, bounds: Ints) -> FlatLabels:
    """What is given for all tokens, checked against the lengths of the sentences."""
    return flatten_labels(y, bounds - np.arange(len(bounds)), WORDING)


def is_partial(arcs: FlatLabels, labeled: bool) -> bool:
    """Whether some heads or labels are not known."""
    pairs = (arc for arc in arcs.values if labeled and isinstance(arc, (tuple, list)))
    return has_unknown(arcs) or any(part is None for pair in pairs for part in pair)


def trees_of(X: Any, y: Any, labeled: bool) -> Any:
    """The trees given, or those of the treebank."""
    if y is not None:
        return y
    if not isinstance(X, ConlluTreebank):
        raise ValueError(
            "y is missing: give the heads of each sentence's tokens, or a ConlluTreebank"
        )
    return X.labeled_heads() if labeled else X.heads()


def flat_trees(flat: FlatLabels, labeled: bool) -> FlatTrees:
    """Heads and labels of trees that are known."""
    labels: list[Any] = []
    heads = np.empty(len(flat.values), dtype=np.int32)
    expected = "a pair (head, label)" if labeled else "the number of its head"
    for token, arc in enumerate(flat.values):
        head = arc
        if labeled:
            is_pair = isinstance(arc, Sequence) and not isinstance(arc, str) and len(arc) == 2
            head = arc[0] if is_pair else None
            labels.append(arc[1] if is_pair else None)
        if not isinstance(head, Integral) or abs(int(head)) > MOST_HEAD:
            raise ValueError(f"{flat.place(token)}: {arc!r:.60}, expected {expected}")
        heads[token] = int(head)
    return FlatTrees(heads, FlatLabels(labels, flat.offsets, WORDING) if labeled else None)


# ----- arcs known in part ------------------------------------------------------------------------


def allowed_arcs(
    known: FlatLabels, numbers: Mapping[Any, int] | None
) -> list[tuple[Bools, Bools] | None]:
    """Which arcs, head first, and which labels of these each sentence may have; None for all.

    A token has a head, or where there are labels a pair (head, label) of which either may be None.
    """
    n_labels = 0 if numbers is None else len(numbers)
    masks: list[tuple[Bools, Bools] | None] = []
    for first, end in pairwise(known.offsets.tolist()):
        N = end - first + 1
        if all(value is None for value in known.values[first:end]):
            masks.append(None)
            continue
        arcs, labels = np.ones((N, N), bool), np.ones((N, N, n_labels), bool)
        for m in range(1, N):
            t = first + m - 1
            if known.values[t] is None:
                continue
            arcs[:, m] = labels[:, m] = False
            for arc in choice_of(known, t):
                heads, label = _arc(known, t, arc, N, m, numbers)
                arcs[heads, m] = True
                labels[heads, m, label] = True
        masks.append((arcs, labels))
    return masks


def _arc(
    known: FlatLabels, t: int, arc: Any, N: int, m: int, numbers: Mapping[Any, int] | None
) -> tuple[Any, Any]:
    """Heads and labels, as indices, that an arc into node m stands for."""
    head, label = arc, None
    if numbers is not None and isinstance(arc, (tuple, list)) and len(arc) == 2:
        head, label = arc
    anywhere = head is None and numbers is not None
    if not anywhere and not (isinstance(head, Integral) and 0 <= int(head) < N and head != m):
        pairs = ", a pair (head, label), either of which may be None" if numbers else ""
        raise ValueError(
            f"{known.place(t)}: {arc!r:.40}, expected 0 (root) or another word, 1 to {N - 1}"
            f"{pairs}, a set of such, or None"
        )
    heads = slice(None) if anywhere else int(head)
    if label is None:
        return heads, slice(None)
    assert numbers is not None
    if not is_hashable(label) or label not in numbers:
        raise ValueError(f"{known.place(t)}: label {label!r:.40} is not known to the model")
    return heads, numbers[label]


def labels_of_arcs(known: FlatLabels) -> FlatLabels:
    """All labels of arcs that are known to be possible; errors name the word."""
    found: dict[Any, None] = {}
    for t in range(len(known.values)):
        for arc in choice_of(known, t):
            label = arc[1] if isinstance(arc, (tuple, list)) and len(arc) == 2 else None
            if label is not None and (not is_hashable(label) or label != label):
                raise ValueError(f"{known.place(t)}: {label!r:.40} is not a label")
            if label is not None:
                found[label] = None
    if not found:
        raise ValueError("y has no label of an arc: every one is None")
    return known._replace(values=list(found))


def arc_choices(known: FlatLabels, numbers: Mapping[Any, int] | None) -> list[ArcChoices]:
    """Right heads and labels of the words of which something is known, by sentence."""
    choices: list[ArcChoices] = []
    for first, end in pairwise(known.offsets.tolist()):
        own: dict[int, list[tuple[int, int]]] = {}
        for m in range(1, end - first + 1):
            for arc in choice_of(known, first + m - 1):
                heads, label = _arc(known, first + m - 1, arc, end - first + 1, m, numbers)
                head = ANY if isinstance(heads, slice) else heads
                number = ANY if isinstance(label, slice) else label
                own.setdefault(m, []).append((head, 0 if numbers is None else number))
        choices.append(own)
    return choices


def some_trees(offsets: Ints, choices: list[ArcChoices]) -> tuple[Ints32, Ints32, Bools]:
    """Heads and labels of all words: the trees that are known, and any where they are not.

    The last array tells which sentences have a known tree.
    """
    heads, labels = np.zeros(int(offsets[-1]), np.int32), np.zeros(int(offsets[-1]), np.int32)
    is_known = np.zeros(len(choices), dtype=bool)
    for i, (own, (first, end)) in enumerate(zip(choices, pairwise(offsets.tolist()), strict=True)):
        single = [own.get(m, ()) for m in range(1, end - first + 1)]
        is_known[i] = all(len(arcs) == 1 and ANY not in arcs[0] for arcs in single)
        heads[first:end] = np.arange(end - first)  # every word hangs on the one before
        if is_known[i]:
            heads[first:end], labels[first:end] = zip(*(arcs[0] for arcs in single), strict=True)
    return heads, labels, is_known


# ----- training trees with crossing arcs ------------------------------------------------------


def check_on_crossing(on_violation: Any) -> None:
    """Raise ValueError unless this can be done with trees that have crossing arcs."""
    check_choice(on_violation, ON_CROSSING, "on_violation")


def projective_heads(heads: Ints32, bounds: Ints, on_violation: str) -> tuple[Ints32, Bools]:
    """The heads, repaired if that is wanted, and which trees to train on; raises, or warns."""
    crosses = crossing_trees(heads, bounds)
    if not crosses.any():
        return heads, ~crosses
    check_trees(heads, bounds, single_root=False)
    first = f"the first is sentence {int(np.argmax(crosses))}"
    count = f"{np.count_nonzero(crosses)} of {len(crosses)} training trees have crossing arcs"
    if on_violation == "drop" and not crosses.all():
        warn_user(f"{count} and are left out; {first}")
        return heads, ~crosses
    if on_violation == "repair":
        heads, starts = heads.copy(), bounds - np.arange(len(bounds))
        for i in np.flatnonzero(crosses):
            own = slice(starts[i], starts[i + 1])
            heads[own] = projectivised(heads[own].tolist())
        warn_user(f"{count} and were made projective; {first}")
        return heads, np.ones(len(crosses), np.bool_)
    message = f"{count}, which projective=True never predicts; {first}"
    if on_violation == "keep":
        warn_user(
            f"{message}. projective=False predicts them; on_violation='repair' trains on the "
            "nearest projective trees, on_violation='drop' leaves them out"
        )
        return heads, np.ones(len(crosses), np.bool_)
    raise ValueError(f"{message}. Set projective=False, or on_violation='repair' or 'keep'")


# ----- explanations ------------------------------------------------------------------------------


class Sentence(NamedTuple):
    """A sentence as users have it and as kernels do, and what makes its arcs' features."""

    tokens: Sequence[Sequence[str]]
    keys: ArcKeys
    templates: ArcTemplates
    labels: list[Any]  # empty where arcs have none


def arc_evidence(
    sentence: Sentence, chosen: Sequence[Any], rival: Sequence[Any], w: Floats
) -> list[Evidence]:
    """Features of arcs that one of the trees has and the other one has not, word by word."""
    return differing_parts(
        *(
            [part for t, arc in _differing(one, other) for part in _parts(sentence, t, arc, w)]
            for one, other in ((chosen, rival), (rival, chosen))
        )
    )


def _differing(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[int, Any]]:
    """Arcs of one tree that the other one has not, by their words."""
    pairs = enumerate(zip(one, other, strict=True))
    return [(t, a) for t, (a, b) in pairs if a != b]


def _parts(sentence: Sentence, t: int, arc: Any, w: Floats) -> Iterator[Part]:
    """Features of the arc into word t."""
    head, label = arc if sentence.labels else (arc, None)
    code = sentence.labels.index(label) if sentence.labels else -1
    keys = sentence.keys
    features = np.empty(most_arc_features(keys, len(sentence.tokens) + 1), np.int32)
    count = arc_features(keys, 0, head, t + 1, code, features)
    shown = None if label is None else str(label)
    names = arc_feature_names(sentence.templates, sentence.tokens, keys, head, t + 1, shown)
    for name, feature in zip(names, features[:count].tolist(), strict=True):
        yield name, t, float(w[feature])


def explain_arcs(parser: Any, x: Any, y_hat: Any, weights: Floats, n: int) -> Explanation:
    """Why the arcs that a parser predicts; see `DependencyParser.explain`."""
    X = x if isinstance(x, ConlluTreebank) else [as_tuples(x)]
    sentences = X.rows if isinstance(X, ConlluTreebank) else X
    if len(sentences) == 1 and is_empty(sentences[0]):
        return no_decisions(y_hat, n)
    fields = token_fields(X)
    if len(fields.bounds) != 2:
        raise ValueError(f"x must be one sentence, got {len(fields.bounds) - 1}")
    (tokens,) = X.tokens() if isinstance(X, ConlluTreebank) else X
    labels = [] if parser.classes_ is None else parser.classes_.tolist()
    keys = parser._decoder.keys(fields)
    sentence = Sentence(tokens, keys, parser._decoder.templates, labels)
    (own,) = parser.predict(X)

    def name_of(t: int) -> str:
        return f"word {t + 1} {tokens[t][0]!r:.40}"

    def evidence(rival: Any) -> list[Evidence]:
        return arc_evidence(sentence, own, rival, weights)

    places = Places(own, own, name_of, evidence)
    if y_hat is not None:
        flat = flat_trees(flat_arcs([y_hat], fields.bounds), parser.labeled)
        parser.score_outputs(X, [y_hat])  # refuses what is no tree, or has unknown labels
        heads = flat.heads.tolist()
        values = None if flat.labels is None else flat.labels.values
        rival = heads if values is None else list(zip(heads, values, strict=True))
        return places.against(rival, rival, rival, n)
    (margins,) = parser._distribution(X).margins()
    K = max(len(labels), 1)

    def rival_at(t: int) -> tuple[Any, Any] | None:
        code = own[t][0] * K + labels.index(own[t][1]) if labels else own[t]
        best = best_other(margins[t].ravel(), code)
        if best is None:
            return None
        other = (best // K, labels[best % K]) if labels else best
        fixed = [other if u == t else None for u in range(len(own))]
        return other, parser.predict(X, fixed=[fixed])[0]

    return places.one_by_one(map(rival_at, range(len(own))), n)
