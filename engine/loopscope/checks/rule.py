"""Check rules: a stable code, a severity, and a function that finds one kind of fault in a subject.

The subject is a model with the places of its graphs, and its propagated types and shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from loopscope.checks.diagnostic import EVERYBODY, Diagnostic, Runtime, Severity
from loopscope.checks.known import scalar_value
from loopscope.checks.order import backwards
from loopscope.checks.propagate import Propagated, propagate
from loopscope.checks.region import iterations, per_iteration_parameters, with_absent
from loopscope.errors import Where
from loopscope.ir.address import PlacedGraph, graphs
from loopscope.ir.constant import Constant
from loopscope.ir.model import (
    IF,
    LOOP,
    TENSOR_ITERATOR,
    Body,
    InputMap,
    LayerId,
    Model,
    Node,
    OutputMap,
    OutputRef,
)
from loopscope.ir.shape import Dimension, static
from loopscope.ops.catalogue import Catalogue
from loopscope.ops.declare import NOTHING_KNOWN, Known, Operation, Role

HEADINGS = ("What it does", "Why it matters", "Example that fails", "Example that passes")
"""Headings that every rule's docstring has after its first sentence."""

OPENVINO, ONNXRUNTIME = frozenset({Runtime.OPENVINO}), frozenset({Runtime.ONNXRUNTIME})
"""Values for ``Rule.runtimes`` of rules about one runtime; ``|`` combines them."""

MOST_FINDINGS = 1000
"""Maximum number of findings of one rule in a report (a file can be wrong in a million places)."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a rule at one place; the rule's code and severity turn it into a diagnostic."""

    where: Where
    message: str
    found: str = ""
    expected: str = ""
    advice: str = ""
    severity: Severity | None = None
    """Severity of this finding if it differs from the rule's severity."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A check rule: one row of the table of its group."""

    code: str
    """Code such as ``LS101``; a code is never reused for another rule."""
    name: str
    severity: Severity
    find: Callable[[Subject], Iterable[Finding]]
    """Function that finds the faults. Its docstring explains the rule: one sentence, then the
    sections named in ``HEADINGS``.
    """
    before_running: bool = False
    """True if the rule also runs before every run, because it is cheap and the run would not notice
    the fault.
    """
    runtimes: frozenset[Runtime] = EVERYBODY
    """Runtimes that the rule is about; empty if it applies to every runtime."""
    is_habit: bool = False
    """True if exporters commonly write this and it has no effect on results."""

    def apply(self, subject: Subject) -> Iterator[Diagnostic]:
        """Yield the diagnostics of this rule for a model, at most ``MOST_FINDINGS``."""
        for number, finding in enumerate(self.find(subject)):
            if number == MOST_FINDINGS:
                rest = (
                    f"There are more than {MOST_FINDINGS} findings of this rule; the rest are "
                    "not listed."
                )
                yield self._diagnostic(Finding(Where(subject.model.file), rest))
                return
            yield self._diagnostic(finding)

    def _diagnostic(self, finding: Finding) -> Diagnostic:
        fields = (finding.where, finding.message, finding.found, finding.expected, finding.advice)
        return Diagnostic(
            self.code,
            self.name,
            finding.severity or self.severity,
            *fields,
            self.runtimes,
            self.is_habit,
        )


_CONVERSIONS = frozenset({"Convert"})


@dataclass(frozen=True, eq=False)
class CheckedRegion:
    """A body of a Loop, TensorIterator or If, with the node that contains it."""

    place: PlacedGraph
    """Graph that contains the node."""
    node: Node
    body: Body
    body_place: PlacedGraph
    """Graph of the body, with its place."""

    @property
    def part(self) -> str:
        """Name of the body for messages."""
        return "body" if self.body.name == "body" else f"{self.body.name} branch"

    @property
    def entries(self) -> tuple[InputMap | OutputMap, ...]:
        """Port map entries of the body: inputs, then outputs."""
        return (*self.body.inputs, *self.body.outputs)

    @cached_property
    def entry_of(self) -> Mapping[LayerId, InputMap]:
        """First port map input of each Parameter."""
        return {entry.internal: entry for entry in reversed(self.body.inputs)}

    @cached_property
    def per_iteration_parameters(self) -> frozenset[LayerId]:
        """Parameters that receive a slice or the iteration number in every iteration."""
        return per_iteration_parameters(self.body)


