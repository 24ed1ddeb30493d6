"""
Word alignment of translations with SetMatcher
==============================================

Which word translates which? Each word of a sentence matches one word of its translation, or none.
``SetMatcher`` learns from few aligned sentences what speaks for a pair of words, and finds the best
matching of all words together.
"""

import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm

# %%
# A small grammar writes English sentences and their Spanish translations: adjectives come after the
# noun, and "will see" is one word. Real texts would come from a parallel corpus.

NOUNS = {"cats": "gatos", "dogs": "perros", "boys": "chicos", "artists": "artistas"}
ADJECTIVES = {"black": "negros", "famous": "famosos", "old": "viejos", "modern": "modernos"}
VERBS = {"see": "ven", "visit": "visitan", "help": "ayudan", "admire": "admiran"}
FUTURE = {"see": "verán", "visit": "visitarán", "help": "ayudarán", "admire": "admirarán"}
rng = np.random.default_rng(0)


def phrase():
    """English and Spanish words of "the [adjective] noun", and which belong together."""
    noun, adjective = str(rng.choice(list(NOUNS))), str(rng.choice(list(ADJECTIVES)))
    if rng.random() < 0.3:
        return ["the", noun], ["los", NOUNS[noun]], [0, 1]
    return ["the", adjective, noun], ["los", NOUNS[noun], ADJECTIVES[adjective]], [0, 2, 1]


def sentence_pair():
    """English words, Spanish words, and the Spanish partner of each English word (-1: none)."""
    (e1, s1, y1), (e2, s2, y2) = phrase(), phrase()
    verb = str(rng.choice(list(VERBS)))
    future = rng.random() < 0.5
    english = ["will", verb] if future else [verb]
    spanish = [*s1, (FUTURE if future else VERBS)[verb]]
    middle = [-1, len(s1)] if future else [len(s1)]
    last = [k + len(spanish) for k in y2]
    return e1 + english + e2, spanish + s2, y1 + middle + last


pairs = [sentence_pair() for _ in range(230)]
print(*pairs[2], sep="\n")

# %%
# Features of a pair of words, as in Taskar, Lacoste-Julien & Klein (2005): how often both occur in
# the same sentence pairs (Dice coefficient), how far apart they stand, and whether they look alike.
# The counts need no aligned sentences, only translated ones.

english_of, spanish_of = {}, {}
for i, (english, spanish, _) in enumerate(pairs):
    for word in english:
        english_of.setdefault(word, set()).add(i)
    for word in spanish:
        spanish_of.setdefault(word, set()).add(i)


def features(english, spanish):
    """An array of shape (English words, Spanish words, features)."""
    table = np.zeros((len(english), len(spanish), 3))
    for i, e in enumerate(english):
        for j, s in enumerate(spanish):
            both = len(english_of[e] & spanish_of[s])
            dice = 2 * both / (len(english_of[e]) + len(spanish_of[s]))
            distance = abs(i / len(english) - j / len(spanish))
            table[i, j] = dice, distance, e[:3] == s[:3]
    return table


X = [features(english, spanish) for english, spanish, _ in pairs]
y = [gold for _, _, gold in pairs]
matcher = mm.SetMatcher(C=1.0, allow_unmatched=True, random_state=0)
matcher.fit(X[:30], y[:30])
best_dice = [x[:, :, 0].argmax(axis=1) for x in X[30:]]
right = np.mean(np.concatenate(best_dice) == np.concatenate(y[30:]))
matched = np.mean(np.concatenate(matcher.predict(X[30:])) == np.concatenate(y[30:]))
print(f"words right: {right:.1%} by the best Dice coefficient, {matched:.1%} by SetMatcher")
for name, weight in zip(["Dice", "distance", "look alike"], matcher.coef_, strict=False):
    print(f"{name:10} {weight:+.2f}")

# %%
# Each word by itself takes its most frequent companion, and both "the" take the same "los". The
# matching uses each Spanish word once, distance decides which "the" is which "los", and "will"
# stays alone. Thirty aligned sentences were enough to learn three weights.

shown = next(i for i in range(30, 230) if -1 in y[i] and len(y[i]) == 8)
english, spanish, gold = pairs[shown]
predicted = matcher.predict(X[shown : shown + 1])[0]
figure, axes = plt.subplots(figsize=(8, 2.8), layout="constrained")
for i, word in enumerate(english):
    axes.text(i, 1.06, word, ha="center", va="bottom", size=12)
    if predicted[i] >= 0:
        color = "tab:blue" if predicted[i] == gold[i] else "red"
        axes.plot([i, predicted[i]], [1.0, 0.0], color=color)
for j, word in enumerate(spanish):
    axes.text(j, -0.06, word, ha="center", va="top", size=12)
axes.set(xlim=(-0.6, max(len(english), len(spanish)) - 0.4), ylim=(-0.3, 1.3))
axes.axis("off")
plt.show()
