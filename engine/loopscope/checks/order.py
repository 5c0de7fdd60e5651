"""Execution order of a graph's nodes, cycles, and walks along its edges."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from loopscope.ir.model import LayerId, ModelGraph, Node, OutputRef

READ_VALUE, ASSIGN = "readvalue", "assign"


@dataclass(frozen=True, slots=True)
class LayerOrder:
    """Layers in topological order, and the cycles that could not be ordered."""

    layers: tuple[LayerId, ...]
    """Layers that can run, in document order wherever the edges allow it."""
    cycles: tuple[tuple[LayerId, ...], ...] = ()
    """Groups of layers that wait for each other, each as a closed walk along the edges. Layers that
    only depend on a cycle are in neither field.
    """


def order(graph: ModelGraph) -> LayerOrder:
    """Return the execution order of a graph.

    The order is topological. Every Assign runs after the ReadValue nodes of its variable if the
    edges allow it.
    """
    data = _feeders(graph)
    states = _state_feeders(graph)
    if _is_document_order(graph.nodes, data, states):
        return LayerOrder(tuple(data))
    both = {layer: (*before, *states.get(layer, ())) for layer, before in data.items()}
    layers = _sort_layers(both)
    if len(layers) < len(data):
        layers = _sort_layers(data)
    return LayerOrder(layers, tuple(_find_cycles(data, set(layers))))


def dependencies(graph: ModelGraph, *layers: LayerId) -> frozenset[LayerId]:
    """Return all layers that the given layers depend on, directly or indirectly."""
    feeders = _feeders(graph)
    visited: set[LayerId] = set()
    waiting = [*layers]
    while waiting:
        new = set(feeders.get(waiting.pop(), ())) - visited
        visited |= new
        waiting += new
    return frozenset(visited)


def circles(graph: ModelGraph, also: Iterable[tuple[LayerId, LayerId]]) -> Mapping[LayerId, int]:
    """Return a number per layer that is equal for layers of the same strongly connected component.

    Edges are those of the graph and the pairs (from, to) in ``also``.
    """
    feeders = {layer: set(before) for layer, before in _feeders(graph).items()}
    for start, end in also:
        if start in feeders and end in feeders:
            feeders[end].add(start)
    followers: dict[LayerId, set[LayerId]] = {layer: set() for layer in feeders}
    for layer, before in feeders.items():
        for feeder in before:
            followers[feeder].add(layer)
    # Kosaraju's algorithm: walk the reversed edges from the layers in reverse postorder.
    number: dict[LayerId, int] = {}
    for layer in reversed(list(_postorder(feeders, feeders))):
        if layer not in number:
            number.update(dict.fromkeys(_postorder(followers, [layer], number), len(number)))
    return number


def _postorder(
    arrows: Mapping[LayerId, Iterable[LayerId]],
    starts: Iterable[LayerId],
    known: Container[LayerId] = (),
) -> Iterator[LayerId]:
    """Yield all layers that are reachable from ``starts`` in depth-first postorder, without the
    layers in ``known``.
    """
    seen: set[LayerId] = set()
    for start in starts:
        walk = [] if start in seen else [(start, iter(arrows[start]))]
        seen.add(start)
        while walk:
            layer, rest = walk[-1]
            new = next(
                (target for target in rest if target not in seen and target not in known), None
            )
            if new is None:
                walk.pop()
                yield layer
            else:
                seen.add(new)
                walk.append((new, iter(arrows[new])))


def backwards(graph: ModelGraph, source: OutputRef | None) -> Iterator[tuple[OutputRef, Node]]:
    """Yield a tensor and its node, then the first operand of that node, and so on. A cycle ends the
    walk.
    """
    seen: set[LayerId] = set()
    while source is not None and source.layer in graph.by_id and source.layer not in seen:
        seen.add(source.layer)
        node = graph.by_id[source.layer]
        yield source, node
        source = next(iter(graph.sources.get(node.id, ())), None)


def _feeders(graph: ModelGraph) -> dict[LayerId, tuple[LayerId, ...]]:
    """Return the layers that each layer reads from, in document order."""
    return {
        layer: tuple([source.layer for source in sources if source is not None])
        for layer, sources in graph.sources.items()
    }


def _state_feeders(graph: ModelGraph) -> dict[LayerId, list[LayerId]]:
    """Map each Assign to the ReadValue nodes of its variable, because a variable is read before it
    is written (ReadValue-6).
    """
    assigns = [node for node in graph.nodes if node.type.lower() == ASSIGN]
    if not assigns:
        return {}
    readers: dict[object, list[LayerId]] = {}
    for node in graph.nodes:
        if node.type.lower() == READ_VALUE:
            readers.setdefault(node.attributes.get("variable_id"), []).append(node.id)
    return {node.id: readers.get(node.attributes.get("variable_id"), []) for node in assigns}


def _is_document_order(
    nodes: Sequence[Node],
    data: Mapping[LayerId, tuple[LayerId, ...]],
    states: Mapping[LayerId, Sequence[LayerId]],
) -> bool:
    """Return True if document order is valid, as in most files; sorting is skipped then."""
    seen: set[LayerId] = set()
    for layer, before in data.items():
        if not seen.issuperset(before):
            return False
        seen.add(layer)
    if not states:
        return True
    position = {node.id: index for index, node in enumerate(nodes)}
    return all(
        position[reader] < position[assign]
        for assign, readers in states.items()
        for reader in readers
    )


def _sort_layers(feeders: Mapping[LayerId, tuple[LayerId, ...]]) -> tuple[LayerId, ...]:
    layers = list(feeders)
    position = {layer: index for index, layer in enumerate(layers)}
    waits = {layer: len(before) for layer, before in feeders.items()}
    followers: dict[LayerId, list[LayerId]] = {layer: [] for layer in layers}
    for layer, before in feeders.items():
        for feeder in before:
            followers[feeder].append(layer)
    free = [position[layer] for layer, count in waits.items() if not count]
    heapify(free)
    result = []
    while free:
        layer = layers[heappop(free)]
        result.append(layer)
        for follower in followers[layer]:
            waits[follower] -= 1
            if not waits[follower]:
                heappush(free, position[follower])
    return tuple(result)


def _find_cycles(
    feeders: Mapping[LayerId, tuple[LayerId, ...]], ordered: set[LayerId]
) -> Iterator[tuple[LayerId, ...]]:
    """Yield a cycle for each layer left over by sorting: walk backwards from it until a layer
    repeats.
    """
    explored: set[LayerId] = set()
    for start in feeders:
        if start in ordered or start in explored:
            continue
        walk: list[LayerId] = []
        places: dict[LayerId, int] = {}
        layer = start
        while layer not in places and layer not in explored:
            places[layer] = len(walk)
            walk.append(layer)
            layer = next(feeder for feeder in feeders[layer] if feeder not in ordered)
        if layer in places:
            yield tuple(reversed(walk[places[layer] :]))
        explored.update(walk)
