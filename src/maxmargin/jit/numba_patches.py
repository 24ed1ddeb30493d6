"""All that this package changes about Numba, by parts of it that are not public; one place.

Each patch takes a dispatcher (what ``numba.njit`` returns) and changes that one only. `patches`
decides which are made: those whose parts the installed Numba has (`NEEDED`), none for versions that
were never tested, none with ``MAXMARGIN_PLAIN_NUMBA=1``. Without them kernels are what
``numba.njit(cache=True)`` makes of them. docs/internals.md says what each patch buys.
"""

from __future__ import annotations

import itertools
import logging
import os
import re
import threading
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..utils.warn import warn_user
from .compiling import complain_of_cache, in_compiler_thread, note_compilation

try:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, Flags
    from numba.core.environment import lookup_environment
    from numba.core.registry import cpu_target
except ImportError:  # `patches` notices
    JITCodeLibrary = Compiler = Flags = object  # type: ignore
    lookup_environment = cpu_target = None  # type: ignore
try:
    from . import lean_lowering
except Exception:  # it builds on parts of Numba when it is imported
    lean_lowering = None  # type: ignore

__all__ = [
    "check_returns_no_arrays",
    "compile_aside",
    "lend_to_kernels",
    "make_borrowed",
    "make_lean",
    "open_cache_later",
    "patches",
    "prefetch",
    "stamp_cache",
    "tolerate_cache_errors",
]

logger = logging.getLogger(__name__)

SWITCH = "MAXMARGIN_PLAIN_NUMBA"  # "1" for no patches, or names of those to leave out, with commas
FIRST_TESTED, LAST_TESTED = (0, 61), (0, 68)  # minor versions

UNTESTED = (
    "Numba {} was never tested with this version of maxmargin, so kernels are compiled without "
    "maxmargin's changes to Numba: results are the same, training starts later and is slower. "
    "Tested are Numba {}.{} to {}.{}; a newer maxmargin may know yours. "
    "MAXMARGIN_PLAIN_NUMBA=1 switches this message off."
)

#: What each patch needs of Numba that is not public, as attributes of `_Parts`.
NEEDED = {
    "lend": "dispatcher._compiler.pipeline_class dispatcher._compiler._customize_flags "
    "dispatcher.add_overload dispatcher.get_call_template dispatcher.get_overload "
    "dispatcher.overloads dispatcher.targetctx.insert_user_function compiler.define_pipelines "
    "library._optimize_functions library._optimize_final_module library._finalize_final_module "
    "library._finalize_dynamic_globals library._verify_declare_only_symbols environment.__call__ "
    "flags.no_compile flags.no_cpython_wrapper flags.no_cfunc_wrapper",
    "lean": "lean.LeanLower._find_singly_assigned_variable lean.LeanLower._place_of_item "
    "lean.LeanLower.lower_getitem lean.LeanLower.lower_setitem lean.LeanLower.setup_function "
    "lean.CPUCallConv._get_arg_packer target.target_context._defns flags.no_cfunc_wrapper "
    "dispatcher._compiler.pipeline_class dispatcher._compiler._customize_flags "
    "dispatcher.add_overload compiler.define_pipelines compiler.compile_extra",
    "uncounted": "target.options._nrt target.target_context.data_model_manager "
    "dispatcher.add_overload",
    "inline": "target.options.forceinline",
    "prefetch": "target.target_context.make_array",
    "aside": "dispatcher.compile dispatcher._cache",
    "cache": "dispatcher.enable_caching dispatcher._cache",
}


@cache
def patches() -> frozenset[str]:
    """Names of the patches that are made; decided once in a process."""
    switch = os.environ.get(SWITCH, "0")
    if switch == "1":
        return frozenset()
    version = tuple(int(part) for part in re.findall(r"\d+", numba.__version__)[:2])
    if not FIRST_TESTED <= version <= LAST_TESTED:
        warn_user(UNTESTED.format(numba.__version__, *FIRST_TESTED, *LAST_TESTED))
        return frozenset()
    parts = _Parts()
    made = set()
    for name, attributes in NEEDED.items():
        try:
            for attribute in attributes.split():
                attrgetter(attribute)(parts)
        except AttributeError as error:
            logger.debug("Numba is not patched (%s): %s", name, error)
        else:
            made.add(name)
    return frozenset(made.difference(switch.split(",")))


class _Parts:
    """Where parts of Numba are looked for."""

    compiler, library, flags = Compiler, JITCodeLibrary, Flags
    environment, target, lean = lookup_environment, cpu_target, lean_lowering

    def __init__(self) -> None:
        self.dispatcher = numba.njit(lambda: None)


# ----- kernels that other kernels call -----------------------------------------------------------


class _BorrowedCode(JITCodeLibrary):
    """Code that is only ever linked into other code: neither optimised nor made machine code."""

    def _optimize_final_module(self) -> None:
        """The code that borrows this is optimised as a whole."""

    def _finalize_final_module(self) -> None:
        """As Numba's, but nothing is handed to the machine code generator."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _BorrowedCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, into code of that kind."""

    _numbers = itertools.count()

    def __init__(self, typing_context: Any, target_context: Any, library: Any, *rest: Any) -> None:
        name = f"borrowed.{next(self._numbers)}"
        library = _BorrowedCode(target_context.codegen(), name)
        super().__init__(typing_context, target_context, library, *rest)


@cache
def _lean_compiler(compiler: Any, pipeline: Any) -> Any:
    """A compiler with this pipeline."""
    return type(f"Lean{compiler.__name__}", (pipeline, compiler), {})


