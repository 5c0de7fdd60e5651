"""Graphs and control-flow nodes during drawing, with the boxes of their nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from loopscope.ir.model import Body, LayerId, ModelGraph
from loopscope.view.graph import without_iterations


@dataclass(slots=True)
class DrawnRegion:
    """A control-flow node that is drawn open, with the boxes of its inputs and outputs."""

    address: str
    cluster: str
    header: str
    """Id of the box for trip count and conditions; empty if there is none."""
    outputs: tuple[str, ...]
    copies: list[str] = field(default_factory=list[str])
    """Addresses of the iterations of an unrolled loop that are drawn side by side."""
    same: dict[LayerId, str] = field(default_factory=dict[LayerId, str])
    """Ids of the boxes for Parameters with the same value in all iterations, drawn once beside the
    copies.
    """
    outer: str = ""
    """Id of the common box for these Parameters, if they are drawn as one box."""
    earlier: str = ""
    later: str = ""
    """Ids of the boxes for iterations before and after the copies; empty if there are none."""
    folded_bodies: dict[str, str] = field(default_factory=dict[str, str])
    """Ids of the boxes of folded branches by body name."""


@dataclass(slots=True)
class DrawnGraph:
    """A graph that is drawn."""

    graph: ModelGraph
    address: str
    cluster: str
    label: Mapping[LayerId, str]
    body: Body | None = None
    owner: DrawnRegion | None = None
    box: dict[LayerId, str] = field(default_factory=dict[LayerId, str])
    """Ids of the boxes of nodes; the nodes of a folded group share one."""
    region: dict[LayerId, DrawnRegion] = field(default_factory=dict[LayerId, DrawnRegion])
    """Control-flow nodes of the graph that are drawn open."""
    outer: str = ""
    """Id of the common box for Parameters that only pass outer values in, if they are drawn as one
    box.
    """

    @property
    def static(self) -> str:
        """Address without the iterations of unrolled loops."""
        return without_iterations(self.address)

    def at(self, layer: LayerId, output: int = 0) -> str:
        """Return the address of a node's output: static, except for the iterations of unrolled
        loops.
        """
        address = f"{self.address}/{self.label[layer]}"
        return f"{address}:{output}" if output else address
