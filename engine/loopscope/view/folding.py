"""Folding: which control-flow nodes, branches and groups are one box, so that a canvas stays
readable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from loopscope.ir.address import ROOT, PlacedGraph, graphs, is_within, labels
from loopscope.ir.model import Body, LayerId, Model, ModelGraph, Node
from loopscope.ir.recorded_rows import is_trace
from loopscope.view.graph import without_iterations
from loopscope.view.group_boxes import function_calls, named_scopes
from loopscope.view.grouping import CHAIN, OUTER, grouping, is_group, shape_chains
from loopscope.view.node_order import reading_order
from loopscope.view.partition import holds_blocks, members_of, partition
from loopscope.view.roles import handed_in
from loopscope.view.trace_boxes import decisions

VISIBLE_NODES = 40
"""Approximate number of boxes that remain after groups are folded."""
_WHOLE_FACTOR = 1.5
"""Factor on the number of boxes up to which a picture is drawn whole; folding would hide more than
it clears up.
"""
_MAX_OPENED_BOXES = 120
"""Number of boxes up to which a place that the user opens is drawn whole."""
_MIN_BODY_BOXES = 16
"""Number of boxes that a body needs if it is not drawn whole."""
_MAX_OPEN_DEPTH = 8
"""Nesting depth from which bodies start folded."""
_MAX_OUTER_VALUES = 6
"""Number of outer values above which they are drawn as one box, because their lines would be a
bundle.
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
    """Iteration count of the loop, if it is known."""


@dataclass(frozen=True, slots=True)
class Folding:
    """The places that are drawn as one box. ``default_folding`` selects them for a model."""

    folded: frozenset[str] = frozenset()
    """Control-flow nodes (``main/loop_7``), branches (``main/if_2/then``) and groups
    (``loopscope.view.grouping``).
    """
    opened: frozenset[str] = frozenset()
    """Groups that are drawn as a frame around their nodes."""
    constants: bool = False
    """Draw constants as boxes instead of inside their consumers."""
    unrolled: tuple[Unrolled, ...] = ()
    """Loops that are drawn as copies of their body, one for each iteration of a window."""

    @property
    def groups(self) -> frozenset[str]:
        return frozenset(address for address in self.folded | self.opened if is_group(address))

    def window(self, address: str) -> Unrolled | None:
        """Return the window of an unrolled loop at a static address."""
        return next((unrolled for unrolled in self.unrolled if unrolled.address == address), None)


def graph_at(model: Model, root: str) -> ModelGraph:
    """Return the graph at a static address. ``KeyError`` if there is none."""
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
    max_boxes: int = VISIBLE_NODES,
) -> Folding:
    """Return a folding that leaves about ``max_boxes`` boxes.

    Bodies are folded first, then name scopes or repeated blocks, and all calls of a function except
    the first. ``chains``: draw each chain of shape arithmetic as one box.
    """
    if is_trace(model):
        return Folding(decisions(model))
    folded = _fold(graph_at(model, root), root, chains=chains, max_boxes=max_boxes)
    # In models that are large enough for folded scopes, the calls inside them are folded too.
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
    repeated_calls = {address for address, call in calls.items() if call.number > 1}
    opened_scopes = {
        address for address in named_scopes(model) if address.rpartition("/")[0] not in scoped
    }
    return Folding(
        folded | repeated_calls,
        frozenset(calls.keys() - repeated_calls | opened_scopes),
        constants=constants,
    )


def toggle(model: Model, folding: Folding, address: str) -> Folding:
    """Return the folding after a click on a box or frame, which opens or folds it."""
    address = without_iterations(address)
    if is_group(address):
        return _toggle_group(model, folding, address)
    if address not in folding.folded:
        return replace(folding, folded=folding.folded | {address})
    folded = set(folding.folded - {address})
    chains = any(group.endswith(CHAIN) for group in folded)
    for place in _bodies_at(model, address):
        folded |= _fold(
            place.graph,
            place.address,
            chains=chains,
            max_boxes=round(_MAX_OPENED_BOXES / _WHOLE_FACTOR),
            body=place.body,
        )
    return replace(folding, folded=frozenset(folded))


def reveal(model: Model, folding: Folding, address: str) -> Folding:
    """Return the folding with everything opened around the node at a static address."""
    address = without_iterations(address)
    for place in graphs(model):
        if not is_within(address, place.address):
            continue
        if place.address in folding.folded:
            folding = toggle(model, folding, place.address)
        label = address[len(place.address) + 1 :].partition("/")[0]
        layer = next((layer for layer, text in labels(place.graph).items() if text == label), None)
        while layer is not None:
            groups = grouping(place.graph, place.address, folding.groups, place.body)
            folded_groups = [group for group in groups.around(layer) if group in folding.folded]
            if not folded_groups:
                break
            folding = toggle(model, folding, folded_groups[-1])
        region = f"{place.address}/{label}"
        if region != address and region in folding.folded:
            folding = toggle(model, folding, region)
    return folding


