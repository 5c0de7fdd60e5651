"""The order in which a graph is read from above to below: what belongs together stands together, so
that stretches of it make boxes.

Every stretch of a topological order is convex: boxes made of stretches never feed each other in a
circle. Depth first, each operation comes right after what it needs. Values that are taken far away
(a mask that all layers take) come before everything, else the first layer to take them would hold
what makes them, and would look unlike the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from weakref import WeakKeyDictionary

from loopscope.ir.address import labels
from loopscope.ir.model import LayerId, ModelGraph

MOST_PORTS = 6
"""A graph's Parameters stand at the beginning and its Results at the end, unless there are more
than so many: then each stands where it is used, and belongs to the layer that uses it.
"""
SEPARATOR = re.compile(r"%2F|\.")
"""Between the scopes of a label."""
_FAR = 8
"""A value is taken far away when one such part of the graph lies between."""
_FAR_AT_LEAST = 64

Inputs = Mapping[LayerId, tuple[LayerId, ...]]
"""What feeds each node, constants left out."""


@dataclass(frozen=True, eq=False)
class ReadingOrder:
    """The nodes of one graph that are no constants. It does not hold its graph."""

    layers: tuple[LayerId, ...]
    label: Mapping[LayerId, str]
    """Of every node, constants too."""
    inputs: Inputs
    last_use: tuple[int, ...]
    """For each position the last position that takes what is made there; its own when none does."""
    constants: Mapping[LayerId, tuple[LayerId, ...]]
    """The constants that no earlier node takes."""
    homes: Mapping[str, Mapping[LayerId, str]]
    """For each node the text that says where it belongs, in three ways.

    ``*``: its own label. ``**``: that of what takes it first, for nodes that are made of constants
    alone or have no scope in their names, which converters add between those that they name.
    ``***``: the same with dots alone, where a scope is written in two ways (``layers.0/add`` and
    ``layers.0.linear/add``).
    """
    _beginning_with: dict[tuple[str, str], tuple[LayerId, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[LayerId, ...]]
    )

    def beginning_with(self, prefix: str, way: str = "*") -> tuple[LayerId, ...]:
        """The nodes whose texts begin so."""
        if not prefix:
            return self.layers
        found = self._beginning_with.get((prefix, way))
        if found is None:
            text = self.homes[way]
            found = self._beginning_with[prefix, way] = tuple(
                layer for layer in self.layers if text[layer].startswith(prefix)
            )
        return found

    def with_constants(self, layers: Iterable[LayerId]) -> tuple[LayerId, ...]:
        """The same nodes, each after its constants."""
        return tuple(one for layer in layers for one in (*self.constants.get(layer, ()), layer))


_kept: WeakKeyDictionary[ModelGraph, ReadingOrder] = WeakKeyDictionary()
_lock = Lock()


def reading_order(graph: ModelGraph) -> ReadingOrder:
    """Made once for each graph, and forgotten with it."""
    with _lock:
        found = _kept.get(graph)
    if found is None:
        found = _made(graph)
        with _lock:
            _kept[graph] = found
    return found


def _made(graph: ModelGraph) -> ReadingOrder:
    drawn = [node.id for node in graph.nodes if node.constant is None]
    fixed = {node.id for node in graph.nodes if node.constant is not None}
    inputs = {
        layer: tuple(
            dict.fromkeys(
                one.layer
                for one in graph.sources[layer]
                if one is not None and one.layer not in fixed
            )
        )
        for layer in drawn
    }
    # Each once: what several nodes of a damaged file call themselves is one place.
    first, last = (
        tuple(dict.fromkeys(node.id for node in ports if node.id in inputs))
        if len(ports) <= MOST_PORTS
        else ()
        for ports in (graph.parameters, graph.results)
    )
    layers = _depth_first(inputs, first, last)
    far = _taken_far_away(layers, inputs)
    if far:
        layers = _depth_first(inputs, (*first, *far), last)
    taken: dict[LayerId, tuple[LayerId, ...]] = {}
    left = set(fixed)
    for layer in layers:
        new = tuple(
            dict.fromkeys(
                one.layer for one in graph.sources[layer] if one is not None and one.layer in left
            )
        )
        if new:
            taken[layer] = new
            left.difference_update(new)
    label = labels(graph)
    home = _homes(graph, layers, inputs, label)
    homes = {
        "*": label,
        "**": home,
        "***": {layer: text.replace("%2F", ".") for layer, text in home.items()},
    }
    return ReadingOrder(layers, label, inputs, tuple(_last_uses(layers, inputs)), taken, homes)


def _homes(
    graph: ModelGraph, layers: Sequence[LayerId], inputs: Inputs, label: Mapping[LayerId, str]
) -> Mapping[LayerId, str]:
    fixed: set[LayerId] = set()
    taken_by: dict[LayerId, LayerId] = {}
    for layer in layers:
        if graph.by_id[layer].inputs and all(source in fixed for source in inputs[layer]):
            fixed.add(layer)
        for source in inputs[layer]:
            taken_by.setdefault(source, layer)
    home: dict[LayerId, str] = {}
    for layer in reversed(layers):
        own = home[layer] = label[layer]
        there = home.get(taken_by.get(layer, layer), "")
        if (
            layer in fixed or (not has_scope(own) and graph.by_id[layer].type != "Parameter")
        ) and has_scope(there):
            home[layer] = there
    return home


def has_scope(label: str) -> bool:
    """Whether a node's label lies in a scope: it has a separator inside."""
    return SEPARATOR.search(label, 1) is not None