@dataclass(frozen=True, eq=False)
class Subject:
    """A model to check, with lookups that the rules share."""

    model: Model
    catalogue: Catalogue
    parameters: Mapping[LayerId, Known] | None = None
    """Knowledge about the model's inputs that replaces their declarations."""

    @cached_property
    def places(self) -> tuple[PlacedGraph, ...]:
        """All graphs of the model; an outer graph precedes the graphs inside it."""
        return tuple(graphs(self.model))

    @cached_property
    def propagated(self) -> Propagated:
        return propagate(self.model, self.catalogue, self.parameters)

    @cached_property
    def _operations(self) -> dict[tuple[str, str], Operation | None]:
        return {}

    def operation(self, node: Node) -> Operation | None:
        """Return the operation of a node, or None if it is not in the catalogue."""
        key = (node.type, node.opset)
        operations = self._operations
        if key not in operations:
            operations[key] = self.catalogue.find(*key)
        return operations[key]

    @property
    def is_openvino(self) -> bool:
        """True for OpenVINO IR. Some requirements of OpenVINO's reader do not apply to ONNX."""
        return self.model.dialect == "openvino"

    def where(self, place: PlacedGraph, node: Node, port: str = "") -> Where:
        """Return the place of a node, or of one of its ports, for a diagnostic."""
        operation = self.operation(node)
        title = operation.title if operation else node.type
        return Where(
            self.model.file, node.line, f"{place.address}/{place.labels[node.id]}", title, port
        )

    @cached_property
    def regions(self) -> tuple[CheckedRegion, ...]:
        """Bodies of all control-flow nodes, in the order of ``places``."""
        outer = {
            id(node): place for place in self.places for node in place.graph.nodes if node.bodies
        }
        return tuple(
            CheckedRegion(outer[id(place.owner)], place.owner, place.body, place)
            for place in self.places
            if place.owner is not None
            and place.body is not None
            and self.is_control_flow(place.owner)
        )

    def regions_of(self, node: Node) -> tuple[CheckedRegion, ...]:
        """Return the bodies of one control-flow node."""
        return self._regions_of.get(id(node), ())

    @cached_property
    def _regions_of(self) -> Mapping[int, tuple[CheckedRegion, ...]]:
        regions: dict[int, tuple[CheckedRegion, ...]] = {}
        for region in self.regions:
            regions[id(region.node)] = (*regions.get(id(region.node), ()), region)
        return regions

    def is_control_flow(self, node: Node) -> bool:
        """Return True if a node is of a type whose bodies Loopscope knows how to run."""
        operation = self.operation(node)
        if node.is_foreign:
            return False
        return node.type in (LOOP, TENSOR_ITERATOR, IF) or (
            operation is not None and operation.role is Role.REGION
        )

    def constant(self, place: PlacedGraph, source: OutputRef | None) -> Constant | None:
        """Return the constant of which a tensor is a copy, also through Convert and into bodies.

        The result is None for tensors that are computed, sliced or carried.
        """
        node = self.origin(place, source, _CONVERSIONS)
        return None if node is None else node.constant

    def origin(
        self, place: PlacedGraph, source: OutputRef | None, types: frozenset[str]
    ) -> Node | None:
        """Return the node that produces a tensor, skipping operations of the given types.

        Body Parameters that receive an outer tensor whole and unchanged are followed to that
        tensor.
        """
        node = next(
            (node for _, node in backwards(place.graph, source) if node.type not in types), None
        )
        region = self._region_of.get(id(place.graph))
        if node is None or node.constant is not None or node.type != "Parameter" or region is None:
            return node
        entries = [
            entry
            for entry in region.body.inputs
            if entry.internal == node.id and entry.axis is None
        ]
        carried = any(edge.to_layer == node.id for edge in region.body.back_edges)
        outer = region.place.graph.sources.get(region.node.id, ())
        outer_source = (
            outer[entries[0].external]
            if len(entries) == 1 and not carried and 0 <= entries[0].external < len(outer)
            else None
        )
        return self.origin(region.place, outer_source, types)

    @cached_property
    def _region_of(self) -> Mapping[int, CheckedRegion]:
        return {id(region.body_place.graph): region for region in self.regions}

    @cached_property
    def loops(self) -> tuple[CheckedRegion, ...]:
        """Bodies of Loop nodes."""
        return tuple(region for region in self.regions if region.node.type == LOOP)

    @cached_property
    def tensor_iterators(self) -> tuple[CheckedRegion, ...]:
        """Bodies of TensorIterator nodes."""
        return tuple(region for region in self.regions if region.node.type == TENSOR_ITERATOR)

    @cached_property
    def iterating(self) -> tuple[CheckedRegion, ...]:
        """Bodies of Loop and TensorIterator nodes."""
        return tuple(
            region for region in self.regions if region.node.type in (LOOP, TENSOR_ITERATOR)
        )

    @cached_property
    def ifs(self) -> tuple[tuple[PlacedGraph, Node], ...]:
        """If nodes that have both bodies, with their graphs."""
        return tuple(
            (place, node)
            for place in self.places
            for node in place.graph.nodes
            if self._is_if(node)
        )

    def _is_if(self, node: Node) -> bool:
        return node.type == IF and len(node.bodies) > 1 and self.is_control_flow(node)

    @cached_property
    def never_run(self) -> frozenset[str]:
        """Static addresses of the bodies that cannot run: the untaken branch of a constant
        condition, or a loop of no iterations.
        """
        addresses: set[str] = set()
        for region in self.regions:
            if region.place.address in addresses or self._is_dead(region):
                addresses.add(region.body_place.address)
        return frozenset(addresses)

    def _is_dead(self, region: CheckedRegion) -> bool:
        if region.node.type == IF:
            condition = scalar_value(self.input(region.place, region.node, 0))
            return condition is not None and region.body.name != ("then" if condition else "else")
        return self.trips(region) == static(0)

    def trips(self, region: CheckedRegion) -> Dimension:
        """Return the range of the trip count of a Loop or TensorIterator body."""
        results = {
            result.id: self.parameter(region, result.id) for result in region.body.graph.results
        }
        return iterations(region.node, region.body, self.outer(region), results)

    def nodes(self) -> Iterator[tuple[PlacedGraph, Node]]:
        """Yield every node of every graph, with its graph."""
        for place in self.places:
            for node in place.graph.nodes:
                yield place, node

    def outer(self, region: CheckedRegion) -> list[Known]:
        """Return the knowledge about the inputs of the node that contains a body."""
        sources = region.place.graph.sources[region.node.id]
        return with_absent(region.node, sources, self.inputs(region.place, region.node))

    def inputs(self, place: PlacedGraph, node: Node) -> list[Known]:
        """Return the knowledge about each input of a node."""
        return self.propagated.inputs(place.address, place.graph.sources[node.id])

    def input(self, place: PlacedGraph, node: Node, index: int) -> Known:
        """Return the knowledge about one input of a node."""
        known = self.inputs(place, node)
        return known[index] if index < len(known) else NOTHING_KNOWN

    def parameter(self, region: CheckedRegion, layer: LayerId) -> Known:
        """Return the knowledge about a Parameter or Result of a body, over all its iterations."""
        return self.propagated.output(region.body_place.address, layer)
