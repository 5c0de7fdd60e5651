"""Named tensors: lookup by names of users, and the part of the model that computes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from loopscope.errors import AddressError, elided, listed, shorten
from loopscope.ir.address import Address, labels
from loopscope.ir.constant import Constant
from loopscope.ir.model import Edge, LayerId, Model, ModelGraph, Node, OutputRef, Port
from loopscope.ir.replace import replace

_MAX_DIGITS = 9
"""Maximum number of digits of an output number."""


def tensor_named(graph: ModelGraph, name: str) -> OutputRef | None:
    """Return the tensor of a tensor name, a node name (``Split:1``) or an address.

    Return None for an address inside a body. ``AddressError`` when the name has no match, or
    matches several tensors.
    """
    matches = {
        OutputRef(node.id, index)
        for node in graph.nodes
        for index, port in enumerate(node.outputs)
        if name in port.names
    }
    matches = matches or {
        source
        for node in graph.results
        if name in node.output_names
        if (source := graph.sources[node.id][0])
    }
    matches = matches or set(_node_outputs(graph, name))
    if len(matches) > 1:
        raise AddressError(
            f"{shorten(name)!r} matches {len(matches)} tensors: give the address of one"
        )
    if matches:
        return matches.pop()
    address = Address.parse(name)
    if len(address.segments) != 2:
        return None
    return _output_of(graph, _layer_of(graph, address), address.output, name)


def _node_outputs(graph: ModelGraph, name: str) -> Iterator[OutputRef]:
    """Yield the outputs of the nodes of this name; ``:1`` after the name selects output 1.

    For a Result, yield the tensor that feeds it.
    """
    for node in graph.nodes:
        stem, _, number = (name, "", "0") if node.name == name else name.rpartition(":")
        if node.name != stem or not number.isdecimal() or len(number) > _MAX_DIGITS:
            continue
        if node.type == "Result":
            yield from (source for source in graph.sources[node.id] if source is not None)
        else:
            yield _output_of(graph, node.id, int(number), name)


def _output_of(graph: ModelGraph, layer: LayerId, output: int, name: str) -> OutputRef:
    node = graph.by_id[layer]
    if (
        node.type == "Result"
        and graph.sources[layer]
        and (source := graph.sources[layer][0]) is not None
    ):
        return source
    if output >= len(node.outputs):
        raise AddressError(
            f"{shorten(name)!r}: {node.type} {shorten(node.name)!r} has no output {output}"
        )
    return OutputRef(layer, output)


def layer_named(graph: ModelGraph, name: str) -> LayerId:
    """Return the node of the outermost graph that an address names or lies inside."""
    return _layer_of(graph, Address.parse(name))


def _layer_of(graph: ModelGraph, address: Address) -> LayerId:
    if len(address.segments) > 1:
        for layer, label in labels(graph).items():
            if label == address.segments[1].label:
                return layer
    expected = "a tensor name, the name of a node of the outermost graph, or an address"
    inputs = listed([node.name for node in graph.parameters])
    outputs = listed([_display_name(graph, node) for node in graph.results])
    available = f"the model's inputs are {inputs or 'none'}, its outputs {outputs or 'none'}"
    raise AddressError(
        f"there is no tensor {elided(str(address), 200)!r}: give {expected}; {available}"
    )


def _display_name(graph: ModelGraph, result: Node) -> str:
    """Return the name of an output that users know: its tensor name if it has one."""
    source = graph.sources[result.id][0]
    names = () if source is None else graph.by_id[source.layer].outputs[source.output].names
    return next(iter((*result.output_names, *names)), result.name)


Named = tuple[str, OutputRef]
"""Name of a new output, and the tensor of the outermost graph that it returns."""


def pruned(model: Model, outputs: Sequence[Named], also: Collection[LayerId] = ()) -> Model:
    """Return the model reduced to the nodes that the given tensors (and ``also``) need.

    The model's own Results are replaced by a Result for each tensor. Ids, names and addresses do
    not change; bodies stay whole.
    """
    graph = model.graph
    needed = _required_layers(graph, {*(source.layer for _, source in outputs), *also})
    uses = Counter(node.name for node in graph.nodes)
    nodes = [
        node if node.id in needed else _placeholder(node)
        for node in graph.nodes
        if node.id in needed or _shares_name(node, uses)
    ]
    edges = [edge for edge in graph.edges if edge.to_layer in needed and edge.from_layer in needed]
    opset = next((node.opset for node in graph.results), "opset1")
    layer = max(graph.by_id, default=LayerId(-1))
    for number, (name, source) in enumerate(outputs, 1):
        port = graph.tensor(source)
        result_layer = LayerId(layer + number)
        nodes.append(
            Node(
                result_layer,
                _unused_name(f"fetch_{number}", uses),
                "Result",
                opset,
                inputs=(replace(port, id=0),),
                output_names=(name,),
            )
        )
        edges.append(Edge(source.layer, port.id, result_layer, 0))
    return replace(model, graph=replace(graph, nodes=tuple(nodes), edges=tuple(edges)))


def _required_layers(graph: ModelGraph, targets: Collection[LayerId]) -> set[LayerId]:
    required = set(targets)
    waiting = list(required)
    while waiting:
        for source in graph.sources[waiting.pop()]:
            if source is not None and source.layer not in required:
                required.add(source.layer)
                waiting.append(source.layer)
    return required


def _shares_name(node: Node, uses: Counter[str]) -> bool:
    """Return True if several nodes have this name.

    Addresses of such nodes contain their ids. Each of these nodes must remain, so that the
    addresses do not change.
    """
    return uses[node.name] > 1


def _placeholder(node: Node) -> Node:
    """Return an empty Const that keeps the name of a node in use."""
    empty = Constant.of(np.empty(0, np.float32))
    return Node(
        node.id,
        node.name,
        "Const",
        "opset1",
        {"element_type": "f32", "shape": "0"},
        outputs=(Port(0),),
        constant=empty,
    )


def _unused_name(name: str, uses: Counter[str]) -> str:
    while name in uses:
        name += "_"
    return name
