"""Notes on what the conversion of a TensorFlow graph preserved and lost.

OpenVINO writes operations without a conversion without version and attributes. Both are added from
the TensorFlow graph.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lxml import etree

from loopscope.errors import listed, shorten
from loopscope.ir.graph_messages import DATA_TYPES
from loopscope.ir.model import Model, ModelGraph
from loopscope.read.tensorflow.graph_file import GraphDefFile

TENSORFLOW = "tensorflow"
"""Opset of operations that stay in the model unconverted."""
_MAX_KINDS = 8
_VARIABLES = frozenset({"VarHandleOp", "Variable", "VariableV2"})
_WRITES = re.compile(
    r"Assign(Add|Sub)?(VariableOp)?|ResourceScatter\w+"
    r"|Scatter(Nd)?(Add|Sub|Mul|Div|Min|Max|Update)|(Resource)?(Sparse)?Apply\w+"
)
"""Operations that change a variable."""


def notes(source: GraphDefFile, model: Model, states: Sequence[str] = ()) -> tuple[str, ...]:
    """Return notes: nodes that kept their names, operations without a conversion, ignored
    assignments.

    ``states`` are variables that the model reads and assigns as states. With any, no assignment is
    lost.
    """
    needed = source.needed(
        name for output in model.outputs for name in (output.name, *output.names)
    )
    return (
        _kept_note(needed, model),
        *_output_notes(source, model),
        *_unconverted_notes(model),
        *(() if states else _assignment_notes(needed)),
    )


def layers(graph: ModelGraph) -> Iterator[Any]:
    """Yield the nodes of a graph and of all bodies in it."""
    waiting = [graph]
    while waiting:
        inner = waiting.pop()
        yield from inner.nodes
        waiting.extend(body.graph for node in inner.nodes for body in node.bodies)


def _kept_note(needed: tuple[Any, ...], model: Model) -> str:
    names = set(_names(model.graph))
    lost = Counter(node.op for node in needed if node.name not in names)
    count = len(needed) - lost.total()
    sentence = f"{count} of {len(needed)} nodes kept their names in the conversion"
    return (
        f"{sentence}; OpenVINO merged, folded or left out {_format_counts(lost)}"
        if lost
        else sentence
    )


def _output_notes(source: GraphDefFile, model: Model) -> Iterator[str]:
    """Yield a note if the conversion dropped outputs, as it does with one that only reads a
    variable.
    """
    names = {name for output in model.outputs for name in (output.name, *output.names)}
    if missing := sorted(source.outputs.keys() - names):
        yield (
            f"the conversion leaves out {len(missing)} of the {len(source.outputs)} outputs that"
            f" the file names: {listed(missing)}"
        )


def _names(graph: ModelGraph) -> Iterator[str]:
    """Yield the names of layers and tensors, in full and without the calls around them."""
    for layer in layers(graph):
        for name in (
            layer.name,
            *layer.output_names,
            *(name for port in layer.outputs for name in port.names),
        ):
            parts = name.partition(":")[0].split("/")
            yield from ("/".join(parts[start:]) for start in range(min(len(parts), 32)))


def _unconverted_notes(model: Model) -> Iterator[str]:
    unknown = Counter(node.type for node in layers(model.graph) if node.opset == TENSORFLOW)
    if without := sum(unknown.pop(kind, 0) for kind in _VARIABLES):
        yield (
            f"{without} of the variables have no value here: those of a meta graph lie in the"
            " .index and .data files beside it, which are found when it is opened by its path"
        )
    if unknown:
        yield (
            f"OpenVINO does not convert {_format_counts(unknown)}: these stay TensorFlow"
            f' operations; define what they compute with --ops, for the opset "{TENSORFLOW}"'
        )


def _assignment_notes(needed: tuple[Any, ...]) -> Iterator[str]:
    writes = [node for node in needed if _WRITES.fullmatch(node.op)]
    if writes:
        names = ", ".join(f"{shorten(node.name, 60)!r} ({node.op})" for node in writes[:_MAX_KINDS])
        yield (
            f"the model changes variables in {names}: the conversion leaves that out, every"
            " variable keeps the value that was saved, and results differ from TensorFlow's where"
            " a variable is read after it was changed"
        )


def _format_counts(kinds: Counter[str]) -> str:
    """Format counts such as ``Const 3, Identity 1``, the most frequent first."""
    frequent = kinds.most_common(_MAX_KINDS)
    remaining = kinds.total() - sum(count for _, count in frequent)
    return ", ".join(
        [
            *(f"{shorten(kind, 40)} {count}" for kind, count in frequent),
            *([f"{remaining} others"] if remaining else []),
        ]
    )


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