def _toggle_group(model: Model, folding: Folding, address: str) -> Folding:
    place = address.rpartition("/")[0]
    if address not in folding.folded:
        graph = graph_at(model, place)
        inside = grouping(graph, place, folding.groups)
        inner_groups = {
            group for group in folding.groups if address in _ancestors(inside.parent, group)
        }
        return replace(
            folding,
            folded=folding.folded - inner_groups | {address},
            opened=folding.opened - inner_groups - {address},
        )
    folded, opened = folding.folded - {address}, folding.opened | {address}
    if address.endswith((CHAIN, OUTER)):
        return replace(folding, folded=folded, opened=opened)
    graph = graph_at(model, place)
    order = reading_order(graph)
    members = members_of(address, place, order)
    whole = len(members) <= _MAX_OPENED_BOXES and not holds_blocks(address, len(members))
    parts = () if whole else partition(graph, place, address, VISIBLE_NODES)
    regions = {f"{place}/{order.label[layer]}" for layer in members if graph.by_id[layer].bodies}
    return replace(folding, folded=folded | set(parts) | regions, opened=opened)


def _ancestors(parent: Mapping[str, str], group: str) -> set[str]:
    ancestors: set[str] = set()
    while group := parent.get(group, ""):
        ancestors.add(group)
    return ancestors


def _bodies_at(model: Model, address: str) -> list[PlacedGraph]:
    """Return the body at an address, or the bodies of the control-flow node at it."""
    return [
        placed
        for placed in graphs(model)
        if address in (placed.address, placed.address.rpartition("/")[0])
    ]


def _fold(
    graph: ModelGraph, root: str, *, chains: bool, max_boxes: int, body: Body | None = None
) -> frozenset[str]:
    """Return the places to fold in this graph. Bodies are opened breadth first while there is room.

    ``body`` is the body that the graph belongs to, if it is drawn inside its region.
    """
    folded: set[str] = set()
    visible = 0
    waiting = deque([(graph, root, 0, body, max_boxes)])
    while waiting:
        inner, place, depth, inside, room = waiting.popleft()
        groups = _groups(inner, place, chains=chains, max_boxes=room)
        if inside is not None and len(handed_in(inside)) > _MAX_OUTER_VALUES:
            groups.add(f"{place}/{OUTER}")
        folded |= groups
        single = _single_boxes(inner, grouping(inner, place, groups, inside).group_of)
        if place == root:
            visible = len(single) + len(groups)
        label = labels(inner)
        for regions in _similar_regions(
            [inner.by_id[layer] for layer in single if inner.by_id[layer].bodies]
        ):
            cost = sum(
                len(node.outputs) + sum(_box_count(body) for body in node.bodies)
                for node in regions
            )
            room_left = round(max_boxes * _WHOLE_FACTOR) - visible
            # A single region is opened with groups inside it, if there is room for a useful
            # picture.
            if depth >= _MAX_OPEN_DEPTH or (
                cost > room_left
                and (len(regions) > 1 or room_left < _MIN_BODY_BOXES * len(regions[0].bodies))
            ):
                folded |= {f"{place}/{label[node.id]}" for node in regions}
                continue
            visible += min(cost, room_left)
            for node in regions:
                address = f"{place}/{label[node.id]}"
                waiting.extend(
                    (
                        body.graph,
                        f"{address}/{body.name}",
                        depth + 1,
                        body,
                        room_left // len(node.bodies),
                    )
                    for body in node.bodies
                )
    return frozenset(folded)


def _box_count(body: Body) -> int:
    """Return the number of boxes of a body that is drawn whole."""
    outer = len(handed_in(body))
    return len(_single_boxes(body.graph, {})) - (outer - 1 if outer > _MAX_OUTER_VALUES else 0)


def _similar_regions(regions: Sequence[Node]) -> Collection[list[Node]]:
    """Group control-flow nodes by type and size. Each group is opened or folded as a whole."""
    groups: dict[tuple[object, ...], list[Node]] = {}
    for node in regions:
        groups.setdefault((node.type, *(len(body.graph.nodes) for body in node.bodies)), []).append(
            node
        )
    return groups.values()


def _single_boxes(graph: ModelGraph, group_of: Mapping[LayerId, str]) -> list[LayerId]:
    """Return the nodes with a box of their own."""
    return [node.id for node in graph.nodes if node.constant is None and node.id not in group_of]


def _groups(graph: ModelGraph, place: str, *, chains: bool, max_boxes: int) -> set[str]:
    chain_groups = set(shape_chains(graph, place, {})) if chains else set()
    in_chain = grouping(graph, place, chain_groups).group_of
    if len(_single_boxes(graph, in_chain)) + len(chain_groups) <= max_boxes * _WHOLE_FACTOR:
        return chain_groups
    # Chains may cross the borders of scopes and blocks. With partitions, they would fold too many
    # nodes.
    return set(partition(graph, place, f"{place}/*", max_boxes))
