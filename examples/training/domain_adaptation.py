"""
Domain adaptation: from newspapers to the web
=============================================

Much labelled text of one kind, little of another: ``fit(X, y, prior=model)`` starts from a model
for the first kind and moves away from it only as far as the new data ask for. Here a tagger of
parts of speech, trained on newspapers (CoNLL-2000), is adapted to the web (English Web Treebank).

.. data: conll2000 ud_english_ewt
"""

# sphinx_gallery_thumbnail_path = 'images/gallery/domain_adaptation.png'
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

import maxmargin as mm
from maxmargin.datasets import fetch_conll2000, fetch_ud_english_ewt
from maxmargin.features import WindowFeatures

news, web = fetch_conll2000(), fetch_ud_english_ewt()
X_news = [[(word,) for word, _ in sentence] for sentence in news.X_train[:3000]]
y_news = [[tag for _, tag in sentence] for sentence in news.X_train[:3000]]
known = {tag for tags in y_news for tag in tags}


def web_part(sentences):
    """Words and tags of the sentences whose tags newspapers have, too."""
    kept = [s for s in sentences if all(tag in known for _, _, tag in s)]
    return [[(word,) for word, _, _ in s] for s in kept], [[tag for _, _, tag in s] for s in kept]


X_web, y_web = web_part(web.X_train)
X_test, y_test = web_part(web.X_test)

# %%
# The newspaper model loses much on the web, where names, spelling and style differ.

VIEWS = ["w[-1]", "w[0]", "w[1]", "lower(w[0])", "shape(w[0])"]
VIEWS += ["prefix2(w[0])", "suffix1(w[0])", "suffix2(w[0])", "suffix3(w[0])"]
tagger = mm.SequenceTagger(C=0.1, features=WindowFeatures(VIEWS, columns=["w"]), random_state=0)
newspaper = clone(tagger).fit(X_news, y_news)
X_paper = [[(word,) for word, _ in sentence] for sentence in news.X_test]
y_paper = [[tag for _, tag in sentence] for sentence in news.X_test]
start = newspaper.score(X_test, y_test)
print(f"newspaper model: {newspaper.score(X_paper, y_paper):.1%} on news, {start:.1%} on the web")

# %%
# .. code-block:: output
#
#     newspaper model: 96.7% on news, 85.6% on the web
#
# Now with a growing number of sentences from the web: alone, together with those from newspapers,
# and with the newspaper model as prior.

order = np.random.default_rng(0).permutation(len(X_web))
sizes = (10, 30, 100, 300, 1000)
scores = {"web alone": [], "both together": [], "web, with prior": []}
for n in sizes:
    X, y = [X_web[i] for i in order[:n]], [y_web[i] for i in order[:n]]
    alone = tagger.fit(X, y).score(X_test, y_test)
    together = tagger.fit(X_news + X, y_news + y).score(X_test, y_test)
    adapted = tagger.fit(X, y, prior=newspaper).score(X_test, y_test)
    for values, score in zip(scores.values(), (alone, together, adapted), strict=True):
        values.append(100 * score)
    print(f"{n:5} sentences: {alone:.1%} alone, {together:.1%} together, {adapted:.1%} with prior")

# %%
# .. code-block:: output
#
#        10 sentences: 55.8% alone, 86.0% together, 86.0% with prior
#        30 sentences: 70.3% alone, 86.2% together, 86.6% with prior
#       100 sentences: 79.5% alone, 86.8% together, 87.2% with prior
#       300 sentences: 85.1% alone, 87.9% together, 88.8% with prior
#      1000 sentences: 89.4% alone, 89.2% together, 90.3% with prior
#
# The prior never falls behind the newspaper model, and needs only the new sentences and the old
# model: the newspapers themselves may be gone.

figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
axes.axhline(100 * start, color="0.5", linestyle="--", label="newspaper model")
for name, values in scores.items():
    axes.plot(sizes, values, "o-", label=name)
axes.set(xscale="log", xlabel="sentences from the web", ylabel="tokens right on the web (%)")
axes.set_xticks(sizes, [str(n) for n in sizes])
axes.minorticks_off()
axes.legend(frameon=False)
plt.show()

# %%
# .. image:: /images/gallery/domain_adaptation.png
#    :alt: Accuracy on the web by number of sentences; the model with a prior is ahead
