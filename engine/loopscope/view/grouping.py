"""Groups of nodes in a graph that can be one box: name scopes, blocks, stretches, shape arithmetic.

The address of a group has the form of a place, with a label that no node has:

- ``main/encoder%2F*``: nodes whose names begin with ``encoder/``.
- ``main/*~0..120``: the first 120 nodes in reading order (more in ``loopscope.view.partition``).
- ``main/Concat_7~shape``: the shape arithmetic that ends in ``Concat_7``.
- ``main/if_2/then/*~outer``: Parameters of a body that only pass outer values in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from loopscope.ir.address import labels
from loopscope.ir.model import Body, LayerId, ModelGraph, Node
from loopscope.view.node_order import on_cycles, reading_order, topological
from loopscope.view.partition import members_of
from loopscope.view.roles import handed_in

CHAIN = "~shape"
OUTER = "*~outer"
_SHAPE_ARITHMETIC = frozenset(
    {
        "ShapeOf",
        "Shape",
        "Size",
        "Gather",
        "Slice",
        "StridedSlice",
        "Concat",
        "Split",
        "Squeeze",
        "Unsqueeze",
        "Reshape",
        "Broadcast",
    }
    | {
        "Add",
        "Subtract",
        "Multiply",
        "Divide",
        "Mod",
        "FloorMod",
        "Maximum",
        "Minimum",
        "Convert",
        "ReduceProd",
        "Range",
    }
    | {"Sub", "Mul", "Div", "Max", "Min", "Cast"}
)
_MIN_CHAIN = 3


def is_group(address: str) -> bool:
    """Return True if an address names a group instead of a node or body.

    >>> is_group("main/encoder%2F*"), is_group("main/*~0..9")
    (True, True)
    >>> is_group("main/Concat~shape"), is_group("main/loop")
    (True, False)
    """
    label = address.rpartition("/")[2]
    return "*" in label or label.endswith(CHAIN)


@dataclass(frozen=True, slots=True)
class Grouping:
    """The innermost declared group of each node of a graph, and the group around each group."""

    group_of: Mapping[LayerId, str]
    parent: Mapping[str, str]
    """Group around each group; empty if there is none."""
    members: Mapping[str, tuple[LayerId, ...]]
    """All nodes of a group, including those of its inner groups."""

    def around(self, layer: LayerId) -> Iterator[str]:
        """Yield the groups that contain a node, innermost first."""
        group = self.group_of.get(layer, "")
        while group:
            yield group
            group = self.parent[group]


NO_GROUPING = Grouping({}, {}, {})


def grouping(
    graph: ModelGraph, place: str, declared: Collection[str], body: Body | None = None
) -> Grouping:
    """Return the declared groups of a graph's nodes. ``body`` is the body that the graph belongs
    to, if any.
    """
    own = {
        address for address in declared if address.rpartition("/")[0] == place and is_group(address)
    }
    if not own:
        return NO_GROUPING
    chains = {address for address in own if address.endswith(CHAIN)}
    outer = f"{place}/{OUTER}"
    passed_in = (
        frozenset(handed_in(body)) if outer in own and body is not None else frozenset[LayerId]()
    )
    members: dict[str, tuple[LayerId, ...]] = {}
    for address in sorted(own - chains - {outer}, key=len):
        order = reading_order(graph)
        members[address] = order.with_constants(
            layer for layer in members_of(address, place, order) if layer not in passed_in
        )
    group_of: dict[LayerId, str] = {}
    parent: dict[str, str] = {}
    for address in sorted(members, key=lambda group: -len(members[group])):
        first = next(iter(members[address]), None)
        parent[address] = group_of.get(first, "") if first is not None else ""
        group_of.update(dict.fromkeys(members[address], address))
    if chains:
        _add_chains(graph, place, chains, group_of, parent, members)
    if outer in own and body is not None:
        members[outer], parent[outer] = handed_in(body), ""
        group_of.update(dict.fromkeys(members[outer], outer))
    return Grouping(group_of, parent, members)


def _add_chains(
    graph: ModelGraph,
    place: str,
    chains: set[str],
    group_of: dict[LayerId, str],
    parent: dict[str, str],
    members: dict[str, tuple[LayerId, ...]],
) -> None:
    for address, chain in shape_chains(graph, place, dict(group_of)).items():
        if address in chains:
            parent[address] = group_of.get(chain[0], "")
            members[address] = chain
            group_of.update(dict.fromkeys(chain, address))


def shape_chains(
    graph: ModelGraph, place: str, group_of: Mapping[LayerId, str]
) -> Mapping[str, tuple[LayerId, ...]]:
    """Return the maximal chains of shape arithmetic by address.

    Shape arithmetic is connected nodes that compute small integers from shapes and constants alone.
    """
    arithmetic = _shape_arithmetic(graph)
    root: dict[LayerId, LayerId] = {layer: layer for layer in arithmetic}

    def find(layer: LayerId) -> LayerId:
        while root[layer] != layer:
            root[layer] = root[root[layer]]
            layer = root[layer]
        return layer

    for layer in arithmetic:
        for source in graph.sources[layer]:
            if (
                source is not None
                and source.layer in arithmetic
                and group_of.get(source.layer) == group_of.get(layer)
            ):
                root[find(source.layer)] = find(layer)
    chains: dict[LayerId, list[LayerId]] = defaultdict(list)
    for layer in arithmetic:
        chains[find(layer)].append(layer)
    long = {key: tuple(chain) for key, chain in chains.items() if len(chain) >= _MIN_CHAIN}
    label = labels(graph)
    return {f"{place}/{label[chain[-1]]}{CHAIN}": chain for chain in _without_cycles(graph, long)}


def _without_cycles(
    graph: ModelGraph, chains: Mapping[LayerId, tuple[LayerId, ...]]
) -> Iterator[tuple[LayerId, ...]]:
    """Yield the chains that do not form a cycle with other nodes when drawn as one box."""
    box = {layer: key for key, chain in chains.items() for layer in chain}
    arcs = [
        (box.get(source.layer, source.layer), box.get(layer, layer))
        for layer, sources in graph.sources.items()
        for source in sources
        if source is not None
    ]
    turned = on_cycles(graph.by_id, arcs) if chains else set()
    return (chain for key, chain in chains.items() if key not in turned)


def _shape_arithmetic(graph: ModelGraph) -> dict[LayerId, None]:
    """Return the nodes of shape arithmetic in execution order."""
    arithmetic: dict[LayerId, None] = {}
    if not any(node.type in ("ShapeOf", "Shape") for node in graph.nodes):
        return arithmetic
    for layer in topological(graph):
        node = graph.by_id[layer]
        if node.type not in _SHAPE_ARITHMETIC or node.bodies or not _is_small_integer(node):
            continue
        sources = [
            source.layer
            for source in graph.sources[layer]
            if source is not None and not graph.by_id[source.layer].constant
        ]
        if node.type in ("ShapeOf", "Shape") or (
            sources and all(source in arithmetic for source in sources)
        ):
            arithmetic[layer] = None
    return arithmetic


def _is_small_integer(node: Node) -> bool:
    if len(node.outputs) != 1:
        return False
    port = node.outputs[0]
    return (port.element_type is None or port.element_type.is_integer) and port.shape.rank in (0, 1)
