"""
Protein sequence alignment: learn a substitution matrix
=======================================================

Which letters of two proteins belong together? Alignment programs take scores of replacing one amino
acid by another from a table such as BLOSUM62. ``SequenceAligner`` learns the scores, and those of
gaps, from alignments that experts made (BAliBASE 3).

.. data: protein_alignment
"""

# sphinx_gallery_thumbnail_path = 'images/gallery/align_proteins.png'
import os
from itertools import combinations, islice
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.features import AMINO_ACIDS, blosum62
from maxmargin.formats import gapped_rows, pairs_of_rows, read_fasta_groups

path = Path(os.environ["MAXMARGIN_DATA"], "protein_alignment", "balibase3_rv11_rv12.afa.xz")
parts = {"train": ([], []), "test": ([], [])}
for title, records in read_fasta_groups(path):
    family = title.split()[1]
    if family.startswith("BBS"):  # trimmed to the related region
        X, y = parts["train" if int(family[-1]) % 2 == 0 else "test"]
        for one, other in islice(combinations(records, 2), 10):
            first, second, pairs = pairs_of_rows(one.sequence, other.sequence)
            if set(first + second) <= set(AMINO_ACIDS):
                X.append((first, second))
                y.append(pairs)
(X, y), (X_test, y_test) = parts.values()
print(len(X), "pairs of sequences to train on,", len(X_test), "from other families to test on")

# %%
# .. code-block:: output
#
#     329 pairs of sequences to train on, 356 from other families to test on
#
# The score is the share of gold pairs of letters that an alignment finds.

aligner = mm.SequenceAligner(
    C=0.003, mode="global", symmetric=True, alphabet=AMINO_ACIDS, end_gaps="own", random_state=0
)
aligner.fit(X, y)
standard = mm.SequenceAligner.from_scores(
    blosum62(), AMINO_ACIDS, gap_open=-11, gap_extend=-1, mode="global"
)
for name, model in (("BLOSUM62, gap 11/1", standard), ("learned", aligner)):
    print(f"{name:20}{model.score(X_test, y_test):6.1%} of pairs found")

# %%
# .. code-block:: output
#
#     BLOSUM62, gap 11/1   69.3% of pairs found
#     learned              71.7% of pairs found
#
# One test pair, aligned by the learned scores:

first, second = gapped_rows(*X_test[3], aligner.predict(X_test[3:4])[0])
for start in range(0, len(first), 70):
    print(first[start : start + 70], second[start : start + 70], sep="\n", end="\n\n")

# %%
# .. code-block:: output
#
#     DRVKRPMNAFIVWSRDQRRKMALENPRMRNSEISKQLGYQWKMLTEAEKWPFFQEAQKLQAMHREKYPNY
#     DFPKKPLTPYFRFFMEKRAKYAKLHPEMSNLDLTKILSKKYKELPEKKKMKYIQDFQREKQEFERNLARF
#
#     KYRPRR
#     REDHPD
#
# The learned matrix, with amino acids in groups of similar chemistry: blue blocks on the diagonal
# say that members of a group replace each other, such as I, L, M and V, which repel water. The
# aligner has learned this from alignments alone.

groups = ["ILMV", "FWY", "C", "AGPST", "NQDE", "HKR"]
order = [AMINO_ACIDS.index(letter) for letter in "".join(groups)]
scores = aligner.substitution_scores_[np.ix_(order, order)]
figure, axes = plt.subplots(figsize=(6.4, 5.4), layout="constrained")
largest = np.abs(scores).max() / 2
image = axes.imshow(scores, cmap="RdBu", vmin=-largest, vmax=largest)
for stop in np.cumsum([len(group) for group in groups])[:-1]:
    axes.axhline(stop - 0.5, color="0.3", linewidth=0.8)
    axes.axvline(stop - 0.5, color="0.3", linewidth=0.8)
axes.set_xticks(range(20), [AMINO_ACIDS[k] for k in order])
axes.set_yticks(range(20), [AMINO_ACIDS[k] for k in order])
figure.colorbar(image, label="learned score", extend="both")
plt.show()

# %%
# .. image:: /images/gallery/align_proteins.png
#    :alt: Learned substitution scores of the 20 amino acids in chemical groups
