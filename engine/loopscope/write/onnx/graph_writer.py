"""Graphs of the Model as GraphProtos, and changed functions as FunctionProtos.

A body has its inputs and outputs in the order of ONNX, and names that it captures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto

from loopscope.errors import WriteError, shorten
from loopscope.ir.constant import Constant
from loopscope.ir.model import Body, InputMap, LayerId, ModelGraph, Node, OutputRef, Port
from loopscope.read.onnx.rewritten_operations import HELPER_DOMAIN
from loopscope.read.onnx.scope_reader import BODIES
from loopscope.write.onnx.protos import (
    ExternalTensors,
    array_proto,
    attribute_protos,
    constant_attribute,
    kept_value_infos,
    tensor_proto,
    value_info,
)
from loopscope.write.onnx.source_file import (
    OpsetImports,
    SourceFile,
    domain_and_version,
    written_domain,
)
from loopscope.write.onnx.tensor_names import (
    TensorNames,
    UnusedNames,
    is_initializer,
    name_tensors,
)


@dataclass(frozen=True, slots=True, eq=False)
class GraphWriter:
    """Writer of the graphs of one model or function, which share the opset imports."""

    source: SourceFile
    fresh: UnusedNames
    opsets: OpsetImports
    functions: list[FunctionProto] = field(default_factory=list[FunctionProto])
    """New functions, for calls whose bodies were changed."""
    external: ExternalTensors | None = None
    """The file for large tensors; None if they stay in the model."""
    captured: dict[str, Constant] = field(default_factory=dict[str, Constant])
    """Initializers around a batched Scan that its body captures. The reader copies them into it."""

    def write(self, graph: ModelGraph, target: GraphProto, bound: BoundBody | None = None) -> None:
        """Write the outermost graph, or a body with its outer names.

        ``WriteError`` for what ONNX cannot express.
        """
        captured = {} if bound is None else bound.captured
        names = name_tensors(graph, captured, self.fresh, is_outermost=bound is None)
        original = self.source.graph(graph.source)
        base = original if isinstance(original, GraphProto) else GraphProto()
        target.name = graph.name if graph.source else graph.name or "graph"
        target.doc_string = base.doc_string
        target.metadata_props.extend(base.metadata_props)
        target.quantization_annotation.extend(base.quantization_annotation)
        for node in graph.nodes:
            if is_initializer(node):
                target.initializer.append(self._initializer(node, names))
        target.node.extend(self._nodes(graph, names))
        if bound is None:
            defined = set(names.outputs.values())
            target.initializer.extend(
                tensor_proto(constant, name, self.external)
                for name, constant in self.captured.items()
                if name not in defined
            )
        self._declare(graph, names, base, target, bound)

    def _declare(
        self,
        graph: ModelGraph,
        names: TensorNames,
        base: GraphProto,
        target: GraphProto,
        bound: BoundBody | None,
    ) -> None:
        """Write inputs, outputs and inner values with their types."""
        declared = {info.name: info for info in (*base.value_info, *base.output, *base.input)}
        parameters = graph.parameters if bound is None else bound.parameters
        inputs = [(names.outputs[OutputRef(node.id, 0)], node.outputs[0]) for node in parameters]
        for name, port in _with_defaults(inputs, base, target):
            info = declared.get(name)
            target.input.append(value_info(name, port, info) if port is not None else info)
        for node in graph.results if bound is None else bound.results:
            name = names.results[node.id]
            target.output.append(value_info(name, node.inputs[0], declared.get(name)))
        target.value_info.extend(kept_value_infos(base.value_info, _ports(graph, names)))

    def _initializer(self, node: Node, names: TensorNames) -> TensorProto:
        name = names.outputs[OutputRef(node.id, 0)]
        if node.constant is not None:
            return tensor_proto(node.constant, name, self.external)
        return array_proto(np.asarray(node.attributes["value"]), name)

    def _nodes(self, graph: ModelGraph, names: TensorNames) -> Iterator[NodeProto]:
        for index, node in enumerate(names.order):
            yield self._node(graph, node, names, index)
        for tensor, result in names.copies:
            yield NodeProto(op_type="Identity", input=[tensor], output=[result])

    def _node(self, graph: ModelGraph, node: Node, names: TensorNames, index: int) -> NodeProto:
        original = self.source.node(node)
        inputs = names.inputs(graph, node)
        proto = NodeProto(op_type=node.type)
        if original is not None:
            proto.CopyFrom(original)
        if original is not None and self.source.is_unchanged_call(node):
            inputs = _inputs_of_call(node, original, inputs)
            if node.type == "Scan":
                self.captured.update(_captured_initializers(node, original))
        elif node.is_function or node.is_foreign or self.source.is_call(node):
            self._new_function(node, proto)
        else:
            del proto.attribute[:]
            inputs = self._operation(node, proto, inputs, original)
        while len(inputs) > (0 if original is None else len(original.input)) and not inputs[-1]:
            inputs.pop()
        del proto.input[:], proto.output[:]
        proto.input.extend(inputs)
        proto.output.extend(
            names.outputs[OutputRef(node.id, number)] for number in range(len(node.outputs))
        )
        is_unnamed = (
            original is not None and not original.name and node.name == f"{node.type}_{index}"
        )
        if not is_unnamed:
            proto.name = node.name
        return proto

    def _operation(
        self, node: Node, proto: NodeProto, inputs: list[str], original: NodeProto | None
    ) -> list[str]:
        """Set attributes and bodies of a node; return its inputs without captures."""
        self.opsets.require(node)
        domain, version = domain_and_version(node)
        if original is None:
            proto.domain = written_domain(domain)
        if node.constant is not None:
            proto.attribute.append(constant_attribute(node.constant, original))
            return []
        operation = node.type, written_domain(domain), version or 1
        _refuse_part_of_batched_scan(node)
        proto.attribute.extend(attribute_protos(node.attributes, original, operation))
        if not node.bodies:
            return inputs
        for attribute, name in BODIES[node.type].items():
            for body in node.bodies:
                if body.name == name:
                    item = proto.attribute.add(name=attribute, type=AttributeProto.GRAPH)
                    self.write(body.graph, item.g, bind_body(node, body, inputs))
        return inputs[: own_inputs(node)]

    def _new_function(self, node: Node, proto: NodeProto) -> None:
        """Make the node call a new function with its changed body.

        ``WriteError`` if the body was not read from a function of the model.
        """
        _refuse_part_of_batched_scan(node)
        graph = node.bodies[0].graph if node.bodies else None
        original = self.source.graph(graph.source) if graph is not None else None
        if graph is None or not isinstance(original, FunctionProto):
            raise WriteError(
                f"{shorten(node.name, 60)!r} ({node.type}) was changed, and its graphs cannot be "
                "written: leave it as it is in the file"
            )
        opsets = OpsetImports(original.opset_import)
        writer = GraphWriter(self.source, self.fresh, opsets, self.functions)
        names = name_tensors(graph, {}, self.fresh, is_outermost=False)
        function = FunctionProto(name=self.fresh.new(original.name), domain=original.domain)
        function.doc_string = original.doc_string
        function.input.extend(names.outputs[OutputRef(item.id, 0)] for item in graph.parameters)
        function.output.extend(names.results[item.id] for item in graph.results)
        for item in graph.nodes:
            if is_initializer(item):
                tensor = writer._initializer(item, names)
                constant = function.node.add(op_type="Constant", output=[tensor.name])
                constant.attribute.add(name="value", type=AttributeProto.TENSOR).t.CopyFrom(tensor)
        function.node.extend(writer._nodes(graph, names))
        function.opset_import.extend(opsets.protos)
        self.functions.append(function)
        proto.op_type, proto.domain = function.name, function.domain
        proto.ClearField("overload")


def _with_defaults(
    inputs: list[tuple[str, Port]], base: GraphProto, target: GraphProto
) -> list[tuple[str, Port | None]]:
    """Return the inputs, and between them those of the source that are initializers.

    Initializers are inputs with default values, or all are listed as files of IR version 3 do.
    """
    initializers = {tensor.name for tensor in base.initializer} & {
        tensor.name for tensor in target.initializer
    }
    waiting = list(reversed(inputs))
    ordered: list[tuple[str, Port | None]] = []
    for info in base.input:
        if info.name in initializers:
            ordered.append((info.name, None))
        elif waiting and waiting[-1][0] == info.name:
            ordered.append(waiting.pop())
    return [*ordered, *reversed(waiting)]


def _inputs_of_call(node: Node, original: NodeProto, inputs: list[str]) -> list[str]:
    """Return the inputs of an unchanged call as its node in the file has them.

    ``WriteError`` if a graph of the call captures a tensor that has another name now.
    """
    for body in node.bodies:
        by_id = body.graph.by_id
        for entry in body.inputs:
            name = by_id[entry.internal].name
            is_captured = entry.external >= len(original.input) and is_capture(body, entry)
            if is_captured and inputs[entry.external] != name:
                raise WriteError(
                    f"{shorten(node.name, 60)!r} ({node.type}) captures {shorten(name, 60)!r}, "
                    "which has another name now: leave that tensor as it is in the file"
                )
    if node.type == "Scan" and not node.is_function:
        # The reader moves the lengths of a batched Scan to the end.
        lengths, count = bool(original.input and original.input[0]), len(original.input) - 1
        return [inputs[count] if lengths else "", *inputs[:count]]
    return inputs[: len(original.input)]


def _refuse_part_of_batched_scan(node: Node) -> None:
    """Raise ``WriteError`` for a node that the reader made of a Scan of opset 8."""
    domain, version = domain_and_version(node)
    is_inner = node.type == "Scan" and version == 8 and "scan_input_axes" in node.attributes
    if is_inner or domain == f"function {HELPER_DOMAIN}":
        raise WriteError(
            f"{shorten(node.name, 60)!r} is a part of a Scan of opset 8, which cannot be written "
            "without the rest: convert the file to opset 9 or newer"
        )


def _captured_initializers(node: Node, original: NodeProto) -> Iterator[tuple[str, Constant]]:
    """Yield the constants in the bodies of a batched Scan that are not initializers there."""
    own: set[str] = set()
    protos = [item.g for item in original.attribute if item.type == AttributeProto.GRAPH]
    for proto in protos:
        own.update(tensor.name for tensor in proto.initializer)
        inner = [item for each in proto.node for item in each.attribute]
        protos += [item.g for item in inner if item.type == AttributeProto.GRAPH]
    waiting = [body.graph for body in node.bodies]
    for graph in waiting:
        for item in graph.nodes:
            waiting += [body.graph for body in item.bodies]
            if item.type == "Const" and item.constant is not None and item.name not in own:
                yield item.name, item.constant


def _ports(graph: ModelGraph, names: TensorNames) -> dict[str, Port]:
    """Return the port of each name that is defined or used in a graph."""
    ports: dict[str, Port] = {}
    for node in names.order:
        for name, port in zip(names.inputs(graph, node), node.inputs, strict=True):
            ports.setdefault(name, port)
    for tensor, name in names.outputs.items():
        ports[name] = graph.tensor(tensor)
    return ports


@dataclass(frozen=True, slots=True, eq=False)
class BoundBody:
    """A body with its inputs and outputs in the order of the node's."""

    parameters: Sequence[Node]
    """Parameters that the operation feeds; the others are captured."""
    results: Sequence[Node]
    captured: Mapping[LayerId, str]
    """Outer name of each captured Parameter."""


