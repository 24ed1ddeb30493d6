"""
Cost-sensitive classification: mistakes that cost more
======================================================

To miss a malignant tumour is worse than to examine a benign one again. The loss of
``MulticlassSVM`` may say so: a dict or a matrix of costs. Data: the breast cancer set of
scikit-learn.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin.metrics import mean_cost

data = load_breast_cancer()
X, y = data.data[:, :10], data.target_names[data.target]  # means of ten measurements of cells
print(*(f"{np.sum(y == name)} {name}" for name in data.target_names), sep=", ")

# %%
# A missed tumour costs 1, 2, 5, ... times as much as a false alarm. All predictions are made in
# cross-validation, so each is for a tumour that the model has not seen.

folds = StratifiedKFold(10, shuffle=True, random_state=0)
costs, missed, alarms = (1, 2, 5, 10, 20, 50), [], []
for cost in costs:
    loss = {("malignant", "benign"): float(cost)}  # (gold, predicted): cost; others cost 1
    model = make_pipeline(StandardScaler(), mm.MulticlassSVM(C=0.1, loss=loss, random_state=0))
    predicted = cross_val_predict(model, X, y, cv=folds)
    missed.append(np.sum((y == "malignant") & (predicted == "benign")))
    alarms.append(np.sum((y == "benign") & (predicted == "malignant")))
    paid = mean_cost([y], [predicted], loss)
    print(
        f"cost {cost:2}: {missed[-1]:2} missed, {alarms[-1]:3} false alarms, mean cost {paid:.3f}"
    )

# %%
# The costs trade one kind of mistake for the other. How to set them is not a matter of machine
# learning: it is what the mistakes cost in the end. The predictions need no threshold afterwards.

figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
places = np.arange(len(costs))
axes.bar(places - 0.2, missed, 0.4, color="tab:red", label="missed malignant tumours")
axes.bar(places + 0.2, alarms, 0.4, color="tab:blue", label="false alarms")
axes.set_xticks(places, [str(cost) for cost in costs])
axes.set(xlabel="cost of a missed tumour, a false alarm being 1", ylabel=f"of {len(y)} tumours")
axes.legend(frameon=False)
plt.show()
