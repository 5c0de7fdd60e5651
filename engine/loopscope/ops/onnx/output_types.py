"""The element types of an operation's outputs, as far as ONNX's schema of it settles them before
anything runs.
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
    # As ONNX spells them; those without an ElementType are left out.
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
_NUMBERED: Mapping[int, ElementType | None] = {
    number: ELEMENT_TYPES.get(name.lower()) for name, number in TensorProto.DataType.items()
}
TENSOR = re.compile(r"tensor\((\w+)\)")
_Settled: TypeAlias = ElementType | tuple[int, ...] | str
"""One type for all nodes; the numbers of the inputs that have the same; the attribute that says
it; an empty tuple for none of these.
"""


def output_types(
    schema: Schema,
) -> Callable[[Sequence[Known], Mapping[str, Any]], Sequence[ElementType | None]] | None:
    """What ``Operation.output_types`` says; None where nothing is settled of any output."""
    entries = [_settled(schema, output) for output in schema.outputs]
    repeated = (
        len(schema.inputs) - 1
        if len(schema.inputs) and schema.inputs[-1].option.name == "Variadic"
        else None
    )
    return partial(_of_a_node, entries, repeated) if any(entries) else None


def _settled(schema: Schema, output: Any) -> _Settled:
    alike = tuple(
        index
        for index, one in enumerate(schema.inputs)
        if one.type_str == output.type_str and one.is_homogeneous
    )
    if alike:  # also of a type that may be but one: derivatives are held against differences in f64
        return alike
    if len(output.types) == 1:
        named = TENSOR.fullmatch(next(iter(output.types)))
        return ELEMENT_TYPES.get(named[1], ()) if named else ()
    return "to" if "to" in schema.attributes else ()


def _of_a_node(
    entries: Sequence[_Settled],
    repeated: int | None,
    inputs: Sequence[Known],
    attributes: Mapping[str, Any],
) -> list[ElementType | None]:
    """``repeated``: the number of the input that a node may have any number of times."""
    return [_of_an_output(one, repeated, inputs, attributes) for one in entries]


def _of_an_output(
    one: _Settled, repeated: int | None, inputs: Sequence[Known], attributes: Mapping[str, Any]
) -> ElementType | None:
    if isinstance(one, ElementType):
        return one
    if isinstance(one, str):
        number = attributes.get(one)
        return _NUMBERED.get(number) if isinstance(number, int) else None
    more = range(repeated + 1, len(inputs)) if repeated in one else ()
    return promoted_type(
        inputs[index].element_type for index in (*one, *more) if index < len(inputs)
    )
