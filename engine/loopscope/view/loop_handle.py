"""Handles of operators, such as LSTM, that open as loops, with their numbers of steps."""

from __future__ import annotations

from dataclasses import replace

from loopscope.errors import counted
from loopscope.ir.model import Dialect, Node, OutputRef
from loopscope.transform.recurrences import Recurrence, recurrence_of
from loopscope.view.graph import LoopHandle, ViewNode
from loopscope.view.places import DrawnGraph

UNKNOWN_STEPS = "loop over steps"


def with_handle(box: ViewNode, node: Node, place: DrawnGraph, dialect: Dialect) -> ViewNode:
    """Return the box of a node, with a handle if the node is an operator that opens as a loop.

    The badge has the number of steps that the declared shape determines.
    """
    recurrence = recurrence_of(node, dialect)
    if recurrence is None:
        return box
    data = _input(place, node, recurrence, recurrence.data)
    axis = _axis(place, node, recurrence)
    if data is None or axis is None:
        return replace(box, handle=LoopHandle(), badge=UNKNOWN_STEPS)
    shape = place.graph.tensor(data).shape
    length = shape.at(axis) if shape.rank is not None and -shape.rank <= axis < shape.rank else None
    badge = (
        counted(length.length, "step") if length is not None and length.is_static else UNKNOWN_STEPS
    )
    return replace(box, handle=LoopHandle(place.at(data.layer, data.output), axis), badge=badge)


def _input(place: DrawnGraph, node: Node, recurrence: Recurrence, role: str) -> OutputRef | None:
    sources = place.graph.sources[node.id]
    if role not in recurrence.inputs:
        return None
    position = recurrence.inputs.index(role)
    return sources[position] if position < len(sources) else None


def _axis(place: DrawnGraph, node: Node, recurrence: Recurrence) -> int | None:
    """Return the axis of time; None if it is only known at run time."""
    if not recurrence.axis_role:
        return 1 if str(node.attributes.get("layout", 0)) != "0" else recurrence.time_axis
    source = _input(place, node, recurrence, recurrence.axis_role)
    constant = None if source is None else place.graph.by_id[source.layer].constant
    if constant is None or not constant.is_kept or constant.elements != 1:
        return None
    return int(constant.array().reshape(-1)[0])
