"""The one decorator for compiled functions, and the stamp that keeps its on-disk cache honest.

Numba's cache notices an edit of the file a kernel is written in, and no other. A kernel that calls
one of another file would therefore run the callee's old code after an edit or an upgrade. `kernel`
adds a fingerprint of the package's sources to the version Numba compares, so that any change to
them makes every cached kernel compile again.

It also spares compilations: a kernel has one version for all integers it is called with. And it
spares kernels that make no arrays the counting of references, which can cost more than their work.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numba
from numba.core import types
from numba.core.registry import cpu_target

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
    function's own file nor this package's sources have changed. Where no cache can be kept (no
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
    # Both are said always: what is not said, Numba takes over from the kernel that calls first.
    options = _OPTIONS | {"forceinline": inline}
    if hasattr(cpu_target.options, "_nrt"):
        options["_nrt"] = counts
    compiled = numba.njit(**options)(function)
    if compiled is function:  # NUMBA_DISABLE_JIT=1
        return function
    try:
        _enable_stamped_cache(compiled)
    except Exception as error:
        # A cache without the full stamp could run stale code, so rather none than Numba's own.
        logger.debug("%s is compiled without a cache: %s", function.__qualname__, error)
        compiled = numba.njit(**options)(function)
    _widen_integers(compiled)
    if not counts:
        _refuse_to_return_arrays(compiled)
    return compiled


def _widen_integers(compiled: Any) -> None:
    """Let calls from other kernels pass all signed integers as int64.

    Numba compiles a function anew for each constant in a call (their types are literals) and for
    each mixture of int32 and int64, of which calls between kernels have many. If a version of
    Numba asks for the types in another way, this does nothing.
    """
    get_call_template = getattr(compiled, "get_call_template", None)
    if get_call_template is None:
        return

    def with_wide_integers(args: Any, kws: dict[str, Any]) -> Any:
        wide = {name: _widened(kind) for name, kind in kws.items()}
        return get_call_template([_widened(kind) for kind in args], wide)

    compiled.get_call_template = with_wide_integers


def _widened(kind: Any) -> Any:
    """The type itself, or int64 for signed integers and constants among them."""
    kind = types.unliteral(kind)
    return types.int64 if kind in types.signed_domain else kind


def _refuse_to_return_arrays(compiled: Any) -> None:
    """Raise a TypeError rather than return an array that nobody has counted.

    Its receiver would take it for counted, and free the memory of an array still in use.
    """
    add_overload = compiled.add_overload

    def add_checked(result: Any) -> None:
        kind = result.signature.return_type
        if cpu_target.target_context.data_model_manager[kind].contains_nrt_meminfo():
            raise TypeError(
                f"the kernel {compiled.__name__} returns an array: "
                "declare it with allocates=True, and not inline"
            )
        add_overload(result)

    compiled.add_overload = add_checked


def _enable_stamped_cache(compiled: Any) -> None:
    """Turn on the dispatcher's cache and extend its version; raise if either fails."""
    stamp = package_fingerprint()
    compiled.enable_caching()
    cache_file = compiled._cache._cache_file
    # Numba compares the version before it reads the types that kernels were compiled for, and the
    # source stamp after that: classes that an upgrade has moved could not be read any more.
    # Reading first makes a renamed attribute an AttributeError rather than a write without effect.
    cache_file._version = (cache_file._version, cache_file._source_stamp, stamp)


@functools.lru_cache(maxsize=1)
def package_fingerprint() -> str:
    """Hash every source file that a kernel of this package could have been compiled from.

    Those are the files of the package's top folder and of each folder with a kernel in it: compiled
    code also freezes the constants and tuple layouts it was given, which neighbours may define.
    Folders without kernels are left out, so that work on them does not cost a compilation.
    """
    root = os.path.dirname(os.path.abspath(__file__))
    digest = hashlib.blake2b(digest_size=16)
    n_files = 0
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(name for name in subfolders if name != "__pycache__")
        sources = {name: _read(folder, name) for name in sorted(names) if name.endswith(".py")}
        if folder != root and not any(b"_jit" in source for source in sources.values()):
            continue
        for name, source in sources.items():
            path = os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")
            digest.update(f"{path}\0{len(source)}\0".encode())
            digest.update(source)
            n_files += 1
    if n_files == 0:  # for example imported from a zip archive
        raise RuntimeError(f"no source files to fingerprint in {root}")
    return digest.hexdigest()


def _read(folder: str, name: str) -> bytes:
    """Contents of a file."""
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()
