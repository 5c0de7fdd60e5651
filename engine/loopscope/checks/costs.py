"""Parameters, bytes and multiply-accumulate operations (MACs) of a model, from shapes alone.

Parameters are the constants from which tensors are computed without an input.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loopscope.checks.mac_formulas import Shapes, macs
from loopscope.checks.order import order
from loopscope.checks.rule import Subject
from loopscope.errors import InputError
from loopscope.ir.address import PlacedGraph
from loopscope.ir.constant import Constant, packed_size
from loopscope.ir.element_type import INDEX_TYPES, ElementType
from loopscope.ir.model import IF, LayerId, Model, Node, OutputRef, expect_model
from loopscope.ir.shape import PartialShape
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Known
from loopscope.ops.dialect import catalogue_for


@dataclass(frozen=True, slots=True)
class ComputeCost:
    """Cost of one execution of a node, or of a whole model.

    A number is None if the shapes do not fix it.
    """

    parameters: int
    """Number of stored elements that the node uses, bodies included. Indices are not counted, and
    what is computed from constants alone counts as these constants.
    """
    parameter_bytes: int
    """Bytes of the parameters in the file."""
    macs: int | None
    """Multiply-accumulate operations. An If has those of its costlier branch."""
    output_bytes: int | None
    """Bytes of the outputs; for a model, of every output that is not a constant, counted once."""
    iterations: int | None = None
    """Number of iterations of a loop, if it is fixed before a run."""
    macs_per_iteration: int | None = None
    """MACs of one iteration of a loop's body; None for a node that is not a loop."""


@dataclass(frozen=True, slots=True)
class ModelCosts:
    """Costs of a model and of each of its nodes."""

    total: ComputeCost
    """ComputeCost of the model. A constant that several nodes use is counted once."""
    nodes: Mapping[str, ComputeCost]
    """Costs by static address. A node inside a body has the cost of one iteration."""


def costs(model: Model, inputs: Mapping[str, Any] | None = None) -> ModelCosts:
    """Return the costs of a model; nothing runs.

    ``inputs`` maps names of inputs to arrays, whose shapes and small values replace the
    declarations. ``InputError`` for a name that no input has.
    """
    expect_model(model, "loopscope.costs")
    known: dict[LayerId, Known] = {}
    for name, array in (inputs or {}).items():
        if name not in model.inputs_called:
            names = ", ".join(repr(signature.name) for signature in model.inputs[:8])
            raise InputError(f"there is no input {name!r}: the inputs are {names}")
        known[model.inputs_called[name][0].layer] = Known.of(array)
    return _Counter(Subject(model, catalogue_for(model.dialect, CATALOGUE), known)).costs()


class _Counter:
    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.stored = StoredValues(subject.places)
        self.nodes: dict[str, ComputeCost] = {}
        self.computed: list[str] = []
        """Addresses of the nodes that are not constants."""
        self.macs_of: dict[str, int | None] = {}
        """MACs of one run of each graph, by address."""
        self.constants_of: dict[str, dict[int, Constant]] = {}
        """Constants of each graph with those of its bodies, by identity."""

    def costs(self) -> ModelCosts:
        for place in reversed(self.subject.places):
            self._count(place)
        outermost = self.subject.places[0].address
        parameters, size = _sizes(self.constants_of[outermost].values())
        output_bytes = _sum(self.nodes[address].output_bytes for address in self.computed)
        total = ComputeCost(parameters, size, self.macs_of[outermost], output_bytes)
        return ModelCosts(total, self.nodes)

    def _count(self, place: PlacedGraph) -> None:
        """Count the nodes of one graph, whose inner graphs have been counted."""
        all_macs: list[int | None] = []
        constants: dict[int, Constant] = {}
        for node in place.graph.nodes:
            address = f"{place.address}/{place.labels[node.id]}"
            own = self.stored.used_by(place, node.id)
            for body in node.bodies:
                own |= self.constants_of.get(f"{address}/{body.name}", {})
            parameters, size = _sizes(own.values())
            cost = ComputeCost(parameters, size, 0, self._output_bytes(place, node))
            if node.constant is None:
                cost = self._with_macs(place, node, address, cost)
                self.computed.append(address)
            self.nodes[address] = cost
            all_macs.append(cost.macs)
            constants |= own
        self.macs_of[place.address] = _sum(all_macs)
        self.constants_of[place.address] = constants

    def _with_macs(
        self, place: PlacedGraph, node: Node, address: str, cost: ComputeCost
    ) -> ComputeCost:
        bodies = [self.macs_of.get(f"{address}/{body.name}") for body in node.bodies]
        if node.is_loop:
            return _of_loop(cost, bodies[0], self._iterations(node))
        return replace(cost, macs=self._macs(place, node, bodies))

    def _macs(self, place: PlacedGraph, node: Node, bodies: Sequence[int | None]) -> int | None:
        """Return the MACs of a node that is not a loop."""
        if node.is_foreign or (self.subject.operation(node) is None and not node.is_function):
            return None
        if node.type == IF:
            return None if None in bodies else max(filter(None, bodies), default=0)
        return _sum(bodies) if bodies else macs(node.type, self._shapes(place, node))

    def _iterations(self, node: Node) -> int | None:
        for region in self.subject.regions_of(node):
            trips = self.subject.trips(region)
            return trips.length if trips.is_static else None
        return None

    def _shapes(self, place: PlacedGraph, node: Node) -> Shapes:
        sources = place.graph.sources[node.id]
        return Shapes(
            [None if source is None else self._lengths(place, source) for source in sources],
            self._lengths(place, OutputRef(node.id, 0)),
            node.attributes,
        )

    def _lengths(self, place: PlacedGraph, source: OutputRef) -> tuple[int, ...] | None:
        shape = self._known(place, source).shape
        return shape.lengths if shape.is_static else None

    def _known(self, place: PlacedGraph, source: OutputRef) -> Known:
        return self.subject.propagated.output(place.address, source.layer, source.output)

    def _output_bytes(self, place: PlacedGraph, node: Node) -> int | None:
        if node.type == "Result":
            return 0
        outputs = [
            self._known(place, OutputRef(node.id, index)) for index in range(len(node.outputs))
        ]
        return _sum([_bytes(known.element_type, known.shape) for known in outputs])


def _sizes(constants: Iterable[Constant]) -> tuple[int, int]:
    """Return the number of elements of constants, and their bytes."""
    listed = list(constants)
    return (
        sum(constant.elements for constant in listed),
        sum(packed_size(constant.element_type, constant.elements) for constant in listed),
    )


def _bytes(element_type: ElementType | None, shape: PartialShape) -> int | None:
    if element_type is None or element_type is ElementType.STRING or not shape.is_static:
        return None
    return packed_size(element_type, math.prod(shape.lengths))


def _of_loop(cost: ComputeCost, per_iteration: int | None, iterations: int | None) -> ComputeCost:
    if 0 in (per_iteration, iterations):
        total: int | None = 0
    elif per_iteration is None or iterations is None:
        total = None
    else:
        total = per_iteration * iterations
    return replace(cost, macs=total, iterations=iterations, macs_per_iteration=per_iteration)


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Return the sum; None if one of the numbers is unknown."""
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total


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
