"""Rules about loops that OpenVINO 2026.4's CPU computes differently.

They have no iterations, or body values that are unchanged or unused.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.checks import trips
from loopscope.checks.diagnostic import Severity
from loopscope.checks.known import scalar_value
from loopscope.checks.order import dependencies
from loopscope.checks.rule import OPENVINO, CheckedRegion, Finding, Rule, Subject
from loopscope.errors import listed
from loopscope.ir.model import LayerId, OutputMap, OutputRef
from loopscope.ir.shape import static


def idle_slices(subject: Subject) -> Iterator[Finding]:
    """No output of a TensorIterator's body is computed from its sliced inputs.

    What it does:
        Looks for TensorIterators whose sliced inputs do not reach any Result of the body, directly
        or through other layers. Results are ignored if all their outputs are unused.
    Why it matters:
        The number of slices is the number of iterations. OpenVINO's CPU removes unused inputs, and
        runs one iteration.
    Example that fails:
        a body that adds 1 to a state, with a sliced input only for counting
    Example that passes:
        the same as a Loop with a trip count
    """
    for region in subject.tensor_iterators:
        graph = region.body.graph
        parts = {entry.internal for entry in region.body.inputs if entry.axis is not None}
        if not parts or subject.trips(region) == static(1):
            continue
        if not parts & dependencies(graph, *_needed_results(region)):
            names = listed(
                [graph.by_id[layer].name for layer in sorted(parts) if layer in graph.by_id]
            )
            yield Finding(
                subject.where(region.place, region.node),
                f"No Result of the body is computed from {names}: OpenVINO's CPU removes the "
                "slices and runs one iteration.",
                found=f"no path from {names} to a Result",
                expected="a Result that a sliced input reaches, or a Loop with a trip count",
                advice="Loopscope runs an iteration for each slice.",
            )


def _needed_results(region: CheckedRegion) -> Iterator[LayerId]:
    """Yield the Results of a body except those whose outputs are all unused."""
    outputs, back = _outputs_by_result(region), {edge.from_layer for edge in region.body.back_edges}
    for result in region.body.graph.results:
        sources = [OutputRef(region.node.id, index) for index, _ in outputs.get(result.id, ())]
        if (
            result.id in back
            or not sources
            or any(source in region.place.graph.consumers for source in sources)
        ):
            yield result.id


def unchanged_last_value(subject: Subject) -> Iterator[Finding]:
    """An unchanged value is an output after other outputs of the same Result.

    What it does:
        Looks for Results that are an unchanged Parameter of the body (not sliced, and carried only
        to itself) and that feed several outputs. The output with the greatest port number is the
        last value.
    Why it matters:
        OpenVINO replaces the output by the initial value and ignores that other outputs use its
        Result. Its CPU crashes when it compiles the model.
    Example that fails:
        output 4 concatenates Result 8, output 5 is its last value, and Result 8 is Parameter 2
    Example that passes:
        the same with output 4 as the last value and output 5 concatenated, or with 0 added to
        Parameter 2
    """
    for region in subject.iterating:
        for result, outputs in _outputs_by_result(region).items():
            entries = [entry for _, entry in outputs]
            if len(entries) > 1 and entries[-1].axis is None and _is_unchanged(region, result):
                name = region.body.graph.by_id[result].name
                yield Finding(
                    subject.where(region.place, region.node, f"output {entries[-1].external}"),
                    f"{name} is unchanged, and its last value follows its other outputs: "
                    "OpenVINO's CPU crashes.",
                    found=f"outputs {', '.join(str(entry.external) for entry in entries)} from "
                    f"{name}, which nothing changes",
                    expected="the last value before the others, a separate Result for it, or a "
                    "computation between them",
                    advice="Loopscope runs it; for OpenVINO use the initial value instead of the "
                    "last value.",
                )


def half_used_result(subject: Subject) -> Iterator[Finding]:
    """Some outputs of one Result of a Loop or TensorIterator are used, and others are not.

    What it does:
        Looks for body Results that feed several outputs, of which some have edges and others have
        none. Results with a back edge are excluded.
    Why it matters:
        OpenVINO removes an unused output together with its Result. It then refuses the model,
        crashes, or swaps the used outputs for others.
    Example that fails:
        outputs 4 (the last value) and 5 (concatenated) of Result 8, and edges from output 5 only
    Example that passes:
        edges from both outputs, or a separate Result for each
    """
    for region in subject.iterating if subject.is_openvino else ():
        consumers = region.place.graph.consumers
        back = {edge.from_layer for edge in region.body.back_edges}
        for result, outputs in _outputs_by_result(region).items():
            unused = [
                entry.external
                for index, entry in outputs
                if OutputRef(region.node.id, index) not in consumers
            ]
            if 0 < len(unused) < len(outputs) and result not in back:
                name, numbers = region.body.graph.by_id[result].name, ", ".join(map(str, unused))
                yield Finding(
                    subject.where(region.place, region.node, f"output {unused[0]}"),
                    f"Output {numbers} is unused, but others of the same Result {name} are used: "
                    "OpenVINO's CPU removes it, and fails or returns wrong outputs.",
                    found=f"outputs {', '.join(str(entry.external) for _, entry in outputs)} from "
                    f"{name}, and no edge from {numbers}",
                    expected="edges from all of them, or a separate Result for each",
                    advice="Harmless in Loopscope; remove the unused output.",
                )


def condition_that_nobody_reads(subject: Subject) -> Iterator[Finding]:
    """The condition of an If is also passed to its branches, and is unread there or constant.

    What it does:
        Looks for port map entries of branches that pass input 0, the condition, to Parameters
        without edges. It also looks for such entries of an If with one branch that never runs.
    Why it matters:
        OpenVINO removes unread values, and constants that branches read, here the condition itself.
        Its CPU then runs the wrong branch, or refuses the model.
    Example that fails:
        <input external_port_id="0" internal_layer_id="5"/> in then_port_map, and no edge from layer
        5 of the branch
    Example that passes:
        the same without the entry, or with an edge from layer 5 and a computed condition
    """
    for place, node in subject.ifs if subject.is_openvino else ():
        condition_inputs = [
            (body, entry.internal)
            for body in node.bodies
            for entry in body.inputs
            if entry.external == 0
        ]
        names = listed(
            [
                body.graph.by_id[layer].name
                for body, layer in condition_inputs
                if layer in body.graph.by_id
            ]
        )
        if condition_inputs and any(
            region.body_place.address in subject.never_run for region in subject.regions_of(node)
        ):
            yield Finding(
                subject.where(place, node, "input 0"),
                f"The condition is a constant that is also passed to {names}: OpenVINO's CPU may "
                "remove it, and run the wrong branch or fail.",
                found="an entry with external_port_id 0, and a constant condition",
                expected="no such entry, or a computed condition",
                advice="Harmless in Loopscope; feed the Parameter from a separate input.",
            )
        elif condition_inputs and not any(
            OutputRef(layer, 0) in body.graph.consumers for body, layer in condition_inputs
        ):
            yield Finding(
                subject.where(place, node, "input 0"),
                f"The condition is also passed to {names}, which nothing reads: OpenVINO's CPU "
                "removes it, and always runs the else branch.",
                found=f"an entry with external_port_id 0, and no edge from {names}",
                expected="no such entry, or a branch that reads it",
                advice="Harmless in Loopscope; remove the entry and the Parameter.",
            )


def _outputs_by_result(region: CheckedRegion) -> dict[LayerId, list[tuple[int, OutputMap]]]:
    """Return the outputs of each Result in port order, with their index among the node's outputs.
    Outputs without a port are left out.
    """
    by_result: dict[LayerId, list[tuple[int, OutputMap]]] = {}
    entries = sorted(
        (entry for entry in region.body.outputs if entry.external != -1),
        key=lambda entry: entry.external,
    )
    for index, entry in enumerate(entries):
        if entry.internal in region.body.graph.by_id and index < len(region.node.outputs):
            by_result.setdefault(entry.internal, []).append((index, entry))
    return by_result


def _is_unchanged(region: CheckedRegion, result: LayerId) -> bool:
    """Return True if a Result is a Parameter that has the same value in every iteration."""
    source = (region.body.graph.sources.get(result) or (None,))[0]
    if source is None:
        return False
    fed = [entry for entry in region.body.inputs if entry.internal == source.layer]
    back = [edge.from_layer for edge in region.body.back_edges if edge.to_layer == source.layer]
    return (
        bool(fed)
        and all(entry.axis is None and not entry.is_iteration_number for entry in fed)
        and set(back) <= {result}
    )


BODY_VALUE_RULES = (
    Rule("LS915", "idle-slices", Severity.WARNING, idle_slices, runtimes=OPENVINO),
    Rule(
        "LS916", "unchanged-last-value", Severity.WARNING, unchanged_last_value, runtimes=OPENVINO
    ),
    Rule("LS917", "half-used-result", Severity.WARNING, half_used_result, runtimes=OPENVINO),
    Rule(
        "LS918",
        "condition-that-nobody-reads",
        Severity.WARNING,
        condition_that_nobody_reads,
        runtimes=OPENVINO,
    ),
)


def stale_output(subject: Subject) -> Iterator[Finding]:
    """A concatenated output can be empty, because the Loop can run no iterations.

    What it does:
        Looks for concatenated outputs of Loops whose trip count may be 0.
    Why it matters:
        The outputs are empty then. OpenVINO's CPU returns the data of the previous run if the
        compiled model ran before.
    Example that fails:
        a trip count that is an input of the model
    Example that passes:
        a constant trip count above 0, initial condition constant true
    """
    for region in subject.loops:
        joined = any(
            entry.axis is not None and entry.external != -1 for entry in region.body.outputs
        )
        if joined and subject.trips(region).least == 0:
            yield Finding(
                subject.where(region.place, region.node),
                "Without iterations the concatenated outputs are empty; a compiled OpenVINO model "
                "may return those of the previous run.",
                found=trips.words(subject.trips(region)),
                expected="at least one iteration",
                advice="Compile the model again before you compare with OpenVINO.",
            )


def false_start(subject: Subject) -> Iterator[Finding]:
    """The initial condition of a Loop is constant false.

    What it does:
        Looks for Loops whose input 1 is constant false.
    Why it matters:
        No iteration runs, and states have their initial values. OpenVINO's CPU fails if there are
        concatenated outputs, and otherwise returns states without elements.
    Example that fails:
        initial condition constant false
    Example that passes:
        an initial condition that is an input of the model
    """
    for region in subject.loops:
        if scalar_value(subject.outer(region)[1]) is False:
            yield Finding(
                subject.where(region.place, region.node, "input 1"),
                "The initial condition is constant false: OpenVINO's CPU fails, or returns states "
                "without elements.",
                found="initial condition false",
                expected="a computed condition",
                advice="Loopscope runs zero iterations, as specified.",
            )


def unread_state(subject: Subject) -> Iterator[Finding]:
    """The last value of an unread state is an output of a Loop that can run no iterations.

    What it does:
        Looks for carried values that nothing in the body uses and whose last value is an output, in
        Loops whose trip count may be 0.
    Why it matters:
        Without iterations the output is the initial value. OpenVINO's CPU drops the initial value
        of an unread state, and returns zeros.
    Example that fails:
        trip count from an input, a back edge to Parameter 2 and an output of its Result, and no
        edge from Parameter 2
    Example that passes:
        the same with an Add that uses Parameter 2
    """
    for region in subject.loops:
        graph = region.body.graph
        last = {
            entry.internal
            for entry in region.body.outputs
            if entry.axis is None and entry.external != -1
        }
        unread = [
            graph.by_id[edge.to_layer].name
            for edge in region.body.back_edges
            if edge.from_layer in last
            and edge.to_layer in graph.by_id
            and OutputRef(edge.to_layer, 0) not in graph.consumers
        ]
        if unread and subject.trips(region).least == 0:
            yield Finding(
                subject.where(region.place, region.node),
                f"Without iterations OpenVINO's CPU returns zeros for {listed(unread)} instead of "
                "the initial value.",
                found=f"{trips.words(subject.trips(region))}, and a state that nothing reads",
                expected="at least one iteration, or a layer of the body that uses the state",
                advice="Loopscope returns the initial value.",
            )


ZERO_ITERATIONS_RULES = (
    Rule("LS912", "stale-output", Severity.NOTE, stale_output, runtimes=OPENVINO),
    Rule("LS913", "false-start", Severity.WARNING, false_start, runtimes=OPENVINO),
    Rule("LS914", "unread-state", Severity.WARNING, unread_state, runtimes=OPENVINO),
)
