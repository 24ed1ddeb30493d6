"""Solvers against plain transcriptions of the papers' algorithms, in the papers' own notation.

A transcription lists all outputs and keeps dense arrays. It shares no code with the package.
"""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from brute import all_planes
from cases import chain_case, multiclass_case
from maxmargin.core.formulation import C_to_paper, Formulation
from maxmargin.core.result import WeightsCallback
from maxmargin.engine.cuts.master import fsmo, printed_fsmo, smo
from maxmargin.solvers import DCD, FASOLE, SDA, SDM, DCDLight, NSlack, OneSlack
from online import bare

NEAR = 1e-9  # closer values may be told apart by rounding alone
seeds = st.integers(0, 2**32 - 1)


def draw(seed, n=6):
    """A problem without ties at w = 0: random costs, or two labels; and C and epsilon."""
    rng = np.random.default_rng(seed)
    if rng.integers(2):
        case = multiclass_case(rng, n=n, n_inputs=4, K=4, loss="costs")
    else:
        case = chain_case(rng, lengths=rng.integers(1, 4, n), n_inputs=4, K=2)
    rescaling = str(rng.choice(["margin", "slack"]))
    return case, Formulation(rescaling), float(10 ** rng.uniform(-2, 0.5)), 10 ** rng.uniform(-2, 0)


# ----- Franc 2014 --------------------------------------------------------------------------------


class Franc:
    """Variables of Algorithms 2 and 3; output 0 of each example is y_i."""

    def __init__(self, blocks, lam, kind):
        self.m, self.lam, self.kind = len(blocks), lam, kind
        self.psi = [np.vstack([np.zeros(A.shape[1]), -A]) for _, A in blocks]
        self.delta = [np.concatenate([[0.0], b]) for b, _ in blocks]
        self.alpha = [np.zeros(len(b) + 1) for b, _ in blocks]
        for alpha in self.alpha:
            alpha[0] = 1.0 / self.m
        self.Y = [[0] for _ in blocks]
        self.w = np.zeros(blocks[0][1].shape[1])
        self.calls = self.updates = 0
        self.tied = False

    def scores(self, i):
        return self.delta[i] + self.psi[i] @ self.w

    def look(self, i, everything):
        """u and G_i; u is among all outputs, or among Y_i (the reduced problem)."""
        s, Y = self.scores(i), self.Y[i]
        u = max(Y, key=lambda y: s[y])
        if everything:
            self.calls += 1
            u1 = int(np.argmax(s))
            if s[u1] > s[u] and u1 not in Y:
                u = u1
        return u, s[u] - self.m * sum(self.alpha[i][y] * s[y] for y in Y)

    def improvement(self, i, u, v):
        """(9); its first case is printed without the square and the half."""
        s = self.scores(i)
        rise, square = s[u] - s[v], np.sum((self.psi[i][u] - self.psi[i][v]) ** 2)
        alpha = self.alpha[i][v]
        if self.lam * rise < alpha * square:
            return self.lam * rise**2 / (2.0 * square)
        return alpha * rise - alpha**2 / (2.0 * self.lam) * square

    def update(self, i, u):
        s = self.scores(i)
        active = [y for y in self.Y[i] if self.alpha[i][y] > 0.0]
        merits = [self.improvement(i, u, y) if self.kind == "wss2" else -s[y] for y in active]
        v = active[int(np.argmax(merits))]
        self.note_ties(merits)
        square = np.sum((self.psi[i][u] - self.psi[i][v]) ** 2)
        tau = min(1.0, self.lam * (s[u] - s[v]) / (self.alpha[i][v] * square))
        moved = tau * self.alpha[i][v]
        self.w = self.w + (self.psi[i][v] - self.psi[i][u]) * (moved / self.lam)
        self.alpha[i][u] += moved
        self.alpha[i][v] = self.alpha[i][v] - moved if tau < 1.0 else 0.0
        self.updates += 1

    def note_ties(self, values):
        if len(values) > 1:
            second, first = np.sort(values)[-2:]
            self.tied |= bool(first - second <= NEAR * (1.0 + abs(first)))

    def note_threshold(self, i, gap, epsilon, everything):
        self.tied |= abs(gap - epsilon) <= NEAR
        if gap > epsilon:
            self.note_ties(self.scores(i) if everything else self.scores(i)[self.Y[i]])

    def algorithm_2(self, epsilon, everything=True):
        while True:
            num_updates = 0
            for i in range(self.m):
                u, gap = self.look(i, everything)
                self.note_threshold(i, gap, epsilon, everything)
                if gap > epsilon:
                    num_updates += 1
                    if u not in self.Y[i]:
                        self.Y[i].append(u)
                    self.update(i, u)
            if num_updates == 0:
                return

    def dual(self):
        linear = sum(float(d @ a) for d, a in zip(self.delta, self.alpha, strict=True))
        return linear - 0.5 * self.lam * float(self.w @ self.w)

    def algorithm_3(self, epsilon, K):
        """Returns the regime of every pass, and how many examples it checked."""
        regime, satisfied = "online", np.zeros(self.m, dtype=bool)
        best_primal, passes = np.inf, []
        while True:
            hinges, num_satisfied, num_checked = 0.0, 0, 0
            for i in range(self.m):
                if satisfied[i]:
                    continue
                num_checked += 1
                u, gap = self.look(i, True)
                self.note_threshold(i, gap, epsilon, True)
                hinges += float(self.scores(i).max())
                if gap <= epsilon:
                    satisfied[i] = True
                    num_satisfied += 1
                    continue
                if u not in self.Y[i]:
                    self.Y[i].append(u)
                if regime == "online":
                    self.update(i, u)
            passes.append((regime, num_checked))
            if num_checked == self.m:
                if regime == "batch":
                    primal = 0.5 * self.lam * float(self.w @ self.w) + hinges / self.m
                    best_primal = min(best_primal, primal)  # the paper: primal
                    self.tied |= abs(best_primal - self.dual() - epsilon) <= NEAR
                    if best_primal - self.dual() <= epsilon:
                        return passes
                if self.m * K <= num_satisfied:
                    regime = "batch"
            if satisfied.all():
                satisfied[:] = False
            self.algorithm_2(epsilon, everything=False)


