"""The version stands in the source; what else names it must follow."""

from pathlib import Path

import maxmargin


def test_the_citation_names_this_version():
    citation = Path(__file__).parents[1] / "CITATION.cff"
    lines = citation.read_text(encoding="utf-8").splitlines()
    assert f"version: {maxmargin.__version__}" in lines
