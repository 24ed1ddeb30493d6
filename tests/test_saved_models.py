"""Models that earlier versions saved are read and predict what they did.

Each file of tests/saved has inputs and predictions among its extra values. They are never written
anew: a change of the format that cannot read them is a change that users will meet.
"""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from maxmargin import registry
from maxmargin.formats import model_values
from maxmargin.persistence import load_model, save_model

SAVED = Path(__file__).parent / "saved"
FILES = sorted(SAVED.glob("*.mm"))


def plain(outputs):
    """Predictions as lists, numbers and text."""
    if isinstance(outputs, np.ndarray):
        return outputs.tolist()
    if isinstance(outputs, (list, tuple)):
        return [plain(output) for output in outputs]
    return outputs if isinstance(outputs, (int, float, str)) else str(outputs)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_models_of_earlier_versions(path, tmp_path):
    estimator, extra = load_model(path)
    assert plain(estimator.predict(extra["X"])) == extra["predicted"]
    save_model(estimator, tmp_path / "again.mm")
    again, extra = load_model(tmp_path / "again.mm")
    assert plain(again.predict(extra["X"])) == extra["predicted"]
    assert np.array_equal(again._weights, estimator._weights)


def test_every_estimator_is_among_them():
    names = {type(load_model(path)[0]).__name__ for path in FILES}
    assert names == {entry.name for entry in registry.ESTIMATORS if entry.is_saved}


def with_params(path, new, **params):
    """A copy of a model file with other parameters in it."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(new, "w") as copy:
        for name in old.namelist():
            content = old.read(name)
            if name == "header.json":
                header = json.loads(content)
                header["params"] |= params
                content = json.dumps(header)
            copy.writestr(name, content)
    return new


@pytest.mark.parametrize("name", ["classes", "described"])
def test_values_of_earlier_versions_have_their_new_spelling_and_can_be_fitted_again(name):
    estimator, extra = load_model(SAVED / f"{name}.mm")
    assert estimator.loss == "zero_one"
    again = estimator.fit(extra["X"], extra["predicted"])
    assert again.result_.converged


@pytest.mark.parametrize(
    "name, param, old, new",
    [
        ("performance", "measure", "rocarea", "roc_auc"),
        ("performance", "measure", "precision@k", "precision_at_k"),
        ("performance", "measure", "recall@precision", "recall_at_precision"),
        ("performance", "solver", "one-slack", "one_slack"),
        ("ranker", "loss", "average-precision", "average_precision"),
        ("ranker", "loss", "normalized-swaps", "normalized_swaps"),
        ("tagger", "loss", "normalized-hamming", "normalized_hamming"),
    ],
)
def test_old_spellings_of_values(name, param, old, new, tmp_path):
    path = with_params(SAVED / f"{name}.mm", tmp_path / "old.mm", **{param: old})
    assert getattr(load_model(path)[0], param) == new


@pytest.mark.parametrize(
    "name, old, value, new, now",
    [
        ("tagger", "partial", "alternate", "partial_labels", "cccp"),
        ("dependency", "partial", "convex", "partial_labels", "convex"),
        ("matcher", "partial", True, "allow_unmatched", True),
        ("segmenter", "max_length", 7, "max_segment_length", 7),
        ("grammar", "max_length", 50, "max_sentence_length", 50),
        ("counted-grammar", "max_length", 50, "max_sentence_length", 50),
        ("performance", "n_basis", 9, "n_components", 9),
        ("dependency", "templates", None, "features", None),
    ],
)
def test_old_names_of_parameters(name, old, value, new, now, tmp_path):
    path = with_params(SAVED / f"{name}.mm", tmp_path / "old.mm", **{old: value})
    assert getattr(load_model(path)[0], new) == now


def test_old_names_of_parameters_of_an_extractor(tmp_path, monkeypatch):
    monkeypatch.setitem(model_values.OLD_PARAMS, "WindowFeatures", {"least": "min_count"})
    features = {"$type": "WindowFeatures", "params": {"templates": ["w[0]"], "least": 3}}
    path = with_params(SAVED / "columns.mm", tmp_path / "old.mm", features=features)
    assert load_model(path)[0].features.min_count == 3


def test_words_of_other_parameters_are_left_alone(tmp_path):
    params = {"class_weight": "zero-one"}
    path = with_params(SAVED / "performance.mm", tmp_path / "old.mm", **params)
    estimator, _ = load_model(path)
    assert estimator.get_params()["class_weight"] == "zero-one"
