"""Examples without tokens: empty outputs in prediction, errors that name them in training."""

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.cli import main
from maxmargin.features import PackedSequences, WindowFeatures
from maxmargin.formats import TokenColumns, as_tree, read_conllu
from maxmargin.metrics import (
    attachment_scores,
    chunk_counts,
    chunk_scores,
    hamming,
    label_scores,
    sequence_accuracy,
)

RNG = np.random.default_rng(0)
WORDS = [["in", "Oslo"], ["New", "York", "is"], ["Anna", "left"], ["is", "Anna", "in", "York"]]
TAGS = [["O", "B-L"], ["B-L", "I-L", "O"], ["B-P", "O"], ["O", "B-P", "O", "B-L"]]
SEGMENTS = [[(1, 2, "L")], [(0, 2, "L")], [(0, 1, "P")], [(1, 2, "P"), (3, 4, "L")]]
SENTENCES = [[("a", "D"), ("b", "N"), ("c", "V")], [("d", "N"), ("c", "V")], [("b", "N")]]
HEADS = [[2, 3, 0], [2, 0], [0]]
ARCS = [[(h, f"l{h}") for h in heads] for heads in HEADS]
VECTORS = [RNG.normal(size=(len(words), 3)) for words in WORDS]


def with_empty(values, empty=()):
    """The same with empty ones first, twice in between, and last."""
    values = list(values)
    return [empty, values[0], empty, empty, *values[1:], empty]


def without(values):
    """What `with_empty` was given."""
    return [values[1], *values[4:-1]]


EMPTY = [0, 2, 3]


def tagger(**parameters):
    return mm.SequenceTagger(random_state=0, probability=True, **parameters)


WINDOW = WindowFeatures(["w[0]"])
MODELS = {
    "words": (lambda: tagger(features=WINDOW), WORDS, TAGS),
    "one thread more": (lambda: tagger(features=WINDOW, n_jobs=2), WORDS, TAGS),
    "constraints": (lambda: tagger(features=WINDOW, constraints="bio"), WORDS, TAGS),
    "vectors": (tagger, VECTORS, TAGS),
    "sparse": (tagger, [sp.csr_array(x) for x in VECTORS], TAGS),
    "dicts": (tagger, [[{w: 1.0} for w in words] for words in WORDS], TAGS),
    "kernel": (lambda: tagger(kernel="rbf"), VECTORS, TAGS),
    "order 2": (lambda: tagger(order=2), VECTORS, TAGS),
    "order 3": (
        lambda: tagger(order={"transitions": 3, "emissions": 1}, features=WINDOW),
        WORDS,
        TAGS,
    ),
    "pairs": (lambda: tagger(features=WINDOW, transition_features=WINDOW), WORDS, TAGS),
    "heads": (lambda: parser(), SENTENCES, HEADS),
    "any heads": (lambda: parser(projective=False), SENTENCES, HEADS),
    "arcs": (lambda: parser(labeled=True, n_jobs=2), SENTENCES, ARCS),
    "segments": (lambda: mm.SequenceSegmenter(features=WINDOW, random_state=0), WORDS, SEGMENTS),
    "segments of vectors": (lambda: mm.SequenceSegmenter(random_state=0), VECTORS, SEGMENTS),
}


WIDTHS = {"heads": 1, "any heads": 1, "arcs": 3}  # the last axis of confidences; else four labels


def parser(**parameters):
    return mm.DependencyParser(hash_bits=9, random_state=0, probability=True, **parameters)


def empty_like(x):
    """An example without tokens, as users of such examples would have it."""
    return x[:0]


def same(found, expected):
    return str(list(found)) == str(list(expected)) and len(found) == len(expected)


