"""Costs of a node in words: parameters, MACs and bytes, with the shapes of the run where it ran."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np

import loopscope
from loopscope.checks import ComputeCost, ModelCosts, costs, macs_of_node
from loopscope.errors import EngineError, counted
from loopscope.ir import Model
from loopscope_app.describe.node_index import IndexedNode, places, with_output

MOST_NODES = 20_000
"""Number of nodes up to which costs are computed; more would slow the first click on a node down.
"""
_costs: WeakKeyDictionary[Model, ModelCosts] = WeakKeyDictionary()


def model_costs(model: Model) -> ModelCosts | None:
    """Return the costs of a model from its declared shapes; None for a large model.

    They are computed once.
    """
    if len(places(model)) > MOST_NODES:
        return None
    result = _costs.get(model)
    if result is None:
        result = _costs[model] = costs(model)
    return result


def cost_rows(
    place: IndexedNode, debugger: loopscope.Debugger | None, concrete: str
) -> Iterator[tuple[str, str]]:
    """Yield name and text of each known cost of a node.

    ``concrete`` is the address of its execution at the cursor, empty before it.
    """
    result = model_costs(debugger.model) if debugger is not None else None
    cost = result.nodes.get(place.address) if result is not None else None
    if cost is None:
        return
    if cost.parameters:
        yield "parameters", f"{cost.parameters:,} ({bytes_text(cost.parameter_bytes)})"
    macs = cost.macs
    if macs is None and not place.node.bodies and debugger is not None and concrete:
        macs = macs_now(place, debugger, concrete)
    if cost.macs_per_iteration:
        yield "MACs per iteration", f"{cost.macs_per_iteration:,}"
    if macs:
        yield "MACs", _macs_text(cost, macs)
    if cost.output_bytes:
        yield "output", bytes_text(cost.output_bytes)


def _macs_text(cost: ComputeCost, macs: int) -> str:
    iterations = "" if cost.iterations is None else f" in {counted(cost.iterations, 'iteration')}"
    return f"{macs:,}{iterations}"


def macs_now(place: IndexedNode, debugger: loopscope.Debugger, concrete: str) -> int | None:
    """Return the MACs of one execution from the shapes of its values."""
    graph = concrete.rpartition("/")[0]
    shapes: list[tuple[int, ...] | None] = []
    try:
        for source in place.sources:
            label = None if source is None else place.labels[source.layer]
            shapes.append(
                None
                if source is None
                else np.shape(debugger.value(f"{graph}/{with_output(label or '', source.output)}"))
            )
        output = np.shape(debugger.value(concrete))
    except EngineError:
        return None
    return macs_of_node(place.node, shapes, output)


def bytes_text(size: int) -> str:
    """Return a number of bytes with a readable unit.

    >>> bytes_text(12), bytes_text(4096), bytes_text(3_500_000)
    ('12 bytes', '4 KB', '3.34 MB')
    """
    for unit, factor in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return counted(size, "byte")
