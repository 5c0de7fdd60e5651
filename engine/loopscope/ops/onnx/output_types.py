"""Element types of an operation's outputs, as far as the ONNX schema determines them before a
run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from onnx import TensorProto

from loopscope.ir.element_type import ElementType
from loopscope.ops.declare import Known
from loopscope.ops.mixed_types import promoted_type
from loopscope.ops.onnx.reference import Schema

ELEMENT_TYPES: Mapping[str, ElementType] = {
    # Names as ONNX spells them; types without an ElementType are left out.
    "float": ElementType.F32,
    "double": ElementType.F64,
    "float16": ElementType.F16,
    "bfloat16": ElementType.BF16,
    "float8e4m3fn": ElementType.F8E4M3,
    "float8e5m2": ElementType.F8E5M2,
    "float8e8m0": ElementType.F8E8M0,
    "float4e2m1": ElementType.F4E2M1,
    "bool": ElementType.BOOLEAN,
    "string": ElementType.STRING,
    **{f"int{bits}": ElementType(f"i{bits}") for bits in (4, 8, 16, 32, 64)},
    **{f"uint{bits}": ElementType(f"u{bits}") for bits in (2, 4, 8, 16, 32, 64)},
}
_BY_NUMBER: Mapping[int, ElementType | None] = {
    number: ELEMENT_TYPES.get(name.lower()) for name, number in TensorProto.DataType.items()
}
TENSOR = re.compile(r"tensor\((\w+)\)")
_TypeSource: TypeAlias = ElementType | tuple[int, ...] | str
"""One type for all nodes; the indices of the inputs that have the same type; the attribute that
holds the type; or an empty tuple for none of these.
"""


def output_types(
    schema: Schema,
) -> Callable[[Sequence[Known], Mapping[str, Any]], Sequence[ElementType | None]] | None:
    """Return the value of ``Operation.output_types``; None if the schema determines no output
    type.
    """
    entries = [_type_source(schema, output) for output in schema.outputs]
    repeated = (
        len(schema.inputs) - 1
        if len(schema.inputs) and schema.inputs[-1].option.name == "Variadic"
        else None
    )
    return partial(_node_types, entries, repeated) if any(entries) else None


def _type_source(schema: Schema, output: Any) -> _TypeSource:
    alike = tuple(
        index
        for index, entry in enumerate(schema.inputs)
        if entry.type_str == output.type_str and entry.is_homogeneous
    )
    if alike:
        # This includes a type with a single choice, because derivatives are compared with
        # differences in f64.
        return alike
    if len(output.types) == 1:
        named = TENSOR.fullmatch(next(iter(output.types)))
        return ELEMENT_TYPES.get(named[1], ()) if named else ()
    return "to" if "to" in schema.attributes else ()


def _node_types(
    entries: Sequence[_TypeSource],
    repeated: int | None,
    inputs: Sequence[Known],
    attributes: Mapping[str, Any],
) -> list[ElementType | None]:
    """Return the types of a node's outputs. ``repeated`` is the index of the variadic input."""
    return [_output_type(entry, repeated, inputs, attributes) for entry in entries]


def _output_type(
    entry: _TypeSource, repeated: int | None, inputs: Sequence[Known], attributes: Mapping[str, Any]
) -> ElementType | None:
    if isinstance(entry, ElementType):
        return entry
    if isinstance(entry, str):
        number = attributes.get(entry)
        return _BY_NUMBER.get(number) if isinstance(number, int) else None
    more = range(repeated + 1, len(inputs)) if repeated in entry else ()
    return promoted_type(
        inputs[index].element_type for index in (*entry, *more) if index < len(inputs)
    )
