"""The one decorator for compiled functions, and the stamp that keeps its on-disk cache honest.

Numba's cache notices an edit of the file a kernel is written in, and no other. A kernel that calls
one of another file would therefore run the callee's old code after an edit or an upgrade. `kernel`
adds a fingerprint of all sources that the kernel's module imports to the version Numba compares, so
that any change to one of them makes the kernel compile again.

It also spares kernels that only kernels call machine code of their own, and kernels that make no
arrays the counting of references, which can cost more than their work. Where Numba cannot be
changed so, see `numba_patches`, kernels are compiled as Numba does it.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, overload

import numba

from . import numba_patches

logger = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

# Forbidden transitions score -inf, so fastmath=True, which assumes no inf or nan, is unsafe.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
}


@overload
def kernel(function: F) -> F: ...
@overload
def kernel(*, inline: bool = False, allocates: bool = True) -> Callable[[F], F]: ...
def kernel(
    function: F | None = None, *, inline: bool = False, allocates: bool = True
) -> F | Callable[[F], F]:
    """Compile a module-level function with Numba, lazily, with a cache that outlives the process.

    The function runs without the GIL, divides like numpy (no ZeroDivisionError) and may reorder
    sums, but keeps infinities and NaN. The cached code is used again as long as neither the
    function's own file nor a file that it imports has changed. Where no cache can be kept (no
    writable folder, a function typed at a prompt, an unknown version of Numba) the function is
    compiled once per process instead.

    Parameters
    ----------
    function : callable
        A function in Numba's nopython subset. It may call other kernels, but must not take one as
        an argument: Numba cannot cache such a call.
    inline : bool
        Copy the code into every kernel that calls this one. Calls pass arrays field by field, a
        NamedTuple of arrays in hundreds of words, so that a call can cost more than the work.
        Such a kernel must not make or return arrays, see below.
    allocates : bool
        Whether the kernel makes or returns arrays, or calls a kernel that returns some. If not,
        references to its arguments need not be counted. Each count is an atomic operation, and
        every call and slice counts all its arrays.

    Returns
    -------
    callable
        Numba's dispatcher, or `function` itself if ``NUMBA_DISABLE_JIT`` is set.
    """
    if function is None:
        return functools.partial(_compiled, inline=inline, counts=allocates and not inline)
    return _compiled(function, inline=inline, counts=allocates and not inline)


def _compiled(function: F, *, inline: bool, counts: bool) -> F:
    """Numba's dispatcher for the function, with the stamped cache where one can be kept."""
    patches = numba_patches.patches()
    if not patches:
        return _plain(function)
    options = dict(_OPTIONS)
    # Both are said always: what is not said, Numba takes over from the kernel that calls first.
    if "inline" in patches:
        options["forceinline"] = inline
    if "uncounted" in patches:
        options["_nrt"] = counts
    else:
        counts = True
    compiled = numba.njit(**options)(function)
    if compiled is function:  # NUMBA_DISABLE_JIT=1
        return function
    # Most of the kernels that a process imports are never called: what only calls need is made by
    # the first one. But for the stamp, which has to be that of the code just imported.
    if "cache" in patches:
        try:
            stamp = ",".join([fingerprint(function.__module__), *sorted(patches)])
        except Exception as error:
            _refuse_cache(function, error)
        else:
            numba_patches.open_cache_later(compiled, lambda: _open_cache(compiled, stamp))

    def borrowed() -> Any:
        made = numba.njit(**options)(function)
        numba_patches.make_borrowed(made, "lean" in patches)
        if not counts:
            numba_patches.check_returns_no_arrays(made)
        return made

    if "lean" in patches:
        numba_patches.make_lean(compiled)
    if "aside" in patches:
        numba_patches.compile_aside(compiled)
    if "lend" in patches:
        numba_patches.lend_to_kernels(compiled, borrowed)
    if not counts:
        numba_patches.check_returns_no_arrays(compiled)
    return compiled


def _plain(function: F) -> F:
    """What Numba makes of the function, with its own cache where it can keep one."""
    try:
        return numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError as error:  # no folder for it, or no file that the function is written in
        _refuse_cache(function, error)
        return numba.njit(**_OPTIONS)(function)


def _open_cache(compiled: Any, stamp: str) -> bool:
    """Give a dispatcher its cache; returns whether it has one."""
    try:
        numba_patches.stamp_cache(compiled, stamp)
        numba_patches.tolerate_cache_errors(compiled._cache)
    except Exception as error:
        _refuse_cache(compiled, error)
        return False
    return True


def _refuse_cache(function: Any, error: Exception) -> None:
    """A cache without the full stamp could run stale code, so rather none than Numba's own."""
    logger.debug("%s is compiled without a cache: %s", function.__qualname__, error)


@functools.cache
def fingerprint(module: str) -> str:
    """Hash the sources that the kernels of a module could have been compiled from.

    Those are the module's own file, this one and, through all their imports, the files of their
    packages: compiled code also freezes the constants and tuple layouts that it was given. Modules
    that the kernels do not import are left out, so that work on them does not cost a compilation.
    """
    packages = {module.partition(".")[0], __name__.partition(".")[0]}
    found, to_read = {module, __name__}, [module, __name__]
    while to_read:
        for name in _source(to_read.pop()).imports:
            if name.partition(".")[0] in packages and name not in found and name in sys.modules:
                found.add(name)
                to_read.append(name)
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(found):
        digest.update(f"{name}\0{_source(name).content}\0".encode())
    return digest.hexdigest()


class _Source(NamedTuple):
    """What a module's file says."""

    content: str  # a hash of it
    imports: frozenset[str]  # names of modules


# Only what stands at the margin is imported with the module, whatever else the process has loaded.
_FROM = re.compile(r"^from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|.*)", re.MULTILINE)
_IMPORT = re.compile(r"^import[ \t]+([\w., \t]+)", re.MULTILINE)
_NAME = re.compile(r"(?<![\w.#])(?!as\b)([A-Za-z_]\w*)")


@functools.cache
def _source(module: str) -> _Source:
    """Read a module's file; OSError where there is none, for example in a zip archive."""
    loaded = sys.modules[module]
    path = getattr(loaded, "__file__", None)
    if path is None:
        raise OSError(f"{module} has no file")
    with open(path, "rb") as file:
        content = file.read()
    text = content.decode("utf-8", errors="replace")
    package = (loaded.__package__ or "").split(".")
    names: list[str] = []
    for dots, base, what in _FROM.findall(text):
        start = package[: len(package) - len(dots) + 1] if dots else []
        origin = ".".join([*filter(None, start), *filter(None, [base])])
        for name in _NAME.findall(what):
            inner = f"{origin}.{name}"
            names.append(inner if inner in sys.modules else origin)
    for listed in _IMPORT.findall(text):
        names += [item.split()[0] for item in listed.split(",") if item.strip()]
    return _Source(hashlib.blake2b(content, digest_size=16).hexdigest(), frozenset(names))
