"""Crossing arcs of training trees: found, and lifted, dropped or kept."""

import itertools

import numpy as np
import pytest

import maxmargin as mm
from conftest import find_data
from maxmargin.cli import main
from maxmargin.formats import read_conllu
from maxmargin.problems.dependency.problem import check_trees
from maxmargin.problems.dependency.trees import crossing_trees, projectivised


def all_trees(n):
    """Every tree of n words, with any number of roots."""
    for heads in itertools.product(range(n + 1), repeat=n):
        try:
            check_trees(np.array(heads, np.int32), np.array([0, n + 1]), single_root=False)
        except ValueError:
            continue
        yield heads


def descends(heads, node, head):
    while node not in (0, head):
        node = heads[node - 1]
    return node == head


def broken_arcs(heads):
    """Arcs (head, word) over words that do not descend from the head: the definition itself."""
    return [
        (h, m)
        for m, h in enumerate(heads, 1)
        if not all(descends(heads, k, h) for k in range(min(h, m) + 1, max(h, m)))
    ]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_all_small_trees(n):
    bounds = np.array([0, n + 1])
    for heads in all_trees(n):
        broken = broken_arcs(heads)
        assert crossing_trees(np.array(heads, np.int32), bounds).tolist() == [bool(broken)]
        lifted = projectivised(list(heads))
        check_trees(np.array(lifted, np.int32), bounds, single_root=heads.count(0) == 1)
        assert not broken_arcs(lifted)
        for m, (before, after) in enumerate(zip(heads, lifted, strict=True), 1):
            assert descends(heads, m, after)  # arcs move up, to ancestors only
            assert before == after or broken
        if len(broken) == 1:  # one lift of that arc, and of no other, comes first
            ((h, m),) = broken
            once = [*heads[: m - 1], heads[h - 1], *heads[m:]]
            assert lifted == projectivised(once)


def test_the_shortest_arc_is_lifted_first():
    # Word 5 hangs on 2 over 3, which hangs on the root; 4 hangs on 1 over 3.
    assert broken_arcs([3, 3, 0, 1, 2]) == [(1, 4), (2, 5)]
    assert projectivised([3, 3, 0, 1, 2]) == [3, 3, 0, 3, 3]
    assert projectivised([2, 0, 2, 1]) == [2, 0, 2, 2]


WORDS = [("a", "D"), ("b", "N"), ("c", "V"), ("d", "N")]
PLAIN, CROSSING, LIFTED = [2, 0, 2, 3], [2, 0, 2, 1], [2, 0, 2, 2]


def parser(**parameters):
    return mm.DependencyParser(hash_bits=9, random_state=0, tol=1e-4, **parameters)


def test_what_becomes_of_them(recwarn):
    X, y = [WORDS, WORDS[:3], WORDS], [PLAIN, PLAIN[:3], CROSSING]
    expected = {
        "repair": parser().fit(X, [*y[:2], LIFTED]),
        "drop": parser().fit(X[:2], y[:2], sample_weight=[1.0, 2.0]),
    }
    assert not [w for w in recwarn if "crossing" in str(w.message)]
    with pytest.warns(match=r"1 of 3 training trees have crossing arcs, .*sentence 2\. .*repair"):
        kept = parser().fit(X, y)
    with pytest.warns(match="1 of 3 training trees have crossing arcs and were made projective"):
        repaired = parser(on_violation="repair").fit(X, y)
    with pytest.warns(match="1 of 3 training trees have crossing arcs and are left out"):
        dropped = parser(on_violation="drop").fit(X, y, sample_weight=[1.0, 2.0, 3.0])
    assert np.array_equal(repaired.coef_, expected["repair"].coef_)
    assert np.array_equal(dropped.coef_, expected["drop"].coef_)
    assert not np.array_equal(kept.coef_, repaired.coef_)
    for given in ("raise", "drop"):
        with pytest.raises(ValueError, match=r"1 of 1 training trees .*sentence 0\. Set proj"):
            parser(on_violation=given).fit(X[2:], y[2:])
    with pytest.raises(ValueError, match="on_violation must be 'keep'"):
        parser(on_violation="lift").fit(X, y)
    recwarn.clear()
    parser(projective=False, on_violation="raise").fit(X, y)
    assert not recwarn.list


def test_labels_stay_with_their_arcs():
    y = [[(h, f"l{m}") for m, h in enumerate(heads)] for heads in (PLAIN, CROSSING)]
    with pytest.warns(match="were made projective"):
        repaired = parser(labeled=True, on_violation="repair").fit([WORDS, WORDS], y)
    lifted = [y[0], [(h, label) for h, (_, label) in zip(LIFTED, y[1], strict=True)]]
    expected = parser(labeled=True).fit([WORDS, WORDS], lifted)
    assert np.array_equal(repaired.coef_, expected.coef_)


def test_on_the_command_line(tmp_path, capsys):
    sentences = [
        "".join(
            f"{m}\t{word}\t_\t{tag}\t_\t_\t{h}\tdep\t_\t_\n"
            for m, ((word, tag), h) in enumerate(zip(WORDS, heads, strict=True), 1)
        )
        for heads in (PLAIN, CROSSING)
    ]
    data, model = tmp_path / "train.conllu", str(tmp_path / "m.mm")
    data.write_text("\n".join(sentences) + "\n")
    train = ["train", "depend", str(data), "-o", model, "-q", "--hash-bits", "9"]
    assert main(train) == 0
    assert "1 of 2 training trees have crossing arcs" in capsys.readouterr().err
    for choice in ("drop", "repair"):
        assert main([*train, "--on-violation", choice]) == 0
        assert mm.load(model).on_violation == choice
    capsys.readouterr()
    assert main([*train, "--on-violation", "raise"]) == 1
    told = capsys.readouterr().err
    assert "1 of 2 training trees have crossing arcs" in told and "--on-violation repair" in told
    assert main([*train, "--on-violation", "drop", "--no-projective"]) == 2


def test_real_trees():
    treebank = read_conllu(find_data("ud_english_ewt/en_ewt-ud-dev.conllu.xz"))
    trees = treebank.heads()
    bounds = np.concatenate([[0], np.cumsum([len(tree) + 1 for tree in trees])])
    crosses = crossing_trees(np.concatenate(trees).astype(np.int32), bounds)
    assert crosses.tolist() == [bool(broken_arcs(tree)) for tree in trees]
    assert 0 < crosses.sum() < 0.1 * len(trees)
    for tree in itertools.compress(trees, crosses):
        assert not broken_arcs(projectivised(list(tree)))
