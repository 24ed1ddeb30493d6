"""A page from its sections."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import NamedTuple

__all__ = ["Section", "page"]


class Section(NamedTuple):
    """A part of a page with a heading of its own; an empty body leaves it out."""

    title: str
    body: str

    @property
    def anchor(self) -> str:
        """Where links lead to."""
        return "-".join("".join(c if c.isalnum() else " " for c in self.title.lower()).split())


def page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """Return a whole page."""
    shown = [section for section in sections if section.body]
    links = "".join(f'<a href="#{s.anchor}">{escape(s.title)}</a>' for s in shown)
    bodies = "\n".join(
        f'<section id="{s.anchor}"><h2>{escape(s.title)}</h2>\n{s.body}</section>' for s in shown
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>
{_read("page.css")}</style>
</head>
<body>
<header><h1>{escape(title)}</h1><button id="theme" type="button">light / dark</button></header>
<p class="muted">{escape(subtitle)}</p>
<nav>{links}</nav>
<main>
{bodies}
</main>
<script>
{_read("page.js")}</script>
</body>
</html>
"""


def _read(name: str) -> str:
    """A file that lies beside this one."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
