"""Rules about what a body hands through or does not use, which OpenVINO 2026.4's CPU does
differently.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.order import dependencies
from loopscope.checks.rule import OPENVINO, Finding, Rule
from loopscope.checks.subject import CheckedRegion, Subject
from loopscope.errors import listed
from loopscope.ir.model import LayerId, OutputMap, OutputRef
from loopscope.ir.shape import static


def idle_slices(subject: Subject) -> Iterator[Finding]:
    """Nothing that a TensorIterator's body gives is computed from its sliced inputs.

    What it does:
        Looks for TensorIterators none of whose sliced inputs reaches a Result of the body, directly or by way of other layers. Results
        do not count that only make unused outputs.
    Why it matters:
        The number of iterations is that of the parts. OpenVINO's CPU drops inputs that nothing uses, and runs one iteration.
    Example that fails:
        a body that adds 1 to a state, with a sliced input only to count
    Example that passes:
        the same as a Loop with a trip count
    """
    for region in subject.tensor_iterators:
        graph = region.body.graph
        parts = {entry.internal for entry in region.body.inputs if entry.axis is not None}
        if not parts or subject.trips(region) == static(1):
            continue
        if not parts & dependencies(graph, *_needed(region)):
            names = listed(
                [graph.by_id[layer].name for layer in sorted(parts) if layer in graph.by_id]
            )
            yield Finding(
                subject.where(region.place, region.node),
                f"No Result of the body is computed from {names}: OpenVINO's CPU drops the slices, and runs one iteration.",
                found=f"no way from {names} to a Result",
                expected="a Result that a sliced input reaches, or a Loop with a trip count",
                advice="Here it runs an iteration for each part.",
            )


def _needed(region: CheckedRegion) -> Iterator[LayerId]:
    """The Results of a body without those that only make unused outputs."""
    made, back = _outputs(region), {edge.from_layer for edge in region.body.back_edges}
    for result in region.body.graph.results:
        sources = [OutputRef(region.node.id, index) for index, _ in made.get(result.id, ())]
        if (
            result.id in back
            or not sources
            or any(source in region.place.graph.consumers for source in sources)
        ):
            yield result.id


def unchanged_last_value(subject: Subject) -> Iterator[Finding]:
    """The last value of something that a body does not change is the last of several outputs of its
    Result.

    What it does:
        Looks for Results that are a Parameter of the body as it came (an input that is not sliced, and goes back only to itself) and
        that make several outputs, of which the one with the greatest port number is the last value.
    Why it matters:
        OpenVINO replaces the output by what entered, and forgets that others need its Result: its CPU dies when it compiles the model.
    Example that fails:
        output 4 joins what Result 8 gives, output 5 is its last value, and Result 8 is Parameter 2
    Example that passes:
        the same with output 4 as the last value and output 5 joined, or with 0 added to Parameter 2
    """
    for region in subject.iterating:
        for result, made in _outputs(region).items():
            entries = [entry for _, entry in made]
            if len(entries) > 1 and entries[-1].axis is None and _is_unchanged(region, result):
                name = region.body.graph.by_id[result].name
                yield Finding(
                    subject.where(region.place, region.node, f"output {entries[-1].external}"),
                    f"{name} is what entered, and its last value comes after its other outputs: OpenVINO's CPU dies of it.",
                    found=f"outputs {', '.join(str(entry.external) for entry in entries)} from {name}, which nothing changes",
                    expected="the last value before the others, a Result of its own for it, or a computation in between",
                    advice="It runs here; for OpenVINO take the value that entered the loop in place of its last value.",
                )


def half_used_result(subject: Subject) -> Iterator[Finding]:
    """Of several outputs that a Loop or TensorIterator makes of one Result, some are used and
    others are not.

    What it does:
        Looks for Results of bodies that make several outputs, of which some have edges and others have none, and that do not go back.
    Why it matters:
        OpenVINO drops an unused output together with its Result: it refuses the model, crashes, or gives other outputs in place of
        those that are used.
    Example that fails:
        outputs 4 (the last value) and 5 (joined) of Result 8, and edges from output 5 only
    Example that passes:
        edges from both outputs, or a Result of its own for each
    """
    for region in subject.iterating if subject.is_openvino else ():
        consumers, back = (
            region.place.graph.consumers,
            {edge.from_layer for edge in region.body.back_edges},
        )
        for result, made in _outputs(region).items():
            unused = [
                entry.external
                for index, entry in made
                if OutputRef(region.node.id, index) not in consumers
            ]
            if 0 < len(unused) < len(made) and result not in back:
                name, numbers = region.body.graph.by_id[result].name, ", ".join(map(str, unused))
                yield Finding(
                    subject.where(region.place, region.node, f"output {unused[0]}"),
                    f"Output {numbers} is unused, others of the same Result {name} are used: OpenVINO's CPU drops it, and fails or errs.",
                    found=f"outputs {', '.join(str(entry.external) for _, entry in made)} from {name}, and no edge from {numbers}",
                    expected="edges from all of them, or a Result of its own for each",
                    advice="It does no harm here; remove the unused output.",
                )


def condition_that_nobody_reads(subject: Subject) -> Iterator[Finding]:
    """The condition of an If is handed to Parameters of its branches, and nothing reads them or it
    is a constant.

    What it does:
        Looks for port map entries of branches that take input 0, the condition, to Parameters without edges, or of an If of which one
        branch never runs.
    Why it matters:
        OpenVINO drops unread values, and constants that branches compute with, here the condition itself: its CPU then runs the wrong
        branch, or refuses the model.
    Example that fails:
        <input external_port_id="0" internal_layer_id="5"/> in then_port_map, and no edge from layer 5 of the branch
    Example that passes:
        the same without the entry, or with an edge from layer 5 and a computed condition
    """
    for place, node in subject.ifs if subject.is_openvino else ():
        taken = [
            (body, entry.internal)
            for body in node.bodies
            for entry in body.inputs
            if entry.external == 0
        ]
        names = listed(
            [body.graph.by_id[layer].name for body, layer in taken if layer in body.graph.by_id]
        )
        if taken and any(
            region.within.address in subject.never_run for region in subject.regions_of(node)
        ):
            yield Finding(
                subject.where(place, node, "input 0"),
                f"The condition is a constant and also handed to {names}: OpenVINO's CPU may drop it, and run the wrong branch or fail.",
                found="an entry with external_port_id 0, and a constant condition",
                expected="no such entry, or a computed condition",
                advice="It does no harm here; feed the Parameter from an input of its own.",
            )
        elif taken and not any(
            OutputRef(layer, 0) in body.graph.consumers for body, layer in taken
        ):
            yield Finding(
                subject.where(place, node, "input 0"),
                f"The condition is also handed to {names}, which nothing reads: OpenVINO's CPU drops it, and always runs the else branch.",
                found=f"an entry with external_port_id 0, and no edge from {names}",
                expected="no such entry, or a branch that reads it",
                advice="It does no harm here; remove the entry and the Parameter.",
            )


def _outputs(region: CheckedRegion) -> dict[LayerId, list[tuple[int, OutputMap]]]:
    """By Result the outputs that it makes, in order, each with its place among the node's
    outputs; those without a port are left out.
    """
    made: dict[LayerId, list[tuple[int, OutputMap]]] = {}
    entries = sorted(
        (entry for entry in region.body.outputs if entry.external != -1),
        key=lambda one: one.external,
    )
    for index, entry in enumerate(entries):
        if entry.internal in region.body.graph.by_id and index < len(region.node.outputs):
            made.setdefault(entry.internal, []).append((index, entry))
    return made


def _is_unchanged(region: CheckedRegion, result: LayerId) -> bool:
    """Whether a Result is a Parameter that has the same value in every iteration."""
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


RULES = (
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
