"""A view as JSON for the browser, which takes the geometry from the layout of its DOT text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from loopscope.view.colours import FAMILIES
from loopscope.view.dot import dot_text, row_texts
from loopscope.view.graph import GraphView, ViewCluster, ViewEdge, ViewNode
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
