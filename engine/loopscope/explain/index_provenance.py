"""Index provenance: the input elements from which an operation computed elements of its output."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.errors import EngineError, shorten
from loopscope.executor.plan.plan import Instruction
from loopscope.executor.plan.slots import settle
from loopscope.ops.values import is_tensor
from loopscope.timeline.vectorised import is_of_each_element

Range = tuple[int, int]
Index = Sequence[int | slice]
_INDEX_PATTERN = re.compile(r"(-?\d{1,18}|(?=:))\s*(?:(:)\s*(-?\d{1,18})?)?")
_MAX_ELEMENTS = 1 << 20
"""Maximum elements of the tensors that an operation moves; larger tensors are treated as a
whole.
"""
_FIRST_INPUT, _ALL_INPUTS = (0,), None
_MOVED_INPUTS: Mapping[str, tuple[int, ...] | None] = {
    "Concat": _ALL_INPUTS,
    **dict.fromkeys(
        ("Gather", "GatherElements", "GatherND", "Slice", "StridedSlice", "Split", "VariadicSplit"),
        _FIRST_INPUT,
    ),
    **dict.fromkeys(
        ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Reverse", "ReverseSequence"),
        _FIRST_INPUT,
    ),
    **dict.fromkeys(("Broadcast", "Expand", "Tile"), _FIRST_INPUT),
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
"""Operations that only move elements, with the inputs whose elements they move.