@pytest.mark.parametrize("name", MODELS)
def test_every_method(name):
    make, X, y = MODELS[name]
    model = make().fit(X, y)
    mixed, gold = with_empty(X, empty_like(X[0])), with_empty(y, [])
    n = len(mixed)
    weights = RNG.random(n)
    found = model.predict(mixed)
    assert same(without(found), model.predict(X))
    assert [found[i] for i in [*EMPTY, n - 1]] == [[]] * 4
    assert model.score(mixed, gold) == model.score(X, y)
    assert model.score(mixed, gold, sample_weight=weights) == pytest.approx(
        model.score(X, y, sample_weight=without(weights)), rel=1e-12
    )
    nothing = [empty_like(X[0])] * 2
    assert model.predict(nothing) == [[], []] and model.score(nothing, [[], []]) == 1.0
    if name != "kernel":  # those have nothing to explain
        shown = model.explain(empty_like(X[0]))
        assert shown.decisions == () and str(shown) == "no difference"
        assert model.explain(empty_like(X[0]), []).decisions == ()
        with pytest.raises(ValueError, match="x is empty, but y_hat has"):
            model.explain(empty_like(X[0]), y[0])
    with pytest.raises(ValueError, match="example 2 is empty, but y has"):
        model.score(mixed, [*gold[:2], y[0], *gold[3:]])
    with pytest.raises(ValueError, match=f"X has {n} examples but y has {n - 1}"):
        model.score(mixed, gold[1:])
    with pytest.raises(ValueError, match=r"(sequence|sentence|example) 2 is empty"):
        make().fit([X[0], X[1], *mixed[2:]], [y[0], y[1], *gold[2:]])
    if name.startswith("segments"):
        return
    ranked = model.predict_k(mixed, 2)
    assert same(without(ranked), model.predict_k(X, 2)) and ranked[0] == [([], 0.0)]
    for method in (model.predict_margins, model.predict_proba):
        tables = method(mixed)
        assert all(map(np.array_equal, without(tables), method(X)))
        assert tables[0].ndim == tables[1].ndim and tables[0].shape[-1] == WIDTHS.get(name, 4)
        assert [len(table) for table in method(nothing)] == [0, 0]
    scores = model.score_outputs(mixed, gold)
    assert np.array_equal(without(scores), model.score_outputs(X, y))
    assert scores[EMPTY].tolist() == [0.0] * 3
    assert model.score_outputs(nothing, [[], []]).tolist() == [0.0, 0.0]
    known = [None if i == 1 else [None] * len(labels) for i, labels in enumerate(y)]
    assert same(without(model.predict(mixed, fixed=with_empty(known, []))), model.predict(X))
    assert same(without(model.predict(mixed, fixed=with_empty(known, None))), model.predict(X))


def test_other_containers():
    model = tagger().fit(VECTORS, TAGS)
    expected = with_empty(model.predict(VECTORS), [])
    mixed = with_empty(VECTORS, np.zeros((0, 3)))
    assert model.predict(x for x in mixed) == expected
    lengths = [len(x) for x in mixed]
    packed = PackedSequences(np.concatenate(mixed), np.cumsum([0, *lengths]))
    assert model.predict(packed) == expected
    assert model.predict(np.zeros((2, 0, 3))) == [[], []]
    objects = np.empty(len(mixed), object)
    objects[:] = mixed
    assert model.predict(objects) == expected
    of_words = tagger(features=WINDOW).fit(WORDS, TAGS)
    flat = [word for words in WORDS for word in words]
    columns = TokenColumns([flat], np.cumsum([0, *map(len, with_empty(WORDS))]))
    assert of_words.predict(columns) == with_empty(of_words.predict(WORDS), [])
    for wrong in ([VECTORS[0], ""], [VECTORS[0], {}], [VECTORS[0], None]):
        with pytest.raises(ValueError, match="sequence 1 is"):
            model.predict(wrong)
    with pytest.raises(ValueError, match="expected at least one sequence"):
        model.predict([])
    bad = with_empty(VECTORS, np.zeros((0, 3)))
    bad[4] = bad[4] * np.nan
    with pytest.raises(ValueError, match="sequence 4, token 0"):  # numbers stay
        model.predict(bad)
    with pytest.raises(ValueError, match="not fitted"):
        mm.SequenceTagger().predict(mixed)


def test_parsers():
    trees = [as_tree(t) for t in ("(S (D the) (N cat))", "(S (N cats) (V run))", "(S (V run))")]
    model = mm.GrammarParser(random_state=0, probability=True).fit(trees * 5)
    X = [["D", "N"], [], ["N", "V"]]
    first, empty, last = model.predict(X)
    assert empty.is_fallback and empty.words() == [] and str(empty) == "(S)"
    assert [first, last] == model.predict([X[0], X[2]])
    assert model.predict_k(X, 2)[1] == [(empty, -np.inf)]
    assert model.predict_margins(X)[1] == model.predict_proba(X)[1] == {}
    assert model.score(X, [trees[0], empty, trees[1]]) == model.score([X[0], X[2]], trees[:2])
    assert model.predict([[]]) == [empty]
    with pytest.raises(ValueError, match="sentence 1 is empty"):
        mm.GrammarParser().fit(X, trees)
    with pytest.raises(ValueError, match="tree 1: no words"):
        mm.GrammarParser().fit([trees[0], empty])


