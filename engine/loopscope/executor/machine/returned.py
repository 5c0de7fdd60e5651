"""Check of the values that kernels take and return: tensors, and one value for each output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.errors import NotKept
from loopscope.executor.plan.plan import Instruction
from loopscope.ops.values import NO_VALUE, NOT_KEPT, WEIGHTS_NOT_KEPT, described, is_tensor


def returned(instruction: Instruction, value: Any) -> Any:
    """Return one value of a kernel in the machine's representation; ``ValueError`` for a value of
    another kind.
    """
    if isinstance(value, np.ndarray):
        # Rank-0 numbers become numpy scalars, which compute ten times faster than 0-d arrays.
        return (
            value[()]
            if value.ndim == 0 and value.dtype.names is None and value.dtype != object
            else value
        )
    if isinstance(value, np.generic) or (not instruction.only_tensors and _is_onnx_value(value)):
        return value
    raise ValueError(f"its kernel returned {described(value)}, expected an array")


def all_returned(instruction: Instruction, results: Any) -> list[Any]:
    """Return one value per output from a kernel that returns a tuple; surplus values are
    dropped.
    """
    count = len(instruction.outputs)
    _check_count(results, count)
    return [returned(instruction, result) for result in results[:count]]


def first_of(results: Any) -> Any:
    """Return the value of an operation with one output whose kernel returns a tuple, unchanged."""
    if type(results) is not tuple or not results:
        _check_count(results, 1)
    return results[0]


def _check_count(results: Any, count: int) -> None:
    if not isinstance(results, (tuple, list)) or len(results) < count:
        description = (
            f"a tuple of {len(results)}" if isinstance(results, tuple) else described(results)
        )
        raise ValueError(f"its kernel returned {description}, expected a tuple of {count}")


def _is_onnx_value(value: Any) -> bool:
    """Return True for the other values of ONNX in the machine's representation: a sequence, a map,
    or an empty optional.
    """
    if isinstance(value, tuple):
        return all(
            isinstance(item, (np.ndarray, np.generic)) or _is_onnx_value(item) for item in value
        )
    return value is NO_VALUE or isinstance(value, Mapping)


def check_tensors(instruction: Instruction, arguments: Sequence[Any]) -> None:
    """Raise ``ValueError`` if an operation on tensors gets another kind of value, or a weight that
    was not stored.
    """
    for value in arguments:
        if value is NOT_KEPT:
            raise NotKept(f"not kept: it {WEIGHTS_NOT_KEPT}")
    if instruction.only_tensors:
        for number, value in enumerate(arguments):
            if not is_tensor(value):
                raise ValueError(f"input {number} is {described(value)}, expected a tensor")
