"""What a kernel takes and returns, checked at the one place where the machine calls kernels:
tensors, and one value for each output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.errors import NotKept
from loopscope.executor.plan.plan import Instruction
from loopscope.ops.values import NO_VALUE, NOT_KEPT, WEIGHTS_NOT_KEPT, described, is_tensor


def returned(instruction: Instruction, value: Any) -> Any:
    """One value that a kernel returned, as the machine holds it; ``ValueError`` when it is none."""
    if isinstance(value, np.ndarray):
        # Rank-0 numbers as numpy scalars, which compute ten times faster than 0-d arrays.
        return (
            value[()]
            if value.ndim == 0 and value.dtype.names is None and value.dtype != object
            else value
        )
    if isinstance(value, np.generic) or (not instruction.only_tensors and _is_held(value)):
        return value
    raise ValueError(f"its kernel returned {described(value)}, expected an array")


def all_returned(instruction: Instruction, made: Any) -> list[Any]:
    """The same for a kernel that returns a tuple with a value for each output; what it returns
    beyond them is left out.
    """
    count = len(instruction.outputs)
    _check_count(made, count)
    return [returned(instruction, one) for one in made[:count]]


def first_of(made: Any) -> Any:
    """The value of an operation with one output whose kernel returns a tuple, as the kernel
    gives it.
    """
    if type(made) is not tuple or not made:
        _check_count(made, 1)
    return made[0]


def _check_count(made: Any, count: int) -> None:
    if not isinstance(made, (tuple, list)) or len(made) < count:
        found = f"a tuple of {len(made)}" if isinstance(made, tuple) else described(made)
        raise ValueError(f"its kernel returned {found}, expected a tuple of {count}")


def _is_held(value: Any) -> bool:
    """Whether it is what ONNX has beside tensors, as the machine holds it: a sequence, a map, an
    optional without a value.
    """
    if isinstance(value, tuple):
        return all(isinstance(one, (np.ndarray, np.generic)) or _is_held(one) for one in value)
    return value is NO_VALUE or isinstance(value, Mapping)


def check_tensors(instruction: Instruction, arguments: Sequence[Any]) -> None:
    """``ValueError`` when an operation of tensors gets anything else, which numpy might take for
    an array, or what was not kept.
    """
    for value in arguments:
        if value is NOT_KEPT:
            raise NotKept(f"not kept: it {WEIGHTS_NOT_KEPT}")
    if instruction.only_tensors:
        for number, value in enumerate(arguments):
            if not is_tensor(value):
                raise ValueError(f"input {number} is {described(value)}, expected a tensor")
