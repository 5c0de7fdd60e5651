"""Rules about slicing and concatenation: axis, start, end, stride, part_size (Loop-5,
TensorIterator-1).
"""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.checks import trips
from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import OPENVINO, CheckedRegion, Finding, Rule, Subject
from loopscope.checks.rules.port_maps import spelled
from loopscope.checks.rules.suspicious import trip_count
from loopscope.errors import Where
from loopscope.ir.model import InputMap, OutputMap
from loopscope.ir.shape import PartialShape


def _where(subject: Subject, region: CheckedRegion, entry: InputMap | OutputMap) -> Where:
    kind = "input" if isinstance(entry, InputMap) else "output"
    return subject.where(region.place, region.node, f"port map {kind} {entry.external}")


def _entries(region: CheckedRegion) -> Iterator[InputMap | OutputMap]:
    """Yield the entries that slice or concatenate."""
    for entry in region.entries:
        if entry.axis is not None:
            yield entry


def _sliced_inputs(
    subject: Subject, region: CheckedRegion
) -> Iterator[tuple[InputMap, PartialShape]]:
    """Yield the sliced inputs with the shape of the sliced tensor."""
    outer = subject.outer(region)
    for entry in region.body.inputs:
        if entry.axis is not None and 0 <= entry.external < len(outer):
            yield entry, outer[entry.external].shape


def _sliced_lengths(subject: Subject, region: CheckedRegion) -> Iterator[tuple[InputMap, int]]:
    """Yield the sliced inputs of known length along the axis, with that length."""
    for entry, shape in _sliced_inputs(subject, region):
        length = trips.axis_length(shape, entry.axis or 0)
        if length.is_static:
            yield entry, length.length


def axis_out_of_range(subject: Subject) -> Iterator[Finding]:
    """A tensor is sliced along an axis that it does not have.

    What it does:
        Compares the axis of every sliced input with the number of dimensions of the tensor, if it
        is known.
    Why it matters:
        The tensor does not have slices along this axis. OpenVINO refuses such a file.
    Example that fails:
        axis="5" on a tensor of shape [4,3]
    Example that passes:
        axis="0" on a tensor of shape [4,3]
    """
    for region in subject.iterating:
        for entry, shape in _sliced_inputs(subject, region):
            rank, axis = shape.rank, entry.axis or 0
            if rank is not None and not -rank <= axis < rank:
                yield Finding(
                    _where(subject, region, entry),
                    f"Axis {axis} is out of range for a tensor of shape {shape}.",
                    found=spelled(entry),
                    expected=f"{-rank} to {rank - 1}"
                    if rank
                    else "a tensor with at least one dimension",
                    advice="Correct the axis.",
                )


def joined_axis_out_of_range(subject: Subject) -> Iterator[Finding]:
    """Values are concatenated along an axis that they do not have.

    What it does:
        Compares the axis of every concatenated output with the number of dimensions of its Result,
        if it is known.
    Why it matters:
        The values cannot be concatenated. OpenVINO refuses such a file. (Scalars are concatenated
        along axis 0.)
    Example that fails:
        axis="5" on a Result of shape [1,3]
    Example that passes:
        axis="0" on a Result of shape [1,3]
    """
    for region in subject.iterating:
        for entry in region.body.outputs:
            if (
                entry.axis is None
                or entry.external == -1
                or entry.internal not in region.body.graph.by_id
            ):
                continue
            shape = subject.parameter(region, entry.internal).shape
            rank = None if shape.rank is None else max(1, shape.rank + (1 if entry.stacked else 0))
            if rank is not None and not -rank <= entry.axis < rank:
                yield Finding(
                    _where(subject, region, entry),
                    f"Axis {entry.axis} is out of range for a Result of shape {shape}.",
                    found=spelled(entry),
                    expected=f"{-rank} to {rank - 1}",
                    advice="Correct the axis.",
                )


