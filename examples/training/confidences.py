"""
Probability calibration: how sure is the tagger?
================================================

Scores of a support vector machine are not probabilities. ``calibrate`` fits one number, a
temperature, on held-out sequences; then ``predict_proba`` has probabilities that can be believed.
Data: words of noisy handwritten digits from scikit-learn.
"""

import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.datasets import make_digit_words
from maxmargin.metrics import reliability
from maxmargin.report import plot_reliability

words = make_digit_words(n_train=300, n_test=600, noise=0.5)
X_other, y_other = words.X_test[:200], words.y_test[:200]  # to calibrate
X_test, y_test = words.X_test[200:], words.y_test[200:]
tagger = mm.SequenceTagger(C=0.1, random_state=0).fit(words.X_train, words.y_train)
tagger.calibrate(X_other, y_other)
print(f"temperature {tagger.calibration_.temperature:.2f}")

# %%
# Of the digits that were read with a probability of 70 %, are 70 % right? The expected calibration
# error (ECE) is the mean difference.

probabilities = np.concatenate(tagger.predict_proba(X_test))
sure = probabilities.max(axis=1)
right = tagger.classes_[probabilities.argmax(axis=1)] == np.concatenate(y_test)
found = reliability(sure, right)
print(f"accuracy {right.mean():.1%}, expected calibration error {found.ece:.3f}")

# %%
# What are probabilities good for? To leave the doubtful digits to a person: on the right, how
# accuracy grows if only the most certain digits are read.

figure, (left, right_panel) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
plot_reliability({"calibrated": found}, axes=left, title="digits of test words")
order = np.argsort(-sure)
accuracy = np.cumsum(right[order]) / np.arange(1, len(right) + 1)
right_panel.plot(np.linspace(0, 1, len(accuracy))[50:], accuracy[50:])
right_panel.set(xlabel="share of digits that are read", ylabel="share of them that is right")
right_panel.set_title("the most certain first")
plt.show()
