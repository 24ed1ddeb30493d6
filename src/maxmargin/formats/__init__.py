"""Readers and writers of the file formats people have their data in."""

from maxmargin.formats.columns import TokenColumns, read_columns, write_columns
from maxmargin.formats.opening import open_binary, open_text, write_text_atomically
from maxmargin.formats.svmlight import SvmlightData, read_svmlight
from maxmargin.formats.taxonomy import read_taxonomy

__all__ = [
    "SvmlightData",
    "TokenColumns",
    "open_binary",
    "open_text",
    "read_columns",
    "read_svmlight",
    "read_taxonomy",
    "write_columns",
    "write_text_atomically",
]
