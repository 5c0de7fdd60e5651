"""The nodes of a TensorFlow graph file, with those of its functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from loopscope.ir.graph_messages import MESSAGES
from loopscope.read.recognise import Format

SAVED_MODEL = "saved_model.pb"
"""What the graph of a SavedModel is called in its folder."""
_CONTAINERS = {
    Format.FROZEN: "GraphDef",
    Format.GRAPH_TEXT: "GraphDef",
    Format.META_GRAPH: "MetaGraphDef",
    Format.META_GRAPH_TEXT: "MetaGraphDef",
    Format.SAVED_MODEL: "SavedModel",
    Format.SAVED_MODEL_TEXT: "SavedModel",
}
_TEXTS = (Format.GRAPH_TEXT, Format.META_GRAPH_TEXT, Format.SAVED_MODEL_TEXT)


@dataclass(frozen=True, slots=True, eq=False)
class GraphDefFile:
    """A GraphDef message and, of a SavedModel, the nodes that its signatures call outputs."""

    graph: Any
    outputs: Mapping[str, str]
    """Node by the name that a signature gives its output."""

    def functions(self) -> Mapping[str, Any]:
        return {function.signature.name: function for function in self.graph.library.function}

    def needed(self, names: Iterable[str]) -> tuple[Any, ...]:
        """The nodes that these outputs depend on, those of the functions that are called
        included; all where no output is known.
        """
        nodes = {node.name: node for node in self.graph.node}
        waiting = [
            name
            for name in (self.outputs.get(name, node_name(name)) for name in names)
            if name in nodes
        ]
        found: dict[str, Any] = {}
        while waiting:
            name = waiting.pop()
            if name in nodes and name not in found:
                found[name] = nodes[name]
                waiting.extend(node_name(one) for one in nodes[name].input)
        return _with_functions(found.values() if found else nodes.values(), self.functions())


def node_name(tensor: str) -> str:
    """The node of a tensor's name.

    >>> node_name("add:0"), node_name("^init"), node_name("add")
    ('add', 'init', 'add')
    """
    return tensor.lstrip("^").partition(":")[0]


def parsed(path: Path, found: Format) -> Any:
    """The message that a file holds; ``ValueError`` when it is no such message."""
    message = MESSAGES[_CONTAINERS[found]]()
    try:
        if found in _TEXTS:
            text_format.Parse(path.read_bytes(), message, allow_unknown_field=True)
        else:
            message.ParseFromString(path.read_bytes())
    except (DecodeError, text_format.ParseError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"it cannot be parsed: {error}") from error
    return message


def read_source(path: Path, found: Format) -> GraphDefFile:
    """What a file says; ``ValueError`` when it is no such message."""
    message = parsed(path, found)
    if found is Format.SAVED_MODEL:
        if not message.meta_graphs:
            raise ValueError("there is no graph in it")
        message = message.meta_graphs[0]
    if found in (Format.FROZEN, Format.GRAPH_TEXT):
        return GraphDefFile(message, {})
    signatures = [one for name, one in message.signature_def.items() if not name.startswith("__")]
    outputs = {
        name: node_name(tensor.name)
        for signature in signatures
        for name, tensor in signature.outputs.items()
    }
    return GraphDefFile(message.graph_def, outputs)


def _with_functions(nodes: Iterable[Any], functions: Mapping[str, Any]) -> tuple[Any, ...]:
    found, waiting, called = list(nodes), list(nodes), set[str]()
    while waiting:
        for name in called_functions(waiting.pop()):
            if name in functions and name not in called:
                called.add(name)
                inside = list(functions[name].node_def)
                found += inside
                waiting += inside
    return tuple(found)


def called_functions(node: Any) -> Iterator[str]:
    """The functions that a node names: in an attribute, or as its operation."""
    yield node.op
    for value in node.attr.values():
        yield value.func.name
        yield from (function.name for function in value.list.func)
