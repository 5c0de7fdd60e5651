"""CumSum and CTC's greedy decoders as loops."""

from __future__ import annotations

import numpy as np

from loopscope.builder import ops
from loopscope.builder.loop import Entered, Iteration, Parts, build_loop
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.element_type import ElementType
from loopscope.transform.recurrences.opening import (
    Length,
    Opening,
    converted,
    length,
    sized,
    variable,
    widened,
    zeros,
)


def cumulative_sum(opening: Opening) -> tuple[Tensor, ...]:
    """Build CumSum as a loop with the state ``sum``."""
    data, axis = opening.required("input"), _axis(opening)
    exclusive = bool(opening.attribute("exclusive", False))
    reverse = bool(opening.attribute("reverse", False))
    wide = widened(data)
    ordered = _backwards(wide, axis) if reverse else wide
    lengths: list[Length] = [(wide, index) for index in range(wide.rank or 0)]
    lengths[axis] = 1
    start = zeros(opening.graph, lengths, wide.element_type)

    def trace(entered: Entered) -> Iteration:
        (total,), (element,) = entered.variables, entered.parts
        following = ops.add(total, element, name="next_sum")
        output = total if exclusive else following
        return Iteration([following], [converted(output, data.element_type)])

    plan = opening.plan(
        length(ordered, axis), [variable("sum", start)], [Parts("element", ordered, axis)], axis
    )
    _, (outputs,) = build_loop(opening.graph, plan, trace)
    outputs = sized(outputs, [(wide, index) for index in range(wide.rank or 0)])
    return (_backwards(outputs, axis) if reverse else outputs,)


def _axis(opening: Opening) -> int:
    """Return the axis of a CumSum; raise ``BuildError`` if it is only known at run time."""
    data = opening.required("input")
    axis_input = opening.inputs.get("axis")
    value = np.zeros(1, np.int64) if axis_input is None else axis_input.known.value
    if value is None or value.size != 1 or not data.rank:
        raise BuildError("the axis or the rank of the data is only known at run time")
    axis = int(value.reshape(-1)[0])
    if not -data.rank <= axis < data.rank:
        raise BuildError(f"the axis is {axis}, and the data have {data.rank} axes")
    return axis % data.rank


def _backwards(tensor: Tensor, axis: int) -> Tensor:
    index = (*[slice(None)] * axis, slice(None, None, -1))
    result: Tensor = tensor[index]
    return result


def greedy_decoder(opening: Opening) -> tuple[Tensor, ...]:
    """Build CTCGreedyDecoder as a loop; a sequence ends where its mask is first 0."""
    data, mask = opening.required("input"), opening.required("mask")
    first_zero = ops.cum_sum(ops.convert(ops.equal(mask, 0), destination_type="i64"), 0)
    active = ops.convert(ops.equal(first_zero, 0), destination_type="i64")
    lengths = ops.reduce_sum(active, [0], keep_dims=False, name="lengths")
    merges = bool(opening.attribute("ctc_merge_repeated", True))
    classes, _ = _decoded(opening, data, lengths, None, merges, time_axis=0)
    shaped = ops.unsqueeze(converted(classes, data.element_type), [2, 3])
    return (shaped,)


def greedy_decoder_with_lengths(opening: Opening) -> tuple[Tensor, ...]:
    """Build CTCGreedyDecoderSeqLen as a loop."""
    data = opening.required("input")
    lengths = (
        ops.convert(opening.inputs["lengths"], destination_type="i64")
        if "lengths" in opening.inputs
        else length(data, 1)
    )
    merges = bool(opening.attribute("merge_repeated", True))
    blank = opening.inputs.get("blank_index")
    classes, counts = _decoded(opening, data, lengths, blank, merges, time_axis=1)
    return (
        converted(classes, opening.attributes["classes_index_type"]),
        converted(counts, opening.attributes["sequence_length_type"]),
    )


def _decoded(
    opening: Opening,
    data: Tensor,
    lengths: Tensor,
    blank: Tensor | None,
    merges: bool,
    time_axis: int,
) -> tuple[Tensor, Tensor]:
    """Build the loop of a decoder; return the classes ``[N, T]`` and their numbers ``[N]``.

    Its states are ``classes``, ``count`` and ``previous``: the class of the step before.
    """
    batch, steps = (data, 1 - time_axis), length(data, time_axis)
    last_class = length(data, 2, "classes") - 1
    last = (
        last_class
        if blank is None
        else ops.reshape(
            ops.convert(blank, destination_type="i64"), np.zeros(0, np.int64), special_zero=False
        )
    )
    places = ops.range(0, steps, 1, output_type="i64", name="places")
    i64 = ElementType.I64
    variables = [
        variable("classes", zeros(opening.graph, [batch, (data, time_axis)], i64) - 1),
        variable("count", zeros(opening.graph, [batch], i64)),
        variable("previous", zeros(opening.graph, [batch], i64) - 1),
    ]

    def trace(entered: Entered) -> Iteration:
        classes, count, previous = entered.variables
        scores = ops.squeeze(entered.parts[0], [time_axis])
        _, places_of_best = ops.topk(
            scores, 1, axis=1, mode="max", sort="value", index_element_type="i64", stable=True
        )
        best = ops.squeeze(places_of_best, [1], name="best_class")
        is_emitted = ops.logical_and(
            ops.not_equal(best, last),
            ops.less(entered.body.iteration_number("step"), lengths),
            name="is_not_blank",
        )
        if merges:
            is_emitted = ops.logical_and(is_emitted, ops.not_equal(best, previous))
        is_place = ops.logical_and(
            ops.equal(places, ops.unsqueeze(count, [1])), ops.unsqueeze(is_emitted, [1])
        )
        following = ops.select(is_place, ops.unsqueeze(best, [1]), classes, name="next_classes")
        emitted = ops.convert(is_emitted, destination_type="i64", name="emitted")
        return Iteration([following, ops.add(count, emitted, name="next_count"), best])

    plan = opening.plan(steps, variables, [Parts("scores", data, time_axis)])
    (classes, counts, _), _ = build_loop(opening.graph, plan, trace)
    return classes, counts
