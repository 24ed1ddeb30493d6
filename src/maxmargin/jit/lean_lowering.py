"""From typed kernels to code for LLVM in half of Numba's instructions, for the same results.

What Numba writes is right for any function, and LLVM removes most of it again, which takes time.
Kernels pass NamedTuples of dozens of arrays from one to the next and index arrays by integers, so:

* a variable with one assignment that comes before all its uses is a value, not memory;
* an item of an array is found by the array's pointer and shape, not by a copy of its descriptor;
* a kernel that only kernels call takes each argument in one piece, not field by field;
* how an operator applies to types is found once in a process, not once for each use.

`numba_patches` decides whether this is used.
"""

from __future__ import annotations

import contextlib
import copy
import operator
from collections import Counter
from collections.abc import Iterator
from typing import Any

from numba import types
from numba.core import cgutils
from numba.core import ir as numba_ir
from numba.core.analysis import compute_cfg_from_blocks, must_use_alloca
from numba.core.callconv import CPUCallConv
from numba.core.compiler_machinery import register_pass
from numba.core.cpu import CPUContext
from numba.core.imputils import user_function
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering, NativeLowering
from numba.core.types.functions import BaseFunction

__all__ = ["LeanPipeline", "LendingPipeline", "insert_lent_function"]


class LeanLower(Lower):  # type: ignore[misc]
    """Numba's lowering of a function, with fewer variables in memory and short ways to items."""

    def _find_singly_assigned_variable(self) -> None:
        """Add to Numba's list, of variables used in one block, those whose block precedes all uses.

        References are counted where a variable is deleted, which may be in several places: such
        variables stay in memory.
        """
        super()._find_singly_assigned_variable()
        if self.generator_info is not None:
            return
        blocks = sorted(self.blocks.items())
        assigned = [i.target.name for _, block in blocks for i in block.find_insts(numba_ir.Assign)]
        values = {name for name, times in Counter(assigned).items() if times == 1}
        values -= set(must_use_alloca(self.blocks))
        if self.context.enable_nrt:
            models = self.context.data_model_manager
            values = {v for v in values if not models[self.typeof(v)].contains_nrt_meminfo()}
        dominators = compute_cfg_from_blocks(self.blocks).dominators()
        home: dict[str, int] = {}
        for offset, block in blocks:
            for inst in block.body:
                for name in _used(inst):
                    if home.get(name) not in dominators[offset]:
                        values.discard(name)
                if isinstance(inst, numba_ir.Assign):
                    home[inst.target.name] = offset
        self._singly_assigned_vars |= values

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """As Numba's; numbers of C-ordered arrays at integers by the short way."""
        place = self._place_of_item(value, index)
        if place is None:
            return super().lower_getitem(resty, expr, value, index, signature)
        array = self.typeof(value.name)
        found = self.context.unpack_value(self.builder, array.dtype, place, _alignment(array))
        return self.context.cast(self.builder, found, array.dtype, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """As Numba's; numbers of C-ordered arrays at integers by the short way."""
        place = self._place_of_item(target_var, index_var)
        if place is None:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        array, given = self.typeof(target_var.name), self.typeof(value_var.name)
        value = self.loadvar(value_var.name)
        for kind in (signature.args[2], array.dtype):
            value = self.context.cast(self.builder, value, given, kind)
            given = kind
        self.context.pack_value(self.builder, array.dtype, value, place, _alignment(array))
        return None

    def _place_of_item(self, value: Any, index: Any) -> Any:
        """Pointer to ``value[index]``; None where only Numba knows the way."""
        array, kind = self.typeof(value.name), types.unliteral(self.typeof(index.name))
        kinds = tuple(types.unliteral(part) for part in _parts(kind))
        if (
            type(array) is not types.Array
            or array.layout != "C"
            or array.ndim != len(kinds)
            or not isinstance(array.dtype, types.Number)
            or not all(isinstance(kind, types.Integer) for kind in kinds)
            or self.context.enable_boundscheck
        ):
            return None
        builder, model = self.builder, self.context.data_model_manager[array]
        descriptor, at = self.loadvar(value.name), self.loadvar(index.name)
        is_tuple = isinstance(kind, types.BaseTuple)
        shape = model.get_field_position("shape")
        place = None
        for axis, kind in enumerate(kinds):
            number = builder.extract_value(at, axis) if is_tuple else at
            size = builder.extract_value(descriptor, [shape, axis])
            number = self.context.cast(
                builder, number, kind, types.intp if kind.signed else types.uintp
            )
            if kind.signed:
                is_negative = builder.icmp_signed("<", number, cgutils.intp_t(0))
                number = builder.select(is_negative, builder.add(number, size), number)
            place = number if place is None else builder.add(builder.mul(place, size), number)
        data = builder.extract_value(descriptor, model.get_field_position("data"))
        return builder.gep(data, [place])


def _used(inst: Any) -> Iterator[str]:
    """Names of the variables that an instruction reads or deletes."""
    if isinstance(inst, numba_ir.Del):
        yield inst.value
    elif not isinstance(inst, numba_ir.Assign):
        yield from (variable.name for variable in inst.list_vars())
    elif isinstance(inst.value, numba_ir.Var):
        yield inst.value.name
    elif isinstance(inst.value, numba_ir.Inst):
        yield from (variable.name for variable in inst.value.list_vars())


def _alignment(array: Any) -> int | None:
    """What is known of where items lie; None for what their type needs."""
    return None if array.aligned else 1


# ----- arguments in one piece --------------------------------------------------------------------


class _Whole:
    """Arguments as they are within a function, in the place of Numba's packer of arguments."""

    def __init__(self, models: Any, kinds: Any) -> None:
        self.argument_types = tuple(models[kind].get_value_type() for kind in kinds)

    def as_arguments(self, builder: Any, values: Any) -> Any:
        return tuple(values)

    def from_arguments(self, builder: Any, arguments: Any) -> Any:
        return list(arguments)

    def assign_names(self, arguments: Any, names: Any) -> None:
        for argument, name in zip(arguments, names, strict=True):
            argument.name = name


class _WholeArguments(CPUCallConv):  # type: ignore[misc]
    """Numba's calling convention, with such arguments."""

    def _get_arg_packer(self, kinds: Any) -> _Whole:
        return _Whole(self.context.data_model_manager, kinds)


class _WholeContext(CPUContext):  # type: ignore[misc]
    """A context that declares and calls functions so."""

    @property
    def call_conv(self) -> Any:
        return _WholeArguments(self)


def _with_whole_arguments(context: Any) -> Any:
    """The same context, but for calls."""
    whole = copy.copy(context)
    whole.__class__ = _WholeContext
    return whole


class _LendingLower(LeanLower):
    """The same for a function that takes whole arguments."""

    @property
    def call_conv(self) -> Any:
        return _WholeArguments(self.context)

    def setup_function(self, fndesc: Any) -> None:
        context = self.context
        self.context = _with_whole_arguments(context)
        super().setup_function(fndesc)
        self.context = context


def insert_lent_function(context: Any, key: Any, fndesc: Any, library: Any) -> None:
    """Let functions call one that takes whole arguments, by a key."""
    call = user_function(fndesc, [library])

    def call_it(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return call(_with_whole_arguments(context), builder, signature, arguments)

    call_it.signature, call_it.libs = call.signature, call.libs  # type: ignore[attr-defined]
    context._defns[key].append(call_it, call.signature)


# ----- operators ---------------------------------------------------------------------------------

_KNOWN = (types.Number, types.Boolean, types.Array, types.SliceType)
_OPERATORS = {getattr(operator, name) for name in operator.__all__} | {bool, len, range}


_BASE: Any = BaseFunction
_numba_finds = _BASE.get_call_type
#: Signatures of operators for numbers and arrays, with the type of the operator, that it lives on.
_signatures: dict[Any, Any] = {}
_compiling: list[None] = []  # once for each compilation that is going on, one within another


def _recall(self: Any, context: Any, args: Any, kws: Any) -> Any:
    """`BaseFunction.get_call_type`, which finds a signature by trying all that Numba has."""
    key = (id(self), tuple(args))
    _, found = _signatures.get(key, (None, None))
    if found is None or kws:
        found = _numba_finds(self, context, args, kws)
        is_operator = type(self) is types.Function and self.typing_key in _OPERATORS
        if is_operator and not kws:
            if all(isinstance(part, _KNOWN) for arg in args for part in _parts(arg)):
                _signatures[key] = self, found
    return found


def _parts(kind: Any) -> Any:
    """The types in a tuple, or a type that is none."""
    return kind if isinstance(kind, types.BaseTuple) else (kind,)


@contextlib.contextmanager
def _recalling_operators() -> Iterator[None]:
    """Remember signatures in the block; Numba compiles in one thread at a time."""
    _compiling.append(None)
    _BASE.get_call_type = _recall
    try:
        yield
    finally:
        _compiling.pop()
        if not _compiling:
            _BASE.get_call_type = _numba_finds


# ----- Numba's pipelines -------------------------------------------------------------------------


@register_pass(mutates_CFG=True, analysis_only=False)
class _LeanLowering(BaseNativeLowering):  # type: ignore[misc]
    _name: Any = "maxmargin_lean_lowering"
    lowering_class = LeanLower


@register_pass(mutates_CFG=True, analysis_only=False)
class _LendingLowering(BaseNativeLowering):  # type: ignore[misc]
    _name: Any = "maxmargin_lending_lowering"
    lowering_class = _LendingLower


class LeanPipeline:
    """For a compiler of Numba: the same steps, but for the last one."""

    lowering: Any = _LeanLowering

    def compile_extra(self, function: Any) -> Any:
        """Compile the function."""
        with _recalling_operators():
            return super().compile_extra(function)  # type: ignore[misc]

    def define_pipelines(self) -> Any:
        """List the steps."""
        managers = super().define_pipelines()  # type: ignore[misc]
        for manager in managers:
            manager.passes = [
                (self.lowering if step is NativeLowering else step, text)
                for step, text in manager.passes
            ]
            manager.finalize()
        return managers


class LendingPipeline(LeanPipeline):
    """The same for functions that take whole arguments."""

    lowering = _LendingLowering
