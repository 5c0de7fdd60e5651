"""What a port of a body is for, in the words of the control-flow page (section 2)."""

from __future__ import annotations

from collections.abc import Mapping

from loopscope.ir.model import Body, InputMap, LayerId, Node, OutputMap
from loopscope.view.graph import Slices


def input_roles(body: Body) -> Mapping[LayerId, tuple[str, InputMap | None]]:
    """For each Parameter that the body's maps or back edges name: its role, and the map entry that
    feeds it.

    An If's inputs have no role.
    """
    carried = {edge.to_layer for edge in body.back_edges}
    found: dict[LayerId, tuple[str, InputMap | None]] = dict.fromkeys(
        carried, ("carried, starts at zero", None)
    )
    for entry in body.inputs:
        found[entry.internal] = (_input_role(body, entry, entry.internal in carried), entry)
    return found


def _input_role(body: Body, entry: InputMap, carried: bool) -> str:
    if body.name != "body":
        return ""
    if entry.purpose == "current_iteration":
        return "iteration"
    if entry.axis is not None:
        return f"sliced axis {entry.axis}{', backwards' if entry.stride < 0 else ''}"
    if carried:
        return "carried" if entry.external != -1 else "carried, starts at zero"
    return "invariant"


def handed_in(body: Body) -> tuple[LayerId, ...]:
    """The Parameters that only pass an outer value in: those of an If, and the invariant ones of
    a loop.
    """
    roles = input_roles(body)
    return tuple(
        layer
        for layer, (role, _) in roles.items()
        if role in ("", "invariant") and layer in body.graph.by_id
    )


def unbound_inputs(node: Node) -> frozenset[int]:
    """The inputs of a node with bodies that enter none of them: those of an unknown operation."""
    bound = {entry.external for body in node.bodies for entry in body.inputs}
    return frozenset(range(len(node.inputs))) - bound


def output_role(body: Body, entry: OutputMap) -> str:
    """How the values of a Result become the outer tensor; empty for an If."""
    if body.name != "body":
        return ""
    if entry.axis is None:
        return "last value"
    return f"{'stacked' if entry.stacked else 'concatenated'} axis {entry.axis}{', reversed' if entry.stride < 0 else ''}"


def slices_of(entry: InputMap | OutputMap) -> Slices | None:
    """How an entry cuts or joins; None when it takes whole values."""
    return None if entry.axis is None else Slices(entry.axis, entry.stride, entry.part_size)
