"""Groups of nodes inside one graph that can be drawn as one box: name scopes, neighbourhoods, chains of shape arithmetic.

A group's address looks like a place but can be none: ``main/encoder%2F*`` holds the nodes whose names begin with ``encoder/``,
``main/*~0..120`` the first 120 nodes in running order, ``main/Concat_7~shape`` the shape arithmetic that ends in ``Concat_7``,
``main/if_2/then/*~outer`` the Parameters of a body that only hand outer values in.
"""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.ir.address import decode, labels
from engine.ir.model import Body, Graph, LayerId, Model, Node
from engine.view.drawing_order import on_cycles, topological, turned
from engine.view.roles import handed_in

CHAIN = "~shape"
OUTER = "*~outer"
_SEPARATOR = re.compile(r"%2F|\.")
_RANGE = re.compile(r"~(\d{1,9})\.\.(\d{1,9})$")
_SHAPE_ARITHMETIC = frozenset(
    {"ShapeOf", "Shape", "Size", "Gather", "Slice", "StridedSlice", "Concat", "Split", "Squeeze", "Unsqueeze", "Reshape", "Broadcast"}
    | {"Add", "Subtract", "Multiply", "Divide", "Mod", "FloorMod", "Maximum", "Minimum", "Convert", "ReduceProd", "Range"}
    | {"Sub", "Mul", "Div", "Max", "Min", "Cast"}
)
_SHORTEST_CHAIN = 3
_MOST_TURNED = 8
_MOST_LINES = 6
"""Name scopes that would add upward lines, or more lines for each box, are not drawn as groups."""


def is_group(address: str) -> bool:
    """Whether an address names a group rather than a node or body.

    >>> is_group("main/encoder%2F*"), is_group("main/*~0..9"), is_group("main/Concat~shape"), is_group("main/loop")
    (True, True, True, False)
    """
    label = address.rpartition("/")[2]
    return "*" in label or label.endswith(CHAIN)


def group_title(address: str) -> tuple[str, str]:
    """What a group is, and its name.

    >>> group_title("main/encoder%2Flayer%2F*"), group_title("main/*~0..9"), group_title("main/Concat_7~shape")
    (('Scope', 'encoder/layer'), ('Nodes', '1 to 9'), ('Shape arithmetic', 'Concat_7'))
    >>> group_title("main/if_2/then/*~outer")
    ('Outer values', '')
    """
    label = address.rpartition("/")[2]
    if label == OUTER:
        return "Outer values", ""
    if label.endswith(CHAIN):
        return "Shape arithmetic", decode(label.removesuffix(CHAIN))
    span = _RANGE.search(label)
    if span:
        return "Nodes", f"{int(span[1]) + 1} to {span[2]}"
    return "Scope", decode(label.partition("*")[0]).rstrip("/.")


@dataclass(frozen=True, slots=True)
class Call:
    """A group that is one of several calls of a function."""

    function: str
    number: int
    """From 1 on."""
    total: int


def named_scopes(model: Model) -> frozenset[str]:
    """The groups that a model says are scopes that its author has named (``graph.scope`` of ``engine.build`` has it say so)."""
    return frozenset(text for text in _told(model, "scopes").values() if is_group(text))


def function_calls(model: Model) -> Mapping[str, Call]:
    """The groups that a model says are calls of functions (``engine.build.function`` has it say so), by address."""
    groups = {key: text for key, text in _told(model, "functions").items() if is_group(text)}
    names = _told(model, "function_names")
    # A file from before names were kept: each call is of a function of its own.
    of_function: dict[str, list[str]] = defaultdict(list)
    for key, group in groups.items():
        of_function[names.get(key, group_title(group)[1])].append(group)
    return {group: Call(function, number, len(calls)) for function, calls in of_function.items() for number, group in enumerate(calls, 1)}


def _told(model: Model, section: str) -> Mapping[str, str]:
    """A section of what a model tells of how it was built; a file's may hold anything."""
    own = model.rt_info.get("loopscope")
    told = own.get(section) if isinstance(own, Mapping) else None
    return {key: text for key, text in told.items() if isinstance(text, str)} if isinstance(told, Mapping) else {}


