"""Rules about legal models that are probably not what their author intended."""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.checks import trips
from loopscope.checks.diagnostic import Severity
from loopscope.checks.known import scalar_value
from loopscope.checks.rule import CheckedRegion, Finding, Rule, Subject
from loopscope.errors import shorten
from loopscope.ir.model import IF, BackEdge, Node, OutputRef
from loopscope.ops.declare import Known


def execution_condition(subject: Subject, region: CheckedRegion) -> Known | None:
    """Return the knowledge about the condition that a Loop's body computes."""
    entry = next(
        (entry for entry in region.body.outputs if entry.purpose == "execution_condition"), None
    )
    return None if entry is None else subject.parameter(region, entry.internal)


def trip_count(subject: Subject, region: CheckedRegion) -> int | None:
    """Return a Loop's constant trip count (negative for no limit), or None if it is computed."""
    count = scalar_value(subject.outer(region)[0])
    return None if count is None else int(count)


def endless_loop(subject: Subject) -> Iterator[Finding]:
    """A Loop never ends.

    What it does:
        Looks for Loops with the constant trip count -1, constant true conditions and no sliced
        inputs.
    Why it matters:
        OpenVINO silently compiles such a model, and its inference never returns.
    Example that fails:
        trip count -1, condition constant true
    Example that passes:
        trip count 10, or a condition that the body computes
    """
    for region in subject.loops:
        count, condition = trip_count(subject, region), execution_condition(subject, region)
        starts = scalar_value(subject.outer(region)[1])
        if (
            count is None
            or count >= 0
            or condition is None
            or not scalar_value(condition)
            or starts is False
        ):
            continue
        if not any(entry.axis is not None for entry in region.body.inputs):
            yield Finding(
                subject.where(region.place, region.node),
                "The Loop never ends: it has no limit, and its condition is always true.",
                found=f"trip count {count}, execution condition constant true",
                expected="a trip count, or a condition that becomes false",
                advice="Set an iteration limit before you run it.",
            )


def _unchanged_parameter(region: CheckedRegion, edge: BackEdge) -> Node | None:
    """Return the Parameter that a back edge's Result passes on unchanged, or None."""
    graph = region.body.graph
    sources = graph.sources.get(edge.from_layer, ())
    node = graph.by_id.get(sources[0].layer) if sources and sources[0] else None
    return node if node is not None and node.type == "Parameter" else None


def state_never_changes(subject: Subject) -> Iterator[Finding]:
    """A carried value never changes.

    What it does:
        Looks for back edges whose Result is the Parameter that they feed.
    Why it matters:
        An invariant input is simpler and equivalent; or a computation is missing.
    Example that fails:
        Parameter 2 -> Result 10, and <edge from-layer="10" to-layer="2"/>
    Example that passes:
        Parameter 2 -> Add -> Result 10, and the same back edge
    """
    for region in subject.iterating:
        for edge in region.body.back_edges:
            node = _unchanged_parameter(region, edge)
            if node is not None and node.id == edge.to_layer:
                yield Finding(
                    subject.where(region.body_place, node),
                    f"The carried value {shorten(node.name)!r} never changes.",
                    found="a back edge from the Parameter to itself",
                    expected="a value that the body computes",
                    advice="Harmless.",
                )


def state_never_read(subject: Subject) -> Iterator[Finding]:
    """A carried value is never read.

    What it does:
        Looks for carried Parameters that nothing in the body uses.
    Why it matters:
        Carrying the value costs time without any effect; or an edge is missing.
    Example that fails:
        a back edge to Parameter 2, and no edge from it
    Example that passes:
        a back edge to Parameter 2, and an Add that uses it
    """
    for region in subject.iterating:
        for edge in region.body.back_edges:
            node = region.body.graph.by_id.get(edge.to_layer)
            if (
                node is not None
                and node.type == "Parameter"
                and OutputRef(node.id, 0) not in region.body.graph.consumers
            ):
                yield Finding(
                    subject.where(region.body_place, node),
                    f"The carried value {shorten(node.name)!r} is never read.",
                    found="a back edge to a Parameter that nothing uses",
                    expected="a layer of the body that uses it",
                    advice="Harmless.",
                )


