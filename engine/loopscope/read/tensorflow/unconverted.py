"""Operations that nobody converts: OpenVINO writes them without version and attributes, which
the TensorFlow graph has.
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
_OURS = {"Print": "loopscope"}
"""The opsets of operations that OpenVINO does not have and that mean here what they mean in
TensorFlow.
"""
_MOST_PARTS = 32
_NO_NAMES = re.compile(rb'\s[\w.]+::[\w.:]+="[^"<]*"')
"""Attributes with two colons, by which OpenVINO says why it does not convert a layer: no XML has
such names.
"""
_NAMES = {number: _TYPES.get(name, name) for name, number in DATA_TYPES.items()}


def completed(document: bytes, source: GraphDefFile | None) -> bytes:
    """The IR with version "tensorflow" and TensorFlow's attributes at each layer that has no
    version; ``ValueError`` if it is no XML.
    """
    document = _NO_NAMES.sub(b"", document)
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True
    )
    try:
        root = etree.fromstring(document, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError(f"what OpenVINO wrote is no XML: {error}") from error
    nodes = _by_name(source)
    for layer in root.iter("layer"):
        if "version" not in layer.attrib:
            _set_attributes(layer, nodes)
            layer.set("version", _OURS.get(layer.get("type", ""), TENSORFLOW))
    return etree.tostring(root, encoding="utf-8", xml_declaration=True)


def _by_name(source: GraphDefFile | None) -> Mapping[str, Any]:
    if source is None:
        return {}
    inside = (node for function in source.graph.library.function for node in function.node_def)
    return {node.name: node for nodes in (inside, source.graph.node) for node in nodes}


def _set_attributes(layer: Any, nodes: Mapping[str, Any]) -> None:
    parts, kind = layer.get("name", "").split("/"), layer.get("type")
    # In a body, the names of the calls around it may stand before the node's own.
    tails = ("/".join(parts[start:]) for start in range(min(len(parts), _MOST_PARTS)))
    node = next(
        (
            found
            for tail in tails
            if (found := nodes.get(tail)) is not None and kind in (found.op, "")
        ),
        None,
    )
    for data in layer.findall("data"):
        layer.remove(data)
    if node is not None:
        layer.set("type", node.op)  # OpenVINO writes none for a variable of which it has no value
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
    """An attribute as an IR writes it: types by OpenVINO's names, lists with commas.

    A tensor and a function are only told of.
    """
    for field, content in value.ListFields():
        return _list_text(content) if field.name == "list" else _one_text(field.name, content)
    return ""


def _list_text(content: Any) -> str:
    return ",".join(
        _one_text(field.name, one) for field, many in content.ListFields() for one in many
    )


def _one_text(kind: str, content: Any) -> str:
    match kind:
        case "s":
            return str(content.decode("utf-8", errors="replace"))
        case "b":
            return str(content).lower()
        case "type":
            return _NAMES.get(content, str(content))
        case "shape":
            return (
                "..."
                if content.unknown_rank
                else ",".join("?" if one.size < 0 else str(one.size) for one in content.dim)
            )
        case "tensor":
            return f"a tensor of {_NAMES.get(content.dtype, 'an unknown type')}"
        case "func":
            return str(content.name)
        case "f":
            return f"{content:.9g}"
        case _:
            return shorten(str(content), 1000)
