"""Operands that ONNX gives one element type and a model gives several: check and run take the
type that numpy promotes them to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType


def promoted_type(types: Iterable[ElementType | None]) -> ElementType | None:
    """Return the common type of those that are known; None if none is known or numpy has no common
    one.

    >>> str(promoted_type([ElementType.I64, None, ElementType.F32]))
    'f64'
    """
    known = list(dict.fromkeys(one for one in types if one is not None))
    if len(known) < 2:
        return known[0] if known else None
    dtype = _promoted([one.dtype for one in known])
    return None if dtype is None else ElementType.of(np.empty(0, dtype))


@lru_cache(maxsize=1024)
def input_groups(alike: tuple[str, ...], inputs: int) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of the inputs that have one type by their specification, for each name
    of a type.
    """
    groups: dict[str, list[int]] = {}
    for index in range(inputs if alike else 0):
        name = alike[min(index, len(alike) - 1)]
        if name:
            groups.setdefault(name, []).append(index)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def promoting(kernel: Callable[..., Any], alike: tuple[str, ...]) -> Callable[..., Any]:
    """Return the kernel with operands of one specified type promoted to a common one first."""

    def promoted(*values: Any, **state: Any) -> Any:
        operands = list(values)
        for group in input_groups(alike, len(values)):
            tensors = [
                index for index in group if isinstance(values[index], (np.ndarray, np.generic))
            ]
            dtype = _promoted([values[index].dtype for index in tensors])
            for index in tensors if dtype is not None else ():
                operands[index] = values[index].astype(dtype, copy=False)
        return kernel(*operands, **state)

    return promoted


def _promoted(dtypes: Sequence[np.dtype]) -> np.dtype | None:
    """Return numpy's common type of numbers; None where it has none."""
    if not dtypes or any(dtype.hasobject for dtype in dtypes):
        return None
    try:
        return np.result_type(*dtypes)
    except TypeError:
        return None
