"""Graphs and control-flow nodes while they are being drawn: which box is drawn for which node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from loopscope.ir.model import Body, LayerId, ModelGraph
from loopscope.view.graph import without_iterations


@dataclass(slots=True)
class DrawnRegion:
    """A control-flow node that is drawn open, and the boxes of its inputs and outputs."""

    address: str
    cluster: str
    header: str
    """Id of the box where trip count and conditions arrive; empty when it has none."""
    outputs: tuple[str, ...]
    copies: list[str] = field(default_factory=list[str])
    """Addresses of the iterations that are drawn side by side, when the loop is unrolled."""
    same: dict[LayerId, str] = field(default_factory=dict[LayerId, str])
    """Ids of the boxes of Parameters that have the same value in all iterations, beside the
    copies.
    """
    outer: str = ""
    """Id of the one box for them, where they are drawn as one."""
    earlier: str = ""
    later: str = ""
    """Ids of the boxes for the iterations before and after the copies; empty when there are
    none.
    """
    folded_bodies: dict[str, str] = field(default_factory=dict[str, str])
    """Ids of the boxes of branches that are folded, by body name."""


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
    """Ids of the boxes of its nodes; several nodes of a folded group share one."""
    region: dict[LayerId, DrawnRegion] = field(default_factory=dict[LayerId, DrawnRegion])
    """Its control-flow nodes that are drawn open."""
    outer: str = ""
    """Id of the box for Parameters that only hand outer values in, where they are drawn as one."""

    @property
    def static(self) -> str:
        """The address without the iterations of unrolled loops."""
        return without_iterations(self.address)

    def at(self, layer: LayerId, output: int = 0) -> str:
        """Address of a node's output: static, but for the iterations of unrolled loops."""
        address = f"{self.address}/{self.label[layer]}"
        return f"{address}:{output}" if output else address
