"""The nodes of an ONNX function in place of its call, so that the values in it can be outputs of
the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import onnx

_DEFAULT_DOMAIN = ("", "ai.onnx")


@dataclass(frozen=True, slots=True)
class Names:
    """Names of the values of a function by the names in its definition."""

    given: Mapping[str, str] = field(default_factory=dict[str, str])
    """Inputs and outputs of the function, by the names at its call."""
    prefix: str = ""
    """Comes before all other names."""

    def of(self, name: str) -> str:
        """Return the name of a value in the graph of the call; empty for a value that is left
        out.
        """
        if not name:
            return ""
        return self.given.get(name, f"{self.prefix}{name}")


def inline(
    model: onnx.ModelProto, graph: onnx.GraphProto, call: onnx.NodeProto, prefix: str
) -> Names | None:
    """Put the nodes of a function in place of its call, and return their names.

    None, with nothing changed, where the model does not have the function, or the function has
    operations of another version.
    """
    function = next(
        (one for one in model.functions if (one.domain, one.name) == (call.domain, call.op_type)),
        None,
    )
    if function is None or not _has_same_versions(model, function):
        return None
    given = dict.fromkeys(function.input, "") | dict(zip(function.input, call.input, strict=False))
    outer = [name or f"{prefix}unused/{number}" for number, name in enumerate(call.output)]
    names = Names(given | dict(zip(function.output, outer, strict=False)), prefix)
    attributes = {one.name: one for one in (*function.attribute_proto, *call.attribute)}
    nodes = [*_copies(function.node, names, attributes), *_passed_on(function, names, call)]
    place = list(graph.node).index(call)
    for node in reversed(nodes):
        graph.node.insert(place + 1, node)  # in place: bodies of the other nodes are referred to
    del graph.node[place]
    return names


def _has_same_versions(model: onnx.ModelProto, function: onnx.FunctionProto) -> bool:
    versions = {_domain(one.domain): one.version for one in model.opset_import}
    return all(
        versions.get(_domain(one.domain), one.version) == one.version
        for one in function.opset_import
    )


def _domain(name: str) -> str:
    return "" if name in _DEFAULT_DOMAIN else name


def _copy(node: onnx.NodeProto) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy


def _passed_on(
    function: onnx.FunctionProto, names: Names, call: onnx.NodeProto
) -> Iterator[onnx.NodeProto]:
    """An output of a function that is one of its inputs."""
    for formal, actual in zip(function.output, call.output, strict=False):
        if formal in function.input and actual:
            source = call.input[list(function.input).index(formal)]
            yield onnx.helper.make_node("Identity", [source], [actual])


def _copies(
    nodes: Iterable[onnx.NodeProto], names: Names, attributes: Mapping[str, onnx.AttributeProto]
) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        copy = _copy(node)
        if copy.name:
            copy.name = f"{names.prefix}{copy.name}"
        copy.input[:] = map(names.of, node.input)
        copy.output[:] = map(names.of, node.output)
        del copy.attribute[:]
        for attribute in node.attribute:
            referred = (
                attributes.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
            )
            if referred is None:
                continue  # an attribute that the call leaves out
            own = copy.attribute.add()
            own.CopyFrom(referred)
            own.name = attribute.name
            if own.type == onnx.AttributeProto.GRAPH:
                _rename(own.g, names, attributes)
        yield copy


def _rename(
    graph: onnx.GraphProto, names: Names, attributes: Mapping[str, onnx.AttributeProto]
) -> None:
    """Rename all values of a body in a function."""
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = names.of(value.name)
    copies = list(_copies(graph.node, names, attributes))
    del graph.node[:]
    graph.node.extend(copies)
