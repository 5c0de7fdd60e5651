"""``Operation`` rows made from the schemas of the onnx package: what each declares, and which
kernel computes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from onnx import AttributeProto, helper

from loopscope.ir.element_type import ANY_TYPE, ElementType
from loopscope.ops.attribute_text import AttributeKind
from loopscope.ops.declare import REQUIRED, Attribute, Kernel, Operation, Role
from loopscope.ops.onnx.output_types import ELEMENT_TYPES, TENSOR, output_types
from loopscope.ops.onnx.reference import Schema, fallback, is_random
from loopscope.ops.onnx.row import LAST
from loopscope.ops.onnx.table import find_row

REGIONS = frozenset({"Loop", "If", "Scan", "SequenceMap"})
_FIRST_SCAN_WITHOUT_LENGTHS = 9
_MANY = 2**31 - 1

_KINDS: Mapping[int, AttributeKind] = {
    AttributeProto.INT: "int",
    AttributeProto.FLOAT: "float",
    AttributeProto.INTS: "ints",
    AttributeProto.FLOATS: "floats",
    AttributeProto.STRINGS: "strs",
}


def operation_of(schema: Schema) -> Operation | None:
    """The row of one version of an operation; None when nothing can compute it."""
    name, version = schema.name, int(schema.since_version)
    most = None if schema.max_input >= _MANY else int(schema.max_input)
    outputs = None if schema.max_output >= _MANY else int(schema.max_output)
    page = f"onnx_{schema.domain.replace('.', '')}_{name}"
    declared: dict[str, Any] = {
        "name": name,
        "version": version,
        "opsets": (version, LAST),
        "page": page,
        "outputs": outputs,
    }
    if not schema.domain and name in REGIONS:
        # What the bodies capture comes after the inputs of the schema.
        types = _types(schema)
        if name == "Scan" and version < _FIRST_SCAN_WITHOUT_LENGTHS:
            types = types[
                1:
            ]  # The reader moves the lengths of the sequences behind the other inputs.
        return Operation(
            **{**declared, "outputs": None},
            inputs=(0, None),
            types=(*types, ANY_TYPE),
            role=Role.REGION,
        )
    declared |= {"inputs": (int(schema.min_input), most), "attributes": tuple(_attributes(schema))}
    declared |= {
        "types": _types(schema),
        "alike": _alike(schema),
        "output_types": output_types(schema),
    }
    declared["only_tensors"] = all(
        kind.startswith("tensor(")
        for one in (*schema.inputs, *schema.outputs)
        for kind in one.types
    )
    row = find_row(schema.domain, name, version)
    computed = row.computation if row is not None else {}
    if not computed:
        prepare = fallback(schema)
        if prepare is None:
            return None
        computed = {"prepare": prepare, "stateful": is_random(schema)}
        if row is not None and row.prepare_part is not None:
            computed = {"prepare": partial(row.prepare_part, prepare)}
    prepare = computed.get("prepare")
    kernel = computed.get("kernel") or partial(_call, prepare)
    return Operation(
        **{**declared, **computed, "kernel": _described(kernel, schema)},
        gradient=None if row is None else row.gradient,
    )


def _call(make: Any, /, *arrays: Any, outputs: int = 1, **attributes: Any) -> Any:
    state = {"state": attributes.pop("state")} if "state" in attributes else {}
    return make(attributes, outputs)(*arrays, **state)


def _described(kernel: Kernel, schema: Schema) -> Kernel:
    """A kernel with the first sentence of ONNX's own words as its docstring."""
    described = partial(kernel)
    described.__doc__ = " ".join((schema.doc or "").split()).partition(". ")[0][:300]
    return described


def _attributes(schema: Schema) -> Iterable[Attribute]:
    for name, declared in schema.attributes.items():
        default: object = REQUIRED if declared.required else None
        if declared.default_value.type:
            default = helper.get_attribute_value(declared.default_value)
        yield Attribute(name, _KINDS.get(int(declared.type), "str"), _decoded(default))


def _types(schema: Schema) -> tuple[frozenset[ElementType], ...]:
    """The element types that each input may have; of a sequence or an optional, those of the
    tensors in it.
    """
    named = [TENSOR.findall(" ".join(one.types)) for one in schema.inputs]
    return tuple(
        frozenset(ELEMENT_TYPES[name] for name in names if name in ELEMENT_TYPES) or ANY_TYPE
        for names in named
    ) or (ANY_TYPE,)


def _alike(schema: Schema) -> tuple[str, ...]:
    """What ``Operation.alike`` says: a type that is written out, such as ``tensor(int64)``, is
    no name.
    """
    names = (
        one.type_str if one.is_homogeneous and "(" not in one.type_str else ""
        for one in schema.inputs
    )
    return tuple(names) if len(schema.inputs) else ()


def _decoded(default: object) -> object:
    if isinstance(default, list):
        return tuple(_decoded(one) for one in default)
    return default.decode() if isinstance(default, bytes) else default