def part_size_not_positive(subject: Subject) -> Iterator[Finding]:
    """A slice has no length.

    What it does:
        Checks part_size of every sliced or concatenated entry.
    Why it matters:
        A number of slices of length 0 or less is not defined. OpenVINO fails or crashes on
        part_size 0.
    Example that fails:
        part_size="0"
    Example that passes:
        part_size="1"
    """
    for region in subject.iterating:
        for entry in _entries(region):
            if entry.part_size <= 0:
                yield Finding(
                    _where(subject, region, entry),
                    f"part_size is {entry.part_size}, expected 1 or more.",
                    found=f"part_size {entry.part_size}",
                    expected="1 or more",
                    advice="Correct part_size.",
                )


def stride_zero(subject: Subject) -> Iterator[Finding]:
    """A slice has stride 0.

    What it does:
        Checks stride of every sliced or concatenated entry.
    Why it matters:
        A stride of 0 never reaches the next slice. OpenVINO refuses the file, or crashes.
    Example that fails:
        stride="0"
    Example that passes:
        stride="1", or "-1" to go backwards
    """
    for region in subject.iterating:
        for entry in _entries(region):
            if entry.stride == 0:
                yield Finding(
                    _where(subject, region, entry),
                    "stride is 0.",
                    found="stride 0",
                    expected="part_size, or its negative to go backwards",
                    advice="Correct the stride.",
                )


def parts_differ(subject: Subject) -> Iterator[Finding]:
    """The sliced inputs of a TensorIterator have different numbers of slices.

    What it does:
        Counts the slices of every sliced input of a TensorIterator, if the lengths are known.
    Why it matters:
        The number of slices is the number of iterations, so it must be equal for all inputs.
        OpenVINO refuses such a model.
    Example that fails:
        a tensor of 5 slices and one of 2
    Example that passes:
        two tensors of 5 slices
    """
    for region in subject.tensor_iterators:
        counts = [
            (entry, trips.parts(entry, trips.axis_length(shape, entry.axis or 0)))
            for entry, shape in _sliced_inputs(subject, region)
        ]
        for entry, count in counts[1:]:
            if count.intersect(counts[0][1]) is None:
                yield Finding(
                    _where(subject, region, entry),
                    f"Input {entry.external} has {count} slices, but input "
                    f"{counts[0][0].external} has {counts[0][1]}.",
                    found=", ".join(
                        f"input {entry_of_count.external}: {number}"
                        for entry_of_count, number in counts[:8]
                    ),
                    expected="the same number of slices for every sliced input",
                    advice="Use tensors of equal length along their axes, or correct start, end "
                    "and part_size.",
                )
                break


def slice_outside(subject: Subject) -> Iterator[Finding]:
    """A TensorIterator's slice starts or ends outside the tensor.

    What it does:
        Compares start and end of every sliced input with the length along the axis, if it is known.
    Why it matters:
        The range contains positions that do not exist. Both ends are inclusive, so -1 (or length -
        1) is the last position.
    Example that fails:
        start="0" end="5" on a length of 5
    Example that passes:
        start="0" end="-1"
    """
    for region in subject.tensor_iterators:
        for entry, length in _sliced_lengths(subject, region):
            if length and any(not -length <= place < length for place in (entry.start, entry.end)):
                yield Finding(
                    _where(subject, region, entry),
                    f"The slice from {entry.start} to {entry.end} exceeds the length {length}.",
                    found=f"start {entry.start}, end {entry.end}",
                    expected=f"{-length} to {length - 1}",
                    advice="Both ends are inclusive: use -1 for the last position.",
                )


def slice_against_stride(subject: Subject) -> Iterator[Finding]:
    """A TensorIterator's slice ends before it starts.

    What it does:
        Compares the direction from start to end with the sign of stride, if the length along the
        axis is known.
    Why it matters:
        Steps in the direction of the stride never reach the end.
    Example that fails:
        start="0" end="-1" stride="-1"
    Example that passes:
        start="-1" end="0" stride="-1"
    """
    for region in subject.tensor_iterators:
        for entry, length in _sliced_lengths(subject, region):
            start, end = (
                place + length if place < 0 else place for place in (entry.start, entry.end)
            )
            if length and entry.stride and start != end and (end < start) != (entry.stride < 0):
                yield Finding(
                    _where(subject, region, entry),
                    f"The slice goes from {entry.start} to {entry.end} of {length}, against its "
                    f"stride {entry.stride}.",
                    found=f"start {entry.start}, end {entry.end}, stride {entry.stride}",
                    expected="a negative stride if and only if the end precedes the start",
                    advice='To iterate backwards, use start="-1" end="0" stride="-1".',
                )


