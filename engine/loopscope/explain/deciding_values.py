"""Elements of the operands that decided whether an operation gives true or false."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from loopscope.executor.plan.plan import Instruction
from loopscope.ops.values import is_tensor

Rule = Literal[
    "comparison",
    "both",
    "one",
    "every",
    "some",
    "empty",
    "not",
    "choice",
    "passed",
    "moved",
    "other",
]
Element = tuple[int, int]
"""Input number and flat index of an element."""

_COMPARISON = re.compile(r"\{0\} (?P<sign>==|!=|<=|>=|<|>) \{1\}")
_SYMBOLS = {"{0} & {1}": "and", "{0} | {1}": "or", "{0} ^ {1}": "xor", "~{0}": "not"}
_BITWISE_TYPES = {"BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor", "BitwiseNot": "not"}
_CHOICES = ("Select", "Where")
REDUCTIONS = {
    **dict.fromkeys(("ReduceLogicalAnd", "ReduceMin", "ReduceProd"), True),
    **dict.fromkeys(("ReduceLogicalOr", "ReduceMax", "ReduceSum"), False),
}
"""Reductions of booleans: True if all elements must be true, False if one is enough."""
PASSING = frozenset(
    (
        "Identity",
        "Convert",
        "ConvertLike",
        "Cast",
        "CastLike",
        "Squeeze",
        "Unsqueeze",
        "Reshape",
        "Flatten",
    )
)
"""Operations that pass on every element of their first input in the same order."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Reason why one output element of an operation is true or false."""

    rule: Rule
    elements: tuple[Element, ...] = ()
    """Elements that decided: all for ``every``, a placeholder that names the input for
    ``empty``.
    """
    sign: str = ""
    """Sign of a comparison, such as ``<``."""


OTHER = Decision("other")

Logic = Literal["comparison", "and", "or", "xor", "not", "passed"]


def logic(instruction: Instruction) -> Logic | Literal[""]:
    """Return the effect of an operation on scalar booleans, independent of its inputs; empty if it
    has none.
    """
    if _COMPARISON.fullmatch(instruction.symbol):
        return "comparison"
    match _SYMBOLS.get(instruction.symbol) or _BITWISE_TYPES.get(instruction.node.type, ""):
        case "and" | "or" | "xor" | "not" as joint:
            return joint
    return "passed" if instruction.node.type in PASSING else ""


def decision(
    instruction: Instruction, inputs: Sequence[Any], output: Any, position: int
) -> Decision:
    """Return why the element with flat index ``position`` of an operation's first output is true or
    false.

    Unknown ``inputs`` are None.
    """
    if not inputs or not all(is_tensor(value) and value is not None for value in (*inputs, output)):
        return OTHER
    arrays = [np.asarray(value) for value in inputs]
    result = np.asarray(output)
    holds = bool(result.reshape(-1)[position])
    comparison = _COMPARISON.fullmatch(instruction.symbol)
    name = instruction.node.type
    if comparison and len(arrays) == 2:
        return _decide_broadcast(arrays, result.shape, position, "comparison", comparison["sign"])
    joint = _boolean_operation(instruction, arrays)
    if joint:
        return _decide_booleans(joint, arrays, result.shape, position, holds=holds)
    if name in _CHOICES and len(arrays) == 3:
        return _decide_choice(arrays, result.shape, position)
    if name in REDUCTIONS and arrays[0].dtype == bool:
        return _decide_reduction(
            REDUCTIONS[name], arrays[0], arrays[1:], instruction, result, position, holds=holds
        )
    if (
        name in PASSING
        and arrays[0].size == result.size
        and bool(arrays[0].reshape(-1)[position]) == holds
    ):
        return Decision("passed", ((0, position),))
    return OTHER


def _boolean_operation(instruction: Instruction, arrays: Sequence[np.ndarray]) -> str:
    """Return ``and``, ``or``, ``xor`` or ``not``, also for bitwise operations on booleans;
    otherwise empty.
    """
    if not all(array.dtype == bool for array in arrays):
        return ""
    return _SYMBOLS.get(instruction.symbol) or _BITWISE_TYPES.get(instruction.node.type, "")


