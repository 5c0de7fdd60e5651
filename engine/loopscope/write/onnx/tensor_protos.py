"""Constants as TensorProtos, with large data in a file beside the model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
from onnx import StringStringEntryProto, TensorProto, numpy_helper

from loopscope.errors import WriteError, shorten
from loopscope.ir.constant import Constant, packed_size
from loopscope.ir.element_type import ElementType
from loopscope.read.onnx.types import ELEMENT_TYPES

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
