"""Rules about slicing and concatenation: axis, start, end, stride, part_size (Loop-5,
TensorIterator-1).
"""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.checks import trips
from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import OPENVINO, Finding, Rule
from loopscope.checks.rules.port_maps import spelled
from loopscope.checks.rules.suspicious import trip_count
from loopscope.checks.subject import CheckedRegion, Subject
from loopscope.errors import Where
from loopscope.ir.model import InputMap, OutputMap
from loopscope.ir.shape import PartialShape


def _where(subject: Subject, region: CheckedRegion, entry: InputMap | OutputMap) -> Where:
    kind = "input" if isinstance(entry, InputMap) else "output"
    return subject.where(region.place, region.node, f"port map {kind} {entry.external}")


def _entries(region: CheckedRegion) -> Iterator[InputMap | OutputMap]:
    """The entries that slice or concatenate."""
    for entry in region.entries:
        if entry.axis is not None:
            yield entry


def _sliced(subject: Subject, region: CheckedRegion) -> Iterator[tuple[InputMap, PartialShape]]:
    """The sliced inputs with what is known of the shape that is sliced."""
    outer = subject.outer(region)
    for entry in region.body.inputs:
        if entry.axis is not None and 0 <= entry.external < len(outer):
            yield entry, outer[entry.external].shape


def _sliced_lengths(subject: Subject, region: CheckedRegion) -> Iterator[tuple[InputMap, int]]:
    """The sliced inputs whose length along the axis is known, with that length."""
    for entry, shape in _sliced(subject, region):
        length = trips.axis_length(shape, entry.axis or 0)
        if length.is_static:
            yield entry, length.length


def axis_out_of_range(subject: Subject) -> Iterator[Finding]:
    """A tensor is sliced along an axis that it does not have.

    What it does:
        Compares the axis of every sliced input with the number of dimensions of the tensor, where it is known.
    Why it matters:
        There are no parts along this axis. OpenVINO refuses such a file.
    Example that fails:
        axis="5" on a tensor of shape [4,3]
    Example that passes:
        axis="0" on a tensor of shape [4,3]
    """
    for region in subject.iterating:
        for entry, shape in _sliced(subject, region):
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
        Compares the axis of every concatenated output with the number of dimensions of its Result, where it is known.
    Why it matters:
        They cannot be joined. OpenVINO refuses such a file. (Scalars are joined along axis 0.)
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
    """A part has no length.

    What it does:
        Looks at part_size of every sliced or concatenated entry.
    Why it matters:
        There is no number of parts of length 0 or less. OpenVINO fails, or dies, on part_size 0.
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
    """A slice does not move on.

    What it does:
        Looks at stride of every sliced or concatenated entry.
    Why it matters:
        A stride of 0 never gets to the next part. OpenVINO refuses it, or dies.
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
    """The sliced inputs of a TensorIterator have different numbers of parts.

    What it does:
        Counts the parts of every sliced input of a TensorIterator, where the lengths are known.
    Why it matters:
        The number of parts is the number of iterations: it must be one number. OpenVINO refuses such a model.
    Example that fails:
        a tensor of 5 parts and one of 2
    Example that passes:
        two tensors of 5 parts
    """
    for region in subject.tensor_iterators:
        counts = [
            (entry, trips.parts(entry, trips.axis_length(shape, entry.axis or 0)))
            for entry, shape in _sliced(subject, region)
        ]
        for entry, count in counts[1:]:
            if count.intersect(counts[0][1]) is None:
                yield Finding(
                    _where(subject, region, entry),
                    f"Input {entry.external} has {count} parts, input {counts[0][0].external} has {counts[0][1]}.",
                    found=", ".join(
                        f"input {one.external}: {number}" for one, number in counts[:8]
                    ),
                    expected="the same number of parts of every sliced input",
                    advice="Make the tensors equally long along their axes, or correct start, end and part_size.",
                )
                break