def growing_state(subject: Subject) -> Iterator[Finding]:
    """A carried value has another shape than its Parameter declares.

    What it does:
        Compares the static declared shape of a carried Parameter with the shape of the Result that
        is carried to it.
    Why it matters:
        The declaration is true only for the first iteration; tools that rely on it allocate too
        little memory.
    Example that fails:
        <data shape="1"/> for a Parameter that grows by one element in each iteration
    Example that passes:
        <data shape="?"/>
    """
    for region in subject.iterating:
        for edge in region.body.back_edges:
            node = region.body.graph.by_id.get(edge.to_layer)
            if (
                node is None
                or node.type != "Parameter"
                or not node.outputs
                or not node.outputs[0].shape.is_static
            ):
                continue
            declared = node.outputs[0].shape
            carried = subject.parameter(region, edge.from_layer).shape
            if carried.dimensions is not None and declared.intersect(carried) != carried:
                yield Finding(
                    subject.where(region.body_place, node),
                    f"The carried value {shorten(node.name)!r} is declared {declared}, but is "
                    f"{carried} after an iteration.",
                    found=f"declared {declared}",
                    expected="a declaration that is true for every iteration, such as "
                    + str(declared.unite(carried)),
                    advice="Loopscope allows any shape; declare the changing lengths as '?'.",
                )


def impossible_declared_length(subject: Subject) -> Iterator[Finding]:
    """An output of a node with bodies declares a shape that it cannot have.

    What it does:
        Compares the declared shapes of a node's outputs with those that follow from its bodies and
        the possible trip counts.
    Why it matters:
        The trip count or the port dimensions were edited by hand. Loopscope and OpenVINO use the
        computed shape.
    Example that fails:
        <dim>7</dim> for an output that concatenates 4 iterations
    Example that passes:
        <dim>4</dim>
    """
    for region in subject.regions:
        if region.body is not region.node.bodies[0] or len(region.body.outer_outputs) != len(
            region.node.outputs
        ):
            continue
        for index, port in enumerate(region.node.outputs):
            known = subject.propagated.output(region.place.address, region.node.id, index)
            differs = port.element_type is not None and known.element_type not in (
                None,
                port.element_type,
            )
            if differs or port.shape.intersect(known.shape) is None:
                declared = f"{port.element_type or '?'} {port.shape}"
                follows = f"{known.element_type or '?'} {known.shape}"
                yield Finding(
                    subject.where(region.place, region.node, f"output {index}"),
                    f"Output {index} is declared {declared}, but it is {follows}.",
                    found=declared,
                    expected=follows + _trip_count_note(subject, region),
                    advice="The declaration is ignored, as in OpenVINO.",
                )


def _trip_count_note(subject: Subject, region: CheckedRegion) -> str:
    if region not in subject.iterating:
        return ""
    count = subject.trips(region)
    return f" ({trips.words(count)})" if count.most is not None else ""


def unused_result(subject: Subject) -> Iterator[Finding]:
    """The outputs of a layer are unused.

    What it does:
        Looks for layers whose outputs are all unused.
    Why it matters:
        The layer costs time without any effect; or an edge is missing.
    Example that fails:
        an Add without an edge from it
    Example that passes:
        an Add with an edge to a Result
    """
    for place in subject.places:
        used = {source.layer for source in place.graph.consumers}
        for node in place.graph.nodes:
            if (
                node.outputs
                and node.id not in used
                and node.type not in ("Parameter", "Result", "Assign")
            ):
                yield Finding(
                    subject.where(place, node),
                    f"The outputs of {shorten(node.name)!r} are unused.",
                    found="no edge from this layer",
                    expected="at least one edge, or no layer",
                    advice="Harmless.",
                )


