"""Messages of an ONNX file: constants, attributes, and declared types of tensors.

Constants are TensorProtos, with large data in a file beside the model. Attributes are
AttributeProtos in the form that the source file has. Inputs, outputs and inner values have declared
types.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import onnx
from onnx import (
    AttributeProto,
    NodeProto,
    StringStringEntryProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    numpy_helper,
)

from loopscope.errors import WriteError, shorten
from loopscope.ir.constant import Constant, packed_size
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Port
from loopscope.ir.shape import PartialShape
from loopscope.read.onnx.tensors_and_types import ELEMENT_TYPES, ValueType, value_type

NUMBERS = {element_type: number for number, element_type in ELEMENT_TYPES.items()}
"""ONNX's number of each element type."""
LARGE = 1024
"""Size in bytes from which tensor data is written to the file beside the model."""
_ALIGNMENT = 4096
"""Alignment in bytes of tensor data in that file, so that runtimes can map it."""


class ExternalTensors:
    """The data file of a model, which contains equal tensors once."""

    def __init__(self, write: Callable[[bytes | memoryview], object], location: str) -> None:
        """``location`` is the name of the file beside the model."""
        self._write, self._location = write, location
        self._size = 0
        self._offsets: dict[bytes, int] = {}

    def store(self, tensor: TensorProto, data: memoryview | bytes) -> None:
        """Write the data to the file, and its place to the tensor."""
        digest = hashlib.blake2b(data, digest_size=32).digest()
        if digest not in self._offsets:
            padding = -self._size % _ALIGNMENT
            self._write(bytes(padding))
            self._offsets[digest] = self._size + padding
            self._write(data)
            self._size += padding + len(data)
        tensor.data_location = TensorProto.EXTERNAL
        entries = {
            "location": self._location,
            "offset": str(self._offsets[digest]),
            "length": str(len(data)),
        }
        tensor.external_data.extend(
            StringStringEntryProto(key=key, value=value) for key, value in entries.items()
        )


def tensor_proto(
    constant: Constant, name: str, external: ExternalTensors | None = None
) -> TensorProto:
    """Return the tensor of a constant. ``external`` receives large data.

    ``WriteError`` for a constant without data, or of an element type that ONNX lacks.
    """
    if not constant.is_kept:
        raise WriteError(
            f"{shorten(name, 60)!r} has no data: the model is that of a run which was saved "
            "without weights"
        )
    number = NUMBERS.get(constant.element_type)
    if number is None:
        raise WriteError(
            f"the constant {shorten(name, 60)!r} has the element type {constant.element_type}, "
            "which ONNX lacks: convert it before writing"
        )
    tensor = TensorProto(name=name, data_type=number, dims=constant.shape)
    if constant.element_type is ElementType.STRING:
        tensor.string_data.extend(text.encode() for text in constant.array().reshape(-1).tolist())
        return tensor
    # A weights file of OpenVINO may have more bytes than the elements take.
    data = constant.data[: packed_size(constant.element_type, constant.elements)]
    if external is not None and len(data) >= LARGE:
        external.store(tensor, data)
    else:
        tensor.raw_data = bytes(data)
    return tensor


def array_proto(array: np.ndarray, name: str = "") -> TensorProto:
    """Return the tensor of an array, which may have an element type that only ONNX has."""
    try:
        return tensor_proto(Constant.of(array), name)
    except KeyError:
        return numpy_helper.from_array(array, name)


_KINDS: Mapping[type, tuple[int, int]] = {
    float: (AttributeProto.FLOAT, AttributeProto.FLOATS),
    int: (AttributeProto.INT, AttributeProto.INTS),
    str: (AttributeProto.STRING, AttributeProto.STRINGS),
    np.ndarray: (AttributeProto.TENSOR, AttributeProto.TENSORS),
    ValueType: (AttributeProto.TYPE_PROTO, AttributeProto.TYPE_PROTOS),
}
"""Kind of an attribute and of a list by the Python type of a value."""
_FIELDS: Mapping[int, str] = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t",
    AttributeProto.TYPE_PROTO: "tp",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
    AttributeProto.TENSORS: "tensors",
    AttributeProto.TYPE_PROTOS: "type_protos",
}
_CONSTANT_DTYPES = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
}


def attribute_protos(
    attributes: Mapping[str, object], source: NodeProto | None, operation: tuple[str, str, int]
) -> list[AttributeProto]:
    """Return the attributes of a node without its graphs.

    ``operation`` is the type, domain and version, by which the type of an empty list is known.
    """
    originals = {item.name: item for item in source.attribute} if source is not None else {}
    return [
        _attribute(name, value, originals.get(name), operation)
        for name, value in attributes.items()
    ]


def constant_attribute(constant: Constant, source: NodeProto | None) -> AttributeProto:
    """Return the value of a Constant node, as a number or list if the source has this form."""
    for original in source.attribute if source is not None else ():
        dtype = _CONSTANT_DTYPES.get(original.name)
        field = _FIELDS.get(original.type, "")
        if dtype is not None and field in ("f", "i", "floats", "ints"):
            array = np.array(getattr(original, field), dtype)
            known = constant.array()
            if (array.dtype, array.shape, array.tobytes()) == (
                known.dtype,
                known.shape,
                known.tobytes(),
            ):
                written: AttributeProto = original
                return written
    attribute = AttributeProto(name="value", type=AttributeProto.TENSOR)
    attribute.t.CopyFrom(tensor_proto(constant, ""))
    return attribute


