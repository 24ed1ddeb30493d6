"""SequenceAligner and HomologyRanker: input, baselines, files."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import maxmargin as mm
from conftest import find_data
from maxmargin.core.formulation import C_from_paper
from maxmargin.datasets import make_homologues
from maxmargin.features import AMINO_ACIDS, blosum62, log_odds_scores
from maxmargin.formats import gapped_rows, pairs_of_rows, read_fasta_groups
from maxmargin.metrics import alignment_scores, pair_accuracies

ROWS = [("ACGT", "A-GT"), ("TCGA", "T-GA"), ("GAT-", "GATC")]
X = [pairs_of_rows(*rows)[:2] for rows in ROWS]
PAIRS = [pairs_of_rows(*rows)[2] for rows in ROWS]


def small(**parameters):
    return mm.SequenceAligner(**{"C": 5.0, "mode": "global", "random_state": 0, **parameters})


def ranking(n, **options):
    data = make_homologues(n, **options)
    X = list(zip(data.natives, data.candidates, strict=True))
    return X, list(zip(data.homologues, data.alignments, strict=True))


@pytest.fixture(scope="module")
def fitted():
    return small().fit(X, ROWS)


def test_rows_and_positions_say_the_same(fitted):
    rows = small(solver="fasole").fit(X, ROWS)
    again = clone(rows).fit([(list(x), list(y)) for x, y in X], [pairs.tolist() for pairs in PAIRS])
    assert np.array_equal(rows.coef_, again.coef_)
    assert fitted.alphabet_ == list("ACGT")
    assert fitted.score(X, ROWS) == fitted.score(X, PAIRS) == 1.0
    assert [pairs.tolist() for pairs in fitted.predict(X)] == [pairs.tolist() for pairs in PAIRS]


def test_similarity_is_the_score_of_the_prediction(fitted):
    scores, gaps = fitted.substitution_scores_, fitted.gap_scores_
    (x, y), (pairs,) = X[1], fitted.align(X[1:2])
    expected = sum(
        scores[fitted.alphabet_.index(x[i]), fitted.alphabet_.index(y[j])] for i, j in pairs
    )
    assert len(pairs) == 3  # so that one gap of one letter is left
    expected += gaps["open"] + gaps["extend"]
    assert fitted.similarity(X[1:2])[0] == pytest.approx(expected)


def test_symmetric_scores():
    aligner = small(symmetric=True, end_gaps="own").fit(X, ROWS)
    assert np.array_equal(aligner.substitution_scores_, aligner.substitution_scores_.T)
    swapped = [(y, x) for x, y in X]
    assert aligner.similarity(swapped) == pytest.approx(aligner.similarity(X))
    assert len(aligner.coef_) == 10 + 4


@pytest.mark.parametrize("parameters", [{}, {"mode": "local", "symmetric": True, "gaps": "linear"}])
def test_files(tmp_path, parameters):
    aligner = small(**parameters).fit(X, ROWS)
    aligner.save(tmp_path / "aligner.mm")
    loaded = mm.load(tmp_path / "aligner.mm")
    assert loaded.get_params() == aligner.get_params()
    assert np.array_equal(loaded.similarity(X), aligner.similarity(X))
    assert loaded.alphabet_ == aligner.alphabet_
    assert loaded.result_.primal == aligner.result_.primal


def test_given_scores_can_be_saved(tmp_path):
    aligner = mm.SequenceAligner.from_scores(
        blosum62(), AMINO_ACIDS, gap_open=-11, gap_extend=-1, mode="global"
    )
    assert aligner.align([("AW", "AW")])[0].tolist() == [[0, 0], [1, 1]]
    assert aligner.similarity([("AW", "AW"), ("AWC", "AW")]).tolist() == [15.0, 15.0 - 12.0]
    aligner.save(tmp_path / "blosum.mm")
    assert mm.load(tmp_path / "blosum.mm").similarity([("AWC", "AW")])[0] == 3.0
    assert aligner.result_.gap is None and not aligner.result_.converged


def test_blosum62_is_the_published_table():
    scores = blosum62()
    assert np.array_equal(scores, scores.T)
    assert np.diag(scores).tolist() == [4, 5, 6, 6, 9, 5, 5, 6, 8, 4, 4, 5, 5, 6, 7, 4, 5, 11, 7, 4]
    assert scores[AMINO_ACIDS.index("W")].sum() == -32 and scores.sum() == -426


def test_unknown_letters_score_nothing(fitted):
    with pytest.warns(UserWarning, match="letters unknown to the model .* 1 in all, .*'X'"):
        pairs = fitted.align([("AXT", "AT")])[0]
    assert pairs.tolist() == [[0, 0], [2, 1]]


def test_search_for_homologues():
    X_train, Y_train = ranking(20, n_decoys=4, random_state=1)
    X_test, Y_test = ranking(100, n_decoys=4, random_state=2)
    C = C_from_paper(0.01, 20, "tsochantaridis", "l2")
    aligner = mm.HomologyRanker(C=C, gaps="linear", slack="l2", tol=1e-3, random_state=0)
    aligner.fit(X_train, Y_train)
    assert aligner.score(X_train, Y_train) >= 0.95
    assert aligner.score(X_test, Y_test) >= 0.85  # 0.2 by chance
    assert aligner.score(X_test, [y for y, _ in Y_test]) == aligner.score(X_test, Y_test)
    assert aligner.gap_scores_["extend"] < 0.0
    scores = aligner.decision_function(X_test[:3])
    assert [len(row) for row in scores] == [5, 5, 5]
    assert [int(np.argmax(row)) for row in scores] == aligner.predict(X_test[:3]).tolist()
    native, candidates = X_test[0]
    again = aligner.similarity([(native, candidate) for candidate in candidates])
    assert np.array_equal(scores[0], again)


def test_log_odds_find_homologues():
    data = make_homologues(40, n_decoys=4, random_state=3)
    found = [c[k] for c, k in zip(data.candidates, data.homologues, strict=True)]
    letters = "ABCDEFGHIJKLMNOPQRST"
    scores = log_odds_scores(list(zip(data.natives, found, strict=True)), data.alignments, letters)
    assert scores.shape == (20, 20)
    follows = [scores[k, (k + 1) % 20] for k in range(20)]
    assert np.mean(follows) > np.mean(np.diag(scores)) > scores.mean()
    aligner = mm.HomologyRanker.from_scores(scores, letters, gap_extend=-1.0)
    assert aligner.score(*ranking(60, n_decoys=4, random_state=4)) >= 0.9
    assert aligner.decision_function([]) == aligner.predict_k([], 2) == []
    assert aligner.predict([]).shape == (0,)


def test_warm_start_goes_on():
    aligner = small(warm_start=True).fit(X, ROWS)
    calls = aligner.result_.n_oracle_calls
    aligner.fit(X, ROWS)
    assert aligner.result_.n_oracle_calls < calls


def test_it_is_an_estimator(fitted):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    ranker = mm.HomologyRanker()
    for method in (copy.predict, copy.align, copy.similarity, ranker.decision_function):
        with pytest.raises(NotFittedError):
            method(X)


@pytest.mark.parametrize(
    ("parameters", "X_bad", "Y_bad", "message"),
    [
        ({"mode": "semi"}, X, ROWS, "mode must be 'local' or 'global'"),
        ({"gaps": "convex"}, X, ROWS, "gaps must be"),
        ({"loss": "zero"}, X, ROWS, "loss must be 'pairs', 'residues' or 'zero_one', got"),
        ({"alphabet": "AAC"}, X, ROWS, "letter twice"),
        ({"alphabet": "ACG"}, X, ROWS, "'T'.*not in the alphabet"),
        ({}, X[:2], ROWS, "X has 2 examples but y has 3"),
        ({}, [], [], "at least one example"),
        ({}, ["AC"], [[[0, 0]]], r"X\[0\] must be a pair"),
        ({}, [("AC", "AG")], [("AC", "AT")], r"y\[0\] shows other sequences"),
        ({}, [("AC", "AG")], [("AC-", "AG")], "equally long"),
        ({}, [("AC", "AG")], [[[0, 5]]], "alignment 0 has a position outside"),
    ],
)
def test_bad_input(parameters, X_bad, Y_bad, message):
    with pytest.raises(ValueError, match=message):
        small(**parameters).fit(X_bad, Y_bad)


def test_bad_homologues():
    for X_bad, Y_bad, message in (
        ([("AC", ["AG"])], [0], r"y\[0\] must be \(number"),
        ([("AC", ["AG"])], [(1, [[0, 0]])], "names candidate 1"),
        ([], [], "at least one example"),
    ):
        with pytest.raises(ValueError, match=message):
            mm.HomologyRanker().fit(X_bad, Y_bad)
    with pytest.raises(ValueError, match="mode must be 'local' or 'global'"):
        mm.HomologyRanker(mode="semi").fit([("AC", ["AG"])], [(0, [[0, 0]])])


def test_bad_scores():
    make = mm.SequenceAligner.from_scores
    with pytest.raises(ValueError, match=r"shape \(3, 3\)"):
        make(np.zeros((2, 2)), "ABC", gap_extend=-1)
    with pytest.raises(ValueError, match="no gap_open"):
        make(np.zeros((2, 2)), "AB", gap_open=-1, gap_extend=-1, gaps="linear")
    with pytest.raises(ValueError, match="symmetric"):
        make([[0, 1], [2, 0]], "AB", gap_extend=-1, symmetric=True)


def test_scores_of_alignments():
    truths = [[[0, 0], [1, 1]], [[0, 1]], []]
    found = [[[0, 0], [1, 2]], [[0, 1]], []]
    scores = alignment_scores(truths, found)
    assert scores.recall == scores.precision == scores.f1 == pytest.approx(2 / 3)
    assert scores.exact == pytest.approx(2 / 3)
    assert pair_accuracies(truths, found).tolist() == [0.5, 1.0, 1.0]
    assert alignment_scores([[]], [[]]).f1 == 0.0
    with pytest.raises(ValueError, match="truths has 1 alignments, predictions has 2"):
        alignment_scores([[]], [[], []])


def test_generated_homologues():
    data = make_homologues(50, random_state=7)
    again = make_homologues(50, random_state=7)
    assert data.natives == again.natives and data.candidates == again.candidates
    shares = []
    for native, strings, k, pairs in zip(*data, strict=True):
        assert len(strings) == 11 and {len(s) for s in strings} == {len(native)} == {50}
        steps = {(ord(strings[k][j]) - ord(native[i])) % 20 for i, j in pairs}
        assert steps <= {0, 1} and (np.diff(pairs, axis=0) > 0).all()
        shares.append(len(pairs) / 30)
    assert np.mean(shares) == pytest.approx(0.6, abs=0.06)
    with pytest.raises(ValueError, match="probabilities"):
        make_homologues(1, operations=(0.5, 0.5, 0.5, 0.5))


@pytest.mark.slow
def test_real_families_are_aligned_better_than_by_blosum62():
    """Trained on some trimmed families, tested on others."""
    groups = read_fasta_groups(find_data("protein_alignment/balibase3_rv11_rv12.afa.xz"))
    families = {title.split()[1]: [r.sequence for r in records] for title, records in groups}

    def some(names):
        rows = [(families[name][0], row) for name in names for row in families[name][1:4]]
        split = [pairs_of_rows(*pair) for pair in rows]
        return [(x, y) for x, y, _ in split], [pairs for *_, pairs in split]

    names = sorted(name for name in families if name.startswith("BBS12"))
    X_train, Y_train = some(names[:20])
    X_test, Y_test = some(names[20:])
    parameters = {"mode": "global", "alphabet": AMINO_ACIDS + "X"}
    ours = small(C=0.02, symmetric=True, end_gaps="own", tol=0.02, **parameters)
    ours.fit(X_train, Y_train)
    table = np.zeros((21, 21))
    table[:20, :20] = blosum62()
    given = mm.SequenceAligner.from_scores(table, gap_open=-11, gap_extend=-1, **parameters)
    assert len(X_test) > 50
    assert ours.score(X_test, Y_test) > given.score(X_test, Y_test) > 0.5


def test_rows_of_alignments():
    assert gapped_rows("AB", "CD", []) == ("AB--", "--CD")
    rng = np.random.default_rng(0)
    for _ in range(30):
        x, y = ("".join(rng.choice(list("AC"), rng.integers(1, 7))) for _ in range(2))
        size = int(rng.integers(0, min(len(x), len(y)) + 1))
        pairs = np.column_stack(
            [np.sort(rng.choice(len(string), size, replace=False)) for string in (x, y)]
        )
        rows = gapped_rows(x, y, pairs)
        back = pairs_of_rows(*rows)
        assert back[:2] == (x, y) and np.array_equal(back[2], pairs)
