"""
Ordinal regression: grade wines
===============================

Grades have an order, but are not numbers: the step from "light" to "medium" need not be as large as
the next one. ``OrdinalSVM`` learns one score and the thresholds between grades. Data: the wine set
of scikit-learn; we predict how strong a wine is from its other measurements.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import maxmargin as mm
from maxmargin.metrics import grade_scores

wine = load_wine()
names = [name for name in wine.feature_names if name != "alcohol"]
X = wine.data[:, [wine.feature_names.index(name) for name in names]]
GRADES = ["light", "medium", "strong", "very strong"]
numbers = np.digitize(wine.data[:, wine.feature_names.index("alcohol")], [12.5, 13.0, 13.5])
y = np.array(GRADES)[numbers]
print(dict(zip(GRADES, np.bincount(numbers).tolist(), strict=True)))

# %%
# Three ways to predict grades: classes without an order, numbers that are rounded, and thresholds.
# The mean absolute error says how many grades a prediction is off.

models = {
    "classes": LinearSVC(C=0.1, random_state=0),
    "OrdinalSVM": mm.OrdinalSVM(C=0.1, grades=GRADES, random_state=0),
}
found = {
    name: cross_val_predict(make_pipeline(StandardScaler(), model), X, y, cv=10)
    for name, model in models.items()
}
regression = make_pipeline(StandardScaler(), LinearRegression())
rounded = np.clip(np.rint(cross_val_predict(regression, X, numbers, cv=10)), 0, 3).astype(int)
found["rounded numbers"] = np.array(GRADES)[rounded]
for name, predicted in found.items():
    scores = grade_scores(y, predicted, GRADES)
    print(
        f"{name:16} accuracy {scores.accuracy:.1%}, off by {scores.mean_absolute_error:.3f} grades"
    )

# %%
# Classes are often right, but far off where they are wrong; rounded numbers avoid the outer grades.
# The thresholds are parallel cuts through one score, wherever they fit best. The picture shows them
# for all wines, and which measurements make a wine strong.

X_scaled = StandardScaler().fit_transform(X)
model = mm.OrdinalSVM(C=0.1, grades=GRADES, random_state=0).fit(X_scaled, y)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
scores = model.linear_score(X_scaled)
bins = np.linspace(scores.min(), scores.max(), 30)
left.hist([scores[y == grade] for grade in GRADES], bins, stacked=True, label=GRADES)
for threshold in model.thresholds_:
    left.axvline(threshold, color="black", linestyle="--")
left.set(xlabel="score; dashed: the thresholds", ylabel="wines")
left.legend(frameon=False)
order = np.argsort(model.coef_)
right.barh([names[k] for k in order], model.coef_[order])
right.set(xlabel="weight")
plt.show()
