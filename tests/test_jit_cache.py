"""The cache of compiled kernels: reused when nothing changed, never stale."""

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from maxmargin.jit import compiling, decorator, lean_lowering, numba_patches
from maxmargin.utils import warn

CALLEE = """
from .jit.decorator import kernel

@kernel
def step(x):
    return x + {increment}
"""

CALLER = """
from .jit.decorator import kernel
from .callee import step

@kernel
def twice(x):
    return step(step(x))
"""

OUTSIDE = """
from minipkg.jit.decorator import kernel
from minipkg.callee import step

@kernel
def thrice(x):
    return step(step(step(x)))
"""

RUN = """
import json
from {module} import {name} as f
result = f(1.0)
hits = sum(f.stats.cache_hits.values())
print(json.dumps(dict(result=result, hits=hits, misses=sum(f.stats.cache_misses.values()))))
"""


@pytest.fixture
def folder(tmp_path):
    """A package with the caller and the callee in two files, and a module outside that uses it."""
    package = tmp_path / "minipkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for module in (decorator, numba_patches, lean_lowering, compiling, warn):
        source = Path(module.__file__)
        (package / source.parent.name).mkdir(exist_ok=True)
        (package / source.parent.name / "__init__.py").write_text("")
        (package / source.parent.name / source.name).write_bytes(source.read_bytes())
    (package / "callee.py").write_text(CALLEE.format(increment=10))
    (package / "caller.py").write_text(CALLER)
    (tmp_path / "outside.py").write_text(OUTSIDE)
    return tmp_path


def run(folder, module="minipkg.caller", name="twice", **environment):
    """Call a kernel of the mini package in a process of its own."""
    return json.loads(run_process(folder, module, name, **environment).stdout)


def run_process(folder, module="minipkg.caller", name="twice", **environment):
    """The process of `run`, which has ended well."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    defaults = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-B", "-c", RUN.format(module=module, name=name)],
        env=inherited | defaults | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(
    "module, name, calls", [("minipkg.caller", "twice", 2), ("outside", "thrice", 3)]
)
def test_cache_is_reused_until_a_callee_is_edited(folder, module, name, calls):
    first = run(folder, module, name)
    assert first == {"result": 1.0 + 10 * calls, "hits": 0, "misses": 1}
    again = run(folder, module, name)
    assert again == {"result": 1.0 + 10 * calls, "hits": 1, "misses": 0}

    # Same size and time stamp as before: only the contents tell the two versions apart.
    callee = folder / "minipkg" / "callee.py"
    before = callee.stat()
    callee.write_text(CALLEE.format(increment=20))
    os.utime(callee, ns=(before.st_atime_ns, before.st_mtime_ns))
    edited = run(folder, module, name)
    assert edited == {"result": 1.0 + 20 * calls, "hits": 0, "misses": 1}


def test_a_class_that_moved_does_not_break_an_old_cache(folder):
    """The cache names the classes of arguments; an upgrade may have put them elsewhere."""
    pair = "from typing import NamedTuple\n\nclass Pair(NamedTuple):\n    a: float\n    b: float\n"
    caller = """
from .jit.decorator import kernel
from .{home} import Pair

@kernel
def add(pair):
    return pair.a + pair.b

def use(x):
    return add(Pair(x, 2.0))

