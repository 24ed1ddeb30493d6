"""Paths of C and labels known in part: several trainings in one checkpoint."""

import json
import os
import time
import warnings

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.engine.training import run
from resuming import SERIES, as_parameters, go_on_elsewhere, words


def interrupt_after(n):
    """A callback with which a Ctrl-C comes after some iterations, and those that it has seen.

    A function, for estimators of a path have copies of all else.
    """
    seen = []

    def interrupt(progress):
        seen.append(progress)
        if len(seen) == n:
            raise KeyboardInterrupt

    return interrupt, seen


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("every", [0.0, 1e9], ids=["all written", "written at the end"])
@pytest.mark.parametrize("name", SERIES)
def test_a_series_goes_on_to_the_same_bits(name, every, tmp_path, monkeypatch):
    """Interrupted again and again, so that it goes on from every iteration."""
    monkeypatch.setattr(run, "COPYING", np.inf)
    expected = SERIES[name]()
    assert len(expected) >= 3
    options = {"checkpoint": tmp_path / "c", "checkpoint_every": every, "resume": True}
    n_times = 0
    while n_times < 300:
        n_times += 1
        interrupt, seen = interrupt_after(3)
        found = SERIES[name](callbacks=[interrupt], on_interrupt="return", **options)
        if len(seen) < 3:
            break
    assert 3 < n_times < 300
    assert found == expected
    interrupt, seen = interrupt_after(1)
    assert SERIES[name](callbacks=[interrupt], **options) == expected
    assert not seen  # all was over


def test_a_series_goes_on_in_another_process(tmp_path):
    expected = {}
    for name, fit in SERIES.items():
        expected[str(tmp_path / name)] = fit()
        interrupt, _ = interrupt_after(8)
        options = {"checkpoint": tmp_path / name, "checkpoint_every": 0.0}
        fit(callbacks=[interrupt], on_interrupt="return", **options)
    assert go_on_elsewhere(tmp_path) == json.loads(json.dumps(expected))


def kept_path(folder, **options):
    """Goes on with a path, which is over."""
    X, y = words()
    kept = {"checkpoint": folder / "c", "resume": True, "tol": 1e-2, "random_state": 0}
    Cs = options.pop("Cs", [0.1, 1.0])
    return mm.SequenceTagger(**as_parameters(**{**kept, **options})).fit_path(X, y, Cs)


def test_a_path_goes_on_only_with_its_own(tmp_path):
    whole = kept_path(tmp_path)
    before = (tmp_path / "c").read_bytes()
    for options, told in (
        ({"Cs": [0.1, 2.0]}, "C"),
        ({"max_passes": 5}, "max_passes"),
        ({"max_time": 5}, "max_time"),
        ({"tol": 1e-3}, "tol"),
    ):
        with pytest.raises(ValueError, match=f"of another training, with another {told} "):
            kept_path(tmp_path, **options)
    with pytest.raises(ValueError, match="of another training"):
        mm.SequenceTagger(**as_parameters(checkpoint=tmp_path / "c", resume=True, tol=1e-2)).fit(
            *words()
        )
    assert (tmp_path / "c").read_bytes() == before
    assert kept_path(tmp_path, Cs=[1.0, 0.1, 1.0]).scores(*words()).tolist() == (
        whole.scores(*words()).tolist()
    )


@pytest.mark.parametrize("name", ["path of chains", "known in part"])
def test_a_series_goes_on_with_its_own_seed(name, tmp_path):
    """As a single training does; without a seed, that of its first training was drawn."""
    options = {"checkpoint": tmp_path / "c", "checkpoint_every": 0.0, "resume": True}
    expected = SERIES[name](random_state=1)
    assert SERIES[name](random_state=2) != expected
    interrupt, _ = interrupt_after(2)
    SERIES[name](callbacks=[interrupt], on_interrupt="return", random_state=1, **options)
    assert SERIES[name](random_state=2, **options) == expected


def test_the_time_of_all_rounds_counts(tmp_path):
    """The limit may be raised, and what was done before is part of it."""
    options = {"checkpoint": tmp_path / "c", "checkpoint_every": 0.0, "resume": True}
    expected = SERIES["known in part"]()
    slow, seen = [lambda progress: time.sleep(0.05)], []
    SERIES["known in part"](callbacks=slow, max_time=0.4, **options)
    SERIES["known in part"](callbacks=[seen.append], max_time=0.4, **options)
    assert len(seen) <= 2
    assert SERIES["known in part"](callbacks=[seen.append], max_time=1e6, **options) == expected
    assert len(seen) > 2


