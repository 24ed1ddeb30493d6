"""
Learning to rank search results
===============================

Which documents answer a query best? ``RankSVM`` compares only documents of the same query, and can
be trained for NDCG, a measure of the first places. The data are MQ2008 of LETOR 4.0: 784 queries,
15,211 documents with grades from 0 to 2, in five folds.

.. data: ranking
"""

# sphinx_gallery_thumbnail_path = 'images/gallery/rank_documents.png'
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

import maxmargin as mm
from maxmargin.datasets import fetch_mq2008
from maxmargin.metrics import ndcg

data = fetch_mq2008(fold=1)
print(data.X_train.shape, "documents and features of", len(np.unique(data.qid_train)), "queries")

# %%
# .. code-block:: output
#
#     (9630, 46) documents and features of 471 queries
#
# Each loss gets the C that is best on the validation queries of its fold. For comparison, there is
# a regression on the grades, which knows nothing of queries.

LOSSES = {
    "swapped pairs": {"loss": "normalized_swaps"},
    "NDCG@10": {"loss": "ndcg", "k": 10},
    "average precision": {"loss": "average_precision"},
}
PLACES = range(1, 11)


def quality(model, data, part, k=10):
    """NDCG at place k on a part of the data."""
    return ndcg(data[f"y_{part}"], model.predict(data[f"X_{part}"]), data[f"qid_{part}"], k=k)


found = {name: [] for name in ["regression on grades", *LOSSES]}
for fold in range(1, 6):
    data = fetch_mq2008(fold=fold)
    best = {"regression on grades": Ridge().fit(data.X_train, data.y_train)}
    for name, parameters in LOSSES.items():
        models = [mm.RankSVM(C=C, random_state=0, **parameters) for C in (0.01, 0.1, 1.0, 10.0)]
        for model in models:
            model.fit(data.X_train, data.y_train, qid=data.qid_train)
        best[name] = max(models, key=lambda model: quality(model, data, "dev"))
    for name, model in best.items():
        found[name].append([quality(model, data, "test", k) for k in PLACES])
curves = {name: np.mean(values, axis=0) for name, values in found.items()}
for name, curve in curves.items():
    print(f"{name:21} NDCG@1 {curve[0]:.3f}  NDCG@3 {curve[2]:.3f}  NDCG@10 {curve[9]:.3f}")

# %%
# .. code-block:: output
#
#     regression on grades  NDCG@1 0.483  NDCG@3 0.550  NDCG@10 0.679
#     swapped pairs         NDCG@1 0.521  NDCG@3 0.565  NDCG@10 0.695
#     NDCG@10               NDCG@1 0.506  NDCG@3 0.568  NDCG@10 0.694
#     average precision     NDCG@1 0.507  NDCG@3 0.571  NDCG@10 0.699
#
# Every ranker is better than the regression, at all places. Among the losses, none is best
# everywhere: try two or three on validation queries.

figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
for name, curve in curves.items():
    axes.plot(PLACES, curve, "o--" if name.startswith("regression") else "o-", label=name)
axes.set(xlabel="places that count (k)", ylabel="NDCG@k of test queries")
axes.set_xticks(PLACES)
axes.legend(frameon=False, title="trained for")
plt.show()

# %%
# .. image:: /images/gallery/rank_documents.png
#    :alt: NDCG at 1 to 10 of a regression and of rankers that are trained for three losses
