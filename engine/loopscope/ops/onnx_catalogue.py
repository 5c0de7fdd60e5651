"""Catalogue of ONNX models: the operations of all domains (ai.onnx, ai.onnx.ml, com.microsoft) by
type and opset.

An operation is declared by the schema of the onnx package and computed as the table of ONNX says.
Element types of outputs are found as far as the schema determines them before a run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from onnx import AttributeProto, TensorProto, defs, helper

from loopscope.ir.element_type import ANY_TYPE, ElementType
from loopscope.ops.attribute_text import AttributeKind
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.declare import REQUIRED, Attribute, Known, Operation, Role
from loopscope.ops.kernel_arithmetic import promoted_type
from loopscope.ops.microsoft import DOMAIN as MICROSOFT_DOMAIN
from loopscope.ops.microsoft import IN_ONNX, MICROSOFT
from loopscope.ops.onnx.reference import Schema, fallback, is_random, since
from loopscope.ops.onnx.row import LAST, OnnxRow
from loopscope.ops.onnx.table import find_row
from loopscope.ops.own_operations import OPSET
from loopscope.ops.port_meanings import table

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


REGIONS = frozenset({"Loop", "If", "Scan", "SequenceMap"})
TEXTS = Path(__file__).with_name("onnx") / "port_meanings.txt"
_FIRST_SCAN_WITHOUT_LENGTHS = 9
_UNBOUNDED = 2**31 - 1
_BROADCASTING = (
    {"Add", "Div", "Max", "Mean", "Min", "Mod", "Mul", "Pow", "Sub", "Sum", "Where"}
    | {"And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Or", "Xor"}
    | {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}
)
_FIRST_BROADCASTING = 7
"""First opset in which these operations broadcast like numpy."""

_KINDS: Mapping[int, AttributeKind] = {
    AttributeProto.INT: "int",
    AttributeProto.FLOAT: "float",
    AttributeProto.INTS: "ints",
    AttributeProto.FLOATS: "floats",
    AttributeProto.STRINGS: "strs",
}


@cache
def standard_operations() -> tuple[tuple[Operation, str], ...]:
    """Return each version of the operations that the onnx package defines, with its domain."""
    schemas = sorted(_all_schemas(), key=lambda each: (each.name, int(each.since_version)))
    pairs = ((operation_of(schema), schema.domain or "ai.onnx") for schema in schemas)
    return tuple((operation, domain) for operation, domain in pairs if operation is not None)


def operation_of(schema: Schema) -> Operation | None:
    """Return the operation of one version; None if nothing can compute it."""
    if not schema.domain and schema.name in REGIONS:
        return _region_operation(schema)
    row = find_row(schema.domain, schema.name, int(schema.since_version))
    computed = _computation(schema, row)
    if computed is None:
        return None
    kernel = computed.get("kernel") or partial(_call, computed.get("prepare"))
    return Operation(
        **{**_identity(schema), **_signature(schema), **computed, "kernel": kernel},
        gradient=None if row is None else row.gradient,
    )


def _region_operation(schema: Schema) -> Operation:
    """Return an operation with bodies, whose captured values come after the inputs of the
    schema.
    """
    types = _types(schema)
    if schema.name == "Scan" and schema.since_version < _FIRST_SCAN_WITHOUT_LENGTHS:
        types = types[1:]  # The reader moves the lengths of the sequences behind the other inputs.
    return Operation(
        **_identity(schema),
        outputs=None,
        inputs=(0, None),
        types=(*types, ANY_TYPE),
        role=Role.REGION,
    )


def _computation(schema: Schema, row: OnnxRow | None) -> dict[str, Any] | None:
    """Return the fields that compute an operation: those of ONNX's table, else the reference
    evaluator; None if neither has it.
    """
    if row is not None and row.computation:
        return row.computation
    prepare = fallback(schema)
    if prepare is None:
        return None
    if row is not None and row.prepare_part is not None:
        return {"prepare": partial(row.prepare_part, prepare)}
    return {"prepare": prepare, "stateful": is_random(schema)}


def _identity(schema: Schema) -> dict[str, Any]:
    """Return the fields that name and describe an operation."""
    version = int(schema.since_version)
    return {
        "name": schema.name,
        "version": version,
        "opsets": (version, LAST),
        "page": f"onnx_{schema.domain.replace('.', '')}_{schema.name}",
        **_documentation(schema),
    }


def _signature(schema: Schema) -> dict[str, Any]:
    """Return the fields about inputs, outputs and attributes of an operation without bodies."""
    max_inputs = None if schema.max_input >= _UNBOUNDED else int(schema.max_input)
    return {
        "inputs": (int(schema.min_input), max_inputs),
        "outputs": None if schema.max_output >= _UNBOUNDED else int(schema.max_output),
        "attributes": tuple(_attributes(schema)),
        "types": _types(schema),
        "alike": _type_names(schema),
        "output_types": output_types(schema),
        "broadcasts": not schema.domain
        and schema.name in _BROADCASTING
        and schema.since_version >= _FIRST_BROADCASTING,
        "only_tensors": all(
            kind.startswith("tensor(")
            for formal in (*schema.inputs, *schema.outputs)
            for kind in formal.types
        ),
    }


def _call(make: Any, /, *arrays: Any, outputs: int = 1, **attributes: Any) -> Any:
    state = {"state": attributes.pop("state")} if "state" in attributes else {}
    return make(attributes, outputs)(*arrays, **state)


def _documentation(schema: Schema) -> dict[str, Any]:
    """Return the names of the inputs, and the texts of the operation, its inputs and outputs."""
    inputs, outputs = (table(TEXTS).get((schema.name, kind), {}) for kind in ("in", "out"))
    first_sentence = " ".join((schema.doc or "").split()).partition(". ")[0][:300]
    variadic = defs.OpSchema.FormalParameterOption.Variadic
    return {
        "doc": table(TEXTS).get((schema.name, "doc"), {}).get("-", first_sentence),
        "spec_inputs": tuple(
            formal.name for formal in schema.inputs if formal.option is not variadic
        ),
        "input_docs": {
            formal.name: inputs[formal.name] for formal in schema.inputs if formal.name in inputs
        },
        "output_docs": {formal.name: outputs.get(formal.name, "") for formal in schema.outputs},
    }


def _attributes(schema: Schema) -> Iterable[Attribute]:
    texts = table(TEXTS).get((schema.name, "attr"), {})
    for name, declared in schema.attributes.items():
        default: object = REQUIRED if declared.required else None
        if declared.default_value.type:
            default = helper.get_attribute_value(declared.default_value)
        kind = _KINDS.get(int(declared.type), "str")
        yield Attribute(name, kind, _decode(default), doc=texts.get(name, ""))


def _types(schema: Schema) -> tuple[frozenset[ElementType], ...]:
    """Return the element types that each input may have; for a sequence or an optional, those of
    its tensors.
    """
    named = [TENSOR.findall(" ".join(formal.types)) for formal in schema.inputs]
    return tuple(
        frozenset(ELEMENT_TYPES[name] for name in names if name in ELEMENT_TYPES) or ANY_TYPE
        for names in named
    ) or (ANY_TYPE,)


def _type_names(schema: Schema) -> tuple[str, ...]:
    """Return the value of ``Operation.alike``. A type that is written out, such as
    ``tensor(int64)``, is not a name.
    """
    names = (
        formal.type_str if formal.is_homogeneous and "(" not in formal.type_str else ""
        for formal in schema.inputs
    )
    return tuple(names) if len(schema.inputs) else ()


def _decode(default: object) -> object:
    if isinstance(default, list):
        return tuple(_decode(item) for item in default)
    return default.decode() if isinstance(default, bytes) else default


_OWN: Mapping[str, Operation] = {
    "Parameter": Operation(
        name="Parameter", version=1, opsets=(1, LAST), page="", inputs=(0, 0), role=Role.PARAMETER
    ),
    "Result": Operation(name="Result", version=1, opsets=(1, LAST), page="", role=Role.RESULT),
    "Const": Operation(
        name="Const", version=1, opsets=(1, LAST), page="", inputs=(0, 0), role=Role.CONSTANT
    ),
}


class OnnxCatalogue(Catalogue):
    """The operations of ONNX; ``categories`` contains only those that a user adds (or replaces) by
    name.
    """

    def find(self, type: str, opset: str) -> Operation | None:
        """Return the operation for the opset of a node, such as ``ai.onnx 18`` or ``function
        my.domain``; None if unknown.
        """
        own = super().versions(type)
        if own:
            return own[-1]
        return (
            CATALOGUE.find(type, opset)
            if opset == OPSET or opset.startswith("opset")
            else _find(type, opset)
        )

    def elsewhere(self, type: str, opset: str) -> tuple[Operation, ...]:
        """Return the versions of the type in all opsets of the same domain."""
        return super().versions(type) or _versions(type, opset.partition(" ")[0])


ONNX = OnnxCatalogue({})


class CompanionOperations(Catalogue):
    """OpenVINO's operations for building nodes in an ONNX graph.

    The opset of a node decides between OpenVINO and ONNX.
    """

    def find(self, type: str, opset: str) -> Operation | None:
        """Return the operation of OpenVINO or ONNX."""
        return ONNX.find(type, opset)

    @property
    def dialect(self) -> Literal["openvino", "onnx"]:
        """Dialect of the models that are built with the catalogue."""
        return "onnx"


BESIDE = CompanionOperations(CATALOGUE.categories)


def with_own(catalogue: Catalogue) -> Catalogue:
    """Return ONNX's operations and those that a user has added to a catalogue."""
    added = catalogue.categories.get("custom", ())
    return OnnxCatalogue({"custom": added}) if added else ONNX


