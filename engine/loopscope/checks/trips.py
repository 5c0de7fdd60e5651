"""How many times a body can run, as far as it is known before anything runs (Loop-5,
TensorIterator-1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loopscope.checks.known import scalar_value
from loopscope.ir.model import Body, InputMap, OutputMap
from loopscope.ir.partial_value import length_within
from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Known


def of_loop(trip_count: Known, condition: Known, body_condition: Known | None) -> Dimension:
    """The iterations of a Loop with these first two inputs and this condition Result."""
    limit, starts = _limit(trip_count), scalar_value(condition)
    if limit.most == 0 or (starts is not None and not starts):
        return static(0)
    again = None if body_condition is None else scalar_value(body_condition)
    if starts and again:
        return limit
    once = min(limit.least, 1) if starts else 0
    return Dimension(once, 1 if again is not None and not again else limit.most)


def _limit(trip_count: Known) -> Dimension:
    """The iterations that a trip count allows: negative ones any number; what is known to start
    runs once then.
    """
    elements = trip_count.elements
    if (
        elements is None
        or elements.least.size != 1
        or trip_count.element_type is None
        or not trip_count.element_type.is_integer
    ):
        return UNKNOWN
    ((least, most),) = elements.intervals
    return Dimension(1) if most < 0 else length_within((least, most))


def of_tensor_iterator(body: Body, outer: Sequence[Known]) -> Dimension:
    """The parts of the sliced inputs; without any, what the concatenated outputs fix, or 1."""
    sliced = [
        entry
        for entry in body.inputs
        if entry.axis is not None and 0 <= entry.external < len(outer)
    ]
    if sliced:
        return _agreed(
            parts(entry, axis_length(outer[entry.external].shape, entry.axis or 0))
            for entry in sliced
        )
    fixed = [
        parts(entry, UNKNOWN)
        for entry in body.outputs
        if entry.axis is not None and entry.external != -1
    ]
    return next((count for count in fixed if count.is_static), static(1))


def of_slices(body: Body, outer: Sequence[Known]) -> Dimension:
    """How many parts a Loop's sliced inputs have: all of them; unknown without any."""
    sliced = [
        entry
        for entry in body.inputs
        if entry.axis is not None and 0 <= entry.external < len(outer)
    ]
    return _agreed(
        _whole(axis_length(outer[entry.external].shape, entry.axis or 0), entry.part_size)
        for entry in sliced
    )


def until_slices_run_out(count: Dimension, parts: Dimension) -> Dimension:
    """A Loop ends when its sliced inputs run out, whatever the trip count asks for.

    >>> str(until_slices_run_out(static(5), static(4))), str(until_slices_run_out(Dimension(1), static(4)))
    ('4', '1..4')
    """
    if parts.most is None:
        return count
    most = parts.most if count.most is None else min(count.most, parts.most)
    return Dimension(min(count.least, most), most)


def words(count: Dimension) -> str:
    """A number of iterations in a sentence.

    >>> words(static(1)), words(Dimension(0, 3)), words(Dimension(2, 3000)), words(Dimension(1)), words(Dimension())
    ('1 iteration', 'at most 3 iterations', '2 to 3,000 iterations', 'at least 1 iteration', 'any
    number of iterations')
    """
    if count.is_static:
        return _iterations(f"{count.least:,}", count.least)
    if count.most is None:
        return (
            _iterations(f"at least {count.least:,}", count.least)
            if count.least
            else "any number of iterations"
        )
    return _iterations(
        f"{count.least:,} to {count.most:,}" if count.least else f"at most {count.most:,}",
        count.most,
    )


def _iterations(number: str, plural_of: int) -> str:
    return f"{number} iteration{'' if plural_of == 1 else 's'}"


def axis_length(shape: PartialShape, axis: int) -> Dimension:
    """The length along an axis, unknown when the axis is out of range."""
    if shape.dimensions is None or not -len(shape.dimensions) <= axis < len(shape.dimensions):
        return UNKNOWN
    return shape.dimensions[axis]


def parts(entry: InputMap | OutputMap, length: Dimension) -> Dimension:
    """(|end' - start'| + 1) / part_size, where negative numbers have the axis length added and both
    ends are included.

    >>> str(parts(InputMap(0, 0, axis=0, start=0, end=-2), static(5)))
    '4'
    """
    if entry.part_size <= 0:
        return UNKNOWN
    if (entry.start < 0) == (entry.end < 0):
        return static((abs(entry.end - entry.start) + 1) // entry.part_size)
    if length.is_static:
        start, end = (
            place + length.length if place < 0 else place for place in (entry.start, entry.end)
        )
        return static((abs(end - start) + 1) // entry.part_size)
    return _whole(length, entry.part_size) if {entry.start, entry.end} == {0, -1} else UNKNOWN


def _whole(length: Dimension, part_size: int) -> Dimension:
    if part_size <= 0:
        return UNKNOWN
    return Dimension(
        length.least // part_size, None if length.most is None else length.most // part_size
    )


def _agreed(counts: Iterable[Dimension]) -> Dimension:
    """Sliced inputs have equally many parts; where they contradict each other nothing is known."""
    agreed = UNKNOWN
    for count in counts:
        both = agreed.intersect(count)
        if both is None:
            return UNKNOWN
        agreed = both
    return agreed
