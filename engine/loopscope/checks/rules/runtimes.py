"""Rules about models that runtimes refuse or compute differently (measured on OpenVINO 2026.4 CPU
and ONNX Runtime 1.31).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from loopscope.checks import trips
from loopscope.checks.diagnostic import Severity
from loopscope.checks.known import scalar_value
from loopscope.checks.order import backwards, circles
from loopscope.checks.rule import ONNXRUNTIME, OPENVINO, CheckedRegion, Finding, Rule, Subject
from loopscope.checks.rules.port_maps import spelled
from loopscope.checks.rules.suspicious import execution_condition, trip_count
from loopscope.ir.model import TENSOR_ITERATOR, LayerId, OutputRef

_LARGEST_COUNT = 2**31 - 1
_RESHAPES = frozenset({"Result", "Reshape", "Squeeze", "Unsqueeze"})


def slices_run_out(subject: Subject) -> Iterator[Finding]:
    """A Loop's trip count is greater than the number of slices of its inputs.

    What it does:
        Compares the constant trip count with the number of slices, if both are known.
    Why it matters:
        The specification does not define this case: OpenVINO's CPU fails or reads garbage, and its
        reference repeats the last slice. In Loopscope the Loop ends.
    Example that fails:
        trip count 5 and a tensor of 4 slices
    Example that passes:
        trip count 4 and a tensor of 4 slices
    """
    for region in subject.loops:
        count = trip_count(subject, region)
        parts = trips.of_slices(region.body, subject.outer(region))
        if count is not None and parts.most is not None and count > parts.most:
            yield Finding(
                subject.where(region.place, region.node),
                f"The trip count is {count:,}, but the sliced inputs have {parts} slices.",
                found=f"trip count {count}",
                expected=f"at most {parts.most}",
                advice="The Loop ends with 'sliced input ran out'; lower the trip count.",
            )


def trip_count_beyond_32_bits(subject: Subject) -> Iterator[Finding]:
    """A trip count does not fit into 32 bits.

    What it does:
        Checks constant trip counts.
    Why it matters:
        OpenVINO's CPU uses the low 32 bits: 2^32 + 2 runs 2 iterations there.
    Example that fails:
        trip count 4294967298
    Example that passes:
        trip count -1 for no limit
    """
    for region in subject.loops:
        count = trip_count(subject, region)
        truncated = 0 if count is None else ((count + 2**31) % 2**32) - 2**31
        # The largest i64, PyTorch's value for no limit, becomes -1, which also means no limit.
        if count is not None and count > _LARGEST_COUNT and truncated >= 0:
            yield Finding(
                subject.where(region.place, region.node, "input 0"),
                f"The trip count {count:,} does not fit into 32 bits: OpenVINO's CPU reduces it "
                f"to {truncated:,}.",
                found=str(count),
                expected=f"at most {_LARGEST_COUNT}, or -1 for no limit",
                advice="Loopscope uses the full number; use -1 for no limit.",
            )


def constant_zero_trips(subject: Subject) -> Iterator[Finding]:
    """A Loop with sliced inputs has the constant trip count 0.

    What it does:
        Looks for the constant trip count 0 in Loops with sliced inputs.
    Why it matters:
        OpenVINO's CPU crashes (SIGFPE).
    Example that fails:
        trip count constant 0, and a sliced input
    Example that passes:
        a trip count that is an input of the model
    """
    for region in subject.loops:
        if trip_count(subject, region) == 0 and any(
            entry.axis is not None for entry in region.body.inputs
        ):
            yield Finding(
                subject.where(region.place, region.node, "input 0"),
                "The trip count is the constant 0, and the Loop has sliced inputs: OpenVINO's CPU "
                "crashes.",
                found="trip count 0",
                expected="a computed trip count",
                advice="Loopscope runs zero iterations, as specified.",
            )


def slice_start_or_end(subject: Subject) -> Iterator[Finding]:
    """A TensorIterator's slices do not cover the whole axis.

    What it does:
        Looks for values of start and end that exclude elements, for which OpenVINO's CPU reads
        other slices.
    Why it matters:
        OpenVINO's CPU ignores start, and fails for a positive end (or leaves rows unset). Loopscope
        follows the specification.
    Example that fails:
        start="1" end="-1" stride="1"
    Example that passes:
        start="0" end="-1" stride="1"
    """
    for region in subject.tensor_iterators:
        for entry in region.body.inputs:
            forwards = entry.start == 0 and entry.end < 0 < entry.stride
            backwards = entry.start == -1 and entry.end >= 0 > entry.stride
            if entry.axis is not None and not forwards and not backwards:
                yield Finding(
                    subject.where(region.place, region.node, f"port map input {entry.external}"),
                    f"OpenVINO's CPU reads other slices than those from {entry.start} to "
                    f"{entry.end}.",
                    found=f"start {entry.start}, end {entry.end}, stride {entry.stride}",
                    expected='start="0" end="-1" stride="1", or start="-1" end="0" stride="-1"',
                    advice="Loopscope follows the specification; slice the tensor before the "
                    "TensorIterator to get equal results everywhere.",
                )


def negative_axis(subject: Subject) -> Iterator[Finding]:
    """A tensor is sliced, or values are concatenated, along a negative axis.

    What it does:
        Looks for a negative axis in port maps.
    Why it matters:
        The specification counts a negative axis from the end, and OpenVINO writes it. But OpenVINO
        refuses to read it on an input, and fails on an output.
    Example that fails:
        axis="-1"
    Example that passes:
        axis="1" for a tensor of two dimensions
    """
    for region in subject.iterating:
        for entry in region.entries:
            if entry.axis is not None and entry.axis < 0 and subject.is_openvino:
                yield Finding(
                    subject.where(
                        region.place,
                        region.node,
                        f"port map {'input' if entry in region.body.inputs else 'output'} "
                        f"{entry.external}",
                    ),
                    f"OpenVINO cannot read axis {entry.axis}.",
                    found=spelled(entry),
                    expected="an axis of 0 or more",
                    advice="Loopscope counts it from the end; use a nonnegative axis to get equal "
                    "results everywhere.",
                )


def overwritten_states(subject: Subject) -> Iterator[Finding]:
    """A carried value is copied from a value that is overwritten first.

    What it does:
        Looks for back edges whose Result is another Parameter, unchanged or reshaped. That
        Parameter receives a slice or the iteration number, or it is carried, precedes in the port
        map and depends on the value that copies it.
    Why it matters:
        All back edges take effect together, before the next slices are read. OpenVINO's CPU reads
        the slices and the iteration number first, and then copies along the back edges in port map
        order. It copies the new value instead of the old one, which is wrong from the second
        iteration on.
    Example that fails:
        Fibonacci numbers: a + b goes back to a, a goes back to b; or the current slice as the
        previous slice of the next iteration
    Example that passes:
        the same with b before a in the port map, or with 0 added to the value that goes back to b
    """
    for region in subject.iterating:
        late = overwritten_parameters(region)
        if late:
            nodes = region.body.graph.by_id
            yield Finding(
                subject.where(region.place, region.node),
                "OpenVINO's CPU overwrites a value before it is carried on: the carried values "
                "are wrong from the second iteration on.",
                found=", ".join(
                    f"{nodes[source].name} goes back to {nodes[layer].name}"
                    for layer, source in list(late.items())[:8]
                ),
                expected="a computation between them, or the source Parameter later in the port "
                "map",
                advice="In Loopscope all back edges take effect together; for OpenVINO add 0 to "
                "the copied value.",
            )


def overwritten_parameters(region: CheckedRegion) -> dict[LayerId, LayerId]:
    """Return the carried Parameters that OpenVINO's CPU gives the new value of another Parameter,
    with that Parameter.
    """
    carried = {edge.to_layer: edge.from_layer for edge in region.body.back_edges}
    changing = region.per_iteration_parameters.union(carried)
    sources = {layer: _value_source(region, last) for layer, last in carried.items()}
    copied = {
        layer: source
        for layer, source in sources.items()
        if source is not None and source != layer and source in changing
    }
    if not copied:
        return {}
    position = {entry.internal: number for number, entry in enumerate(region.body.inputs)}
    components = circles(region.body.graph, [(last, layer) for layer, last in carried.items()])
    return {
        layer: source
        for layer, source in copied.items()
        if _is_overwritten(region, layer, source, position, components)
    }


def _value_source(region: CheckedRegion, last: LayerId) -> LayerId | None:
    """Return the node that a Result takes its value from, skipping reshapes, for which OpenVINO's
    CPU copies nothing.
    """
    return next(
        (
            node.id
            for _, node in backwards(region.body.graph, OutputRef(last, 0))
            if node.type not in _RESHAPES
        ),
        None,
    )


def _is_overwritten(
    region: CheckedRegion,
    layer: LayerId,
    source: LayerId,
    position: Mapping[LayerId, int],
    components: Mapping[LayerId, int],
) -> bool:
    """Return True if a Parameter receives the new value of ``source`` instead of the old one.

    A slice is always overwritten if anything reads the Parameter. A carried value is overwritten if
    it precedes in the port map and depends on the Parameter.
    """
    if source in region.per_iteration_parameters:
        return OutputRef(layer, 0) in region.body.graph.consumers
    return (
        source in position
        and layer in position
        and position[source] < position[layer]
        and components.get(layer) == components[source]
    )


def nested_tensor_iterator(subject: Subject) -> Iterator[Finding]:
    """A TensorIterator is inside a TensorIterator.

    What it does:
        Looks for TensorIterators in the bodies of TensorIterators.
    Why it matters:
        OpenVINO refuses such a model ("No nested TensorIterator").
    Example that fails:
        a TensorIterator in the body of a TensorIterator
    Example that passes:
        a TensorIterator in the body of a Loop
    """
    for region in subject.tensor_iterators:
        if region.place.owner is not None and region.place.owner.type == TENSOR_ITERATOR:
            yield Finding(
                subject.where(region.place, region.node),
                "OpenVINO refuses a TensorIterator inside a TensorIterator.",
                found="a TensorIterator in the body of a TensorIterator",
                expected="a Loop as one of them",
                advice="Loopscope runs it; for OpenVINO write the outer one as a Loop.",
            )


def input_used_twice(subject: Subject) -> Iterator[Finding]:
    """One input of a Loop, TensorIterator or If feeds two Parameters of a body.

    What it does:
        Counts how often the port map of each body refers to each input.
    Why it matters:
        OpenVINO's CPU passes garbage to the second Parameter, or to slices of the input.
    Example that fails:
        two <input external_port_id="1" .../> in then_port_map
    Example that passes:
        one <input external_port_id="1" .../> and two edges inside the branch; or two ports with an
        edge each
    """
    for region in subject.regions if subject.is_openvino else ():
        fed = {
            (entry.external, entry.internal) for entry in region.body.inputs if entry.external != -1
        }
        for external, count in sorted(Counter(external for external, _ in fed).items()):
            if count > 1:
                yield Finding(
                    subject.where(region.place, region.node, f"input {external}"),
                    f"Input {external} feeds {count} Parameters of the {region.part}: OpenVINO's "
                    "CPU passes a wrong value to the second one.",
                    found=f"{count} Parameters with external_port_id {external}",
                    expected="one Parameter, or a port for each",
                    advice="In Loopscope all of them receive the value; for OpenVINO use one "
                    "Parameter or another port.",
                )


def stops_early(subject: Subject) -> Iterator[Finding]:
    """A concatenated output can be shorter than OpenVINO declares.

    What it does:
        Looks for concatenated outputs of Loops with a constant trip count whose condition is
        computed.
    Why it matters:
        OpenVINO declares the maximum length as a fixed length; the actual length is the number of
        iterations.
    Example that fails:
        trip count constant 8, and a condition that the body computes
    Example that passes:
        trip count constant 8, condition constant true
    """
    for region in subject.loops:
        count, possible = trip_count(subject, region), subject.trips(region)
        joined = any(
            entry.axis is not None and entry.external != -1 for entry in region.body.outputs
        )
        if joined and count is not None and count > 0 and not possible.is_static:
            yield Finding(
                subject.where(region.place, region.node),
                f"The Loop can stop before {count:,} iterations; OpenVINO declares its "
                "concatenated outputs with the maximum length.",
                found=trips.words(possible),
                expected=f"{count:,} iterations",
                advice="In Loopscope the length of an output is the number of iterations that ran.",
            )


def counted_as_one(subject: Subject) -> Iterator[Finding]:
    """A Loop's execution condition is constant false and its trip count is computed.

    What it does:
        Looks for Loops whose execution condition is constant false and whose trip count is not
        constant.
    Why it matters:
        OpenVINO infers one iteration even if the trip count is 0, and then returns an output that
        was never written.
    Example that fails:
        execution condition constant false, trip count from an input
    Example that passes:
        execution condition constant false, trip count constant 1
    """
    for region in subject.loops:
        condition = execution_condition(subject, region)
        if (
            condition is not None
            and scalar_value(condition) is False
            and trip_count(subject, region) is None
        ):
            yield Finding(
                subject.where(region.place, region.node),
                "OpenVINO infers one iteration for this Loop, even if the trip count is 0.",
                found="execution condition constant false, computed trip count",
                expected="a computed condition",
                advice="In Loopscope a trip count of 0 means zero iterations.",
            )


def minus_one_in_onnx(subject: Subject) -> Iterator[Finding]:
    """An ONNX Loop has the constant trip count -1.

    What it does:
        Looks for negative constant trip counts in ONNX models.
    Why it matters:
        ONNX Runtime runs zero iterations, OpenVINO sets no limit, and the ONNX reference fails.
    Example that fails:
        M = -1
    Example that passes:
        no M (an empty name) for no limit
    """
    if subject.is_openvino:
        return
    for region in subject.loops:
        count = trip_count(subject, region)
        has_trip_count = region.place.graph.sources[region.node.id][:1] != (None,)
        if has_trip_count and count is not None and count < 0:
            yield Finding(
                subject.where(region.place, region.node, "input 0"),
                f"The trip count is {count}: ONNX Runtime runs zero iterations, OpenVINO any "
                "number.",
                found=str(count),
                expected="0 or more, or no trip count at all",
                advice="Omit M for no limit.",
            )


RULES = (
    Rule("LS901", "slices-run-out", Severity.WARNING, slices_run_out),
    Rule(
        "LS902",
        "trip-count-beyond-32-bits",
        Severity.WARNING,
        trip_count_beyond_32_bits,
        runtimes=OPENVINO,
    ),
    Rule("LS903", "constant-zero-trips", Severity.WARNING, constant_zero_trips, runtimes=OPENVINO),
    Rule("LS904", "slice-start-or-end", Severity.WARNING, slice_start_or_end, runtimes=OPENVINO),
    Rule("LS905", "negative-axis", Severity.WARNING, negative_axis, runtimes=OPENVINO),
    Rule("LS906", "overwritten-states", Severity.WARNING, overwritten_states, runtimes=OPENVINO),
    Rule(
        "LS907",
        "nested-tensor-iterator",
        Severity.WARNING,
        nested_tensor_iterator,
        runtimes=OPENVINO,
    ),
    Rule("LS908", "input-used-twice", Severity.WARNING, input_used_twice, runtimes=OPENVINO),
    Rule("LS909", "counted-as-one", Severity.WARNING, counted_as_one, runtimes=OPENVINO),
    Rule(
        "LS910",
        "minus-one-in-onnx",
        Severity.WARNING,
        minus_one_in_onnx,
        runtimes=OPENVINO | ONNXRUNTIME,
    ),
    Rule("LS911", "stops-early", Severity.NOTE, stops_early, runtimes=OPENVINO),
)
