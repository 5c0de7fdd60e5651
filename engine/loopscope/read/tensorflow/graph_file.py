"""TensorFlow graph files: parsing, and the nodes of a graph and its functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from loopscope.ir.graph_messages import MESSAGES
from loopscope.read.file_limits import ReadLimits
from loopscope.read.recognise import Format

SAVED_MODEL = "saved_model.pb"
"""File name of the graph in a SavedModel folder."""
_CONTAINERS = {
    Format.FROZEN: "GraphDef",
    Format.GRAPH_TEXT: "GraphDef",
    Format.META_GRAPH: "MetaGraphDef",
    Format.META_GRAPH_TEXT: "MetaGraphDef",
    Format.SAVED_MODEL: "SavedModel",
    Format.SAVED_MODEL_TEXT: "SavedModel",
}
_TEXT_FORMATS = (Format.GRAPH_TEXT, Format.META_GRAPH_TEXT, Format.SAVED_MODEL_TEXT)


@dataclass(frozen=True, slots=True, eq=False)
class GraphDefFile:
    """A GraphDef message and the output nodes of its signatures."""

    graph: Any
    outputs: Mapping[str, str]
    """Output node by the name that a signature uses."""

    def functions(self) -> Mapping[str, Any]:
        return {function.signature.name: function for function in self.graph.library.function}

    def needed(self, names: Iterable[str]) -> tuple[Any, ...]:
        """Return the nodes that these outputs depend on, with the nodes of called functions.

        All nodes if none of the names is known.
        """
        nodes = {node.name: node for node in self.graph.node}
        waiting = [
            name
            for name in (self.outputs.get(name, node_name(name)) for name in names)
            if name in nodes
        ]
        reached: dict[str, Any] = {}
        while waiting:
            name = waiting.pop()
            if name in nodes and name not in reached:
                reached[name] = nodes[name]
                waiting.extend(node_name(tensor) for tensor in nodes[name].input)
        return _with_functions(reached.values() if reached else nodes.values(), self.functions())


def node_name(tensor: str) -> str:
    """Return the node name in a tensor's name.

    >>> node_name("add:0"), node_name("^init"), node_name("add")
    ('add', 'init', 'add')
    """
    return tensor.lstrip("^").partition(":")[0]


def parse_message(path: Path, format: Format) -> Any:
    """Parse the message in a file. ``ValueError`` if the file contains another message."""
    message = MESSAGES[_CONTAINERS[format]]()
    try:
        if format in _TEXT_FORMATS:
            text_format.Parse(path.read_bytes(), message, allow_unknown_field=True)
        else:
            message.ParseFromString(path.read_bytes())
    except (DecodeError, text_format.ParseError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"it cannot be parsed: {error}") from error
    return message


def read_source(path: Path, format: Format) -> GraphDefFile:
    """Read the graph and signatures of a file. ``ValueError`` if the file contains another
    message.
    """
    message = parse_message(path, format)
    if format is Format.SAVED_MODEL:
        if not message.meta_graphs:
            raise ValueError("there is no graph in it")
        message = message.meta_graphs[0]
    if format in (Format.FROZEN, Format.GRAPH_TEXT):
        return GraphDefFile(message, {})
    signatures = [
        signature_def
        for name, signature_def in message.signature_def.items()
        if not name.startswith("__")
    ]
    outputs = {
        name: node_name(tensor.name)
        for signature in signatures
        for name, tensor in signature.outputs.items()
    }
    return GraphDefFile(message.graph_def, outputs)


def write_binary(text: Path, format: Format, target: Path, limits: ReadLimits) -> None:
    """Write a ``META_GRAPH_TEXT`` or ``SAVED_MODEL_TEXT`` file in binary form to ``target``.

    Unknown fields are dropped. ``ValueError`` if the text is invalid, or longer than
    ``limits.graph_text_bytes``.
    """
    if (size := text.stat().st_size) > limits.graph_text_bytes:
        raise ValueError(
            f"it has {size:,} bytes, more than the limit 'graph_text_bytes' of"
            f" {limits.graph_text_bytes:,}"
        )
    target.write_bytes(parse_message(text, format).SerializeToString())


def _with_functions(nodes: Iterable[Any], functions: Mapping[str, Any]) -> tuple[Any, ...]:
    all_nodes, waiting, called = list(nodes), list(nodes), set[str]()
    while waiting:
        for name in called_functions(waiting.pop()):
            if name in functions and name not in called:
                called.add(name)
                inside = list(functions[name].node_def)
                all_nodes += inside
                waiting += inside
    return tuple(all_nodes)


def called_functions(node: Any) -> Iterator[str]:
    """Yield the functions that a node refers to: its operation and function attributes."""
    yield node.op
    for value in node.attr.values():
        yield value.func.name
        yield from (function.name for function in value.list.func)
