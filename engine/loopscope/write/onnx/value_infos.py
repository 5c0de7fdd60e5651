"""Declared types of inputs, outputs and inner values."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import TypeProto, ValueInfoProto

from loopscope.ir.model import Port
from loopscope.ir.shape import PartialShape
from loopscope.read.onnx.types import value_type
from loopscope.write.onnx.tensor_protos import NUMBERS


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