def check_against(result, franc, n_planes):
    """The same weights and working sets, unless rounding decided something."""
    w = result.state.store.w
    close = np.allclose(w, franc.w, rtol=1e-7, atol=1e-8 * (1.0 + np.abs(franc.w).max()))
    assume(close or not franc.tied)
    assert close
    assert n_planes == sum(len(Y) - 1 for Y in franc.Y)


@pytest.mark.parametrize("compact", [True, False], ids=["own store", "planes"])
@given(seed=seeds)
def test_sda_is_algorithm_2(compact, seed):
    case, formulation, C, epsilon = draw(seed)
    franc = Franc(all_planes(case.twin, formulation), C_to_paper(C, 6, "franc"), "wss2")
    franc.algorithm_2(epsilon)
    problem = case.problem if compact else bare(case.problem)
    solver = SDA.published(epsilon=epsilon, max_passes=10**5)
    result = solver.solve(problem, formulation, C)
    check_against(result, franc, result.history[-2].planes)
    assert result.n_oracle_calls == franc.calls + 6 or franc.tied  # a pass more certifies


@pytest.mark.parametrize("compact", [True, False], ids=["own store", "planes"])
@pytest.mark.parametrize(("solver", "kind"), [(FASOLE, "wss2"), (SDM, "mvp")])
@given(seed=seeds, K=st.sampled_from([0.9, 0.5, 0.1]))
def test_fasole_is_algorithm_3(solver, kind, compact, seed, K):
    case, formulation, C, epsilon = draw(seed)
    franc = Franc(all_planes(case.twin, formulation), C_to_paper(C, 6, "franc"), kind)
    passes = franc.algorithm_3(epsilon, K)
    problem = case.problem if compact else bare(case.problem)
    options = {"max_reduced_passes": 1000, "K": K, "epsilon": epsilon, "max_passes": 100}
    calls = []
    result = solver.published(**options).solve(
        problem, formulation, C, callbacks=[lambda p: calls.append(p.oracle_calls)]
    )
    check_against(result, franc, result.n_planes)
    checked = np.diff([0, *calls]).tolist()
    assert checked == [number for _, number in passes] or franc.tied


