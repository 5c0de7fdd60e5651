"""Operations without a conversion, which OpenVINO writes without version and attributes.

Both are added from the TensorFlow graph.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lxml import etree

from loopscope.errors import shorten
from loopscope.ir.graph_messages import DATA_TYPES
from loopscope.read.tensorflow.conversion_notes import TENSORFLOW
from loopscope.read.tensorflow.graph_file import GraphDefFile

_TYPES = {
    "DT_FLOAT": "f32",
    "DT_DOUBLE": "f64",
    "DT_HALF": "f16",
    "DT_BFLOAT16": "bf16",
    "DT_BOOL": "boolean",
    "DT_STRING": "string",
    **{f"DT_INT{bits}": f"i{bits}" for bits in (4, 8, 16, 32, 64)},
    **{f"DT_UINT{bits}": f"u{bits}" for bits in (4, 8, 16, 32, 64)},
}
_LOOPSCOPE_OPSETS = {"Print": "loopscope"}
"""Opsets of operations that OpenVINO lacks and Loopscope runs with TensorFlow's meaning."""
_MAX_PARTS = 32
_INVALID_ATTRIBUTES = re.compile(rb'\s[\w.]+::[\w.:]+="[^"<]*"')
"""Attributes with two colons in their names, in which OpenVINO explains a failed conversion.

Such names are not valid XML.
"""
_TYPE_NAMES = {number: _TYPES.get(name, name) for name, number in DATA_TYPES.items()}


def add_tensorflow_attributes(document: bytes, source: GraphDefFile | None) -> bytes:
    """Return the IR with version "tensorflow" and TensorFlow's attributes at layers without a
    version.

    ``ValueError`` if the document is not valid XML.
    """
    document = _INVALID_ATTRIBUTES.sub(b"", document)
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True
    )
    try:
        root = etree.fromstring(document, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError(f"OpenVINO wrote an IR that is not XML: {error}") from error
    nodes = _nodes_by_name(source)
    for layer in root.iter("layer"):
        if "version" not in layer.attrib:
            _set_attributes(layer, nodes)
            layer.set("version", _LOOPSCOPE_OPSETS.get(layer.get("type", ""), TENSORFLOW))
    return etree.tostring(root, encoding="utf-8", xml_declaration=True)


def _nodes_by_name(source: GraphDefFile | None) -> Mapping[str, Any]:
    if source is None:
        return {}
    inside = (node for function in source.graph.library.function for node in function.node_def)
    return {node.name: node for nodes in (inside, source.graph.node) for node in nodes}


def _set_attributes(layer: Any, nodes: Mapping[str, Any]) -> None:
    parts, kind = layer.get("name", "").split("/"), layer.get("type")
    # In a body, the names of outer calls may precede the node's own name.
    tails = ("/".join(parts[start:]) for start in range(min(len(parts), _MAX_PARTS)))
    node = next(
        (
            candidate
            for tail in tails
            if (candidate := nodes.get(tail)) is not None and kind in (candidate.op, "")
        ),
        None,
    )
    for data in layer.findall("data"):
        layer.remove(data)
    if node is not None:
        layer.set("type", node.op)  # OpenVINO omits the type of a variable without a value
        texts = {
            name: _text(value)
            for name, value in sorted(node.attr.items())
            if not name.startswith("_")
        }
        layer.insert(
            0,
            etree.Element(
                "data",
                {
                    name: text
                    for name, text in texts.items()
                    if _is_writable(name) and _is_writable(text)
                },
            ),
        )


def _is_writable(text: str) -> bool:
    return all(character in "\t\n\r" or character >= " " for character in text)


def _text(value: Any) -> str:
    """Format an attribute as in an IR: OpenVINO's type names, lists with commas.

    Tensors and functions are only named.
    """
    for field, content in value.ListFields():
        return _list_text(content) if field.name == "list" else _item_text(field.name, content)
    return ""


def _list_text(content: Any) -> str:
    return ",".join(
        _item_text(field.name, item) for field, items in content.ListFields() for item in items
    )


def _item_text(kind: str, content: Any) -> str:
    match kind:
        case "s":
            return str(content.decode("utf-8", errors="replace"))
        case "b":
            return str(content).lower()
        case "type":
            return _TYPE_NAMES.get(content, str(content))
        case "shape":
            return (
                "..."
                if content.unknown_rank
                else ",".join(
                    "?" if dimension.size < 0 else str(dimension.size) for dimension in content.dim
                )
            )
        case "tensor":
            return f"a tensor of {_TYPE_NAMES.get(content.dtype, 'an unknown type')}"
        case "func":
            return str(content.name)
        case "f":
            return f"{content:.9g}"
        case _:
            return shorten(str(content), 1000)
