"""Model files: what is loaded is what was saved, and whatever else is refused by name."""

import dataclasses
import gc
import io
import json
import os
import stat
import weakref
import zipfile

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import maxmargin as mm
from every_estimator import KINDS, make
from maxmargin.datasets import make_digit_words
from maxmargin.features import WindowFeatures
from maxmargin.persistence import load_model, save_model


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def classifier(iris):
    return mm.MulticlassSVM(C=0.5, random_state=3, tol=0.01).fit(*iris)


@pytest.fixture(scope="module")
def words():
    return make_digit_words(n_train=20, n_test=10, noise=0.2)


def same_predictions(left, right):
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def rewrite(path, change):
    """Change the header of a model file."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(content["header.json"])
    change(header)
    content["header.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def test_classifier(classifier, iris, tmp_path):
    path = tmp_path / "model.mm"
    classifier.save(path)
    loaded = mm.load(path)
    assert isinstance(loaded, mm.MulticlassSVM)
    assert loaded.get_params() == classifier.get_params()
    assert np.array_equal(loaded.decision_function(iris[0]), classifier.decision_function(iris[0]))
    assert loaded.classes_.dtype == classifier.classes_.dtype
    assert loaded.result_.history == classifier.result_.history
    assert loaded.result_.gap == classifier.result_.gap
    assert loaded.result_.status == "converged"
    loaded.save(tmp_path / "again.mm")
    again = mm.load(tmp_path / "again.mm")
    assert np.array_equal(again.coef_, classifier.coef_)


def test_tagger_of_vectors(words, tmp_path):
    model = mm.SequenceTagger(
        C=0.1, tol=0.01, fit_intercept=True, boundary_weights=True, loss="zero_one"
    ).fit(words.X_train, words.y_train)
    model.save(tmp_path / "m")
    loaded = mm.load(tmp_path / "m")
    assert same_predictions(loaded.predict(words.X_test), model.predict(words.X_test))
    assert np.array_equal(loaded.transition_weights_, model.transition_weights_)


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b", "ü"],
        [1, 2, -3],
        [0.1, 1 / 3, 1e300],
        [True, False],
        [1, "a", 2.5],
        [("x", 1), ("y", 2)],
    ],
    ids=["str", "int", "float", "bool", "mixed", "tuple"],
)
def test_labels_are_kept_exactly(labels, tmp_path):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(len(labels), 4))]
    model = mm.SequenceTagger(tol=0.1).fit(X, [labels])
    model.save(tmp_path / "m")
    loaded = mm.load(tmp_path / "m")
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert [type(k) for k in loaded.classes_.tolist()] == [type(k) for k in model.classes_.tolist()]


@pytest.mark.parametrize(
    "constraints",
    ["bio", {"O": ["I-N"]}, [("O", "I-N")], np.array([[1, 1, 1], [1, 1, 1], [1, 0, 1]], bool)],
    ids=["bio", "map", "pairs", "mask"],
)
def test_words_features_and_constraints(constraints, tmp_path):
    X = [["the", "cat", "sat"], ["a", "dog", "sat", "here"]]
    Y = [["B-N", "I-N", "O"], ["B-N", "I-N", "O", "O"]]
    extractor = WindowFeatures(templates=["w[0]", "w[-1]|w[0]"])
    model = mm.SequenceTagger(features=extractor, constraints=constraints).fit(X, Y)
    model.save(tmp_path / "m")
    loaded = mm.load(tmp_path / "m")
    assert same_predictions(loaded.predict(X), model.predict(X))
    assert loaded.top_features(3) == model.top_features(3)
    assert loaded.features.templates == ["w[0]", "w[-1]|w[0]"]
    assert loaded.fit(X, Y).score(X, Y) == 1.0  # it can go on training, with the parameters kept
    new = [["sat", "unheard"], ["cat"]]
    assert same_predictions(mm.load(tmp_path / "m").predict(new), model.predict(new))


def test_named_features(tmp_path):
    X = [[{"word": "the"}, {"word": "cat", "length": 3}]]
    model = mm.SequenceTagger().fit(X, [["D", "N"]])
    model.save(tmp_path / "m")
    assert mm.load(tmp_path / "m").predict(X)[0] == ["D", "N"]


def test_cost_matrix_and_names_of_features(iris, tmp_path):
    costs = 1.0 - np.eye(3)
    model = mm.MulticlassSVM(loss=costs, tol=0.01).fit(*iris)
    model.save(tmp_path / "m")
    assert np.array_equal(mm.load(tmp_path / "m").loss, costs)


def test_what_cannot_be_kept_is_warned_of(iris, tmp_path):
    from maxmargin.solvers import SDA

    model = mm.MulticlassSVM(
        solver=SDA(tol=0.05), training=mm.TrainingOptions(callbacks=[print]), tol=0.01
    )
    model.fit(*iris)
    with pytest.warns(UserWarning, match="cannot store (solver, callbacks|callbacks, solver)"):
        model.save(tmp_path / "m")
    loaded = mm.load(tmp_path / "m")
    assert (
        loaded.solver == "auto" and loaded.training == mm.TrainingOptions() and loaded.tol == 0.01
    )
    assert np.array_equal(loaded.predict(iris[0]), model.predict(iris[0]))


def test_extra_values_survive_saving_again(classifier, tmp_path):
    save_model(classifier, tmp_path / "m", {"task": "multiclass", "columns": [0, 1]})
    loaded, extra = load_model(tmp_path / "m")
    assert extra == {"task": "multiclass", "columns": [0, 1]}
    loaded.save(tmp_path / "n")
    assert load_model(tmp_path / "n")[1] == extra


def test_large_sparse_weights_make_a_small_file(tmp_path):
    X = [[[f"word{i}"] for i in range(3000)]]
    model = mm.SequenceTagger(tol=0.5).fit(X, [["a", "b", "c"] * 1000])
    model.coef_ = np.where(np.arange(len(model.coef_)) % 100 == 0, 0.1, 0.0)
    model.save(tmp_path / "m")
    assert np.array_equal(mm.load(tmp_path / "m").coef_, model.coef_)
    assert (tmp_path / "m").stat().st_size < model.coef_.nbytes


def test_unfitted(tmp_path):
    with pytest.raises(NotFittedError):
        mm.SequenceTagger().save(tmp_path / "m")


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_truncated_files_are_refused(classifier, tmp_path, share):
    path = tmp_path / "model.mm"
    classifier.save(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(ValueError, match=r"model\.mm: (truncated|the file is empty|not a model)"):
        mm.load(path)


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_damaged_bytes_are_refused(classifier, tmp_path, mask):
    path = tmp_path / "model.mm"
    classifier.save(path)
    data = bytearray(path.read_bytes())
    places = {*range(60), *range(0, len(data), 41), *range(len(data) - 300, len(data))}
    for at in sorted(places):
        broken = data.copy()
        broken[at] ^= mask
        path.write_bytes(broken)
        try:
            loaded = mm.load(path)
        except ValueError as error:
            assert str(error).startswith(f"{path}: "), error
        else:  # a byte that carries nothing, such as a time stamp
            assert np.array_equal(loaded.coef_, classifier.coef_)
            assert loaded.get_params() == classifier.get_params()


def test_missing_bytes_are_refused(classifier, tmp_path):
    path = tmp_path / "model.mm"
    classifier.save(path)
    data = path.read_bytes()
    for at in range(0, len(data), 29):
        path.write_bytes(data[:at] + data[at + 1 :])
        with pytest.raises(ValueError, match=f"^{path}: "):
            mm.load(path)


def test_foreign_files_are_refused(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("hello")
    archive = tmp_path / "other.zip"
    with zipfile.ZipFile(archive, "w") as other:
        other.writestr("readme", "hello")
    np.savez(tmp_path / "arrays.npz", a=np.ones(3))
    for path in (text, archive, tmp_path / "arrays.npz"):
        with pytest.raises(ValueError, match=f"{path.name}: this is not a model file"):
            mm.load(path)
    with pytest.raises(FileNotFoundError):
        mm.load(tmp_path / "absent.mm")


def test_newer_schema_is_refused(classifier, tmp_path):
    path = tmp_path / "model.mm"
    classifier.save(path)
    rewrite(path, lambda header: header.update(schema=99, version="9.0"))
    with pytest.raises(ValueError, match=r"model\.mm: written by maxmargin 9\.0 in schema 99"):
        mm.load(path)


def test_parameters_of_another_version_are_refused(classifier, tmp_path):
    path = tmp_path / "model.mm"
    classifier.save(path)
    rewrite(path, lambda header: header.update(version="0.9"))
    assert mm.load(path).C == 0.5
    rewrite(path, lambda header: header["params"].update(unheard_of=1))
    with pytest.raises(ValueError, match=r"model\.mm: written by maxmargin 0\.9, with unheard_of"):
        mm.load(path)


def test_results_of_an_older_version_are_read(classifier, tmp_path):
    path = tmp_path / "model.mm"
    classifier.save(path)
    rewrite(path, lambda header: header["result"].pop("compile_seconds"))
    assert mm.load(path).result_.gap == classifier.result_.gap


def test_long_histories_are_thinned(iris, tmp_path):
    model = mm.MulticlassSVM(tol=0.1).fit(*iris)
    last = model.result_.history[-1]
    model.result_.history[:] = [dataclasses.replace(last, planes=k) for k in range(100_000)]
    model.save(tmp_path / "m")
    planes = [record.planes for record in mm.load(tmp_path / "m").result_.history]
    assert len(planes) == 2000 and planes[0] == 0 and planes[-1] == 99_999
    assert max(np.diff(planes)) <= 51


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.update(estimator="os.system"),
        lambda header: header.pop("state"),
        lambda header: header["state"].update(n_features=7),
        lambda header: header["params"].update(unheard_of=1),
        lambda header: header["coef"].update(values={"$type": "array", "number": 77}),
        lambda header: header["coef"].update(size=10**15, indices=header["coef"]["values"]),
        lambda header: header["coef"].update(size=-1, indices=header["coef"]["values"]),
        lambda header: header["params"].update(loss={"$type": "Popen", "state": {}}),
    ],
)
def test_inconsistent_headers_are_refused(classifier, tmp_path, change):
    path = tmp_path / "model.mm"
    classifier.save(path)
    rewrite(path, change)
    with pytest.raises(ValueError, match=r"model\.mm: truncated or damaged"):
        mm.load(path)


WRONG = [{"$type": "tuple", "items": ["x", 2]}, 0.5, None, [0.5], -1]


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"own"}))
def test_every_field_is_checked(kind, tmp_path):
    """Fields of other types are refused by name, or change nothing but what they say."""
    X, y = KINDS[kind].first
    path = tmp_path / "model.mm"
    model = make(kind).fit(X, y)
    model.save(path)
    good = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
    outcomes = set()
    for group in ("params", "state", "coef", "result"):
        for name in header[group]:
            for value in WRONG[: 1 if group == "params" else None]:
                path.write_bytes(good)
                rewrite(path, lambda header: header[group].update({name: value}))  # noqa: B023
                try:
                    loaded = mm.load(path)
                except ValueError as error:
                    assert str(error).startswith(f"{path}: truncated or damaged"), error
                    outcomes.add("refused")
                else:
                    assert str(loaded.result_) and repr(loaded)
                    assert len(loaded.predict(X)) == len(model.predict(X)), (group, name, value)
                    outcomes.add("loaded")
    assert outcomes == {"refused", "loaded"}


def test_errors_name_the_field(classifier, tmp_path):
    path = tmp_path / "model.mm"
    classifier.save(path)
    rewrite(path, lambda header: header["state"].update(intercept="yes"))
    with pytest.raises(ValueError, match=r"state\.intercept: expected bool, found str 'yes'"):
        mm.load(path)


def test_parameters_of_odd_types_do_not_make_a_file_that_cannot_be_read(iris, tmp_path):
    model = mm.MulticlassSVM(tol=0.1, verbose=False, warm_start=0, C=np.float32(0.5)).fit(*iris)
    model.save(tmp_path / "m")
    loaded = mm.load(tmp_path / "m")
    assert loaded.C == 0.5 and loaded.warm_start is False
    model.set_params(tol="tight")
    with pytest.warns(UserWarning, match="cannot store tol"):
        model.save(tmp_path / "m")
    assert mm.load(tmp_path / "m").tol == mm.MulticlassSVM().tol


def test_arrays_of_another_machine_are_read(classifier, iris, tmp_path):
    path = tmp_path / "model.mm"
    classifier.save(path)
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
        numbers = [header["coef"]["values"]["number"], header["state"]["classes"]["number"]]
        arrays = {k: np.load(io.BytesIO(archive.read(f"arrays/{k}.npy"))) for k in numbers}
    for number, array in arrays.items():
        stream = io.BytesIO()
        np.lib.format.write_array(stream, array.astype(array.dtype.newbyteorder(">")))
        replace_array(path, stream.getvalue(), number)
    assert np.array_equal(mm.load(path).predict(iris[0]), classifier.predict(iris[0]))


def replace_array(path, data, number=0):
    """Put another content into the place of an array."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    content[f"arrays/{number}.npy"] = data
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in content.items():
            archive.writestr(name, part)


