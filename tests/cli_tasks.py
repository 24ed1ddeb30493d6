"""Small files for every task of the command line: with labels, without, and with mistakes."""

from typing import NamedTuple

import numpy as np

from maxmargin.formats import gapped_rows


class Files(NamedTuple):
    """Units of a labelled file and the same without labels, as texts that are put together."""

    labelled: list[str]
    bare: list[str]
    options: tuple[str, ...] = ()  # of train
    score: tuple[str, ...] = ("accuracy",)  # where evaluate tells how good predictions are
    least: float = 0.9


def tagged(n, rng):
    labelled, bare = [], []
    for _ in range(n):
        words = rng.choice(["oslo", "paris", "is", "far", "."], size=4)
        rows = [(w, "B-LOC" if w in ("oslo", "paris") else "O") for w in words.tolist()]
        labelled.append("".join(f"{w} {y}\n" for w, y in rows) + "\n")
        bare.append("".join(f"{w}\n" for w, _ in rows) + "\n")
    return labelled, bare


def segmented(n, rng):
    labelled, bare = [], []
    for _ in range(n):
        rows = []
        for _ in range(3):
            if rng.random() < 0.5:
                rows += [("new", "B-LOC"), (rng.choice(["york", "delhi"]), "I-LOC")]
            else:
                rows.append((rng.choice(["is", "far"]), "O"))
        labelled.append("".join(f"{w} {y}\n" for w, y in rows) + "\n")
        bare.append("".join(f"{w}\n" for w, _ in rows) + "\n")
    return labelled, bare


def rows_of(n, rng, label_of):
    """svmlight lines; labels follow from two features of five."""
    labelled, bare = [], []
    for x in rng.random((n, 5)).round(3):
        pairs = " ".join(f"{j + 1}:{value:g}" for j, value in enumerate(x) if value)
        labelled.append(f"{label_of(x)} {pairs}\n".lstrip())
        bare.append(f"{pairs}\n")
    return labelled, bare


def classes(n, rng):
    return rows_of(n, rng, lambda x: 1 + 2 * (x[0] > 0.5) + (x[1] > 0.5))


def sets(n, rng):
    names = np.array(["7", "12", "30"])
    return rows_of(n, rng, lambda x: ",".join(names[x[:3] > 0.5]))


def grades(n, rng):
    return rows_of(n, rng, lambda x: ["low", "medium", "high"][int(1.5 * (x[0] + x[1]))])


def two_classes(n, rng):
    return rows_of(n, rng, lambda x: "+1" if x[0] + x[1] > 1.2 else "-1")


def queries(n, rng):
    labelled, bare = [], []
    for i, x in enumerate(rng.random((n, 5)).round(3)):
        rest = f"qid:{i // 6 + 1} " + " ".join(f"{j + 1}:{v:g}" for j, v in enumerate(x) if v)
        labelled.append(f"{int(3 * (x[0] + x[1]) / 2)} {rest} # doc {i}\n")
        bare.append(rest + "\n")
    return labelled, bare


def dependencies(n, rng):
    labelled, bare = [], []
    for i in range(n):
        words = [(rng.choice(["the", "a"]), "DET", "det"), (rng.choice(["cat", "dog"]), "NOUN", "")]
        words += [(rng.choice(["ran", "sat"]), "VERB", "root"), (".", "PUNCT", "punct")]
        words[1] = (*words[1][:2], "nsubj")
        heads = [2, 3, 0, 3]
        if rng.random() < 0.5:
            words.insert(1, (rng.choice(["big", "old"]), "ADJ", "amod"))
            heads = [3, 3, 4, 0, 4]
        texts = ["", ""]
        for t, ((word, tag, relation), head) in enumerate(zip(words, heads, strict=True), 1):
            for k, tree in enumerate((f"{head}\t{relation}", "_\t_")):
                texts[k] += f"{t}\t{word}\t{word}\t{tag}\t{tag}\t_\t{tree}\t_\t_\n"
        labelled.append(f"# sent_id = {i}\n{texts[0]}\n")
        bare.append(f"# sent_id = {i}\n{texts[1]}\n")
    return labelled, bare


def brackets(n, rng):
    labelled, bare = [], []
    for _ in range(n):
        noun, verb = rng.choice(["cat", "dog"]), rng.choice(["ran", "sat"])
        if rng.random() < 0.5:
            labelled.append(f"(S (NP (DT the)\n   (NN {noun})) (VP (VBD {verb})) (. .))\n")
            bare.append(f"(X (DT the) (NN {noun}) (VBD {verb}) (. .))\n")
        else:
            labelled.append(f"( (S (NP-SBJ (NN {noun})) (VP (VBD {verb}) (NP (-NONE- *)))) )\n")
            bare.append(f"(X (NN {noun}) (VBD {verb}))\n")
    return labelled, bare


def alignments(n, rng):
    labelled, bare = [], []
    for i in range(n):
        x = "".join(rng.choice(list("ACGT"), size=8))
        cut = int(rng.integers(1, 6))
        y = x[:cut] + x[cut + 2 :]
        pairs = [(k, k if k < cut else k - 2) for k in range(8) if not cut <= k < cut + 2]
        rows = gapped_rows(x, y, pairs)
        labelled.append(f"# family {i}\n>x{i}\n{rows[0]}\n>y{i}\n{rows[1]}\n")
        bare.append(f"# family {i}\n>x{i}\n{x}\n>y{i}\n{y}\n")
    return labelled, bare


def label_trees(n, rng):
    labelled, bare = [], []
    for _ in range(n):
        on = rng.random(3) < 0.5
        labels = ["A" if on[0] else "B", "C" if on[0] and on[1] else "D", "E" if on[2] else "F"]
        texts = ["", ""]
        for v, (head, label) in enumerate(zip((0, 1, 1), labels, strict=True), 1):
            pairs = f" {v}:1" if on[v - 1] else ""
            for k, y in enumerate((label, "_")):
                texts[k] += f"{v} {head} {y}{pairs}\n"
        labelled.append(texts[0] + "\n")
        bare.append(texts[1] + "\n")
    return labelled, bare


MAKE = {
    "tag": (tagged, (), ("accuracy",), 1.0),
    "segment": (segmented, (), ("chunks", "f1"), 1.0),
    "multiclass": (classes, ("--C", "10"), ("accuracy",), 0.8),
    "multilabel": (sets, ("--C", "10"), ("micro", "f1"), 0.8),
    "ordinal": (grades, ("--C", "10", "--grades", "low,medium,high"), ("accuracy",), 0.8),
    "rank": (queries, ("--C", "10"), ("pair_accuracy",), 0.9),
    "measure": (two_classes, ("--C", "10", "--measure", "f1"), ("value",), 0.8),
    "depend": (dependencies, ("--hash-bits", "12"), ("las",), 1.0),
    "parse": (brackets, (), ("f1",), 1.0),
    "align": (alignments, ("--mode", "global", "--C", "10"), ("pair_accuracy",), 0.8),
    "label-tree": (label_trees, ("--C", "10"), ("tree_accuracy",), 1.0),
}


def make_files(task, n, seed=0):
    """Files of a task."""
    make, options, score, least = MAKE[task]
    labelled, bare = make(n, np.random.default_rng(seed))
    return Files(labelled, bare, options, score, least)
