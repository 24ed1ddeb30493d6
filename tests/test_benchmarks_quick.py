"""The benchmarks on tiny slices: everything runs, and peers agree with us on the objective."""

import dataclasses
import itertools
import json
import subprocess
import sys

import numpy as np
import pytest

from conftest import REPOSITORY, find_data


@pytest.fixture
def bench(monkeypatch):
    """Modules of the benchmarks, which are not installed, by name."""
    monkeypatch.syspath_prepend(str(REPOSITORY))
    import importlib

    return lambda name: importlib.import_module(f"benchmarks.{name}")


def run_quick(folder, repeat, *arguments):
    """Run the command; its table and its record."""
    command = [sys.executable, "-m", "benchmarks", "run", *arguments]
    command += ["--quick", "--repeat", str(repeat), "--output", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (record,) = folder.glob("run-*.json")
    return done.stdout, json.loads(record.read_text())


def test_classes_and_their_peer(tmp_path):
    find_data("usps/usps.npz")
    table, record = run_quick(tmp_path, 2, "usps")
    cases = {case["name"]: case["contestants"] for case in record["benchmarks"]["usps"]}
    assert len(cases) == 6 and all(name in table for name in cases)
    for name, contestants in cases.items():
        for label, contestant in contestants.items():
            assert len(contestant["runs"]) == 2, (name, label)
            assert contestant["median"]["relative_gap"] >= 0, (name, label)
    compared = [contestants for contestants in cases.values() if "LinearSVC" in contestants]
    assert len(compared) == 2
    for contestants in compared:
        # Two programs that share no code find the same optimum, so weights are read correctly.
        values = [contestants[label]["median"]["primal"] for label in ("auto", "LinearSVC")]
        assert values[0] == pytest.approx(values[1], rel=2.5e-3)
    assert (tmp_path / "usps.png").stat().st_size > 1000
    assert str(REPOSITORY) not in json.dumps(record)


@pytest.mark.slow
def test_chains(tmp_path):
    for name in ("conll2000/train.txt.xz", "conll2000/test.txt.xz", "ocr_letters/letters.npz"):
        find_data(name)
    table, record = run_quick(tmp_path, 1, "conll2000", "ocr", "--solvers", "auto")
    assert "peak memory" in table
    cases = {case["name"]: case for case in record["benchmarks"]["conll2000"]}
    assert len(cases) >= 5 and len(record["benchmarks"]["ocr"]) >= 6
    certified = cases["CoNLL-2000 C_paper = 1000, epsilon = 0.1"]
    assert certified["examples"] == 100
    for contestant in certified["contestants"].values():
        median = contestant["median"]
        assert (median["primal"] - median["dual"]) / 1000 <= 0.1
        assert median["f1"] > 75


@pytest.mark.slow
def test_squared_slacks_and_entities(tmp_path):
    for name in ("conll2000/train.txt.xz", "ocr_letters/letters.npz", "conll2002/esp.train.xz"):
        find_data(name)
    table, record = run_quick(tmp_path, 1, "dcd", "conll2002", "--no-peers")
    figure, _, grid = record["benchmarks"]["dcd"]
    # Bounds from three runs on one optimum: no primal value may lie below any dual value.
    runs = [contestant["median"] for contestant in figure["contestants"].values()]
    assert len(runs) == 3 and len(grid["contestants"]) == 18
    assert max(run["dual"] for run in runs) <= min(run["primal"] for run in runs)
    assert min(run["relative_gap"] for run in runs) <= 0.01
    assert all(one["median"]["f1"] > 75 for one in grid["contestants"].values())
    assert "entity F1" in table and (tmp_path / "dcd.png").stat().st_size > 1000


def test_tolerances(bench):
    find_data("usps/usps.npz")
    options = bench("case").Options(quick=True, only="USPS, C = 0.1")
    (case,) = bench("tolerance").cases(options)  # other data sets are not even read
    report = bench("runner").run_case(case, repeat=1)
    runs = {label: run for label, (run,) in report.runs.items()}
    assert list(runs) == ["tol = 0.1", "tol = 0.01", "tol = 0.003", "tol = 0.001"]
    for label, run in runs.items():
        assert run["gap"] <= float(label[6:]) and run["score"] > 60.0
    assert runs["tol = 0.001"]["gap"] < runs["tol = 0.1"]["gap"]


def test_targets(bench):
    Target = bench("case").Target
    limited = Target("time", "auto", "cpu", unit="s", at_most=6, note="aim: 3 s")
    assert limited.must == "<= 6 s (aim: 3 s)"
    assert limited.holds(6.0) and not limited.holds(6.1)
    assert Target("F1", "auto", "f1", at_least=93.5).holds(93.4) is False
    assert Target("passes", "auto", "passes").holds(1e9) is None


def test_ratios_are_taken_within_a_repeat(bench):
    timing = bench("timing")
    ours = [{"cpu": 1.0}, {"cpu": 10.0}, {"cpu": 2.0}]
    peers = [{"cpu": 4.0}, {"cpu": 40.0}, {"cpu": 8.0}]
    assert timing.median_ratio(ours, "cpu", peers, "cpu") == 0.25
    assert timing.medians([{"a": 1.0, "b": 5.0}, {"a": 3.0}, {"a": 2.0}]) == {"a": 2.0, "b": 5.0}


def test_what_was_stopped_early_does_not_meet_its_target(bench):
    case, runner = bench("case"), bench("runner")
    target = case.Target("passes", "auto", "passes", at_most=10)
    for converged, ok in ((1.0, True), (0.0, False)):
        outcome = case.Outcome({"passes": 3.0, "converged": converged})
        contestant = case.Contestant("auto", lambda outcome=outcome: outcome)
        (finding,) = runner.run_case(case.Case("any", [contestant], [target]), repeat=1).findings
        assert finding.ok is ok


def test_weights_of_a_peer_in_our_layout(bench):
    from maxmargin.problems.classes.multiclass import MulticlassProblem

    objective = bench("objective")
    rng = np.random.default_rng(0)
    X, y, coef = rng.normal(size=(7, 3)), rng.integers(0, 4, 7), rng.normal(size=(4, 3))
    scores = X @ coef.T
    margins = 1.0 + scores - scores[np.arange(7), y][:, None]
    margins[np.arange(7), y] = 0.0
    expected = 0.5 * np.sum(coef**2) + 2.0 * margins.max(axis=1).sum()
    problem = MulticlassProblem(X, y, 4)
    assert objective.primal(problem, objective.class_weights(coef), 2.0) == pytest.approx(expected)


def test_segments_beside_tags(bench):
    for name in ("conll2000/train.txt.xz", "conll2002/esp.train.xz"):
        find_data(name)
    cases = list(bench("datasets.segments").cases(bench("case").Options(quick=True)))
    assert len(cases) == 2
    report = bench("runner").run_case(cases[1], repeat=1)
    runs = {label: run for label, (run,) in report.runs.items()}
    assert list(runs) == ["tagger", "segments", "hamming", "f1"]
    assert all(run["f1"] > 75.0 for run in runs.values())


def test_chains_of_higher_orders(bench):
    for name in ("conll2000/train.txt.xz", "conll2002/esp.train.xz"):
        find_data(name)
    chunks, entities = bench("datasets.orders").cases(bench("case").Options(quick=True))
    report = bench("runner").run_case(chunks, repeat=1)
    assert all(run["f1"] > 75.0 for (run,) in report.runs.values())
    assert len(report.runs) == 4 and len(entities.contestants) == 6


def test_kernels(bench):
    for name in (
        "usps/usps.npz",
        "mnist/train-images-idx3-ubyte.xz",
        "ocr_letters/letters.npz",
        "conll2002/esp.train.xz",
    ):
        find_data(name)
    cases = list(bench("datasets.kernels").cases(bench("case").Options(quick=True)))
    assert len(cases) == 9
    smoothed, usps_upright, supports, upright, letters = (
        {label: run for label, (run,) in bench("runner").run_case(case, repeat=1).runs.items()}
        for case in (cases[1], cases[3], *cases[5:8])
    )
    for usps in (smoothed, usps_upright):
        assert list(usps) == ["exact", "one pass", "exact, l2", "one pass, l2", "SVC"]
        assert abs(usps["exact"]["error"] - usps["SVC"]["error"]) < 3.0
    for digits in (supports["rank 50"], upright["rank 50"]):
        assert digits["error"] < 30.0 and 0.0 < digits["missing"] < 1.0
    assert letters["RBF"]["error"] < letters["linear"]["error"] + 5.0


def test_hidden_markov_model(bench):
    """Against all sequences of tags, by the model's own probabilities."""
    words = [["a", "b", "a"], ["b", "a", "c"], ["c", "a"]]
    tags = [["X", "Y", "X"], ["Y", "X", "X"], ["Y", "Y"]]
    model = bench("hmm").HiddenMarkovModel(lambda word: word).fit(words, tags)

    def score(sentence, states):
        path = [-1, *states, -1]
        steps = sum(model.steps[i, j] for i, j in itertools.pairwise(path))
        return steps + sum(
            model.words_of[k, model.column(word)] for k, word in zip(states, sentence, strict=True)
        )

    for sentence in (["a"], ["b", "b", "d", "a"], ["c", "a", "b"]):
        every = itertools.product(range(2), repeat=len(sentence))
        best = max(every, key=lambda states, sentence=sentence: score(sentence, states))
        assert model.predict([sentence]) == [[model.tags[k] for k in best]]
    assert np.allclose(np.exp(model.steps).sum(axis=1), 1.0)
    assert np.allclose(np.exp(model.words_of).sum(axis=1), 1.0)


def test_choice_and_scaling_of_kernels(bench, tmp_path, monkeypatch, capsys):
    find_data("usps/usps.npz")
    find_data("mnist/train-images-idx3-ubyte.xz")
    choice = bench("kernel_choice")
    settings = [choice.Setting(e, "as it is", C, 1.0) for e, C in ((0.02, 9), (0.021, 3), (0.5, 1))]
    assert choice.choose(settings, 1000) == settings[1]
    assert choice.choose(settings, 10**6) == settings[0]
    monkeypatch.setattr(sys, "argv", ["kernel_scaling", "--quick", "--output", str(tmp_path)])
    bench("kernel_scaling").main()
    assert capsys.readouterr().out.count("slope") == 2
    assert (tmp_path / "kernel_scaling.png").stat().st_size > 1000


def test_rankings(bench):
    find_data("ranking/mq2008_S1.svm.gz")
    cases = bench("datasets.mq2008").cases(bench("case").Options(quick=True, peers=False))
    beside_svm_rank, folds, _ = cases
    report = bench("runner").run_case(beside_svm_rank, repeat=1)
    runs = [run for (run,) in report.runs.values()]
    assert len(runs) == 2 and all(run["converged"] for run in runs)
    assert runs[0]["primal"] == pytest.approx(runs[1]["primal"], rel=1e-3)
    assert all(14.0 < run["swapped"] < 15.5 for run in runs)
    report = bench("runner").run_case(folds, repeat=1)
    assert len(report.runs) == 4
    for (run,) in report.runs.values():
        assert run["ndcg"] > 65.0 and run["average_precision"] > 40.0


def test_sets_of_labels(bench):
    find_data("multilabel/emotions_train.svm.gz")
    (case,) = bench("datasets.multilabel").cases(bench("case").Options(quick=True))
    runs = {label: run for label, (run,) in bench("runner").run_case(case, repeat=1).runs.items()}
    assert len(runs) == 9 + 4
    assert runs["hamming, no edges"]["hamming"] < 24.0
    assert runs["f1, all pairs"]["f1"] > 64.0
    for run in runs.values():
        assert run["hamming"] == pytest.approx(100.0 - run["right"])


def test_labels_known_in_part(bench):
    find_data("conll2002/esp.train.xz")
    first, *_ = bench("datasets.partial").cases(bench("case").Options(quick=True))
    runs = {label: run for label, (run,) in bench("runner").run_case(first, repeat=1).runs.items()}
    assert runs["cccp"]["rounds"] >= runs["convex"]["rounds"] == 1
    assert runs["all tags"]["f1"] > runs["cccp"]["f1"] > runs["hidden as O"]["f1"]


def test_confidences(bench, tmp_path):
    for name in ("conll2000/train.txt.xz", "conll2002/esp.train.xz"):
        find_data(name)
    module = bench("datasets.confidence")
    for case in module.cases(bench("case").Options(quick=True)):
        report = bench("runner").run_case(case, repeat=1, evaluated=False)
        values = {finding.target.what: finding.value for finding in report.findings}
        assert 0.0 < values["by folds: ECE"] < 0.1 and values["by folds: temperature"] > 0.0
    module.draw(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000


def test_costs_of_mistakes(bench):
    for name in ("covtype/covtype.npz", "conll2002/esp.train.xz"):
        find_data(name)
    classes, entities = bench("datasets.costs").cases(bench("case").Options(quick=True))
    runs = [
        {label: run for label, (run,) in bench("runner").run_case(case, repeat=1).runs.items()}
        for case in (classes, entities)
    ]
    for name in ("MulticlassSVM", "LinearSVC"):
        plain, balanced = runs[0][name], runs[0][f"{name}, balanced"]
        assert balanced["balanced"] > plain["balanced"] > 100 / 7
        assert balanced["right"] < plain["right"]
    equal, *_, dear = runs[1].values()
    assert dear["recall"] > equal["recall"] and dear["precision"] < equal["precision"]


def test_grades(bench):
    (case,) = bench("datasets.ordinal").cases(bench("case").Options(quick=True, peers=False))
    runs = {label: run for label, (run,) in bench("runner").run_case(case, repeat=1).runs.items()}
    assert list(runs) == ["OrdinalSVM, absolute", "OrdinalSVM, pairs"]
    assert all(0.7 < run["error"] < 1.0 and run["right"] > 30.0 for run in runs.values())


def test_snakes(bench):
    find_data("snakes/snakes.npz")
    cases = bench("datasets.snakes").cases(bench("case").Options(quick=True))
    reports = [bench("runner").run_case(case, repeat=1) for case in cases]
    assert [list(report.runs) for report in reports] == [["GraphLabeler"], ["max-flow"], ["TRW-S"]]
    (run,) = reports[0].runs["GraphLabeler"]
    assert run["right"] > 80.0 and 0.0 <= run["gap"] <= 1.0


def test_model_of_a_cluster(bench):
    """Work is shared out, bytes at the driver grow, and stragglers cost what was drawn for them."""
    model = bench("cluster_model")
    constants = model.Constants(
        rounds=10,
        rounds_power=0.25,
        seconds_per_token=4e-6,
        seconds_per_weight=1e-8,
        n_weights=1_000_000,
        entries=50.0,
        entries_power=0.75,
        gather_seconds=2e-9,
        write_seconds=3e-9,
        multiply_seconds=1e-10,
        qp_seconds=3e-6,
        qp_power=1.1,
        ask_seconds=0.01,
        spread=0.0,
        stalls=0.0,
    )
    few, many = (model.estimate(constants, k, 1e8, np.random.default_rng(0)) for k in (10, 100))
    assert few.rounds == 18 and many.rounds == 32
    assert few.waiting == pytest.approx(0.0, abs=1e-9)
    assert few.work == pytest.approx(1e7 * 4e-6 + 0.01) and many.work < few.work / 9
    assert many.gigabytes > few.gigabytes and many.combine > few.combine
    # Rounds in which a worker stalls for ever end after three times what the others took.
    stalling = dataclasses.replace(constants, stalls=0.05, stall_seconds=1e12)
    waiting = model.estimate(stalling, 10, 1e8, np.random.default_rng(0)).waiting
    n_stalled = waiting * 18 / (2.0 * few.work)
    assert 1 <= round(n_stalled) < 18 and n_stalled == pytest.approx(round(n_stalled))
    assert model.power_law([1.0, 4.0], [3.0, 6.0]) == pytest.approx((3.0, 0.5))