The remaining inputs (indices, axes, shapes) affect every output element.
"""


@dataclass(frozen=True, slots=True)
class TensorPart:
    """A block of a tensor, or a range of elements of an ONNX sequence."""

    ranges: tuple[Range, ...]
    """Begin and end (exclusive) along each axis."""
    shape: tuple[int, ...]
    """Shape of the whole tensor."""

    def __str__(self) -> str:
        """Return the part as an index expression.

        >>> str(TensorPart(((2, 3), (0, 4)), (5, 4))), str(TensorPart(((0, 5), (1, 3)), (5, 4)))
        ('[2]', '[:, 1:3]')
        """
        texts = [_range_text(*bounds) for bounds in zip(self.ranges, self.shape, strict=True)]
        while texts and texts[-1] == ":":
            texts.pop()
        return f"[{', '.join(texts)}]"

    @property
    def is_whole(self) -> bool:
        """True if the part covers the whole tensor."""
        return all(
            bounds == (0, length) for bounds, length in zip(self.ranges, self.shape, strict=True)
        )

    @property
    def first(self) -> int:
        """Flat index of the first element."""
        return (
            int(np.ravel_multi_index(tuple(begin for begin, _ in self.ranges), self.shape))
            if self.shape
            else 0
        )

    @property
    def slices(self) -> tuple[slice, ...]:
        """Slices for indexing a numpy array."""
        return tuple(slice(begin, end) for begin, end in self.ranges)

    def contains(self, index: Sequence[int]) -> bool:
        """Return True if an element is in the part."""
        return all(
            begin <= coordinate < end
            for coordinate, (begin, end) in zip(index, self.ranges, strict=True)
        )


def _range_text(bounds: Range, length: int) -> str:
    begin, end = bounds
    if bounds == (0, length):
        return ":"
    return str(begin) if end == begin + 1 else f"{begin}:{end}"


def parse_index(text: str) -> Index:
    """Return the index that a text describes; raise ``EngineError`` if the text is not an index.

    >>> parse_index("2, 0:4"), parse_index("[-1]"), parse_index(":, 3:"), parse_index("")
    ((2, slice(0, 4, None)), (-1,), (slice(None, None, None), slice(3, None, None)), ())
    """
    inside = text.strip().removeprefix("[").removesuffix("]").strip()
    if not inside:
        return ()
    matches = [_INDEX_PATTERN.fullmatch(item.strip()) for item in inside.split(",")]
    if not all(matches):
        raise EngineError(
            f"{shorten(text.strip(), 60)!r} is not a part of a value: "
            f"expected numbers and ranges, such as 2, 0:4"
        )
    return tuple(_parse_match(match) for match in matches if match is not None)


def _parse_match(match: re.Match[str]) -> int | slice:
    begin, colon, end = match.groups()
    return slice(int(begin) if begin else None, int(end) if end else None) if colon else int(begin)


def part_of(value: Any, index: Index) -> TensorPart | None:
    """Return the part of a value at an index such as ``(2, slice(0, 4))``; None for the whole
    value.

    Raise ``EngineError`` if the value does not have the part.
    """
    shape = lengths(value)
    if len(index) > len(shape):
        raise EngineError(
            f"an index of {len(index)} numbers into a value of shape {list(shape)}: "
            f"there are fewer axes"
        )
    ranges = [
        _resolve_range(item, axis, length)
        for axis, (item, length) in enumerate(zip(index, shape, strict=False))
    ]
    return block(shape, dict(enumerate(ranges)))


def _resolve_range(item: int | slice, axis: int, length: int) -> Range:
    if isinstance(item, slice):
        if item.step not in (None, 1):
            raise EngineError(f"a part along axis {axis}: expected steps of 1, got {item.step}")
        begin, end, _ = item.indices(length)
        if begin >= end:
            raise EngineError(
                f"no element along axis {axis} of length {length} lies in {begin}:{end}"
            )
        return begin, end
    number = operator.index(item)
    if not -length <= number < length:
        raise EngineError(f"there is no element {number} along axis {axis} of length {length}")
    return number % length, number % length + 1


def element(shape: tuple[int, ...], position: int) -> TensorPart:
    """Return the part that consists of the element with a flat index."""
    return TensorPart(
        tuple(
            (int(coordinate), int(coordinate) + 1)
            for coordinate in np.unravel_index(position, shape)
        )
        if shape
        else (),
        shape,
    )


def block(shape: tuple[int, ...], ranges: Mapping[int, Range]) -> TensorPart | None:
    """Return the part with the given ranges along some axes; None if it is the whole."""
    part = TensorPart(
        tuple(ranges.get(axis, (0, length)) for axis, length in enumerate(shape)), shape
    )
    return None if part.is_whole else part


def moves(instruction: Instruction) -> bool:
    """Return True if an operation only moves elements of some of its inputs."""
    return instruction.node.type in _MOVED_INPUTS and instruction.kernel is not None


def lengths(value: Any) -> tuple[int, ...]:
    """Return the shape of a tensor, or the length of an ONNX sequence."""
    return (len(value),) if isinstance(value, tuple) else np.shape(value)


def source_elements(
    instruction: Instruction,
    inputs: Sequence[Any],
    output: Any,
    number: int,
    part: TensorPart | None,
) -> Iterator[tuple[int, TensorPart | None]]:
    """Yield each input with the part of it that contributes to a part of one output.

    Inputs without contributing elements are skipped. Omitted inputs are None in ``inputs``.
    """
    known = [value for value in inputs if value is not None]
    if not known or not all(map(is_tensor, (*known, output))):
        yield from ((index, None) for index, value in enumerate(inputs) if value is not None)
        return
    origins = moved_elements(instruction, inputs, output, number, part)
    for index, value in enumerate(inputs):
        if value is None:
            continue
        if origins is not None and index in origins:
            if (origin := origins[index]) is not None:
                yield index, None if origin.is_whole else origin
        else:
            yield (
                index,
                _broadcast_part(np.shape(value), part)
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


def _broadcast_part(shape: tuple[int, ...], part: TensorPart) -> TensorPart | None:
    """Return the part of a tensor with the given shape that is broadcast to a part."""
    ranges = part.ranges[len(part.ranges) - len(shape) :]
    return block(shape, {axis: bounds for axis, bounds in enumerate(ranges) if shape[axis] != 1})


def moved_elements(
    instruction: Instruction,
    inputs: Sequence[Any],
    output: Any,
    number: int,
    part: TensorPart | None,
) -> dict[int, TensorPart | None] | None:
    """Return the part of each moved input that an operation moved to a part of its output.

    Return None if the operation does not only move elements. The kernel runs on element numbers
    instead of elements; the numbers in its output identify the elements.
    """
    kind = instruction.node.type
    if (
        kind not in _MOVED_INPUTS
        or instruction.kernel is None
        or instruction.node.attributes.get("reduction", "none") != "none"
    ):
        return None
    moved_inputs = [
        index
        for index in _MOVED_INPUTS[kind] or range(len(inputs))
        if index < len(inputs) and inputs[index] is not None
    ]
    sizes = [int(np.size(inputs[index])) for index in moved_inputs]
    if sum(sizes) + np.size(output) > _MAX_ELEMENTS:
        return None
    starts = np.cumsum([0, *sizes])
    numbered = list(inputs)
    for index, start in zip(moved_inputs, starts[:-1], strict=True):
        numbered[index] = settle(
            np.arange(start, start + np.size(inputs[index])).reshape(np.shape(inputs[index]))
        )
    try:
        result = instruction.kernel(*numbered)
        numbers = np.asarray(result[number] if instruction.several else result)
    except (ValueError, TypeError, IndexError):
        return None
    if numbers.shape != np.shape(output) or not np.isin(numbers, np.arange(starts[-1])).all():
        return None
    origins = np.unique(numbers[part.slices] if part is not None else numbers)
    return {
        index: enclosing_part(
            origins[(origins >= start) & (origins < end)] - start, np.shape(inputs[index])
        )
        for index, start, end in zip(moved_inputs, starts[:-1], starts[1:], strict=True)
    }


def enclosing_part(numbers: np.ndarray, shape: tuple[int, ...]) -> TensorPart | None:
    """Return the smallest part that contains the elements with these flat indices; None without
    elements.
    """
    if not numbers.size:
        return None
    if not shape:
        return TensorPart((), ())
    return TensorPart(
        tuple(
            (int(coordinates.min()), int(coordinates.max()) + 1)
            for coordinates in np.unravel_index(numbers, shape)
        ),
        shape,
    )
