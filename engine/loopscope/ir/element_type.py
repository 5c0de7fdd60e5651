"""The element types of tensors, and the numpy types that carry them."""

from __future__ import annotations

from enum import Enum
from functools import cache, cached_property

import ml_dtypes
import numpy as np


def _packed(name: str) -> np.dtype:
    """Return a dtype for a type that numpy and ml_dtypes lack: a field of that name, one byte each.

    A kernel cannot mistake such an element for a number.
    """
    return np.dtype([(name, np.uint8)])


class ElementType(Enum):
    """An element type, named as the IR spells it: ``f32``, ``i64``, ``boolean``, ...

    ``u1``, ``u3``, ``u6`` and ``nf4`` live in one-field structured arrays (``array["u3"]`` gives
    the codes). Strings live in object arrays of ``str``.
    """

    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    F8E4M3 = "f8e4m3"
    F8E5M2 = "f8e5m2"
    F8E8M0 = "f8e8m0"
    F4E2M1 = "f4e2m1"
    NF4 = "nf4"
    I64 = "i64"
    I32 = "i32"
    I16 = "i16"
    I8 = "i8"
    I4 = "i4"
    U64 = "u64"
    U32 = "u32"
    U16 = "u16"
    U8 = "u8"
    U6 = "u6"
    U4 = "u4"
    U3 = "u3"
    U2 = "u2"
    U1 = "u1"
    BOOLEAN = "boolean"
    STRING = "string"

    @cached_property
    def dtype(self) -> np.dtype:
        """The numpy dtype of arrays of this type."""
        return _DTYPES[self]

    @cached_property
    def bits(self) -> int:
        """Number of bits of an element in a weights file; 0 for strings."""
        return _BITS[self]

    @property
    def is_float(self) -> bool:
        return self in FLOATS

    @property
    def is_integer(self) -> bool:
        return self in SIGNED or self in UNSIGNED

    @property
    def is_signed(self) -> bool:
        return self in SIGNED

    def __str__(self) -> str:
        return self.value

    @staticmethod
    def of(array: np.ndarray | np.generic) -> ElementType:
        """Return the element type of an array or numpy scalar.

        ``KeyError`` when no type of the IR fits.
        """
        return _BY_DTYPE[array.dtype]

    @staticmethod
    def of_dtype(dtype: np.dtype) -> ElementType:
        """Return the element type of a numpy dtype; ``KeyError`` when there is none."""
        return _BY_DTYPE[dtype]


def type_name(dtype: np.dtype) -> str:
    """Return the name of an element type in the IR, or numpy's name (ONNX ``int2``)."""
    element_type = _BY_DTYPE.get(dtype)
    return str(element_type) if element_type is not None else dtype.name


def is_real_float(dtype: np.dtype) -> bool:
    """Return True if elements are floats with a sign, of at least 16 bits."""
    return _BY_DTYPE.get(dtype) in REAL_FLOATS


@cache
def is_whole(dtype: np.dtype) -> bool:
    """Return True if elements are integers, including narrow types that the IR lacks.

    >>> is_whole(np.dtype(ml_dtypes.int2)), is_whole(np.dtype(np.uint8))
    (True, True)
    >>> is_whole(np.dtype(np.bool_))
    False
    """
    return dtype.name.removeprefix("u").startswith("int")


_DTYPES: dict[ElementType, np.dtype] = {
    ElementType.F64: np.dtype(np.float64),
    ElementType.F32: np.dtype(np.float32),
    ElementType.F16: np.dtype(np.float16),
    ElementType.BF16: np.dtype(ml_dtypes.bfloat16),
    ElementType.F8E4M3: np.dtype(ml_dtypes.float8_e4m3fn),
    ElementType.F8E5M2: np.dtype(ml_dtypes.float8_e5m2),
    ElementType.F8E8M0: np.dtype(ml_dtypes.float8_e8m0fnu),
    ElementType.F4E2M1: np.dtype(ml_dtypes.float4_e2m1fn),
    ElementType.NF4: _packed("nf4"),
    ElementType.I64: np.dtype(np.int64),
    ElementType.I32: np.dtype(np.int32),
    ElementType.I16: np.dtype(np.int16),
    ElementType.I8: np.dtype(np.int8),
    ElementType.I4: np.dtype(ml_dtypes.int4),
    ElementType.U64: np.dtype(np.uint64),
    ElementType.U32: np.dtype(np.uint32),
    ElementType.U16: np.dtype(np.uint16),
    ElementType.U8: np.dtype(np.uint8),
    ElementType.U6: _packed("u6"),
    ElementType.U4: np.dtype(ml_dtypes.uint4),
    ElementType.U3: _packed("u3"),
    ElementType.U2: np.dtype(ml_dtypes.uint2),
    ElementType.U1: _packed("u1"),
    ElementType.BOOLEAN: np.dtype(np.bool_),
    ElementType.STRING: np.dtype(object),
}
_BY_DTYPE = {dtype: element_type for element_type, dtype in _DTYPES.items()}

_BITS = {
    ElementType.F64: 64,
    ElementType.F32: 32,
    ElementType.F16: 16,
    ElementType.BF16: 16,
    ElementType.F8E4M3: 8,
    ElementType.F8E5M2: 8,
    ElementType.F8E8M0: 8,
    ElementType.F4E2M1: 4,
    ElementType.NF4: 4,
    ElementType.I64: 64,
    ElementType.I32: 32,
    ElementType.I16: 16,
    ElementType.I8: 8,
    ElementType.I4: 4,
    ElementType.U64: 64,
    ElementType.U32: 32,
    ElementType.U16: 16,
    ElementType.U8: 8,
    ElementType.U6: 6,
    ElementType.U4: 4,
    ElementType.U3: 3,
    ElementType.U2: 2,
    ElementType.U1: 1,
    ElementType.BOOLEAN: 8,
    ElementType.STRING: 0,
}

# Sets of element types for type rules.
REAL_FLOATS = frozenset({ElementType.F64, ElementType.F32, ElementType.F16, ElementType.BF16})
FLOATS = REAL_FLOATS | {
    ElementType.F8E4M3,
    ElementType.F8E5M2,
    ElementType.F8E8M0,
    ElementType.F4E2M1,
    ElementType.NF4,
}
SIGNED = frozenset(
    {ElementType.I64, ElementType.I32, ElementType.I16, ElementType.I8, ElementType.I4}
)
UNSIGNED = frozenset(
    {
        ElementType.U64,
        ElementType.U32,
        ElementType.U16,
        ElementType.U8,
        ElementType.U6,
        ElementType.U4,
        ElementType.U3,
        ElementType.U2,
        ElementType.U1,
    }
)
INTEGERS = SIGNED | UNSIGNED
INDEX_CHOICES = (ElementType.I64, ElementType.I32)
"""Allowed values of an attribute for an index type, in the order of messages."""
INDEX_TYPES = frozenset(INDEX_CHOICES)
NUMERIC = FLOATS | INTEGERS
ANY_TYPE = frozenset(ElementType)