def _attribute(
    name: str,
    value: object,
    original: AttributeProto | None,
    operation: tuple[str, str, int],
) -> AttributeProto:
    is_list = isinstance(value, tuple)
    items: Sequence[object] = value if isinstance(value, tuple) else (value,)
    if items:
        kinds = _KINDS.get(type(items[0]))
        if kinds is None or any(type(item) is not type(items[0]) for item in items):
            raise WriteError(
                f"the attribute {shorten(name, 60)!r} of {operation[0]} is "
                f"{shorten(repr(value), 60)}, which ONNX cannot express"
            )
        kind = kinds[is_list]
    else:
        kind = _kind_of_empty(name, original, operation)
    attribute = AttributeProto(name=name)
    attribute.type = cast("Any", kind)
    if original is not None:
        attribute.doc_string = original.doc_string
    field = _FIELDS[kind]
    encoded = [
        _encoded(item, text) for item, text in zip(items, _texts(original, items), strict=True)
    ]
    if is_list:
        getattr(attribute, field).extend(encoded)
    elif field in ("t", "tp"):
        getattr(attribute, field).CopyFrom(encoded[0])
    else:
        setattr(attribute, field, encoded[0])
    return attribute


def _texts(original: AttributeProto | None, items: Sequence[object]) -> Sequence[bytes | None]:
    """Return the bytes of the original's texts, or None per item if it has other texts."""
    texts: Sequence[bytes] = ()
    if original is not None and items and isinstance(items[0], str):
        texts = [original.s] if original.HasField("s") else list(original.strings)
    return texts if len(texts) == len(items) else [None] * len(items)


def _encoded(value: object, text: bytes | None) -> Any:
    """Return the content of an attribute. ``text`` is the original text, maybe not in UTF-8."""
    if isinstance(value, str):
        is_original = text is not None and text.decode("utf-8", errors="replace") == value
        return text if is_original else value.encode()
    if isinstance(value, np.ndarray):
        return array_proto(value)
    return TypeProto.FromString(value.serialized) if isinstance(value, ValueType) else value


def _kind_of_empty(
    name: str, original: AttributeProto | None, operation: tuple[str, str, int]
) -> int:
    """Return the kind of an empty list: as in the source, else as ONNX declares it, else INTS."""
    if original is not None and original.type in _FIELDS:
        return original.type
    kind, domain, version = operation
    try:
        declared = onnx.defs.get_schema(kind, version, domain).attributes.get(name)
    except onnx.defs.SchemaError:
        declared = None
    if declared is None:
        return AttributeProto.INTS
    declared_type: Any = declared.type
    return int(getattr(declared_type, "value", declared_type))


def value_info(name: str, port: Port, source: ValueInfoProto | None) -> ValueInfoProto:
    """Return the declaration of a value.

    It is the source's if that declares the same type, so that names of dimensions remain.
    """
    if source is not None:
        declared = value_type(source.type)
        if (declared.element_type, declared.form) == (port.element_type, port.form) and (
            declared.shape == port.shape
        ):
            info = ValueInfoProto()
            info.CopyFrom(source)
            info.name = name
            return info
    info = ValueInfoProto(name=name)
    if port.element_type is not None and port.element_type in NUMBERS:
        tensor = _tensor_type(info.type, port.form)
        if tensor is not None:
            tensor.elem_type = NUMBERS[port.element_type]
            _set_shape(tensor, port.shape, _dimension_names(source))
    return info


def _tensor_type(target: TypeProto, form: str) -> TypeProto.Tensor | None:
    """Return the tensor type inside a value of this form; None for a map."""
    match form:
        case "tensor":
            return target.tensor_type
        case "sequence":
            return target.sequence_type.elem_type.tensor_type
        case "optional":
            return target.optional_type.elem_type.tensor_type
        case "optional sequence":
            return target.optional_type.elem_type.sequence_type.elem_type.tensor_type
        case _:
            return None


def _dimension_names(source: ValueInfoProto | None) -> list[str]:
    if source is None or not source.type.HasField("tensor_type"):
        return []
    return [dimension.dim_param for dimension in source.type.tensor_type.shape.dim]


def _set_shape(tensor: TypeProto.Tensor, shape: PartialShape, names: list[str]) -> None:
    """Set the shape. ``names`` are the source's names of dimensions, used if the rank is equal."""
    if shape.dimensions is None:
        return
    tensor.shape.SetInParent()
    for axis, dimension in enumerate(shape.dimensions):
        target = tensor.shape.dim.add()
        if dimension.is_static:
            target.dim_value = dimension.length
        elif len(names) == len(shape.dimensions) and names[axis]:
            target.dim_param = names[axis]


def kept_value_infos(
    source: Iterable[ValueInfoProto], ports: dict[str, Port]
) -> list[ValueInfoProto]:
    """Return the source's declarations of values that still exist with a fitting type."""
    fitting = []
    for info in source:
        port = ports.get(info.name)
        if port is not None:
            declared = value_type(info.type)
            same_type = declared.element_type == port.element_type or port.element_type is None
            if same_type and declared.shape.intersect(port.shape) is not None:
                fitting.append(info)
    return fitting