def make_lean(compiled: Any) -> None:
    """Let a dispatcher write shorter code for LLVM, see `lean_lowering`, and no wrapper for C."""
    compiled._compiler.pipeline_class = _lean_compiler(Compiler, lean_lowering.LeanPipeline)
    customize = compiled._compiler._customize_flags

    def without_c(flags: Any) -> Any:
        flags = customize(flags)
        flags.no_cfunc_wrapper = True
        return flags

    compiled._compiler._customize_flags = without_c


def make_borrowed(borrowed: Any, lean: bool) -> None:
    """Let a dispatcher make code for other kernels only.

    A kernel that is called by kernels needs no machine code of its own and no wrappers for Python
    and C, which take Numba more time than all the rest.
    """
    compiler: Any = _BorrowedCompiler
    if lean:
        compiler = _lean_compiler(compiler, lean_lowering.LendingPipeline)
    borrowed._compiler.pipeline_class = compiler
    customize = borrowed._compiler._customize_flags

    def without_machine_code(flags: Any) -> Any:
        flags = customize(flags)
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        return flags

    def add_overload(result: Any) -> None:
        # The key under which kernels find the code is a function elsewhere; there is none here.
        result = result._replace(entry_point=object())
        insert = lean_lowering.insert_lent_function if lean else _insert_function
        insert(borrowed.targetctx, result.entry_point, result.fndesc, result.library)
        borrowed.overloads[tuple(result.signature.args)] = result

    borrowed._compiler._customize_flags = without_machine_code
    borrowed.add_overload = add_overload


def _insert_function(context: Any, key: Any, fndesc: Any, library: Any) -> None:
    """Let functions call one, by a key."""
    context.insert_user_function(key, fndesc, [library])


def lend_to_kernels(compiled: Any, make: Callable[[], Any]) -> None:
    """Let other kernels use a dispatcher of the same function, see above, in place of this one."""
    borrowed = cache(make)
    add_overload_of_lender = compiled.add_overload

    def add_overload_that_borrows(result: Any) -> None:
        # What borrowed code needs of Python (to print, say) is set where machine code is made.
        for name in (variable.name for variable in result.library._final_module.global_variables):
            environment = lookup_environment(name)
            if environment is not None:
                result.library.codegen.set_env(name, environment)
        add_overload_of_lender(result)

    compiled.add_overload = add_overload_that_borrows
    compiled.get_call_template = lambda *args: borrowed().get_call_template(*args)
    compiled.get_overload = lambda *args: borrowed().get_overload(*args)


def check_returns_no_arrays(compiled: Any) -> None:
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


# ----- memory ------------------------------------------------------------------------------------


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch(context: Any, array: Any, position: Any) -> Any:
    """Ask for the cache line of an element that is needed soon: read, into all levels."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = target.make_array(signature.args[0])(target, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        call = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        read, keep, of_data = (ir.Constant(number, value) for value in (0, 3, 1))
        builder.call(call, [place, read, keep, of_data])
        return target.get_dummy_value()

    return types.void(array, position), generate


def _in_vain(array: Any, position: Any) -> None:
    """Python has no such thing."""


def _chosen() -> Any:
    """The one for how kernels are compiled here."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return _in_vain
    return _prefetch if "prefetch" in patches() else numba.njit(_in_vain)


prefetch: Any = _chosen()

# ----- compilation and its cache -----------------------------------------------------------------


def compile_aside(compiled: Any) -> None:
    """Let a dispatcher compile in a thread, counted and announced."""
    compile_here: Callable[[Any], Any] = compiled.compile

    def compile_in_thread(signature: Any) -> Any:
        kept = hasattr(compiled._cache, "_cache_file")
        return in_compiler_thread(lambda: compile_here(signature), kept)

    compiled.compile = compile_in_thread


class _LaterCache:
    """Stands for the cache of a dispatcher until something of it is needed."""

    _lock = threading.RLock()

    def __init__(self, compiled: Any, open_it: Callable[[], bool]) -> None:
        self._compiled, self._none, self._open = compiled, compiled._cache, open_it

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if self._compiled._cache is self and not self._open():
                self._compiled._cache = self._none
        return getattr(self._compiled._cache, name)


def open_cache_later(compiled: Any, open_it: Callable[[], bool]) -> None:
    """Let a function set the cache of a dispatcher when it is needed; it returns whether it did.

    To open one takes longer than to import the kernel.
    """
    compiled._cache = _LaterCache(compiled, open_it)


def stamp_cache(compiled: Any, stamp: str) -> None:
    """Turn on the dispatcher's cache and extend its version; raise if either fails."""
    compiled.enable_caching()
    cache_file = compiled._cache._cache_file
    # Numba compares the version before it reads the types that kernels were compiled for, and the
    # source stamp after that: classes that an upgrade has moved could not be read any more.
    # Reading first makes a renamed attribute an AttributeError rather than a write without effect.
    cache_file._version = (cache_file._version, cache_file._source_stamp, stamp)


def tolerate_cache_errors(kept: Any) -> None:
    """Compile where the cache cannot be read, and go on where it cannot be written."""
    load, save = kept.load_overload, kept.save_overload

    def load_or_compile(*args: Any) -> Any:
        found = None
        try:
            found = load(*args)
        except Exception as error:  # whatever a damaged file makes of unpickling
            complain_of_cache("read", kept.cache_path, error)
        if found is None:
            note_compilation()
        return found

    def save_or_go_on(*args: Any) -> None:
        try:
            save(*args)
        except Exception as error:  # it reads the index first, which may be damaged
            complain_of_cache("written", kept.cache_path, error)

    kept.load_overload, kept.save_overload = load_or_compile, save_or_go_on
