"""Links from scikit-learn's HTML pictures of estimators to their pages."""

from __future__ import annotations

import functools
from importlib import metadata

__all__ = ["DocLinks"]


@functools.cache
def documentation() -> str | None:
    """The address of the documentation, by what the installed package says of itself."""
    try:
        urls = metadata.metadata("maxmargin").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return None
    known = dict(url.split(", ", 1) for url in urls)
    return known["Documentation"].rstrip("/") if "Documentation" in known else None


class DocLinks:
    """For what `import maxmargin` offers: its page, if the package names a documentation."""

    _doc_link_module = "maxmargin"

    @property
    def _doc_link_template(self) -> str:
        """Of the pages that autosummary makes; without documentation there is no link."""
        return f"{documentation()}/api/generated/maxmargin.{type(self).__name__}.html"

    def _get_doc_link(self) -> str:
        """See scikit-learn; a class of the user's own has no page here."""
        is_ours = type(self).__module__.partition(".")[0] == self._doc_link_module
        return self._doc_link_template if is_ours and documentation() is not None else ""
