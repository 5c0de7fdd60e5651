"""The operands, and the elements of them, that decided whether an operation gives true or false."""

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
"""Number of an input, and the flat index of one of its elements."""

_COMPARISON = re.compile(r"\{0\} (?P<sign>==|!=|<=|>=|<|>) \{1\}")
_SYMBOLS = {"{0} & {1}": "and", "{0} | {1}": "or", "{0} ^ {1}": "xor", "~{0}": "not"}
_OF_BITS = {"BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor", "BitwiseNot": "not"}
_CHOICES = ("Select", "Where")
REDUCTIONS = {
    **dict.fromkeys(("ReduceLogicalAnd", "ReduceMin", "ReduceProd"), True),
    **dict.fromkeys(("ReduceLogicalOr", "ReduceMax", "ReduceSum"), False),
}
"""Reductions of booleans: True where all elements must be true, False where one is enough."""
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
"""Operations that pass on every element of their first input, in the same order."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Why one element of what an operation gave is true or false."""

    rule: Rule
    elements: tuple[Element, ...] = ()
    """The elements that decided: all elements for ``every``; for ``empty`` a placeholder that
    names the input.
    """
    sign: str = ""
    """The sign of a comparison, such as ``<``."""


OTHER = Decision("other")

Logic = Literal["comparison", "and", "or", "xor", "not", "passed"]


def logic(instruction: Instruction) -> Logic | Literal[""]:
    """What an operation does to booleans of one element, whatever its inputs are; empty for
    anything else.
    """
    if _COMPARISON.fullmatch(instruction.symbol):
        return "comparison"
    match _SYMBOLS.get(instruction.symbol) or _OF_BITS.get(instruction.node.type, ""):
        case "and" | "or" | "xor" | "not" as joint:
            return joint
    return "passed" if instruction.node.type in PASSING else ""


def decision(instruction: Instruction, inputs: Sequence[Any], output: Any, at: int) -> Decision:
    """Why element ``at`` (a flat index) of an operation's first output is true or false; unknown
    ``inputs`` are None.
    """
    if not inputs or not all(is_tensor(value) and value is not None for value in (*inputs, output)):
        return OTHER
    arrays = [np.asarray(value) for value in inputs]
    made = np.asarray(output)
    holds = bool(made.reshape(-1)[at])
    comparison = _COMPARISON.fullmatch(instruction.symbol)
    name = instruction.node.type
    if comparison and len(arrays) == 2:
        return _spread(arrays, made.shape, at, "comparison", comparison["sign"])
    joint = _joint(instruction, arrays)
    if joint:
        return _of_booleans(joint, arrays, made.shape, at, holds=holds)
    if name in _CHOICES and len(arrays) == 3:
        return _choice(arrays, made.shape, at)
    if name in REDUCTIONS and arrays[0].dtype == bool:
        return _reduced(REDUCTIONS[name], arrays[0], arrays[1:], instruction, made, at, holds=holds)
    if name in PASSING and arrays[0].size == made.size and bool(arrays[0].reshape(-1)[at]) == holds:
        return Decision("passed", ((0, at),))
    return OTHER


def _joint(instruction: Instruction, arrays: Sequence[np.ndarray]) -> str:
    """``and``, ``or``, ``xor`` or ``not``, also for bitwise operations on booleans; empty for
    other operations.
    """
    if not all(array.dtype == bool for array in arrays):
        return ""
    return _SYMBOLS.get(instruction.symbol) or _OF_BITS.get(instruction.node.type, "")


def _of_booleans(
    joint: str, arrays: Sequence[np.ndarray], shape: tuple[int, ...], at: int, *, holds: bool
) -> Decision:
    if joint == "not":
        return Decision("not", ((0, at),))
    both = _spread(arrays, shape, at, "both")
    if joint == "xor" or holds == (joint == "and"):
        return both
    deciding = tuple(
        one for one in both.elements if bool(arrays[one[0]].reshape(-1)[one[1]]) == holds
    )
    return Decision("one", deciding[:1]) if deciding else OTHER


def _spread(
    arrays: Sequence[np.ndarray], shape: tuple[int, ...], at: int, rule: Rule, sign: str = ""
) -> Decision:
    """The elements of all inputs that were broadcast to one element of the output."""
    found = [_broadcast(array.shape, shape, at) for array in arrays]
    return (
        Decision(
            rule, tuple((number, one) for number, one in enumerate(found) if one is not None), sign
        )
        if None not in found
        else OTHER
    )


def _broadcast(shape: tuple[int, ...], wide: tuple[int, ...], at: int) -> int | None:
    """The flat index in an array that broadcasts to a flat index of a wider one; None where
    numpy's broadcasting does not apply.
    """
    try:
        if len(shape) > len(wide) or np.broadcast_shapes(shape, wide) != wide:
            return None
    except ValueError:
        return None
    place = np.unravel_index(at, wide)[len(wide) - len(shape) :]
    inside = tuple(0 if length == 1 else index for index, length in zip(place, shape, strict=True))
    return int(np.ravel_multi_index(inside, shape)) if shape else 0


def _choice(arrays: Sequence[np.ndarray], shape: tuple[int, ...], at: int) -> Decision:
    spread = _spread(arrays, shape, at, "choice")
    if spread is OTHER or arrays[0].dtype != bool:
        return OTHER
    condition, then, otherwise = spread.elements
    return Decision(
        "choice", (condition, then if arrays[0].reshape(-1)[condition[1]] else otherwise)
    )


def _reduced(
    every: bool,
    data: np.ndarray,
    axes: Sequence[np.ndarray],
    instruction: Instruction,
    made: np.ndarray,
    at: int,
    *,
    holds: bool,
) -> Decision:
    found = _group(data, axes, instruction, made, at)
    if found is None:
        return OTHER
    if not found.size:
        return Decision("empty", ((0, 0),))
    if holds == every:
        return Decision(
            "every" if found.size > 1 else "passed", tuple((0, one) for one in found.tolist())
        )
    deciding = found[data.reshape(-1)[found] == holds]
    return (
        Decision("some" if found.size > 1 else "passed", ((0, int(deciding[0])),))
        if deciding.size
        else OTHER
    )


def _group(
    data: np.ndarray,
    axes: Sequence[np.ndarray],
    instruction: Instruction,
    made: np.ndarray,
    at: int,
) -> np.ndarray | None:
    """The flat indices of the elements that were reduced to one; None where the axes are
    unknown.
    """
    numbers = np.arange(data.size)
    if made.size == 1:
        return numbers
    given = axes[0] if axes else np.asarray(instruction.node.attributes.get("axes") or ())
    if given.dtype.kind not in "iu" or not given.size:
        return None
    reduced = {int(axis) % data.ndim for axis in given.reshape(-1)}
    kept = [length for axis, length in enumerate(data.shape) if axis not in reduced]
    if int(np.prod(kept)) != made.size:
        return None
    place = iter(np.unravel_index(at, kept))
    inside = tuple(slice(None) if axis in reduced else next(place) for axis in range(data.ndim))
    return numbers.reshape(data.shape)[inside].reshape(-1)
