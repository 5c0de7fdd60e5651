"""Inputs and outputs of a node, and its weights: the stored tensors behind its inputs.

Ports have names from the specification, types and shapes; weights have statistics and a
histogram.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from loopscope.errors import EngineError
from loopscope.ir import (
    INDEX_TYPES,
    Body,
    Constant,
    ElementType,
    Model,
    OutputRef,
    Port,
    decode,
    labels,
)
from loopscope.object_cache import cache_by_object
from loopscope.ops import PortNames, catalogue_for, port_names
from loopscope.view import COLOURS, input_roles, output_role
from loopscope_app.describe import tensor_summary
from loopscope_app.describe.node_index import IndexedNode, places

TRIP_COUNT = "trip count"
_OF_LOOP = (TRIP_COUNT, "execution condition")
_OF_IF = ("condition",)


@dataclass(frozen=True, slots=True)
class NodePort:
    """An input or output of a node."""

    name: str
    role: str
    """Use in the body of a loop, such as ``carried``; empty elsewhere."""
    type: str
    """Declared element type and shape."""
    source: OutputRef | None = None
    """The output that feeds an input; None for an output or a missing input."""


def input_ports(model: Model, place: IndexedNode) -> tuple[NodePort, ...]:
    """Return the inputs of a node in order."""
    node, sources = place.node, place.sources
    names = list(_names(model, place, len(sources)).inputs)
    roles = [""] * len(sources)
    if node.bodies:
        fixed = _OF_LOOP if node.type == "Loop" else _OF_IF if node.type == "If" else ()
        names[: len(fixed)] = fixed[: len(names)]
        for body in node.bodies:
            for number, (name, role) in _bound(body).items():
                if len(fixed) <= number < len(names):
                    names[number], roles[number] = name, role
    return tuple(
        NodePort(name, role, _source_type(place, source), source)
        for name, role, source in zip(names, roles, sources, strict=True)
    )


def output_ports(model: Model, place: IndexedNode) -> tuple[NodePort, ...]:
    """Return the outputs of a node in order."""
    node = place.node
    names = list(_names(model, place, len(node.inputs)).outputs)
    roles = [""] * len(names)
    for body in node.bodies[:1]:
        label = labels(body.graph)
        mapped = sorted(
            (entry for entry in body.outputs if entry.external != -1),
            key=lambda entry: entry.external,
        )
        for number, entry in enumerate(mapped[: len(names)]):
            names[number] = decode(label.get(entry.internal, names[number]))
            roles[number] = output_role(body, entry)
    return tuple(
        NodePort(name, role, type_of(port))
        for name, role, port in zip(names, roles, node.outputs, strict=True)
    )


def type_of(port: Port) -> str:
    """Return the declared element type and shape of a port, such as ``f32 [1,?]``."""
    shape = "any rank" if port.shape.rank is None else str(port.shape)
    return f"{port.element_type or 'any type'} {shape}"


def _names(model: Model, place: IndexedNode, inputs: int) -> PortNames:
    operation = catalogue_for(model.dialect).find(place.node.type, place.node.opset)
    return port_names(operation, place.node.opset, inputs, len(place.node.outputs))


def _bound(body: Body) -> dict[int, tuple[str, str]]:
    """Return name and role of the Parameter that each input of a node with bodies feeds."""
    label, roles = labels(body.graph), input_roles(body)
    return {
        entry.external: (decode(label.get(entry.internal, "?")), roles[entry.internal][0])
        for entry in body.inputs
        if entry.external >= 0
    }


def _source_type(place: IndexedNode, source: OutputRef | None) -> str:
    if source is None:
        return "not connected"
    outputs = place.graph.by_id[source.layer].outputs
    return type_of(outputs[source.output]) if source.output < len(outputs) else "any type"


_NO_WEIGHTS = INDEX_TYPES | {ElementType.STRING, ElementType.BOOLEAN}
"""Element types of shapes, indices and flags."""
_BARS = 'viewBox="0 0 {} 100" preserveAspectRatio="none"'
_BAR = f'<rect x="{{}}" y="{{:.1f}}" width="9" height="{{:.1f}}" fill="{COLOURS["curve"].light}"/>'


@dataclass(frozen=True, slots=True)
class NodeWeight:
    """A stored tensor that an input of a node receives."""

    port: str
    """Name of the input."""
    constant: Constant


def node_weights(model: Model, place: IndexedNode) -> tuple[NodeWeight, ...]:
    """Return the weights of a node in the order of its inputs.

    A body's Parameter that receives an outer tensor unchanged stands for this tensor.
    """
    index = places(model)
    return tuple(
        NodeWeight(port.name, constant)
        for port in input_ports(model, place)
        if port.source is not None
        and (constant := _stored(index, place, port.source)) is not None
        and constant.element_type not in _NO_WEIGHTS
        and constant.elements > 1
    )


def _stored(
    index: Mapping[str, IndexedNode], place: IndexedNode, source: OutputRef | None
) -> Constant | None:
    """Return the constant that feeds an input, through the bodies around it."""
    while source is not None:
        node = place.graph.by_id[source.layer]
        if node.type != "Parameter" or place.body is None:
            return node.constant
        entries = [entry for entry in place.body.inputs if entry.internal == node.id]
        role = input_roles(place.body).get(node.id, ("?", ""))[0]
        if role not in ("", "invariant") or not entries:
            return None
        place = index[place.graph_address.rpartition("/")[0]]
        external = entries[0].external
        source = place.sources[external] if 0 <= external < len(place.sources) else None
    return None


@cache_by_object
def weight_summary(constant: Constant) -> tuple[str, str]:
    """Return statistics as a sentence, and a histogram as an image element; both may be empty."""
    try:
        array = constant.array()
    except (EngineError, ValueError):
        return "", ""
    statistics = tensor_summary.statistics(array)
    cells = statistics.cells() if statistics is not None else []
    words = ", ".join(f"{name} {text}" for name, text in cells)
    counts = [int(bar["count"]) for bar in tensor_summary.histogram(array)]
    return words, _image(counts)


def _image(counts: list[int]) -> str:
    if not counts:
        return ""
    size = _BARS.format(10 * len(counts))
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(_rectangles(counts))}</svg>'
    data = base64.b64encode(drawing.encode()).decode()
    return f'<img alt="histogram" src="data:image/svg+xml;base64,{data}">'


def _rectangles(counts: list[int]) -> Iterator[str]:
    highest = max(counts)
    for number, count in enumerate(counts):
        height = 100 * count / highest
        yield _BAR.format(10 * number, 100 - height, height)
