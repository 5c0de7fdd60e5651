"""Rows of ONNX's table: the kernel and the derivative of an operation since a version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, TypedDict, Unpack

from loopscope.ir.element_type import ElementType
from loopscope.ops.declare import Attribute, Infer, KeepingKernel, Kernel, Operation
from loopscope.ops.derivative import Gradient
from loopscope.ops.infer import same
from loopscope.ops.values import given, taken

LAST = 10_000
"""Later than any version."""

Prepare = Callable[[Mapping[str, Any], int], Kernel]
"""Makes the kernel of one node from its attributes and its number of outputs."""
PreparePart = Callable[[Prepare, Mapping[str, Any], int], Kernel]
"""``Prepare`` with a first argument that prepares the onnx package's kernel for the remaining
cases.
"""

_FLOATS = frozenset({ElementType.F16, ElementType.F32, ElementType.F64})


class RowFields(TypedDict, total=False):
    """Optional fields of ``OnnxRow``."""

    convert: bool
    prepare: Prepare
    prepare_part: PreparePart
    gradient: Gradient
    symbol: str
    float_symbol: str
    integer_symbol: str
    identity: bool
    symbol_when: Mapping[str, object]
    by_constant: Callable[..., KeepingKernel | None]
    kept_input: int
    counts_outputs: bool
    stateful: bool
    tensor_result: bool
    attributes: tuple[Attribute, ...]
    infer: Infer


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxRow:
    """Versions of an ONNX operation that share a kernel and a derivative. Fields that
    ``Operation`` also has mean the same.
    """

    name: str
    since: int = 1
    until: int = LAST
    """First and last version, as ONNX counts them: the opset in which the operation came or
    changed.
    """
    kernel: Kernel | None = None
    """Takes arrays by position and attributes by keyword. Without ``convert``, an attribute that
    the node does not have and that has no default is None. If a row has no kernel and neither
    ``prepare`` nor ``prepare_part``, the onnx package computes the operation.
    """
    convert: bool = False
    """True for a kernel that takes arrays of rank 0, lists, dictionaries and None instead of the
    machine's values (see ``values.taken``). It takes only the attributes that the node has, and
    returns one value, or a tuple of values for several outputs.
    """
    prepare: Prepare | None = None
    prepare_part: PreparePart | None = None
    gradient: Gradient | None = None
    symbol: str = ""
    float_symbol: str = ""
    integer_symbol: str = ""
    identity: bool = False
    symbol_when: Mapping[str, object] = field(default_factory=dict[str, object])
    by_constant: Callable[..., KeepingKernel | None] | None = None
    kept_input: int = 1
    counts_outputs: bool = False
    """True for a kernel that takes the node's number of outputs as ``outputs``."""
    stateful: bool = False
    tensor_result: bool = True
    """False for a kernel that may return a sequence or an optional without a value."""
    attributes: tuple[Attribute, ...] | None = None
    """Attributes of an experimental operation of the first opsets, which the onnx package does not
    declare; None for all other operations.
    """
    infer: Infer = same
    """Shape rule of an experimental operation."""

    @property
    def operation(self) -> Operation:
        """The experimental operation of this row."""
        return Operation(
            name=self.name,
            version=1,
            opsets=(self.since, self.until),
            page=f"onnx_{self.name}",
            kernel=self.kernel,
            infer=self.infer,
            attributes=self.attributes or (),
            types=(_FLOATS,),
        )

    @property
    def computation(self) -> dict[str, Any]:
        """Fields of ``Operation`` that say how the operation is computed; empty if only the onnx
        package computes it.
        """
        if self.prepare is not None:
            return {"prepare": self.prepare}
        if self.kernel is None:
            return {}
        if self.convert:
            return {"prepare": partial(_converted, self.kernel, self.counts_outputs)}
        computed = {name: getattr(self, name) for name in _SHARED}
        if not self.tensor_result:
            computed["prepare"] = partial(_in_a_tuple, self.kernel)
        return {**computed, "kernel": self.kernel}


_SHARED = ({item.name for item in fields(OnnxRow)} & {item.name for item in fields(Operation)}) - {
    "name",
    "kernel",
    "prepare",
    "gradient",
    "attributes",
    "infer",
}


def row(
    name: str,
    kernel: Kernel | None = None,
    /,
    *,
    since: int = 1,
    until: int = LAST,
    **declared: Unpack[RowFields],
) -> OnnxRow:
    """Return a row of ONNX's table.

    >>> relu = row("Relu", abs, since=6)
    >>> relu.name, relu.since, relu.until == LAST
    ('Relu', 6, True)
    """
    return OnnxRow(name=name, kernel=kernel, since=since, until=until, **declared)


def _converted(
    kernel: Kernel, counts_outputs: bool, attributes: Mapping[str, Any], outputs: int
) -> Kernel:
    present = {name: value for name, value in attributes.items() if value is not None}
    if counts_outputs:
        present["outputs"] = outputs

    def compute(*values: Any) -> tuple[Any, ...]:
        results = kernel(*[taken(value) for value in values], **present)
        results = results if isinstance(results, tuple) else (results,)
        return tuple(given(result) for result in results[:outputs])

    return compute


def _in_a_tuple(kernel: Kernel, attributes: Mapping[str, Any], outputs: int) -> Kernel:
    return lambda *values: (kernel(*values),)
