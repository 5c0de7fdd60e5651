"""Orders of the nodes of a graph: reading order, and topological order with levels.

Reading order goes from top to bottom, with related nodes adjacent, so that stretches of it can be
boxes. Every stretch of a topological order is convex, so boxes of stretches do not feed each other
in a cycle. In depth-first order, each operation follows its inputs. Values that are used far away
(such as a mask that all layers use) come first. Otherwise the first layer to use them would contain
their computation, and would differ from the other layers.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from loopscope.ir.address import labels
from loopscope.ir.model import LayerId, ModelGraph
from loopscope.object_cache import cache_by_object

MOST_PORTS = 6
"""Number of Parameters (or Results) up to which they come first (or last). With more of them, each
belongs to the layer that uses it.
"""
SEPARATOR = re.compile(r"%2F|\.")
"""Separator between the scopes in a label."""
_FAR_DIVISOR = 8
"""Divisor of the graph's length: a value is used far away if its use is more than that part
away.
"""
_MIN_FAR = 64

Inputs = Mapping[LayerId, tuple[LayerId, ...]]
"""Source nodes of each node, without constants."""


@dataclass(frozen=True, eq=False)
class ReadingOrder:
    """The nodes of a graph without constants, in reading order. It does not reference the graph."""

    layers: tuple[LayerId, ...]
    label: Mapping[LayerId, str]
    """Label of every node, including constants."""
    inputs: Inputs
    last_use: tuple[int, ...]
    """Position of the last consumer of each position; its own position if there is none."""
    constants: Mapping[LayerId, tuple[LayerId, ...]]
    """Constants whose first consumer is the node."""
    homes: Mapping[str, Mapping[LayerId, str]]
    """Texts that determine the scope of each node, in three variants.

    ``*``: the node's own label. ``**``: the label of its first consumer, for nodes without a scope
    or computed from constants alone, which converters insert. ``***``: like ``**`` with only dots
    as separators, for scopes that are written in two ways (``layers.0/add`` and
    ``layers.0.linear/add``).
    """
    _beginning_with: dict[tuple[str, str], tuple[LayerId, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[LayerId, ...]]
    )

    def beginning_with(self, prefix: str, variant: str = "*") -> tuple[LayerId, ...]:
        """Return the nodes whose text in this variant begins with ``prefix``."""
        if not prefix:
            return self.layers
        layers = self._beginning_with.get((prefix, variant))
        if layers is None:
            text = self.homes[variant]
            layers = self._beginning_with[prefix, variant] = tuple(
                layer for layer in self.layers if text[layer].startswith(prefix)
            )
        return layers

    def with_constants(self, layers: Iterable[LayerId]) -> tuple[LayerId, ...]:
        """Return the nodes, each preceded by its constants."""
        return tuple(node for layer in layers for node in (*self.constants.get(layer, ()), layer))


@cache_by_object
def reading_order(graph: ModelGraph) -> ReadingOrder:
    """Return the reading order of a graph. Cached for the lifetime of the graph."""
    drawn = [node.id for node in graph.nodes if node.constant is None]
    fixed = {node.id for node in graph.nodes if node.constant is not None}
    inputs = {
        layer: tuple(
            dict.fromkeys(
                source.layer
                for source in graph.sources[layer]
                if source is not None and source.layer not in fixed
            )
        )
        for layer in drawn
    }
    # Duplicate ids in a damaged file count once.
    first, last = (
        tuple(dict.fromkeys(node.id for node in ports if node.id in inputs))
        if len(ports) <= MOST_PORTS
        else ()
        for ports in (graph.parameters, graph.results)
    )
    layers = _depth_first(inputs, first, last)
    far = _used_far_away(layers, inputs)
    if far:
        layers = _depth_first(inputs, (*first, *far), last)
    constants_of: dict[LayerId, tuple[LayerId, ...]] = {}
    unplaced = set(fixed)
    for layer in layers:
        placed = tuple(
            dict.fromkeys(
                source.layer
                for source in graph.sources[layer]
                if source is not None and source.layer in unplaced
            )
        )
        if placed:
            constants_of[layer] = placed
            unplaced.difference_update(placed)
    label = labels(graph)
    home = _homes(graph, layers, inputs, label)
    homes = {
        "*": label,
        "**": home,
        "***": {layer: text.replace("%2F", ".") for layer, text in home.items()},
    }
    return ReadingOrder(
        layers, label, inputs, tuple(_last_uses(layers, inputs)), constants_of, homes
    )


def _homes(
    graph: ModelGraph, layers: Sequence[LayerId], inputs: Inputs, label: Mapping[LayerId, str]
) -> Mapping[LayerId, str]:
    fixed: set[LayerId] = set()
    first_consumer: dict[LayerId, LayerId] = {}
    for layer in layers:
        if graph.by_id[layer].inputs and all(source in fixed for source in inputs[layer]):
            fixed.add(layer)
        for source in inputs[layer]:
            first_consumer.setdefault(source, layer)
    home: dict[LayerId, str] = {}
    for layer in reversed(layers):
        own = home[layer] = label[layer]
        consumer_home = home.get(first_consumer.get(layer, layer), "")
        if (
            layer in fixed or (not has_scope(own) and graph.by_id[layer].type != "Parameter")
        ) and has_scope(consumer_home):
            home[layer] = consumer_home
    return home


def has_scope(label: str) -> bool:
    """Return True if a label has a separator inside, so that the node belongs to a scope."""
    return SEPARATOR.search(label, 1) is not None


def _depth_first(
    inputs: Inputs, first: Sequence[LayerId], last: Sequence[LayerId]
) -> tuple[LayerId, ...]:
    """Order producers before consumers, except for inputs that close a cycle."""
    hanging = _hanging(inputs, last)
    position = {layer: number for number, layer in enumerate(inputs)}
    used = {source for sources in inputs.values() for source in sources}
    hang = {sink for sinks in hanging.values() for sink in sinks}
    ends = [layer for layer in inputs if layer not in used and layer not in hang]
    # The deepest sink is visited first; sinks on the path to it are placed beside their source.
    deepest = sorted(hang, key=lambda layer: position[inputs[layer][0]], reverse=True)
    placed: dict[LayerId, None] = {}
    begun: set[LayerId] = set()
    # All nodes are visited once more after the ends, because cycles do not have an end.
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
    """Return sinks with a single source by that source, so that a Result is placed beside its
    source.
    """
    used = {source for sources in inputs.values() for source in sources}
    sinks: dict[LayerId, list[LayerId]] = {}
    for layer, sources in inputs.items():
        if len(sources) == 1 and layer not in used and layer not in last:
            sinks.setdefault(sources[0], []).append(layer)
    return sinks


def _last_uses(layers: Sequence[LayerId], inputs: Inputs) -> list[int]:
    position = {layer: number for number, layer in enumerate(layers)}
    last_uses = list(range(len(layers)))
    for number, layer in enumerate(layers):
        for source in inputs[layer]:
            last_uses[position[source]] = max(last_uses[position[source]], number)
    return last_uses


def _used_far_away(layers: Sequence[LayerId], inputs: Inputs) -> list[LayerId]:
    far = max(_MIN_FAR, len(layers) // _FAR_DIVISOR)
    return [
        layers[number]
        for number, last in enumerate(_last_uses(layers, inputs))
        if last - number > far
    ]


Key = TypeVar("Key", bound=Hashable)


def topological(graph: ModelGraph) -> tuple[LayerId, ...]:
    """Return node ids with producers before consumers; each constant directly before its first
    consumer.
    """
    arcs = [
        (source.layer, layer)
        for layer, sources in graph.sources.items()
        for source in sources
        if source is not None
    ]
    order = tuple(levels([node.id for node in graph.nodes], arcs))
    constants = {node.id for node in graph.nodes if node.constant is not None}
    placed: dict[LayerId, None] = {}
    for layer in order:
        if layer not in constants:
            placed.update(
                dict.fromkeys(
                    source.layer
                    for source in graph.sources[layer]
                    if source is not None and source.layer in constants
                )
            )
            placed[layer] = None
    return tuple(placed | dict.fromkeys(order))


def cycle_closing_arcs(
    keys: Sequence[Key], arcs: Sequence[tuple[Key, Key]]
) -> set[tuple[Key, Key]]:
    """Return the arcs whose removal breaks all cycles: those that lead back to an earlier key."""
    cyclic = on_cycles(keys, arcs)
    position = {key: number for number, key in enumerate(keys)} if cyclic else {}
    return {
        (source, target)
        for source, target in arcs
        if source in cyclic and target in cyclic and position[source] > position[target]
    }


def levels(keys: Sequence[Key], arcs: Sequence[tuple[Key, Key]]) -> Mapping[Key, int]:
    """Return for each key the length of the longest path to it, in topological order.

    Arcs that close cycles are ignored.
    """
    successors: dict[Key, list[Key]] = {key: [] for key in keys}
    open_inputs = dict.fromkeys(keys, 0)
    closing = cycle_closing_arcs(keys, arcs)
    for source, target in arcs:
        if source != target and (source, target) not in closing:
            successors[source].append(target)
            open_inputs[target] += 1
    level: dict[Key, int] = {}
    depth = dict.fromkeys(keys, 0)
    ready = deque(key for key in keys if not open_inputs[key])
    while ready:
        key = ready.popleft()
        level[key] = depth[key]
        for target in successors[key]:
            depth[target] = max(depth[target], depth[key] + 1)
            open_inputs[target] -= 1
            if not open_inputs[target]:
                ready.append(target)
    return level


def on_cycles(keys: Collection[Key], arcs: Sequence[tuple[Key, Key]]) -> set[Key]:
    """Return the keys on cycles or on paths between cycles; arcs from a key to itself are
    ignored.
    """
    remaining = set(keys)
    for forwards in (True, False):
        successors: dict[Key, list[Key]] = {key: [] for key in remaining}
        open_inputs = dict.fromkeys(remaining, 0)
        for arc in arcs:
            source, target = arc if forwards else arc[::-1]
            if source != target and source in remaining and target in remaining:
                successors[source].append(target)
                open_inputs[target] += 1
        ready = [key for key in remaining if not open_inputs[key]]
        while ready:
            key = ready.pop()
            remaining.discard(key)
            for target in successors[key]:
                open_inputs[target] -= 1
                if not open_inputs[target]:
                    ready.append(target)
    return remaining
