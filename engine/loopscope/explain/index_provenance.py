"""Parts of tensors: which elements of its inputs an operation made some elements of its output
from.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.errors import EngineError, shorten
from loopscope.executor.plan.plan import Instruction, settle
from loopscope.ops.values import is_tensor
from loopscope.timeline.vectorised import is_of_each_element

Range = tuple[int, int]
Index = Sequence[int | slice]
_ONE = re.compile(r"(-?\d{1,18}|(?=:))\s*(?:(:)\s*(-?\d{1,18})?)?")
_MOST_ELEMENTS = 1 << 20
"""Of the tensors that an operation moves; larger ones are taken as a whole."""
_FIRST, _ALL = (0,), None
_MOVED: Mapping[str, tuple[int, ...] | None] = {
    "Concat": _ALL,
    **dict.fromkeys(
        ("Gather", "GatherElements", "GatherND", "Slice", "StridedSlice", "Split", "VariadicSplit"),
        _FIRST,
    ),
    **dict.fromkeys(
        ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Reverse", "ReverseSequence"),
        _FIRST,
    ),
    **dict.fromkeys(("Broadcast", "Expand", "Tile"), _FIRST),
    **dict.fromkeys(
        (
            "ScatterUpdate",
            "ScatterElementsUpdate",
            "ScatterNDUpdate",
            "ScatterElements",
            "ScatterND",
        ),
        (0, 2),
    ),
}
"""Operations that only move elements, and the inputs whose elements they move; what the others
say, they say of all of them.
"""


@dataclass(frozen=True, slots=True)
class TensorPart:
    """A block of a tensor, or some elements of an ONNX sequence."""

    ranges: tuple[Range, ...]
    """Along each axis where it begins, and where it has ended."""
    shape: tuple[int, ...]
    """Of the whole tensor."""

    def __str__(self) -> str:
        """As an index.

        >>> str(Part(((2, 3), (0, 4)), (5, 4))), str(Part(((0, 5), (1, 3)), (5, 4)))
        ('[2]', '[:, 1:3]')
        """
        texts = [_range_text(*one) for one in zip(self.ranges, self.shape, strict=True)]
        while texts and texts[-1] == ":":
            texts.pop()
        return f"[{', '.join(texts)}]"

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the tensor."""
        return all(one == (0, length) for one, length in zip(self.ranges, self.shape, strict=True))

    @property
    def first(self) -> int:
        """The flat index of its first element."""
        return (
            int(np.ravel_multi_index(tuple(begin for begin, _ in self.ranges), self.shape))
            if self.shape
            else 0
        )

    @property
    def place(self) -> tuple[slice, ...]:
        """As numpy takes it."""
        return tuple(slice(begin, end) for begin, end in self.ranges)

    def holds(self, index: Sequence[int]) -> bool:
        """Whether an element lies in it."""
        return all(begin <= one < end for one, (begin, end) in zip(index, self.ranges, strict=True))


def _range_text(one: Range, length: int) -> str:
    begin, end = one
    if one == (0, length):
        return ":"
    return str(begin) if end == begin + 1 else f"{begin}:{end}"


def parse_index(text: str) -> Index:
    """An index from its text; ``EngineError`` when it is none.

    >>> parse_index("2, 0:4"), parse_index("[-1]"), parse_index(":, 3:"), parse_index("")
    ((2, slice(0, 4, None)), (-1,), (slice(None, None, None), slice(3, None, None)), ())
    """
    inside = text.strip().removeprefix("[").removesuffix("]").strip()
    if not inside:
        return ()
    found = [_ONE.fullmatch(one.strip()) for one in inside.split(",")]
    if not all(found):
        raise EngineError(
            f"{shorten(text.strip(), 60)!r} is not a part of a value: expected numbers and ranges, such as 2, 0:4"
        )
    return tuple(_one(match) for match in found if match is not None)


def _one(match: re.Match[str]) -> int | slice:
    begin, colon, end = match.groups()
    return slice(int(begin) if begin else None, int(end) if end else None) if colon else int(begin)


def part_of(value: Any, index: Index) -> TensorPart | None:
    """The part of a value at an index such as ``(2, slice(0, 4))``, None for all of it;
    ``EngineError`` when it has no such part.
    """
    shape = lengths(value)
    if len(index) > len(shape):
        raise EngineError(
            f"an index of {len(index)} numbers into a value of shape {list(shape)}: there are fewer axes"
        )
    ranges = [
        _range(one, axis, length)
        for axis, (one, length) in enumerate(zip(index, shape, strict=False))
    ]
    return block(shape, dict(enumerate(ranges)))


def _range(one: int | slice, axis: int, length: int) -> Range:
    if isinstance(one, slice):
        if one.step not in (None, 1):
            raise EngineError(f"a part goes along axis {axis} in steps of 1, not of {one.step}")
        begin, end, _ = one.indices(length)
        if begin >= end:
            raise EngineError(
                f"no element along axis {axis} of length {length} lies in {begin}:{end}"
            )
        return begin, end
    number = operator.index(one)
    if not -length <= number < length:
        raise EngineError(f"there is no element {number} along axis {axis} of length {length}")
    return number % length, number % length + 1