# ----- Lee & Jang 2010 ---------------------------------------------------------------------------


def algorithm_2_of_lee_and_jang(gram, delta, C, epsilon, max_rounds=10**5):
    """Modified FSMO from alpha = 0; returns alpha, and whether no round was one of pairs."""
    m = len(delta)
    alpha, unbounded = np.zeros(m), True
    for _ in range(max_rounds):
        changed = False
        if alpha.sum() < C * (1.0 - 1e-14):
            for k in range(m):
                g = delta[k] - gram[k] @ alpha
                if (g > epsilon and alpha[k] < C) or (g < -epsilon and alpha[k] > 0.0):
                    s = max(-alpha[k], min(C - alpha.sum(), g / gram[k, k]))  # (9), (10)
                    alpha[k] += s
                    changed = changed or s != 0.0
        else:
            unbounded = False
            g = delta - gram @ alpha
            u = int(np.argmax(g))
            square = gram[u, u] + np.diag(gram) - 2.0 * gram[u]
            merits = np.full(m, -np.inf)
            able = (alpha > 0.0) & (np.arange(m) != u)
            merits[able] = (g[u] - g[able]) ** 2 / square[able]
            v = int(np.argmax(merits))
            if able.any() and g[u] - g[v] > epsilon:
                s = min(alpha[v], (g[u] - g[v]) / square[v])  # (11), (12)
                alpha[u] += s
                alpha[v] = alpha[v] - s if alpha[v] - s > 1e-14 * C else 0.0  # rounding
                changed = s > 0.0
        if not changed:
            break
    return alpha, unbounded


def random_master(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 8))
    planes = rng.normal(size=(m, 12)) + rng.normal(size=12)
    return planes @ planes.T, rng.uniform(0.1, 3.0, m), float(10 ** rng.uniform(-2, 2))


def dual_of(gram, delta, alpha):
    return float(delta @ alpha - 0.5 * alpha @ gram @ alpha)


@pytest.mark.nojit
@given(seed=seeds, epsilon=st.sampled_from([1e-1, 1e-3, 1e-6]))
def test_fsmo_is_algorithm_2_while_the_bound_is_not_reached(seed, epsilon):
    gram, delta, C = random_master(seed)
    expected, unbounded = algorithm_2_of_lee_and_jang(gram, delta, 1e3 * C, epsilon)
    assume(unbounded and expected.sum() < 999.0 * C)
    m = len(delta)
    alpha, scores = np.zeros(m), delta.copy()
    fsmo(gram, scores, alpha, m, 1e3 * C, 0.0, epsilon, 10**5)
    assert alpha == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert scores == pytest.approx(delta - gram @ alpha, abs=1e-7)


@pytest.mark.nojit
@given(seed=seeds)
def test_fsmo_at_the_bound_is_as_good_as_algorithm_2(seed):
    """Pairs are chosen otherwise there, and weight may be given up: see `fsmo`."""
    gram, delta, C = random_master(seed)
    m, epsilon = len(delta), 1e-7
    expected, _ = algorithm_2_of_lee_and_jang(gram, delta, C, epsilon)
    alpha, scores = np.zeros(m), delta.copy()
    gap = fsmo(gram, scores, alpha, m, C, 0.0, epsilon, 10**5)
    ours, theirs = dual_of(gram, delta, alpha), dual_of(gram, delta, expected)
    precision = 4.0 * epsilon * C
    assert alpha.min() >= 0.0 and alpha.sum() <= C * (1.0 + 1e-12)
    assert gap <= precision + 1e-9 and ours >= theirs - precision - 1e-9
    if (delta - gram @ expected).max() >= -epsilon:  # else their rule has ended too early
        assert ours == pytest.approx(theirs, abs=precision + 1e-9)


