"""Rules about what real runtimes refuse or do differently (measured on OpenVINO 2026.4 CPU and
ONNX Runtime 1.31).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from loopscope.checks import trips
from loopscope.checks.diagnostic import Severity
from loopscope.checks.known import scalar_value
from loopscope.checks.order import backwards, circles
from loopscope.checks.rule import ONNXRUNTIME, OPENVINO, Finding, Rule
from loopscope.checks.rules.port_maps import spelled
from loopscope.checks.rules.suspicious import execution_condition, trip_count
from loopscope.checks.subject import CheckedRegion, Subject
from loopscope.ir.model import TENSOR_ITERATOR, LayerId, OutputRef

_LARGEST_COUNT = 2**31 - 1
_PASSED_ON = frozenset({"Result", "Reshape", "Squeeze", "Unsqueeze"})


def slices_run_out(subject: Subject) -> Iterator[Finding]:
    """A Loop asks for more iterations than its sliced inputs have parts.

    What it does:
        Compares the constant trip count with the number of parts, where both are known.
    Why it matters:
        What happens then is not defined: OpenVINO's CPU fails or reads garbage, its reference repeats the last part. Here the Loop ends.
    Example that fails:
        trip count 5 and a tensor of 4 parts
    Example that passes:
        trip count 4 and a tensor of 4 parts
    """
    for region in subject.loops:
        count, parts = (
            trip_count(subject, region),
            trips.of_slices(region.body, subject.outer(region)),
        )
        if count is not None and parts.most is not None and count > parts.most:
            yield Finding(
                subject.where(region.place, region.node),
                f"The trip count asks for {count:,} iterations, but the sliced inputs have {parts} parts.",
                found=f"trip count {count}",
                expected=f"at most {parts.most}",
                advice="The Loop ends with 'sliced input ran out'; lower the trip count.",
            )


def trip_count_beyond_32_bits(subject: Subject) -> Iterator[Finding]:
    """A trip count does not fit into 32 bits.

    What it does:
        Looks at constant trip counts.
    Why it matters:
        OpenVINO's CPU keeps the low 32 bits: 2^32 + 2 runs 2 iterations there.
    Example that fails:
        trip count 4294967298
    Example that passes:
        trip count -1 for no limit
    """
    for region in subject.loops:
        count = trip_count(subject, region)
        kept = 0 if count is None else ((count + 2**31) % 2**32) - 2**31
        # The largest i64, which PyTorch means no limit by, becomes -1: still no limit.
        if count is not None and count > _LARGEST_COUNT and kept >= 0:
            yield Finding(
                subject.where(region.place, region.node, "input 0"),
                f"The trip count {count:,} does not fit into 32 bits: OpenVINO's CPU makes {kept:,} of it.",
                found=str(count),
                expected=f"at most {_LARGEST_COUNT}, or -1 for no limit",
                advice="Here it is that many; use -1 when no limit is meant.",
            )


def constant_zero_trips(subject: Subject) -> Iterator[Finding]:
    """A Loop with sliced inputs has the constant trip count 0.

    What it does:
        Looks for the constant trip count 0 together with sliced inputs.
    Why it matters:
        OpenVINO's CPU dies of it (SIGFPE).
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
                "The trip count is the constant 0, and the Loop slices: OpenVINO's CPU dies of it.",
                found="trip count 0",
                expected="a computed trip count",
                advice="Here it is zero iterations, as the specification says.",
            )


def slice_start_or_end(subject: Subject) -> Iterator[Finding]:
    """A TensorIterator's slice does not begin or end where the tensor does.

    What it does:
        Looks for start and end that leave something out, where OpenVINO's CPU takes other parts.
    Why it matters:
        OpenVINO's CPU ignores start, and fails for a positive end (or leaves rows unset). Here both are honoured.
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
                    f"OpenVINO's CPU takes other parts than those from {entry.start} to {entry.end}.",
                    found=f"start {entry.start}, end {entry.end}, stride {entry.stride}",
                    expected='start="0" end="-1" stride="1", or start="-1" end="0" stride="-1"',
                    advice="Here they are taken as the specification says; slice the tensor before, to get the same everywhere.",
                )


def negative_axis(subject: Subject) -> Iterator[Finding]:
    """A tensor is sliced, or values are concatenated, along a negative axis.

    What it does:
        Looks for a negative axis in port maps.
    Why it matters:
        The specification counts it from the end, and OpenVINO writes it; but it refuses to read it on an input, and fails on an output.
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
                        f"port map {'input' if entry in region.body.inputs else 'output'} {entry.external}",
                    ),
                    f"OpenVINO cannot read axis {entry.axis}.",
                    found=spelled(entry),
                    expected="an axis of 0 or more",
                    advice="Here it counts from the end; count it from the front to get the same everywhere.",
                )


