"""The data of a Const: its bytes in the weights file, and the array that they encode."""

from __future__ import annotations

import math
import weakref
from itertools import pairwise

import numpy as np
from msgspec import Struct

from loopscope.errors import NotKept
from loopscope.ir import aligned, mapped
from loopscope.ir.bits import pack, packed_bytes, unpack
from loopscope.ir.element_type import ElementType

_LARGE = 1 << 14
"""Size in bytes from which a matrix product gains more from alignment than a copy costs."""
_IN_USE: weakref.WeakKeyDictionary[Constant, weakref.ref[np.ndarray]] = weakref.WeakKeyDictionary()
"""Large arrays that are still referenced, so that several runs of a model share its weights."""


class Constant(Struct, frozen=True, eq=False, weakref=True):
    """Element type, shape and raw bytes as the IR stores them (sub-byte types packed).

    The bytes are decoded on request.
    """

    element_type: ElementType
    shape: tuple[int, ...]
    data: memoryview | bytes
    """Exactly the bytes of this constant: a view into the mapped weights file, not a copy."""
    is_kept: bool = True
    """False if the file has the type and shape but not the data."""

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    def array(self) -> np.ndarray:
        """Return the value as a read-only array.

        A large array is shared while it is referenced. ``ValueError`` when the bytes are not a
        tensor of this type and shape, ``NotKept`` when the file does not contain them.
        """
        if not self.is_kept:
            raise NotKept("its value is not kept: the run was saved without weights")
        known = _IN_USE.get(self)
        array = known() if known is not None else None
        if array is None:
            array = decode(self.data, self.element_type, self.elements).reshape(self.shape)
            array.flags.writeable = False
            if array.nbytes >= _LARGE:
                _IN_USE[self] = weakref.ref(array)
        return array

    @staticmethod
    def of(array: np.ndarray | np.generic) -> Constant:
        """Return the constant that encodes an array."""
        array = np.asarray(array)
        return Constant(ElementType.of(array), array.shape, encode(array))


def packed_size(element_type: ElementType, elements: int) -> int:
    """Return the number of bytes of ``elements`` elements in a weights file (strings excepted)."""
    return packed_bytes(element_type.bits, elements)


def decode(data: memoryview | bytes, element_type: ElementType, elements: int) -> np.ndarray:
    """Decode raw bytes to a 1-D array; extra bytes are ignored, as in OpenVINO.

    ``ValueError`` when there are too few bytes.
    """
    if element_type is ElementType.STRING:
        return _decode_strings(data, elements)
    size = packed_size(element_type, elements)
    if len(data) < size:
        raise ValueError(
            f"{elements} elements of {element_type} take {size} bytes, got {len(data)}"
        )
    raw = np.frombuffer(data, np.uint8, size)
    if element_type.bits >= 8:
        alignment = aligned.CACHE_LINE if len(raw) >= _LARGE else element_type.dtype.alignment
        if raw.ctypes.data % alignment == 0:
            array = raw.view(element_type.dtype)
        else:
            array = _copy_aligned(raw, element_type.dtype)
            mapped.release_pages(data)
        return (
            raw != 0
            if element_type is ElementType.BOOLEAN and raw.size and raw.max() > 1
            else array
        )
    codes = unpack(raw, element_type.bits, elements)
    if element_type.dtype.names:
        return codes.view(element_type.dtype)
    if element_type is ElementType.I4:
        return ((codes ^ 8).astype(np.int8) - 8).astype(element_type.dtype)
    if element_type is ElementType.F4E2M1:
        return codes.view(element_type.dtype)
    return codes.astype(element_type.dtype)


def encode(array: np.ndarray) -> bytes:
    """Encode an array as raw bytes, packed as in the IR: the inverse of ``decode``."""
    element_type = ElementType.of(array)
    if element_type is ElementType.STRING:
        return _encode_strings(array)
    flat = np.ascontiguousarray(array).reshape(-1)
    if element_type.bits >= 8:
        return flat.tobytes()
    if element_type is ElementType.I4:
        codes = flat.astype(np.int8).view(np.uint8) & 15
    elif element_type.dtype.names or element_type is ElementType.F4E2M1:
        codes = flat.view(np.uint8)
    else:
        codes = flat.astype(np.uint8)
    return pack(codes, element_type.bits).tobytes()


def _copy_aligned(raw: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Copy to aligned memory, which makes later uses faster.

    OpenVINO does not align constants in the file.
    """
    array = aligned.empty((raw.size // dtype.itemsize,), dtype)
    array[...] = raw.view(dtype)
    return array


def _decode_strings(data: memoryview | bytes, elements: int) -> np.ndarray:
    """Decode strings: int32 count, int32 begin of each string, end of the last, then UTF-8 text."""
    raw = bytes(data)
    if elements == 0 and len(raw) < 4:
        return np.empty(0, dtype=object)
    if len(raw) < 4 + 4 * (elements + 1):
        raise ValueError(
            f"{elements} strings take at least {4 + 4 * (elements + 1)} bytes, got {len(raw)}"
        )
    array = np.full(elements, "", dtype=object)
    header = np.frombuffer(raw, "<i4", elements + 2)
    if header[0] != elements:
        raise ValueError(f"the data has {header[0]} strings, expected {elements} by its shape")
    text = raw[4 + 4 * (elements + 1) :]
    ends = header[1:].tolist()
    for index, (begin, end) in enumerate(pairwise(ends)):
        if not 0 <= begin <= end <= len(text):
            raise ValueError(
                f"string {index} lies from {begin} to {end} in {len(text)} bytes of text"
            )
        array[index] = text[begin:end].decode("utf-8", errors="replace")
    return array


def _encode_strings(array: np.ndarray) -> bytes:
    texts = [str(text).encode() for text in array.reshape(-1).tolist()]
    ends = np.cumsum([0, *(len(text) for text in texts)])
    return np.array([len(texts), *ends], "<i4").tobytes() + b"".join(texts)
