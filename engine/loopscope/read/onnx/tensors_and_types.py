"""Types and tensors of an ONNX file in the form of the Model.

A type has an element type, a partial shape, and a form: tensor, sequence, optional or map. Data in
the file is viewed, and external data is mapped; data outside the model's folder is refused.
"""

from __future__ import annotations

import math
import os
from array import array as Numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import attrgetter
from pathlib import Path, PurePosixPath

import numpy as np
from onnx import SparseTensorProto, TensorProto, TypeProto, numpy_helper

from loopscope.errors import MOST_OF_A_SENTENCE, elided, shorten
from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Form
from loopscope.ir.shape import DYNAMIC, PartialShape, is_of_an_array
from loopscope.read.weights import Weights, WeightsFile

_MAX_DENSE_ELEMENTS = 1 << 24
"""Largest number of elements of a sparse tensor that is made dense."""


class ExternalData:
    """The files beside a model that contain its tensor data."""

    def __init__(self, folder: Path | None, weights: Weights) -> None:
        """``weights`` replaces all files that the model names: the bytes or path of a single data
        file.
        """
        self._folder = folder
        self._weights = weights
        self._files: dict[str, WeightsFile] = {}

    def view(self, tensor: TensorProto) -> memoryview:
        """Return the bytes of a tensor.

        ``ValueError`` if they are missing or outside the model's folder.
        """
        entries = {str(entry.key): str(entry.value) for entry in tensor.external_data}
        location = entries.get("location", "")
        file = self._file(location)
        offset, length = (_number(entries.get(key, ""), key) for key in ("offset", "length"))
        size = (
            _bytes(tuple(tensor.dims), ELEMENT_TYPES.get(tensor.data_type))
            if length is None
            else length
        )
        return file.take(offset or 0, size)

    def _file(self, location: str) -> WeightsFile:
        key = "" if self._weights is not None else location
        if key not in self._files:
            self._files[key] = self._open(location)
        return self._files[key]

    def _open(self, location: str) -> WeightsFile:
        quoted = repr(shorten(location))
        if self._weights is not None:
            return WeightsFile(
                self._weights, "give the bytes or the path of the file of data as 'weights'"
            )
        if self._folder is None:
            return WeightsFile(
                None, f"give the file {quoted} as 'weights', or open the model by its path"
            )
        place = PurePosixPath(location)
        if (
            not location
            or "\\" in location
            or "\0" in location
            or place.is_absolute()
            or ".." in place.parts
            or ":" in location
        ):
            raise ValueError(
                f"its data is declared in {quoted}: only a file in the model's own folder"
                " can hold it"
            )
        # Unlike Path.resolve, os.path.realpath does not raise for circular links.
        folder = Path(os.path.realpath(self._folder))
        path = Path(os.path.realpath(folder / location))
        if not path.is_relative_to(folder):
            raise ValueError(
                f"its data is declared in {quoted}, a link that leads out of the model's folder"
            )
        return WeightsFile(path, f"put {quoted} into the folder of the model")


def _number(text: str, what: str) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ValueError(
            f"the {what} of its data is {shorten(text, 40)!r}, expected a number of bytes"
        )
    return int(text)


