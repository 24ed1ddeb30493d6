"""
Handwriting recognition: read OCR letters word by word
======================================================

The images of handwritten letters are hard to read one by one: an "n" may look like a "u". A chain
over the letters of a word also learns which letters follow each other.

.. data: ocr_letters
"""

# sphinx_gallery_thumbnail_path = 'images/gallery/ocr_letters.png'
import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.datasets import fetch_ocr_letters
from maxmargin.metrics import sequence_accuracy, token_accuracy

data = fetch_ocr_letters()  # train on one fold of ten, the usual hard protocol
print(len(data.X_train), "words to train on,", len(data.X_test), "to test on")

# %%
# .. code-block:: output
#
#     626 words to train on, 6251 to test on
#
# ``MulticlassSVM`` reads letter by letter. ``SequenceTagger`` with ``order=1`` knows pairs of
# letters, with ``order=2`` triples, and so on. All of them see the same pixels.

letters = mm.MulticlassSVM(C=0.1, random_state=0)
letters.fit(np.vstack(data.X_train), np.concatenate(data.y_train))
readings = {"letter by letter": [letters.predict(word).tolist() for word in data.X_test]}
for order in (1, 2, 3):
    tagger = mm.SequenceTagger(C=0.3, order=order, random_state=0)
    tagger.fit(data.X_train, data.y_train)
    readings[f"chain, order {order}"] = tagger.predict(data.X_test)
for name, found in readings.items():
    right, whole = token_accuracy(data.y_test, found), sequence_accuracy(data.y_test, found)
    print(f"{name:17} {right:6.1%} of letters, {whole:6.1%} of words right")

# %%
# .. code-block:: output
#
#     letter by letter   72.5% of letters,  20.0% of words right
#     chain, order 1     77.8% of letters,  33.5% of words right
#     chain, order 2     88.5% of letters,  65.3% of words right
#     chain, order 3     93.1% of letters,  79.4% of words right
#
# The vocabulary has only 55 words, so the longer the history of letters, the better the guess. On
# open vocabulary, expect less from a high order.
#
# The picture shows words that the chain of order 3 reads and the one of order 1 does not; wrong
# letters are red. (The first letters of all words are missing in these data: they were capitals.)

first, third = readings["chain, order 1"], readings["chain, order 3"]
candidates = {
    "".join(word): i  # one of each word
    for i, word in enumerate(data.y_test)
    if third[i] == list(word) != first[i] and 7 <= len(word) <= 10
}
shown = list(candidates.values())[:5]
figure, axes = plt.subplots(len(shown), 1, figsize=(8, 8.5))
for axis, i in zip(axes, shown, strict=True):
    images = [np.pad(image.reshape(16, 8), ((1, 1), (2, 2))) for image in data.X_test[i]]
    n = len(images)
    axis.imshow(np.hstack(images), cmap="gray_r", extent=(0, n, 0, 1.2), aspect="auto")
    for row, (name, found) in enumerate(readings.items()):
        height = -0.35 - 0.4 * row
        axis.text(-0.2, height, name, ha="right", color="0.4")
        for t, (letter, gold) in enumerate(zip(found[i], data.y_test[i], strict=True)):
            color = "black" if letter == gold else "red"
            axis.text(t + 0.5, height, letter, ha="center", color=color)
    axis.set(xlim=(0, 10), ylim=(-1.7, 1.25))
    axis.axis("off")
figure.subplots_adjust(left=0.19, right=0.99, top=0.99, bottom=0.01)
plt.show()

# %%
# .. image:: /images/gallery/ocr_letters.png
#    :alt: Images of handwritten words, and how classifiers and chains of order 1 to 3 read them
