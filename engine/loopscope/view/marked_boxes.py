"""Boxes of a view that the user has marked: the selected box, and boxes with breakpoints."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase

from loopscope.debug.run import Run
from loopscope.view.graph import GraphView, ViewNode, without_iterations


def selected_box(run: Run | None, view: GraphView, address: str) -> ViewNode | None:
    """Return the box of a selected place.

    In copies of unrolled loops it is the box of the named iteration, else of the one at the cursor.
    """
    box = view.node_of.get(view.place_of(address))
    if box is None and view.unrolled:
        concrete = run.resolve(without_iterations(address)) if run is not None else None
        box = (
            view.showing(view.place_of(concrete))
            if concrete
            else next(iter(view.instances_of(address)), None)
        )
    return box or view.showing(without_iterations(address))


def breakpoint_boxes(view: GraphView, patterns: Collection[str]) -> list[ViewNode]:
    """Return the boxes that display a dot for breakpoints at these places."""
    boxes: dict[str, ViewNode] = {}
    for pattern in patterns:
        static = without_iterations(pattern)
        if "*" in static:
            hits = [node for address, node in view.node_of.items() if fnmatchcase(address, static)]
        else:
            exact = view.node_of.get(view.place_of(pattern)) or (
                None if view.unrolled else view.showing(static)
            )
            hits = (
                [exact]
                if exact
                else view.instances_of(static) or [box for box in (view.showing(static),) if box]
            )
        boxes.update({node.id: node for node in hits})
    return list(boxes.values())