def ends_of_loop_slice(subject: Subject) -> Iterator[Finding]:
    """A Loop's slice has a start or an end.

    What it does:
        Looks for start and end other than the defaults (0 and -1; backwards -1 and 0) on sliced or
        concatenated entries of a Loop.
    Why it matters:
        Loop-5 does not define start and end: it reads one slice per iteration from the first one
        on. OpenVINO ignores them.
    Example that fails:
        start="1" on a sliced input of a Loop
    Example that passes:
        start="0" end="-1"
    """
    for region in subject.loops:
        for entry in _entries(region):
            if (entry.start, entry.end) not in ((0, -1), (-1, 0)):
                yield Finding(
                    _where(subject, region, entry),
                    f"start {entry.start} and end {entry.end} have no effect in a Loop.",
                    found=f"start {entry.start}, end {entry.end}",
                    expected="start 0, end -1",
                    advice="They are ignored, as in OpenVINO; slice the tensor before the Loop "
                    "instead.",
                )


def stride_not_part_size(subject: Subject) -> Iterator[Finding]:
    """Slices overlap or leave gaps.

    What it does:
        Compares the absolute value of stride with part_size on every sliced or concatenated entry.
    Why it matters:
        In Loopscope slices are adjacent. OpenVINO uses the absolute value of stride as the length
        of a slice.
    Example that fails:
        stride="1" part_size="2"
    Example that passes:
        stride="2" part_size="2"
    """
    for region in subject.iterating:
        for entry in _entries(region):
            if entry.stride != 0 and entry.part_size > 0 and abs(entry.stride) != entry.part_size:
                yield Finding(
                    _where(subject, region, entry),
                    f"stride is {entry.stride}, but slices have length {entry.part_size}.",
                    found=f"stride {entry.stride}, part_size {entry.part_size}",
                    expected=f"stride {entry.part_size} or {-entry.part_size}",
                    advice="Loopscope uses only the sign of the stride; make both equal.",
                )


def rest_left_over(subject: Subject) -> Iterator[Finding]:
    """A tensor cannot be divided into whole slices.

    What it does:
        Divides the length along the axis by part_size, if it is known.
    Why it matters:
        The remaining elements are never read.
    Example that fails:
        part_size="2" on a length of 5
    Example that passes:
        part_size="2" on a length of 4
    """
    for region in subject.iterating:
        for entry, length in _sliced_lengths(subject, region):
            if entry.part_size > 1 and length % entry.part_size:
                yield Finding(
                    _where(subject, region, entry),
                    f"A length of {length} cannot be divided into slices of {entry.part_size}.",
                    found=f"a remainder of {length % entry.part_size}",
                    expected=f"a multiple of {entry.part_size}",
                    advice="The remaining elements are never read.",
                )


def joined_length(subject: Subject) -> Iterator[Finding]:
    """A concatenated value and part_size have different lengths.

    What it does:
        Compares part_size of every concatenated output with the length of the body's Result along
        the axis, if it is known.
    Why it matters:
        Loopscope concatenates the values with their actual lengths. OpenVINO expects the length
        part_size, and refuses to run such a model.
    Example that fails:
        axis="0" part_size="1" for a Result of the shape [2,3]
    Example that passes:
        axis="0" part_size="2" stride="2" for this Result
    """
    for region in subject.iterating:
        for entry in region.body.outputs:
            if entry.axis is None or entry.stacked or entry.internal not in region.body.graph.by_id:
                continue
            shape = subject.parameter(region, entry.internal).shape
            if shape.rank is None or not -shape.rank <= entry.axis < shape.rank:
                continue
            length = shape.at(entry.axis)
            if length.is_static and length.length not in (0, entry.part_size):
                yield Finding(
                    _where(subject, region, entry),
                    f"The concatenated value has length {length} along axis {entry.axis}, but "
                    f"part_size is {entry.part_size}.",
                    found=f"part_size {entry.part_size}",
                    expected=f"part_size {length}",
                    advice="Loopscope concatenates the whole value; OpenVINO refuses to run it. "
                    "Correct part_size, or stack the values along a new axis.",
                )