def _decide_booleans(
    joint: str, arrays: Sequence[np.ndarray], shape: tuple[int, ...], position: int, *, holds: bool
) -> Decision:
    if joint == "not":
        return Decision("not", ((0, position),))
    both = _decide_broadcast(arrays, shape, position, "both")
    if joint == "xor" or holds == (joint == "and"):
        return both
    deciding = tuple(
        candidate
        for candidate in both.elements
        if bool(arrays[candidate[0]].reshape(-1)[candidate[1]]) == holds
    )
    return Decision("one", deciding[:1]) if deciding else OTHER


def _decide_broadcast(
    arrays: Sequence[np.ndarray], shape: tuple[int, ...], position: int, rule: Rule, sign: str = ""
) -> Decision:
    """Return a decision by the elements of all inputs that were broadcast to one output element."""
    indices = [_broadcast_source(array.shape, shape, position) for array in arrays]
    elements = tuple((number, index) for number, index in enumerate(indices) if index is not None)
    return Decision(rule, elements, sign) if len(elements) == len(arrays) else OTHER


def _broadcast_source(shape: tuple[int, ...], wide: tuple[int, ...], position: int) -> int | None:
    """Return the flat index in an array that broadcasts to a flat index of a wider array.

    Return None if numpy's broadcasting does not apply.
    """
    try:
        if len(shape) > len(wide) or np.broadcast_shapes(shape, wide) != wide:
            return None
    except ValueError:
        return None
    place = np.unravel_index(position, wide)[len(wide) - len(shape) :]
    inside = tuple(0 if length == 1 else index for index, length in zip(place, shape, strict=True))
    return int(np.ravel_multi_index(inside, shape)) if shape else 0


def _decide_choice(arrays: Sequence[np.ndarray], shape: tuple[int, ...], position: int) -> Decision:
    spread = _decide_broadcast(arrays, shape, position, "choice")
    if spread is OTHER or arrays[0].dtype != bool:
        return OTHER
    condition, then, otherwise = spread.elements
    return Decision(
        "choice", (condition, then if arrays[0].reshape(-1)[condition[1]] else otherwise)
    )


def _decide_reduction(
    every: bool,
    data: np.ndarray,
    axes: Sequence[np.ndarray],
    instruction: Instruction,
    result: np.ndarray,
    position: int,
    *,
    holds: bool,
) -> Decision:
    elements = _reduced_elements(data, axes, instruction, result, position)
    if elements is None:
        return OTHER
    if not elements.size:
        return Decision("empty", ((0, 0),))
    if holds == every:
        return Decision(
            "every" if elements.size > 1 else "passed",
            tuple((0, index) for index in elements.tolist()),
        )
    deciding = elements[data.reshape(-1)[elements] == holds]
    return (
        Decision("some" if elements.size > 1 else "passed", ((0, int(deciding[0])),))
        if deciding.size
        else OTHER
    )


def _reduced_elements(
    data: np.ndarray,
    axes: Sequence[np.ndarray],
    instruction: Instruction,
    result: np.ndarray,
    position: int,
) -> np.ndarray | None:
    """Return the flat indices of the elements that were reduced to one; None if the axes are
    unknown.
    """
    numbers = np.arange(data.size)
    if result.size == 1:
        return numbers
    axis_values = axes[0] if axes else np.asarray(instruction.node.attributes.get("axes") or ())
    if axis_values.dtype.kind not in "iu" or not axis_values.size:
        return None
    reduced = {int(axis) % data.ndim for axis in axis_values.reshape(-1)}
    remaining = [length for axis, length in enumerate(data.shape) if axis not in reduced]
    if int(np.prod(remaining)) != result.size:
        return None
    place = iter(np.unravel_index(position, remaining))
    inside = tuple(slice(None) if axis in reduced else next(place) for axis in range(data.ndim))
    return numbers.reshape(data.shape)[inside].reshape(-1)