def bounded_rounds(gram, delta, C, epsilon, alpha):
    """Lines 11 to 16 from alpha, with each choice of plane and partner that rounding may make."""
    g = delta - gram @ alpha
    for u in np.flatnonzero(g >= g.max() - NEAR):
        able = np.flatnonzero((alpha > 0.0) & (np.arange(len(alpha)) != u))
        square = gram[u, u] + np.diag(gram) - 2.0 * gram[u]
        merits = (g[u] - g[able]) ** 2 / square[able]
        for v in able[merits >= merits.max(initial=0.0) * (1.0 - 1e-6)]:
            found = alpha.copy()
            if g[u] - g[v] > epsilon:
                s = min(alpha[v], (g[u] - g[v]) / square[v])  # (11), (12)
                found[u] += s
                found[v] -= s
            yield found


@pytest.mark.nojit
@given(seed=seeds, epsilon=st.sampled_from([1e-1, 1e-3]))
def test_the_printed_rule_can_be_had(seed, epsilon):
    """Algorithm 2 round by round, at the bound too, where two scores are equal after every step."""
    gram, delta, C = random_master(seed)
    m = len(delta)
    alpha, scores = np.zeros(m), delta.copy()
    for _ in range(50):
        before = alpha.copy()
        printed_fsmo(gram, scores, alpha, m, C, epsilon, 1)
        assert scores == pytest.approx(delta - gram @ alpha, abs=1e-9)
        if before.sum() < C * (1.0 - 1e-14):
            for k in range(m):
                g = delta[k] - gram[k] @ before
                if (g > epsilon and before[k] < C) or (g < -epsilon and before[k] > 0.0):
                    before[k] += max(-before[k], min(C - before.sum(), g / gram[k, k]))
            possible = [before]
        else:
            possible = list(bounded_rounds(gram, delta, C, epsilon, before)) or [before]
        assert min(np.abs(alpha - own).max() for own in possible) <= 1e-9 * C


@pytest.mark.nojit
@given(seed=seeds, threshold=st.sampled_from([1e-2, 1e-9]))
def test_smo_solves_the_master(seed, threshold):
    gram, delta, C = random_master(seed)
    m = len(delta)
    alpha, scores = np.zeros(m), delta.copy()
    gap = smo(gram, scores, alpha, m, C, 0.0, threshold, 10**6)
    assert alpha.min() >= 0.0 and alpha.sum() <= C * (1.0 + 1e-12)
    assert scores == pytest.approx(delta - gram @ alpha, abs=1e-7)
    held = [0.0] * bool(alpha.sum() < C * (1.0 - 1e-12)) + list(scores[alpha > 0.0])
    assert max(0.0, scores.max()) - min(held) <= threshold + 1e-12
    assert gap <= C * threshold + 1e-9
    best, again = np.zeros(m), delta.copy()
    fsmo(gram, again, best, m, C, 1e-12, 0.0, 10**5)
    assert dual_of(gram, delta, alpha) >= dual_of(gram, delta, best) - C * threshold - 1e-9


def test_the_printed_algorithm_2_may_end_at_the_bound():
    """Single steps spend all weight, a pair step makes both scores negative, none is given back."""
    gram, delta, C = np.array([[1.0, 0.9], [0.9, 1.0]]), np.ones(2), 1.07
    printed, _ = algorithm_2_of_lee_and_jang(gram, delta, C, 1e-9)
    assert printed.sum() == pytest.approx(C) and (delta - gram @ printed).max() < -0.01
    alpha, scores = np.zeros(2), delta.copy()
    printed_fsmo(gram, scores, alpha, 2, C, 1e-9, 1000)
    assert alpha == pytest.approx(printed)
    alpha, scores = np.zeros(2), delta.copy()
    fsmo(gram, scores, alpha, 2, C, 0.0, 1e-9, 1000)
    assert alpha == pytest.approx([1.0 / 1.9] * 2)
    assert dual_of(gram, delta, alpha) > dual_of(gram, delta, printed) + 1e-4


# ----- Tsochantaridis et al. 2005 ----------------------------------------------------------------


class Exact(NSlack):
    """Variant (b) with every optimisation carried to the end, and a list of what was added."""

    def _optimise(self, cutting, changed, missing, everything=False):
        sets = cutting.sets
        if not everything:
            self.steps.append((int(changed[0]), sets.n_planes))
        chosen = np.flatnonzero(sets.sets.count) if everything else np.unique(changed)
        for _ in range(10**5):
            if sets.improve(chosen, 1, 50).sum() <= 1e-12:
                return
        raise AssertionError("the working sets are not solved")

    @property
    def steps(self):
        return self.__dict__.setdefault("_steps", [])