def nothing_to_iterate_over(subject: Subject) -> Iterator[Finding]:
    """A TensorIterator has no sliced input.

    What it does:
        Looks for TensorIterators without a port map input that has an axis.
    Why it matters:
        Slices determine the iterations. Without them the body runs once, or as often as its
        concatenated outputs require.
    Example that fails:
        a TensorIterator whose port map inputs have no axis
    Example that passes:
        <input axis="0" external_port_id="0" internal_layer_id="0"/>
    """
    for region in subject.tensor_iterators:
        if not any(entry.axis is not None for entry in region.body.inputs):
            count = trips.of_tensor_iterator(region.body, subject.outer(region))
            yield Finding(
                subject.where(region.place, region.node),
                "The TensorIterator has no sliced inputs: its body runs "
                f"{'once' if count.least == 1 else f'{count} times'}.",
                found="no port map input with an axis",
                expected="at least one",
                advice="Harmless.",
            )


def unlimited_slices(subject: Subject) -> Iterator[Finding]:
    """A Loop with sliced inputs has no limit in its trip count.

    What it does:
        Looks for a constant negative trip count in Loops with sliced inputs.
    Why it matters:
        If the slices run out before the condition becomes false, OpenVINO's CPU fails. In Loopscope
        the Loop ends.
    Example that fails:
        trip count -1, a sliced input, and a condition that is always true
    Example that passes:
        the number of slices as trip count
    """
    for region in subject.loops:
        count = trip_count(subject, region)
        if (
            count is not None
            and count < 0
            and any(entry.axis is not None for entry in region.body.inputs)
        ):
            parts = trips.of_slices(region.body, subject.outer(region))
            yield Finding(
                subject.where(region.place, region.node, "input 0"),
                f"The trip count {count} sets no limit, and the Loop has sliced inputs: "
                "OpenVINO's CPU fails when the slices run out.",
                found=f"trip count {count}",
                expected=str(parts) if parts.is_static else "the number of slices",
                advice="In Loopscope the Loop ends with 'sliced input ran out'; use the number of "
                "slices as trip count to get equal results everywhere.",
            )


RULES = (
    Rule("LS531", "axis-out-of-range", Severity.ERROR, axis_out_of_range, before_running=True),
    Rule(
        "LS532",
        "joined-axis-out-of-range",
        Severity.ERROR,
        joined_axis_out_of_range,
        before_running=True,
    ),
    Rule(
        "LS533",
        "part-size-not-positive",
        Severity.ERROR,
        part_size_not_positive,
        before_running=True,
    ),
    Rule("LS534", "stride-zero", Severity.ERROR, stride_zero, before_running=True),
    Rule("LS535", "parts-differ", Severity.ERROR, parts_differ, before_running=True),
    Rule("LS536", "slice-outside", Severity.ERROR, slice_outside, before_running=True),
    Rule(
        "LS537", "slice-against-stride", Severity.ERROR, slice_against_stride, before_running=True
    ),
    Rule("LS538", "ends-of-loop-slice", Severity.WARNING, ends_of_loop_slice),
    Rule("LS539", "stride-not-part-size", Severity.WARNING, stride_not_part_size),
    Rule("LS540", "rest-left-over", Severity.WARNING, rest_left_over),
    Rule("LS541", "nothing-to-iterate-over", Severity.NOTE, nothing_to_iterate_over),
    Rule("LS542", "joined-length", Severity.WARNING, joined_length),
    Rule("LS543", "unlimited-slices", Severity.WARNING, unlimited_slices, runtimes=OPENVINO),
)
