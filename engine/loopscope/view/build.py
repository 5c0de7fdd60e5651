"""Construction of a canvas's content from a model.

    view = graph_view(model, default_folding(model))             # the whole model
    view = graph_view(model, folding, root="main/loop_7/body")   # a body as its own canvas

There are two passes without recursion: boxes and frames of every visible graph, then lines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from loopscope.ir.address import ROOT, decode, labels
from loopscope.ir.model import (
    IF,
    LOOP,
    SCAN,
    SEQUENCE_MAP,
    TENSOR_ITERATOR,
    Body,
    Dialect,
    LayerId,
    Model,
    ModelGraph,
    Node,
)
from loopscope.ir.readable import iteration_range, iteration_words
from loopscope.ir.recorded_rows import is_trace
from loopscope.view.boxes import (
    DrawnGraph,
    DrawnRegion,
    loop_title,
    operation_box,
    region_name,
    short_name,
    sized,
    tensor_text,
    tooltip,
    with_handle,
)
from loopscope.view.cut_edges import cut_long_edges
from loopscope.view.folding import Folding, Unrolled, default_folding, graph_at
from loopscope.view.graph import (
    ClusterKind,
    GraphView,
    NodeKind,
    ViewCluster,
    ViewNode,
    without_iterations,
)
from loopscope.view.group_boxes import (
    BlockDifferences,
    FunctionCall,
    block_differences,
    box_title,
    function_calls,
    group_box,
    kinds_of,
)
from loopscope.view.grouping import OUTER, Grouping, grouping
from loopscope.view.lines import EdgeLines
from loopscope.view.preview import carried_number
from loopscope.view.roles import handed_in, input_roles, unbound_inputs
from loopscope.view.trace_boxes import recorded_boxes

_MAX_LISTED = 14
"""Largest number of lines in a tooltip of names."""
_CLUSTER_KIND: dict[str, ClusterKind] = {
    LOOP: "loop",
    **dict.fromkeys((TENSOR_ITERATOR, SCAN, SEQUENCE_MAP), "tensor_iterator"),
    IF: "if",
    "then": "then",
    "else": "else",
}


def graph_view(
    model: Model, folding: Folding | None = None, root: str = ROOT, *, handles: bool = False
) -> GraphView:
    """Return the content of a canvas for the graph at ``root``. ``KeyError`` if the model
    lacks this graph.

    ``handles``: draw the handles of operators, such as LSTM, that open as loops.
    """
    folding = default_folding(model, root) if folding is None else folding
    builder = _Builder(folding, function_calls(model), model.dialect if handles else None)
    graph = graph_at(model, root)
    builder.waiting.append(DrawnGraph(graph, root, "", labels(graph)))
    while builder.waiting:
        builder.add_place(builder.waiting.popleft())
    lines = EdgeLines(builder.places, constants_shown=folding.constants)
    boxes = (
        node if node.members else replace(node, constants=_pills(lines.constants.get(node.id, [])))
        for node in builder.nodes
    )
    drawn, drawn_lines = tuple(boxes), tuple(lines.edges)
    if is_trace(model):
        drawn, drawn_lines = recorded_boxes(model, drawn, drawn_lines)
    nodes, edges = cut_long_edges(tuple(map(sized, drawn)), drawn_lines)
    unrolled = frozenset(loop.address for loop in folding.unrolled)
    return GraphView(
        root,
        nodes,
        tuple(builder.clusters),
        edges,
        hidden=builder.hidden,
        title=model.name,
        unrolled=unrolled,
    )


class _Builder:
    """The boxes and frames added so far, and the graphs that are still to be drawn."""

    def __init__(
        self, folding: Folding, calls: Mapping[str, FunctionCall], handles_of: Dialect | None
    ) -> None:
        self.folding = folding
        self.calls = calls
        self.handles_of = handles_of
        """Dialect of the model if operators that open as loops have handles."""
        self.nodes: list[ViewNode] = []
        self.clusters: list[ViewCluster] = []
        self.places: list[DrawnGraph] = []
        self.waiting: deque[DrawnGraph] = deque()
        self.hidden = 0

    def add_place(self, place: DrawnGraph) -> None:
        self.places.append(place)
        groups = grouping(place.graph, place.static, self.folding.groups, place.body)
        frames = self._frames(place, groups)
        differing = block_differences(place.graph, groups)
        boxes: dict[str, str] = {}
        roles = input_roles(place.body) if place.body else {}
        for node in place.graph.nodes:
            if node.constant is not None and not self.folding.constants:
                continue
            enclosing = tuple(groups.around(node.id))
            folded_group = next(
                (group for group in reversed(enclosing) if group in self.folding.folded), ""
            )
            cluster = next((frames[group] for group in enclosing if group in frames), place.cluster)
            if folded_group:
                if folded_group not in boxes:
                    boxes[folded_group] = self._group_box(
                        place, groups, folded_group, frames, differing
                    )
                    place.outer = (
                        boxes[folded_group] if folded_group.endswith(OUTER) else place.outer
                    )
                place.box[node.id] = boxes[folded_group]
                self.hidden += 1
                continue
            address = place.at(node.id)
            if node.bodies and without_iterations(address) not in self.folding.folded:
                self._open_region(place, node, address, cluster)
            elif node.bodies:
                place.box[node.id] = self._folded_region(node, address, cluster)
            else:
                role = roles[node.id][0] if node.id in roles else ""
                box = operation_box(node, self._next("n"), address, cluster, role)
                if self.handles_of is not None:
                    box = with_handle(box, node, place, self.handles_of)
                place.box[node.id] = self._add(box)

    def _next(self, letter: str) -> str:
        return f"{letter}{len(self.nodes if letter == 'n' else self.clusters)}"

    def _add(self, node: ViewNode) -> str:
        self.nodes.append(node)
        return node.id

    def _frame(
        self, kind: ClusterKind, address: str, title: str, name: str, parent: str, body: str = ""
    ) -> str:
        cluster = ViewCluster(
            self._next("c"), kind, address, title, name, parent, body, foldable=kind != "copy"
        )
        self.clusters.append(cluster)
        return cluster.id

    def _frames(self, place: DrawnGraph, groups: Grouping) -> dict[str, str]:
        """Add frames of opened groups that are not inside folded ones, outer frames first."""
        frames: dict[str, str] = {}
        for group in sorted(groups.members, key=lambda group: -len(groups.members[group])):
            parent = groups.parent[group]
            if group in self.folding.opened and (not parent or parent in frames):
                members = [place.graph.by_id[layer] for layer in groups.members[group]]
                title, name = box_title(
                    group, self.calls, [node for node in members if node.constant is None]
                )
                frames[group] = self._frame(
                    "group",
                    group,
                    title,
                    short_name(name),
                    frames.get(parent, place.cluster),
                    place.address,
                )
        return frames

    def _group_box(
        self,
        place: DrawnGraph,
        groups: Grouping,
        group: str,
        frames: dict[str, str],
        differing: BlockDifferences,
    ) -> str:
        layers = [
            layer for layer in groups.members[group] if place.graph.by_id[layer].constant is None
        ]
        if group.endswith(OUTER):
            return self._outer_box(
                place.graph,
                group,
                tuple(place.at(layer) for layer in layers),
                layers,
                place.cluster,
            )
        title = box_title(group, self.calls, [place.graph.by_id[layer] for layer in layers])
        cluster = frames.get(groups.parent[group], place.cluster)
        return self._add(
            replace(group_box(place, group, layers, title, cluster, differing), id=self._next("n"))
        )

    def _outer_box(
        self,
        graph: ModelGraph,
        group: str,
        members: tuple[str, ...],
        layers: Sequence[LayerId],
        cluster: str,
    ) -> str:
        """Add the box of Parameters that only pass outer values in."""
        names = [short_name(graph.by_id[layer].name) for layer in layers]
        lines = (
            names
            if len(names) <= _MAX_LISTED
            else [*names[: _MAX_LISTED - 1], f"and {len(names) - _MAX_LISTED + 1} more"]
        )
        return self._add(
            ViewNode(
                self._next("n"),
                "folded",
                group,
                f"{len(names)} outer values",
                family="port",
                cluster=cluster,
                members=members,
                tooltip="\n".join(lines),
            )
        )

    def _folded_region(self, node: Node, address: str, cluster: str) -> str:
        inside = sum(len(body.graph.nodes) for body in node.bodies)
        self.hidden += inside
        box = operation_box(node, self._next("n"), address, cluster, "")
        number = (
            carried_number(node.bodies[0])
            if [body.name for body in node.bodies] == ["body"]
            else None
        )
        spark = "" if number is None else f"{address}/body/{labels(node.bodies[0].graph)[number]}"
        return self._add(
            replace(
                box,
                kind="folded",
                title=loop_title(node),
                badge=_count(inside),
                body=_only_body(node, address),
                spark=spark,
            )
        )

    def _open_region(self, place: DrawnGraph, node: Node, address: str, cluster: str) -> None:
        kind = "region" if node.is_foreign else _CLUSTER_KIND.get(node.type, "region")
        body = _only_body(node, address)
        frame = self._frame(kind, address, loop_title(node), region_name(address), cluster, body)
        header = self._header(node, kind, address, frame)
        region = DrawnRegion(address, frame, header, self._output_boxes(node, address, frame))
        place.region[node.id] = region
        window = self.folding.window(without_iterations(address))
        if window is not None:
            self.clusters = [
                replace(item, copies=window.count) if item.id == frame else item
                for item in self.clusters
            ]
        if window is not None and [item.name for item in node.bodies] == ["body"]:
            self._open_copies(region, node.bodies[0], window)
            return
        # The then branch is first, whatever its order in the file.
        for inner in sorted(node.bodies, key=lambda item: item.name == "else"):
            self._open_body(region, node, inner, frame)

    def _header(self, node: Node, kind: ClusterKind, address: str, frame: str) -> str:
        """Add the box at the head of an open region. Return its id; empty for no box."""
        box: NodeKind
        if kind == "loop":
            box, title = "control", "repeat"
        elif kind == "if":
            box, title = "condition", "if"
        elif node.is_foreign and unbound_inputs(node):
            box, title = "control", "inputs"
        else:
            return ""
        return self._add(
            ViewNode(
                self._next("n"),
                box,
                address,
                title,
                family="region",
                cluster=frame,
                tooltip=tooltip(node),
            )
        )

    def _open_body(self, region: DrawnRegion, node: Node, body: Body, frame: str) -> None:
        address = f"{region.address}/{body.name}"
        if without_iterations(address) in self.folding.folded:
            self.hidden += len(body.graph.nodes)
            region.folded_bodies[body.name] = self._add(
                ViewNode(
                    self._next("n"),
                    "folded",
                    address,
                    body.name,
                    family="region",
                    cluster=frame,
                    body=address,
                    badge=_count(len(body.graph.nodes)),
                    tooltip=kinds_of(list(body.graph.nodes)),
                )
            )
            return
        if node.type == IF or len(node.bodies) > 1:
            meaning = {"then": "when true", "else": "when false"} if node.type == IF else {}
            name = meaning.get(body.name, short_name(body.graph.name))
            frame = self._frame(
                _CLUSTER_KIND.get(body.name, "body"),
                address,
                short_name(decode(body.name)),
                name,
                frame,
                address,
            )
        self.waiting.append(
            DrawnGraph(body.graph, address, frame, labels(body.graph), body, region)
        )

    def _open_copies(self, region: DrawnRegion, body: Body, window: Unrolled) -> None:
        """Draw the body once per iteration of a window, and invariants once beside the copies."""
        label = labels(body.graph)
        self._add_invariants(region, body, label)
        region.earlier = self._more(region, "earlier", 0, window.first - 1) if window.first else ""
        for iteration in range(window.first, window.first + window.count):
            address = f"{region.address}[{iteration}]"
            frame = self._frame(
                "copy",
                address,
                iteration_words(iteration).capitalize(),
                "",
                region.cluster,
                f"{address}/{body.name}",
            )
            region.copies.append(f"{address}/{body.name}")
            self.waiting.append(
                DrawnGraph(body.graph, region.copies[-1], frame, label, body, region)
            )
        if window.total is None or window.total > window.first + window.count:
            region.later = self._more(
                region,
                "later",
                window.first + window.count,
                None if window.total is None else window.total - 1,
            )

    def _add_invariants(
        self, region: DrawnRegion, body: Body, label: Mapping[LayerId, str]
    ) -> None:
        """Add the boxes of a body's invariants, one for all if they are folded."""
        body_address = f"{region.address}/{body.name}"
        invariants = handed_in(body)
        address_of = {layer: f"{body_address}/{label[layer]}" for layer in invariants}
        outer = f"{without_iterations(body_address)}/{OUTER}"
        if outer in self.folding.folded:
            members = tuple(address_of.values())
            region.outer = self._outer_box(body.graph, outer, members, invariants, region.cluster)
            region.same = dict.fromkeys(invariants, region.outer)
            return
        for layer, address in address_of.items():
            node = body.graph.by_id[layer]
            box = operation_box(node, self._next("n"), address, region.cluster, "invariant")
            region.same[layer] = self._add(box)

    def _more(self, region: DrawnRegion, side: str, first: int, last: int | None) -> str:
        """Add the box for the iterations before or after the window."""
        span = "later iterations" if last is None else iteration_range(first, last)
        return self._add(
            ViewNode(
                self._next("n"),
                "more",
                region.address,
                f"… {span} …",
                family="region",
                cluster=region.cluster,
                badge=side,
            )
        )

    def _output_boxes(self, node: Node, address: str, frame: str) -> tuple[str, ...]:
        word = "output" if len(node.outputs) == 1 else "output {}"
        boxes = []
        for index, port in enumerate(node.outputs):
            value = f"{address}:{index}" if index else address
            box = ViewNode(
                self._next("n"),
                "output",
                f"{address}:{index}",
                word.format(index),
                detail=tensor_text(port),
                family="region",
                cluster=frame,
                values=(value,),
                tooltip=tooltip(node),
            )
            boxes.append(self._add(box))
        return tuple(boxes)


def _only_body(node: Node, address: str) -> str:
    """Return the address of a control-flow node's body; empty if it has several."""
    return f"{address}/{node.bodies[0].name}" if len(node.bodies) == 1 else ""


def _pills(constants: list[str]) -> tuple[str, ...]:
    """Return short texts of the constants that feed a box; from the third on they are counted."""
    return tuple(constants) if len(constants) <= 3 else (*constants[:2], f"+{len(constants) - 2}")


def _count(nodes: int) -> str:
    return "1 node" if nodes == 1 else f"{nodes:,} nodes"
