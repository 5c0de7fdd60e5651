"""Plain data to show: what a canvas draws of a model, and how a moment of a run restyles it.

The way from a model to a picture::

    folding = default_folding(model)                    # engine.view.folding: what is drawn as one box
    view = graph_view(model, folding, root="main")      # engine.view.graph: nodes, clusters and edges, laid out once
    dot = dot_text(view)                                # engine.view.dot: text for Graphviz
    overlay = overlay_at(run, view)                # engine.view.overlay: restyles the same picture at the cursor
    render(view, "svg")                                 # engine.view.render: a standalone file through the `dot` program

A click on a box or a cluster header gives a static address; ``toggle(model, folding, address)`` gives the next folding.
"""

from __future__ import annotations

from engine.errors import neutral
from engine.view import unrolling
from engine.view.boxes import short_name
from engine.view.build import graph_view
from engine.view.colours import COLOURS, channels, declarations
from engine.view.cursor_boxes import cursor_boxes
from engine.view.folding import COPIES, VISIBLE_NODES, Folding, default_folding, reveal, toggle
from engine.view.graph import GraphView, ViewCluster, ViewEdge, ViewNode, without_iterations
from engine.view.marked_boxes import breakpoint_boxes
from engine.view.mirrored import walked_back_now
from engine.view.node_data import NodeData, given_node_data, read_node_data, tints, write_node_data
from engine.view.operation_families import family_of
from engine.view.overlay import NOT_KEPT_TEXT, overlay_at
from engine.view.overlay_data import Marks, Overlay
from engine.view.payload import structure
from engine.view.playback import difference, playback_batch
from engine.view.preview import has_nan, number_text, scalar_text, value_preview
from engine.view.render import PICTURE_FORMATS, render
from engine.view.roles import input_roles, output_role
from engine.view.search import Hit, search
from engine.view.tracks import Track, tracks

__all__ = [
    "COLOURS",
    "COPIES",
    "NOT_KEPT_TEXT",
    "PICTURE_FORMATS",
    "VISIBLE_NODES",
    "Folding",
    "GraphView",
    "Hit",
    "Marks",
    "NodeData",
    "Overlay",
    "Track",
    "ViewCluster",
    "ViewEdge",
    "ViewNode",
    "breakpoint_boxes",
    "channels",
    "cursor_boxes",
    "declarations",
    "default_folding",
    "difference",
    "family_of",
    "given_node_data",
    "graph_view",
    "has_nan",
    "input_roles",
    "neutral",
    "number_text",
    "output_role",
    "overlay_at",
    "playback_batch",
    "read_node_data",
    "render",
    "reveal",
    "scalar_text",
    "search",
    "short_name",
    "structure",
    "tints",
    "toggle",
    "tracks",
    "unrolling",
    "value_preview",
    "walked_back_now",
    "without_iterations",
    "write_node_data",
]
