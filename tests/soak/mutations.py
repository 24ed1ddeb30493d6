"""Part `mutations`: all that is read, on damaged bytes, about a thousand cases a second.

A reader gives content that is in order, or a ValueError that begins with the name of the file, and
asks for no more memory than the content is worth.
"""

import atexit
import functools
import hashlib
import io
import json
import re
import resource
import shutil
import tempfile
import warnings
import zipfile
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from maxmargin import formats
from maxmargin.checkpoints import DIGEST, LENGTH, MAGIC, Checkpoint
from maxmargin.cli.columns import _read_templates
from maxmargin.cli.files import UNITS, _cut
from maxmargin.cli.tasks import TASKS
from maxmargin.features.window.templates import read_templates
from maxmargin.formats.opening import ReadContent
from maxmargin.formats.recognising import recognise
from maxmargin.formats.svmlight import _read_carefully
from maxmargin.persistence import load_model
from maxmargin.registry import entry_of

from .damage import archive_of, damaged, damaged_inside, damaged_value, members_of

SAVED = Path(__file__).parents[1] / "saved"
MOST_MB = 100  # by which one case may raise the most memory that the process ever had
MOST_SPACE = 2**34  # bytes: a case that asks for all memory must not end other processes
IDENTITY = {"problem": "a", "C": "1.0"}

TREES = b"""(S (NP-SBJ (DT the) (NN cat)) (VP (VBZ sleeps)))
doc7 ( (S (NP (PRP it)) (VP (VBZ works) (ADVP (-NONE- *) (RB well)))) )
"""
COLUMNS = b"""the D B-NP
old J I-NP
cat N I-NP

-DOCSTART- - O

sleeps V O
today N B-NP
"""
CONLLU = b"""# sent_id = 1
1\tthe\tthe\tDET\tDT\t_\t2\tdet\t_\t_
2-3\tcats\t_\t_\t_\t_\t_\t_\t_\t_
2\tcat\tcat\tNOUN\tNN\t_\t3\tnsubj\t_\t_
3\tsleeps\tsleep\tVERB\tVBZ\t_\t0\troot\t_\t_
3.1\tx\t_\t_\t_\t_\t_\t_\t_\t_

1\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_

"""
SVMLIGHT = b"""1 1:0.5 3:-2 # a comment
2 2:1e-3 4:7
1 1:1.5 2:0.25
3 3:4
"""
LABEL_SETS = b"1,3 1:0.5 3:-2\n 2:1e-3 4:7\n3 1:1.5\n"
QUERIES = b"2 qid:1 1:0.5 3:-2\n1 qid:1 2:1\n2 qid:2 1:3\n"
FASTA = b"# first\n>one a protein\nACDE-\nFG*\n>two\nAC.EHFG\n# second\n>three\nKLM\n"
ALIGNED = b">one\nACDE-FG\n>two\nAC-EHFG\n"
LABEL_TREES = b"""# two examples
1 0 A 1:0.5 3:1
2 1 B
3 2 C 2:1

1 0 D 1:2
2 1 B 3:1e-3
3 2 C
"""
TAXONOMY = (
    b"node\tparent\tclass\nanimal\t\ncat\tanimal\t1\ndog\tanimal\t2\neel\tfish\t3\nfish\tanimal\n"
)
CRFSUITE = b"B-NP\tw[0]=the\tpos=D:0.5\tx\\:y:2\nI-NP\tw[0]=cat\t__BOS__\n\nO\tw[0]=runs:1e-3\n"
CRF_TEMPLATES = b"# of words\nU00:%x[-1,0]\nU01:%x[0,0]/%x[0,1]\n\nB01:%x[0,0]\nB\n"
TEMPLATES = b"word[0]\nword[-1]|word[0]\n# more\nlower(word[0])\nsuffix3(word[0])\n"
TEXTS = (
    *(TREES, COLUMNS, CONLLU, SVMLIGHT, LABEL_SETS, QUERIES, FASTA, ALIGNED, LABEL_TREES),
    *(TAXONOMY, CRFSUITE, CRF_TEMPLATES, TEMPLATES),
)


@functools.cache
def folder():
    """Where files are written: in memory if the system has such a place."""
    place = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(dir=place if place.is_dir() else None))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


# ----- texts --------------------------------------------------------------------------------------


def again(name):
    """Where a file is written that must hold the same."""
    return folder() / name


def use_columns(source):
    data = formats.read_columns(source)
    assert data.n_tokens == len(data.columns[0]) and data.n_sequences >= 1
    if data.columns[0][0].startswith("BZh"):
        return  # as compressed files begin
    formats.write_columns(again("columns"), data.columns, data.offsets)
    assert formats.read_columns(again("columns")).columns == data.columns, "not the same again"


