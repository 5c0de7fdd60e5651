"""What a canvas draws of a model: nodes, clusters and edges as pure data.

``graph_view(model, folding, root)`` in ``loopscope.view.build`` makes it. Ids (``n12``, ``c3``,
``e7``) are synthetic and the same for the same model, folding and root; addresses are static
addresses of the model (``loopscope.ir.address``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from loopscope.view.operation_families import Family

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
"""``input_map``/``output_map``: port maps; ``merge``: a branch's Result into the If's output;
``back``: a back edge; ``again``: the condition Result decides whether another iteration runs;
``carried`` and ``goes_on``: the same two from one copy of an unrolled body to the next;
``trip_count`` and ``start`` enter a Loop's header; ``condition`` enters an If's header and
``branch`` leaves it; ``cut_end``: one half of a long edge that was cut.
"""


_ITERATION = re.compile(r"\[[^\]]*\]")


def without_iterations(address: str) -> str:
    """The static form of an address.

    >>> without_iterations("main/outer[1]/body/inner[*]/body/Add")
    'main/outer/body/inner/body/Add'
    """
    return _ITERATION.sub("", address) if "[" in address else address


@dataclass(frozen=True, slots=True)
class Slices:
    """How an iteration's part is cut from a tensor, or joined to one."""

    axis: int
    stride: int
    part_size: int


@dataclass(frozen=True, slots=True)
class ViewNode:
    """One box."""

    id: str
    kind: NodeKind
    address: str
    """Static address. A ``control``, ``condition`` or ``folded`` box has its region's; an
    ``output`` box the region's with ``:k``; a ``cut_end`` the cut tensor's; a ``more`` box, which
    stands for iterations beside the window, its loop's. In copies of an unrolled body with
    iterations: ``main/loop_7[3]/body/Add_3``.
    """
    title: str
    """The operation's type, or what the box is."""
    name: str = ""
    detail: str = ""
    """Declared element type and shape of the first output, or the role of a port."""
    family: Family = "other"
    cluster: str = ""
    """Id of the innermost cluster; empty at the top."""
    constants: tuple[str, ...] = ()
    """Short texts of the constants that feed it."""
    badge: str = ""
    """What a folded box holds, such as ``14 nodes``."""
    values: tuple[str, ...] = ()
    """Static addresses of the tensors whose values are written below it, by output number."""
    members: tuple[str, ...] = ()
    """Of a folded group: the static addresses of its nodes."""
    loops: tuple[str, ...] = ()
    """Of a folded group: the static addresses of the loops among its nodes."""
    tooltip: str = ""
    body: str = ""
    """Static address of the graph that opens as a canvas from this box; empty when there is
    none, or more than one.
    """
    spark: str = ""
    """Of a folded loop: address of the carried Parameter whose values it shows as a line; empty
    when it has none.
    """
    width: float = 0.0
    height: float = 0.0

    @property
    def at_top(self) -> bool:
        """Stands in the first row of its frame: what hands values in, and what decides whether a
        loop begins.
        """
        return self.kind in ("parameter", "control") or (
            self.kind == "folded" and self.family == "port"
        )


@dataclass(frozen=True, slots=True)
class ViewCluster:
    """A frame round nodes: a control-flow node, one of its branches, one iteration of an
    unrolled loop, or an opened group.
    """

    id: str
    kind: ClusterKind
    address: str
    """Static address; folding it is ``toggle`` of this address."""
    title: str
    name: str = ""
    parent: str = ""
    body: str = ""
    """Static address of the graph whose nodes it holds directly; empty for an If, whose branches
    do.
    """
    foldable: bool = True
    copies: int = 0
    """Of an unrolled loop: how many iterations are drawn."""


@dataclass(frozen=True, slots=True)
class ViewEdge:
    """A line from one box to another."""

    id: str
    kind: EdgeKind
    source: str
    target: str
    tensor: str = ""
    """Static address of the tensor that flows along it (``:k`` for output k > 0)."""
    label: str = ""
    into: str = ""
    """Static address of the Parameter that a port map or back edge feeds."""
    slices: Slices | None = None
    frame: str = ""
    """Ends at the border of this cluster."""
    input: int = 0
    """Number of the target's input; of an output map, of the output."""
    latent: bool = False
    """Seen only while one of its ends is pointed at or selected: it is one of many lines into a
    box of outer values.
    """
    placed: bool = True
    """Has a say in the layout."""
    upwards: bool = False
    """The line closes a cycle among folded boxes, and therefore leads up to a box above its
    source.
    """


@dataclass(frozen=True, eq=False)
class GraphView:
    """A canvas's content. Depends on the model, the folding and the root only, never on a run."""

    root: str
    """Static address of the graph that is the canvas: ``main`` or ``main/loop_7/body``."""
    nodes: tuple[ViewNode, ...]
    clusters: tuple[ViewCluster, ...]
    edges: tuple[ViewEdge, ...]
    hidden: int = 0
    """How many nodes of the model's graphs below the root are inside folded boxes."""
    title: str = ""
    unrolled: frozenset[str] = frozenset()
    """Static addresses of the loops that are drawn unrolled."""

    @cached_property
    def by_id(self) -> Mapping[str, ViewNode | ViewCluster | ViewEdge]:
        found: dict[str, ViewNode | ViewCluster | ViewEdge] = {node.id: node for node in self.nodes}
        found.update({cluster.id: cluster for cluster in self.clusters})
        found.update({edge.id: edge for edge in self.edges})
        return found

    @cached_property
    def node_of(self) -> Mapping[str, ViewNode]:
        """The box that shows a static address: its own, or the folded group that holds it (a
        region: its header or folded box).
        """
        found: dict[str, ViewNode] = {}
        for node in self.nodes:
            for member in node.members:
                found.setdefault(member, node)
            if node.kind not in ("cut_end", "more"):
                found.setdefault(node.address, node)
        return found

    @cached_property
    def frame_of(self) -> Mapping[str, str]:
        """Id of the frame at a static address."""
        return {cluster.address: cluster.id for cluster in self.clusters}

    @cached_property
    def control_flow(self) -> tuple[tuple[str, str], ...]:
        """Id and static address of each frame and folded box that stands for one loop or branch."""
        frames = (
            (one.id, one.address)
            for one in self.clusters
            if one.kind in ("loop", "tensor_iterator", "if")
        )
        return (*frames, *((one.id, one.address) for one in self.nodes if one.kind == "folded"))

    def instances_of(self, address: str) -> list[ViewNode]:
        """The boxes of a place in all copies of the unrolled loops round it."""
        static = without_iterations(address)
        return [
            node
            for place, node in self.node_of.items()
            if "[" in place and without_iterations(place) == static
        ]

    def place_of(self, concrete: str) -> str:
        """The address that a box has for a place of a run: without iterations but those of
        unrolled loops.
        """
        if not self.unrolled:
            return without_iterations(concrete)
        shown, static = "", ""
        for part in concrete.split("/"):
            label, bracket, rest = part.partition("[")
            static = f"{static}/{label}" if static else label
            kept = f"{label}{bracket}{rest}" if static in self.unrolled else label
            shown = f"{shown}/{kept}" if shown else kept
        return shown

    def showing(self, address: str) -> ViewNode | None:
        """The box that shows a static address, or the folded box around it; None when it is outside
        the canvas.

        Where iterations of unrolled loops are missing in the address, there may be none.
        """
        node_of = self.node_of
        path = address
        while path:
            if path in node_of:
                return node_of[path]
            path = path.rpartition("/")[0]
        return None
