"""ONNX types as Loopscope's: element type, partial shape, and form (tensor, sequence, optional,
map).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

from onnx import TensorProto, TypeProto

from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Form
from loopscope.ir.shape import DYNAMIC, PartialShape

ELEMENT_TYPES: dict[int, ElementType] = {
    TensorProto.FLOAT: ElementType.F32,
    TensorProto.UINT8: ElementType.U8,
    TensorProto.INT8: ElementType.I8,
    TensorProto.UINT16: ElementType.U16,
    TensorProto.INT16: ElementType.I16,
    TensorProto.INT32: ElementType.I32,
    TensorProto.INT64: ElementType.I64,
    TensorProto.STRING: ElementType.STRING,
    TensorProto.BOOL: ElementType.BOOLEAN,
    TensorProto.FLOAT16: ElementType.F16,
    TensorProto.DOUBLE: ElementType.F64,
    TensorProto.UINT32: ElementType.U32,
    TensorProto.UINT64: ElementType.U64,
    TensorProto.BFLOAT16: ElementType.BF16,
    TensorProto.FLOAT8E4M3FN: ElementType.F8E4M3,
    TensorProto.FLOAT8E5M2: ElementType.F8E5M2,
    TensorProto.UINT4: ElementType.U4,
    TensorProto.INT4: ElementType.I4,
    # By number, because older onnx packages lack the names.
    23: ElementType.F4E2M1,
    24: ElementType.F8E8M0,
    25: ElementType.U2,
}
"""ONNX element types that OpenVINO has too.

Complex numbers, the "uz" floats, int2 and 6-bit floats do not have an ElementType.
"""

_MAX_DIMENSIONS = 1024


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a value as an ONNX file declares it."""

    element_type: ElementType | None = None
    shape: PartialShape = DYNAMIC
    form: Form = "tensor"
    text: str = ""
    """ONNX's notation, such as ``seq(tensor(float))``."""
    serialized: bytes = field(default=b"", compare=False, repr=False)
    """The TypeProto of an attribute, for writing it again; empty for the type of a value."""

    def __str__(self) -> str:
        return self.text


UNKNOWN_TYPE = ValueType()


@lru_cache(maxsize=4096)
def value_type_of(serialized: bytes) -> ValueType:
    """Convert a serialized TypeProto. Cached, because a model has few types for many values."""
    return value_type(TypeProto.FromString(serialized))


def attribute_type(proto: TypeProto) -> ValueType:
    """Convert a TypeProto that is an attribute."""
    return replace(value_type(proto), serialized=proto.SerializeToString())


def value_type(proto: TypeProto) -> ValueType:
    """Convert a TypeProto. Element type and shape of a container are those of its tensors."""
    forms: list[str] = []
    while True:
        match proto.WhichOneof("value"):
            case "tensor_type":
                return _tensor(proto.tensor_type, forms)
            case "sparse_tensor_type":
                return _tensor(proto.sparse_tensor_type, forms)
            case "sequence_type":
                forms.append("seq")
                proto = proto.sequence_type.elem_type
            case "optional_type":
                forms.append("optional")
                proto = proto.optional_type.elem_type
            case "map_type":
                return ValueType(form="map", text="map")
            case _:
                return ValueType(form=_form(forms))


def _tensor(proto: TypeProto.Tensor, forms: list[str]) -> ValueType:
    name = (
        TensorProto.DataType.Name(proto.elem_type).lower()
        if proto.elem_type in TensorProto.DataType.values()
        else "undefined"
    )
    text = "".join(f"{form}(" for form in forms) + f"tensor({name})" + ")" * len(forms)
    return ValueType(ELEMENT_TYPES.get(proto.elem_type), _shape(proto), _form(forms), text)


def _form(forms: list[str]) -> Form:
    if forms[:2] == ["optional", "seq"]:
        return "optional sequence"
    if not forms:
        return "tensor"
    return "optional" if forms[0] == "optional" else "sequence"


def _shape(proto: TypeProto.Tensor) -> PartialShape:
    if not proto.HasField("shape") or len(proto.shape.dim) > _MAX_DIMENSIONS:
        return DYNAMIC
    return PartialShape.of(
        dimension.dim_value if dimension.HasField("dim_value") else None
        for dimension in proto.shape.dim
    )
