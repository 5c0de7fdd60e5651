"""The content of a canvas as pure data: nodes, clusters (frames) and edges.

``graph_view(model, folding, root)`` in ``loopscope.view.build`` creates it. Ids (``n12``, ``c3``,
``e7``) are synthetic, and equal for the same model, folding and root. Addresses are static
addresses of the model (``loopscope.ir.address``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from loopscope.view.colours import Family

NodeKind = Literal[
    "operation",
    "parameter",
    "result",
    "constant",
    "control",
    "condition",
    "output",
    "folded",
    "cut_end",
    "more",
]
ClusterKind = Literal[
    "loop", "tensor_iterator", "if", "then", "else", "region", "body", "group", "copy"
]
EdgeKind = Literal[
    "data",
    "input_map",
    "output_map",
    "merge",
    "back",
    "again",
    "carried",
    "goes_on",
    "trip_count",
    "start",
    "condition",
    "branch",
    "cut_end",
]
"""Kinds of lines.

- ``input_map``, ``output_map``: port maps.
- ``merge``: a branch's Result into the If's output.
- ``back``: a back edge. ``again``: the condition that decides on another iteration.
- ``carried``, ``goes_on``: the same two from one copy of an unrolled body to the next.
- ``trip_count``, ``start``: inputs of a Loop's header.
- ``condition``, ``branch``: input and outputs of an If's header.
- ``cut_end``: one half of a long edge that was cut.
"""


_ITERATION = re.compile(r"\[[^\]]*\]")


def without_iterations(address: str) -> str:
    """Return the static form of an address.

    >>> without_iterations("main/outer[1]/body/inner[*]/body/Add")
    'main/outer/body/inner/body/Add'
    """
    return _ITERATION.sub("", address) if "[" in address else address


@dataclass(frozen=True, slots=True)
class Slices:
    """Slicing of a tensor into the parts of iterations, or concatenation of the parts."""

    axis: int
    stride: int
    part_size: int


@dataclass(frozen=True, slots=True)
class LoopHandle:
    """The handle of an operator, such as LSTM, that opens as a loop."""

    tensor: str = ""
    """Static address of the tensor with one part for each step; empty if it is not known."""
    axis: int = 0
    """Axis of the parts; negative axes count from the end."""


@dataclass(frozen=True, slots=True)
class ViewNode:
    """One box."""

    id: str
    kind: NodeKind
    address: str
    """Static address.

    A ``control``, ``condition`` or ``folded`` box has its region's address, an ``output`` box the
    region's with ``:k``, a ``cut_end`` the tensor's, and a ``more`` box (iterations beside the
    window) its loop's. In copies of an unrolled body it has iterations:
    ``main/loop_7[3]/body/Add_3``.
    """
    title: str
    """The operation's type, or the kind of the box."""
    name: str = ""
    detail: str = ""
    """Declared element type and shape of the first output, or the role of a port."""
    family: Family = "other"
    cluster: str = ""
    """Id of the innermost cluster; empty at the top."""
    constants: tuple[str, ...] = ()
    """Short texts of the constants that feed the box."""
    badge: str = ""
    """Content of a folded box, such as ``14 nodes``."""
    values: tuple[str, ...] = ()
    """Static addresses of the tensors whose values are displayed below the box, by output
    number.
    """
    members: tuple[str, ...] = ()
    """Static addresses of the nodes in a folded group."""
    loops: tuple[str, ...] = ()
    """Static addresses of the loops in a folded group."""
    tooltip: str = ""
    body: str = ""
    """Static address of the graph that the box opens as a canvas; empty unless there is exactly
    one.
    """
    spark: str = ""
    """Address of the carried Parameter in a folded loop's sparkline; empty if there is none."""
    handle: LoopHandle | None = None
    """The handle of an operator that opens as a loop; None for other boxes."""
    width: float = 0.0
    height: float = 0.0

    @property
    def at_top(self) -> bool:
        """True for boxes in the first row of their frame, which pass values in or decide on the
        first iteration.
        """
        return self.kind in ("parameter", "control") or (
            self.kind == "folded" and self.family == "port"
        )


