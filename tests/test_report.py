"""Reports: what they say is true, and the page stands for itself."""

import re
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.datasets import make_faces
from maxmargin.features import WindowFeatures
from maxmargin.metrics import chunk_scores, relation_scores
from maxmargin.report.drawings import (
    alignment,
    dependency_tree,
    parse_tree,
    tagged_sentence,
    width_of,
)
from maxmargin.report.page import Line, line_chart, table
from maxmargin.utils.tables import percent

VOID = {"meta", "link", "br", "img", "image"}


class Balance(HTMLParser):
    """Raises where tags are not closed in order; collects text and addresses."""

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href")]

    def handle_startendtag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(html):
    """Check that the page is whole and fetches nothing; return its text."""
    page = Balance()
    page.feed(html)
    page.close()
    assert not page.open
    assert all(address.startswith(("#", "data:")) for address in page.addresses)
    assert not re.search(r"url\(|@import|https?://", html)
    return " ".join(" ".join(page.text).split())


def sentences():
    X = [["Anna", "Smith", "lives", "in", "Oslo"], ["Oslo", "is", "cold"], ["<i>", "&", "Oslo"]]
    y = [["B-PER", "I-PER", "O", "O", "B-LOC"], ["B-LOC", "O", "O"], ["O", "O", "B-LOC"]]
    return X * 3, y * 3


def rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 4))
    return X, X @ [1.0, 2.0, 0.0, -1.0] + rng.normal(size=90), rng


def test_tagger():
    X, y = sentences()
    tagger = mm.SequenceTagger(features=WindowFeatures(), random_state=0).fit(X, y)
    wrong = [list(own) for own in y]
    wrong[2][0] = wrong[5][0] = "B-PER"
    report = tagger.report(X, wrong)
    assert report.scores["accuracy"].score == pytest.approx(tagger.score(X, wrong))
    text = read(report.html)
    assert "sequence 2: 1 of 3 labels wrong" in text
    assert "<i>" in text  # escaped: it is text
    assert f"{tagger.result_.primal:.4g}" in text
    assert "Transitions" in text and "Calibration" not in text


def test_calibration_is_shown_once_there_is_one():
    X, y = sentences()
    tagger = mm.SequenceTagger(features=WindowFeatures(), random_state=0).fit(X, y)
    assert "expected calibration error" in read(tagger.calibrate(X, y).report(X, y).html)


def test_without_examples_it_is_about_the_model():
    X, y = sentences()
    tagger = mm.SequenceTagger(features=WindowFeatures(), random_state=0).fit(X, y)
    text = read(tagger.report().html)
    assert "Worst examples" not in text and "Certificate" in text


def _classes():
    X, score, _ = rows()
    y = np.digitize(score, [-1.0, 1.0])
    return mm.MulticlassSVM(random_state=0).fit(X, y), (X, y), "accuracy"


def _grades():
    X, score, _ = rows()
    y = np.digitize(score, [-1.0, 1.0])
    return mm.OrdinalSVM(random_state=0).fit(X, y), (X, y), None


def _measure():
    X, score, _ = rows()
    model = mm.PerformanceSVM(C=1e3, measure="f1", random_state=0).fit(X, score > 1.0)
    return model, (X, score > 1.0), "f1"


def _sets():
    X, _, rng = rows()
    Y = (X @ rng.normal(size=(4, 5)) > 0.5).astype(int)
    return mm.MultilabelSVM(random_state=0).fit(X, Y), (X, Y), None


def _segments():
    X, _ = sentences()
    y = [[(0, 2, "PER"), (4, 5, "LOC")], [(0, 1, "LOC")], [(2, 3, "LOC")]] * 3
    model = mm.SequenceSegmenter(features=WindowFeatures(), random_state=0).fit(X, y)
    return model, (X, [*y[:-1], [(0, 1, "LOC")]]), None


