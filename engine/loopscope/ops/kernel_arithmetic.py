"""Arithmetic in kernels: the types in which elements, products and sums are computed, their
rounding to the type of a tensor, broadcasting modes, and the promotion of mixed operands.

Small floats are computed in f32 and small integers exactly; both are rounded once at the end. The
modes are none, numpy and pdpd. Operands that should share one element type in ONNX but differ in a
model are promoted as in numpy, by the checks and by the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache, wraps
from typing import Any

import ml_dtypes
import numpy as np

from loopscope.ir.element_type import FLOATS, INTEGERS, NUMERIC, ElementType
from loopscope.ops.declare import Array, Attribute

PACKED = frozenset({ElementType.U1, ElementType.U3, ElementType.U6, ElementType.NF4})
"""Storage types, which OpenVINO only converts and never computes in."""
COMPUTED = NUMERIC - PACKED
"""Numeric types with arithmetic."""
COMPUTED_FLOATS = FLOATS - PACKED
COMPUTED_INTEGERS = INTEGERS - PACKED

INTEGER_DTYPES = frozenset(item.dtype for item in COMPUTED_INTEGERS)
WIDE_DTYPES = frozenset({np.dtype(np.float32), np.dtype(np.float64)})
_NARROW_INTEGERS = frozenset(
    item.dtype for item in (ElementType.I4, ElementType.U4, ElementType.U2)
)
_MAX_EXACT = 2**53


def widened(data: Array) -> Array:
    """Return the array in the type for evaluating formulas: f64 for integers, f32 for floats of 16
    bits or fewer.
    """
    dtype = data.dtype
    if dtype in WIDE_DTYPES:
        return data
    return data.astype(np.float64 if dtype in INTEGER_DTYPES else np.float32)


def to_element_type(values: Array, dtype: np.dtype) -> Array:
    """Convert computed floats to a tensor's type: integers are rounded to the nearest and saturate,
    as on OpenVINO's CPU.
    """
    if values.dtype == dtype:
        return values
    if dtype not in INTEGER_DTYPES:
        return values.astype(dtype)
    return saturate(np.rint(values), dtype)


def saturate(values: Array, dtype: np.dtype) -> Array:
    """Convert floats to integers, truncated towards zero.

    Values out of range become the nearest limit, and NaN becomes the smallest integer.
    """
    lower, upper = integer_limits(dtype)
    wide = np.dtype(np.uint64 if lower == 0 else np.int64)
    above = values > upper if upper < _MAX_EXACT else values >= float(upper)
    inside = (values >= lower) & ~above
    whole = np.where(inside, values, 0).astype(wide)
    return np.where(inside, whole, np.where(above, wide.type(upper), wide.type(lower))).astype(
        dtype
    )


@cache
def integer_limits(dtype: np.dtype) -> tuple[int, int]:
    """Return the smallest and the largest integer of a type."""
    if dtype.isbuiltin == 2:  # numpy has no limits for these types, and int2 is not an IR type.
        narrow = ml_dtypes.iinfo(dtype)
        return int(narrow.min), int(narrow.max)
    element_type = ElementType.of_dtype(dtype)
    if element_type.is_signed:
        return -(2 ** (element_type.bits - 1)), 2 ** (element_type.bits - 1) - 1
    return 0, 2**element_type.bits - 1


def elementwise(function: Callable[[Array], Array], text: str) -> Callable[[Array], Array]:
    """Return a kernel of one tensor from a float ufunc; integers are computed in f64 and rounded.

    numpy and ml_dtypes evaluate f16, bf16 and f8 in f32 and round once, as the runtime does.
    """

    def kernel(data: Array, /) -> Array:
        result = function(data)
        return (
            result
            if result.dtype is data.dtype
            else to_element_type(function(widened(data)), data.dtype)
        )

    kernel.__doc__ = text
    kernel.__name__ = kernel.__qualname__ = getattr(function, "__name__", "kernel")
    return kernel


def through_float(formula: Callable[..., Array]) -> Callable[..., Array]:
    """Return a kernel for a formula of several steps: tensors are widened before and rounded once
    at the end.
    """

    @wraps(formula)
    def kernel(data: Array, /, *others: Array, **attributes: object) -> Array:
        if data.dtype in WIDE_DTYPES:
            return formula(data, *others, **attributes)
        return to_element_type(
            formula(widened(data), *[widened(other) for other in others], **attributes), data.dtype
        )

    return kernel


def own_type(result: Array, dtype: np.dtype) -> Array:
    """Convert a result that numpy promoted (4-bit integers become int8) back to its type."""
    return result if result.dtype is dtype else result.astype(dtype)


def as_numbers(data: Array) -> Array:
    """Return 4-bit and 2-bit integers in a type with all numpy operations; other arrays
    unchanged.
    """
    return data.astype(np.int8) if data.dtype in _NARROW_INTEGERS else data


def means(values: Array, axes: int | tuple[int, ...]) -> Array:
    """Return means of floats along axes, which stay with length 1; NaN without a warning for no
    elements.

    >>> means(np.float32([[1, 4], [2, 2]]), -1).tolist()
    [[2.5], [2.0]]
    """
    sums = np.add.reduce(values, axis=axes, keepdims=True)
    count = values.size // max(sums.size, 1) if values.size else 0
    return np.asarray(sums / values.dtype.type(count))


AUTO_BROADCAST = Attribute(
    "auto_broadcast", "str", "numpy", allowed=("numpy", "none", "pdpd", "explicit")
)
"""Broadcasting mode; ``explicit`` is the name of ``none`` in old files."""

BinaryKernel = Callable[..., Array]


def fit_operand(left: Array, right: Array, mode: str) -> Array:
    """Reshape ``right`` so that numpy's broadcasting gives the result of ``mode``.

    Raise ``ValueError`` if the mode does not allow these shapes.

    pdpd (broadcast-rules): only the second input is stretched, to the shape of the first. A file
    cannot name the axis to start at, and OpenVINO then aligns both at the first axis.
    """
    if mode in ("none", "explicit"):
        if left.shape != right.shape:
            raise ValueError(
                f"shapes {list(left.shape)} and {list(right.shape)} differ, and "
                f"auto_broadcast is '{mode}'"
            )
    elif mode == "pdpd":
        lengths = pdpd_lengths(right.shape, left.ndim)
        if len(lengths) > left.ndim or any(
            length not in (1, target) for length, target in zip(lengths, left.shape, strict=True)
        ):
            raise ValueError(
                f"shape {right.shape} cannot be broadcast to {left.shape}, as "
                "auto_broadcast 'pdpd' requires"
            )
        return right.reshape(lengths)
    return right


def pdpd_lengths(lengths: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Append lengths of 1 to a shape.

    >>> pdpd_lengths((2, 3), 4)
    (2, 3, 1, 1)
    """
    return lengths + (1,) * (rank - len(lengths))