def bind_body(node: Node, body: Body, inputs: Sequence[str]) -> BoundBody:
    """Return the order of a body's ends. ``inputs`` are the names of the node's inputs."""
    by_id = body.graph.by_id
    captures = [entry for entry in body.inputs if is_capture(body, entry)]
    own = [entry for entry in body.inputs if not is_capture(body, entry)]
    # The iteration number of a Loop has the external number -1, and comes first.
    own.sort(key=lambda entry: entry.external)
    fed = {entry.internal for entry in body.inputs}
    # A branch of an invalid file has inputs that nothing feeds.
    unfed = [parameter for parameter in body.graph.parameters if parameter.id not in fed]
    results = sorted(body.outputs, key=lambda entry: entry.external)
    return BoundBody(
        [*(by_id[entry.internal] for entry in own), *unfed],
        [by_id[entry.internal] for entry in results],
        {entry.internal: inputs[entry.external] for entry in captures},
    )


def is_capture(body: Body, entry: InputMap) -> bool:
    """Return True if a Parameter receives the same outer tensor in every iteration."""
    carried = {edge.to_layer for edge in body.back_edges}
    return entry.axis is None and not entry.is_iteration_number and entry.internal not in carried


def own_inputs(node: Node) -> int:
    """Return the number of a node's inputs before its captures."""
    captured = {
        entry.external for body in node.bodies for entry in body.inputs if is_capture(body, entry)
    }
    return min(captured, default=len(node.inputs))