def _dependencies():
    X = [[("the", "D"), ("cat", "N"), ("sleeps", "V")], [("dogs", "N"), ("bark", "V")]]
    y = [[(2, "det"), (3, "subj"), (0, "root")], [(2, "subj"), (0, "root")]]
    model = mm.DependencyParser(hash_bits=10, labeled=True, random_state=0).fit(X, y)
    return model, (X, [y[0], [(0, "root"), (1, "obj")]]), "las"


TREES = ["(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))", "(S (NP (NN we)) (VP (VBZ go)))"]


def _parses():
    model = mm.GrammarParser(random_state=0).fit(TREES)
    return model, (["(S (DT the) (NP (NN cat)) (VP (VBZ sleeps)))"], None), None


def _alignments():
    X, y = [("ACGT", "AGT"), ("TCGA", "TGA")], [("ACGT", "A-GT"), ("TCGA", "T-GA")]
    model = mm.SequenceAligner(mode="global", random_state=0).fit(X, y)
    return model, (X, [("ACGT", "AG-T"), y[1]]), None


def _parts():
    faces = make_faces(n_train=10, n_test=3, size=20)
    model = mm.PartLocator(patch=5, C=0.01, tol=0.1, random_state=0)
    return model.fit(faces.X_train, faces.y_train), (faces.X_test, faces.y_test), None


def _matchings():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(3, 3, 2)) for _ in range(8)]
    y = [rng.permutation(3) for _ in X]
    return mm.SetMatcher(random_state=0).fit(X, y), (X, y), None


def _graphs():
    rng = np.random.default_rng(0)
    y = [rng.integers(0, 3, (3, 4)) for _ in range(8)]
    X = [mm.make_grid(own + rng.normal(size=own.shape)) for own in y]
    return mm.GraphLabeler(random_state=0).fit(X[:5], y[:5]), (X[5:], y[5:]), "accuracy"


ROWS = (_classes, _grades, _measure, _sets)
STRUCTURES = (_segments, _dependencies, _parses, _alignments, _parts, _matchings, _graphs)


@pytest.mark.filterwarnings("ignore:1 of .* labels are unknown")
@pytest.mark.parametrize("make", [*ROWS, *STRUCTURES])
def test_every_estimator(make):
    model, examples, score = make()
    report = model.report(*examples)
    text = read(report.html)
    assert "Worst examples" in text and "All are right" not in text
    assert all(s.low <= s.score <= s.high for s in report.scores.values())
    assert ("<summary>why</summary>" in report.html) == (make is not _parts)
    if score is not None:
        assert report.scores[score].score == pytest.approx(model.score(*examples))


def test_labels_of_arcs_and_of_sets():
    parser, examples, _ = _dependencies()
    text = read(parser.report(*examples).html)
    assert "Confusions" in text and "subj" in text
    model, examples, _ = _sets()
    label, f = np.unravel_index(np.argmax(model.coef_), model.coef_.shape)
    assert f"label {label}: x{f}" in read(model.report(*examples).html)


def test_tokens_outside_of_segments_are_called_so():
    segmenter, examples, _ = _segments()
    text = read(segmenter.report(*examples).html)
    assert "for (outside)" in text and "for None" not in text


def test_ranking():
    X, score, _ = rows()
    y, qid = np.clip(np.rint(score), 0, 3), np.repeat(np.arange(9), 10)
    ranker = mm.RankSVM(random_state=0).fit(X, y, qid=qid)
    report = ranker.report(X, y, qid=qid)
    assert "in the wrong order" in read(report.html)
    assert set(report.scores) == {"ndcg@10", "map", "pair_accuracy"}


def test_why_is_against_the_truth():
    X, y = sentences()
    tagger = mm.SequenceTagger(features=WindowFeatures(), random_state=0).fit(X, y)
    wrong = [list(own) for own in y]
    wrong[0][2] = "B-LOC"
    assert "token 2 'lives': O, not B-LOC, by" in read(tagger.report(X, wrong).html)
    wrong[0][2] = "NEW"  # the model does not know it, and tells why not another
    text = read(tagger.report(X, wrong).html)
    assert "token 2 'lives': O, not" in text and "not NEW" not in text


