"""Pictures of models as plain data: what a canvas draws, and overlays for a moment of a run.

From a model to a picture::

    folding = default_folding(model)                # loopscope.view.folding: one box or several
    view = graph_view(model, folding, root="main")  # loopscope.view.build: nodes, frames and edges
    dot = dot_text(view)                            # loopscope.view.dot: text for Graphviz
    overlay = overlay_at(run, view)                 # loopscope.view.overlay: moment of a run
    render(view, "svg")                             # loopscope.view.dot: a file through `dot`

A click on a box or a frame header yields a static address; ``toggle(model, folding, address)``
returns the folding after the click.
"""

from __future__ import annotations

from loopscope.errors import neutral
from loopscope.view import unrolling
from loopscope.view.backward_overlay import walked_back_now
from loopscope.view.boxes import short_name
from loopscope.view.build import graph_view
from loopscope.view.canvas_data import difference, playback_batch, structure
from loopscope.view.colours import COLOURS, channels, declarations, family_of
from loopscope.view.dot import PICTURE_FORMATS, render
from loopscope.view.file_facts import (
    SourceLine,
    flat_entries,
    fused_names,
    model_facts,
    own_source_line,
    source_lines,
)
from loopscope.view.folding import COPIES, VISIBLE_NODES, Folding, default_folding, reveal, toggle
from loopscope.view.graph import GraphView, ViewCluster, ViewEdge, ViewNode, without_iterations
from loopscope.view.node_data import (
    NodeData,
    given_node_data,
    node_colours,
    read_node_data,
    write_node_data,
)
from loopscope.view.overlay import NOT_KEPT_TEXT, overlay_at
from loopscope.view.overlay_data import Marks, Overlay, breakpoint_boxes, cursor_boxes
from loopscope.view.preview import has_nan, number_text, scalar_text, value_preview
from loopscope.view.roles import input_roles, output_role
from loopscope.view.search import Hit, search
from loopscope.view.tracks import Track, tracks

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
    "SourceLine",
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
    "flat_entries",
    "fused_names",
    "given_node_data",
    "graph_view",
    "has_nan",
    "input_roles",
    "model_facts",
    "neutral",
    "node_colours",
    "number_text",
    "output_role",
    "overlay_at",
    "own_source_line",
    "playback_batch",
    "read_node_data",
    "render",
    "reveal",
    "scalar_text",
    "search",
    "short_name",
    "source_lines",
    "structure",
    "toggle",
    "tracks",
    "unrolling",
    "value_preview",
    "walked_back_now",
    "without_iterations",
    "write_node_data",
]
