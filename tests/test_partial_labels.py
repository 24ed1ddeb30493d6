"""Training on labels known in part: completions, objectives and rounds against lists of outputs."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from brute import ChainTwin, all_planes, plane_terms
from brute_trees import grid_case, label_case
from cases import Case
from exact_qp import solve_exactly
from maxmargin.core.formulation import Formulation
from maxmargin.datasets import make_faces
from maxmargin.problems.chain.costs import PartialChains, costs_of_choices
from maxmargin.problems.chain.layout import ChainConstraints
from maxmargin.problems.chain.problem import ChainProblem
from maxmargin.problems.tree.labels import LabelTreeProblem
from maxmargin.problems.tree.partial import (
    PartialLabelTrees,
    PartialParts,
    costs_of_node_choices,
)
from maxmargin.solvers import make_solver
from maxmargin.solvers.cccp import alternate

K, LENGTHS = 3, (3, 2, 4, 1, 3)
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)])
CONSTRAINTS = ChainConstraints(
    np.array([[1, 1, 0], [1, 1, 1], [1, 0, 1]], bool), np.array([1, 1, 0], bool), np.ones(K, bool)
)


class Recorder:
    """A solver that notes what it was given, and its results."""

    def __init__(self, solver):
        self.solver, self.steps = solver, []

    def solve(self, problem, *args, **options):
        result = self.solver.solve(problem, *args, **options)
        self.steps.append((problem.data.labels.copy(), result))
        return result


class Drawn:
    """A small case: the problem, and the same by lists of all labellings."""

    def __init__(self, seed, loss="hamming", constrained=False, boundary=True):
        rng = np.random.default_rng(seed)
        self.tokens = rng.normal(size=(OFFSETS[-1], 2))
        self.options = {
            "loss": loss,
            "boundary_weights": boundary,
            "constraints": CONSTRAINTS if constrained else None,
        }
        plain = ChainTwin(self.tokens, OFFSETS, np.zeros(OFFSETS[-1], int), K, **self.options)
        truth = []
        for i in range(len(LENGTHS)):
            ys = plain.outputs(i)
            truth += ys[rng.integers(len(ys))]
        self.allowed = np.eye(K, dtype=bool)[truth]
        more = rng.random((OFFSETS[-1], K)) < 0.5
        unknown = rng.random(OFFSETS[-1]) < 0.6
        self.allowed |= unknown[:, None] & more
        self.costs, self.rows = costs_of_choices(self.allowed)
        self.problem = ChainProblem(
            self.tokens, OFFSETS, truth, K,
            costs=self.costs, cost_rows=self.rows, **self.options,
        )  # fmt: skip
        self.partial = PartialChains(self.problem, self.allowed)

    def twin(self, labels):
        options = self.options | {"costs": self.costs, "cost_rows": self.rows}
        return ChainTwin(self.tokens, OFFSETS, labels, K, **options)

    def completions(self, i):
        """All right labellings, by what is allowed and not by costs."""
        allowed = self.allowed[OFFSETS[i] : OFFSETS[i + 1]]
        return [y for y in self.twin(np.zeros(OFFSETS[-1], int)).outputs(i)
                if all(row[k] for row, k in zip(allowed, y, strict=True))]  # fmt: skip

    def loss(self, i, y):
        """Tokens whose label is not allowed, their share, or whether there are any."""
        allowed = self.allowed[OFFSETS[i] : OFFSETS[i + 1]]
        wrong = sum(not row[k] for row, k in zip(allowed, y, strict=True))
        name = self.options["loss"]
        return {"hamming": wrong, "normalized_hamming": wrong / len(y), "zero_one": min(wrong, 1)}[
            name
        ]

    def objective(self, w, formulation, C):
        """1/2 |w|^2 + C sum of slacks, with the best completion at w, from the definitions."""
        twin = self.twin(np.zeros(OFFSETS[-1], int))
        sqrt_loss = formulation.uses_sqrt_loss
        total = 0.0
        for i in range(len(LENGTHS)):
            best = max(w @ twin.psi(i, h) for h in self.completions(i))
            outputs = twin.outputs(i)
            b, scales = plane_terms(
                [self.loss(i, y) for y in outputs], formulation.rescaling, sqrt_loss
            )
            gains = np.array([w @ twin.psi(i, y) for y in outputs]) - best
            slack = max(0.0, np.max(b + scales * gains))
            total += slack**2 if formulation.slack == "l2" else slack
        return 0.5 * w @ w + C * total


# ----- completions and objectives -----------------------------------------------------------------


@pytest.mark.parametrize("constrained", [False, True])
def test_completions_are_the_best_of_all(constrained):
    case = Drawn(0, constrained=constrained)
    rng = np.random.default_rng(1)
    twin = case.twin(np.zeros(OFFSETS[-1], int))
    for _ in range(20):
        w = rng.normal(size=case.problem.n_features)
        found = np.split(case.partial.complete(w), OFFSETS[1:-1])
        for i, labels in enumerate(found):
            scores = {y: w @ twin.psi(i, y) for y in case.completions(i)}
            assert scores[tuple(labels.tolist())] == pytest.approx(max(scores.values()))


def test_costs_of_choices():
    allowed = np.array([[1, 0, 0], [1, 1, 1], [0, 1, 1], [1, 0, 0]], bool)
    table, rows = costs_of_choices(allowed)
    assert table[rows].tolist() == [[0, 1, 1], [0, 0, 0], [1, 0, 0], [0, 1, 1]]
    costs = np.array([[0, 2.0, 3], [5, 0, 7], [1, 9, 0]])
    table, rows = costs_of_choices(allowed, costs)
    assert table[rows].tolist() == [[0, 2, 3], [0, 0, 0], [1, 0, 0], [0, 2, 3]]


FORMULATIONS = [
    Formulation("margin", "l1"),
    Formulation("slack", "l1"),
    Formulation("margin", "l2"),
    Formulation("none", "l1"),
    Formulation("slack", "l2", sqrt_loss=False),
]


@pytest.mark.parametrize("loss", ["hamming", "normalized_hamming", "zero_one"])
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=str)
def test_rounds_fall_and_their_gaps_are_true(loss, formulation):
    for seed, constrained in ((0, False), (1, True)):
        case = Drawn(seed, loss, constrained)
        solver = Recorder(make_solver("auto", tol=1e-6, random_state=0))
        found = alternate(case.partial, solver, formulation, 2.0, max_rounds=20, tol=1e-9)
        assert found.settled
        for before, after in itertools.pairwise(found.rounds):
            assert after.objective <= after.bound < before.objective
        expected = case.objective(found.result.w, formulation, 2.0)
        assert found.rounds[-1].objective == pytest.approx(expected, rel=1e-9)
        steps = solver.steps[1:]  # without that of the first weights
        assert len(steps) - len(found.rounds) in (0, 1)  # the last may not have been taken
        for (completion, result), step in zip(steps, found.rounds, strict=False):
            assert (step.bound, step.gap) == (result.primal, result.gap)
            planes = all_planes(case.twin(completion), formulation)
            exact = solve_exactly(planes, 2.0, slack=formulation.slack)
            slip = 1e-7 * exact.primal + 1e-9
            assert result.dual - slip <= exact.value <= result.primal + slip


@pytest.mark.parametrize("solver", ["fasole", "bcfw", "dcd", "one_slack", "n_slack", "sgd", "mira"])
def test_every_kind_of_solver(solver):
    """From the same first weights all of them end near objectives of their own completions."""
    case = Drawn(2)
    formulation = Formulation("margin", "l1")
    options = {"max_passes": 50} if solver in ("sgd", "mira") else {"tol": 1e-4}
    made = make_solver(solver, random_state=0, **options)
    found = alternate(case.partial, made, formulation, 0.5, tol=1e-6)
    objectives = [r.objective for r in found.rounds]
    assert objectives == sorted(objectives, reverse=True)
    expected = case.objective(found.result.w, formulation, 0.5)
    assert objectives[-1] == pytest.approx(expected, rel=1e-9)
    if solver not in ("sgd", "mira"):
        assert all(r.gap <= 1e-4 * r.bound * (1 + 1e-9) for r in found.rounds)


def test_planes_of_unchanged_sequences_are_kept():
    """The state of another completion: weights are those of the planes left, blocks are empty."""
    case = Drawn(3)
    formulation = Formulation("margin", "l1")
    solver = make_solver("fasole", tol=1e-3, random_state=0)
    first = case.partial.completed(case.partial.complete(np.zeros(case.problem.n_features)))
    state = solver.solve(first, formulation, 1.0).state
    changed = np.array([0, 2])
    before = state.store.w.copy()
    moved = state.moved_to(first, changed)
    store = moved.store
    assert np.array_equal(state.store.w, before)
    left = store.arena.block[: store.used[0]]
    assert len(left) and not np.isin(left, changed).any()
    assert (store.blocks.count[changed] == 0).all() and (store.blocks.first[changed] == -1).all()
    kept = ~np.isin(state.store.arena.block[: state.store.used[0]], changed)
    alpha = np.where(kept, state.store.arena.alpha[: state.store.used[0]], 0.0)
    full = state.store.arena.alpha.copy()
    full[: len(alpha)] = alpha
    assert store.w == pytest.approx(state.store._sum_of_planes(full))
    offsets = store.arena.alpha[: store.used[0]] @ store.arena.offset[: store.used[0]]
    assert store.dual_now[0] == pytest.approx(offsets - 0.5 * store.w @ store.w)


# ----- the tagger ---------------------------------------------------------------------------------


def make_sentences(n=60, seed=0, hidden=0.5):
    """Tokens that tell their tags, with noise; of some the tag is hidden."""
    rng = np.random.default_rng(seed)
    tags = ["B-X", "I-X", "O"]
    X, y = [], []
    for _ in range(n):
        before, labels = "O", []
        for _ in range(rng.integers(3, 9)):
            free = tags if before != "O" else ["B-X", "O"]
            labels.append(str(rng.choice(free)))
            before = labels[-1]
        codes = [tags.index(tag) for tag in labels]
        X.append(np.eye(3)[codes] + 0.7 * rng.normal(size=(len(codes), 3)))
        y.append(labels)
    part = [[None if rng.random() < hidden else tag for tag in labels] for labels in y]
    return X, y, part


def tagger(**options):
    return mm.SequenceTagger(**({"constraints": "bio", "C": 0.5, "random_state": 0} | options))


@pytest.mark.parametrize("solver", ["auto", "sgd"])
def test_known_labels_go_the_ordinary_way(solver):
    """Whatever is set for labels known in part, all labels known give the same bits."""
    X, y, _ = make_sentences()
    plain = tagger(solver=solver).fit(X, y)
    other = tagger(solver=solver, partial_labels="convex", max_rounds=3).fit(X, y)
    assert np.array_equal(plain.coef_, other.coef_)
    assert not hasattr(plain, "rounds_")


def test_sets_of_one_label_are_that_label():
    X, y, _ = make_sentences()
    plain = tagger(tol=1e-5).fit(X, y)
    sets = tagger(tol=1e-5).fit(X, [[{tag} for tag in tags] for tags in y])
    assert sets.result_.primal == pytest.approx(plain.result_.primal, rel=2e-5)
    assert len(sets.rounds_) == 1 and sets.rounds_[0].n_changed == 0


def test_learns_from_labels_known_in_part():
    X, y, part = make_sentences(hidden=0.7)
    test_X, test_y, _ = make_sentences(200, seed=1)
    model = tagger(tol=1e-3).fit(X, part)
    as_other = [[tag or "O" for tag in tags] for tags in part]
    wrong = tagger(tol=1e-3, on_violation="drop")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong.fit(X, as_other)
    full = tagger(tol=1e-3).fit(X, y)
    assert model.score(test_X, test_y) > wrong.score(test_X, test_y) + 0.03
    assert model.score(test_X, test_y) > full.score(test_X, test_y) - 0.04
    convex = tagger(tol=1e-3, partial_labels="convex").fit(X, part)
    assert len(convex.rounds_) == 1
    assert model.rounds_[0] == convex.rounds_[0] and len(model.rounds_) > 1
    assert model.rounds_[-1].objective < convex.rounds_[0].objective
    again = tagger(tol=1e-3).fit(X, part)
    assert np.array_equal(again.coef_, model.coef_)


def test_costs_and_class_weights_of_labels_known_in_part():
    """Costs of labels that are known are as ever, and "balanced" counts what is known."""
    X, y, part = make_sentences(30)
    options = {"tol": 1e-6, "class_weight": "balanced", "loss": {("O", "B-X"): 2.0}}
    sets = tagger(**options).fit(X, [[{tag} for tag in tags] for tags in y])
    plain = tagger(**options).fit(X, y)
    assert sets.result_.primal == pytest.approx(plain.result_.primal, rel=1e-5)
    assert tagger(**options).fit(X, part).score(X, y) > 0.6


def test_weights_of_sequences_and_files(tmp_path):
    """A weight of 2 is a sequence twice; sequences of which nothing is known do not matter."""
    X, _, part = make_sentences(20)
    part[3] = [None] * len(X[3])
    weights = np.ones(20)
    weights[[1, 5]] = 2.0
    options = {"tol": 1e-6, "partial_labels": "convex"}
    weighted = tagger(**options).fit(X, part, sample_weight=weights)
    twice = tagger(**options).fit([*X, X[1], X[5]], [*part, part[1], part[5]])
    assert weighted.result_.primal == pytest.approx(twice.result_.primal, rel=1e-5)
    rest = [i for i in range(20) if i != 3]
    without = tagger(**options).fit(
        [X[i] for i in rest], [part[i] for i in rest], sample_weight=weights[rest]
    )
    assert np.array_equal(without.coef_, weighted.coef_)
    weighted.save(tmp_path / "model.mm")
    loaded = mm.load(tmp_path / "model.mm")
    assert loaded.predict(X) == weighted.predict(X)
    assert clone(loaded).get_params()["partial_labels"] == "convex"


def test_what_cannot_be_completed():
    X = [np.eye(3), np.eye(3)]
    part = [["B-X", None, "O"], ["O", None, "I-X"]]
    part[1][1] = frozenset(["O"])
    with pytest.raises(ValueError, match=r"sequence 1: no completion .* \(1 of 2 .*'drop'"):
        tagger().fit(X, part)
    with pytest.warns(UserWarning, match="1 of 2 sequences break the constraints"):
        model = tagger(on_violation="drop").fit(X, part)
    assert model.result_.n_examples == 1


def test_repairs_leave_alone_what_may_continue_something():
    X = [np.eye(3), np.eye(3)]
    part = [["B-X", "I-X", "O"], ["O", None, "I-X"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tagger(on_violation="repair").fit(X, part)
    with pytest.warns(UserWarning, match="1 of 6 labels broke"):
        tagger(on_violation="repair").fit(X, [["O", "I-X", "O"], ["O", None, "I-X"]])


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ([[None, None], [None]], {}, "y has no label: every one is None or an empty set"),
        ([[set(), set()], [None]], {}, "y has no label: every one is None or an empty set"),
        ([["O", None], [{"B-X", None}]], {}, "sequence 1, token 0: None is not a label"),
        ([["O", "B-X"], [set()]], {}, "sequence 1, token 0: an empty set leaves no label"),
        ([["O", None], [["B-X"]]], {}, r"sequence 1, token 0: label \['B-X'\] is not hashable"),
        ([["O", None], ["O"]], {}, "y has only one label"),
        ([[{"O", "B-X"}, None], [None]], {}, "y says nothing: any label of any token of all 2 seq"),
        (
            [["O", None], ["B-X"]],
            {"partial_labels": "mean"},
            "partial_labels must be 'cccp' or 'convex'",
        ),
        ([["O", None], ["B-X"]], {"max_rounds": 0}, "max_rounds must be a whole number >= 1"),
        ([["O", None], ["B-X"]], {"slack": "none", "solver": "n_slack"}, "need slacks"),
    ],
)
def test_bad_input(y, options, message):
    with pytest.raises(ValueError, match=message):
        tagger(**options).fit([np.eye(2), np.eye(2)[:1]], y)


def test_rounds_that_do_not_suffice_are_told():
    X, _, part = make_sentences(hidden=0.7)
    with pytest.warns(ConvergenceWarning, match="max_rounds=1"):
        tagger(tol=1e-3, max_rounds=1).fit(X, part)


@pytest.mark.parametrize("on_interrupt", ["raise", "return"])
@pytest.mark.parametrize("training", [0, 1, 2])
def test_an_interrupt_ends_the_alternation(training, on_interrupt):
    """Whichever training it meets: that of the first weights, the first round, or a later one."""
    X, _, part = make_sentences(hidden=0.7)
    begun = []  # oracle calls of the trainings so far

    def interrupt(progress):
        if not begun or progress.oracle_calls < begun[-1]:
            begun.append(0)
        begun[-1] = progress.oracle_calls
        if len(begun) == training + 1:
            raise KeyboardInterrupt

    model = tagger(tol=1e-6, training={"callbacks": [interrupt], "on_interrupt": on_interrupt})
    if on_interrupt == "raise":
        with pytest.raises(KeyboardInterrupt, match="interrupted"):
            model.fit(X, part)
    else:
        with pytest.warns(UserWarning, match="interrupted") as told:
            model.fit(X, part)
        assert len(told) == 1
    assert len(begun) == training + 1 and model.result_.status == "interrupted"
    assert model.result_.gap >= 0.0
    assert model.rounds_[-1].bound == pytest.approx(model.result_.primal)
    assert model.predict(X[:1])


def test_a_round_that_has_no_time_settles_nothing(monkeypatch):
    class Hurried(Recorder):
        """It has no time for its third training."""

        def solve(self, problem, *args, **options):
            result = super().solve(problem, *args, **options)
            ended = replace(result, status="max_time", converged=False, primal=1e9)
            return result if len(self.steps) < 3 else ended

    def in_a_hurry(partial, solver, *args, **options):
        return alternate(partial, Hurried(solver), *args, **options)

    monkeypatch.setattr("maxmargin.estimators.training.alternate", in_a_hurry)
    X, _, part = make_sentences(hidden=0.7)
    with pytest.warns(ConvergenceWarning, match="after 1 rounds; raise max_time"):
        model = tagger(tol=1e-3).fit(X, part)
    assert len(model.rounds_) == 1 and model.result_.converged


# ----- trees --------------------------------------------------------------------------------------


def tree_in_part(seed, loss):
    """Trees with sets of right labels; the twin knows what is right by its definition."""
    rng = np.random.default_rng(seed)
    case = label_case(rng, V=3, n=4, loss=loss)
    Y, layout = case.problem.labels, case.problem.layout
    allowed = rng.random((*Y.shape, layout.n_labels.max())) < 0.4
    allowed &= np.arange(allowed.shape[2]) < layout.n_labels[:, None]
    np.put_along_axis(allowed, Y[:, :, None], True, axis=2)
    costs, rows = costs_of_node_choices(allowed, layout.n_labels)
    problem = LabelTreeProblem(case.problem.rows, Y, layout, loss=loss, costs=costs, cost_rows=rows)
    case.twin.costs = np.where(allowed, 0.0, 1.0)
    return Case(problem, case.twin), allowed


def test_costs_of_choices_of_nodes():
    allowed = np.array([[[1, 0, 0], [1, 1, 0]], [[0, 1, 1], [0, 1, 0]]], bool)
    table, rows = costs_of_node_choices(allowed, np.array([3, 2]))
    assert table[rows][:, 0].tolist() == [[0, 1, 1], [1, 0, 0]]
    assert table[rows][:, 1, :2].tolist() == [[0, 0], [1, 0]]
    costs = np.array([[0, 2.0, 3], [5, 0, 7], [1, 9, 0], [0, 4, 0], [6, 0, 0]])
    table, rows = costs_of_node_choices(allowed, np.array([3, 2]), costs)
    assert table[rows][:, 0].tolist() == [[0, 2, 3], [1, 0, 0]]
    assert table[rows][:, 1, :2].tolist() == [[0, 0], [6, 0]]


def tree_objective(case, allowed_outputs, w, C, formulation):
    """As `Drawn.objective`, for a twin whose losses are those of labels known in part."""
    twin, total = case.twin, 0.0
    for i in range(twin.n_examples):
        best = max(w @ twin.psi(i, h) for h in allowed_outputs(i))
        outputs = twin.outputs(i)
        b, scales = plane_terms(
            [twin.loss(i, y) for y in outputs], formulation.rescaling, formulation.uses_sqrt_loss
        )
        gains = np.array([w @ twin.psi(i, y) for y in outputs]) - best
        slack = max(0.0, np.max(b + scales * gains))
        total += slack**2 if formulation.slack == "l2" else slack
    return 0.5 * w @ w + C * total


@pytest.mark.parametrize("formulation", FORMULATIONS[:3], ids=str)
@pytest.mark.parametrize("loss", ["hamming", "zero_one"])
def test_rounds_of_trees(loss, formulation):
    for seed in range(3):
        case, allowed = tree_in_part(seed, loss)

        def right(i, case=case, allowed=allowed):
            return [y for y in case.twin.outputs(i)
                    if all(allowed[i, v, k] for v, k in enumerate(y))]  # fmt: skip

        partial = PartialLabelTrees(case.problem, allowed)
        solver = make_solver("auto", tol=1e-6, random_state=0)
        found = alternate(partial, solver, formulation, 2.0, max_rounds=20, tol=1e-9)
        expected = tree_objective(case, right, found.result.w, 2.0, formulation)
        assert found.rounds[-1].objective == pytest.approx(expected, rel=1e-9, abs=1e-12)
        for before, after in itertools.pairwise(found.rounds):
            assert after.objective <= after.bound < before.objective
        w = np.random.default_rng(seed).normal(size=case.problem.n_features)
        for i, labels in enumerate(partial.complete(w)):
            scores = {y: w @ case.twin.psi(i, y) for y in right(i)}
            assert scores[tuple(labels.tolist())] == pytest.approx(max(scores.values()))


@pytest.mark.parametrize("loss", ["deviation", "hamming"])
def test_rounds_of_parts(loss):
    formulation = Formulation("margin", "l1")
    for seed in range(3):
        case = grid_case(np.random.default_rng(seed), V=2, n=4, loss=loss, in_part=True)
        known, truth = case.twin.known, case.twin.Y

        def right(i, case=case, known=known, truth=truth):
            free = ~known[i]
            return [y for y in case.twin.outputs(i)
                    if all(free[v] or k == truth[i][v] for v, k in enumerate(y))]  # fmt: skip

        partial = PartialParts(case.problem)
        solver = make_solver("auto", tol=1e-6, random_state=0)
        found = alternate(partial, solver, formulation, 0.5, max_rounds=20, tol=1e-9)
        expected = tree_objective(case, right, found.result.w, 0.5, formulation)
        assert found.rounds[-1].objective == pytest.approx(expected, rel=1e-8, abs=1e-12)
        for before, after in itertools.pairwise(found.rounds):
            assert after.objective <= after.bound < before.objective


def test_first_weights_of_trees_are_those_of_what_is_known():
    """Unknown nodes and their edges are left out: their weights come from other examples alone."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 3, 2)), np.arange(18).reshape(6, 3) % 2
    rows = [[None if v == 1 else k for v, k in enumerate(labels)] for labels in y.tolist()]
    rows[0][1], rows[1][1] = 0, 1
    seen = {}

    class Spy(PartialLabelTrees):
        def first_weights(self, train):
            def note(problem, origins):
                seen["problem"] = problem
                return train(problem, origins)

            seen["w"] = super().first_weights(note)
            return seen["w"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("maxmargin.estimators.trees.tree_labels.PartialLabelTrees", Spy)
        model = mm.TreeLabeler(tree=[(0, 1), (1, 2)], random_state=0).fit(X, rows)
    rows_left = np.diff(seen["problem"].rows.indptr)
    # Nodes have two inputs and a constant, edges a constant: 3 nodes and 2 edges, or 2 nodes.
    assert rows_left.tolist() == [11, 11, 6, 6, 6, 6]
    assert seen["w"].any() and len(model.rounds_) >= 1


def test_trees_and_parts_that_are_known_in_part():
    rng = np.random.default_rng(0)
    n = 150
    codes = rng.integers(0, 3, n)
    Y = np.stack([codes, (codes + (rng.random(n) < 0.1)) % 3, codes], axis=1)
    X = np.eye(3)[Y] + 0.8 * rng.normal(size=(n, 3, 3))
    names = np.array(["a", "b", "c"])[Y].tolist()
    part = [[None if rng.random() < 0.6 else label for label in labels] for labels in names]
    options = {"C": 0.3, "random_state": 0}
    model = mm.TreeLabeler(**options).fit(X[:100], part[:100])
    full = mm.TreeLabeler(**options).fit(X[:100], names[:100])
    assert model.score(X[100:], names[100:]) > full.score(X[100:], names[100:]) - 0.1 > 0.6
    again = mm.TreeLabeler(partial_labels="convex", **options).fit(X[:100], names[:100])
    assert np.array_equal(again.coef_, full.coef_) and not hasattr(full, "rounds_")
    part[3] = [None] * 3
    rest = [i for i in range(100) if i != 3]
    one, other = (
        mm.TreeLabeler(partial_labels="convex", tree=[(0, 1), (0, 2)], tol=1e-6, **options).fit(
            X[chosen], [part[i] for i in chosen]
        )
        for chosen in (list(range(100)), rest)
    )
    assert one.result_.primal == pytest.approx(other.result_.primal, rel=1e-5)
    costly = mm.TreeLabeler(loss={("a", "b"): 3.0}, class_weight="balanced", **options)
    assert costly.fit(X[:100], part[:100]).score(X[100:], names[100:]) > 0.6
    with pytest.raises(ValueError, match="y has no label of node 1"):
        mm.TreeLabeler().fit(X[:2], [["a", None, "b"], ["b", None, "a"]])
    with pytest.raises(ValueError, match="example 1, node 2: an empty set"):
        mm.TreeLabeler().fit(X[:2], [["a", "b", "b"], ["b", "c", set()]])


def test_parts_are_found_after_training_on_some():
    faces = make_faces(n_train=40, n_test=20, size=18, noise=0.15, random_state=1)
    rng = np.random.default_rng(0)
    y = [[None if i > 10 and rng.random() < 0.5 else place for place in row]
         for i, row in enumerate(faces.y_train.tolist())]  # fmt: skip
    options = {"C": 0.02, "patch": 5, "random_state": 0}
    model = mm.PartLocator(**options).fit(faces.X_train, y)
    full = mm.PartLocator(**options).fit(faces.X_train, faces.y_train)
    listed = mm.PartLocator(**options).fit(faces.X_train, faces.y_train.tolist())
    assert np.array_equal(listed.coef_, full.coef_)
    scores = [m.score(faces.X_test, faces.y_test) for m in (model, full)]
    assert scores[0] > scores[1] - 3.0
    with pytest.raises(ValueError, match="part 2 has no known position"):
        mm.PartLocator(**options).fit(faces.X_train[:1], [[(1, 1), (2, 2), None]])