def test_aligners_and_matchers():
    pairs = [("ACGT", "AGT"), ("AAC", "AC")]
    model = mm.SequenceAligner(random_state=0).fit(pairs, [("ACGT", "A-GT"), ("AAC", "A-C")])
    found = model.predict([("", ""), ("A", ""), ("", "AC"), pairs[0]])
    assert [len(one) for one in found[:3]] == [0, 0, 0]
    assert np.array_equal(found[3], model.predict(pairs)[0])
    with pytest.raises(ValueError, match="example 1 has an empty string"):
        mm.SequenceAligner().fit([pairs[0], ("", "")], [("ACGT", "A-GT"), ("", "")])
    ranker = mm.HomologyRanker(random_state=0)
    ranker.fit([("ACGT", ["AGT", "CC"])], [(0, ("ACGT", "A-GT"))])
    X = [("ACGT", []), ("ACGT", ["CC", "AGT"])]
    assert ranker.predict(X).tolist() == [-1, 1]
    assert [len(own) for own in ranker.decision_function(X)] == [0, 2]
    assert ranker.predict_k(X, 1)[0] == [] and ranker.predict(X[:1]).tolist() == [-1]
    sets = [RNG.normal(size=(2, 3, 2)), RNG.normal(size=(1, 2, 2))]
    matcher = mm.SetMatcher(random_state=0).fit(sets, [[0, 1], [1]])
    found = matcher.predict([np.zeros((0, 3, 2)), sets[0], np.zeros((2, 0, 2))])
    assert [own.tolist() for own in (found[0], found[2])] == [[], [-1, -1]]


def test_metrics():
    gold, found = with_empty(TAGS, []), with_empty([TAGS[0], *TAGS[:0:-1][::-1]], [])
    found[1] = ["O", "O"]
    plain = without(gold), without(found)
    assert label_scores(gold, found) == label_scores(*plain)
    assert chunk_scores(gold, found) == chunk_scores(*plain)
    assert chunk_counts(gold, found)[[*EMPTY, -1]].tolist() == [[0, 0, 0]] * 4
    assert np.array_equal(without(chunk_counts(gold, found)), chunk_counts(*plain))
    assert sequence_accuracy(gold, found) == 7 / 8
    assert hamming(gold, found, normalize=True).tolist() == [0, 0.5, 0, 0, 0, 0, 0, 0]
    heads, wrong = with_empty(HEADS, []), with_empty([[2, 0, 2], *HEADS[1:]], [])
    scores = attachment_scores(heads, wrong)
    assert scores[:2] == attachment_scores(without(heads), without(wrong))[:2]
    assert scores.exact == 6 / 7
    with pytest.raises(ValueError, match="all sequences are empty"):
        label_scores([[]], [[]])


class Slow:
    """A standard input that sends one block at a time."""

    def __init__(self, text):
        self.blocks = [f"{block}\n\n".encode() for block in text.strip("\n").split("\n\n")]
        self.buffer = self

    def read1(self, _):
        return self.blocks.pop(0) if self.blocks else b""


@pytest.fixture
def treebank(tmp_path):
    """Sentences with and without words."""
    path = tmp_path / "data.conllu"
    blocks = ["# sent_id = none\n# text =\n"]
    for sentence, heads in zip(SENTENCES, HEADS, strict=True):
        rows = zip(sentence, heads, strict=True)
        blocks.append(
            "".join(
                f"{m}\t{w}\t_\t{t}\t_\t_\t{h}\tdep\t_\t_\n" for m, ((w, t), h) in enumerate(rows, 1)
            )
        )
    blocks.insert(2, "0.1\tand\t_\tC\t_\t_\t_\t_\t_\t_\n")
    path.write_text("".join(f"{block}\n" for block in blocks))
    return path