def constant(
    tensor: TensorProto, external: ExternalData, data: memoryview | None = None
) -> Constant | np.ndarray:
    """Return the data of a tensor; a numpy array if no ElementType fits.

    ``data`` is the tensor's ``raw_data`` if it was not parsed. ``ValueError`` if shape and data
    contradict each other.
    """
    shape = tuple(tensor.dims[:])
    elements = _element_count(shape)
    element_type = ELEMENT_TYPES.get(tensor.data_type)
    if tensor.data_location == _EXTERNAL:
        data = external.view(tensor)
    if (
        element_type is not None
        and element_type.bits >= 8
        and (data is not None or tensor.HasField("raw_data"))
    ):
        raw = tensor.raw_data if data is None else data
        if len(raw) * 8 != elements * element_type.bits:
            size = elements * element_type.bits // 8
            raise ValueError(
                f"it has the shape {list(shape)[:8]} of {element_type}, {size} bytes,"
                f" and its data has {len(raw)} bytes"
            )
        return Constant(element_type, shape, raw)
    if data is not None:
        tensor = _with_data(tensor, bytes(data))
    elif (
        element_type is not None
        and elements <= _MAX_LISTED
        and tensor.data_type in _TYPED_FIELDS
        and not tensor.HasField("segment")
    ):
        code, typed_field = _TYPED_FIELDS[tensor.data_type]
        numbers = typed_field(tensor)[:]
        if len(numbers) == elements:
            return Constant(element_type, shape, Numbers(code, numbers).tobytes())
    try:
        array = np.asarray(numpy_helper.to_array(tensor))
    except Exception as error:
        raise ValueError(
            f"its data is not a tensor of shape {list(shape)[:8]}:"
            f" {elided(str(error), MOST_OF_A_SENTENCE)}"
        ) from error
    if element_type is ElementType.STRING:
        array = _as_texts(array)
    if element_type is None:
        array.flags.writeable = False
        return array
    return Constant.of(
        array.astype(element_type.dtype) if array.dtype != element_type.dtype else array
    )


_EXTERNAL = int(TensorProto.EXTERNAL)
_TYPED_FIELDS: Mapping[int, tuple[str, Callable[[TensorProto], Sequence[float]]]] = {
    TensorProto.FLOAT: ("f", attrgetter("float_data")),
    TensorProto.DOUBLE: ("d", attrgetter("double_data")),
    TensorProto.INT32: ("i", attrgetter("int32_data")),
    TensorProto.INT64: ("q", attrgetter("int64_data")),
}
"""Array typecode and typed data field of each element type.

For few elements, array.array is ten times as fast as numpy.
"""
_MAX_LISTED = 64


@lru_cache(maxsize=1024)
def _element_count(lengths: tuple[int, ...]) -> int:
    """Return the number of elements. ``ValueError`` if no array can have this shape.

    Cached, because a model has few shapes for many tensors.
    """
    if lengths and min(lengths) < 0:
        raise ValueError(f"it has the shape {list(lengths)[:8]}: a length is negative")
    if not is_of_an_array(lengths):
        raise ValueError(f"it has the shape {list(lengths)[:8]}, larger than any array")
    return math.prod(lengths)


def _bytes(shape: tuple[int, ...], element_type: ElementType | None) -> int:
    return int(math.prod(shape) * (64 if element_type is None else element_type.bits) + 7) // 8


def _with_data(tensor: TensorProto, data: bytes) -> TensorProto:
    return TensorProto(
        dims=tensor.dims, data_type=tensor.data_type, name=tensor.name, raw_data=data
    )


def _as_texts(array: np.ndarray) -> np.ndarray:
    texts = np.empty(array.shape, dtype=object)
    texts.reshape(-1)[:] = [
        text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        for text in array.reshape(-1).tolist()
    ]
    return texts


def dense(sparse: SparseTensorProto, external: ExternalData) -> Constant | np.ndarray:
    """Return a sparse tensor as a dense one."""
    shape = tuple(sparse.dims)
    elements = math.prod(shape)
    if any(length < 0 for length in shape) or elements > _MAX_DENSE_ELEMENTS:
        raise ValueError(
            f"a sparse tensor of shape {list(shape)[:8]} is too large to be written out"
        )
    values, indices = (array(constant(part, external)) for part in (sparse.values, sparse.indices))
    flat = np.zeros(elements, values.dtype)
    try:
        positions = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), shape)
        flat[positions] = values
    except (IndexError, ValueError, TypeError) as error:
        raise ValueError(f"the indices of a sparse tensor do not fit its shape: {error}") from error
    full = flat.reshape(shape)
    return Constant.of(full) if sparse.values.data_type in ELEMENT_TYPES else full


def array(data: Constant | np.ndarray) -> np.ndarray:
    """Return the data as a read-only array."""
    return data.array() if isinstance(data, Constant) else data


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