def use_conllu(source):
    bank = formats.read_conllu(source)
    formats.write_conllu(again("conllu"), bank)
    assert formats.read_conllu(again("conllu")).rows == bank.rows, "not the same again"


def use_svmlight(source, **options):
    data = formats.read_svmlight(source, **options)
    assert data.X.shape[0] == len(data.y) >= 1
    assert np.isfinite(data.X.data).all() and np.diff(data.X.indptr).min() >= 0
    assert data.qid is None or len(data.qid) == len(data.y)
    if not options:
        other = _read_carefully(source, None)
        assert data.y.tolist() == other.y.tolist(), "the fast reader finds other labels"
        assert data.X.shape == other.X.shape and (data.X != other.X).nnz == 0


def use_label_sets(source):
    use_svmlight(source, multilabel=True)


def use_fasta(source):
    records = formats.read_fasta(source)
    formats.write_fasta(again("fasta"), records)
    assert formats.read_fasta(again("fasta")) == records, "not the same again"


def use_alignments(source):
    for _, records in formats.read_fasta_groups(source):
        if len(records) < 2 or len(records[0].sequence) != len(records[1].sequence):
            continue
        rows = records[0].sequence, records[1].sequence
        x, y, pairs = formats.pairs_of_rows(*rows)
        found = formats.pairs_of_rows(*formats.gapped_rows(x, y, pairs))
        assert found[:2] == (x, y) and np.array_equal(found[2], pairs), "another alignment"


def use_trees(source):
    trees = formats.read_trees(source).trees
    formats.write_trees(again("trees"), trees)
    assert formats.read_trees(again("trees")).trees == trees, "not the same again"


def use_label_trees(source):
    trees = formats.read_label_trees(source)
    assert all(x.shape[0] == len(trees.nodes) >= 1 for x in trees.X)
    assert trees.edges is None or len(trees.edges) == len(trees.X) - 1


def use_taxonomy(source):
    taxonomy = formats.read_taxonomy(source)
    if len(taxonomy.classes) <= 300:
        losses = taxonomy.losses()
        assert losses.shape == (len(taxonomy.classes),) * 2 and (losses >= 0).all()


def use_crfsuite(source):
    data = formats.read_crfsuite(source)
    assert [len(tokens) for tokens in data.X] == [len(labels) for labels in data.y]
    values = [value for tokens in data.X for token in tokens for value in token.values()]
    assert np.isfinite(values).all() and len(data.lines) == data.n_tokens


def use_recognition(source):
    recognise(source)


def use_pieces(source):
    """A stream that is cut: nothing is lost, and lines are counted."""
    content = source.getvalue()
    for unit in UNITS.values():
        pieces = list(_cut(io.BufferedReader(io.BytesIO(content)), "stream", unit, "utf-8"))
        joined = b"".join(piece.getvalue() for piece in pieces)
        assert content.startswith(joined), "pieces are not those of the stream"
        counted = [joined[: joined.find(p.getvalue())].count(b"\n") for p in pieces[:1]]
        assert [piece.n_lines_before for piece in pieces[:1]] == counted


def use_templates(path):
    read_templates(path)


def use_template_option(path):
    _read_templates(str(path))


class Text(NamedTuple):
    """A reader of text, what it can read, and whether it takes names of files only."""

    use: Any
    content: bytes
    needs_file: bool = False


READERS = (
    Text(use_columns, COLUMNS),
    Text(use_conllu, CONLLU),
    Text(use_svmlight, SVMLIGHT),
    Text(use_svmlight, QUERIES),
    Text(use_label_sets, LABEL_SETS),
    Text(use_fasta, FASTA),
    Text(use_alignments, ALIGNED + FASTA),
    Text(use_trees, TREES),
    Text(use_label_trees, LABEL_TREES),
    Text(use_taxonomy, TAXONOMY),
    Text(use_crfsuite, CRFSUITE),
    Text(use_templates, CRF_TEMPLATES, needs_file=True),
    Text(use_template_option, CRF_TEMPLATES, needs_file=True),
    Text(use_template_option, TEMPLATES, needs_file=True),
)


def prepare_text(random):
    """A text file, read from memory or from a file of any ending."""
    reader = random.choice(READERS)
    data = damaged(random, reader.content, TEXTS)
    use = random.choices((reader.use, use_recognition, use_pieces), (0.94, 0.03, 0.03))[0]
    if use is reader.use and (reader.needs_file or random.random() < 0.1):
        ending = random.choice(("", "", ".txt", ".gz", ".xz", ".bz2"))
        return described(use, data), lambda: read(use, written(data, f"file{ending}"))
    return described(use, data), lambda: read(use, ReadContent(data, "file"))


