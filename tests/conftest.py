"""Shared fixtures: benchmark data and hypothesis profiles."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Exact QPs of small problems take threads of the library ten times as long, for they wait for each
# other by spinning, beside other workers. Read when numpy is loaded, which is not yet the case.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

REPOSITORY = Path(__file__).resolve().parents[1]

# The first call of a kernel compiles it, which no deadline or "too slow" check should count.
_COMMON = {
    "deadline": None,
    "max_examples": 25,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("dev", **_COMMON)
settings.register_profile("ci", derandomize=True, **_COMMON)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

#: Files of the slow tier. The others cover every estimator and solver in a minute or so:
#: ``pytest -m "not slow"``.
SLOW = """
    alignment_estimator bad_input benchmarks_quick chain_store checkpoint_groups checkpoints
    class_sharding cli_checkpoints cli_streaming cli_tasks cluster compiling confidence
    convergence cores damaged_sparse damaged_text dropins estimators_multiclass
    every_structure forged_files general_problems grammar_parser inexact_searches
    input_memory jit_cache joint_kernel joint_solvers loose_bounds measures mira_k_best
    notebook_conventions online_steps packed_problems partial_fit_log persistence
    plane_memory plane_store processes report_browser reproducibility sharding solver_runs
    squared_slack start stored_sequences theorem_bounds warm_up weight_constraints
""".split()


def pytest_collection_modifyitems(items):
    """Mark the slow tier."""
    for item in items:
        if item.path.stem.removeprefix("test_") in SLOW:
            item.add_marker("slow")


def pytest_addoption(parser):
    parser.addoption(
        "--all-combinations",
        action="store_true",
        help="train every solver on every structure with every loss and formulation",
    )


def pytest_configure(config):
    """A job in the background inherits deaf ears for Ctrl-C; tests and their children must not."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def default_signals():
    """Signals that end a process do so, whatever the shell, nohup or a runner has ignored."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, signal.SIG_DFL) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def pytest_runtest_setup(item):
    """Estimators without a seed draw theirs here: no outcome may depend on luck."""
    import numpy as np

    np.random.seed(0)  # noqa: NPY002


def data_root():
    """Folder of the benchmark data: $MAXMARGIN_DATA, or shared/data next to the repository."""
    chosen = os.environ.get("MAXMARGIN_DATA")
    return Path(chosen) if chosen else REPOSITORY.parent / "shared" / "data"


def find_data(name):
    """Path of benchmark data such as "usps/usps.npz"; skips the test if it is absent."""
    path = data_root() / name
    if not path.exists():
        pytest.skip(
            f"no benchmark data {name!r} in {data_root()}: set MAXMARGIN_DATA to its folder"
        )
    return path


@pytest.fixture(scope="session")
def data_dir():
    """Folder of the benchmark data; skips the test if it is absent."""
    return find_data(".")


@pytest.fixture(scope="session")
def corpus_and_model(tmp_path_factory):
    """A corpus and the model of a tagger trained on it, as bytes."""
    from cli_corpus import write_corpus
    from maxmargin.cli import main

    folder = tmp_path_factory.mktemp("good")
    corpus, model = write_corpus(folder / "ok.txt", 10), folder / "model.mm"
    assert main(["train", "tag", str(corpus), "-o", str(model), "-q"]) == 0
    return corpus.read_bytes(), model.read_bytes()


@pytest.fixture
def corpus_folder(corpus_and_model, tmp_path, monkeypatch):
    """A fresh folder with ok.txt and model.mm, which is the current one."""
    (tmp_path / "ok.txt").write_bytes(corpus_and_model[0])
    (tmp_path / "model.mm").write_bytes(corpus_and_model[1])
    monkeypatch.chdir(tmp_path)
    return tmp_path