@dataclass(frozen=True, slots=True)
class Grouping:
    """For the nodes of one graph, the innermost declared group of each; and the group around each group."""

    group_of: Mapping[LayerId, str]
    parent: Mapping[str, str]
    """Empty text for a group that lies directly in the graph."""
    members: Mapping[str, tuple[LayerId, ...]]
    """All nodes in a group, those in groups inside it too."""

    def around(self, layer: LayerId) -> Iterator[str]:
        """The groups that hold a node, innermost first."""
        group = self.group_of.get(layer, "")
        while group:
            yield group
            group = self.parent[group]


NO_GROUPING = Grouping({}, {}, {})


def grouping(graph: Graph, place: str, declared: Collection[str], body: Body | None = None) -> Grouping:
    """The declared group of each node of a graph. ``body``: the body that the graph belongs to, if any."""
    own = {address for address in declared if address.rpartition("/")[0] == place and is_group(address)}
    if not own:
        return NO_GROUPING
    label = labels(graph)
    chains = {address for address in own if address.endswith(CHAIN)}
    outer = f"{place}/{OUTER}"
    members: dict[str, tuple[LayerId, ...]] = {}
    ordered = topological(graph) if own - chains - {outer} else ()
    for address in sorted(own - chains - {outer}, key=len):
        members[address] = members_of(address, place, label, ordered)
    group_of: dict[LayerId, str] = {}
    parent: dict[str, str] = {}
    for address in sorted(members, key=lambda one: -len(members[one])):
        first = next(iter(members[address]), None)
        parent[address] = group_of.get(first, "") if first is not None else ""
        group_of.update(dict.fromkeys(members[address], address))
    if chains:
        _add_chains(graph, place, chains, group_of, parent, members)
    if outer in own and body is not None:
        members[outer], parent[outer] = handed_in(body), ""
        group_of.update(dict.fromkeys(members[outer], outer))
    return Grouping(group_of, parent, members)


def members_of(address: str, place: str, label: Mapping[LayerId, str], ordered: Sequence[LayerId]) -> tuple[LayerId, ...]:
    """The nodes that a scope or neighbourhood address names, in running order."""
    text = address[len(place) + 1 :]
    prefix, _, ranges = text.partition("*")
    found = tuple(layer for layer in ordered if label[layer].startswith(prefix))
    for begin, end in re.findall(r"~(\d+)\.\.(\d+)", ranges):
        found = found[int(begin) : int(end)]
    return found


