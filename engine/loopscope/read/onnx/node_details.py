"""Documentation and metadata of nodes, tensors and graphs; exporters state the source there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, ValueInfoProto

from loopscope.errors import shorten
from loopscope.ir.model import NO_ATTRIBUTES

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
        if (node.metadata_props or node.doc_string) and (details := details_of(node))
    }


def input_details(graph: GraphProto | FunctionProto) -> dict[str, Mapping[str, object]]:
    """Return metadata and documentation of the inputs that have some, by name."""
    return {
        value.name: details
        for value in (graph.input if isinstance(graph, GraphProto) else ())
        if (details := details_of(value))
    }


def details_of(
    documented: NodeProto | ValueInfoProto | TensorProto | GraphProto | FunctionProto,
) -> Mapping[str, object]:
    """Return metadata and documentation; empty if there are none."""
    if not documented.metadata_props and not documented.doc_string:
        return NO_ATTRIBUTES
    texts = [
        *((entry.key, entry.value) for entry in documented.metadata_props[:_MAX_ENTRIES]),
        (DOC_STRING, documented.doc_string),
    ]
    return {
        shorten(key, _MAX_KEY): shorten(text, _MAX_TEXT)
        for key, text in texts
        if isinstance(key, str) and isinstance(text, str) and key and text
    }
