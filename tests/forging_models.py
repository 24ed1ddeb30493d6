"""Forged model files: real ones, with other arrays and numbers inside and checksums that are right.

Loading has to refuse such a file by a ValueError that names it, or give a model that predicts or
says by a ValueError why it cannot; and it may take no more memory than a file of this size needs.
It runs in a process of its own, which prints each forgery before it tries it.
"""

import contextlib
import io
import json
import sys
import tempfile
import tracemalloc
import warnings
from pathlib import Path
from random import Random

import numpy as np

import maxmargin as mm
from every_estimator import KINDS
from forging import WAYS
from maxmargin.persistence import MOST_RATIO, MOST_SMALL, MOST_ZEROS
from soak.damage import archive_of, damaged_value, members_of

ALLOWED = MOST_SMALL + MOST_ZEROS  # beside a multiple of the file


def forgeries(members, rng, random, ways):
    """Each array in some ways, the header in many."""
    for name in members:
        if name == "header.json":
            for _ in range(8 * ways):
                value = damaged_value(random, json.loads(members[name]))
                yield name, "value", {**members, name: json.dumps(value).encode()}
            continue
        array = np.load(io.BytesIO(members[name]))
        for way in rng.permutation(len(WAYS))[:ways]:
            forged = WAYS[way](array, rng)
            stream = io.BytesIO()
            np.save(stream, forged)
            yield name, WAYS[way].__name__, {**members, name: stream.getvalue()}


def forge(name, seed, ways, echo):
    kind, rng, random = KINDS[name], np.random.default_rng(seed), Random(seed)
    model = kind.make().fit(*kind.first)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.mm")
        try:
            model.save(path)
        except ValueError:
            return
        members = members_of(path.read_bytes())
        for member, way, forged in forgeries(members, rng, random, ways):
            echo({"array": member, "way": way, "finished": None})
            path.write_bytes(archive_of(forged))
            echo(_tried(path, kind.first[0]))


def _tried(path, X):
    tracemalloc.start()
    end, wrong = "loaded", ""
    try:
        loaded = mm.load(path)
    except ValueError as error:
        end = "refused"
        wrong = "" if str(path) in str(error) else f"an error that names no file: {error}"
    except Exception as error:
        end, wrong = "raised", f"{type(error).__name__}: {error}"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    if peak > ALLOWED + 2 * MOST_RATIO * path.stat().st_size:
        wrong += f" {peak >> 20} MB for a file of {path.stat().st_size} bytes"
    if end == "loaded":
        with contextlib.suppress(ValueError):
            loaded.predict(X)
    return {"end": end, "wrong": wrong}


def main(seed, ways, *names):
    def echo(said):
        print(json.dumps(said), flush=True)

    warnings.simplefilter("ignore")
    for name in names or KINDS:
        echo({"training": name})
        forge(name, int(seed), int(ways), echo)
    echo({"training": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
