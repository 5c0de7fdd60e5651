"""Translation of an OpenVINO model to a model of ONNX operations.

Ports that an OpenVINO file does not declare get the known types and shapes: it writes a scalar like
any rank.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopscope.checks.check import check
from loopscope.checks.propagate import Propagated, propagate
from loopscope.errors import WriteError, listed, shorten
from loopscope.ir.address import graphs, nodes
from loopscope.ir.model import IF, LOOP, TENSOR_ITERATOR, LayerId, Model, ModelGraph, Node, Port
from loopscope.ir.replace import replace
from loopscope.ir.shape import DYNAMIC
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Known
from loopscope.write.onnx.openvino.movement_rules import MOVEMENTS
from loopscope.write.onnx.openvino.operation_rules import COMPUTATIONS
from loopscope.write.onnx.openvino.regions import translate_if, translate_loop
from loopscope.write.onnx.openvino.translated_graph import (
    OPSET,
    OnnxTensor,
    Request,
    TranslatedGraph,
)

_RULES = {**COMPUTATIONS, **MOVEMENTS}
_REGIONS = {IF: translate_if, LOOP: translate_loop, TENSOR_ITERATOR: translate_loop}
_STRUCTURE = frozenset({"Parameter", "Result", "Const", *_REGIONS})
_IR_VERSION = 8


def to_onnx(model: Model) -> Model:
    """Return the model with operations of ONNX.

    Inputs and outputs keep their names. ``WriteError`` names what has no equivalent.
    """
    missing = sorted({node.type for _, node in nodes(model)} - _RULES.keys() - _STRUCTURE)
    if missing:
        raise WriteError(
            f"the model cannot be written as ONNX: {listed(missing)} "
            f"{'has' if len(missing) == 1 else 'have'} no equivalent there, or none that is known"
        )
    if not check(model, CATALOGUE).ok:
        raise WriteError(
            "the model has errors, so that it cannot be written as ONNX: see `loopscope check`"
        )
    model = with_known_ports(model)
    output_names = {node.id: _output_name(model.graph, node) for node in model.graph.results}
    graph = TranslatedGraph({node.name for node in model.graph.parameters})
    bound = {
        node.id: graph.parameter(node.name, node.outputs[0].element_type, node.outputs[0].shape)
        for node in model.graph.parameters
    }
    # An output may have the name of an operation or of an input.
    final = {layer: graph.unique(name) for layer, name in output_names.items()}
    results = _translate_graph(model.graph, graph, bound)
    for node in model.graph.results:
        graph.result(results[node.id], final[node.id], node.inputs[0])
    meta_data = {
        **{key: value for key, value in model.rt_info.items() if isinstance(value, str)},
        "opset_import": OPSET,
    }
    name = model.name or "model"
    return replace(
        model,
        graph=graph.build(name),
        name=name,
        version=_IR_VERSION,
        dialect="onnx",
        rt_info={},
        meta_data=meta_data,
    )


def _output_name(graph: ModelGraph, node: Node) -> str:
    """Return the tensor name of an output, else the name of its Result."""
    source = graph.sources[node.id][0]
    tensor_names = graph.tensor(source).names if source is not None else ()
    return (*node.output_names, *tensor_names, node.name)[0]


def _translate_graph(
    graph: ModelGraph, target: TranslatedGraph, bound: Mapping[LayerId, OnnxTensor]
) -> Mapping[LayerId, OnnxTensor]:
    """Add the nodes of a graph; return the tensor of each Result."""
    tensors = {(layer, 0): tensor for layer, tensor in bound.items()}
    results: dict[LayerId, OnnxTensor] = {}
    for node in _in_order(graph):
        if node.type == "Parameter":
            continue
        if node.constant is not None:
            tensors[node.id, 0] = target.weight(node.constant, node.name)
            continue
        sources = graph.sources[node.id]
        if any(source is None for source in sources):
            raise WriteError(f"{shorten(node.name, 60)!r} ({node.type}): an input is missing")
        inputs = [tensors[source.layer, source.output] for source in sources if source is not None]
        if node.type == "Result":
            results[node.id] = inputs[0]
            continue
        request = Request(target, node, inputs)
        region, first = _REGIONS.get(node.type), target.count
        if region is not None:
            outputs = region(request, _translate_graph)
        else:
            outputs = _RULES[node.type](request)
            target.name_value(outputs[0], node.name, first)
        for index, (tensor, port) in enumerate(zip(outputs, node.outputs, strict=False)):
            shape = (
                port.shape
                if port.shape is not DYNAMIC and port.shape.rank is not None
                else (tensor.shape)
            )
            tensors[node.id, index] = replace(
                tensor, element_type=tensor.element_type or port.element_type, shape=shape
            )
    return results


def _in_order(graph: ModelGraph) -> list[Node]:
    """Return each node after those that feed it. ``WriteError`` if the graph has a cycle."""
    done: set[LayerId] = set()
    ordered: list[Node] = []
    waiting = list(graph.nodes)
    while waiting:
        left: list[Node] = []
        for node in waiting:
            feeds = graph.sources[node.id]
            if all(source is None or source.layer in done for source in feeds):
                done.add(node.id)
                ordered.append(node)
            else:
                left.append(node)
        if len(left) == len(waiting):
            raise WriteError("the graph has a cycle of edges, which an ONNX graph cannot have")
        waiting = left
    return ordered


def with_known_ports(model: Model) -> Model:
    """Return the model with the types and shapes that propagation finds."""
    known = propagate(model, CATALOGUE)
    done: dict[int, ModelGraph] = {}
    for place in reversed(list(graphs(model))):
        nodes = [_node(node, place.address, known, done) for node in place.graph.nodes]
        done[id(place.graph)] = replace(place.graph, nodes=tuple(nodes))
    return replace(model, graph=done[id(model.graph)])


def _node(node: Node, address: str, known: Propagated, done: dict[int, ModelGraph]) -> Node:
    bodies = tuple([replace(body, graph=done[id(body.graph)]) for body in node.bodies])
    if node.type == "Result":
        inputs = tuple([_port(port, known.output(address, node.id)) for port in node.inputs])
        return replace(node, inputs=inputs)
    outputs = tuple(
        [
            _port(port, known.output(address, node.id, index))
            for index, port in enumerate(node.outputs)
        ]
    )
    return replace(node, outputs=outputs, bodies=bodies)


def _port(port: Port, known: Known) -> Port:
    both = port.shape.intersect(known.shape)
    return replace(
        port,
        element_type=known.element_type or port.element_type,
        shape=known.shape if both is None else both,
    )
