"""Elements of fewer than eight bits, packed into bytes as OpenVINO packs them."""

from __future__ import annotations

import numpy as np

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
