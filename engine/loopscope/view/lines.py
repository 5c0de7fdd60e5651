"""The lines of a canvas: data, port maps, back edges, and conditions of loops and branches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from loopscope.explain.pattern import LARGEST_COUNTS
from loopscope.ir.model import IF, LOOP, Body, Node, OutputRef
from loopscope.view.boxes import DrawnGraph, DrawnRegion
from loopscope.view.graph import EdgeKind, ViewEdge
from loopscope.view.preview import constant_text
from loopscope.view.roles import input_roles, output_role, slices_of, unbound_inputs

_CONTROL_INPUTS: Mapping[tuple[str, int], EdgeKind] = {
    (LOOP, 0): "trip_count",
    (LOOP, 1): "start",
    (IF, 0): "condition",
}
"""Kind of line for the control inputs of a folded control-flow node."""
_NO_LIMIT = frozenset({"-1", *map(str, LARGEST_COUNTS)})
"""Trip counts by which converters express an unlimited loop."""
_PREFIX: Mapping[str, str] = {"trip_count": "≤ ", "start": "starts if ", "condition": "if "}


def _constant_words(meaning: EdgeKind, constant: str) -> str:
    """Return the text of a constant in a box with its meaning; empty for a loop that always
    starts.
    """
    bare = constant.strip("[]")
    if meaning == "start" and bare in ("true", "false"):
        return "" if bare == "true" else "never starts"
    if meaning == "trip_count" and bare in _NO_LIMIT:
        return "no limit"
    return _PREFIX.get(meaning, "") + constant


class EdgeLines:
    """The edges added so far, and the constants that are written into boxes instead."""

    def __init__(self, places: Sequence[DrawnGraph], *, constants_shown: bool) -> None:
        self.edges: list[ViewEdge] = []
        self.constants: dict[str, list[str]] = {}
        self._places = {place.address: place for place in places}
        self._constants_shown = constants_shown
        self._seen: set[ViewEdge] = set()
        uses = Counter(box for place in places for box in place.box.values())
        uses.update(
            box
            for place in places
            for region in place.region.values()
            for box in region.same.values()
        )
        self._outer = {place.outer for place in places} | {
            region.outer for place in places for region in place.region.values()
        }
        self._groups = {box for box, nodes in uses.items() if nodes > 1}
        for place in places:
            self._add_place(place)

    def _add_place(self, place: DrawnGraph) -> None:
        for node in place.graph.nodes:
            for index, source in enumerate(place.graph.sources[node.id]):
                if source is None or self._is_inside_a_group(place, node, source):
                    continue
                if node.id in place.region:
                    self._enter(place, place.region[node.id], node, index, source)
                # A constant that a malformed model feeds does not have a box.
                elif node.id in place.box:
                    self._connect(
                        place,
                        source,
                        ViewEdge("", "data", "", place.box[node.id], input=index),
                        _CONTROL_INPUTS.get((node.type, index), "data"),
                    )
        if place.body is not None and place.owner is not None:
            self._leave(place, place.body, place.owner)

    def _is_inside_a_group(self, place: DrawnGraph, node: Node, source: OutputRef) -> bool:
        """Return True if the line would be inside one folded box, or pass a constant into one."""
        box, source_box = place.box.get(node.id, ""), place.box.get(source.layer)
        return box in self._groups and (
            box == source_box
            or (source_box is None and place.graph.by_id[source.layer].constant is not None)
        )

    def _connect(
        self, place: DrawnGraph, source: OutputRef, edge: ViewEdge, meaning: EdgeKind | None = None
    ) -> None:
        """Add a line from the producer of a tensor to the edge's target.

        A constant is written into the target instead, with its meaning.
        """
        node = place.graph.by_id[source.layer]
        if node.constant is not None and not self._constants_shown:
            words = _constant_words(meaning or edge.kind, constant_text(node.constant))
            if words:
                self.constants.setdefault(edge.target, []).append(words)
            return
        region = place.region.get(source.layer)
        box = region.outputs[source.output] if region else place.box[source.layer]
        self._add(replace(edge, source=box, tensor=place.at(source.layer, source.output)))

    def _add(self, edge: ViewEdge) -> None:
        """Add a line unless it is a duplicate or inside a box. Nodes of a folded group share a
        box.
        """
        if edge.kind == "input_map" and edge.target in self._outer:
            edge = replace(edge, label="", into="", input=0, latent=True)
        key = edge
        if edge.kind == "data":
            between_groups = edge.source in self._groups and edge.target in self._groups
            key = replace(
                edge,
                input=0,
                into="",
                tensor="" if between_groups or edge.source in self._outer else edge.tensor,
            )
        if key in self._seen or (edge.source == edge.target and edge.kind != "back"):
            return
        self._seen.add(key)
        self.edges.append(replace(edge, id=f"e{len(self.edges)}"))

    def _enter(
        self, place: DrawnGraph, region: DrawnRegion, node: Node, index: int, source: OutputRef
    ) -> None:
        """Connect an input of an open control-flow node to its header, and to the Parameters of its
        port maps.
        """
        if region.header:
            self._enter_header(place, region.header, node, index, source)
        if region.copies:
            self._enter_copies(place, region, node.bodies[0], index, source)
            return
        for body in node.bodies:
            inside = self._drawn(f"{region.address}/{body.name}", body)
            for parameter, (role, entry) in input_roles(body).items():
                if entry is None or entry.external != index or parameter not in body.graph.by_id:
                    continue
                target, into = region.folded_bodies.get(body.name, ""), ""
                if inside is not None:
                    target, into = inside.box.get(parameter, ""), inside.at(parameter)
                if target:
                    edge = ViewEdge(
                        "",
                        "input_map",
                        "",
                        target,
                        label=role,
                        into=into,
                        slices=slices_of(entry),
                        input=index,
                    )
                    self._connect(place, source, edge)

    def _drawn(self, address: str, body: Body) -> DrawnGraph | None:
        """Return the drawn graph of a body, or None.

        None also if another node has the same id and therefore the same address.
        """
        place = self._places.get(address)
        return place if place is not None and place.graph is body.graph else None

    def _enter_header(
        self, place: DrawnGraph, header: str, node: Node, index: int, source: OutputRef
    ) -> None:
        if node.is_foreign:
            if index in unbound_inputs(node):
                self._connect(place, source, ViewEdge("", "data", "", header, input=index))
        elif node.type == LOOP and index < 2:
            kind: EdgeKind = "trip_count" if index == 0 else "start"
            self._connect(
                place,
                source,
                ViewEdge(
                    "", kind, "", header, label=("trip count", "starts if")[index], input=index
                ),
            )
        elif node.type == IF and index == 0:
            self._connect(place, source, ViewEdge("", "condition", "", header, label="condition"))

    def _enter_copies(
        self, place: DrawnGraph, region: DrawnRegion, body: Body, index: int, source: OutputRef
    ) -> None:
        """Connect an input to the copies of an unrolled body.

        Slices go to every copy, initial values to the first iteration, and invariants to their one
        box.
        """
        copies = [
            drawn for address in region.copies if (drawn := self._drawn(address, body)) is not None
        ]
        for parameter, (role, entry) in input_roles(body).items():
            if entry is None or entry.external != index or parameter not in body.graph.by_id:
                continue
            edge = ViewEdge(
                "", "input_map", "", "", label=role, slices=slices_of(entry), input=index
            )
            if parameter in region.same:
                self._connect(place, source, replace(edge, target=region.same[parameter]))
                continue
            for copy in copies if entry.axis is not None else copies[:1]:
                first = role.startswith("carried") and region.earlier
                target = region.earlier if first else copy.box.get(parameter, "")
                if target:
                    self._connect(
                        place,
                        source,
                        replace(edge, target=target, into="" if first else copy.at(parameter)),
                    )

    def _leave_copy(self, place: DrawnGraph, body: Body, region: DrawnRegion) -> None:
        """Connect Results of a copy to the next copy and to the outer outputs.

        Slices are from every copy, last values from the last iteration.
        """
        number = region.copies.index(place.address)
        for parameter, shared in region.same.items():
            # A port map may name a Parameter that the body does not contain.
            if parameter not in place.box:
                continue
            tensor = f"{region.address}/{body.name}/{place.label[parameter]}"
            self._add(
                ViewEdge("", "data", shared, place.box[parameter], tensor, into=place.at(parameter))
            )
        next_copy = (
            self._drawn(region.copies[number + 1], body)
            if number + 1 < len(region.copies)
            else None
        )
        self._outputs_of_copy(place, body, region, last=next_copy is None)
        self._carry_on(place, body, region, next_copy, begins=number == 0)

    def _outputs_of_copy(
        self, place: DrawnGraph, body: Body, region: DrawnRegion, *, last: bool
    ) -> None:
        for rank, entry in enumerate(body.outer_outputs[: len(region.outputs)]):
            source = place.box.get(entry.internal, "")
            edge = ViewEdge(
                "",
                "output_map",
                source,
                region.outputs[rank],
                label=output_role(body, entry),
                slices=slices_of(entry),
                input=rank,
            )
            if source and (entry.axis is not None or (last and not region.later)):
                self._add(replace(edge, tensor=place.at(entry.internal)))
            if last and region.later:
                self._add(replace(edge, source=region.later, slices=None))

    def _carry_on(
        self,
        place: DrawnGraph,
        body: Body,
        region: DrawnRegion,
        next_copy: DrawnGraph | None,
        *,
        begins: bool,
    ) -> None:
        """Connect carried values and condition of a copy to the next copy, or to the box after the
        window.

        ``begins`` is True for the first copy of the window.
        """
        for back in body.back_edges:
            if back.from_layer not in place.box or back.to_layer not in place.box:
                continue
            if begins and region.earlier:
                self._add(
                    ViewEdge(
                        "",
                        "carried",
                        region.earlier,
                        place.box[back.to_layer],
                        into=place.at(back.to_layer),
                    )
                )
            target = next_copy.box[back.to_layer] if next_copy else region.later
            if target:
                into = next_copy.at(back.to_layer) if next_copy else ""
                self._add(
                    ViewEdge(
                        "",
                        "carried",
                        place.box[back.from_layer],
                        target,
                        place.at(back.from_layer),
                        into=into,
                    )
                )
        for entry in body.outputs:
            if entry.purpose == "execution_condition" and entry.internal in place.box:
                edge = ViewEdge(
                    "", "goes_on", place.box[entry.internal], region.later, place.at(entry.internal)
                )
                if next_copy is not None:
                    edge = replace(
                        edge, target=next(iter(next_copy.box.values()), ""), frame=next_copy.cluster
                    )
                if edge.target:
                    self._add(edge)

    def _leave(self, place: DrawnGraph, body: Body, region: DrawnRegion) -> None:
        """Connect Results to the outer outputs, to the next iteration, and to the header (the
        condition).
        """
        if region.copies:
            self._leave_copy(place, body, region)
            return
        merges = body.name != "body"
        for rank, entry in enumerate(body.outer_outputs[: len(region.outputs)]):
            if entry.internal in place.box:
                kind: EdgeKind = "merge" if merges else "output_map"
                edge = ViewEdge(
                    "",
                    kind,
                    place.box[entry.internal],
                    region.outputs[rank],
                    place.at(entry.internal),
                    output_role(body, entry),
                )
                self._add(replace(edge, slices=slices_of(entry), input=rank))
        for back in body.back_edges:
            if back.from_layer in place.box and back.to_layer in place.box:
                source, target = place.box[back.from_layer], place.box[back.to_layer]
                self._add(
                    ViewEdge(
                        "",
                        "back",
                        source,
                        target,
                        place.at(back.from_layer),
                        into=place.at(back.to_layer),
                    )
                )
        for entry in body.outputs:
            if (
                entry.purpose == "execution_condition"
                and entry.internal in place.box
                and region.header
            ):
                self._add(
                    ViewEdge(
                        "",
                        "again",
                        place.box[entry.internal],
                        region.header,
                        place.at(entry.internal),
                        "repeat?",
                    )
                )
        if merges and region.header:
            self._branch(place, region)

    def _branch(self, place: DrawnGraph, region: DrawnRegion) -> None:
        """Connect an If's header to a branch: the line ends at the frame, so any box at its top is
        a target.
        """
        fed_boxes = {edge.target for edge in self.edges if edge.kind == "data"}
        first = next(
            (box for box in place.box.values() if box not in fed_boxes),
            next(iter(place.box.values()), ""),
        )
        if first:
            self._add(ViewEdge("", "branch", region.header, first, frame=place.cluster))
