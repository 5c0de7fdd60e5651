"""Structure of two models on one graph: the first model, with the operations that only the second
has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

from loopscope.comparison.matching import MatchedGraphs, match
from loopscope.debug.run import Run
from loopscope.errors import counted, elided, shorten
from loopscope.ir.address import PlacedGraph, decode, graphs
from loopscope.ir.equal import same_attribute, same_constant
from loopscope.ir.model import (
    Body,
    Edge,
    LayerId,
    Model,
    ModelGraph,
    Node,
    OutputRef,
    Port,
)
from loopscope.ir.replace import replace

Status = Literal["added", "removed", "changed"]
STATUSES: tuple[Status, ...] = ("added", "removed", "changed")
INSIDE = "changes inside"
"""Description of an operation that differs only in its bodies."""
_LONGEST = 60
"""Number of characters of an attribute in a description."""


@dataclass(frozen=True, slots=True)
class StructureChange:
    """An operation that only one of two models has, or that differs."""

    address: str
    """Static address in the joined model."""
    status: Status
    type: str
    words: str = ""
    """Differences of the operation; empty if only one model has it."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class StructureDiff:
    """Differences between the structures of two models."""

    model: Model
    """The first model with the operations that only the second has. It can be drawn, not run."""
    changes: tuple[StructureChange, ...]
    """Changes in the order of the joined model; not those inside an added or removed operation."""
    unchanged: int
    """Number of operations that both models have alike."""

    @property
    def sentence(self) -> str:
        """Summary, such as "2 operations added, 1 removed, 3 changed; 40 unchanged."."""
        counts = Counter(change.status for change in self.changes)
        if not counts:
            return f"The structure is equal: {counted(self.unchanged, 'operation')}."
        parts = [f"{counts[status]:,} {status}" for status in STATUSES if counts[status]]
        return f"Operations: {', '.join(parts)}; {self.unchanged:,} unchanged."


@dataclass(slots=True, eq=False)
class _Joined:
    """A joined graph with the changes in it, by layer."""

    graph: ModelGraph
    changes: Mapping[LayerId, tuple[Status, str]]
    unchanged: int


def structure_diff(left: Run, right: Run) -> StructureDiff:
    """Return the differences between the structures of the models of two finished runs.

    Operations are matched as ``drift`` matches their values, and the others by name. Constants are
    part of the operations that use them.
    """
    places = [
        {place.address: place for place in graphs(model)} for model in (left.model, right.model)
    ]
    is_foreign = left.model.dialect != right.model.dialect
    pairs: dict[str, _Pair] = {}
    for matched in match(left, right):
        addresses = matched.left.address, matched.right.address
        if matched.opened is None and addresses[0] not in pairs:
            graph, other = places[0].get(addresses[0]), places[1].get(addresses[1])
            if graph is not None and other is not None:
                pairs[addresses[0]] = _Pair(graph, other, matched, is_foreign)
    joined: dict[str, _Joined] = {}
    for address, pair in reversed(pairs.items()):  # inner graphs first
        joined[address] = pair.join(joined)
    main = next(iter(pairs))
    model = replace(left.model, graph=joined[main].graph, source=None)
    changes = tuple(_changes(model, {id(each.graph): each.changes for each in joined.values()}))
    return StructureDiff(model, changes, sum(each.unchanged for each in joined.values()))


def _changes(
    model: Model, by_graph: Mapping[int, Mapping[LayerId, tuple[Status, str]]]
) -> Iterator[StructureChange]:
    for place in graphs(model):
        changes = by_graph.get(id(place.graph), {})
        for node in place.graph.nodes:
            if node.id in changes:
                status, words = changes[node.id]
                yield StructureChange(
                    f"{place.address}/{place.labels[node.id]}", status, node.type, words
                )


