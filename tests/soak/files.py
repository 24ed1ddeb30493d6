"""Part `files`: damaged files give a valid result or an error that names them, and nothing else."""

import bz2
import contextlib
import functools
import gzip
import importlib
import io
import json
import lzma
import re
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np

import maxmargin as mm
from maxmargin import formats
from maxmargin.cli import main as command_line
from tasks import TASKS

COMPRESSORS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}
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
QUERIES = b"2 qid:1 1:0.5 3:-2\n1 qid:1 2:1\n2 qid:2 1:3\n"
FASTA = b"# first\n>one a protein\nACDE-\nFG*\n>two\nAC.EHFG\n# second\n>three\nKLM\n"
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

# What damage is likely to hit: what formats, numbers and encodings are made of.
PIECES = (
    *(sign.encode() for sign in "\t #>:()-_0\n\r\0\u00a0\u2028\u0663\ufeff"),
    *b"nan inf -1 1e999 0x10 1_0 99999999999999999999 4294967296 qid: qid:1.5 1: (( ))".split(),
    *(b"\n\n", b"\r\n", b"\xff", b"-NONE-", b"-DOCSTART-"),
)


def damaged(rng, data):
    """Flip, cut, insert, repeat and exchange pieces, a few times."""
    for _ in range(int(rng.choice([1, 1, 2, 5]))):
        a, b = sorted(rng.integers(0, len(data) + 1, 2).tolist())
        b = min(b, a + int(rng.choice([1, 3, 20, 1000])))
        match int(rng.integers(6)):
            case 0 if a < len(data):
                data = data[:a] + bytes([data[a] ^ 1 << int(rng.integers(8))]) + data[a + 1 :]
            case 1:
                data = data[:a] + data[b:]
            case 2:
                data = data[:a] + PIECES[int(rng.integers(len(PIECES)))] + data[a:]
            case 3:
                data = data[:b] + data[a:b] + data[b:]
            case 4:
                data = data[b:] + data[a:b] + data[:a]
            case _:
                data = data[:a]
    return data


# ----- models -------------------------------------------------------------------------------------


@functools.cache
def model_file(number):
    """A small model of each structure, as bytes, with its task."""
    rng = np.random.default_rng(number)
    task = TASKS[number % len(TASKS)](rng)
    while not task.savable:
        task = TASKS[int(rng.integers(len(TASKS)))](rng)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore", UserWarning)
        model = task.fit(task.make(max_passes=5))
        path = Path(folder, "model.mm")
        model.save(path)
        return path.read_bytes(), task, task.keys(model)


def damaged_inside(rng, data):
    """A model file that is a good archive, with damage in one of its members."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = str(rng.choice(sorted(members)))
    if name == "header.json" and rng.random() < 0.7:
        members[name] = json.dumps(damaged_value(rng, json.loads(members[name]))).encode()
    else:
        members[name] = damaged(rng, members[name])
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def damaged_value(rng, value):
    """JSON with another value somewhere."""
    if isinstance(value, dict) and value and rng.random() < 0.95:
        key = str(rng.choice(sorted(value)))
        if rng.random() < 0.1:
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: damaged_value(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.9:
        k = int(rng.integers(len(value)))
        return [*value[:k], damaged_value(rng, value[k]), *value[k + 1 :]]
    others = [
        None,
        True,
        -1,
        0,
        2**40,
        10**400,
        0.5,
        float("nan"),
        "",
        "x",
        [],
        [[]],
        {},
        {"$type": "x"},
    ]
    return others[int(rng.integers(len(others)))]


# ----- what is read -------------------------------------------------------------------------------


def use_columns(path):
    data = formats.read_columns(path)
    assert data.n_tokens == len(data.columns[0]) and data.n_sequences >= 1
    again = path.with_name("again.txt")
    formats.write_columns(again, data.columns, data.offsets)
    assert formats.read_columns(again).columns == data.columns, "not the same again"


def use_conllu(path):
    bank = formats.read_conllu(path)
    again = path.with_name("again.conllu")
    formats.write_conllu(again, bank)
    assert formats.read_conllu(again).rows == bank.rows, "not the same again"


def use_svmlight(path):
    data = formats.read_svmlight(path)
    assert data.X.shape[0] == len(data.y) >= 1
    assert np.isfinite(data.X.data).all() and np.diff(data.X.indptr).min() >= 0
    assert data.qid is None or len(data.qid) == len(data.y)


def use_fasta(path):
    records = formats.read_fasta(path)
    again = path.with_name("again.fasta")
    formats.write_fasta(again, records)
    assert formats.read_fasta(again) == records, "not the same again"


def use_trees(path):
    trees = formats.read_trees(path).trees
    again = path.with_name("again.mrg")
    formats.write_trees(again, trees)
    assert formats.read_trees(again).trees == trees, "not the same again"


def use_label_trees(path):
    trees = formats.read_label_trees(path)
    assert all(x.shape[0] == len(trees.nodes) >= 1 for x in trees.X)
    assert trees.edges is None or len(trees.edges) == len(trees.X) - 1


def use_taxonomy(path):
    taxonomy = formats.read_taxonomy(path)
    losses = taxonomy.losses()
    assert losses.shape == (len(taxonomy.classes),) * 2 and (losses >= 0).all()


TEXTS = (
    (use_columns, COLUMNS, ".txt"),
    (use_conllu, CONLLU, ".conllu"),
    (use_svmlight, SVMLIGHT, ".svm"),
    (use_svmlight, QUERIES, ".svm"),
    (use_fasta, FASTA, ".fasta"),
    (use_trees, TREES, ".mrg"),
    (use_label_trees, LABEL_TREES, ".txt"),
    (use_taxonomy, TAXONOMY, ".tsv"),
)


def read(use, path):
    """Read a file; a refusal must be a ValueError that begins with its name (and line)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            use(path)
        except ValueError as error:
            named = re.match(rf"{re.escape(str(path))}(:\d+)?: .", str(error))
            assert named, f"an error that does not name the file: {error!r}"