def subspace_ascent(planes, working, alpha, blocks, C):
    """Maximise the dual over the multipliers of some blocks, by pairs, nearly exactly."""
    w = sum(
        (a * planes[i][1][y] for i in working for y, a in alpha[i].items()), 0.0 * planes[0][1][0]
    )
    for _ in range(10**5):
        largest = 0.0
        for i in blocks:
            b, A = planes[i]
            rest = C - sum(alpha[i].values())
            g = {y: b[y] - A[y] @ w for y in alpha[i]} | {None: 0.0}
            held = {y: a for y, a in alpha[i].items() if a > 0.0}
            if rest > 1e-14 * C:
                held[None] = rest
            u = max(g, key=lambda y: g[y])
            gap = C * g[u] - sum(a * g[y] for y, a in held.items())
            if gap <= 1e-13 or not held.keys() - {u}:
                continue
            largest = max(largest, gap)

            def move(v, u=u, g=g, held=held, A=A):
                d = (0.0 if u is None else A[u]) - (0.0 if v is None else A[v])
                step = min(held[v], (g[u] - g[v]) / max(float(np.sum(d * d)), 1e-300))
                return step * (g[u] - g[v]) - 0.5 * step**2 * float(np.sum(d * d)), step, d

            v = max((y for y in held if y != u), key=lambda y: move(y)[0])
            _, step, d = move(v)
            w = w + step * d
            if u is not None:
                alpha[i][u] += step
            if v is not None:
                alpha[i][v] = max(0.0, alpha[i][v] - step)
        if largest <= 1e-12:
            return w
    raise AssertionError("the blocks are not solved")


def algorithm_1(planes, C, epsilon, variant):
    """Variant (a), or (b) with all blocks at the end of each pass.

    Returns w, working sets, what was added, and whether rounding may have decided something.
    """
    n = len(planes)
    w, alpha, steps, tied = np.zeros(planes[0][1].shape[1]), [{} for _ in planes], [], False
    while True:
        changed = False
        for i, (b, A) in enumerate(planes):
            H = b - A @ w
            y = int(np.argmax(H))
            xi = max([0.0, *(H[k] for k in alpha[i])])
            tied |= abs(H[y] - xi - epsilon) <= 1e-6
            if H[y] > xi + epsilon:
                second = np.partition(H, -2)[-2] if len(H) > 1 else -np.inf
                tied |= H[y] - second <= 1e-6
                alpha[i][y] = 0.0
                changed = True
                steps.append((i, sum(len(a) for a in alpha)))
                w = subspace_ascent(planes, range(n), alpha, range(n) if variant == "a" else [i], C)
        if not changed:
            return w, alpha, steps, tied
        w = subspace_ascent(planes, range(n), alpha, range(n), C)


@given(seed=seeds)
def test_n_slack_with_single_constraints_is_algorithm_1(seed):
    """Variant (b): the same constraints, added in the same order."""
    case, formulation, C, epsilon = draw(seed, n=5)
    w, alpha, steps, tied = algorithm_1(all_planes(case.twin, formulation), C, epsilon, "b")
    solver = Exact(variant="subspace", qp="block", batch=1, inactive_limit=10**9, violation=epsilon)
    result = solver.solve(case.problem, formulation, C)
    assume(not tied)
    assert result.converged and solver.steps == steps
    assert result.n_planes == sum(len(a) for a in alpha)
    assert result.state.sets.w == pytest.approx(w, rel=1e-5, abs=1e-5)


class Logged(NSlack):
    """The published solver, and a list of what was added before each solution."""

    def _optimise(self, cutting, changed, missing, everything=False):
        if not everything:
            self.__dict__.setdefault("steps", []).append((int(changed[0]), cutting.sets.n_planes))
        super()._optimise(cutting, changed, missing, everything)