@dataclass(slots=True, eq=False)
class _Pair:
    """Two matched graphs."""

    left: PlacedGraph
    right: PlacedGraph
    matched: MatchedGraphs
    is_foreign: bool
    """True for models of two dialects: only types and fixed shapes of values are compared."""
    partner: dict[LayerId, LayerId] = field(default_factory=dict[LayerId, LayerId])
    """Layer of the left graph by matched layer of the right graph."""
    added: dict[LayerId, LayerId] = field(default_factory=dict[LayerId, LayerId])
    """New layer by layer that only the right graph has."""

    def join(self, inner: Mapping[str, _Joined]) -> _Joined:
        """Return the joined graph. ``inner`` are the joined graphs inside, by left address."""
        self._match_layers()
        self._add_layers()
        left = self.left.graph
        nodes = {node.id: node for node in left.nodes}
        changes: dict[LayerId, tuple[Status, str]] = {}
        matched = set(self.partner.values())
        for node in left.nodes:
            if node.id not in matched and _is_operation(node):
                changes[node.id] = "removed", ""
        for other, layer in self.partner.items():
            bodies, has_changes = self._bodies(nodes[layer], self.left.labels[layer], inner)
            nodes[layer] = replace(nodes[layer], bodies=bodies)
            words = [*self._differences(layer, other), *([INSIDE] if has_changes else [])]
            if words and nodes[layer].type not in ("Parameter", "Result"):
                changes[layer] = "changed", "; ".join(words)
        for other, layer in self.added.items():
            node = self.right.graph.by_id[other]
            nodes[layer] = replace(node, id=layer, source=0)
            if _is_operation(node):
                changes[layer] = "added", ""
        edges = [*left.edges, *self._new_edges(nodes)]
        graph = replace(left, nodes=tuple(nodes.values()), edges=tuple(edges), source=0)
        unchanged = sum(
            layer not in changes and _is_operation(nodes[layer]) for layer in self.partner.values()
        )
        return _Joined(graph, changes, unchanged)

    def _match_layers(self) -> None:
        layers = [
            {label: layer for layer, label in place.labels.items()}
            for place in (self.left, self.right)
        ]
        for pair in self.matched.pairs:
            self.partner[layers[1][pair.other.label]] = layers[0][pair.one.label]
        results = self.left.graph.results, self.right.graph.results
        ends: Iterable[tuple[Node, Node]]
        if len(results[0]) == len(results[1]):
            ends = zip(*results, strict=True)
        else:
            names = {node.name: node for node in results[0]}
            ends = ((names[node.name], node) for node in results[1] if node.name in names)
        self.partner |= {other.id: node.id for node, other in ends}
        self._match_replaced(*layers)

    def _match_replaced(
        self, left_layers: Mapping[str, LayerId], right_layers: Mapping[str, LayerId]
    ) -> None:
        """Match the remaining operations of one name: the operation was replaced."""
        matched = set(self.partner.values())
        for label, other in right_layers.items():
            layer = left_layers.get(label)
            if layer is None or layer in matched or other in self.partner:
                continue
            nodes = self.left.graph.by_id[layer], self.right.graph.by_id[other]
            if all(_is_operation(node) and not node.bodies for node in nodes):
                self.partner[other] = layer

    def _add_layers(self) -> None:
        """Number the nodes that only the right graph has, and the constants that they use."""
        right = self.right.graph
        numbers = count(max((int(node.id) for node in self.left.graph.nodes), default=0) + 1)
        single = {
            node.id for node in right.nodes if node.id not in self.partner and node.constant is None
        }
        sources = (source for layer in single for source in right.sources[layer] if source)
        used = {source.layer for source in sources} - self.partner.keys()
        for node in right.nodes:
            if node.id in single or node.id in used:
                self.added[node.id] = LayerId(next(numbers))

    def _bodies(
        self, node: Node, label: str, inner: Mapping[str, _Joined]
    ) -> tuple[tuple[Body, ...], bool]:
        """Return the bodies with joined graphs, and True if there are changes inside."""
        bodies, has_changes = [], False
        for body in node.bodies:
            joined = inner.get(f"{self.left.address}/{label}/{body.name}")
            if joined is not None:
                body = replace(body, graph=joined.graph)
                has_changes |= bool(joined.changes)
            bodies.append(body)
        return tuple(bodies), has_changes

    def _new_edges(self, nodes: dict[LayerId, Node]) -> Iterator[Edge]:
        """Yield the edges from or to an added node. Matched consumers get a port for each."""
        layers = self.partner | self.added
        for other, layer in layers.items():
            for index, source in enumerate(self.right.graph.sources[other]):
                if source is None or source.layer not in layers:
                    continue
                origin = layers[source.layer]
                if other not in self.added and source.layer not in self.added:
                    continue
                outputs = nodes[origin].outputs
                if source.output >= len(outputs):
                    continue
                if other in self.added:
                    port = nodes[layer].inputs[index]
                else:
                    port = _free_port(nodes[layer])
                    inputs = (*nodes[layer].inputs, port)
                    nodes[layer] = replace(nodes[layer], inputs=inputs)
                yield Edge(origin, outputs[source.output].id, layer, port.id)

    def _differences(self, layer: LayerId, other: LayerId) -> Iterator[str]:
        left, right = self.left.graph.by_id[layer], self.right.graph.by_id[other]
        for before, after in zip(left.outputs, right.outputs, strict=False):
            is_open = not before.shape.is_static or not after.shape.is_static
            if before.element_type != after.element_type or (
                before.shape != after.shape and not (self.is_foreign and is_open)
            ):
                yield f"{_declared(before)} → {_declared(after)}"
        if self.is_foreign:
            return
        if left.type != right.type:
            yield f"{left.type} → {right.type}"
        for name in dict.fromkeys((*left.attributes, *right.attributes)):
            old, new = left.attributes.get(name), right.attributes.get(name)
            if not same_attribute(old, new):
                yield f"{name}: {_text(old)} → {_text(new)}"
        yield from self._other_inputs(layer, other)

    def _other_inputs(self, layer: LayerId, other: LayerId) -> Iterator[str]:
        left, right = self.left.graph, self.right.graph
        for index, (before, after) in enumerate(
            zip(left.sources[layer], right.sources[other], strict=False)
        ):
            if before is None or after is None:
                if before is not after:
                    yield f"input {index} is {'not ' if after is None else ''}connected"
                continue
            constants = left.by_id[before.layer].constant, right.by_id[after.layer].constant
            if None not in constants:
                if not same_constant(*constants):
                    yield f"input {index}: {_stored(*constants)}"
            elif after.layer in self.partner and (
                OutputRef(self.partner[after.layer], after.output) != before
            ):
                name = self.left.labels[self.partner[after.layer]]
                yield f"input {index} from {elided(decode(name), _LONGEST)}"


def _is_operation(node: Node) -> bool:
    return node.constant is None and node.type not in ("Parameter", "Result")


def _free_port(node: Node) -> Port:
    ports = (*node.inputs, *node.outputs)
    return Port(max((port.id for port in ports), default=-1) + 1)


def _stored(before: object, after: object) -> str:
    words = [
        f"{getattr(constant, 'element_type', '')} {list(getattr(constant, 'shape', ()))}"
        for constant in (before, after)
    ]
    return f"{words[0]} → {words[1]}" if words[0] != words[1] else "other stored values"


def _declared(port: Port) -> str:
    return f"{port.element_type or 'any type'} {port.shape}"


def _text(value: object) -> str:
    return "none" if value is None else shorten(str(value), _LONGEST)