def unused_input(subject: Subject) -> Iterator[Finding]:
    """An input of the model is unused.

    What it does:
        Looks for Parameters of the outermost graph without an edge from them.
    Why it matters:
        Every run requires the input, but it has no effect.
    Example that fails:
        a Parameter without an edge from it
    Example that passes:
        a Parameter that an Add uses
    """
    place = subject.places[0]
    used = {source.layer for source in place.graph.consumers}
    for node in place.graph.parameters:
        if node.id not in used:
            yield Finding(
                subject.where(place, node),
                f"The model's input {shorten(node.name)!r} is unused.",
                found="no edge from this Parameter",
                expected="at least one edge",
                advice="Harmless.",
            )


def dead_output(subject: Subject) -> Iterator[Finding]:
    """An output of a loop or If is unused, although other outputs are used.

    What it does:
        Looks for single outputs without an edge: concatenated outputs of a loop, and outputs of an
        If.
    Why it matters:
        The output is computed and stored for every iteration without any use; or an edge is
        missing.
    Example that fails:
        a Loop that concatenates the scores of all iterations, of which only the last state is used
    Example that passes:
        the same Loop without that output
    """
    for region in subject.regions:
        if region.body is not region.node.bodies[0]:
            continue
        unused = [
            number for number in range(len(region.node.outputs)) if not _is_used(region, number)
        ]
        for number, entry in enumerate(region.body.outer_outputs):
            if (
                number in unused
                and len(unused) < len(region.node.outputs)
                and (entry.axis is not None or region.node.type == IF)
            ):
                cost = (
                    "all iterations are concatenated"
                    if entry.axis is not None
                    else "both branches compute it"
                )
                yield Finding(
                    subject.where(region.place, region.node, f"output {number}"),
                    f"Output {number} of this {region.node.type} is unused, although {cost}.",
                    found="no edge from this output",
                    expected="at least one edge, or no such output",
                    advice="Harmless, but costs time and memory.",
                )


def _is_used(region: CheckedRegion, number: int) -> bool:
    return OutputRef(region.node.id, number) in region.place.graph.consumers


def loop_never_repeats(subject: Subject) -> Iterator[Finding]:
    """A Loop's condition is constant false.

    What it does:
        Looks for Loops whose body computes a constant false condition.
    Why it matters:
        The body runs at most once, so no Loop is needed.
    Example that fails:
        an execution condition that is constant false
    Example that passes:
        an execution condition that the body computes
    """
    for region in subject.loops:
        condition = execution_condition(subject, region)
        if condition is not None and scalar_value(condition) is False:
            yield Finding(
                subject.where(region.place, region.node),
                "The Loop's body runs at most once: its condition is always false.",
                found="execution condition constant false",
                expected="a condition that can be true",
                advice="Harmless.",
            )


def never_runs(subject: Subject) -> Iterator[Finding]:
    """A body never runs.

    What it does:
        Looks for bodies that cannot run because of a constant: a trip count of 0, a false initial
        condition, or the untaken branch of an If.
    Why it matters:
        The layers of the body are never used.
    Example that fails:
        an If whose condition is a constant
    Example that passes:
        an If whose condition is computed
    """
    for region in subject.regions:
        if (
            region.body_place.address in subject.never_run
            and region.place.address not in subject.never_run
        ):
            yield Finding(
                subject.where(region.place, region.node),
                f"The {region.part} of this {region.node.type} never runs.",
                found="a constant condition or trip count",
                expected="a computed condition or trip count",
                advice="Harmless.",
            )


RULES = (
    Rule("LS801", "endless-loop", Severity.WARNING, endless_loop),
    Rule("LS802", "state-never-changes", Severity.NOTE, state_never_changes, is_habit=True),
    Rule("LS803", "state-never-read", Severity.NOTE, state_never_read, is_habit=True),
    Rule("LS804", "growing-state", Severity.NOTE, growing_state),
    Rule("LS805", "impossible-declared-length", Severity.WARNING, impossible_declared_length),
    Rule("LS806", "unused-result", Severity.NOTE, unused_result, is_habit=True),
    Rule("LS807", "loop-never-repeats", Severity.NOTE, loop_never_repeats),
    Rule("LS808", "never-runs", Severity.NOTE, never_runs),
    Rule("LS809", "unused-input", Severity.NOTE, unused_input, is_habit=True),
    Rule("LS810", "dead-output", Severity.NOTE, dead_output, is_habit=True),
)
