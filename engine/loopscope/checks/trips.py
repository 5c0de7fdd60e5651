"""Ranges of trip counts that are known before a run (Loop-5, TensorIterator-1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loopscope.checks.known import scalar_value
from loopscope.ir.model import Body, InputMap, OutputMap
from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, length_within, static
from loopscope.ops.declare import Known


def of_loop(trip_count: Known, condition: Known, body_condition: Known | None) -> Dimension:
    """Return the trip count of a Loop from its trip count input, condition input and condition
    Result.
    """
    limit, starts = _limit(trip_count), scalar_value(condition)
    if limit.most == 0 or (starts is not None and not starts):
        return static(0)
    continues = None if body_condition is None else scalar_value(body_condition)
    if starts and continues:
        return limit
    once = min(limit.least, 1) if starts else 0
    return Dimension(once, 1 if continues is not None and not continues else limit.most)


def _limit(trip_count: Known) -> Dimension:
    """Return the iterations that a trip count allows.

    A negative trip count means any number; the lower bound is 1, for a loop that is known to start.
    """
    elements = trip_count.elements
    if (
        elements is None
        or elements.least.size != 1
        or trip_count.element_type is None
        or not trip_count.element_type.is_integer
    ):
        return UNKNOWN
    ((lower, upper),) = elements.intervals
    return Dimension(1) if upper < 0 else length_within((lower, upper))


def of_tensor_iterator(body: Body, outer: Sequence[Known]) -> Dimension:
    """Return the trip count of a TensorIterator: the number of slices of its inputs.

    Without sliced inputs, concatenated outputs with fixed bounds determine it, or it is 1.
    """
    sliced = [
        entry
        for entry in body.inputs
        if entry.axis is not None and 0 <= entry.external < len(outer)
    ]
    if sliced:
        return _common_count(
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
    """Return the number of slices of a Loop's sliced inputs, or UNKNOWN without sliced inputs.

    The shortest input decides, because the Loop ends when one input has no further slice.
    """
    counts = [
        _whole_parts(axis_length(outer[entry.external].shape, entry.axis or 0), entry.part_size)
        for entry in body.inputs
        if entry.axis is not None and 0 <= entry.external < len(outer)
    ]
    if not counts:
        return UNKNOWN
    bounds = [count.most for count in counts if count.most is not None]
    return Dimension(min(count.least for count in counts), min(bounds, default=None))


def until_slices_run_out(count: Dimension, parts: Dimension) -> Dimension:
    """Limit a Loop's trip count to the number of slices of its sliced inputs.

    >>> str(until_slices_run_out(static(5), static(4)))
    '4'
    >>> str(until_slices_run_out(Dimension(1), static(4)))
    '1..4'
    """
    if parts.most is None:
        return count
    upper = parts.most if count.most is None else min(count.most, parts.most)
    return Dimension(min(count.least, upper), upper)


def words(count: Dimension) -> str:
    """Return a range of trip counts as words for a sentence.

    >>> words(static(1))
    '1 iteration'
    >>> words(Dimension(0, 3)), words(Dimension(2, 3000))
    ('at most 3 iterations', '2 to 3,000 iterations')
    >>> words(Dimension(1)), words(Dimension())
    ('at least 1 iteration', 'any number of iterations')
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
    """Return the length along an axis, or UNKNOWN if the axis is out of range."""
    if shape.dimensions is None or not -len(shape.dimensions) <= axis < len(shape.dimensions):
        return UNKNOWN
    return shape.dimensions[axis]


def parts(entry: InputMap | OutputMap, length: Dimension) -> Dimension:
    """Return the number of slices: (|end' - start'| + 1) / part_size.

    The axis length is added to negative bounds, and both bounds are inclusive.

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
    return _whole_parts(length, entry.part_size) if {entry.start, entry.end} == {0, -1} else UNKNOWN


def _whole_parts(length: Dimension, part_size: int) -> Dimension:
    if part_size <= 0:
        return UNKNOWN
    return Dimension(
        length.least // part_size, None if length.most is None else length.most // part_size
    )


def _common_count(counts: Iterable[Dimension]) -> Dimension:
    """Return the count that all sliced inputs agree on, or UNKNOWN if they are contradictory."""
    agreed = UNKNOWN
    for count in counts:
        both = agreed.intersect(count)
        if both is None:
            return UNKNOWN
        agreed = both
    return agreed