@pytest.mark.parametrize(("variant", "printed"), [("full", "a"), ("subspace", "b")])
@given(seed=seeds)
def test_published_n_slack_is_algorithm_1(variant, printed, seed):
    case, formulation, C, epsilon = draw(seed, n=5)
    w, alpha, steps, tied = algorithm_1(all_planes(case.twin, formulation), C, epsilon, printed)
    solver = Logged.published(variant=variant, violation=epsilon, kkt=1e-11)
    result = solver.solve(case.problem, formulation, C)
    assume(not tied)
    assert result.converged and solver.__dict__.get("steps", []) == steps
    assert result.n_planes == sum(len(a) for a in alpha)
    assert result.state.sets.w == pytest.approx(w, rel=1e-5, abs=1e-5)


# ----- Joachims, Finley & Yu 2009 ----------------------------------------------------------------


def algorithm_3(planes, C, epsilon, f=0):
    """Algorithm 3, or 4 where the planes are those of slack rescaling; Section 4's cache of f.

    Returns the w of every iteration, passes of the oracle, and whether rounding decided something.
    """
    n, d = len(planes), planes[0][1].shape[1]
    b, A, alpha = np.zeros(0), np.zeros((0, d)), {}
    caches = [[] for _ in planes]
    weights, passes, tied = [], 0, False
    while True:
        w = subspace_ascent([(b, A)], [0], [alpha], [0], C) if alpha else np.zeros(d)
        xi = max([0.0, *(b - A @ w)])
        H = [offsets - own @ w for offsets, own in planes]

        def plane(chosen, H=H, w=w):
            """The sum of the chosen planes over n, the true outputs' being zero."""
            picked = [(i, y) for i, y in enumerate(chosen) if y is not None and H[i][y] > 0.0]
            return (
                sum((planes[i][0][y] for i, y in picked), 0.0) / n,
                sum((planes[i][1][y] for i, y in picked), np.zeros(d)) / n,
                picked,
            )

        found = [
            max(own, key=lambda y: h[y], default=None) for own, h in zip(caches, H, strict=True)
        ]
        offset, a, picked = plane(found)
        for own, h in zip(caches, H, strict=True):
            ranked = np.sort([0.0, *h[own]])
            tied |= len(ranked) > 1 and ranked[-1] - ranked[-2] <= 1e-6
        tied |= f > 0 and abs(offset - a @ w - xi - epsilon) <= 1e-6
        if f == 0 or offset - a @ w <= xi + epsilon:
            passes += 1
            for h in H:
                ranked = np.sort([0.0, *h])
                tied |= len(ranked) > 1 and ranked[-1] - ranked[-2] <= 1e-6
            offset, a, picked = plane([int(np.argmax(h)) for h in H])
            tied |= abs(offset - a @ w - xi - epsilon) <= 1e-6
        weights.append(w)
        for i, y in picked:
            caches[i] = [y, *(z for z in caches[i] if z != y)][:f]
        if offset - a @ w <= xi + epsilon:
            return weights, passes, tied
        alpha[len(b)] = 0.0
        b, A = np.append(b, offset), np.vstack([A, a])


class Weights(WeightsCallback):
    """The weights of every iteration."""

    def __init__(self):
        self.seen = []

    def __call__(self, progress, weights=None):
        self.seen.append(weights().copy())


@pytest.mark.parametrize("compact", [True, False], ids=["own pool", "planes"])
@pytest.mark.parametrize("f", [0, 2])
@given(seed=seeds)
def test_published_one_slack_is_algorithm_3_or_4(f, compact, seed):
    case, formulation, C, epsilon = draw(seed, n=5)
    planes = all_planes(case.twin, formulation)
    expected, passes, tied = algorithm_3(planes, C_to_paper(C, 5, "joachims"), epsilon, f)
    watching = Weights()
    result = OneSlack.published(violation=epsilon, kkt=1e-11, cache_size=f).solve(
        case.problem if compact else bare(case.problem), formulation, C, callbacks=[watching]
    )
    assume(not tied)
    assert result.status == "converged" and result.n_oracle_calls == 5 * passes
    assert len(watching.seen) == len(expected)
    for ours, theirs in zip(watching.seen, expected, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-4)
    assert result.w == pytest.approx(expected[-1], rel=1e-4, abs=1e-4)


# ----- Chang & Yih 2013 --------------------------------------------------------------------------