def _add_chains(
    graph: Graph,
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


def shape_chains(graph: Graph, place: str, group_of: Mapping[LayerId, str]) -> Mapping[str, tuple[LayerId, ...]]:
    """Connected shape arithmetic: small integers computed from shapes and constants alone; by address, longest chains only."""
    arithmetic = _shape_arithmetic(graph)
    root: dict[LayerId, LayerId] = {layer: layer for layer in arithmetic}

    def find(layer: LayerId) -> LayerId:
        while root[layer] != layer:
            root[layer] = root[root[layer]]
            layer = root[layer]
        return layer

    for layer in arithmetic:
        for source in graph.sources[layer]:
            if source is not None and source.layer in arithmetic and group_of.get(source.layer) == group_of.get(layer):
                root[find(source.layer)] = find(layer)
    chains: dict[LayerId, list[LayerId]] = defaultdict(list)
    for layer in arithmetic:
        chains[find(layer)].append(layer)
    long = {key: tuple(chain) for key, chain in chains.items() if len(chain) >= _SHORTEST_CHAIN}
    label = labels(graph)
    return {f"{place}/{label[chain[-1]]}{CHAIN}": chain for chain in _without_cycles(graph, long)}


def _without_cycles(graph: Graph, chains: Mapping[LayerId, tuple[LayerId, ...]]) -> Iterator[tuple[LayerId, ...]]:
    """Those chains that stay in running order as one box: a box that feeds itself through others would turn the picture round."""
    box = {layer: key for key, chain in chains.items() for layer in chain}
    arcs = [
        (box.get(source.layer, source.layer), box.get(layer, layer))
        for layer, sources in graph.sources.items()
        for source in sources
        if source is not None
    ]
    turned = on_cycles(graph.by_id, arcs) if chains else set()
    return (chain for key, chain in chains.items() if key not in turned)


def _shape_arithmetic(graph: Graph) -> dict[LayerId, None]:
    """Nodes of shape arithmetic in running order."""
    found: dict[LayerId, None] = {}
    if not any(node.type in ("ShapeOf", "Shape") for node in graph.nodes):
        return found
    for layer in topological(graph):
        node = graph.by_id[layer]
        if node.type not in _SHAPE_ARITHMETIC or node.bodies or not _is_small_integer(node):
            continue
        fed = [source.layer for source in graph.sources[layer] if source is not None and not graph.by_id[source.layer].constant]
        if node.type in ("ShapeOf", "Shape") or (fed and all(one in found for one in fed)):
            found[layer] = None
    return found


def _is_small_integer(node: Node) -> bool:
    if len(node.outputs) != 1:
        return False
    port = node.outputs[0]
    return (port.element_type is None or port.element_type.is_integer) and port.shape.rank in (0, 1)


def scope_prefixes(label: str) -> Iterator[str]:
    """The scopes that a node's label lies in, outermost first.

    >>> list(scope_prefixes("encoder%2Flayer.1%2Fadd"))
    ['encoder%2F', 'encoder%2Flayer.', 'encoder%2Flayer.1%2F']
    """
    for match in _SEPARATOR.finditer(label):
        if match.start() > 0 and match.end() < len(label):
            yield label[: match.end()]


def partition(graph: Graph, place: str, base: str, layers: Sequence[LayerId], most: int) -> tuple[str, ...]:
    """Groups for nodes that are too many to draw: name scopes where names have them, else neighbourhoods in running order.

    ``base`` is the address of the group that they are in, such as ``main/*`` for a whole graph; at most ``most`` boxes remain.
    """
    label = labels(graph)
    prefix = base[len(place) + 1 :].partition("*")[0]
    drawn = [layer for layer in layers if graph.by_id[layer].constant is None]
    scopes = () if _RANGE.search(base) else _scopes(place, prefix, [label[layer] for layer in drawn], most)
    prefixes = [scope.removesuffix("*") for scope in scopes]
    if scopes and _flows(graph, {layer: _box_of(f"{place}/{label[layer]}", prefixes) for layer in drawn}):
        return scopes
    size = max(2, -(-len(layers) // max(1, min(most, 48))))
    return tuple(f"{base}~{begin}..{min(begin + size, len(layers))}" for begin in range(0, len(layers), size))


def _box_of(address: str, prefixes: Sequence[str]) -> str:
    """The one of these prefixes, sorted and none the beginning of another, with which an address begins; itself when there is none.

    >>> _box_of("main/b/x", ["main/a/", "main/b/"]), _box_of("main/c", ["main/a/", "main/b/"])
    ('main/b/', 'main/c')
    """
    at = bisect.bisect_right(prefixes, address)
    return prefixes[at - 1] if at and address.startswith(prefixes[at - 1]) else address


def _flows(graph: Graph, box: Mapping[LayerId, str]) -> bool:
    """Whether boxes for nodes (in running order) make a picture that is read from above to below, with few lines back and forth."""
    pairs = (
        (box[source.layer], box[layer]) for layer in box for source in graph.sources[layer] if source is not None and source.layer in box
    )
    between = list(dict.fromkeys((source, target) for source, target in pairs if source != target))
    boxes = list(dict.fromkeys(box.values()))
    return len(turned(boxes, between)) <= max(_MOST_TURNED, len(boxes) // 8) and len(between) <= _MOST_LINES * len(boxes)


def _scopes(place: str, prefix: str, names: Sequence[str], most: int) -> tuple[str, ...]:
    """The finest cut of the tree of name scopes that leaves at most ``most`` boxes; empty when there is none."""
    size: dict[str, int] = defaultdict(int)
    inside: dict[str, set[str]] = defaultdict(set)
    loose: dict[str, int] = defaultdict(int)
    for name in names:
        around = prefix
        for scope in scope_prefixes(name):
            if len(scope) > len(prefix):
                size[scope] += 1
                inside[around].add(scope)
                around = scope
        loose[around] += 1
    cut = set(inside[prefix])
    visible = len(cut) + loose[prefix]
    if not cut or visible > most:
        return ()
    waiting = sorted(cut, key=lambda scope: (size[scope], scope))
    while waiting:
        scope = waiting.pop()
        more = len(inside[scope]) + loose[scope] - 1
        if visible + more <= most:
            visible += more
            cut.remove(scope)
            cut |= inside[scope]
            waiting = sorted((*waiting, *inside[scope]), key=lambda one: (size[one], one))
    return tuple(f"{place}/{scope}*" for scope in sorted(cut))
