"""The version stands in the source; what else names it must follow."""

from importlib import metadata
from pathlib import Path

import numba
import pytest

import maxmargin
from maxmargin.cli import main
from maxmargin.jit import numba_patches

ROOT = Path(__file__).parents[1]


def test_the_citation_names_this_version():
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {maxmargin.__version__}" in lines


def test_the_changelog_describes_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## [{maxmargin.__version__}]" in text


def test_the_command_line_prints_the_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"maxmargin {maxmargin.__version__}\n"


def test_show_versions(capsys, monkeypatch):
    monkeypatch.setenv(numba_patches.SWITCH, "lend,cache")
    numba_patches.patches.cache_clear()
    try:
        maxmargin.show_versions()
    finally:
        numba_patches.patches.cache_clear()
    shown = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert f"maxmargin: {maxmargin.__version__}" in shown
    assert f"numba: {numba.__version__}" in shown
    for package in ("numpy", "scipy", "scikit-learn"):
        assert f"{package}: {metadata.version(package)}" in shown
    assert "MAXMARGIN_PLAIN_NUMBA: lend,cache" in shown
    assert "patches left out: lend, cache" in shown
