"""Order of a body's inputs and outputs in ONNX, and the names that it captures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopscope.ir.model import Body, InputMap, LayerId, Node


@dataclass(frozen=True, slots=True, eq=False)
class BoundBody:
    """A body with its inputs and outputs in the order of the node's."""

    parameters: Sequence[Node]
    """Parameters that the operation feeds; the others are captured."""
    results: Sequence[Node]
    captured: Mapping[LayerId, str]
    """Outer name of each captured Parameter."""


def bind_body(node: Node, body: Body, inputs: Sequence[str]) -> BoundBody:
    """Return the order of a body's ends. ``inputs`` are the names of the node's inputs."""
    by_id = body.graph.by_id
    captures = [entry for entry in body.inputs if is_capture(body, entry)]
    own = [entry for entry in body.inputs if not is_capture(body, entry)]
    # The iteration number of a Loop has the external number -1, and comes first.
    own.sort(key=lambda entry: entry.external)
    fed = {entry.internal for entry in body.inputs}
    # A branch of an invalid file has inputs that nothing feeds.
    unfed = [parameter for parameter in body.graph.parameters if parameter.id not in fed]
    results = sorted(body.outputs, key=lambda entry: entry.external)
    return BoundBody(
        [*(by_id[entry.internal] for entry in own), *unfed],
        [by_id[entry.internal] for entry in results],
        {entry.internal: inputs[entry.external] for entry in captures},
    )


def is_capture(body: Body, entry: InputMap) -> bool:
    """Return True if a Parameter receives the same outer tensor in every iteration."""
    carried = {edge.to_layer for edge in body.back_edges}
    return entry.axis is None and not entry.is_iteration_number and entry.internal not in carried


def own_inputs(node: Node) -> int:
    """Return the number of a node's inputs before its captures."""
    captured = {
        entry.external for body in node.bodies for entry in body.inputs if is_capture(body, entry)
    }
    return min(captured, default=len(node.inputs))