def test_treebanks_on_the_command_line(treebank, tmp_path, capsys, monkeypatch):
    model, text = str(tmp_path / "m.mm"), treebank.read_text()
    words_only = tmp_path / "train.conllu"
    words_only.write_text(
        "\n\n".join(b for b in text.split("\n\n") if b.startswith("1\t")) + "\n\n"
    )
    assert main(["train", "depend", str(words_only), "-o", model, "-q", "--hash-bits", "9"]) == 0
    capsys.readouterr()
    for more in ([], ["--k", "1"]):
        assert main(["predict", model, str(treebank), *more]) == 0
        printed = capsys.readouterr().out
        assert printed.count("\n\n") == 5
        assert "# sent_id = none\n# text =\n" in printed and "\n0.1\tand\t" in printed
        assert main(["predict", model, str(words_only), *more]) == 0
        rows = [line for line in printed.splitlines() if line[:1].isdigit() and line[1] == "\t"]
        alone = capsys.readouterr().out.splitlines()
        assert rows == [line for line in alone if line[:1].isdigit()]
    assert main(["predict", model, str(treebank)]) == 0
    expected = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", Slow(text))
    assert main(["predict", model, "-"]) == 0  # sentence by sentence
    assert capsys.readouterr().out == expected
    with pytest.raises(ValueError, match="a sentence without words"):
        read_conllu(treebank)
    kept = read_conllu(treebank, keep_empty=True)
    assert [len(words) for words in kept.rows] == [0, 3, 0, 2, 1]
    heads = mm.load(model)
    assert [len(tree) for tree in heads.predict(kept)] == [0, 3, 0, 2, 1]
    assert heads.explain(kept.select([0])).decisions == ()
    with pytest.raises(ValueError, match="sentence 0 is empty"):
        parser().fit(kept)


def test_trees_without_words_on_the_command_line(tmp_path, capsys):
    data, model = tmp_path / "trees.txt", str(tmp_path / "m.mm")
    good = "(S (D the) (N cat))\n(S (N cats) (V run))\n"
    data.write_text(good)
    assert main(["train", "parse", str(data), "-o", model, "-q"]) == 0
    data.write_text(good.replace("\n", "\n(S (-NONE- *))\n", 1))
    capsys.readouterr()
    assert main(["predict", model, str(data)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        *good.splitlines()[:1],
        "(S)",
        good.splitlines()[1],
    ]
    assert main(["evaluate", model, str(data)]) == 0
    assert main(["train", "parse", str(data), "-o", model, "-q", "--force"]) == 1
    assert "trees.txt:2: no words in the tree" in capsys.readouterr().err


def test_sequences_on_the_command_line(tmp_path, capsys):
    """Blank lines, however many, part sequences: column files have no empty ones."""
    data, model = tmp_path / "train.txt", str(tmp_path / "m.mm")
    blocks = [
        "".join(f"{w} {y}\n" for w, y in zip(ws, ys, strict=True))
        for ws, ys in zip(WORDS, TAGS, strict=True)
    ]
    data.write_text("\n".join(blocks))
    for task in ("tag", "segment"):
        assert main(["train", task, str(data), "-o", model, "-q", "--force"]) == 0
        capsys.readouterr()
        assert main(["predict", model, str(data)]) == 0
        expected = capsys.readouterr().out
        more = tmp_path / "blank.txt"
        more.write_text("\n\n" + "\n\n\n".join(blocks) + "\n \n\n")
        assert main(["predict", model, str(more)]) == 0
        assert capsys.readouterr().out == expected


def test_alignments_on_the_command_line(tmp_path, capsys):
    data, model = tmp_path / "train.fasta", str(tmp_path / "m.mm")
    data.write_text("# one\n>x\nACGT\n>y\nA-GT\n# two\n>x\nAAC\n>y\nA-C\n")
    assert main(["train", "align", str(data), "-o", model, "-q"]) == 0
    for nothing in ("", "----\n"):
        data.write_text(f"# one\n>x\n{nothing}>y\nACGT\n# two\n>x\nAAC\n>y\nAC\n")
        capsys.readouterr()
        assert main(["predict", model, str(data)]) == 0
        assert capsys.readouterr().out.startswith("# one x y\n>x\n----\n>y\nACGT\n# two")
    assert main(["train", "align", str(data), "-o", model, "-q", "--force"]) == 1
    assert "train.fasta:2: x has no letters, only gaps" in capsys.readouterr().err
