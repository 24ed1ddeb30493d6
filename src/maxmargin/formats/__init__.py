"""Readers and writers of the file formats people have their data in."""

from .columns import TokenColumns, read_columns, read_columns_in_parts, write_columns
from .conllu import ConlluTreebank, read_conllu, write_conllu
from .crfsuite import CrfsuiteData, read_crfsuite
from .fasta import (
    FastaRecord,
    gapped_rows,
    pairs_of_rows,
    read_fasta,
    read_fasta_groups,
    write_fasta,
)
from .label_trees import LabelTrees, read_label_trees, read_taxonomy
from .opening import open_binary, open_text
from .svmlight import SvmlightData, read_svmlight, write_svmlight
from .trees import (
    Tree,
    Treebank,
    as_tree,
    clean_tree,
    parse_tree,
    read_trees,
    write_trees,
)
from .writing import write_atomically, write_text_atomically

__all__ = [
    "ConlluTreebank",
    "CrfsuiteData",
    "FastaRecord",
    "LabelTrees",
    "SvmlightData",
    "TokenColumns",
    "Tree",
    "Treebank",
    "as_tree",
    "clean_tree",
    "gapped_rows",
    "open_binary",
    "open_text",
    "pairs_of_rows",
    "parse_tree",
    "read_columns",
    "read_columns_in_parts",
    "read_conllu",
    "read_crfsuite",
    "read_fasta",
    "read_fasta_groups",
    "read_label_trees",
    "read_svmlight",
    "read_taxonomy",
    "read_trees",
    "write_atomically",
    "write_columns",
    "write_conllu",
    "write_fasta",
    "write_svmlight",
    "write_text_atomically",
    "write_trees",
]
