"""KernelMap: inner products of its features are the kernel's values, or as near as it says."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from maxmargin.features import KernelMap
from maxmargin.features.kernels import functions as kernel_basis
from maxmargin.features.kernels import map as kernel_map
from maxmargin.features.kernels import pivoted_cholesky

BASES = kernel_map.BASES


def rows(seed, n=30, d=4, repeated=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    X[n - repeated :] = X[:repeated]
    return X


def classes(X):
    """Two, not linearly separable."""
    return (np.abs(X[:, 0]) > 0.7).astype(int)


def values(kernel, X, Y=None):
    """By definition."""
    Y = X if Y is None else Y
    if kernel == "rbf":
        return np.exp(-0.3 * ((X[:, None] - Y) ** 2).sum(axis=2))
    return (0.3 * X @ Y.T + 1.0) ** 2 if kernel == "poly" else X @ Y.T


def make(kernel, **parameters):
    return KernelMap(kernel, gamma=0.3, degree=2, coef0=1.0, **parameters)


@pytest.mark.parametrize("model", [KernelMap(), KernelMap(n_components=5, basis="supports")])
def test_check_estimator(model):
    results = check_estimator(model, on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] in ("failed", "xfail")] == []


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kernel=st.sampled_from(["linear", "poly", "rbf"]),
    basis=st.sampled_from(BASES),
    n=st.integers(1, 300),
    repeated=st.integers(0, 3),
    block=st.sampled_from([1, 3, 128]),
)
def test_full_rank_is_exact(seed, kernel, basis, n, repeated, block):
    X, new = rows(seed, n, repeated=min(repeated, n // 2)), rows(seed + 1, 7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pivoted_cholesky, "BLOCK", block)
        patch.setattr(pivoted_cholesky, "FIRST_WIDTH", 4)
        fitted = make(kernel, basis=basis, random_state=seed)
        Z = fitted.fit_transform(X, classes(X))
    K = values(kernel, X)
    assert np.abs(Z @ Z.T - K).max() < 1e-8 * K.max()
    assert Z.flags.c_contiguous and Z.shape[1] <= n - min(repeated, n // 2)
    assert kernel == "rbf" or Z.shape[1] <= {"linear": 4, "poly": 15}[kernel]
    assert fitted.trace_residual_ == pytest.approx(np.trace(K - Z @ Z.T), abs=1e-8 * np.trace(K))
    assert fitted.trace_residual_share_ <= 1e-10
    assert np.allclose(fitted.transform(X), Z, atol=1e-5)  # divided by small pivots
    assert np.allclose(fitted.transform(new) @ Z.T, values(kernel, new, X), atol=1e-6 * K.max())


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kernel=st.sampled_from(["poly", "rbf"]),
    basis=st.sampled_from(BASES),
    n_components=st.integers(1, 12),
    block=st.sampled_from([2, 128]),
)
def test_the_residual_is_a_bound(seed, kernel, basis, n_components, block):
    X = rows(seed, 40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pivoted_cholesky, "BLOCK", block)
        patch.setattr(kernel_map, "LEAST", 4)
        fitted = make(kernel, n_components=n_components, basis=basis, random_state=seed)
        Z = fitted.fit_transform(X, classes(X))
    K = values(kernel, X)
    missing = K - Z @ Z.T
    assert Z.shape == (40, n_components) == (40, len(set(fitted.basis_indices_.tolist())))
    assert fitted.trace_residual_ == pytest.approx(np.trace(missing))
    assert fitted.trace_residual_share_ == pytest.approx(np.trace(missing) / np.trace(K))
    assert np.linalg.eigvalsh(missing)[0] > -1e-9 * np.trace(K)
    assert np.abs(missing).max() <= fitted.trace_residual_ * (1 + 1e-9) + 1e-9
    # Nystroem's approximation from the same basis, however that was factored.
    B = fitted.basis_indices_
    assert np.allclose(Z @ Z.T, K[:, B] @ np.linalg.pinv(K[B][:, B], 1e-13) @ K[B], atol=1e-5)
    assert np.allclose(fitted.factor_ @ fitted.factor_.T, K[B][:, B])
    assert np.array_equal(fitted.factor_, np.tril(fitted.factor_))


def test_greedy_pivots_are_near_the_worst_rows(monkeypatch):
    monkeypatch.setattr(pivoted_cholesky, "BLOCK", 8)
    X = rows(0, 200)
    K = values("rbf", X)
    Z = (fitted := make("rbf", n_components=60)).fit_transform(X)
    for m, pivot in enumerate(fitted.basis_indices_):
        left = np.diag(K) - (Z[:, :m] ** 2).sum(axis=1)
        assert left[pivot] >= 0.5 * left.max()
    # So the error is less than that of rows drawn at random.
    drawn = make("rbf", n_components=60, basis="random", random_state=0).fit(X)
    assert fitted.trace_residual_ < drawn.trace_residual_


def test_kmeans_draws_rows_far_from_each_other():
    """From one large cluster and some small ones: few of all rows, many of the distances."""
    clusters = np.repeat(np.arange(6), [500, 5, 5, 5, 5, 5])
    X = 40.0 * np.eye(6)[clusters] + 0.01 * rows(0, len(clusters), 6)
    found = {"random": 0, "kmeans++": 0}
    for basis in found:
        for seed in range(10):
            drawn = KernelMap(n_components=24, basis=basis, gamma=0.01, random_state=seed).fit(X)
            found[basis] += len(set(clusters[drawn.basis_indices_].tolist()))
    assert found["kmeans++"] >= 58 and found["random"] <= 40


def test_supports_are_rows_near_the_boundary():
    """Between two classes there is a sparse zone: random rows are rarely there."""
    X = rows(0, 2000, 2)
    y = (X[:, 0] > 0).astype(int)
    distance = np.abs(X[:, 0])
    far = {}
    for basis in BASES:
        fitted = KernelMap(gamma=1.0, n_components=30, basis=basis, random_state=0).fit(X, y)
        far[basis] = float(np.median(distance[fitted.basis_indices_]))
    assert far["supports"] < 0.1 < 0.5 < min(far[basis] for basis in BASES[:-1])
    # Any names of classes do, and any kernel that has values.
    named = KernelMap(gamma=1.0, n_components=30, basis="supports", random_state=0)
    expected = named.fit(X, y).basis_indices_
    assert np.array_equal(named.fit(X, np.array(["no", "yes"])[y]).basis_indices_, expected)
    given_values = clone(named).set_params(kernel="precomputed").fit(rbf_kernel(X, gamma=1.0), y)
    assert np.array_equal(given_values.basis_indices_, expected)
    # The scale of the kernel does not matter to the first model, either.
    own = clone(named).set_params(kernel=lambda X, Y: 100.0 * rbf_kernel(X, Y, gamma=1.0)).fit(X, y)
    assert np.array_equal(own.basis_indices_, expected)


def test_supports_that_say_too_little():
    """A basis goes on with other rows where nothing is left of those near the boundary."""
    X = np.concatenate([np.zeros((60, 3)), np.repeat(np.eye(3), 20, axis=0)])
    y = np.repeat([0, 1, 0, 1], [30, 30, 30, 30])  # only the first 60 are confused
    fitted = KernelMap("linear", n_components=3, basis="supports", random_state=0)
    Z = fitted.fit_transform(X, y)
    assert np.allclose(Z @ Z.T, X @ X.T)
    one_class = KernelMap(n_components=5, basis="supports", random_state=0).fit(
        rows(0, 200), [1] * 200
    )
    assert len(one_class.basis_indices_) == 5


def test_supports_need_classes():
    for y in (None, np.linspace(0, 1, 30)):
        with pytest.raises(ValueError, match=r"requires y to be passed|continuous"):
            KernelMap(basis="supports").fit(rows(0), y)


@pytest.mark.parametrize("basis", BASES)
def test_the_same_seed_gives_the_same_bits(basis):
    X = rows(0, 300)
    y = classes(X)
    first, second = (
        make("rbf", n_components=50, basis=basis, random_state=3).fit_transform(X, y)
        for _ in range(2)
    )
    assert np.array_equal(first, second)
    other = make("rbf", n_components=50, basis=basis, random_state=4).fit_transform(X, y)
    assert np.array_equal(first, other) == (basis == "pivots")


def test_named_precomputed_and_own_kernels_are_the_same():
    X, new = rows(0, 60), rows(1, 9)
    named = KernelMap("poly", gamma=0.3, degree=2, coef0=1.0, n_components=10)
    params = {"gamma": 0.3, "degree": 2, "coef0": 1.0}
    own = KernelMap(polynomial_kernel, kernel_params=params, n_components=10)
    K, across = values("poly", X), values("poly", new, X)
    given_values = KernelMap("precomputed", n_components=10)
    Z = named.fit_transform(X)
    assert np.allclose(own.fit_transform(X), Z) and np.allclose(given_values.fit_transform(K), Z)
    assert np.allclose(own.transform(new), named.transform(new))
    assert np.allclose(given_values.transform(across), named.transform(new))
    sparse = KernelMap("precomputed", n_components=10).fit(sp.csr_matrix(K))
    assert np.allclose(sparse.transform(sp.csr_matrix(across)), named.transform(new))


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_sparse_rows_are_the_same_data(kernel):
    X = rows(0, 50) * (rows(1, 50) > 0)
    dense, sparse = KernelMap(kernel), KernelMap(kernel)
    Z = dense.fit_transform(X)
    S = sparse.fit_transform(sp.csr_matrix(X))
    assert sparse.basis_.kernel.gamma == pytest.approx(dense.basis_.kernel.gamma)
    assert np.allclose(S @ S.T, Z @ Z.T)
    assert sp.issparse(sparse.basis_.vectors) and sparse.n_bytes_ > 0
    assert np.allclose(sparse.transform(sp.csr_matrix(X)) @ S.T, Z @ Z.T)


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.2])
def test_gamma_is_that_of_scikit_learn(gamma):
    X, y = rows(0, 60), np.arange(60) % 2
    peer = SVC(gamma=gamma).fit(X, y)
    Z = (fitted := KernelMap("rbf", gamma=gamma)).fit_transform(X)
    assert fitted.basis_.kernel.gamma == pytest.approx(peer._gamma)
    assert np.allclose(Z @ Z.T, rbf_kernel(X, gamma=peer._gamma))


def test_single_precision_stays_single():
    X = rows(0, 200)
    Z = (fitted := make("rbf")).fit_transform(X.astype(np.float32))
    assert Z.dtype == fitted.transform(X.astype(np.float32)).dtype == np.float32
    assert np.abs(Z @ Z.T - values("rbf", X)).max() < 1e-3


def test_rows_are_transformed_some_at_a_time(monkeypatch):
    X = rows(0, 50)
    Z = (fitted := make("rbf", n_components=9)).fit_transform(X)
    monkeypatch.setattr(kernel_basis, "VALUES_AT_A_TIME", 40)
    assert np.allclose(fitted.transform(X), Z)


def test_coefficients_are_those_of_the_basis():
    X, new = rows(0, 40), rows(1, 5)
    fitted = make("rbf", n_components=12).fit(X)
    w = rows(2, 12, 3)
    across = values("rbf", new, X[fitted.basis_indices_])
    assert np.allclose(across @ fitted.coefficients(w), fitted.transform(new) @ w)


def test_in_pipelines_and_before_other_learners():
    X = rows(0, 120)
    y = (np.abs(X[:, 0]) > 0.7).astype(int)
    model = make_pipeline(KernelMap(gamma=0.5, n_components=60), LinearSVC(C=10.0)).fit(X, y)
    assert model.score(X, y) > 0.9 > LinearSVC(C=10.0).fit(X, y).score(X, y)
    assert list(model[:-1].get_feature_names_out()[:2]) == ["kernelmap0", "kernelmap1"]
    assert clone(model).fit(X, y).score(X, y) == model.score(X, y)
    # All of the variance is there: the same as that which kernel PCA finds.
    Z = KernelMap(gamma=0.5).fit_transform(X)
    peer = KernelPCA(kernel="rbf", gamma=0.5).fit(X).eigenvalues_
    own = np.linalg.eigvalsh((Z - Z.mean(axis=0)) @ (Z - Z.mean(axis=0)).T)[::-1]
    assert np.allclose(own[: len(peer)], peer, atol=1e-8)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "rfb"}, "kernel must be one of .*'rfb'"),
        ({"gamma": -1.0}, "gamma must be finite and >= 0, got -1"),
        ({"gamma": "large"}, "gamma must be 'scale', 'auto' or a number >= 0, got 'large'"),
        ({"kernel": "poly", "degree": 1.5}, "degree must be a whole number from 0 to .*, got 1.5"),
        (
            {"kernel": "poly", "degree": True},
            "degree must be a whole number from 0 to .*, got True",
        ),
        ({"kernel": "poly", "degree": 999}, "value of row .* with itself is inf"),
        ({"kernel": "poly", "coef0": np.inf}, "coef0 must be a finite number, got inf"),
        ({"kernel": laplacian_kernel, "kernel_params": 3}, "kernel_params must be a dict, got 3"),
        ({"n_components": 0}, "n_components must be None or a whole number >= 1, got 0"),
        ({"n_components": 2.0}, "n_components must be None or a whole number >= 1, got 2.0"),
        ({"basis": "best"}, "basis must be one of .*got 'best'"),
        ({"tol": -1}, "tol must be at least 0 and below 1, got -1"),
        ({"kernel": "precomputed"}, r"square matrix; got shape \(30, 4\)"),
        ({"kernel": lambda X, Y: X[:, :1]}, r"shape \(30, 1\), expected \(30, 30\)"),
        ({"kernel": lambda X, Y: np.log(X @ Y.T)}, "kernel gave nan for rows"),
        ({"kernel": lambda X, Y: X @ Y.T + 0j}, "values of type complex128, expected real numbers"),
        ({"kernel": lambda X, Y: -(X @ Y.T)}, "not positive semidefinite: its value of row .* -"),
        ({"kernel": lambda X, Y: 0 * X @ Y.T}, "with themselves are zero"),
        ({"kernel": lambda X, Y: 1 + np.abs(X[:, :1] - Y[:, 0])}, "not positive semidefinite"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_errors(parameters, message):
    with pytest.raises(ValueError, match=message):
        KernelMap(**parameters).fit(rows(0))


def test_values_too_large_for_single_precision():
    X = (1e3 * rows(0)).astype(np.float32)
    with pytest.raises(ValueError, match="kernel gave inf for rows"):
        KernelMap("poly", degree=8, gamma=1.0).fit(X)


def test_degree_zero_is_a_constant():
    fitted = KernelMap("poly", degree=0)
    assert np.array_equal(fitted.fit_transform(rows(0)), np.ones((30, 1)))


def test_rounding_may_leave_no_kernel():
    with pytest.raises(ValueError, match=r"not positive semidefinite: .*centre them"):
        KernelMap("rbf", gamma=0.3).fit(np.repeat(rows(0), 2, axis=0) + 1e7)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_values_of_rows_that_no_pivot_shows(layout):
    """Rows 0 and 1 have no length, so that they are never pivots."""
    K = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    message = "not positive semidefinite: the value of rows 0 and 1 is 1.0, .* are 0.0 and 0.0"
    with pytest.raises(ValueError, match=message):
        KernelMap("precomputed").fit(layout(K))


def test_errors_of_precomputed_values():
    K = values("rbf", rows(0))
    K[3, 5] += 0.1
    with pytest.raises(ValueError, match=r"not symmetric: entry \[3, 5\] is .*, \[5, 3\] is"):
        KernelMap("precomputed").fit(K)
    with pytest.raises(ValueError, match="features"):
        KernelMap("precomputed").fit(values("rbf", rows(0))).transform(K[:, :5])
