"""Names of tensors, which connect the nodes of an ONNX graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from loopscope.ir.address import graphs
from loopscope.ir.model import LayerId, Model, ModelGraph, Node, OutputRef


class UnusedNames:
    """The names that are used anywhere in a model, and new ones."""

    def __init__(self, model: Model) -> None:
        self._used = {
            name
            for place in graphs(model)
            for node in place.graph.nodes
            for name in (
                node.name,
                *(text for port in (*node.inputs, *node.outputs) for text in port.names),
            )
        }

    def new(self, name: str) -> str:
        """Return ``name`` with a number that no tensor or node of the model has."""
        number = 1
        while (candidate := f"{name or 'tensor'}_{number}") in self._used:
            number += 1
        self._used.add(candidate)
        return candidate


@dataclass(slots=True)
class TensorNames:
    """The names of the tensors of one graph, which resolve to the graph's edges."""

    order: Sequence[Node]
    """Nodes that are neither Parameters, initializers nor Results, in the order of the file."""
    outputs: dict[OutputRef, str]
    results: dict[LayerId, str]
    """Name of each graph output."""
    copies: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Input and output names of Identity nodes that give a Result its name."""

    def inputs(self, graph: ModelGraph, node: Node) -> list[str]:
        """Return the input names of a node; an undefined name remains as it was."""
        return [
            self.outputs[source] if source is not None else (port.names[0] if port.names else "")
            for source, port in zip(graph.sources[node.id], node.inputs, strict=True)
        ]


def name_tensors(
    graph: ModelGraph, captured: Mapping[LayerId, str], fresh: UnusedNames, *, is_outermost: bool
) -> TensorNames:
    """Return the names of a graph.

    The names of the model remain if they connect the nodes like the edges. Otherwise every name is
    used once. ``captured`` are the names of Parameters in the graph around this one.
    """
    order = _file_order(graph)
    names = _own_names(graph, captured)
    unchanged = TensorNames(order, names, {node.id: node.name for node in graph.results})
    if _connects(graph, unchanged, captured):
        return unchanged
    return _unique(graph, order, names, captured, fresh.new, is_outermost=is_outermost)


def is_initializer(node: Node) -> bool:
    """Return True if a node is an initializer.

    The reader makes a Constant of an initializer whose element type only ONNX has.
    """
    return node.type == "Const" or (
        node.type == "Constant" and not node.source and node.constant is None
    )


def _own_names(graph: ModelGraph, captured: Mapping[LayerId, str]) -> dict[OutputRef, str]:
    names = {}
    for node in graph.nodes:
        for index, port in enumerate(node.outputs):
            name = port.names[0] if port.names else ""
            if node.type == "Parameter":
                name = captured.get(node.id, name if port.names else node.name)
            names[OutputRef(node.id, index)] = name
    return names


def _connects(graph: ModelGraph, names: TensorNames, captured: Mapping[LayerId, str]) -> bool:
    """Return True if a reader finds the graph's edges by these names.

    The last producer before a node counts, else the first one after it.
    """
    producers: dict[str, OutputRef] = {}
    local: set[str] = set()
    for node in graph.nodes:
        if node.type == "Parameter" or is_initializer(node):
            tensor = OutputRef(node.id, 0)
            producers[names.outputs[tensor]] = tensor
            if node.id not in captured:
                local.add(names.outputs[tensor])
    firsts: dict[str, OutputRef] = {}
    for node in names.order:
        for index in range(len(node.outputs)):
            tensor = OutputRef(node.id, index)
            firsts.setdefault(names.outputs[tensor], tensor)
    if not {*captured.values()}.isdisjoint({*local, *firsts}):
        return False
    for node in names.order:
        for name, source in zip(names.inputs(graph, node), graph.sources[node.id], strict=True):
            if name and (producers.get(name) or firsts.get(name)) != source:
                return False
            if not name and source is not None:
                return False
        for index in range(len(node.outputs)):
            tensor = OutputRef(node.id, index)
            if names.outputs[tensor]:
                producers[names.outputs[tensor]] = tensor
    return all(
        (*graph.sources[node.id], None)[0] == producers.get(names.results[node.id])
        for node in graph.results
    )


def _unique(
    graph: ModelGraph,
    order: Sequence[Node],
    names: Mapping[OutputRef, str],
    captured: Mapping[LayerId, str],
    new: Callable[[str], str],
    *,
    is_outermost: bool,
) -> TensorNames:
    """Return names that are used once each.

    Inputs and outputs of the outermost graph have the names of their Parameters and Results.
    """
    results = graph.results
    assigned = {OutputRef(layer, 0): name for layer, name in captured.items()}
    used = {"", *captured.values()}
    for node in graph.parameters if is_outermost else ():
        tensor = OutputRef(node.id, 0)
        assigned[tensor] = names[tensor]
        used.add(names[tensor])
    producers = {node.id: node for node in order}
    for node in results if is_outermost else ():
        source = (*graph.sources[node.id], None)[0]
        if source is not None and source.layer in producers and source not in assigned:
            assigned[source] = node.name
        used.add(node.name)
    needed = {source for sources in graph.sources.values() for source in sources}
    for node in graph.nodes:
        for index in range(len(node.outputs)):
            tensor = OutputRef(node.id, index)
            if tensor in assigned:
                continue
            name = names[tensor]
            if not name and tensor not in needed:
                assigned[tensor] = ""  # an output that is omitted in the file
                continue
            assigned[tensor] = name if name not in used else new(name or node.name)
            used.add(assigned[tensor])
    result = TensorNames(order, assigned, {})
    outer = {*captured.values()}
    taken: set[str] = set()
    for node in results:
        source = (*graph.sources[node.id], None)[0]
        tensor_name = assigned[source] if source is not None else node.name
        name = node.name if is_outermost else tensor_name
        if source is not None and (
            name != tensor_name or tensor_name in outer or tensor_name in taken
        ):
            name = node.name if is_outermost else new(tensor_name)
            result.copies.append((tensor_name, name))
        taken.add(name)
        result.results[node.id] = name
    return result


def _file_order(graph: ModelGraph) -> Sequence[Node]:
    """Return the nodes in their order in the file, or each after the nodes that feed it."""
    nodes = [
        node
        for node in graph.nodes
        if node.type not in ("Parameter", "Result") and not is_initializer(node)
    ]
    numbers = [node.source for node in nodes]
    if all(numbers) and numbers == sorted(numbers):
        return nodes
    return _topological_order(graph, nodes)


def _topological_order(graph: ModelGraph, nodes: Sequence[Node]) -> Sequence[Node]:
    """Return each node after those that feed it, otherwise in the order of the graph.

    The nodes of a cycle come last.
    """
    position = {node.id: index for index, node in enumerate(nodes)}
    waiting_for = {
        node.id: {
            source.layer for source in graph.sources[node.id] if source and source.layer in position
        }
        for node in nodes
    }
    readers: dict[LayerId, list[LayerId]] = {}
    for layer, sources in waiting_for.items():
        for source_layer in sources:
            readers.setdefault(source_layer, []).append(layer)
    ready = [position[layer] for layer, sources in waiting_for.items() if not sources]
    heapify(ready)
    ordered: list[Node] = []
    while ready:
        node = nodes[heappop(ready)]
        ordered.append(node)
        for reader in readers.get(node.id, ()):
            waiting_for[reader].discard(node.id)
            if not waiting_for[reader]:
                heappush(ready, position[reader])
    finished = {node.id for node in ordered}
    return [*ordered, *(node for node in nodes if node.id not in finished)]
