"""Data for the canvas in the browser: the structure of a view, and batches of steps for playback.

The browser takes the geometry from the layout of the view's DOT text. A batch consists of the first
overlay and the changes of each step.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from copy import copy

from loopscope.debug.breakpoints import Breakpoint
from loopscope.debug.debugger import Debugger
from loopscope.debug.seek import next_match
from loopscope.debug.stop_conditions import stops
from loopscope.view.colours import FAMILIES
from loopscope.view.dot import dot_text, row_texts
from loopscope.view.graph import GraphView, ViewCluster, ViewEdge, ViewNode
from loopscope.view.node_data import NodeData
from loopscope.view.overlay import overlay_at
from loopscope.view.overlay_data import Marks
from loopscope.view.rows import UnrolledRow


def structure(view: GraphView) -> dict[str, object]:
    """Return all data of a view that does not depend on a run. ``hash`` identifies the content."""
    frame_of = {node.id: node.cluster for node in view.nodes}
    data: dict[str, object] = {
        "root": view.root,
        "dot": dot_text(view),
        "rows": [_row(row, text) for row, text in row_texts(view)],
        "nodes": {node.id: _node(node) for node in view.nodes},
        "clusters": {cluster.id: _cluster(cluster) for cluster in view.clusters},
        "edges": {edge.id: _edge(edge, frame_of) for edge in view.edges},
        "families": {
            family: words
            for family, words in FAMILIES.items()
            if any(node.family == family for node in view.nodes)
        },
        "hidden": view.hidden,
    }
    data["hash"] = hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]
    return data


def _row(row: UnrolledRow, text: str) -> dict[str, object]:
    copies = [
        {"clusters": list(copy.clusters), "nodes": list(copy.nodes), "edges": list(copy.edges)}
        for copy in row.copies
    ]
    return {
        "id": row.id,
        "cluster": row.cluster,
        "dot": text,
        "copies": copies,
        "earlier": row.earlier,
        "later": row.later,
    }


def _node(node: ViewNode) -> dict[str, object]:
    values = {
        "kind": node.kind,
        "address": node.address,
        "title": node.title,
        "name": node.name,
        "detail": node.detail,
    }
    texts: dict[str, object] = {key: value for key, value in values.items() if value}
    texts |= {
        "family": node.family,
        "width": node.width,
        "height": node.height,
        "outputs": len(node.values),
    }
    if node.cluster:
        texts["cluster"] = node.cluster
    if node.body:
        texts["body"] = node.body
    if node.badge:
        texts["badge"] = node.badge
    if node.constants:
        texts["constants"] = list(node.constants)
    if node.spark:
        texts["spark"] = True
    if node.handle is not None:
        texts["opens"] = True
    if node.tooltip:
        texts["tooltip"] = node.tooltip
    return texts


def _cluster(cluster: ViewCluster) -> dict[str, object]:
    return {
        "kind": cluster.kind,
        "address": cluster.address,
        "title": cluster.title,
        "name": cluster.name,
        "parent": cluster.parent,
        "body": cluster.body,
        "foldable": cluster.foldable,
        "loop": cluster.kind in ("loop", "tensor_iterator"),
        "copies": cluster.copies,
    }


def _edge(edge: ViewEdge, frame_of: Mapping[str, str]) -> dict[str, object]:
    data: dict[str, object] = {
        "kind": edge.kind,
        "source": edge.source,
        "target": edge.target,
        "label": edge.label,
        "tensor": edge.tensor,
    }
    flags = {
        "latent": edge.latent,
        "sliced": edge.slices is not None,
        "inside": edge.label and frame_of[edge.source] == frame_of[edge.target],
    }
    return data | {name: True for name, holds in flags.items() if holds}


MOST_STEPS = 400
Frame = dict[str, object]


def playback_batch(
    debugger: Debugger,
    view: GraphView,
    first: int,
    *,
    max_steps: int = MOST_STEPS,
    seconds: float = 0.06,
    previews: dict[str, str] | None = None,
    runtime_badges: Mapping[str, str] | None = None,
    node_data: NodeData | None = None,
    further: bool = False,
    breakpoints: Sequence[Breakpoint] | None = None,
) -> dict[str, object]:
    """Return overlays of the steps from ``first`` on, as many as can be made in ``seconds``; at
    least one.

    By default only executed steps are included, and the debugger's cursor does not move. With
    ``further``, the run continues and the cursor moves, so that each step is shown as the newest.
    ``stop`` in the result is the first of these steps at which a breakpoint matches: one of
    ``breakpoints``, by default the debugger's own.
    """
    twin = debugger if further else copy(debugger)
    first = max(0, first if further else min(first, debugger.steps))
    until = time.perf_counter() + seconds
    batch: dict[str, object] = {"first": first}
    active_breakpoints = debugger.breakpoints.on if breakpoints is None else breakpoints
    frames: list[Frame] = []
    before: Frame = {}
    for step in range(
        first, first + max_steps if further else min(first + max_steps, debugger.steps + 1)
    ):
        if step > twin.seek(step).step:
            break
        now = overlay_at(
            twin,
            view,
            Marks(runtime_badges=runtime_badges or {}, node_data=node_data),
            previews=previews,
        ).as_data()
        frames.append(difference(before, now))
        before = now
        if further and active_breakpoints and stops(twin, active_breakpoints):
            return batch | {"frames": frames, "stop": step}
        if time.perf_counter() > until:
            break
    batch["frames"] = frames
    stop = None if further else _next_stop(twin, first, active_breakpoints, first + len(frames))
    return batch if stop is None else batch | {"stop": stop}


def difference(before: Frame, now: Frame) -> Frame:
    """Return the changes between two overlays; None removes an entry.

    >>> before = {"nodes": {"n1": "current", "n2": "done"}, "current": "n1"}
    >>> difference(before, {"nodes": {"n1": "done"}, "current": ""})
    {'nodes': {'n1': 'done', 'n2': None}, 'current': ''}
    """
    changes: Frame = {}
    for name, value in now.items():
        old = before.get(name)
        if value == old:
            continue
        if isinstance(value, dict):
            known = old if isinstance(old, dict) else {}
            changed: dict[str, object] = {
                key: item for key, item in value.items() if known.get(key) != item
            }
            changed.update((key, None) for key in known if key not in value)
            changes[name] = changed
        else:
            changes[name] = value
    return changes


def _next_stop(
    debugger: Debugger, step: int, breakpoints: Sequence[Breakpoint], end: int
) -> int | None:
    matches = [next_match(debugger, breakpoint_, step, end) for breakpoint_ in breakpoints]
    return min((breakpoint_ for breakpoint_ in matches if breakpoint_ is not None), default=None)
