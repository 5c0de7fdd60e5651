"""Promotion of element types: of two types in OpenVINO, and of mixed operands in ONNX models.

The page of OpenVINO is type/convert-promote-types-14. Operands that should share one element type
in ONNX but differ in a model are promoted as in numpy, by the checks and by the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from loopscope.ir.element_type import FLOATS, SIGNED, ElementType

_EXPONENT_AND_MANTISSA = {
    ElementType.F8E4M3: (4, 3),
    ElementType.F8E5M2: (5, 2),
    ElementType.F16: (5, 10),
    ElementType.BF16: (8, 7),
    ElementType.F32: (8, 23),
    ElementType.F64: (11, 52),
}
"""Bits of exponent and mantissa, narrowest type first; f16 precedes bf16, because (f8e4m3, f8e5m2)
gives f16.
"""
_SIGNED_BY_WIDTH = (
    ElementType.I4,
    ElementType.I8,
    ElementType.I16,
    ElementType.I32,
    ElementType.I64,
)


def promotion(
    types: tuple[ElementType, ElementType],
    dimensioned: tuple[bool, bool],
    *,
    unsafe: bool,
    for_u64: ElementType,
) -> ElementType:
    """Return the common type of two inputs.

    ``dimensioned`` marks the inputs that count as more than a scalar: of two types of one kind, the
    type of the only dimensioned input wins. Raise ``ValueError`` if the promotion is not safe and
    ``unsafe`` is false.
    """
    left, right = types
    if left is right:
        return left
    if _rank(left) != _rank(right):
        return _join_kinds(*sorted(types, key=_rank), unsafe=unsafe)
    if dimensioned[0] != dimensioned[1]:
        result, dropped = (left, right) if dimensioned[0] else (right, left)
        if not unsafe and not _may_keep(result, dropped):
            raise ValueError(f"{result} cannot hold every {dropped}, and promote_unsafe is false")
        return result
    joined = _join(left, right, for_u64)
    if not unsafe and joined not in types:
        raise ValueError(
            f"{left} and {right} would be widened to {joined}, and promote_unsafe is false"
        )
    return joined


def _may_keep(target: ElementType, source: ElementType) -> bool:
    """Return True if a scalar may be converted to the type of a tensor; for floats only the width
    counts, as in OpenVINO.
    """
    return target.bits >= source.bits and (
        target in FLOATS or target in SIGNED or source not in SIGNED
    )


def _rank(element_type: ElementType) -> int:
    """Return the order of the kinds: floats above integers above booleans."""
    if element_type is ElementType.STRING:
        raise ValueError("text does not have a common type with another type")
    return 2 if element_type in FLOATS else 0 if element_type is ElementType.BOOLEAN else 1


def _join_kinds(lower: ElementType, higher: ElementType, *, unsafe: bool) -> ElementType:
    if (
        not unsafe
        and lower is not ElementType.BOOLEAN
        and higher in FLOATS
        and higher.bits < 2 * lower.bits
    ):
        raise ValueError(
            f"{higher} does not have twice the bits of {lower}, and promote_unsafe is false"
        )
    return higher


def _join(left: ElementType, right: ElementType, for_u64: ElementType) -> ElementType:
    if left in FLOATS:
        return _join_floats(left, right)
    if (left in SIGNED) == (right in SIGNED):
        return max(left, right, key=lambda element_type: element_type.bits)
    signed, unsigned = (left, right) if left in SIGNED else (right, left)
    bits = max(signed.bits, 2 * unsigned.bits)
    return next(
        (element_type for element_type in _SIGNED_BY_WIDTH if element_type.bits >= bits), for_u64
    )


def _join_floats(left: ElementType, right: ElementType) -> ElementType:
    if left not in _EXPONENT_AND_MANTISSA or right not in _EXPONENT_AND_MANTISSA:
        raise ValueError(f"no type is declared to hold both {left} and {right}")
    required = tuple(
        max(pair)
        for pair in zip(_EXPONENT_AND_MANTISSA[left], _EXPONENT_AND_MANTISSA[right], strict=True)
    )
    return next(
        element_type
        for element_type, (exponent, mantissa) in _EXPONENT_AND_MANTISSA.items()
        if exponent >= required[0] and mantissa >= required[1]
    )


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
