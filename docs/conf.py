"""Sphinx: ``python -m sphinx -W --keep-going docs build/docs`` makes the site, off line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import sklearn  # noqa: F401  estimators then have its methods, which are left out below
from pygments.lexers.special import TextLexer

import maxmargin

# Examples then make their data, and pages are the same anywhere.
os.environ.pop("MAXMARGIN_DATA", None)

project = "maxmargin"
author = "maxmargin developers"
copyright = "maxmargin developers"
version = release = maxmargin.__version__

templates_path = ["_templates"]
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]

# -- Text ---------------------------------------------------------------------------------------
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
suppress_warnings = [
    "myst.xref_missing",  # included files link to others of the repository; tests check our pages
]
default_role = "code"

# -- API ----------------------------------------------------------------------------------------
autosummary_generate = True
autodoc_typehints = "none"  # docstrings say what parameters are
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# -- Examples -----------------------------------------------------------------------------------
# Examples on data that must be downloaded show what `run_snippets.py --record` wrote into them.
_EXAMPLES = Path(__file__).parent.parent / "examples"
_live = [
    path.stem for path in _EXAMPLES.rglob("*.py") if "\n.. data: " not in path.read_text("utf-8")
]
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "subsection_order": [
        f"../examples/{name}" for name in ("text", "images", "tables", "training")
    ],
    "filename_pattern": rf"[/\\]({'|'.join(_live)})\.py$",
    "within_subsection_order": "ExampleTitleSortKey",
    "remove_config_comments": True,
    "capture_repr": (),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 0,
    "plot_gallery": "True",
}

# -- Pages --------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "maxmargin"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 8,
    "show_nav_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Where several versions are published (tools/publish_docs.py), a switcher leads to the others.
if "MAXMARGIN_DOCS_URL" in os.environ:
    html_theme_options["navbar_end"] = ["version-switcher", "theme-switcher", "navbar-icon-links"]
    html_theme_options["check_switcher"] = False  # the first build is before the first list
    html_theme_options["show_version_warning_banner"] = True
    html_theme_options["switcher"] = {
        "json_url": f"{os.environ['MAXMARGIN_DOCS_URL']}/switcher.json",
        "version_match": os.environ["MAXMARGIN_DOCS_VERSION"],
    }
html_sidebars = {"index": [], "benchmarks": []}  # they have no section to navigate
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]


def skip_member(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what comes from scikit-learn, which documents it, and from tuples."""
    foreign = str(getattr(obj, "__module__", "")).startswith("sklearn")
    of_tuple = getattr(obj, "__objclass__", None) is tuple
    return True if foreign or of_tuple or str(obj.__doc__).startswith("Alias for field") else None


class OutputLexer(TextLexer):
    """What a snippet printed, recorded by tools/run_snippets.py."""

    name, aliases = "Output", ["output"]


def setup(app: Any) -> None:
    """Connect what Sphinx calls."""
    app.connect("autodoc-skip-member", skip_member)
    app.add_lexer("output", OutputLexer)
