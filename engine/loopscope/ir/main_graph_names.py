"""The tensors of the outermost graph, by the names that people give them."""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.errors import AddressError, elided, listed, shorten
from loopscope.ir.address import Address, labels
from loopscope.ir.model import LayerId, ModelGraph, Node, OutputRef

_MOST_DIGITS = 9
"""Of the number of an output."""


def tensor_named(graph: ModelGraph, name: str) -> OutputRef | None:
    """The tensor that a tensor name, a node name (``Split:1``) or an address means; None for an
    address inside a body.

    ``AddressError`` when it names nothing, or several tensors.
    """
    found = {
        OutputRef(node.id, index)
        for node in graph.nodes
        for index, port in enumerate(node.outputs)
        if name in port.names
    }
    found = found or {
        source
        for node in graph.results
        if name in node.output_names
        if (source := graph.sources[node.id][0])
    }
    found = found or set(_of_nodes(graph, name))
    if len(found) > 1:
        raise AddressError(f"{shorten(name)!r} means {len(found)} tensors: say one by its address")
    if found:
        return found.pop()
    address = Address.parse(name)
    if len(address.segments) != 2:
        return None
    return _output(graph, _layer(graph, address), address.output, name)


def _of_nodes(graph: ModelGraph, name: str) -> Iterator[OutputRef]:
    """The tensors that a node's name means, with ``:1`` after it for another output than the
    first; of a Result, what it is given.
    """
    for node in graph.nodes:
        stem, _, number = (name, "", "0") if node.name == name else name.rpartition(":")
        if node.name != stem or not number.isdecimal() or len(number) > _MOST_DIGITS:
            continue
        if node.type == "Result":
            yield from (source for source in graph.sources[node.id] if source is not None)
        else:
            yield _output(graph, node.id, int(number), name)


def _output(graph: ModelGraph, layer: LayerId, output: int, name: str) -> OutputRef:
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
    """The node of the outermost graph that an address names, or whose body it looks into."""
    return _layer(graph, Address.parse(name))


def _layer(graph: ModelGraph, address: Address) -> LayerId:
    if len(address.segments) > 1:
        for layer, label in labels(graph).items():
            if label == address.segments[1].label:
                return layer
    expected = "a tensor name, the name of a node of the outermost graph, or an address"
    inputs, outputs = (
        listed([node.name for node in graph.parameters]),
        listed([_named(graph, node) for node in graph.results]),
    )
    there = f"the model's inputs are {inputs or 'none'}, its outputs {outputs or 'none'}"
    raise AddressError(
        f"there is no tensor {elided(str(address), 200)!r}: give {expected}; {there}"
    )


def _named(graph: ModelGraph, result: Node) -> str:
    """The name of an output that people know: that of its tensor, where there is one."""
    source = graph.sources[result.id][0]
    names = () if source is None else graph.by_id[source.layer].outputs[source.output].names
    return next(iter((*result.output_names, *names)), result.name)
