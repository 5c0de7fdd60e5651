"""Constants from which the tensors of a model are computed without an input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopscope.checks.order import order
from loopscope.ir.constant import Constant
from loopscope.ir.element_type import INDEX_TYPES, ElementType
from loopscope.ir.model import LayerId, OutputRef
from loopscope.ir.walk import PlacedGraph

Stored = Mapping[int, Constant]
"""Constants by the identity of their nodes."""
NOTHING: Stored = {}
_WITHOUT_PARAMETERS = INDEX_TYPES | {ElementType.STRING, ElementType.BOOLEAN}
"""Element types of shapes, axes and flags, which are not parameters."""


class StoredValues:
    """The parameters that each node uses: constants, and what is computed from constants alone.

    ``places`` are the graphs of a model, each before the graphs inside it.
    """

    def __init__(self, places: Sequence[PlacedGraph]) -> None:
        self._fixed: dict[tuple[str, LayerId], Stored] = {}
        outer = {id(node): place for place in places for node in place.graph.nodes if node.bodies}
        for place in places:
            if place.owner is not None:
                self._enter(place, outer[id(place.owner)])
            self._walk(place)

    def used_by(self, place: PlacedGraph, layer: LayerId) -> dict[int, Constant]:
        """Return the parameters behind the inputs of a node, or the parameters that it is."""
        own = self._fixed.get((place.address, layer))
        if own is not None:
            return dict(own)
        result: dict[int, Constant] = {}
        for source in place.graph.sources[layer]:
            result |= self._of(place, source) or NOTHING
        return result

    def _of(self, place: PlacedGraph, source: OutputRef | None) -> Stored | None:
        return None if source is None else self._fixed.get((place.address, source.layer))

    def _enter(self, place: PlacedGraph, outer: PlacedGraph) -> None:
        """Note the Parameters of a body that receive an outer constant whole and unchanged."""
        if place.body is None or place.owner is None:
            return
        sources = outer.graph.sources[place.owner.id]
        carried = {edge.to_layer for edge in place.body.back_edges}
        for entry in place.body.inputs:
            if entry.axis is not None or entry.internal in carried:
                continue
            if 0 <= entry.external < len(sources):
                stored = self._of(outer, sources[entry.external])
                if stored is not None:
                    self._fixed[place.address, entry.internal] = stored

    def _walk(self, place: PlacedGraph) -> None:
        for layer in order(place.graph).layers:
            node = place.graph.by_id[layer]
            if node.constant is not None:
                is_parameter = node.constant.element_type not in _WITHOUT_PARAMETERS
                self._fixed[place.address, layer] = (
                    {id(node): node.constant} if is_parameter else NOTHING
                )
                continue
            sources = place.graph.sources[layer]
            stored = [self._of(place, source) for source in sources if source is not None]
            if not stored or node.bodies or None in stored or node.type == "Result":
                continue
            self._fixed[place.address, layer] = {
                key: constant
                for each in stored
                if each is not None
                for key, constant in each.items()
            }
