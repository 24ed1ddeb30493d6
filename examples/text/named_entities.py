"""
Named entity recognition in Spanish news
========================================

A tagger finds persons, places, organizations and other names (CoNLL-2002). We train it, calibrate
it, and look at sentences with its tags and how sure it is of them.

.. data: conll2002
"""

# sphinx_gallery_thumbnail_path = 'images/gallery/named_entities.png'
import matplotlib.pyplot as plt

import maxmargin as mm
from maxmargin.datasets import fetch_conll2002
from maxmargin.features import WindowFeatures, ner_templates
from maxmargin.metrics import chunk_scores

data = fetch_conll2002()
tagger = mm.SequenceTagger(
    C=0.1,
    features=WindowFeatures(ner_templates()),
    constraints="bio",  # I-PER must continue B-PER or I-PER
    on_violation="repair",
    random_state=0,
)
tagger.fit(data.X_train, data.y_train)
print(f"within {100 * tagger.result_.relative_gap:.2f} % of the optimum")

# %%
# .. code-block:: output
#
#     within 0.53 % of the optimum
#
# How good is it?
# ---------------
# An entity counts as right if its type and all of its words are right.

predicted = tagger.predict(data.X_test)
print(chunk_scores(data.y_test, predicted))

# %%
# .. code-block:: output
#
#     chunks         precision  recall     F1  number
#     LOC                82.36   78.41  80.34    1084
#     MISC               61.99   53.24  57.28     340
#     ORG                79.02   82.57  80.75    1400
#     PER                86.87   91.84  89.29     735
#     micro average      80.30   80.42  80.36    3559
#     macro average      77.56   76.51  76.91    3559
#
#     token accuracy  97.46 %
#
# Miscellaneous names are the hardest: they are rare, and have little in common.
#
# How sure is it?
# ---------------
# Scores of a support vector machine are not probabilities. ``calibrate`` turns them into
# probabilities, with held-out sentences. For each sentence we take the probability of its least
# certain tag, and sort short sentences by it.

tagger.calibrate(data.X_dev, data.y_dev)
probabilities = [p.max(axis=1) for p in tagger.predict_proba(data.X_test)]
texts = [" ".join(word for word, _ in words) for words in data.X_test]
n_entities = [sum(tag.startswith("B-") for tag in tags) for tags in predicted]
fitting = [i for i, text in enumerate(texts) if 50 < len(text) < 110 and n_entities[i] > 1]
prose = [i for i in fitting if not {"EFE", "(", ":"} & set(texts[i].split())]
by_certainty = sorted(prose, key=lambda i: probabilities[i].min())
shown = by_certainty[:: len(by_certainty) // 6][:7]

# %%
# The picture shows seven sentences, the least certain first. A colour is a type; below a word is
# the probability of its tag if it is under 90 %, and in red the gold tag where the prediction is
# wrong. Most errors are among the tags of low probability: these are worth reading again by a
# person.

COLORS = {"PER": "tab:green", "LOC": "tab:blue", "ORG": "tab:purple", "MISC": "tab:brown"}
figure = plt.figure(figsize=(10, 5.6))
axes = figure.add_axes((0, 0, 1, 1))
style = {"family": "monospace", "size": 10}
for row, i in enumerate(shown):
    x = 0.0
    for (word, _), tag, gold, p in zip(
        data.X_test[i], predicted[i], data.y_test[i], probabilities[i], strict=True
    ):
        color = COLORS.get(tag[2:], "0.3")
        axes.text(x, -row, word, color=color, weight="normal" if tag == "O" else "bold", **style)
        notes = [(f"{p:.0%}", "0.4")] if p < 0.9 else []
        notes += [(gold, "red")] if tag != gold else []
        for k, (note, color) in enumerate(notes):
            axes.text(x, -row - 0.27 * (k + 1), note, color=color, family="monospace", size=8)
        x += max([len(word), *(len(note) for note, _ in notes)]) + 1
for k, (name, color) in enumerate(COLORS.items()):
    axes.text(8 * k, 0.8, name, color=color, weight="bold", **style)
axes.set(xlim=(-2, 118), ylim=(-len(shown) + 0.2, 1.3))
axes.axis("off")
plt.show()

# %%
# .. image:: /images/gallery/named_entities.png
#    :alt: Spanish sentences with predicted entities in colours, probabilities and errors
#
# See also: :doc:`the tutorial on these data </tutorials/ner>`.