@lru_cache(maxsize=8192)
def _find(type: str, opset: str) -> Operation | None:
    if not opset:
        return _OWN.get(type)
    domain, _, version = opset.rpartition(" ")
    if domain == "function":
        return Operation(
            name=type,
            version=1,
            opsets=(1, LAST),
            page="",
            inputs=(0, None),
            outputs=None,
            role=Role.REGION,
        )
    if not version.isdigit() or len(version) > 6:
        return None
    if domain == MICROSOFT_DOMAIN:
        return MICROSOFT.get(type) if int(version) else None
    schema = since("" if domain == "ai.onnx" else domain, type, int(version))
    if schema is None:
        if domain != "ai.onnx":
            return None
        row = find_row("", type, int(version))
        if row is not None and row.attributes is not None:
            return row.operation
        return IN_ONNX.get(type)
    return operation_of(schema)


@lru_cache(maxsize=8192)
def _versions(type: str, domain: str) -> tuple[Operation, ...]:
    if domain == MICROSOFT_DOMAIN:
        return (MICROSOFT[type],) if type in MICROSOFT else ()
    matching = (
        schema
        for schema in _all_schemas()
        if schema.name == type and (schema.domain or "ai.onnx") == domain
    )
    schemas = sorted(matching, key=lambda schema: int(schema.since_version))
    operations = (operation_of(schema) for schema in schemas)
    return tuple(operation for operation in operations if operation is not None)


def domain_of(type: str) -> str:
    """Return the domain that has an operation of this type, the standard one first; empty if there
    is none.

    >>> domain_of("Sigmoid"), domain_of("TreeEnsemble"), domain_of("QGemm"), domain_of("Mine")
    ('ai.onnx', 'ai.onnx.ml', 'com.microsoft', '')
    """
    domains = {schema.domain or "ai.onnx" for schema in _all_schemas() if schema.name == type}
    domains |= {"ai.onnx"} if type in IN_ONNX or type in _OWN else set()
    domains |= {MICROSOFT_DOMAIN} if type in MICROSOFT else set()
    return min(domains, default="")


@cache
def _all_schemas() -> tuple[Schema, ...]:
    return tuple(defs.get_all_schemas_with_history())
