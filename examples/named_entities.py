"""Spanish named entities from start to finish
============================================

Find persons, places and organisations in sentences: search for C, train with a certificate, judge,
look at the worst mistakes and why they were made, and write a report.

Reads the Spanish files of CoNLL-2002, given as arguments or found in the folder ``conll2002`` of
``$MAXMARGIN_DATA``. Without them, makes sentences of its own, with names that the training part has
never seen, and with football, where a team is called like its town.

The picture shows how F1 depends on C; the scores of the test sentences with their 95 % intervals;
what made the most confident mistake; and further mistakes, with what was right below. The report,
one page of HTML, lies next to it.

::

    python examples/named_entities.py [picture.png]
    python examples/named_entities.py picture.png esp.train esp.testa esp.testb
"""

import os
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.features import WindowFeatures
from maxmargin.formats import read_columns
from maxmargin.metrics import chunk_f1_scorer, reliability

CS = [0.001, 0.01, 0.1, 1.0, 10.0]
VIEWS = ("w[{}]", "lower(w[{}])", "shape(w[{}])", "prefix3(w[{}])", "suffix3(w[{}])")
TEMPLATES = [view.format(k) for view in VIEWS for k in (-2, -1, 0, 1, 2)]
PARTS = ("train", "testa", "testb")  # to train on, to calibrate on, to judge by
SHOWN = 6
COLORS = {"PER": "#1b7837", "LOC": "#2166ac", "ORG": "#b2182b", "MISC": "#8c510a", "O": "0.25"}

SENTENCES = """
PER VERB ayer a LOC .|El presidente de ORG , PER , VERB en LOC .|LOC , 12 may ( EFE ) .
Según PER , la empresa ORG VERB cerca de LOC .|ORG VERB a PER .|ORG VERB a LOC .
PER y PER VERB en LOC con un retraso de dos horas .|La policía de LOC VERB a PER .
TEAM ganó a TEAM en LOC por dos goles a uno .|PER , de TEAM , VERB en el minuto 12 .
Vecinos de LOC y de LOC hablaron con PER .|El ministro PER VERB a ORG .|PER VERB .
TEAM y TEAM empataron ayer .|TEAM no VERB a PER .|Nadie VERB a PER en LOC .|LOC VERB a PER .
"""
VERBS = "viajó llegó habló vio invitó apoyó despidió escribió criticó recibió volvió ganó".split()
SYLLABLES = "ba ca da fo ga lo ma mi na pe ra ro sa so ta te va vi za ri lu".split()
ENDINGS = {"first": ("o", "a", "el", "ia"), "last": ("ez", "oz", "era"), "town": ("illa", "ona")}


def make_name(kind, rng):
    """A name like those of Spain; one of five is like those of other things."""
    if rng.random() < 0.2:
        kind = rng.choice(list(ENDINGS))
    stem = "".join(rng.choice(SYLLABLES, rng.integers(1, 3)))
    return str(stem + rng.choice(ENDINGS[kind])).capitalize()


def make_entity(kind, rng):
    """Words of a name, and their type."""
    if kind == "PER":
        whole = [make_name("first", rng), make_name("last", rng)]
        return whole if rng.random() < 0.6 else whole[1:], "PER"
    town = make_name("town", rng)
    if kind == "LOC":
        return (["San", town] if rng.random() < 0.2 else [town]), "LOC"
    if kind == "TEAM":
        return (["Real", town] if rng.random() < 0.3 else [town]), "ORG"
    return ["Banco", "de", town] if rng.random() < 0.5 else [make_name("last", rng), "SA"], "ORG"


def make_sentences(n, rng):
    """Sentences, and their tags."""
    patterns = [line.split() for line in SENTENCES.strip().replace("\n", "|").split("|")]
    X, y = [], []
    for pattern in (patterns[k] for k in rng.integers(len(patterns), size=n)):
        words, tags = [], []
        for slot in pattern:
            if slot in ("PER", "LOC", "ORG", "TEAM"):
                name, kind = make_entity(slot, rng)
                words += name
                tags += [f"B-{kind}"] + [f"I-{kind}"] * (len(name) - 1)
            else:
                words.append(str(rng.choice(VERBS)) if slot == "VERB" else slot)
                tags.append("B-ORG" if slot == "EFE" else "O")
        X.append(words)
        y.append(tags)
    return X, y


def read_sentences(path):
    """Words and tags of a column file."""
    data = read_columns(path)
    words, tags = data.columns[0], data.columns[-1]
    spans = list(zip(data.offsets[:-1], data.offsets[1:], strict=True))
    return [words[a:b] for a, b in spans], [tags[a:b] for a, b in spans]


def find_corpus(paths):
    """The three parts: files that were given or found, or sentences that are made."""
    folder = Path(os.environ.get("MAXMARGIN_DATA", "."), "conll2002")
    paths = paths or [path for part in PARTS for path in folder.glob(f"esp.{part}*")]
    if len(paths) == len(PARTS):
        return [read_sentences(path) for path in paths]
    rng = np.random.default_rng(0)
    return [make_sentences(n, rng) for n in (400, 200, 400)]


def confident_mistakes(tagger, X, y):
    """(probability of the wrong tag, sentence, token), the surest first, one of each sentence."""
    found = []
    for i, probabilities in enumerate(tagger.predict_proba(X)):
        best = probabilities.argmax(axis=1)
        wrong = [t for t, k in enumerate(best) if tagger.classes_[k] != y[i][t]]
        found += [max((probabilities[t, best[t]], i, t) for t in wrong)] if wrong else []
    return sorted(found, reverse=True)