def test_long_explanations_are_cut():
    X, y = sentences()
    X, y = [X[0] * 5, *X[1:]], [y[0] * 5, *y[1:]]
    tagger = mm.SequenceTagger(features=WindowFeatures(), random_state=0).fit(X, y)
    text = read(tagger.report(X[:1], [["NEW"] * 25]).html)
    assert "and 13 decisions more" in text


@pytest.mark.parametrize(
    ("make", "X"),
    [
        (lambda: mm.MulticlassSVM(kernel="rbf", random_state=0), rows()[0]),
        (lambda: mm.SequenceTagger(kernel="rbf", random_state=0), [rows()[0]]),
        (lambda: mm.PerformanceSVM(kernel="rbf", random_state=0), rows()[0]),
    ],
)
def test_kernels_say_why_there_is_no_why(make, X):
    y = np.digitize(rows()[1], [0.0])
    nested = isinstance(X, list)
    model = make().fit(X, [y] if nested else y)
    text = read(model.report(X, [1 - y] if nested else 1 - y).html)
    assert "explain needs kernel='linear'" in text


@pytest.mark.parametrize("labels", [[(1, "a"), (2, "b")], [True, False], [3, 1], ["<i>", "&"]])
def test_labels_of_any_type(labels):
    X, _ = sentences()
    y = [[labels[len(word) % 2] for word in own] for own in X]
    tagger = mm.SequenceTagger(features=WindowFeatures(), random_state=0).fit(X, y)
    found = tagger.calibrate(X, y).report(X, [[labels[0]] * len(own) for own in y])
    assert f"{labels[1]}" in read(found.html) and "Transitions" in found.html


def test_nodes_with_label_sets_of_their_own():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 3, 2)), np.array([["a", "b", "c"], ["b", "b", "a"]] * 4)
    y[0, 0] = "d"
    model = mm.TreeLabeler(random_state=0).fit(X, y).calibrate(X, y[::-1])
    text = read(model.report(X, y[::-1]).html)
    assert "expected calibration error" in text and "node 0:" in text


@pytest.mark.filterwarnings("ignore:1 of 5 labels are impossible")
def test_confidences_of_structures():
    parser, (X, y), _ = _dependencies()
    assert "expected calibration error" in read(parser.calibrate(X, y).report(X, y).html)
    parser = _parses()[0]
    assert "expected calibration error" in read(parser.calibrate(TREES).report(TREES).html)


def test_calibration_has_the_groups_of_the_metrics():
    model, (X, y), _ = _classes()
    model.calibrate(X, y)
    sure = model.predict_proba(X).max(axis=1)
    wanted = mm.metrics.reliability(sure, model.predict(X) == y)
    html = model.report(X, y).html
    assert f"expected calibration error {wanted.ece:.4f}" in html
    assert html.count("of confidence") == np.count_nonzero(wanted.counts)


def test_outputs_that_are_not_known_are_refused():
    X, y = sentences()
    tagger = mm.SequenceTagger(features=WindowFeatures(), random_state=0).fit(X, y)
    for unknown in (None, {"O", "B-LOC"}):
        with pytest.raises(ValueError, match=r"y\[1\], token 2: .* is not known"):
            tagger.report(X, [y[0], [*y[1][:2], unknown], *y[2:]])
    grader, (X, _), _ = _grades()
    with pytest.raises(ValueError, match="example 0: 7 is not one of the grades"):
        grader.report(X, [7] * len(X))


def test_problem_of_ones_own():
    class Sign(mm.Problem):
        n_features = 1

        def joint_feature(self, x, y):
            return np.array([x * y])

        def loss(self, y, y_hat):
            return float(y != y_hat)

        def most_violated(self, x, y, w, rescaling):
            return max((-1, 1), key=lambda z: self.loss(y, z) + w @ self.joint_feature(x, z))

        def predict(self, x, w):
            return max((-1, 1), key=lambda z: w @ self.joint_feature(x, z))

    model = mm.StructuralSVM(Sign(), random_state=0).fit([1.0, -2.0, 0.5], [1, -1, 1])
    report = model.report([1.0, -1.0], [1, 1])
    assert report.scores["mean_loss"].score == 0.5
    assert "example 1: loss 1" in read(report.html)


