"""Files by strangers: checkpoints and models with forged content and checksums that are right.

The forgeries run in processes of their own (`forging`, `forging_models`), many in each: a crash
would end only that process, and the last line says which forgery it was. `tests/soak` has more.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import maxmargin as mm
from maxmargin import checkpoints, persistence
from maxmargin.engine.training.state import from_text, to_text
from maxmargin.engine.training.verifying import check_primal
from maxmargin.utils.schema import as_sparse, checked_arrays, flags, numbers, rows_at, whole
from resuming import TRAININGS

FOLDER = Path(__file__).parent


def forged(script, *arguments):
    """What a process says of its forgeries: (training, array, way, end, what was wrong)."""
    child = subprocess.run(
        [sys.executable, FOLDER / script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    said = [json.loads(line) for line in child.stdout.splitlines()]
    assert child.returncode == 0, f"crashed after {said[-1:]}: {child.stderr[-2000:]}"
    found, training, tried = [], None, None
    for line in said:
        if "training" in line:
            training = line["training"]
        elif "array" in line:
            tried = line["array"], line["way"]
        else:
            found.append((training, *tried, line["end"], line["wrong"]))
    return found


@pytest.mark.parametrize(
    "trainings",
    [
        ("auto on chains", "auto, constraints", "sda on trees", "auto in plain Python"),
        ("auto on classes", "one_slack on chains", "sgd, certified", "auto on trees"),
        ("n_slack on chains", "dcd on classes", "auto, shares of trees", "mira, three best"),
    ],
)
def test_forged_checkpoints_are_refused_or_harmless(trainings):
    found = forged("forging.py", 3, 1, *trainings)
    assert [forgery for forgery in found if forgery[-1]] == []
    ends = [end for *_, end, _ in found]
    assert len(found) > 200 and ends.count("refused") > 0.5 * len(found)


def test_forged_models_are_refused_or_harmless():
    found = forged("forging_models.py", 5, 1)
    assert [forgery for forgery in found if forgery[-1]] == []
    assert len(found) > 200


def rewritten(path, **changes):
    """Change arrays of a checkpoint, or values of its texts, as a stranger would."""
    content = checkpoints._read(str(path))
    arrays = dict(content.arrays)
    for name, change in changes.items():
        key = next(key for key in arrays if key.replace(".", "_") == name)
        if isinstance(change, dict):
            arrays[key] = to_text({**from_text(arrays[key]), **change})
        else:
            arrays[key] = change(arrays[key].copy())
    with open(path, "wb") as stream:
        checkpoints._write(stream, content._replace(arrays=arrays))


def put(*changes):
    """Change single places of an array."""

    def changed(array):
        for place, value in changes:
            array.reshape(-1)[place] = value
        return array

    return changed


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("auto on chains", {"state_store_arena_block": put((0, 10**6))}, "block"),
        ("auto on chains", {"state_store_arena_ids": put((0, 60000))}, "ids"),
        ("auto on chains", {"state_store_arena_new_features": put((0, -1))}, "new_features"),
        ("auto on chains", {"state_store_arena_next_plane": put((0, 0))}, "next_plane"),
        ("auto on chains", {"state_store_arena_alpha": put((0, 1e9))}, "multipliers"),
        ("auto on chains", {"state_store_arena_alpha": put((0, np.nan))}, "alpha"),
        ("auto on chains", {"state_store_w": put((0, 3.0))}, "sum"),
        ("auto on chains", {"state_store_sizes": put((1, 2**39))}, "budget"),
        ("auto on chains", {"state_order": put((0, 0), (1, 0))}, "order"),
        ("auto on chains", {"numbers": {"proven_dual": 1e3}}, "dual value"),
        ("auto on chains", {"certificate": {"best": 1e-3}}, "primal value"),
        ("auto on chains", {"best_w": put((0, 9.0))}, "primal value"),
        ("auto on classes", {"state_store_classes": put((0, 77))}, "classes"),
        ("auto on classes", {"state_store_alpha": lambda a: a + 1.0}, "alpha"),
        ("n_slack on chains", {"state_sets_ids": put((0, -1))}, "ids"),
        ("n_slack on chains", {"state_sets_start": put((0, 1))}, "overlap"),
        ("one_slack on chains", {"state_pool_slots_ids": put((0, 2**30))}, "ids"),
        ("one_slack on chains", {"state_bundle_offset": lambda b: b + 5.0}, "value"),
        ("sgd on chains", {"learner_state_v": lambda v: v[:-1]}, "shape"),
        ("sgd on chains", {"examples": put((0, 99))}, "examples"),
    ],
)
def test_a_refusal_names_the_file_and_what_is_wrong(name, changes, reason, tmp_path):
    training, path = TRAININGS[name], tmp_path / "c"
    stops = iter([False, False, True, True])
    training.solve([lambda progress: next(stops)], checkpoint=path, checkpoint_every=0.0)
    rewritten(path, **changes)
    (tmp_path / "c.1").unlink(missing_ok=True)
    with pytest.raises(ValueError, match=reason) as caught:
        training.solve(checkpoint=path, resume=True)
    assert str(path) in str(caught.value) and "remove it to start afresh" in str(caught.value)


def test_planes_that_no_output_has_do_not_certify(tmp_path):
    """Their values are compared with the oracle's, also in a training that was over."""
    training, path = TRAININGS["auto on chains"], tmp_path / "c"
    training.solve(checkpoint=path)
    content = checkpoints._read(str(path))
    offset, alpha = (content.arrays[f"state.store.arena.{name}"] for name in ("offset", "alpha"))
    gain = float(alpha @ offset) * 0.01
    rewritten(
        path,
        state_store_arena_offset=lambda offset: offset * 1.01,
        state_store_dual_now=lambda dual: dual + gain,
    )
    with pytest.raises(ValueError, match="a plane has value"):
        training.solve(checkpoint=path, resume=True)