use.stats = add.stats
"""
    for home in ("first", "second"):
        for old in (folder / "minipkg").glob("first.py"):
            old.unlink()
        (folder / "minipkg" / f"{home}.py").write_text(pair)
        (folder / "minipkg" / "caller.py").write_text(caller.format(home=home))
        assert run(folder, name="use") == {"result": 3.0, "hits": 0, "misses": 1}


def test_what_kernels_do_not_import_does_not_invalidate_the_cache(folder):
    run(folder)
    (folder / "minipkg" / "other.py").write_text("from .jit.decorator import kernel\n")
    (folder / "minipkg" / "__init__.py").write_text("from . import other, jit\n")
    assert run(folder)["hits"] == 1


IMPORTS = [
    "from .constants import SIZE",
    "from .constants import (\n    SIZE,  # of the tables\n)",
    "from minipkg.constants import SIZE as SIZE",
    "from . import constants\nSIZE = constants.SIZE",
    "import minipkg.constants\nSIZE = minipkg.constants.SIZE",
]


@pytest.mark.parametrize("statement", IMPORTS)
def test_constants_that_reach_a_kernel_through_other_modules_invalidate_it(folder, statement):
    package = folder / "minipkg"
    (package / "constants.py").write_text("SIZE = 1.0\n")
    (package / "between.py").write_text(statement + "\n")
    (package / "caller.py").write_text(
        "from .jit.decorator import kernel\nfrom .between import SIZE\n\n"
        "@kernel\ndef twice(x):\n    return 2.0 * x * SIZE\n"
    )
    assert run(folder)["result"] == 2.0
    (package / "constants.py").write_text("SIZE = 5.0\n")
    assert run(folder) == {"result": 10.0, "hits": 0, "misses": 1}


def test_works_where_no_cache_can_be_written(folder):
    # A file where a folder is wanted is unwritable even for an administrator.
    nowhere = folder / "nowhere"
    nowhere.write_text("")
    (folder / "minipkg" / "__pycache__").write_text("")
    environment = {
        "NUMBA_CACHE_DIR": str(nowhere / "cache"),
        "HOME": str(nowhere),
        "XDG_CACHE_HOME": str(nowhere),
        "LOCALAPPDATA": str(nowhere),
    }
    for _ in range(2):
        outcome = run(folder, **environment)
        assert outcome["result"] == 21.0 and outcome["hits"] == 0
    assert not list(folder.rglob("*.nbi"))


def test_unknown_numba_internals_mean_no_cache(monkeypatch, caplog):
    def changed(dispatcher, stamp):
        raise AttributeError("no attribute '_cache_file'")

    monkeypatch.setattr(numba_patches, "stamp_cache", changed)
    with caplog.at_level(logging.DEBUG, logger=decorator.__name__):
        compiled = decorator.kernel(_add_one)
        assert compiled(1) == 2
    assert "without a cache" in caplog.text and "_cache_file" in caplog.text


def _add_one(x):
    return x + 1


@pytest.mark.parametrize("name", numba_patches.NEEDED)
def test_kernels_do_without_any_one_patch(folder, name):
    assert run(folder, MAXMARGIN_PLAIN_NUMBA=name)["result"] == 21.0


def test_plain_numba_keeps_its_own_cache(folder):
    assert run(folder, MAXMARGIN_PLAIN_NUMBA="1") == {"result": 21.0, "hits": 0, "misses": 1}
    assert run(folder, MAXMARGIN_PLAIN_NUMBA="1") == {"result": 21.0, "hits": 1, "misses": 0}
    assert run(folder) == {"result": 21.0, "hits": 0, "misses": 1}  # never code of the other kind


def test_a_version_of_numba_that_was_never_tested_is_used_plain_with_one_warning(folder):
    source = folder / "minipkg" / "jit" / "numba_patches.py"
    text = re.sub(r"LAST_TESTED = .*", "LAST_TESTED = (0, 1), (0, 2)", source.read_text(), count=1)
    source.write_text(text)
    done = run_process(folder)
    assert json.loads(done.stdout)["result"] == 21.0
    expected = f"Numba {numba.__version__} was never tested with this version of maxmargin"
    assert done.stderr.count(expected) == 1
    assert "Tested are Numba 0.1 to 0.2" in done.stderr
    switched_off = run_process(folder, MAXMARGIN_PLAIN_NUMBA="1")
    assert "never tested" not in switched_off.stderr


@pytest.fixture
def decide_again():
    numba_patches.patches.cache_clear()
    yield
    numba_patches.patches.cache_clear()


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("name", numba_patches.NEEDED)
def test_a_patch_whose_parts_numba_has_not_is_not_made(decide_again, monkeypatch, name):
    monkeypatch.delenv(numba_patches.SWITCH, raising=False)
    monkeypatch.setitem(
        numba_patches.NEEDED, name, "dispatcher.compile dispatcher.no_such_part.at_all"
    )
    assert numba_patches.patches() == set(numba_patches.NEEDED) - {name}
    assert decorator.kernel(_add_one)(1) == 2


@decorator.kernel
def _largest(values):
    best = -np.inf
    for value in values:
        best = max(best, value)
    return best


@pytest.mark.nojit
def test_kernels_keep_infinities_with_and_without_jit():
    assert _largest(np.array([-np.inf, -np.inf])) == -np.inf
    assert _largest(np.array([-np.inf, 2.0, 1.0])) == 2.0


NAMES = ("first", "second")


@decorator.kernel
def _checked(values, k):
    if k < 0:
        raise ValueError("negative")
    print(NAMES[k])
    return values[k:].copy()


@decorator.kernel
def _borrows(values, k):
    return _checked(values, k).sum() + len(_checked(values, k))


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_kernels_lend_code_without_machine_code_of_their_own(capfd):
    """Numba makes wrappers and machine code for whatever is compiled, called from Python or not."""
    assert not _checked.overloads
    for _ in range(20):
        assert _borrows(np.arange(4.0), 1) == 6.0 + 3
    with pytest.raises(ValueError, match="negative"):
        _borrows(np.arange(4.0), -1)
    assert not _checked.overloads
    assert _checked(np.arange(4.0), 1).tolist() == [1.0, 2.0, 3.0]
    assert len(_checked.overloads) == 1
    sys.stdout.flush()
    assert capfd.readouterr().out.count("second") == 41


@decorator.kernel(inline=True)
def _ask_for(values, k):
    numba_patches.prefetch(values, k)


@decorator.kernel
def _asks(values):
    _ask_for(values, 2)
    numba_patches.prefetch(values, 0)
    return values.sum()


@pytest.mark.nojit
def test_lines_are_asked_for():
    assert _asks(np.arange(4.0)) == 6.0
    if hasattr(_asks, "inspect_llvm"):
        (code,) = _asks.inspect_llvm().values()
        assert code.count("call void @llvm.prefetch") == 2


@decorator.kernel(allocates=False)
def _sum_of_slices(pair):
    total = 0.0
    for start in range(len(pair[0])):
        for array in pair:
            total += array[start:][0]
    return total


@pytest.mark.nojit
def test_kernels_that_do_not_count_references_leave_them_alone():
    pair = np.arange(3.0), np.ones(3)
    before = [sys.getrefcount(array) for array in pair]
    assert sum(_sum_of_slices(pair) for _ in range(100)) == 600.0
    assert [sys.getrefcount(array) for array in pair] == before


@decorator.kernel(allocates=False)
def _pair_and_slice(pair):
    return pair, pair[0][1:]


@decorator.kernel(allocates=False)
def _slice_or_none(pair):
    return pair[0][1:] if len(pair[0]) > 1 else None


@decorator.kernel(inline=True)
def _inline_slice(pair):
    return pair[0][1:], 1


@decorator.kernel
def _length_of_slice(pair):
    return len(_inline_slice(pair)[0])


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="without JIT nothing is counted")
@pytest.mark.parametrize("caller", [_pair_and_slice, _slice_or_none, _length_of_slice])
def test_an_array_that_nobody_has_counted_is_not_returned(caller):
    for _ in range(2):
        with pytest.raises((TypeError, numba.TypingError), match=r"slice.* returns an array"):
            caller((np.arange(3.0), np.ones(3)))


@decorator.kernel
def _sum_of_copy(values):
    copy = np.empty(len(values))
    copy[:] = values
    return copy.sum()


@decorator.kernel(allocates=False)
def _first_to_call(values):
    return _sum_of_copy(values)


@pytest.mark.nojit
def test_a_kernel_may_allocate_whoever_calls_it_first():
    assert _first_to_call(np.ones(3)) == 3.0
    assert _sum_of_copy(np.ones(3)) == 3.0
