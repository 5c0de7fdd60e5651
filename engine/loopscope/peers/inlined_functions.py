"""Inlining of ONNX function calls, so that values inside functions can become model outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import onnx

_DEFAULT_DOMAIN = ("", "ai.onnx")


@dataclass(frozen=True, slots=True)
class FreshNames:
    """Names of a function's values by the names in its definition."""

    call_names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names at the call of the function's inputs and outputs."""
    prefix: str = ""
    """Prefix of all other names."""

    def of(self, name: str) -> str:
        """Return the name of a value in the calling graph; empty for an omitted value."""
        if not name:
            return ""
        return self.call_names.get(name, f"{self.prefix}{name}")


def inline(
    model: onnx.ModelProto, graph: onnx.GraphProto, call: onnx.NodeProto, prefix: str
) -> FreshNames | None:
    """Replace a function call by the nodes of the function, and return their names.

    Return None and change nothing if the model does not have the function, or the function uses
    other operation versions.
    """
    function = next(
        (
            candidate
            for candidate in model.functions
            if (candidate.domain, candidate.name) == (call.domain, call.op_type)
        ),
        None,
    )
    if function is None or not _has_same_versions(model, function):
        return None
    call_names = dict.fromkeys(function.input, "") | dict(
        zip(function.input, call.input, strict=False)
    )
    outer = [name or f"{prefix}unused/{number}" for number, name in enumerate(call.output)]
    names = FreshNames(call_names | dict(zip(function.output, outer, strict=False)), prefix)
    attributes = {
        attribute.name: attribute for attribute in (*function.attribute_proto, *call.attribute)
    }
    nodes = [*_copies(function.node, names, attributes), *_identities(function, names, call)]
    index = list(graph.node).index(call)
    for node in reversed(nodes):
        graph.node.insert(
            index + 1, node
        )  # inserted in place, because bodies of other nodes are referenced
    del graph.node[index]
    return names


def _has_same_versions(model: onnx.ModelProto, function: onnx.FunctionProto) -> bool:
    versions = {_domain(opset.domain): opset.version for opset in model.opset_import}
    return all(
        versions.get(_domain(opset.domain), opset.version) == opset.version
        for opset in function.opset_import
    )


def _domain(name: str) -> str:
    return "" if name in _DEFAULT_DOMAIN else name


def _copy_node(node: onnx.NodeProto) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy


def _identities(
    function: onnx.FunctionProto, names: FreshNames, call: onnx.NodeProto
) -> Iterator[onnx.NodeProto]:
    """Yield an Identity for each output of a function that is one of its inputs."""
    for formal, actual in zip(function.output, call.output, strict=False):
        if formal in function.input and actual:
            source = call.input[list(function.input).index(formal)]
            yield onnx.helper.make_node("Identity", [source], [actual])


def _copies(
    nodes: Iterable[onnx.NodeProto],
    names: FreshNames,
    attributes: Mapping[str, onnx.AttributeProto],
) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        copy = _copy_node(node)
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
                continue  # an attribute omitted at the call
            own = copy.attribute.add()
            own.CopyFrom(referred)
            own.name = attribute.name
            if own.type == onnx.AttributeProto.GRAPH:
                _rename(own.g, names, attributes)
        yield copy


def _rename(
    graph: onnx.GraphProto, names: FreshNames, attributes: Mapping[str, onnx.AttributeProto]
) -> None:
    """Rename all values of a body in a function."""
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = names.of(value.name)
    copies = list(_copies(graph.node, names, attributes))
    del graph.node[:]
    graph.node.extend(copies)