# ----- declarations -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "form", "message"),
    [
        (np.zeros(3, np.float32), numbers(3), "a: expected an array of float64, found one of"),
        (np.zeros(3, ">f8"), numbers(3), "expected an array of float64"),
        (np.zeros(3), numbers(4), r"expected shape \(4\), found \(3,\)"),
        (np.zeros((3, 1)), numbers(3), "expected shape"),
        (np.array([0.0, np.nan]), numbers(None), "expected values from"),
        (np.array([0.0, np.inf]), numbers(None), "expected values from"),
        (np.array([-1.0]), numbers(1, low=0.0), "expected values from 0.0"),
        (np.array([0, 5]), whole(2, below=5), "expected values from 0 to 4, found 0 to 5"),
        (np.array([-1, 2]), whole(2, below=5), "found -1 to 2"),
        (np.array([0, 3, 2, 4]), rows_at(3, 4), "rise from 0 to 4"),
        (np.array([0, 1, 2, 3]), rows_at(3, 4), "rise from 0 to 4"),
        (np.array([1, 1, 2, 4]), rows_at(3, 4), "rise from 0 to 4"),
        (np.array([2], np.uint8), flags(1), "bool"),
    ],
)
def test_arrays_that_are_not_as_declared(array, form, message):
    with pytest.raises(ValueError, match=message):
        checked_arrays({"a": array}, {"a": form})


def test_arrays_that_are_as_declared_are_copied():
    given = {"a": np.arange(3.0), "b": np.array([0, 0, 2]), "c": np.empty((0, 2), bool)}
    found = checked_arrays(given, {"a": numbers(3), "b": rows_at(2, 2), "c": flags(0, 2)})
    assert all(np.array_equal(found[name], given[name]) for name in given)
    assert not any(np.shares_memory(found[name], given[name]) for name in given)
    with pytest.raises(ValueError, match="found no d"):
        checked_arrays(given, {"d": flags()})


def test_starts_that_end_with_zero_are_no_sparse_matrix():
    """Scipy's own check looks no further at those, and its products crash."""
    with pytest.raises(ValueError, match="starts"):
        as_sparse(np.ones(6), np.array([0, 1] * 3), np.array([0, 2, 4, 0]), (3, 2))


# ----- models -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": np.array([-1, 3])}, "numbers from 0 to 9"),
        ({"indices": np.array([0, 10])}, "numbers from 0 to 9"),
        ({"indices": np.array([3, 3])}, "rising numbers"),
        ({"indices": np.array([3])}, "rising numbers"),
        ({"size": 2**27}, "weights but the file has only 2"),
    ],
)
def test_weights_that_no_file_keeps(changes, message):
    packed = {"size": 10, "indices": np.array([1, 3]), "values": np.array([1.0, 2.0]), **changes}
    with pytest.raises(ValueError, match=message):
        persistence._unpack_weights(packed)


def test_few_weights_among_very_many_come_back(tmp_path, monkeypatch):
    """Such a model is written so that its file is not too small for them."""
    monkeypatch.setattr(persistence, "MOST_ZEROS", 1000)
    X, y = np.zeros((4, 2000)), np.array([0, 1, 0, 1])
    X[:, 7] = 2.0 * y - 1.0
    model = mm.MulticlassSVM().fit(X, y)
    model.save(tmp_path / "m")
    again = mm.load(tmp_path / "m")
    assert np.array_equal(again.coef_, model.coef_) and again.predict(X).tolist() == y.tolist()


def test_primal_value_of_weights_that_miss_a_hard_margin():
    check_primal(np.inf, np.inf)
    for claimed, primal in ((8.3, np.inf), (np.inf, 8.3)):
        with pytest.raises(ValueError, match="the primal value of its weights is"):
            check_primal(claimed, primal)
