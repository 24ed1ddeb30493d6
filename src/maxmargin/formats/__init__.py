"""Readers and writers of the file formats people have their data in."""

from maxmargin.formats.columns import TokenColumns, read_columns, write_columns
from maxmargin.formats.opening import open_binary, open_text, write_text_atomically
from maxmargin.formats.svmlight import SvmlightData, read_svmlight
from maxmargin.formats.taxonomy import read_taxonomy
from maxmargin.formats.trees import (
    Tree,
    Treebank,
    as_tree,
    clean_tree,
    parse_tree,
    read_trees,
    write_trees,
)

__all__ = [
    "SvmlightData",
    "TokenColumns",
    "Tree",
    "Treebank",
    "as_tree",
    "clean_tree",
    "open_binary",
    "open_text",
    "parse_tree",
    "read_columns",
    "read_svmlight",
    "read_taxonomy",
    "read_trees",
    "write_columns",
    "write_text_atomically",
    "write_trees",
]