def test_the_search_for_C_goes_on(tmp_path):
    X, y = words()

    def fit(**options):
        model = mm.SequenceTagger(**as_parameters(random_state=0, tol=1e-3, **options))
        return mm.SearchCV(model, [0.1, 1.0], cv=2).fit(X, y)

    whole = fit()
    kept = {"checkpoint": tmp_path / "c", "resume": True}
    interrupt, seen = interrupt_after(15)
    with pytest.raises(KeyboardInterrupt):
        fit(callbacks=[interrupt], **kept)
    assert sorted(os.listdir(tmp_path)) == ["c-fold0", "c-fold1"]
    found = fit(callbacks=[seen.append], **kept)
    for name in ("split0_test_score", "split1_test_score"):
        assert found.cv_results_[name].tolist() == whole.cv_results_[name].tolist()
    assert found.best_estimator_.coef_.tobytes() == whole.best_estimator_.coef_.tobytes()
    assert (tmp_path / "c").exists()
    before = len(seen)
    fit(callbacks=[seen.append], **kept)
    assert len(seen) == before  # all was over


def test_a_search_beside_another_training_is_refused_before_any_work(tmp_path):
    """Its last fit could not go on from that file."""
    X, y = words()
    kept_path(tmp_path, Cs=[0.1, 2.0])
    before, seen = (tmp_path / "c").read_bytes(), []
    options = {"checkpoint": tmp_path / "c", "callbacks": [seen.append]}
    model = mm.SequenceTagger(**as_parameters(**options, resume=True, tol=1e-2, random_state=0))
    message = (
        r"c: the checkpoint is of another training, with another C \(\[0.1, 2.0\] there, one of"
    )
    with pytest.raises(ValueError, match=message):
        mm.SearchCV(model, [0.1, 1.0], cv=2).fit(X, y)
    (tmp_path / "c").rename(tmp_path / "c.1")
    with pytest.raises(ValueError, match=message):
        mm.SearchCV(model, [0.1, 1.0], cv=2).fit(X, y)
    (tmp_path / "c.1").rename(tmp_path / "c")
    assert not seen and os.listdir(tmp_path) == ["c"]
    assert (tmp_path / "c").read_bytes() == before
    mm.SearchCV(model, [0.1, 1.0], cv=2, refit=False).fit(X, y)  # has no last fit
    assert (tmp_path / "c").read_bytes() == before
    mm.SearchCV(model.set_params(training__resume=False), [0.1, 1.0], cv=2).fit(X, y)
    mm.SearchCV(model.set_params(training__resume=True), [0.1, 1.0], cv=2).fit(X, y)
    seen.clear()
    (tmp_path / "c").write_text("my thesis")
    (tmp_path / "c.1").unlink(missing_ok=True)
    with pytest.raises(ValueError, match="a file of this name exists and is not a checkpoint"):
        mm.SearchCV(model, [0.1, 1.0], cv=2).fit(X, y)
    assert not seen


def test_a_calibration_has_files_of_its_own(tmp_path):
    X, y = words()
    options = {"random_state": 0, "probability": True}
    whole = mm.SequenceTagger(**options).fit(X, y)
    for _ in range(2):
        kept = {"checkpoint": tmp_path / "c", "resume": True}
        found = mm.SequenceTagger(**options, training=kept).fit(X, y)
        assert found.calibration_ == whole.calibration_
    assert "c-held-out2" in os.listdir(tmp_path)


def test_a_cluster_keeps_no_series(tmp_path):
    X, y = words()
    model = mm.SequenceTagger(
        training={"checkpoint": tmp_path / "c", "cluster": "tcp://127.0.0.1:1"}
    )
    with pytest.raises(ValueError, match="a path of C is not kept on a cluster"):
        model.fit_path(X, y, [0.1, 1.0])
    with pytest.raises(
        ValueError, match="training on partially labelled data cannot be checkpointed on a cluster"
    ):
        model.fit(X, [[None, *own[1:]] for own in y])
