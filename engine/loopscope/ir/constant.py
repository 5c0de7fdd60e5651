"""The data of a Const: its bytes in the weights file, and the array that they encode.

Elements of fewer than eight bits are packed into bytes as OpenVINO packs them.
"""

from __future__ import annotations

import math
import weakref
from itertools import pairwise

import numpy as np
from msgspec import Struct

from loopscope.errors import NotKept
from loopscope.ir import memory
from loopscope.ir.element_type import ElementType

# u3 and u6 are packed in units of three bytes: two hold the low bits of the unit's elements, the
# third their high bits, each from the most significant end. (Measured with OpenVINO 2026.4: element
# 0 of a u3 is in bits 7, 6 of byte 0 and bit 7 of byte 2.)
_SPLIT = {3: (8, 2), 6: (4, 4)}
"""Map from bits of an element to (elements in a unit, low bits of an element)."""


def packed_bytes(bits: int, elements: int) -> int:
    """Return the number of bytes that ``elements`` packed elements take.

    >>> packed_bytes(4, 3), packed_bytes(1, 9), packed_bytes(3, 1), packed_bytes(6, 5)
    (2, 2, 3, 6)
    """
    if bits in _SPLIT:
        return -(-elements // _SPLIT[bits][0]) * 3
    return (elements * bits + 7) // 8


def unpack(raw: np.ndarray, bits: int, elements: int) -> np.ndarray:
    """Return the codes of ``elements`` packed elements, one byte each.

    The low bits of a byte come first, except for u1, which begins with the most significant bit.
    """
    if bits == 1:
        return np.unpackbits(raw, count=elements)
    if bits in _SPLIT:
        unit, low_bits = _SPLIT[bits]
        low = _fields(raw.reshape(-1, 3)[:, :2].reshape(-1), low_bits)[:, ::-1].reshape(-1)
        high = _fields(raw.reshape(-1, 3)[:, 2], 8 // unit)[:, ::-1].reshape(-1)
        codes: np.ndarray = low | (high << low_bits)
        return codes[:elements]
    return _fields(raw, bits).reshape(-1)[:elements]


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """Pack codes into bytes: the inverse of ``unpack``.

    Unused bits of the last byte or unit are zero.
    """
    if bits == 1:
        return np.packbits(codes)
    if bits in _SPLIT:
        unit, low_bits = _SPLIT[bits]
        units = _pad(codes, unit).reshape(-1, unit)
        low = _join(units.reshape(-1, 8 // low_bits)[:, ::-1] & ((1 << low_bits) - 1), low_bits)
        high = _join(units[:, ::-1] >> low_bits, 8 // unit)
        return np.concatenate([low.reshape(-1, 2), high.reshape(-1, 1)], axis=1).reshape(-1)
    return _join(_pad(codes, 8 // bits).reshape(-1, 8 // bits), bits)


def _fields(raw: np.ndarray, bits: int) -> np.ndarray:
    """Return the bit fields of each byte as a row, lowest field first."""
    fields = np.empty((raw.size, 8 // bits), np.uint8)
    for index in range(8 // bits):
        fields[:, index] = (raw >> (bits * index)) & ((1 << bits) - 1)
    return fields


def _join(fields: np.ndarray, bits: int) -> np.ndarray:
    """Join rows of bit fields into bytes: the inverse of ``_fields``."""
    raw = np.zeros(len(fields), np.uint8)
    for index in range(8 // bits):
        raw |= fields[:, index] << (bits * index)
    return raw


def _pad(codes: np.ndarray, multiple: int) -> np.ndarray:
    return np.concatenate([codes, np.zeros(-codes.size % multiple, np.uint8)])


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
        alignment = memory.CACHE_LINE if len(raw) >= _LARGE else element_type.dtype.alignment
        if raw.ctypes.data % alignment == 0:
            array = raw.view(element_type.dtype)
        else:
            array = _copy_aligned(raw, element_type.dtype)
            memory.release_pages(data)
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
    array = memory.empty((raw.size // dtype.itemsize,), dtype)
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
