"""Whatever bytes a file holds, readers give its content or the error that names it."""

import numpy as np
import pytest

from maxmargin.formats import (
    clean_tree,
    read_fasta,
    read_taxonomy,
    read_trees,
)
from soak import mutations


@pytest.mark.parametrize("seed", range(8))
def test_damaged_files_are_read_or_refused(seed):
    """Readers of text, models and checkpoints; `python -m tests.soak --part mutations` has more."""
    for number in range(1250):
        rng = np.random.default_rng([seed, number])
        described, run = mutations.prepare(rng, number)
        try:
            run()
        except Exception as error:
            raise AssertionError(f"seed {seed}, number {number}: {described}") from error


def test_trees_can_be_walked_if_they_can_be_read(tmp_path):
    path = tmp_path / "deep.txt"
    path.write_text("(A " * 199 + "(B b)" + ")" * 199)
    tree = read_trees(path).trees[0]
    assert len(tree.spans()) == 199 and clean_tree(tree).leaves() == [("b", "B")]
    assert str(tree) == path.read_text() and hash(tree) == hash(read_trees(path).trees[0])
    path.write_text("(A\n" * 300 + "(B b)" + ")" * 300)
    with pytest.raises(ValueError, match=r"deep\.txt:201: expected at most 200 brackets"):
        read_trees(path)


def test_classes_that_look_alike_stay_apart(tmp_path):
    path = tmp_path / "tree.tsv"
    path.write_text("a\troot\t7\nb\troot\t07\n")
    assert sorted(read_taxonomy(path).classes) == ["07", "7"]


def test_an_empty_fasta_file_is_named(tmp_path):
    path = tmp_path / "empty.fa"
    path.write_text("; nothing\n")
    with pytest.raises(ValueError, match=r"empty\.fa: no sequences"):
        read_fasta(path)
