"""LightGBM's lambdarank: boosted trees, as many as the validation part asks for."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..case import Floats

LABEL = "LightGBM lambdarank"
PARAMETERS = {
    "objective": "lambdarank",
    "metric": "ndcg",
    "eval_at": [10],
    "learning_rate": 0.05,
    "num_leaves": 15,
    "min_data_in_leaf": 50,
    "seed": 0,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
MOST_TREES, PATIENCE = 500, 50


def lambdarank_scores(train: Any, validation: Any, test: Any) -> Floats:
    """Scores of the test part's documents; parts have ``X``, ``y`` and ``qid``, by query."""
    import lightgbm

    def dataset(part: Any, **reference: Any) -> Any:
        changes = np.flatnonzero(np.diff(part.qid)) + 1
        sizes = np.diff(np.concatenate([[0], changes, [len(part.qid)]]))
        return lightgbm.Dataset(part.X, part.y, group=sizes, **reference)

    data = dataset(train)
    model = lightgbm.train(
        PARAMETERS,
        data,
        MOST_TREES,
        valid_sets=[dataset(validation, reference=data)],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )
    return np.asarray(model.predict(test.X), dtype=np.float64)