def overwritten_states(subject: Subject) -> Iterator[Finding]:
    """A carried value takes over another value that is overwritten first.

    What it does:
        Looks for back edges whose Result is another Parameter, as it is or in another shape: of a sliced input, of the iteration number,
        or of a carried value that comes first in the port map and is computed, directly or by way of others, from the value that takes
        it over.
    Why it matters:
        All back edges fire together, before the next parts are taken. OpenVINO's CPU takes the parts and the iteration number, then
        copies along the back edges in the order of the port map: what is taken over is the new value instead of the old one, wrong
        from the second iteration on.
    Example that fails:
        Fibonacci's numbers: a + b goes back to a, a goes back to b; or the part of this iteration as the part before in the next one
    Example that passes:
        the same with b before a in the port map, or with 0 added to what goes back to b
    """
    for region in subject.iterating:
        carried = {edge.to_layer: edge.from_layer for edge in region.body.back_edges}
        given = region.given_anew.union(carried)
        sources = {layer: _handed_on(region, last) for layer, last in carried.items()}
        handed = {
            layer: source
            for layer, source in sources.items()
            if source is not None and source != layer and source in given
        }
        if not handed:
            continue
        place = {entry.internal: number for number, entry in enumerate(region.body.inputs)}
        circle = circles(region.body.graph, [(last, layer) for layer, last in carried.items()])
        late = [
            layer
            for layer, source in handed.items()
            if _is_overwritten(region, layer, source, place, circle)
        ]
        if late:
            named = region.body.graph.by_id
            yield Finding(
                subject.where(region.place, region.node),
                "OpenVINO's CPU overwrites what carried values take over before it is read: they are wrong from the second iteration on.",
                found=", ".join(
                    f"{named[handed[layer]].name} goes back to {named[layer].name}"
                    for layer in late[:8]
                ),
                expected="a computation in between, or the one that is taken over later in the port map",
                advice="Here all back edges fire together; for OpenVINO add 0 to what is taken over.",
            )


def _handed_on(region: CheckedRegion, last: LayerId) -> LayerId | None:
    """The node that a Result of a body gets its value from, as it is or in another shape, for
    which OpenVINO's CPU copies nothing.
    """
    return next(
        (
            node.id
            for _, node in backwards(region.body.graph, OutputRef(last, 0))
            if node.type not in _PASSED_ON
        ),
        None,
    )


def _is_overwritten(
    region: CheckedRegion,
    layer: LayerId,
    source: LayerId,
    place: Mapping[LayerId, int],
    circle: Mapping[LayerId, int],
) -> bool:
    """Whether what a Parameter takes over is the new value already: that of a part always is, where
    anything reads it.

    That of a carried value is, where it comes first in the port map and is computed from the one
    that takes it over.
    """
    if source in region.given_anew:
        return OutputRef(layer, 0) in region.body.graph.consumers
    return (
        source in place
        and layer in place
        and place[source] < place[layer]
        and circle.get(layer) == circle[source]
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
                advice="It runs here; write the outer one as a Loop for OpenVINO.",
            )


def input_used_twice(subject: Subject) -> Iterator[Finding]:
    """One input of a Loop, TensorIterator or If feeds two Parameters of a body.

    What it does:
        Counts how often each input is taken by the port map of each body.
    Why it matters:
        OpenVINO's CPU gives garbage to the second Parameter, or to what is sliced from the input.
    Example that fails:
        two <input external_port_id="1" .../> in then_port_map
    Example that passes:
        one <input external_port_id="1" .../> and two edges inside the branch; or two ports, with an edge to each
    """
    for region in subject.regions if subject.is_openvino else ():
        fed = {
            (entry.external, entry.internal) for entry in region.body.inputs if entry.external != -1
        }
        for external, count in sorted(Counter(external for external, _ in fed).items()):
            if count > 1:
                yield Finding(
                    subject.where(region.place, region.node, f"input {external}"),
                    f"Input {external} feeds {count} Parameters of the {region.part}: OpenVINO's CPU gets the second one wrong.",
                    found=f"{count} Parameters with external_port_id {external}",
                    expected="one Parameter, or a port for each",
                    advice="Here each of them gets the value; use one Parameter or another port for OpenVINO.",
                )


def stops_early(subject: Subject) -> Iterator[Finding]:
    """A concatenated output can be shorter than OpenVINO declares it.

    What it does:
        Looks for concatenated outputs of Loops with a constant trip count whose condition is computed.
    Why it matters:
        OpenVINO declares the longest length as if it were certain; the real one is the number of iterations.
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
                f"The Loop can stop before {count:,} iterations; OpenVINO declares its concatenated outputs as if it never did.",
                found=trips.words(possible),
                expected=f"{count:,} iterations",
                advice="Here an output is as long as the iterations that ran.",
            )


def counted_as_one(subject: Subject) -> Iterator[Finding]:
    """A Loop's only body output is a condition that is constant false, and its trip count is
    computed.

    What it does:
        Looks for Loops whose execution condition is constant false and whose trip count is not constant.
    Why it matters:
        OpenVINO infers one iteration even when the trip count is 0, and then gives an output that was never written.
    Example that fails:
        execution condition constant false, trip count from an input
    Example that passes:
        execution condition constant false, trip count constant 1
    """
    for region in subject.loops:
        again = execution_condition(subject, region)
        if (
            again is not None
            and scalar_value(again) is False
            and trip_count(subject, region) is None
        ):
            yield Finding(
                subject.where(region.place, region.node),
                "OpenVINO takes this Loop for one iteration, also when the trip count is 0.",
                found="execution condition constant false, computed trip count",
                expected="a computed condition",
                advice="Here a trip count of 0 is zero iterations.",
            )


def minus_one_in_onnx(subject: Subject) -> Iterator[Finding]:
    """An ONNX Loop has the constant trip count -1.

    What it does:
        Looks for negative constant trip counts in ONNX models.
    Why it matters:
        ONNX Runtime runs zero iterations, OpenVINO takes it for no limit, and the ONNX reference fails.
    Example that fails:
        M = -1
    Example that passes:
        no M (an empty name) for no limit
    """
    if subject.is_openvino:
        return
    for region in subject.loops:
        count = trip_count(subject, region)
        given = region.place.graph.sources[region.node.id][:1] != (None,)
        if given and count is not None and count < 0:
            yield Finding(
                subject.where(region.place, region.node, "input 0"),
                f"The trip count is {count}: ONNX Runtime runs zero iterations, OpenVINO any number.",
                found=str(count),
                expected="0 or more, or no trip count at all",
                advice="Leave M out when no limit is meant.",
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
