"""Rules about back edges, which carry values from one iteration to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import OPENVINO, CheckedRegion, Finding, Rule, Subject
from loopscope.errors import Where, shorten
from loopscope.ir.model import LOOP, TENSOR_ITERATOR, BackEdge, LayerId
from loopscope.ops.declare import Known


def _where(subject: Subject, region: CheckedRegion, edge: BackEdge) -> Where:
    return subject.where(
        region.place, region.node, f"back edge from {edge.from_layer} to {edge.to_layer}"
    )


def _edge_xml(edge: BackEdge) -> str:
    return f'<edge from-layer="{edge.from_layer}" to-layer="{edge.to_layer}">'


def _wrong_type_clause(region: CheckedRegion, layer: LayerId, type: str) -> str:
    """Return a clause that describes a body layer if it does not have the given type, or ""."""
    node = region.body.graph.by_id.get(layer)
    if node is None:
        return "which the body does not have"
    return "" if node.type == type else f"which is of type {shorten(node.type, 40)}"


def back_edge_from_no_result(subject: Subject) -> Iterator[Finding]:
    """A back edge does not start at a Result of the body.

    What it does:
        Looks up from-layer of every back edge among the Results of the body.
    Why it matters:
        The back edge has no value to carry. OpenVINO refuses such a file.
    Example that fails:
        <edge from-layer="7" to-layer="2"/>, and layer 7 is an Add
    Example that passes:
        <edge from-layer="10" to-layer="2"/>, and layer 10 is a Result
    """
    for region in subject.regions:
        for edge in region.body.back_edges:
            if clause := _wrong_type_clause(region, edge.from_layer, "Result"):
                yield Finding(
                    _where(subject, region, edge),
                    f"A back edge starts at layer {edge.from_layer}, {clause}.",
                    found=_edge_xml(edge),
                    expected="the id of a Result of the body",
                    advice="Correct from-layer, or remove the back edge.",
                )


def back_edge_to_no_parameter(subject: Subject) -> Iterator[Finding]:
    """A back edge does not end at a Parameter of the body.

    What it does:
        Looks up to-layer of every back edge among the Parameters of the body.
    Why it matters:
        The file declares a carried value, but nothing is carried. OpenVINO ignores such a back
        edge.
    Example that fails:
        <edge from-layer="10" to-layer="7"/>, and layer 7 is an Add
    Example that passes:
        <edge from-layer="10" to-layer="2"/>, and layer 2 is a Parameter
    """
    for region in subject.regions:
        for edge in region.body.back_edges:
            if clause := _wrong_type_clause(region, edge.to_layer, "Parameter"):
                yield Finding(
                    _where(subject, region, edge),
                    f"A back edge ends at layer {edge.to_layer}, {clause}.",
                    found=_edge_xml(edge),
                    expected="the id of a Parameter of the body",
                    advice="The back edge is ignored, as OpenVINO does; correct to-layer.",
                )


def several_back_edges(subject: Subject) -> Iterator[Finding]:
    """Several back edges end at one Parameter.

    What it does:
        Counts the back edges into each Parameter.
    Why it matters:
        A Parameter has one value at the start of an iteration.
    Example that fails:
        <edge from-layer="10" to-layer="2"/> <edge from-layer="11" to-layer="2"/>
    Example that passes:
        <edge from-layer="10" to-layer="2"/> <edge from-layer="11" to-layer="3"/>
    """
    for region in subject.regions:
        for layer, count in Counter(edge.to_layer for edge in region.body.back_edges).items():
            if count > 1:
                edges = [edge for edge in region.body.back_edges if edge.to_layer == layer]
                yield Finding(
                    _where(subject, region, edges[0]),
                    f"{count} back edges end at Parameter {layer}.",
                    found=" ".join(_edge_xml(edge) for edge in edges[:4]),
                    expected="one back edge for each Parameter",
                    advice="The first one is used, as in OpenVINO; remove the others.",
                )


def back_edge_to_part(subject: Subject) -> Iterator[Finding]:
    """A back edge ends at a Parameter that receives slices of a tensor.

    What it does:
        Looks at the port map entry of the Parameter that each back edge ends at.
    Why it matters:
        The Parameter would have two values from the second iteration on. The slice is used, in
        OpenVINO too.
    Example that fails:
        <input axis="0" external_port_id="2" internal_layer_id="1"/> and <edge from-layer="10"
        to-layer="1"/>
    Example that passes:
        <input external_port_id="2" internal_layer_id="1"/> and <edge from-layer="10" to-layer="1"/>
    """
    for region in subject.iterating:
        for edge in region.body.back_edges:
            entry = region.entry_of.get(edge.to_layer)
            if entry is not None and entry.axis is not None and not entry.is_iteration_number:
                yield Finding(
                    _where(subject, region, edge),
                    f"A back edge ends at Parameter {edge.to_layer}, which receives a slice of a "
                    "tensor in each iteration.",
                    found=_edge_xml(edge),
                    expected="a carried Parameter that is not sliced",
                    advice="The back edge is ignored.",
                )


def carried_without_initial_value(subject: Subject) -> Iterator[Finding]:
    """A carried Parameter has no initial value.

    What it does:
        Looks for back edges to Parameters without an outer input.
    Why it matters:
        The specification does not define the value in the first iteration. OpenVINO uses zero.
    Example that fails:
        <edge from-layer="10" to-layer="2"/> without a port map input for Parameter 2
    Example that passes:
        the same with <input external_port_id="3" internal_layer_id="2"/>
    """
    for region in subject.iterating:
        for edge in region.body.back_edges:
            entry = region.entry_of.get(edge.to_layer)
            node = region.body.graph.by_id.get(edge.to_layer)
            if (
                node is None
                or node.type != "Parameter"
                or (entry and (entry.external != -1 or entry.is_iteration_number))
            ):
                continue
            yield Finding(
                _where(subject, region, edge),
                f"Parameter {shorten(node.name)!r} is carried, but has no initial value.",
                found="no outer input for it",
                expected="a port map input with an external_port_id",
                advice="The initial value is zero in the declared shape, as in OpenVINO.",
            )


def _differing_types(
    subject: Subject, region: CheckedRegion, edge: BackEdge, outer: Sequence[Known]
) -> tuple[str, str] | None:
    """Return the element types of the initial and the carried value if they are known to differ."""
    entry = region.entry_of.get(edge.to_layer)
    if entry is None or entry.axis is not None or not 0 <= entry.external < len(outer):
        return None
    first = outer[entry.external].element_type
    carried = subject.parameter(region, edge.from_layer).element_type
    return (
        (str(first), str(carried))
        if first is not None and carried is not None and first is not carried
        else None
    )


def back_edge_type(subject: Subject) -> Iterator[Finding]:
    """A carried value of a Loop or Scan changes its element type.

    What it does:
        Compares the element type of the initial value with that of the Result where the back edge
        starts.
    Why it matters:
        The body cannot be valid for both types. OpenVINO fails when it runs such a model.
    Example that fails:
        an initial value of i64, and a Result of f32
    Example that passes:
        both f32
    """
    for region in subject.regions:
        if region.node.type in (LOOP, "Scan"):
            yield from _type_findings(subject, region)


def back_edge_type_of_iterator(subject: Subject) -> Iterator[Finding]:
    """A carried value of a TensorIterator changes its element type.

    What it does:
        Compares the element type of the initial value with that of the Result where the back edge
        starts.
    Why it matters:
        The body cannot be valid for both types. OpenVINO runs such a model and converts the initial
        value.
    Example that fails:
        an initial value of i64, and a Result of f32
    Example that passes:
        both f32
    """
    for region in subject.tensor_iterators:
        yield from _type_findings(subject, region)


def _type_findings(subject: Subject, region: CheckedRegion) -> Iterator[Finding]:
    outer = subject.outer(region)
    for edge in region.body.back_edges:
        types = _differing_types(subject, region, edge, outer)
        if types:
            yield Finding(
                _where(subject, region, edge),
                f"The carried value starts as {types[0]} and becomes {types[1]} in the body.",
                found=f"initial value {types[0]}, Result {types[1]}",
                expected="one element type",
                advice="Convert one of them."
                if region.node.type != TENSOR_ITERATOR
                else "Convert the initial value before the TensorIterator.",
            )


def back_edge_rank(subject: Subject) -> Iterator[Finding]:
    """A carried value changes its number of dimensions.

    What it does:
        Compares the rank of the initial value with that of the Result where the back edge starts.
    Why it matters:
        The rank of the carried value is unknown then, and OpenVINO's CPU does not run the model.
    Example that fails:
        an initial value of shape [3], and a Result of shape [1,3]
    Example that passes:
        an initial value of shape [1,3], and a Result of shape [2,3]
    """
    for region in subject.iterating:
        outer = subject.outer(region)
        for edge in region.body.back_edges:
            entry = region.entry_of.get(edge.to_layer)
            if entry is None or entry.axis is not None or not 0 <= entry.external < len(outer):
                continue
            first = outer[entry.external].shape
            carried = subject.parameter(region, edge.from_layer).shape
            if first.rank is not None and carried.rank is not None and first.rank != carried.rank:
                yield Finding(
                    _where(subject, region, edge),
                    f"The carried value starts with shape {first} and has shape {carried} after "
                    "an iteration.",
                    found=f"rank {first.rank}, then {carried.rank}",
                    expected="one rank",
                    advice="Reshape one of them.",
                )


def back_edge_to_iteration_number(subject: Subject) -> Iterator[Finding]:
    """A back edge ends at the Parameter that receives the iteration number.

    What it does:
        Looks for back edges to a Parameter whose port map entry has the purpose current_iteration.
    Why it matters:
        The Parameter would have two values in every iteration. OpenVINO refuses such a file.
    Example that fails:
        <input external_port_id="-1" internal_layer_id="0" purpose="current_iteration"/> and <edge
        from-layer="10" to-layer="0"/>
    Example that passes:
        <edge from-layer="10" to-layer="2"/>, and Parameter 2 has an initial value
    """
    for region in subject.iterating:
        for edge in region.body.back_edges:
            entry = region.entry_of.get(edge.to_layer)
            if entry is not None and entry.is_iteration_number:
                yield Finding(
                    _where(subject, region, edge),
                    f"A back edge ends at Parameter {edge.to_layer}, which receives the iteration "
                    "number.",
                    found=_edge_xml(edge),
                    expected="a Parameter that is carried",
                    advice="Correct to-layer, or remove the back edge: the number increases "
                    "automatically.",
                )


RULES = (
    Rule(
        "LS501",
        "back-edge-from-no-result",
        Severity.ERROR,
        back_edge_from_no_result,
        before_running=True,
    ),
    Rule("LS502", "back-edge-type", Severity.ERROR, back_edge_type, before_running=True),
    Rule("LS503", "back-edge-to-no-parameter", Severity.WARNING, back_edge_to_no_parameter),
    Rule("LS504", "several-back-edges", Severity.WARNING, several_back_edges),
    Rule("LS505", "back-edge-to-part", Severity.WARNING, back_edge_to_part),
    Rule("LS506", "carried-without-initial-value", Severity.WARNING, carried_without_initial_value),
    Rule("LS507", "back-edge-type-of-iterator", Severity.WARNING, back_edge_type_of_iterator),
    Rule("LS508", "back-edge-rank", Severity.WARNING, back_edge_rank, runtimes=OPENVINO),
    Rule(
        "LS509",
        "back-edge-to-iteration-number",
        Severity.ERROR,
        back_edge_to_iteration_number,
        before_running=True,
    ),
)