class ChangYih:
    """Variables of Algorithms 1 to 3, which replay the order in which a solver visits examples."""

    def __init__(self, planes, C, delta):
        self.planes, self.C, self.delta = planes, C, delta
        self.alpha = [{} for _ in planes]  # those of the working sets
        self.w = np.zeros(planes[0][1].shape[1])
        self.tied = False

    def swept(self, i, order):
        """Algorithm 1 in this order; returns alpha_i and w."""
        (b, A), alpha, w = self.planes[i], dict(self.alpha[i]), self.w
        for y in order:
            slope = b[y] - A[y] @ w - sum(alpha.values()) / (2.0 * self.C)
            d = slope / (A[y] @ A[y] + 1.0 / (2.0 * self.C))
            new = max(alpha[y] + d, 0.0)
            w = w + (new - alpha[y]) * A[y]
            alpha[y] = new
        return alpha, w

    def update_weight(self, i, w, newest=None):
        """Algorithm 1 in the order that leads to w, which shuffling may have chosen."""
        rest = [y for y in self.alpha[i] if y != newest]
        first = [] if newest is None else [newest]
        found = [self.swept(i, [*first, *order]) for order in permutations(rest)]
        self.alpha[i], own = min(found, key=lambda result: np.abs(result[1] - w).max())
        self.w = w  # rounding must not pile up
        return np.allclose(own, w, rtol=1e-7, atol=1e-7)  # gaps of 1e-16 are left alone

    def call_oracle(self, i):
        """Lines 5 to 8 of Algorithm 2; returns the structure added, if any."""
        b, A = self.planes[i]
        H = b - A @ self.w
        y = int(np.argmax(H))
        slope = H[y] - sum(self.alpha[i].values()) / (2.0 * self.C)
        ranked = np.sort([*H, 0.0])
        self.tied |= ranked[-1] - ranked[-2] <= NEAR or abs(slope - self.delta) <= NEAR
        if slope < self.delta or y in self.alpha[i] or H[y] <= 0.0:
            return None
        self.alpha[i][y] = 0.0
        return y


@pytest.mark.parametrize("compact", [True, False], ids=["own store", "planes"])
@pytest.mark.parametrize(("solver", "r"), [(DCDLight, 0), (DCD, 5)])
@given(seed=seeds)
def test_published_dcd_is_algorithm_2_or_3(solver, r, compact, seed):
    """Every visit leads to the weights that Algorithm 1 leads to, in some order."""
    case, _, C, delta = draw(seed)
    formulation = Formulation("margin", "l2", sqrt_loss=False)
    printed = ChangYih(all_planes(case.twin, formulation), C, delta)
    n, T, events = 6, 4, []

    class Watching(solver):
        """The same, whose passes are made of single visits, which are noted."""

        def start(self, request):
            run = super().start(request)
            for name in ("oracle_pass", "cached_pass"):
                setattr(run, name, noting(run, name, getattr(run, name)))
            return run

    def noting(run, name, visit):
        def visits(examples, rule):
            found = []
            for i in examples:
                found.append(visit(np.array([i]), rule))
                events.append((name, int(i), run.store.w.copy()))
            return np.concatenate(found) if name == "cached_pass" else None

        return visits

    made = Watching.published(delta=delta, max_passes=T)
    problem = case.problem if compact else bare(case.problem)
    result = made.solve(problem, formulation, C)
    for t in range(len(events) // ((r + 1) * n)):
        for j in range(r + 1):
            at = (t * (r + 1) + j) * n
            visits = events[at : at + n]
            assert {name for name, _, _ in visits} == {"oracle_pass" if j == r else "cached_pass"}
            assert sorted(i for _, i, _ in visits) == list(range(n))
            for name, i, w in visits:
                newest = printed.call_oracle(i) if name == "oracle_pass" else None
                close = printed.update_weight(i, w, newest)
                assume(close or not printed.tied)
                assert close
    stored = result.history[-2].planes  # the last pass only certifies
    assert stored == sum(len(alpha) for alpha in printed.alpha) or printed.tied
    assert result.w == pytest.approx(printed.w, rel=1e-9, abs=1e-9)
    assert len(events) == T * (r + 1) * n or result.relative_gap <= 1e-9  # the optimum
