"""Pages that stand for themselves: one file of HTML, nothing fetched, light and dark."""

from .charts import Line, line_chart, reliability_diagram
from .html import Share, articles, bar, both_ways, heat_map, named_table, table
from .page import Section, page

__all__ = [
    "Line",
    "Section",
    "Share",
    "articles",
    "bar",
    "both_ways",
    "heat_map",
    "line_chart",
    "named_table",
    "page",
    "reliability_diagram",
    "table",
]
