"""Models that earlier versions saved are read and predict what they did.

Each file of tests/saved has inputs and predictions among its extra values. They are never written
anew: a change of the format that cannot read them is a change that users will meet.
"""

from pathlib import Path

import numpy as np
import pytest

from maxmargin import registry
from maxmargin.persistence import load_model, save_model

FILES = sorted((Path(__file__).parent / "saved").glob("*.mm"))


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