def _depth_first(
    inputs: Inputs, first: Sequence[LayerId], last: Sequence[LayerId]
) -> tuple[LayerId, ...]:
    """Producers before consumers, but for inputs that close a cycle."""
    hanging = _hanging(inputs, last)
    position = {layer: number for number, layer in enumerate(inputs)}
    used = {source for sources in inputs.values() for source in sources}
    hang = {sink for sinks in hanging.values() for sink in sinks}
    ends = [layer for layer in inputs if layer not in used and layer not in hang]
    # The deepest first: what else hangs on the way there finds its place beside it.
    deepest = sorted(hang, key=lambda layer: position[inputs[layer][0]], reverse=True)
    placed: dict[LayerId, None] = {}
    begun: set[LayerId] = set()
    # After all ends every node once more: those on cycles have no end.
    waiting = [*reversed((*first, *ends, *deepest, *inputs))]
    while waiting:
        layer = waiting[-1]
        if layer not in begun:
            begun.add(layer)
            waiting.extend(source for source in reversed(inputs[layer]) if source not in begun)
            continue
        waiting.pop()
        if layer not in placed:
            placed[layer] = None
            placed.update(dict.fromkeys(hanging.get(layer, ())))
    for layer in last:
        placed.pop(layer)
    return (*placed, *last)


def _hanging(inputs: Inputs, last: Sequence[LayerId]) -> Mapping[LayerId, list[LayerId]]:
    """By what they take, the nodes that nothing takes and that take one thing only: a Result
    stands beside what it hands out.
    """
    used = {source for sources in inputs.values() for source in sources}
    found: dict[LayerId, list[LayerId]] = {}
    for layer, sources in inputs.items():
        if len(sources) == 1 and layer not in used and layer not in last:
            found.setdefault(sources[0], []).append(layer)
    return found


def _last_uses(layers: Sequence[LayerId], inputs: Inputs) -> list[int]:
    position = {layer: number for number, layer in enumerate(layers)}
    found = list(range(len(layers)))
    for number, layer in enumerate(layers):
        for source in inputs[layer]:
            found[position[source]] = max(found[position[source]], number)
    return found


def _taken_far_away(layers: Sequence[LayerId], inputs: Inputs) -> list[LayerId]:
    far = max(_FAR_AT_LEAST, len(layers) // _FAR)
    return [
        layers[number]
        for number, last in enumerate(_last_uses(layers, inputs))
        if last - number > far
    ]
