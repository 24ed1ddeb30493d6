"""Groups of predictions by probability, and their picture."""

import numpy as np
import pytest

from maxmargin.metrics import reliability
from maxmargin.report import plot_reliability


def test_groups():
    found = reliability([0.0, 0.1, 0.55, 0.6, 1.0], [False, True, True, False, True], n_bins=4)
    assert found.counts.tolist() == [2, 0, 2, 1]
    assert found.edges.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    np.testing.assert_allclose(found.confidence, [0.05, np.nan, 0.575, 1.0])
    np.testing.assert_allclose(found.accuracy, [0.5, np.nan, 0.5, 1.0])
    assert found.ece == pytest.approx((2 * 0.45 + 2 * 0.075) / 5)
    assert "0.50-0.75" in str(found) and "0.25-0.50" not in str(found)


def test_probabilities_that_are_true_have_no_error():
    rng = np.random.default_rng(0)
    shares = rng.random(200_000)
    right = rng.random(200_000) < shares
    assert reliability(shares, right).ece < 0.01
    assert reliability(np.sqrt(shares), right).ece > 0.1


@pytest.mark.parametrize(
    ("shares", "right", "message"),
    [([], [], r"shapes \(0,\) and \(0,\)"),
     ([0.5], [True, False], r"shapes \(1,\) and \(2,\)"),
     ([0.5, 1.1], [True, False], r"probabilities\[1\] is 1.1"),
     ([float("nan")], [True], r"probabilities\[0\] is nan")],
)  # fmt: skip
def test_bad_input(shares, right, message):
    with pytest.raises(ValueError, match=message):
        reliability(shares, right)


def test_the_picture_has_every_model(tmp_path):
    path = tmp_path / "plot.png"
    one, other = reliability([0.9, 0.2], [True, False]), reliability([0.5], [True])
    figure = plot_reliability({"one": one, "other": other}, path, title="T")
    assert path.read_bytes().startswith(b"\x89PNG")
    (axes,) = figure.axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == [f"one  ECE {one.ece:.4f}", f"other  ECE {other.ece:.4f}"]
    assert axes.lines[1].get_xydata().tolist() == [[0.2, 0.0], [0.9, 1.0]]
    assert len(plot_reliability(one).axes[0].lines) == 2