def test_save(tmp_path):
    model, examples, _ = _classes()
    report = model.report(*examples)
    path = report.save(tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == report.html


def test_drawings_mark_what_is_wrong():
    drawn = tagged_sentence(["a", "b"], ["X", "Y"], ["X", "X"])
    assert drawn.count("wrong") == 1 and '<s>X</s> <span class="good">Y</span>' in drawn
    arcs = dependency_tree(["a", "b"], [2, 0], [0, 1])
    assert arcs.count("var(--red)") == 2 * 2 and arcs.count("stroke-dasharray") == 2
    right = dependency_tree(["a", "b"], [2, 0], [2, 0])
    assert "--red" not in right
    tree = parse_tree("(S (NP (N a)) (V b))", "(S (N a) (VP (V b)))")
    assert tree.count("var(--red)") == 1
    lines = alignment("AC", "AC", [(0, 0), (1, 1)], [(0, 0)])
    assert lines.count('"good"') == 1 and lines.count('"bad"') == 1


def test_charts_leave_out_what_a_logarithm_has_not():
    drawn = line_chart(
        [Line("gap", [(0.0, 1.0), (1.0, 0.0), (2.0, 0.1)], "--blue")], "s", "gap", scale="log"
    )
    assert len(re.search('points="([^"]*)"', drawn)[1].split()) == 2
    assert line_chart([Line("gap", [(0.0, 0.0)], "--blue")], "s", "gap", scale="log") == ""


def test_tables_sort_by_all_digits():
    assert 'data-value="0.123456789"' in table(("name", "x"), [("a", 0.123456789)])


def texts_of(svg):
    """Lines of a drawing: where their texts begin and end, by the widths that drawings assume."""
    pattern = r'<text x="([0-9.]+)" y="([0-9.]+)" text-anchor="(\w+)"[^>]*>([^<]*)<'
    lines = {}
    for x, y, anchor, shown in re.findall(pattern, svg):
        start = float(x) - (width_of(unescape(shown)) if anchor == "end" else 0.0)
        lines.setdefault(y, []).append((start, start + width_of(unescape(shown))))
    return [sorted(line) for line in lines.values()]


def size_of(svg):
    return tuple(map(float, re.search(r'viewBox="0 0 (\d+) (\d+)"', svg).groups()))


def test_arcs_of_long_sentences_fit_the_page_and_no_labels_overlap():
    rng = np.random.default_rng(0)
    words = [f"word{k}" * int(rng.integers(1, 4)) for k in range(80)]
    near = np.clip(np.arange(1, 81) + rng.integers(1, 6, size=(2, 80)) * [[1], [-1]], 0, 80)
    truth, found = near.tolist()
    names = ["nmod:unmarked", "acl:relcl", "root", "punct"]
    labels, true_labels = (rng.choice(names, 80).tolist() for _ in range(2))
    svg = dependency_tree(words, truth, found, true_labels, labels)
    width, _ = size_of(svg)
    lines = texts_of(svg)
    assert width < 1100 and "scroll" not in svg and len(lines) == 81
    for line in lines:
        assert all(a[1] < b[0] for a, b in pairwise(line)) and line[-1][1] < width
    nested = dependency_tree(["a", "b", "c", "d"], [0, 1, 1, 1], [0, 1, 1, 1])
    reaches = re.findall(r"M[0-9.]+,[0-9.]+ h(-[0-9.]+)", nested)
    assert len(set(reaches[1:])) == 3  # arcs from one word never run in one line


def test_parse_trees_and_alignments_of_long_sentences_fit_the_page():
    long = f"(S {' '.join(f'(NP (NN word{k}))' for k in range(70))})"
    width, height = size_of(parse_tree(long))
    assert width < 400 < 70 * 15 < height
    drawn = alignment("A" * 200, "A" * 200, [(k, k) for k in range(200)], [])
    lines = re.sub("<[^>]*>", "", drawn).splitlines()
    assert max(map(len, lines)) <= 90


def shown_rows(html, section):
    """Rows of the first table of a section, as text."""
    body = re.search(rf'<section id="{section}">(.*?)</section>', html, re.DOTALL)[1]
    table = re.search("<tbody>(.*?)</tbody>", body, re.DOTALL)[1]
    return [re.findall("<td[^>]*>([^<]*)<", row) for row in table.split("</tr>")[:-1]]


def test_chunks_of_each_type_as_evaluate_has_them():
    X, y = sentences()
    tagger = mm.SequenceTagger(features=WindowFeatures(), random_state=0).fit(X, y)
    wrong = [["B-PER", "O", "O", "O", "B-LOC"], *y[1:]]
    html = tagger.report(X, wrong).html
    scores = chunk_scores(wrong, tagger.predict(X))
    for row, (name, own) in zip(shown_rows(html, "chunks"), scores.per_type.items(), strict=True):
        assert row[:2] == [name, str(own.n_true)]
        assert row[2:5] == [percent(x) for x in own[:3]]
    assert percent(scores.f1) in [row[1] for row in shown_rows(html, "scores")]


def test_an_arc_is_right_by_head_and_relation_everywhere():
    parser, (X, _), _ = _dependencies()
    found = [list(tree) for tree in parser.predict(X)]
    (head, label), *rest = found[0]
    others = [[(2 if head == 3 else 3, label), *rest], *found[1:]]  # the label alone would be right
    html = parser.report(X, others).html
    scores = relation_scores(others, found).per_relation
    rows = {row[0]: row for row in shown_rows(html, "arcs-by-relation")}
    assert {name: row[2:5] for name, row in rows.items()} == {
        name: [percent(x) for x in own[:3]] for name, own in scores.items()
    }
    assert scores[label].f1 < 1.0


def order_of(report):
    return [int(k) for k in re.findall(r"<h3>(?:sequence|example) (\d+):", report.html)]


def test_worst_examples_by_rate_count_or_margin():
    X = [["a"] * 2, ["a"] * 10, ["b"] * 4, ["c"] * 3]
    y = [["A"] * 2, ["A"] * 10, ["B"] * 4, ["A", "A", "B"]]
    tagger = mm.SequenceTagger(features=WindowFeatures(), random_state=0).fit(X, y)
    wrong = [["B", "B"], ["B"] * 4 + ["A"] * 6, ["A", "B", "B", "B"], tagger.predict(X)[3]]
    assert order_of(tagger.report(X, wrong)) == [0, 1, 2]  # 100, 40 and 25 per cent
    assert order_of(tagger.report(X, wrong, worst="count")) == [1, 0, 2]
    margins = tagger.score_outputs(X, tagger.predict(X)) - tagger.score_outputs(X, wrong)
    by_margin = tagger.report(X, wrong, worst="margin")
    assert order_of(by_margin) == np.argsort(-margins)[:3].tolist()
    assert f"margin {margins.max():.4g}" in read(by_margin.html)
    unknown = [["new", "B"], *wrong[1:]]  # has no score: it comes last
    assert order_of(tagger.report(X, unknown, worst="margin"))[-1] == 0
    with pytest.raises(ValueError, match="worst must be 'rate', 'margin' or 'count'"):
        tagger.report(X, wrong, worst="length")
    model, examples, _ = _sets()
    with pytest.raises(ValueError, match="worst='margin': this model does not score"):
        model.report(*examples, worst="margin")


def test_classes_are_ordered_by_their_margins():
    model, (X, y), _ = _classes()
    wrong = (y + 1) % 3
    scores = model.decision_function(X)
    far = scores.max(axis=1) - scores[np.arange(len(y)), wrong]
    far[model.predict(X) == wrong] = -1.0
    assert order_of(model.report(X, wrong)) == np.argsort(-far, kind="stable")[:30].tolist()