@pytest.mark.parametrize("shape", [(10**15,), (2**40, 2**40), (3,), (-1,)])
def test_arrays_larger_than_their_bytes_are_refused(classifier, tmp_path, shape):
    path = tmp_path / "model.mm"
    classifier.save(path)
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    replace_array(path, stream.getvalue() + bytes(16))
    with pytest.raises(ValueError, match=r"model\.mm: truncated or damaged.*an array of shape"):
        mm.load(path)


def test_files_that_unpack_to_far_more_than_models_do_are_refused(classifier, tmp_path):
    path = tmp_path / "model.mm"
    classifier.save(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("arrays/99.npy", bytes(10**8))
    assert path.stat().st_size < 2 * 10**5
    with pytest.raises(
        ValueError, match=r"model\.mm: \d+ bytes that unpack to 95 MB are not a maxmargin model"
    ):
        mm.load(path)


def test_more_labels_than_weights_are_refused(tmp_path):
    path = tmp_path / "model.mm"
    mm.MultilabelSVM(tol=0.1).fit(np.eye(4), np.eye(4, dtype=int)).save(path)
    rewrite(path, lambda header: header["state"].update(n_labels=2**27))
    with pytest.raises(ValueError, match=r"n_labels is 134217728, more than there are weights"):
        mm.load(path)


def test_wide_strings_take_no_more_room_than_they_need(tmp_path):
    path = tmp_path / "model.mm"
    mm.MulticlassSVM(tol=0.1).fit(np.eye(2), ["a", "bc"]).save(path)
    rewrite(path, lambda header: header["state"]["classes"].update(dtype="<U99999999"))
    assert mm.load(path).classes_.dtype == "<U2"


def test_pickled_arrays_are_refused(classifier, tmp_path):
    path = tmp_path / "model.mm"
    classifier.save(path)
    np.save(tmp_path / "evil.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    replace_array(path, (tmp_path / "evil.npy").read_bytes())
    with pytest.raises(ValueError, match="truncated or damaged"):
        mm.load(path)


def test_a_failed_write_leaves_the_old_file(classifier, tmp_path, monkeypatch):
    path = tmp_path / "model.mm"
    classifier.save(path)
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        classifier.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.mm"]


@pytest.mark.skipif(os.name == "nt", reason="permissions of Windows are different")
def test_permissions_are_those_of_an_ordinary_file(classifier, tmp_path):
    classifier.save(tmp_path / "m")
    (tmp_path / "plain").write_text("")
    mode = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == mode


def test_loaded_models_wait_for_no_search_for_cycles(classifier, tmp_path):
    path = tmp_path / "model.mm"
    classifier.save(path)
    mm.load(path)
    gc.collect()
    gc.disable()
    try:
        model = mm.load(path)
        weights = weakref.ref(model._get_weights())
        del model
        assert weights() is None, "arrays of a model are kept by a cycle"
    finally:
        gc.enable()