@dataclass(frozen=True, slots=True)
class ViewCluster:
    """A frame around nodes: a control-flow node, a branch, a copy of an unrolled body, or an opened
    group.
    """

    id: str
    kind: ClusterKind
    address: str
    """Static address, which ``toggle`` folds."""
    title: str
    name: str = ""
    parent: str = ""
    body: str = ""
    """Static address of the graph whose nodes are directly inside; empty for an If with branches
    inside.
    """
    foldable: bool = True
    copies: int = 0
    """Number of drawn iterations of an unrolled loop."""


@dataclass(frozen=True, slots=True)
class ViewEdge:
    """A line from one box to another."""

    id: str
    kind: EdgeKind
    source: str
    target: str
    tensor: str = ""
    """Static address of the tensor on the line (``:k`` for output k > 0)."""
    label: str = ""
    into: str = ""
    """Static address of the Parameter that a port map or back edge feeds."""
    slices: Slices | None = None
    frame: str = ""
    """Cluster at whose border the line ends."""
    input: int = 0
    """Index of the target's input; for an output map, of the output."""
    latent: bool = False
    """True if the line is visible only while one of its ends is hovered or selected.

    That applies to the many lines into a box of outer values.
    """
    placed: bool = True
    """True if the line affects the layout."""
    upwards: bool = False
    """True if the line closes a cycle among folded boxes, so that it leads up."""


@dataclass(frozen=True, eq=False)
class GraphView:
    """The content of a canvas. It depends on the model, the folding and the root only, not on a
    run.
    """

    root: str
    """Static address of the graph on the canvas: ``main`` or ``main/loop_7/body``."""
    nodes: tuple[ViewNode, ...]
    clusters: tuple[ViewCluster, ...]
    edges: tuple[ViewEdge, ...]
    hidden: int = 0
    """Number of nodes below the root that are inside folded boxes."""
    title: str = ""
    unrolled: frozenset[str] = frozenset()
    """Static addresses of the loops that are drawn unrolled."""

    @cached_property
    def by_id(self) -> Mapping[str, ViewNode | ViewCluster | ViewEdge]:
        items: dict[str, ViewNode | ViewCluster | ViewEdge] = {node.id: node for node in self.nodes}
        items.update({cluster.id: cluster for cluster in self.clusters})
        items.update({edge.id: edge for edge in self.edges})
        return items

    @cached_property
    def node_of(self) -> Mapping[str, ViewNode]:
        """The box of each static address: its own, its folded group, or the header of its
        region.
        """
        boxes: dict[str, ViewNode] = {}
        for node in self.nodes:
            for member in node.members:
                boxes.setdefault(member, node)
            if node.kind not in ("cut_end", "more"):
                boxes.setdefault(node.address, node)
        return boxes

    @cached_property
    def frame_of(self) -> Mapping[str, str]:
        """Id of the frame at each static address."""
        return {cluster.address: cluster.id for cluster in self.clusters}

    @cached_property
    def control_flow(self) -> tuple[tuple[str, str], ...]:
        """Id and static address of each frame or folded box of a loop or branch."""
        frames = (
            (item.id, item.address)
            for item in self.clusters
            if item.kind in ("loop", "tensor_iterator", "if")
        )
        return (*frames, *((item.id, item.address) for item in self.nodes if item.kind == "folded"))

    def instances_of(self, address: str) -> list[ViewNode]:
        """Return the boxes of a place in all copies of the unrolled loops around it."""
        static = without_iterations(address)
        return [
            node
            for place, node in self.node_of.items()
            if "[" in place and without_iterations(place) == static
        ]

    def place_of(self, concrete: str) -> str:
        """Return the view's address for a place of a run: without iterations, except in unrolled
        loops.
        """
        if not self.unrolled:
            return without_iterations(concrete)
        path, static = "", ""
        for part in concrete.split("/"):
            label, bracket, rest = part.partition("[")
            static = f"{static}/{label}" if static else label
            visible_part = f"{label}{bracket}{rest}" if static in self.unrolled else label
            path = f"{path}/{visible_part}" if path else visible_part
        return path

    def showing(self, address: str) -> ViewNode | None:
        """Return the box at a static address, or the folded box around it; None outside of the
        canvas.

        None also if the address lacks iterations of unrolled loops.
        """
        node_of = self.node_of
        path = address
        while path:
            if path in node_of:
                return node_of[path]
            path = path.rpartition("/")[0]
        return None
