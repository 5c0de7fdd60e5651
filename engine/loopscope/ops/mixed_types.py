"""Promotion of operands that should share one element type in ONNX but differ in a model.

The checks and the run both use numpy's promotion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType

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
