"""Documentation and metadata of nodes, which exporters use for the source of a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import NodeProto

from loopscope.errors import shorten

DOC_STRING = "doc_string"
"""Key of a node's documentation among its metadata."""
_MAX_ENTRIES = 32
_MAX_KEY = 200
_MAX_TEXT = 4_000


def node_details(nodes: Sequence[NodeProto]) -> dict[int, Mapping[str, object]]:
    """Return metadata and documentation of the nodes that have some, by index.

    Long texts are shortened. Texts that are not UTF-8 are left out.
    """
    return {
        index: details
        for index, node in enumerate(nodes)
        if (node.metadata_props or node.doc_string) and (details := _details(node))
    }


def _details(node: NodeProto) -> Mapping[str, object]:
    texts = [
        *((entry.key, entry.value) for entry in node.metadata_props[:_MAX_ENTRIES]),
        (DOC_STRING, node.doc_string),
    ]
    return {
        shorten(key, _MAX_KEY): shorten(text, _MAX_TEXT)
        for key, text in texts
        if isinstance(key, str) and isinstance(text, str) and key and text
    }
