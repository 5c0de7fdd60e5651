"""What is drawn as one box: control-flow nodes, branches and groups, chosen so that a canvas
stays readable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from loopscope.ir.address import ROOT, is_within, labels
from loopscope.ir.model import Body, LayerId, Model, ModelGraph, Node
from loopscope.ir.walk import PlacedGraph, graphs
from loopscope.view.graph import without_iterations
from loopscope.view.group_titles import function_calls, named_scopes
from loopscope.view.grouping import CHAIN, OUTER, grouping, is_group, shape_chains
from loopscope.view.partition import holds_blocks, members_of, partition
from loopscope.view.reading_order import reading_order
from loopscope.view.roles import handed_in

VISIBLE_NODES = 40
"""Where groups are folded, at most about so many boxes are left."""
_WHOLE = 1.5
"""A picture is drawn whole that has so many times these boxes: folding it would hide more than
it clears.
"""
_COMFORTABLE = 120
"""What a user opens is shown whole up to here: beyond, a picture is a map rather than a drawing."""
_LEAST_ROOM = 16
"""Boxes that a body needs to show what it does when it does not fit whole."""
_DEEPEST = 8
"""Bodies nested deeper than this start folded."""
_MOST_HANDED_IN = 6
"""Outer values beyond so many are drawn as one box: so many Parameters and lines would be an
unreadable bundle.
"""


FEWEST_COPIES, COPIES, MOST_COPIES = 1, 4, 6


@dataclass(frozen=True, slots=True)
class Unrolled:
    """The iterations of a loop that are drawn side by side."""

    address: str
    """Static address of the loop."""
    first: int = 0
    count: int = COPIES
    total: int | None = None
    """Iterations that there are, when that is known."""


@dataclass(frozen=True, slots=True)
class Folding:
    """Which places are drawn as one box. Pass sets of static addresses, or let
    ``default_folding`` choose.
    """

    folded: frozenset[str] = frozenset()
    """Control-flow nodes (``main/loop_7``), branches (``main/if_2/then``) and groups
    (``loopscope.view.grouping``).
    """
    opened: frozenset[str] = frozenset()
    """Groups that are drawn as a frame round their nodes."""
    constants: bool = False
    """Draw constants as boxes of their own instead of in their consumers."""
    unrolled: tuple[Unrolled, ...] = ()
    """Loops that are drawn as copies of their body, one for each iteration of a window."""

    @property
    def groups(self) -> frozenset[str]:
        return frozenset(address for address in self.folded | self.opened if is_group(address))

    def window(self, address: str) -> Unrolled | None:
        """The window of an unrolled loop, by its static address."""
        return next((one for one in self.unrolled if one.address == address), None)


def graph_at(model: Model, root: str) -> ModelGraph:
    """The graph at a static address; ``KeyError`` when the model has none there."""
    for place in graphs(model):
        if place.address == root:
            return place.graph
    raise KeyError(root)


def default_folding(
    model: Model,
    root: str = ROOT,
    *,
    chains: bool = True,
    constants: bool = False,
    most: int = VISIBLE_NODES,
) -> Folding:
    """Fold bodies, then name scopes or repeated blocks, until about ``most`` boxes are left; of
    each function all calls but the first.

    ``chains``: draw each chain of shape arithmetic as one box.
    """
    folded = _fold(graph_at(model, root), root, chains=chains, most=most)
    # Where so much is there that scopes are folded, the calls in them are too.
    scoped = {
        address.rpartition("/")[0]
        for address in folded
        if is_group(address) and not address.endswith((CHAIN, OUTER))
    }
    calls = {
        address: call
        for address, call in function_calls(model).items()
        if address.rpartition("/")[0] not in scoped
    }
    again = {address for address, call in calls.items() if call.number > 1}
    named = {address for address in named_scopes(model) if address.rpartition("/")[0] not in scoped}
    return Folding(folded | again, frozenset(calls.keys() - again | named), constants=constants)


def toggle(model: Model, folding: Folding, address: str) -> Folding:
    """The folding after a click on a box or frame: folds what is open and opens what is folded."""
    address = without_iterations(address)
    if is_group(address):
        return _toggle_group(model, folding, address)
    if address not in folding.folded:
        return replace(folding, folded=folding.folded | {address})
    folded = set(folding.folded - {address})
    chains = any(one.endswith(CHAIN) for one in folded)
    for place in _bodies_at(model, address):
        folded |= _fold(
            place.graph,
            place.address,
            chains=chains,
            most=round(_COMFORTABLE / _WHOLE),
            body=place.body,
        )
    return replace(folding, folded=frozenset(folded))


def reveal(model: Model, folding: Folding, address: str) -> Folding:
    """The folding that shows the node at a static address: everything folded around it is
    opened.
    """
    address = without_iterations(address)
    for place in graphs(model):
        if not is_within(address, place.address):
            continue
        if place.address in folding.folded:
            folding = toggle(model, folding, place.address)
        wanted = address[len(place.address) + 1 :].partition("/")[0]
        layer = next((layer for layer, text in labels(place.graph).items() if text == wanted), None)
        while layer is not None:
            groups = grouping(place.graph, place.address, folding.groups, place.body)
            closed = [one for one in groups.around(layer) if one in folding.folded]
            if not closed:
                break
            folding = toggle(model, folding, closed[-1])
        region = f"{place.address}/{wanted}"
        if region != address and region in folding.folded:
            folding = toggle(model, folding, region)
    return folding


def _toggle_group(model: Model, folding: Folding, address: str) -> Folding:
    place = address.rpartition("/")[0]
    if address not in folding.folded:
        graph = graph_at(model, place)
        inside = grouping(graph, place, folding.groups)
        below = {one for one in folding.groups if address in _ancestors(inside.parent, one)}
        return replace(
            folding,
            folded=folding.folded - below | {address},
            opened=folding.opened - below - {address},
        )
    folded, opened = folding.folded - {address}, folding.opened | {address}
    if address.endswith((CHAIN, OUTER)):
        return replace(folding, folded=folded, opened=opened)
    graph = graph_at(model, place)
    order = reading_order(graph)
    members = members_of(address, place, order)
    whole = len(members) <= _COMFORTABLE and not holds_blocks(address, len(members))
    within = () if whole else partition(graph, place, address, VISIBLE_NODES)
    regions = {f"{place}/{order.label[layer]}" for layer in members if graph.by_id[layer].bodies}
    return replace(folding, folded=folded | set(within) | regions, opened=opened)


def _ancestors(parent: Mapping[str, str], group: str) -> set[str]:
    found: set[str] = set()
    while group := parent.get(group, ""):
        found.add(group)
    return found


def _bodies_at(model: Model, address: str) -> list[PlacedGraph]:
    """The body at an address, or the bodies of the control-flow node at it."""
    return [
        one for one in graphs(model) if address in (one.address, one.address.rpartition("/")[0])
    ]


def _fold(
    graph: ModelGraph, root: str, *, chains: bool, most: int, body: Body | None = None
) -> frozenset[str]:
    """What to fold in this graph: bodies are opened breadth first while they fit. ``body``: it
    is drawn inside its region, not alone.
    """
    folded: set[str] = set()
    visible = 0
    waiting = deque([(graph, root, 0, body, most)])
    while waiting:
        inner, place, depth, inside, room = waiting.popleft()
        groups = _groups(inner, place, chains=chains, most=room)
        if inside is not None and len(handed_in(inside)) > _MOST_HANDED_IN:
            groups.add(f"{place}/{OUTER}")
        folded |= groups
        alone = _alone(inner, grouping(inner, place, groups, inside).group_of)
        if place == root:
            visible = len(alone) + len(groups)
        label = labels(inner)
        for regions in _alike([inner.by_id[layer] for layer in alone if inner.by_id[layer].bodies]):
            cost = sum(
                len(node.outputs) + sum(_boxes_of(body) for body in node.bodies) for node in regions
            )
            left = round(most * _WHOLE) - visible
            # One alone is opened with groups in it, if there is room for a picture that says
            # something.
            if depth >= _DEEPEST or (
                cost > left and (len(regions) > 1 or left < _LEAST_ROOM * len(regions[0].bodies))
            ):
                folded |= {f"{place}/{label[node.id]}" for node in regions}
                continue
            visible += min(cost, left)
            for node in regions:
                address = f"{place}/{label[node.id]}"
                waiting.extend(
                    (
                        body.graph,
                        f"{address}/{body.name}",
                        depth + 1,
                        body,
                        left // len(node.bodies),
                    )
                    for body in node.bodies
                )
    return frozenset(folded)


def _boxes_of(body: Body) -> int:
    """How many boxes a body has when it is drawn whole."""
    outer = len(handed_in(body))
    return len(_alone(body.graph, {})) - (outer - 1 if outer > _MOST_HANDED_IN else 0)


def _alike(regions: Sequence[Node]) -> Collection[list[Node]]:
    """Control-flow nodes of one type and size together: they are opened together, or none of
    them.
    """
    found: dict[tuple[object, ...], list[Node]] = {}
    for node in regions:
        found.setdefault((node.type, *(len(body.graph.nodes) for body in node.bodies)), []).append(
            node
        )
    return found.values()


def _alone(graph: ModelGraph, group_of: Mapping[LayerId, str]) -> list[LayerId]:
    """Nodes that get a box of their own."""
    return [node.id for node in graph.nodes if node.constant is None and node.id not in group_of]


def _groups(graph: ModelGraph, place: str, *, chains: bool, most: int) -> set[str]:
    found = set(shape_chains(graph, place, {})) if chains else set()
    in_chain = grouping(graph, place, found).group_of
    if len(_alone(graph, in_chain)) + len(found) <= most * _WHOLE:
        return found
    # Chains may cross the borders of scopes and blocks, so that too many nodes are folded by these
    # alone.
    return set(partition(graph, place, f"{place}/*", most))
