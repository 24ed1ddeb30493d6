"""The convergence plot."""

import os
import sys

import pytest

from maxmargin.core.result import Progress, Result
from maxmargin.report import plot_convergence, plot_tree


@pytest.fixture
def result():
    history = [
        Progress(0.1, 10, None, 1.0, None, 3, 8.0, 0.1),
        Progress(0.2, 20, None, 2.0, None, 5, 2.0, 0.1),
        Progress(0.3, 30, 3.05, 3.0, 0.05, 6, 0.2, 0.1),
    ]
    return Result(None, 3.05, 3.0, True, "converged", 3.0, 30, 0, 6, 0.3, history=history)


@pytest.mark.parametrize("x, last", [("seconds", 0.3), ("passes", 3.0)])
def test_lines_are_those_of_the_history(result, x, last, tmp_path):
    path = tmp_path / "plot.png"
    figure = plot_convergence(result, path, x=x)
    assert path.read_bytes().startswith(b"\x89PNG")
    gap, objective = figure.axes
    lines = {line.get_label(): line.get_xydata() for line in [*gap.lines, *objective.lines]}
    assert lines["certified"].tolist() == [[last, pytest.approx(0.05)]]
    assert lines["estimate on the way"][:, 1].tolist() == [8.0, 2.0, 0.2]
    assert lines["target"][:, 1].tolist() == [0.1] * 3
    assert lines["dual (lower bound)"][:, 1].tolist() == [1.0, 2.0, 3.0]
    assert lines["primal, certified"].tolist() == [[last, 3.05]]
    assert gap.get_yscale() == "log"


def test_pictures_appear_whole_or_not_at_all(result, tmp_path, monkeypatch):
    path = tmp_path / "plot.png"
    path.write_text("old")
    with pytest.raises(
        ValueError, match=r"plot\.xyz: pictures cannot be written in the format 'xyz'"
    ):
        plot_convergence(result, tmp_path / "plot.xyz")
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        plot_convergence(result, path)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["plot.png"]


def test_bad_use(result, monkeypatch):
    with pytest.raises(ValueError, match="x must be"):
        plot_convergence(result, x="hours")
    result.history = []
    with pytest.raises(ValueError, match="no history"):
        plot_convergence(result)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"maxmargin\[plot\]"):
        plot_convergence(result)


def test_a_tree_marks_what_is_wrong(tmp_path):
    path = tmp_path / "tree.png"
    truth = "(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))"
    figure = plot_tree("(S (DT the) (X (NN cat) (VP (VBZ sleeps))))", path, truth=truth, title="T")
    assert path.read_bytes().startswith(b"\x89PNG")
    texts = {text.get_text(): text for text in figure.axes[0].texts}
    assert set(texts) == {"S", "DT", "NN", "X", "VP", "VBZ", "the", "cat", "sleeps"}
    bold = {name for name, text in texts.items() if text.get_fontweight() == "bold"}
    assert bold == {"X"} and figure.axes[0].get_title() == "T"