def color_of(tag):
    """Of the type of a tag such as B-PER."""
    return COLORS[tag[2:] or tag]


def draw_sentence(axis, height, words, predicted, truth):
    """Words in the colours of their predicted types; what was right stands below wrong ones."""
    x = 0.0
    for word, tag, true in zip(words, predicted, truth, strict=True):
        bold = "bold" if tag != "O" else "normal"
        axis.text(x, height, word, color=color_of(tag), weight=bold, fontsize=9, clip_on=True)
        if tag != true:
            right = f"right: {true}"
            axis.text(x, height - 0.36, right, color=color_of(true), fontsize=7, clip_on=True)
        x += 0.0095 * max(len(word), 10 if tag != true else 0) + 0.01


def draw_evidence(axis, words, decision):
    """What spoke for the wrong tag, and what against it."""
    shown = decision.evidence[:8][::-1]
    values = [one.contribution for one in shown]
    axis.barh(range(len(shown)), values, color=["#d9822b" if v > 0 else "#3a9a5b" for v in values])
    axis.set_yticks(range(len(shown)), [one.name for one in shown], fontsize=8)
    axis.axvline(0.0, color="0.3", linewidth=0.8)
    title = f"why {decision.chosen} for “{words[decision.place]}”, and not {decision.rival}"
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("weight for the wrong tag less that for the right one", fontsize=8)


def main(picture="named_entities.png", *paths):
    """Search, train, judge, explain, draw, report."""
    (X, y), (X_other, y_other), (X_test, y_test) = find_corpus(paths)

    # Which C? Folds of the training sentences tell.
    features = WindowFeatures(TEMPLATES, columns=["w"])
    rules = {"constraints": "bio", "on_violation": "repair"}  # I-X continues what B-X begins
    tagger = mm.SequenceTagger(features=features, **rules, tol=0.02, random_state=0)
    search = mm.SearchCV(tagger, CS, cv=3, scoring=chunk_f1_scorer).fit(X, y)
    print(f"best C {search.best_params_['C']:g}, F1 {search.best_score_:.4f} in cross-validation")

    # The model that it trained, with its certificate; held-out sentences tell how sure it may be.
    tagger = search.best_estimator_
    print(tagger.result_, end="\n\n")
    tagger.calibrate(X_other, y_other)

    # How good is it, and how sure? The report has it all.
    report = tagger.report(X_test, y_test)
    for name, (score, low, high) in report.scores.items():
        print(f"{name}: {score:.4f}, between {low:.4f} and {high:.4f}")
    probabilities = np.concatenate([p.max(axis=1) for p in tagger.predict_proba(X_test)])
    best = np.concatenate([tagger.classes_[p.argmax(1)] for p in tagger.predict_proba(X_test)])
    calibration = reliability(probabilities, best == np.concatenate(y_test))
    print(f"expected calibration error {calibration.ece:.4f}\n")

    # Where is it wrong and most sure of it, and why?
    mistakes = confident_mistakes(tagger, X_test, y_test)
    _, i, t = mistakes[0]
    explanation = tagger.explain(X_test[i], y_test[i])
    print(explanation)
    decision = next((d for d in explanation.decisions if d.place == t), explanation.decisions[0])

    figure = plt.figure(figsize=(13, 7), layout="constrained")
    grid = figure.add_gridspec(2, 3, width_ratios=[1, 1, 1.5], height_ratios=[1, 1])
    left, middle, right = (figure.add_subplot(grid[0, k]) for k in range(3))
    results = search.cv_results_
    for k in range(search.n_splits_):
        left.semilogx(results["param_C"], results[f"split{k}_test_score"], ".", color="0.6")
    left.semilogx(results["param_C"], results["mean_test_score"], color="C0")
    left.axvline(search.best_params_["C"], color="C1", linewidth=1, linestyle="--")
    left.set(xlabel="C", ylabel="F1 of entities", title="three folds, and their mean")
    names = list(report.scores)
    scores, low, high = np.array([report.scores[name] for name in names]).T
    middle.errorbar(scores, range(len(names)), xerr=[scores - low, high - scores], fmt="o")
    middle.set_yticks(range(len(names)), [name.replace("_", " ") for name in names])
    middle.set(title="test sentences", ylim=(len(names) - 0.5, -0.5))
    draw_evidence(right, X_test[i], decision)
    below = figure.add_subplot(grid[1, :])
    for row, (p, i, t) in enumerate(mistakes[:SHOWN]):
        below.text(-0.05, -row, f"{p:.0%}", fontsize=8, color="0.4")
        predicted, shown = tagger.predict(X_test[i : i + 1])[0], slice(max(0, t - 6), t + 9)
        draw_sentence(below, -row, X_test[i][shown], predicted[shown], y_test[i][shown])
    below.set(xlim=(-0.06, 1.0), ylim=(-SHOWN + 0.4, 0.6), title="its most confident mistakes")
    below.axis("off")
    figure.savefig(picture, dpi=110)
    print(f"\nwrote {picture} and {report.save(Path(picture).with_suffix('.html'))}")


if __name__ == "__main__":
    main(*sys.argv[1:])
