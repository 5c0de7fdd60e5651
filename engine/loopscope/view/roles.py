"""Roles of a body's ports, in the terms of section 2 of the control-flow page."""

from __future__ import annotations

from collections.abc import Mapping

from loopscope.ir.model import Body, InputMap, LayerId, Node, OutputMap
from loopscope.view.graph import Slices


def input_roles(body: Body) -> Mapping[LayerId, tuple[str, InputMap | None]]:
    """Return role and port map entry of each Parameter in the body's port map or back edges.

    An If's inputs have an empty role.
    """
    carried = {edge.to_layer for edge in body.back_edges}
    roles: dict[LayerId, tuple[str, InputMap | None]] = dict.fromkeys(
        carried, ("carried, starts at zero", None)
    )
    for entry in body.inputs:
        roles[entry.internal] = (_input_role(body, entry, entry.internal in carried), entry)
    return roles


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
    """Return the Parameters that only pass an outer value in: those of an If, and a loop's
    invariants.
    """
    roles = input_roles(body)
    return tuple(
        layer
        for layer, (role, _) in roles.items()
        if role in ("", "invariant") and layer in body.graph.by_id
    )


def unbound_inputs(node: Node) -> frozenset[int]:
    """Return the inputs of an unknown operation that no body receives."""
    bound = {entry.external for body in node.bodies for entry in body.inputs}
    return frozenset(range(len(node.inputs))) - bound


def output_role(body: Body, entry: OutputMap) -> str:
    """Return how the values of a Result become the outer tensor; empty for an If."""
    if body.name != "body":
        return ""
    if entry.axis is None:
        return "last value"
    kind = "stacked" if entry.stacked else "concatenated"
    return f"{kind} axis {entry.axis}{', reversed' if entry.stride < 0 else ''}"


def slices_of(entry: InputMap | OutputMap) -> Slices | None:
    """Return how an entry slices or concatenates; None if it passes whole values."""
    return None if entry.axis is None else Slices(entry.axis, entry.stride, entry.part_size)