# ----- models -------------------------------------------------------------------------------------


@functools.cache
def models():
    """Models that earlier versions saved, and what is in them."""
    return [(path.name, path.read_bytes()) for path in sorted(SAVED.glob("*.mm"))]


@functools.cache
def model_members(number):
    return members_of(models()[number][1])


def use_model(path):
    model, extra = load_model(path)
    assert model._weights.ndim == 1
    task = entry_of(type(model)).task
    if task is not None and "task" in extra:
        TASKS[task].load_schema(str(path), model, extra)


def prepare_model(random):
    number = random.randrange(len(models()))
    name, content = models()[number]
    others = [content for _, content in models()]
    if random.random() < 0.4:
        data = damaged(random, content, others)
    elif random.random() < 0.005:
        data = bomb(random.choice(("header.json", "arrays/0.npy")))
    else:
        data = damaged_inside(random, model_members(number), TEXTS)
    return f"model {name}, {described(use_model, data)}", lambda: read(
        use_model, written(data, "model.mm")
    )


@functools.cache
def bomb(name):
    """A small file with a member that takes a quarter of a gigabyte."""
    large = io.BytesIO()
    if name == "header.json":
        large.write(b" " * 2**28)
    else:
        np.lib.format.write_array(large, np.zeros(2**25))
    members = {**model_members(0), name: large.getbuffer()}
    return archive_of(members, zipfile.ZIP_DEFLATED)


# ----- checkpoints --------------------------------------------------------------------------------


@functools.cache
def checkpoint():
    """A good checkpoint."""
    rng = np.random.default_rng(0)
    kept = Checkpoint(folder() / "good", 0.0, IDENTITY)
    kept.write({"w": rng.normal(size=5), "planes": rng.integers(0, 9, (3, 2)), "none": np.zeros(0)})
    return (folder() / "good").read_bytes()


def use_checkpoint(path):
    found = Checkpoint(path, 0.0, IDENTITY).load()
    assert found is not None, "nothing is there"
    arrays, finished = found
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
    assert finished is None or isinstance(finished, str)


def prepare_checkpoint(random):
    """Damage that the checksum tells of, or in a file with the right one for what is in it."""
    content = checkpoint()
    if random.random() < 0.5:
        data = damaged(random, content, TEXTS)
    else:
        begun = len(MAGIC) + LENGTH
        length = int.from_bytes(content[len(MAGIC) : begun], "little")
        header = json.loads(content[begun : begun + length])
        arrays = content[begun + length : -DIGEST]
        if random.random() < 0.8:
            header = damaged_value(random, header)
        else:
            arrays = damaged(random, arrays, TEXTS)
        text = json.dumps(header).encode()
        if random.random() < 0.1:
            length = random.choice((0, 1, 2**31, 2**63))
        body = MAGIC + (length if length > 2**30 else len(text)).to_bytes(LENGTH, "little")
        body += text + arrays
        data = body + hashlib.sha256(body).digest()
    return described(use_checkpoint, data), lambda: read(
        use_checkpoint, written(data, "checkpoint")
    )


# ----- cases --------------------------------------------------------------------------------------


def written(data, name):
    """A file with this content."""
    path = folder() / name
    path.write_bytes(data)
    return path


def described(use, data):
    return f"{use.__name__} of {len(data)} bytes\n{data[:2000]!r}"


def read(use, source):
    """Read; a refusal must be a plain ValueError that begins with the file's name (and line)."""
    name = str(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            use(source)
        except ValueError as error:
            told = str(error)
            named = re.match(rf"{re.escape(name)}(:\d+)?: .", told)
            assert named, f"an error that does not name the file: {error!r}"
            assert len(told) < 600 + len(name), f"a long message: {told}"


@functools.cache
def warmed_up():
    """Use everything once, so that modules that are imported count for no case."""
    for reader in READERS:
        good = written(reader.content, "good.txt")
        reader.use(good if reader.needs_file else ReadContent(reader.content, "good"))
    for name, content in models():
        use_model(written(content, name))
    bomb("header.json"), bomb("arrays/0.npy")
    use_checkpoint(written(checkpoint(), "checkpoint"))
    return True


@contextmanager
def little_space():
    """Have requests for very much memory refused, as far as this process may say so."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_SPACE, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


KINDS = (prepare_text, prepare_model, prepare_checkpoint)


def prepare(rng, number):
    """One file."""
    warmed_up()
    random = Random(int(rng.integers(2**62)))
    described, run = random.choices(KINDS, (0.6, 0.33, 0.07))[0](random)

    def run_in_little_memory():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with little_space():
            run()
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        assert more < MOST_MB, f"{more:.0f} MB more memory for it"

    return described, run_in_little_memory