def slice_outside(subject: Subject) -> Iterator[Finding]:
    """A TensorIterator's slice begins or ends outside the tensor.

    What it does:
        Compares start and end of every sliced input with the length along the axis, where it is known.
    Why it matters:
        There is nothing to take. Both ends are included, so that -1 (or length - 1) is the last place.
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
                    f"The slice from {entry.start} to {entry.end} leaves a length of {length}.",
                    found=f"start {entry.start}, end {entry.end}",
                    expected=f"{-length} to {length - 1}",
                    advice="Both ends are included: use -1 for the last place.",
                )


def slice_against_stride(subject: Subject) -> Iterator[Finding]:
    """A TensorIterator's slice ends before it begins.

    What it does:
        Compares the direction from start to end with the sign of stride, where the length along the axis is known.
    Why it matters:
        Walking in the direction of the stride never gets to the end.
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
                    f"The slice goes from {entry.start} to {entry.end} of {length}, against its stride {entry.stride}.",
                    found=f"start {entry.start}, end {entry.end}, stride {entry.stride}",
                    expected="a negative stride exactly when the end lies before the start",
                    advice='Backwards is start="-1" end="0" stride="-1".',
                )


def ends_of_loop_slice(subject: Subject) -> Iterator[Finding]:
    """A Loop's slice has a start or an end.

    What it does:
        Looks for start and end other than the defaults (0 and -1; backwards -1 and 0) on sliced or concatenated entries of a Loop.
    Why it matters:
        They mean nothing in Loop-5: parts are taken from the first one on, as many as there are iterations. OpenVINO ignores them.
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
                    f"start {entry.start} and end {entry.end} mean nothing in a Loop.",
                    found=f"start {entry.start}, end {entry.end}",
                    expected="start 0, end -1",
                    advice="They are kept and ignored, as OpenVINO does; slice the tensor before the Loop instead.",
                )


def stride_not_part_size(subject: Subject) -> Iterator[Finding]:
    """Parts overlap, or leave gaps.

    What it does:
        Compares the size of stride with part_size on every sliced or concatenated entry.
    Why it matters:
        Parts lie side by side here; OpenVINO takes the size of stride for the length of a part.
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
                    f"stride is {entry.stride}, but parts have length {entry.part_size}.",
                    found=f"stride {entry.stride}, part_size {entry.part_size}",
                    expected=f"stride {entry.part_size} or {-entry.part_size}",
                    advice="Only the sign of the stride counts here; make both equal.",
                )


def rest_left_over(subject: Subject) -> Iterator[Finding]:
    """A tensor cannot be cut into whole parts.

    What it does:
        Divides the length along the axis by part_size, where it is known.
    Why it matters:
        What is left over is never visited.
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
                    f"A length of {length} cannot be cut into parts of {entry.part_size}.",
                    found=f"a rest of {length % entry.part_size}",
                    expected=f"a multiple of {entry.part_size}",
                    advice="The rest is never visited.",
                )


def joined_length(subject: Subject) -> Iterator[Finding]:
    """What is concatenated has another length along the axis than part_size.

    What it does:
        Compares part_size of every concatenated output with the length of the body's Result along the axis, where that is known.
    Why it matters:
        Here every value is joined as long as it is. OpenVINO takes part_size for the length of each, and refuses to run such a model.
    Example that fails:
        axis="0" part_size="1" for a Result of the shape [2,3]
    Example that passes:
        axis="0" part_size="2" stride="2" for it
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
                    f"What is concatenated has length {length} along axis {entry.axis}, but part_size is {entry.part_size}.",
                    found=f"part_size {entry.part_size}",
                    expected=f"part_size {length}",
                    advice="Here all of it is joined; OpenVINO refuses to run it. Correct part_size, or give each value a new axis.",
                )


def nothing_to_iterate_over(subject: Subject) -> Iterator[Finding]:
    """A TensorIterator has no sliced input.

    What it does:
        Looks for TensorIterators without a port map input that has an axis.
    Why it matters:
        Parts are what it iterates over: without any, the body runs once (or as often as its concatenated outputs say).
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
                f"The TensorIterator slices nothing: its body runs {'once' if count.least == 1 else f'{count} times'}.",
                found="no port map input with an axis",
                expected="at least one",
                advice="It does no harm.",
            )


def unlimited_slices(subject: Subject) -> Iterator[Finding]:
    """A Loop with sliced inputs has a trip count that sets no limit.

    What it does:
        Looks for a constant negative trip count together with sliced inputs.
    Why it matters:
        When the parts run out before the condition turns false, OpenVINO's CPU fails. Here the Loop ends.
    Example that fails:
        trip count -1, a sliced input, and a condition that is always true
    Example that passes:
        the number of parts as trip count
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
                f"The trip count {count} sets no limit, and the Loop slices: OpenVINO's CPU fails when the parts run out.",
                found=f"trip count {count}",
                expected=str(parts) if parts.is_static else "the number of parts",
                advice="Here the Loop ends with 'sliced input ran out'; give the number of parts as trip count to get the same everywhere.",
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
