"""Overlays: one moment of a run on a picture, as statuses of boxes and values on wires.

    marks = Marks(selected="main/loop_7/body/Add_3", breakpoints=("main/loop_7[*]/body/Add_3",))
    overlay = overlay_at(run, view, marks, previews=cache)

An overlay does not change the layout: it refers to ids of the view that it was made for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Literal

import numpy as np

from loopscope.debug.overrides_by_address import is_changed
from loopscope.debug.position import OpenGraph, Status
from loopscope.debug.result import as_public
from loopscope.debug.run import Run
from loopscope.errors import EngineError, NotKept, ValueUnavailable, counted
from loopscope.executor.plan.plan import ABSENT, Program
from loopscope.executor.plan.slots import Slot
from loopscope.ir.address import Address
from loopscope.ir.readable import iteration_words, place_among
from loopscope.view import backward_overlay
from loopscope.view.graph import GraphView, LoopHandle, ViewCluster, ViewEdge, ViewNode
from loopscope.view.overlay_data import NO_MARKS, PAINTERS, Marks, NodeStatus, Overlay, cursor_boxes
from loopscope.view.preview import sparkline, value_preview
from loopscope.view.unrolling import Instances, instances_at

BY_HAND = "✎"
"""Prefix of the text of a value that the user has changed."""
NOT_KEPT_TEXT = "not kept"
_NOT_FINITE = re.compile(r"\b(NaN|inf)\b")
"""Marks of a preview for NaN and infinity."""
"""Text of a value that depends on weights, in a run that was saved without weights."""
_WITHOUT_VALUE = frozenset({"waiting", "skipped", "current", "running", "failed"})
_MAX_READABLE_BOUND = 1_000_000


def overlay_at(
    run: Run | None,
    view: GraphView,
    marks: Marks = NO_MARKS,
    *,
    previews: dict[str, str] | None = None,
) -> Overlay:
    """Return the overlay of a view at the cursor of a run. Without a run it contains the marks
    only.

    ``previews`` caches texts of values by concrete address, for the lifetime of the run.
    """
    overlay = Overlay()
    if run is not None:
        overlay = _Painter(run, view, {} if previews is None else previews, marks.verdicts).paint()
    for paint in PAINTERS:
        overlay = paint(overlay, run, view, marks)
    return overlay


def _combined_status(statuses: set[Status]) -> NodeStatus:
    """Return the status of a box that shows several operations."""
    if "failed" in statuses:
        return "failed"
    if "current" in statuses:
        return "current"
    if statuses == {"skipped"}:
        return "skipped"
    return "done" if statuses <= {"done", "skipped"} else "waiting"


def _iteration(frame: OpenGraph) -> str:
    """Return the words for the open iteration. A bound above a million is omitted: it is only a
    guard.
    """
    return iteration_words(
        frame.iteration or 0,
        frame.bound if frame.bound and frame.bound <= _MAX_READABLE_BOUND else None,
    )


class _Painter:
    """Painter of one moment of one run on one view."""

    def __init__(
        self, run: Run, view: GraphView, previews: dict[str, str], verdicts: Mapping[str, str]
    ) -> None:
        self.run = run
        self.view = view
        self.previews = previews
        self.verdicts = verdicts
        statuses = run.statuses()
        self.copies = instances_at(run, view, statuses) if view.unrolled else Instances()
        self.loop_pairs = backward_overlay.loop_pairs(run)
        statuses |= backward_overlay.statuses(run, self.loop_pairs)
        self.statuses: Mapping[str, Status] = (
            statuses | self.copies.statuses if view.unrolled else statuses
        )
        self._graphs = dict(self.copies.graphs)
        self._rows: dict[str, tuple[Program, int]] = {}
        self.running = {frame.static: frame for frame in run.frames()} | self.copies.running
        self.outlook = ", never ends" if run.endless and run.cursor.step == run.steps else ""
        self.next, current = cursor_boxes(run, view)
        self.overlay = Overlay(next=self.next, current=current)

    def paint(self) -> Overlay:
        for node in self.view.nodes:
            self._node(node)
        for edge in self.view.edges:
            if edge.kind == "back":
                self._back(edge)
            elif edge.slices is not None:
                self._slice(edge)
        for cluster in self.view.clusters:
            (self._copy if cluster.kind == "copy" else self._frame)(cluster)
        self._add_backward_headers()
        return self.overlay

    def _node(self, node: ViewNode) -> None:
        status = self._status(node)
        if status != "skipped" and node.kind != "cut_end":
            texts = [self._text(address) for address in node.values]
            if any(texts):
                self.overlay.values[node.id] = texts
                if any(_NOT_FINITE.search(text) for text in texts):
                    self.overlay.nans[node.id] = True
        self.overlay.nodes[node.id] = status
        if node.handle is not None and status != "skipped":
            self._steps(node, node.handle)
        if node.loops:
            self._folded_group(node)
        elif node.kind == "folded" and not node.members:
            self._folded_loop(node)

    def _status(self, node: ViewNode) -> NodeStatus:
        if node.id == self.next:
            return "failed" if self.statuses.get(node.address) == "failed" else "current"
        if node.members:
            return _combined_status(
                {self.statuses.get(member, "waiting") for member in node.members}
            )
        address = node.address.partition(":")[0] if node.kind == "output" else node.address
        status = self.statuses.get(address) or (
            self._branch(address) if node.kind == "folded" else "waiting"
        )
        if node.kind in ("control", "condition") and status not in ("skipped", "failed"):
            return "done" if status in ("done", "running") else "waiting"
        # The current operation may be represented by another box: its folded group, or its region's
        # header.
        return "waiting" if status == "current" or status == "running" else status

    def _steps(self, node: ViewNode, handle: LoopHandle) -> None:
        """Set the header of an operator that opens as a loop: the number of its steps."""

        def steps(graph: str, label: str, output: int) -> str:
            value = self._value(*self._slot(graph, label, output))
            shape = value.shape if isinstance(value, np.ndarray) else ()
            is_axis = -len(shape) <= handle.axis < len(shape)
            return counted(shape[handle.axis], "step") if is_axis else ""

        text = self._described(handle.tensor, "steps of ", steps) if handle.tensor else ""
        if text and text != NOT_KEPT_TEXT:
            self.overlay.headers[node.id] = text

    def _text(self, static: str) -> str:
        """Return the current text on a wire; empty without a value."""
        return self._described(static, "", self._preview)

    def _described(self, static: str, kind: str, describe: Callable[[str, str, int], str]) -> str:
        """Return a text about a current value; empty without a value.

        ``kind``: prefix of the text's key in the cache. ``describe``: receives the concrete address
        of the graph, the label and the output.
        """
        address, _, output = static.partition(":")
        if self.statuses.get(address, "done") in _WITHOUT_VALUE:
            return ""
        place, _, label = address.rpartition("/")
        graph = self._graphs.get(place)
        if graph is None:
            concrete = self.run.resolve(
                backward_overlay.with_current_iteration(self.loop_pairs, address)
            )
            if concrete is None:
                return ""
            # All nodes of a graph share its execution. To parse an address per node would be too
            # slow for a step.
            graph = self._graphs[place] = concrete.rpartition("/")[0]
        concrete = f"{graph}/{label}:{output}" if output else f"{graph}/{label}"
        text = self.previews.get(kind + concrete)
        if text is None:
            try:
                text = describe(graph, label, int(output or 0))
            except NotKept:
                text = NOT_KEPT_TEXT
            except EngineError:
                return ""
            self.previews[kind + concrete] = text
        return text

    def _preview(self, graph: str, label: str, output: int) -> str:
        """Return the text of a computed value, with a prefix if the user has changed it."""
        program, row, slot = self._slot(graph, label, output)
        text = value_preview(as_public(self._value(program, row, slot)))
        return f"{BY_HAND} {text}" if is_changed(self.run, program, row, slot) else text

    def _value(self, program: Program, row: int, slot: Slot) -> object:
        return self.run.values.get(self.run.timeline, program, row, slot)

    def _slot(self, graph: str, label: str, output: int) -> tuple[Program, int, Slot]:
        """Return program, row and slot of a value.

        The execution of the node's graph is resolved once for all nodes in it.
        """
        rows = self._rows.get(graph)
        if rows is None:
            rows = self._rows[graph] = self.run.rows_of(Address.parse(f"{graph}/{label}"))
        program, row = rows
        layer = program.layer_of_label.get(label)
        slot = ABSENT if layer is None else program.slots.get((layer, output), ABSENT)
        if slot == ABSENT:
            raise ValueUnavailable(f"nothing feeds {label!r}")
        return program, row, slot

    def _back(self, edge: ViewEdge) -> None:
        next_value, first_value = self._text(edge.tensor), self._text(edge.into)
        adjoint = self._adjoint(edge.into) if next_value else ""
        if next_value or first_value:
            text = f"{next_value} · adjoint {adjoint}" if adjoint else next_value
            self.overlay.backs[edge.id] = [text, first_value]

    def _adjoint(self, into: str) -> str:
        """Return the adjoint that arrives at a Parameter along a back edge; empty if there is
        none.
        """
        body, _, parameter = into.rpartition("/")
        walk = self.loop_pairs.get(body.rpartition("/")[0])
        address = walk.adjoint_of(parameter) if walk is not None else ""
        graph, _, label = address.rpartition("/")
        if address and address not in self.previews:
            try:
                self.previews[address] = self._preview(graph, label, 0)
            except EngineError:
                return ""
        return self.previews.get(address, "")

    def _add_backward_headers(self) -> None:
        """Add the progress of the backward pass to the headers of forward and backward loops."""
        new_headers = backward_overlay.headers(self.loop_pairs)
        for id, address in self.view.control_flow if new_headers else ():
            if address in new_headers:
                before = self.overlay.headers.get(id, "") if address not in self.loop_pairs else ""
                self.overlay.headers[id] = ", ".join(filter(None, (before, new_headers[address])))

    def _slice(self, edge: ViewEdge) -> None:
        """Add the part of a sliced or concatenated tensor that this iteration uses."""
        assert edge.slices is not None
        body = (edge.into or edge.tensor).rpartition("/")[0]
        frame = self.running.get(body)
        copy = body.rpartition("/")[0]
        if copy.endswith("]"):
            iteration, parts = int(copy.rpartition("[")[2][:-1]), self.copies.total.get(body)
            if (edge.slices.stride < 0 and not parts) or (parts is not None and iteration >= parts):
                return
        elif frame is not None and frame.iteration is not None:
            iteration, parts = frame.iteration, frame.bound
        else:
            return
        number = parts - 1 - iteration if edge.slices.stride < 0 and parts else iteration
        self.overlay.slices[edge.id] = (
            f"part [{number:,}] of {parts:,}" if parts else f"part [{number:,}]"
        )

    def _copy(self, cluster: ViewCluster) -> None:
        """Set header and status of one iteration of an unrolled loop."""
        state, total = self.copies.state[cluster.id], self.copies.total.get(cluster.body)
        self.overlay.frames[cluster.id] = state
        words = {"active": "now", "waiting": "", "skipped": "did not run", "done": ""}[state]
        iteration = int(cluster.address.rpartition("[")[2][:-1])
        place = place_among(iteration, total) if total is not None and state != "skipped" else ""
        self.overlay.headers[cluster.id] = ", ".join(part for part in (place, words) if part)

    def _frame(self, cluster: ViewCluster) -> None:
        frame = self.running.get(cluster.body)
        if cluster.kind in ("then", "else"):
            status = self._branch(cluster.address)
            if status != "waiting":
                self.overlay.frames[cluster.id] = "skipped" if status == "skipped" else "taken"
            return
        if frame is not None and frame.iteration is not None:
            self.overlay.frames[cluster.id] = "active"
            self.overlay.headers[cluster.id] = _iteration(frame) + self.outlook
            if frame.bound:
                self.overlay.progress[cluster.id] = min(1.0, (frame.iteration + 1) / frame.bound)
            return
        if self.statuses.get(cluster.address) == "skipped":
            self.overlay.frames[cluster.id] = "skipped"
        elif cluster.address in self.verdicts:
            self.overlay.headers[cluster.id] = self.verdicts[cluster.address]

    def _folded_loop(self, node: ViewNode) -> None:
        """Set the header of a folded loop: the current iteration, or how the loop ended."""
        inside = next(
            (
                frame
                for static, frame in self.running.items()
                if static.startswith(f"{node.address}/")
            ),
            None,
        )
        if inside is not None and inside.iteration is not None:
            self.overlay.headers[node.id] = _iteration(inside) + self.outlook
        elif node.address in self.verdicts:
            self.overlay.headers[node.id] = self.verdicts[node.address]
        if node.spark:
            self._spark(node, inside)

    def _folded_group(self, node: ViewNode) -> None:
        """Set the header of a folded group with loops: the current iteration, or how the loops
        ended.
        """
        word = "loop" if len(node.loops) == 1 else f"{len(node.loops)} loops"
        running = next(
            (
                frame
                for frame in self.running.values()
                if frame.static.rpartition("/")[0] in node.loops
            ),
            None,
        )
        if running is not None and running.iteration is not None:
            self.overlay.headers[node.id] = f"{word}: {_iteration(running)}{self.outlook}"
        elif ended := dict.fromkeys(
            self.verdicts[loop] for loop in node.loops if loop in self.verdicts
        ):
            self.overlay.headers[node.id] = f"{word}: {' · '.join(ended)}"

    def _spark(self, node: ViewNode, inside: OpenGraph | None) -> None:
        graph = inside.address if inside is not None else self.run.resolve(node.address)
        if not graph:
            return
        label = node.spark.rpartition("/")[2]
        parameter = (
            f"{graph.rpartition('/')[0]}/body/{label}"
            if inside is not None
            else f"{graph}/body/{label}"
        )
        line = sparkline(self.run, parameter, inside.iteration if inside is not None else None)
        if line is not None:
            self.overlay.sparks[node.id] = line.as_data()

    def _branch(self, body: str) -> Literal["done", "skipped", "waiting"]:
        """Return the status of a branch, from the run or from the statuses of its nodes."""
        if body in self.running:
            return "done"
        return self._graph_statuses.get(body, "waiting")

    @cached_property
    def _graph_statuses(self) -> Mapping[str, Literal["done", "skipped"]]:
        """Status of each graph by those of its nodes that are not waiting."""
        status_of: dict[str, Literal["done", "skipped"]] = {}
        for address, status in self.statuses.items():
            if status != "waiting":
                body = address.rpartition("/")[0]
                if status_of.get(body) != "done":
                    status_of[body] = "skipped" if status == "skipped" else "done"
        return status_of
