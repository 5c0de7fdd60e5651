"""The boxes of a view that a person has marked: what is selected, and where breakpoints are."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase

from loopscope.debug.run import Run
from loopscope.view.graph import GraphView, ViewNode, without_iterations


def selected_box(run: Run | None, view: GraphView, address: str) -> ViewNode | None:
    """The box of a selected place; in copies of unrolled loops that of the iteration it names,
    else the one shown at the cursor.
    """
    found = view.node_of.get(view.place_of(address))
    if found is None and view.unrolled:
        concrete = run.resolve(without_iterations(address)) if run is not None else None
        found = (
            view.showing(view.place_of(concrete))
            if concrete
            else next(iter(view.instances_of(address)), None)
        )
    return found or view.showing(without_iterations(address))


def breakpoint_boxes(view: GraphView, patterns: Collection[str]) -> list[ViewNode]:
    """The boxes that have a dot for breakpoints at these places."""
    found: dict[str, ViewNode] = {}
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
                else view.instances_of(static) or [one for one in (view.showing(static),) if one]
            )
        found.update({node.id: node for node in hits})
    return list(found.values())