def element(shape: tuple[int, ...], at: int) -> TensorPart:
    """The part that is one element, by its flat index."""
    return TensorPart(
        tuple((int(one), int(one) + 1) for one in np.unravel_index(at, shape)) if shape else (),
        shape,
    )


def block(shape: tuple[int, ...], ranges: Mapping[int, Range]) -> TensorPart | None:
    """The part with these ranges along some axes; None when it is the whole."""
    part = TensorPart(
        tuple(ranges.get(axis, (0, length)) for axis, length in enumerate(shape)), shape
    )
    return None if part.is_whole else part


def moves(instruction: Instruction) -> bool:
    """Whether an operation moves elements from some of its inputs, and does nothing else to
    them.
    """
    return instruction.node.type in _MOVED and instruction.kernel is not None


def lengths(value: Any) -> tuple[int, ...]:
    """The shape of a tensor; of an ONNX sequence how many elements it has."""
    return (len(value),) if isinstance(value, tuple) else np.shape(value)


def behind(
    instruction: Instruction,
    inputs: Sequence[Any],
    output: Any,
    number: int,
    part: TensorPart | None,
) -> Iterator[tuple[int, TensorPart | None]]:
    """From which inputs, and which parts of them, an operation made a part of its output of some
    number: what it did not take is left out.

    ``inputs`` has None for what is left out.
    """
    known = [value for value in inputs if value is not None]
    if not known or not all(map(is_tensor, (*known, output))):
        yield from ((one, None) for one, value in enumerate(inputs) if value is not None)
        return
    came = moved(instruction, inputs, output, number, part)
    for one, value in enumerate(inputs):
        if value is None:
            continue
        if came is not None and one in came:
            if (taken := came[one]) is not None:
                yield one, None if taken.is_whole else taken
        else:
            yield (
                one,
                _broadcast(np.shape(value), part)
                if part is not None and _is_elementwise(instruction, known, part)
                else None,
            )


def _is_elementwise(instruction: Instruction, inputs: Sequence[Any], part: TensorPart) -> bool:
    if not is_of_each_element(instruction, inputs):
        return False
    try:
        return np.broadcast_shapes(*map(np.shape, inputs)) == part.shape
    except ValueError:
        return False


def _broadcast(shape: tuple[int, ...], part: TensorPart) -> TensorPart | None:
    """What of a tensor of a shape is broadcast to a part."""
    ranges = part.ranges[len(part.ranges) - len(shape) :]
    return block(shape, {axis: one for axis, one in enumerate(ranges) if shape[axis] != 1})


def moved(
    instruction: Instruction,
    inputs: Sequence[Any],
    output: Any,
    number: int,
    part: TensorPart | None,
) -> dict[int, TensorPart | None] | None:
    """What an operation moved to a part, for each input that it moves elements of; None for an
    operation that does something else.

    It is run on numbers in place of the elements: where the numbers come out, the elements do.
    """
    kind = instruction.node.type
    if (
        kind not in _MOVED
        or instruction.kernel is None
        or instruction.node.attributes.get("reduction", "none") != "none"
    ):
        return None
    taken = [
        one
        for one in _MOVED[kind] or range(len(inputs))
        if one < len(inputs) and inputs[one] is not None
    ]
    sizes = [int(np.size(inputs[one])) for one in taken]
    if sum(sizes) + np.size(output) > _MOST_ELEMENTS:
        return None
    starts = np.cumsum([0, *sizes])
    numbered = list(inputs)
    for one, start in zip(taken, starts[:-1], strict=True):
        numbered[one] = settle(
            np.arange(start, start + np.size(inputs[one])).reshape(np.shape(inputs[one]))
        )
    try:
        made = instruction.kernel(*numbered)
        numbers = np.asarray(made[number] if instruction.several else made)
    except (ValueError, TypeError, IndexError):
        return None
    if numbers.shape != np.shape(output) or not np.isin(numbers, np.arange(starts[-1])).all():
        return None
    came = np.unique(numbers[part.place] if part is not None else numbers)
    return {
        one: around(came[(came >= start) & (came < end)] - start, np.shape(inputs[one]))
        for one, start, end in zip(taken, starts[:-1], starts[1:], strict=True)
    }


def around(numbers: np.ndarray, shape: tuple[int, ...]) -> TensorPart | None:
    """The smallest part that holds elements of these flat numbers; None for no elements."""
    if not numbers.size:
        return None
    if not shape:
        return TensorPart((), ())
    return TensorPart(
        tuple((int(one.min()), int(one.max()) + 1) for one in np.unravel_index(numbers, shape)),
        shape,
    )
