"""Meaning of a region: what its graphs receive, what is carried, when a loop ends and what it
returns.

These are the rules of Loop-5, TensorIterator-1 and If-8. ``values`` are the slot values of a run,
which the functions read and write. ``emit_loop.py`` generates code with the same meaning; tests on
random models compare both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from loopscope.executor.plan.body_ports import CarriedValue, Concatenated, LastValue, Sliced
from loopscope.executor.plan.plan import Branch, CallRegion, IfRegion, LoopRegion, Program
from loopscope.executor.plan.slots import Slot, settle
from loopscope.executor.plan.uncomputed_values import Defaults
from loopscope.executor.record.recording import LoopEnding
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LOOP, SEQUENCE_MAP, TENSOR_ITERATOR
from loopscope.ir.shape import PartialShape, is_of_an_array
from loopscope.ops.casting import cast
from loopscope.ops.kernel_checks import check_whole

UNLIMITED = -1


def bind_entry(region: LoopRegion, values: list[Any], defaults: Defaults) -> None:
    """Bind the Parameters of a loop at entry: the invariant values and the first carried values."""
    bind_invariants(region, values, defaults)
    for carried in region.carried:
        if carried.initial is None:
            values[carried.parameter] = defaults.parameter(region.program.address, carried.layer)
        else:
            values[carried.parameter] = entering(region, carried.parameter, values[carried.initial])


def bind_invariants(region: LoopRegion, values: list[Any], defaults: Defaults) -> None:
    """Bind the Parameters that have one value in all iterations."""
    for invariant in region.invariants:
        values[invariant.parameter] = entering(
            region, invariant.parameter, values[invariant.source]
        )
    for unfed in region.unfed:
        values[unfed.parameter] = defaults.parameter(region.program.address, unfed.layer)


def bind_iteration(region: LoopRegion, iteration: int, values: list[Any]) -> None:
    """Bind the slices and the iteration number at the beginning of an iteration. Carried values are
    already bound.
    """
    for sliced in region.sliced:
        values[sliced.parameter] = part(region, sliced, values[sliced.source], iteration)
    for counter in region.counters:
        values[counter.parameter] = counter.number(iteration)


def carry(region: LoopRegion, values: list[Any]) -> None:
    """Apply all back edges at once between two iterations."""
    results = [values[carried.result] for carried in region.carried]
    for carried, value in zip(region.carried, results, strict=True):
        values[carried.parameter] = value


def bind_branch(branch: Branch, values: list[Any], defaults: Defaults) -> None:
    """Bind the Parameters of a branch or function at entry."""
    for parameter, outer in branch.bindings:
        values[parameter] = values[outer]
    for unfed in branch.unfed:
        values[unfed.parameter] = defaults.parameter(branch.program.address, unfed.layer)


def leave_branch(region: IfRegion | CallRegion, branch: Branch, values: list[Any]) -> None:
    """Copy the results of a branch or function to the outputs of its node."""
    for slot, result in zip(region.outputs, branch.results, strict=False):
        values[slot] = values[result]


def first_bound(region: LoopRegion, values: list[Any]) -> tuple[int, LoopEnding]:
    """Return the maximum iteration count of a loop at entry (``UNLIMITED`` for no limit), and the
    ending at that count.
    """
    trips = None if region.trip_count is None else values[region.trip_count]
    bound, ending = iteration_bound(
        region, trips, [values[sliced.source] for sliced in region.sliced]
    )
    if bound != 0 and region.condition is not None and not is_true(values[region.condition]):
        return 0, "initial_condition"
    return bound, ending


def goes_on(region: LoopRegion, values: list[Any]) -> bool:
    """Return True if the condition at the end of an iteration requests another iteration."""
    return region.condition_result is None or is_true(values[region.condition_result])


def concatenated(region: LoopRegion) -> list[Concatenated]:
    """Return the outputs that join a value of each iteration."""
    return [output for output in region.outputs if isinstance(output, Concatenated)]


def outputs(region: LoopRegion, values: list[Any], collected: Sequence[list[Any]]) -> list[Any]:
    """Return the outputs of a loop after its last iteration. ``collected`` has the pieces of each
    concatenated output.
    """
    pieces = iter(collected)
    return [
        join(output, next(pieces)) if isinstance(output, Concatenated) else values[output.result]
        for output in region.outputs
    ]


def outputs_of_none(region: LoopRegion, values: list[Any], defaults: Defaults) -> list[Any]:
    """Return the outputs of a loop whose body never ran."""
    return [_output_of_none(region, output, values, defaults) for output in region.outputs]


def _output_of_none(
    region: LoopRegion, output: LastValue | Concatenated, values: list[Any], defaults: Defaults
) -> Any:
    address = region.program.address
    if isinstance(output, Concatenated):
        element_type, shape = defaults.known_result(address, output.layer)
        return empty_join(output, shape, (element_type or ElementType.F32).dtype)
    if output.initial is not None:
        return values[output.initial]
    carried = (
        region.binding.get(output.carried_without_initial)
        if output.carried_without_initial is not None
        else None
    )
    return (
        defaults.parameter(address, carried.layer)
        if isinstance(carried, CarriedValue)
        else defaults.result(address, output.layer)
    )


def loops_in(program: Program) -> Iterator[LoopRegion]:
    """Yield the loops in a graph and in its inner graphs."""
    waiting = [program]
    while waiting:
        graph = waiting.pop()
        for number in graph.regions:
            region = graph.instructions[number].region
            if isinstance(region, LoopRegion):
                yield region
            waiting += region.programs if region else ()


def holds_loops(program: Program) -> bool:
    """Return True if a graph or its inner graphs contain loops."""
    return any(True for _ in loops_in(program))


def trip_count(value: Any, *, negative_is_no_limit: bool = True) -> int:
    """Return the trip count of a Loop from a scalar or one element.

    A negative number means no limit in OpenVINO and no iteration in ONNX.
    """
    if not isinstance(value, (np.ndarray, np.generic)):
        kind = "left out" if value is None else "not a tensor"
        raise ValueError(f"the trip count is {kind}, expected one element")
    if np.size(value) != 1:
        raise ValueError(f"the trip count has shape {list(np.shape(value))}, expected one element")
    count = int(value.item())
    return count if count >= 0 else UNLIMITED if negative_is_no_limit else 0


def is_true(value: Any) -> bool:
    """Return the value of a condition, a scalar or one element. A nonzero number counts as true."""
    if not isinstance(value, (np.ndarray, np.generic)):
        kind = "left out" if value is None else "not a tensor"
        raise ValueError(f"the condition is {kind}, expected one element")
    if np.size(value) != 1:
        raise ValueError(f"the condition has shape {list(np.shape(value))}, expected one element")
    return bool(value.item())


def then_is_taken(region: IfRegion, value: Any) -> bool:
    """Return True if an If runs its then branch.

    In IR, as in OpenVINO, the first element of a list decides; ONNX rejects a list.
    """
    return is_true(
        value[0] if region.first_decides and np.ndim(value) == 1 and np.size(value) > 1 else value
    )


def parts(region: LoopRegion, sliced: Sliced, source: Any) -> int:
    """Return the number of parts of a sliced input. A TensorIterator slices from ``start`` to
    ``end``, both included.
    """
    if isinstance(source, tuple):
        return len(source)
    length = _length(source, sliced.axis)
    if region.kind != TENSOR_ITERATOR:
        return length // sliced.part_size
    start, end = (bound + length if bound < 0 else bound for bound in (sliced.start, sliced.end))
    if length == 0:
        return 0
    if not (0 <= start < length and 0 <= end < length):
        raise ValueError(
            f"a slice from {sliced.start} to {sliced.end} lies outside axis {sliced.axis} "
            f"of length {length}"
        )
    if (end < start) != (sliced.stride < 0) and end != start:
        raise ValueError(
            f"a slice from {sliced.start} to {sliced.end} does not go the way of its stride "
            f"{sliced.stride}"
        )
    return (abs(end - start) + 1) // sliced.part_size


def part(region: LoopRegion, sliced: Sliced, source: Any, iteration: int) -> Any:
    """Return part ``iteration`` of a sliced input, as a view.

    The part of a sequence is its element. A SequenceMap passes a tensor whole into every call.
    """
    if isinstance(source, tuple):
        return source[iteration]
    if region.kind == SEQUENCE_MAP:
        return source
    axis = sliced.axis + source.ndim if sliced.axis < 0 else sliced.axis
    begin, size = part_begin(region, sliced, source.shape[axis], iteration), sliced.part_size
    if not sliced.whole_parts:
        return settle(source[(slice(None),) * axis + (begin,)])
    return entering(
        region, sliced.parameter, source[(slice(None),) * axis + (slice(begin, begin + size),)]
    )


def part_begin(region: LoopRegion, sliced: Sliced, length: int, iteration: Any) -> Any:
    """Return the begin of part ``iteration`` along an axis of some length. ``iteration`` may be an
    array.
    """
    size = sliced.part_size
    if region.kind != TENSOR_ITERATOR:
        return iteration * size if sliced.stride > 0 else length - (iteration + 1) * size
    first = sliced.start + length if sliced.start < 0 else sliced.start
    return first + iteration * size if sliced.stride > 0 else first - (iteration + 1) * size + 1


def entering(region: LoopRegion, parameter: Slot, value: Any) -> Any:
    """Return the value that a Parameter receives from outside.

    A TensorIterator converts it to the element type that the Parameter declares, as OpenVINO does.
    """
    declared = region.declared.get(parameter)
    if declared is None or value.dtype == declared.dtype:
        return value
    return settle(cast(value, declared))


def iteration_bound(
    region: LoopRegion, trip_value: Any, sources: Sequence[Any]
) -> tuple[int, LoopEnding]:
    """Return the maximum iteration count of a loop (``UNLIMITED`` for no limit), and the ending at
    that count.

    ``trip_value`` is the value of the trip count (None without one). ``sources`` are the tensors of
    its sliced inputs.
    """
    counts = [
        parts(region, sliced, source)
        for sliced, source in zip(region.sliced, sources, strict=True)
        if region.kind != SEQUENCE_MAP or isinstance(source, tuple)
    ]
    if region.kind == LOOP:
        trips = (
            UNLIMITED
            if trip_value is None
            else trip_count(trip_value, negative_is_no_limit=region.negative_is_no_limit)
        )
        if trips == 0:
            return 0, "zero_trip_count"
        fewest = min(counts, default=UNLIMITED)
        if fewest != UNLIMITED and (trips == UNLIMITED or trips > fewest):
            return fewest, "slices_exhausted"
        return trips, "trip_count"
    if counts:
        if len(set(counts)) > 1:
            parts_text = ", ".join(str(count) for count in counts)
            raise ValueError(f"the sliced inputs have {parts_text} parts: they must agree")
        return counts[0], "slices_exhausted"
    return _count_of_outputs(region), "trip_count"


def _count_of_outputs(region: LoopRegion) -> int:
    """Return the iteration count of a TensorIterator without slices: from a concatenated output
    with fixed start and end, else 1.
    """
    for output in region.outputs:
        if isinstance(output, Concatenated) and output.start >= 0 and output.end >= 0:
            return (abs(output.end - output.start) + 1) // output.part_size
    return 1


def join(output: Concatenated, collected: list[Any]) -> Any:
    """Return the value of a concatenated output after at least one iteration. Scalars join to rank
    1.
    """
    if output.into_sequence:
        return tuple(collected)
    pieces = collected[::-1] if output.reverse else collected
    if output.stacked:
        check_whole(len(pieces) * int(np.size(pieces[0])), "the stacked output")
        return np.stack([np.asarray(piece) for piece in pieces], axis=output.axis)
    first = pieces[0]
    if np.ndim(first) == 0:
        if isinstance(first, np.ndarray):
            return np.stack(pieces)
        return np.array(pieces, first.dtype)
    check_whole(sum(piece.size for piece in pieces), "the concatenated output")
    return np.concatenate(pieces, axis=output.axis)


def empty_join(output: Concatenated, shape: PartialShape, dtype: np.dtype) -> Any:
    """Return the value of a concatenated output of zero iterations: length 0 along its axis and in
    every dynamic dimension.
    """
    if output.into_sequence:
        return ()
    if shape.dimensions is None:
        return np.zeros((0,), dtype)
    lengths = list(shape.lengths_or_zeros())
    if output.stacked:
        lengths.insert(output.axis if output.axis >= 0 else output.axis + len(lengths) + 1, 0)
    elif not lengths:
        lengths = [0]
    else:
        lengths[output.axis] = 0
    if not is_of_an_array(lengths):
        raise ValueError(
            f"the joined output of no iterations would have the shape {lengths}, "
            "which no array can have"
        )
    return np.zeros(lengths, dtype)


def _length(source: Any, axis: int) -> int:
    shape = np.shape(source)
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"a tensor of shape {list(shape)} cannot be sliced along axis {axis}")
    return int(shape[axis])
