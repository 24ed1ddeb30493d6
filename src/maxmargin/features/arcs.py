"""Features of dependency arcs."""

from __future__ import annotations

from ..problems.dependency.features import DEFAULT_TEMPLATES, ArcTemplates

__all__ = ["ArcTemplates", "arc_templates"]


def arc_templates() -> ArcTemplates:
    """Templates that `DependencyParser` takes by default (McDonald et al. 2005).

    Returns
    -------
    ArcTemplates
        A named tuple; ``_replace`` makes another one.

    Examples
    --------
    >>> templates = arc_templates()
    >>> templates.arcs[-1]
    ('tag-1 tag', 'tag tag+1')
    >>> templates._replace(between=()).between
    ()
    """
    return DEFAULT_TEMPLATES