def binary(function: Callable[[Array, Array], Array], text: str) -> BinaryKernel:
    """Return a kernel of two tensors with ``auto_broadcast`` from a function with numpy's
    broadcasting.
    """

    def kernel(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
        if auto_broadcast != "numpy":
            right = fit_operand(left, right, auto_broadcast)
        return function(left, right)

    kernel.__doc__ = text
    kernel.__name__ = kernel.__qualname__ = function.__name__
    return kernel


_NATIVE_FLOATS = "fd"
_SMALL_INTEGER_BYTES = 2


def computable(array: np.ndarray) -> np.ndarray:
    """Return the same numbers in the type that arithmetic on them uses.

    f64, f32, and integers of 32 and 64 bits stay. f16, bf16 and smaller floats become f32. Integers
    of up to 16 bits become f64, in which every sum of fewer than 2**21 of their products is exact
    and BLAS does the work.
    """
    dtype = array.dtype
    if dtype.char in _NATIVE_FLOATS:
        return array
    if dtype.kind in "iu":
        return array.astype(np.float64) if dtype.itemsize <= _SMALL_INTEGER_BYTES else array
    if dtype.name.startswith(("int", "uint")):
        return array.astype(np.float64)
    return (
        _widen(array)
        if dtype.char == "e" and dtype.isnative and array.size >= _MIN_HALVES
        else array.astype(np.float32)
    )


_MIN_HALVES = 1 << 13
"""Number of f16 elements from which this conversion beats numpy's scalar conversion (5x at
100,000).
"""
_HALF_MAGNITUDE, _HALF_INFINITY, _HALF_FRACTION_BITS = 0x7FFF, 0x7C00, 10
_SINGLE_FRACTION_BITS = 23
_SIGN_COPIES = 0x70000000
"""Mask of the copies of the sign bit between sign and exponent, after an f16 sign-extended to i32
is shifted.
"""
_BIAS_FACTOR = np.float32(2.0 ** (127 - 15))


def _widen(halves: np.ndarray) -> np.ndarray:
    """Convert f16 to f32 bit for bit.

    Sign, exponent and fraction are moved to their places. A multiplication corrects the exponent
    bias, which also normalises subnormal numbers. Arrays with infinities or NaN use numpy's
    conversion.
    """
    bits = halves.view(np.int16)
    if (bits & np.int16(_HALF_MAGNITUDE)).max() >= _HALF_INFINITY:
        return halves.astype(np.float32)
    moved = bits.astype(np.int32)
    moved <<= _SINGLE_FRACTION_BITS - _HALF_FRACTION_BITS
    moved &= np.int32(~_SIGN_COPIES)
    wide: np.ndarray = moved.view(np.float32)
    wide *= _BIAS_FACTOR
    return wide


def multiplicable(
    first: np.ndarray, second: np.ndarray, terms: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return both factors of a matrix product that sums ``terms`` products per element.

    Large integer factors become f64, for BLAS, if every sum of their products is exact in f64.
    """
    if (
        first.dtype.kind in "iu"
        and first.size * second.size > _MIN_BLAS_ELEMENTS
        and terms * _max_magnitude(first) * _max_magnitude(second) <= _MAX_EXACT
    ):
        return first.astype(np.float64), second.astype(np.float64)
    return first, second


def _max_magnitude(integers: np.ndarray) -> int:
    return max(int(integers.max(initial=0)), -int(integers.min(initial=0)))


_MIN_BLAS_ELEMENTS = 1 << 12


def rounded(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return computed numbers in the operation's own type; integers wrap around as in integer
    arithmetic.
    """
    if array.dtype == dtype:
        return array
    if array.dtype.kind == "f" and (dtype.kind in "iu" or dtype.name.startswith(("int", "uint"))):
        return array.astype(np.int64).astype(dtype)
    return array.astype(dtype)


def accumulator(dtype: np.dtype) -> np.dtype:
    """Return the type for adding many elements: f32 for smaller floats, i32 for integers below 8
    bits, else their own.

    Raise ``ValueError`` for types without sums.
    """
    element_type = ElementType.of_dtype(dtype)
    if element_type is ElementType.STRING or dtype.names:
        raise ValueError(f"elements of type {element_type} have no arithmetic")
    if element_type.is_float:
        return dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
    return np.dtype(np.int32) if element_type.is_integer and element_type.bits < 8 else dtype


_NOT_OPERANDS = {
    "ConvInteger": (2, 3),
    "DequantizeLinear": (2,),
    "MatMulInteger": (2, 3),
    "QLinearConv": (2, 5, 7),
    "QLinearMatMul": (2, 5, 7),
    "Split": (1,),
    "Tile": (1, 2),
}
"""Positions of counts, axes and zero points. Their type variable is that of the data, but the data
does not take their type.
"""


def promoted_type(types: Iterable[ElementType | None]) -> ElementType | None:
    """Return the common type of the known types; None if no type is known or numpy has no common
    one.

    >>> str(promoted_type([ElementType.I64, None, ElementType.F32]))
    'f64'
    """
    known = list(dict.fromkeys(element_type for element_type in types if element_type is not None))
    if len(known) < 2:
        return known[0] if known else None
    dtype = _promote_dtypes([element_type.dtype for element_type in known])
    return None if dtype is None else ElementType.of(np.empty(0, dtype))


@lru_cache(maxsize=1024)
def input_groups(alike: tuple[str, ...], inputs: int) -> tuple[tuple[int, ...], ...]:
    """Return the positions of the inputs that share a type variable, as one group per variable."""
    groups: dict[str, list[int]] = {}
    for index in range(inputs if alike else 0):
        name = alike[min(index, len(alike) - 1)]
        if name:
            groups.setdefault(name, []).append(index)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def promoting(kernel: Callable[..., Any], name: str, alike: tuple[str, ...]) -> Callable[..., Any]:
    """Return the kernel with operands of one type variable promoted to a common type first.

    ``name`` is the operation's name. Its counts, axes and zero points keep their types.
    """
    excluded = _NOT_OPERANDS.get(name, ())

    def promoted(*values: Any, **state: Any) -> Any:
        operands = list(values)
        for group in input_groups(alike, len(values)):
            tensors = [
                index
                for index in group
                if index not in excluded and isinstance(values[index], (np.ndarray, np.generic))
            ]
            dtype = _promote_dtypes([values[index].dtype for index in tensors])
            for index in tensors if dtype is not None else ():
                operands[index] = values[index].astype(dtype, copy=False)
        return kernel(*operands, **state)

    return promoted


def _promote_dtypes(dtypes: Sequence[np.dtype]) -> np.dtype | None:
    """Return numpy's common type of numbers; None if there is none."""
    if not dtypes or any(dtype.hasobject for dtype in dtypes):
        return None
    try:
        return np.result_type(*dtypes)
    except TypeError:
        return None
