"""The order in which a graph's nodes can run."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from loopscope.ir.model import LayerId, ModelGraph, Node, OutputRef

READ_VALUE, ASSIGN = "readvalue", "assign"


@dataclass(frozen=True, slots=True)
class LayerOrder:
    """Layers in an order in which each comes after what feeds it, and what cannot be ordered."""

    layers: tuple[LayerId, ...]
    """All layers that can run; document order wherever the edges leave it free."""
    cycles: tuple[tuple[LayerId, ...], ...] = ()
    """Groups of layers that wait for each other, each as a closed walk along the edges; what
    only waits for them is in neither.
    """


def order(graph: ModelGraph) -> LayerOrder:
    """The order of a graph: topological, and every Assign after the ReadValue nodes of its
    variable where the edges allow it.
    """
    data = _feeders(graph)
    states = _state_feeders(graph)
    if _in_document_order(graph.nodes, data, states):
        return LayerOrder(tuple(data))
    both = {layer: (*before, *states.get(layer, ())) for layer, before in data.items()}
    layers = _sorted(both)
    if len(layers) < len(data):
        layers = _sorted(data)
    return LayerOrder(layers, tuple(_cycles(data, set(layers))))


def dependencies(graph: ModelGraph, *layers: LayerId) -> frozenset[LayerId]:
    """All layers that some of these wait for, by way of others too."""
    feeders = _feeders(graph)
    found: set[LayerId] = set()
    waiting = [*layers]
    while waiting:
        new = set(feeders.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return frozenset(found)


def circles(graph: ModelGraph, also: Iterable[tuple[LayerId, LayerId]]) -> Mapping[LayerId, int]:
    """A number for each layer, the same for those that come from each other: by edges of the
    graph, and by ``also`` (from, to).
    """
    feeders = {layer: set(before) for layer, before in _feeders(graph).items()}
    for one, other in also:
        if one in feeders and other in feeders:
            feeders[other].add(one)
    followers: dict[LayerId, set[LayerId]] = {layer: set() for layer in feeders}
    for layer, before in feeders.items():
        for feeder in before:
            followers[feeder].add(layer)
    # Kosaraju's algorithm: the last to be done with is walked from first, against the arrows.
    number: dict[LayerId, int] = {}
    for layer in reversed(list(_done_with(feeders, feeders))):
        if layer not in number:
            number.update(dict.fromkeys(_done_with(followers, [layer], number), len(number)))
    return number


def _done_with(
    arrows: Mapping[LayerId, Iterable[LayerId]],
    starts: Iterable[LayerId],
    known: Container[LayerId] = (),
) -> Iterator[LayerId]:
    """All that arrows lead to from the starts, each when all behind it is done with (depth
    first); ``known`` is passed over.
    """
    seen: set[LayerId] = set()
    for start in starts:
        walk = [] if start in seen else [(start, iter(arrows[start]))]
        seen.add(start)
        while walk:
            layer, rest = walk[-1]
            new = next((one for one in rest if one not in seen and one not in known), None)
            if new is None:
                walk.pop()
                yield layer
            else:
                seen.add(new)
                walk.append((new, iter(arrows[new])))


def backwards(graph: ModelGraph, source: OutputRef | None) -> Iterator[tuple[OutputRef, Node]]:
    """A tensor, then the first operand of its node, and so on, each with its node; the walk ends
    where a cycle closes.
    """
    seen: set[LayerId] = set()
    while source is not None and source.layer in graph.by_id and source.layer not in seen:
        seen.add(source.layer)
        node = graph.by_id[source.layer]
        yield source, node
        source = next(iter(graph.sources.get(node.id, ())), None)


def _feeders(graph: ModelGraph) -> dict[LayerId, tuple[LayerId, ...]]:
    """What each layer waits for, in document order of the layers."""
    return {
        layer: tuple([source.layer for source in sources if source is not None])
        for layer, sources in graph.sources.items()
    }


def _state_feeders(graph: ModelGraph) -> dict[LayerId, list[LayerId]]:
    """For each Assign the ReadValue nodes of the same variable: a variable is read before it is
    written (ReadValue-6).
    """
    assigns = [node for node in graph.nodes if node.type.lower() == ASSIGN]
    if not assigns:
        return {}
    readers: dict[object, list[LayerId]] = {}
    for node in graph.nodes:
        if node.type.lower() == READ_VALUE:
            readers.setdefault(node.attributes.get("variable_id"), []).append(node.id)
    return {node.id: readers.get(node.attributes.get("variable_id"), []) for node in assigns}


def _in_document_order(
    nodes: Sequence[Node],
    data: Mapping[LayerId, tuple[LayerId, ...]],
    states: Mapping[LayerId, Sequence[LayerId]],
) -> bool:
    """Most files are sorted already; then nothing has to be."""
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


def _sorted(feeders: Mapping[LayerId, tuple[LayerId, ...]]) -> tuple[LayerId, ...]:
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


def _cycles(
    feeders: Mapping[LayerId, tuple[LayerId, ...]], ordered: set[LayerId]
) -> Iterator[tuple[LayerId, ...]]:
    """Walk backwards from each layer that was left over until a layer repeats: that part of the
    walk is a cycle.
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