def run_command(*arguments):
    """The command line says in one line what is wrong; training may stop before its precision."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = command_line([str(argument) for argument in arguments])
    said = [line for line in errors.getvalue().splitlines() if "error:" in line]
    assert (code, len(said)) in ((0, 0), (3, 0), (1, 1)), (code, errors.getvalue())
    assert "defect of maxmargin" not in errors.getvalue(), errors.getvalue()


# ----- cases --------------------------------------------------------------------------------------


def prepare(rng, number):
    """One file."""
    kind = number % 4
    if kind == 0:
        return prepare_model(rng)
    if kind == 1 and rng.random() < 0.3:
        return prepare_command(rng)
    use, content, ending = TEXTS[int(rng.integers(len(TEXTS)))]
    compressor = str(rng.choice(["", "", "", ".gz", ".xz", ".bz2"]))
    data = damaged(rng, content)
    data = COMPRESSORS[compressor](data if rng.random() < 0.5 else content)
    data = damaged(rng, data) if compressor and rng.random() < 0.5 else data
    return f"{use.__name__} of\n{data!r}", with_file(data, ending + compressor, use)


def with_file(data, ending, use):
    """A function that writes the file and reads it."""

    def run():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"file{ending}")
            path.write_bytes(data)
            read(use, path)

    return run


def prepare_model(rng):
    """A damaged model: refused, or the same as before; or, damaged inside, another one."""
    which = int(rng.integers(2 * len(TASKS)))
    good, task, predicted = model_file(which)
    outside = rng.random() < 0.5
    data = damaged(rng, good) if outside else damaged_inside(rng, good)

    def use(path):
        model = mm.load(path)
        try:
            keys = task.keys(model)
        except ValueError:
            assert not outside, "it was loaded, but cannot predict"
        else:
            assert keys == predicted or not outside, "other predictions"

    return f"model {which} ({task.name}), damaged {'outside' if outside else 'inside'}", with_file(
        data, ".mm", use
    )


@functools.cache
def command_files():
    """Files of every task of the command line, as the tests have them."""
    sys.path.append(str(Path(__file__).parents[1]))
    return importlib.import_module("cli_tasks")


@functools.cache
def command_model(name):
    """A small model of a task of the command line, as bytes."""
    files = command_files().make_files(name, 12)
    with tempfile.TemporaryDirectory() as folder:
        path, model = Path(folder, "data"), Path(folder, "model.mm")
        path.write_text("".join(files.labelled))
        run_command("train", name, path, "-o", model, "-q", "--max-passes", "3", *files.options)
        return model.read_bytes()


def prepare_command(rng):
    """The command line with a damaged file of examples of some task."""
    name = str(rng.choice(sorted(command_files().MAKE)))
    files = command_files().make_files(name, 3, seed=int(rng.integers(100)))
    data = damaged(rng, "".join(files.labelled if rng.random() < 0.7 else files.bare).encode())

    def run():
        with tempfile.TemporaryDirectory() as folder:
            path, model, other = (Path(folder, file) for file in ("data", "model.mm", "other.mm"))
            model.write_bytes(command_model(name))
            path.write_bytes(data)
            options = ("-o", other, "-q", "--max-passes", "3", *files.options)
            run_command("train", name, path, *options)
            run_command("predict", model, path)
            run_command("evaluate", model, path)

    return f"command line, {name}, with\n{data!r}", run
