"""ONNX models made and changed by somebody who knows what they are made of: nodes, names, types, initializers, subgraphs, functions."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper

LENGTHS = (0, 1, 2, 3, 3, 4, 7, 65_536, 2**31 - 1, 2**31, 2**62, -1, -(2**63))
NUMBERS = (0, 1, 2, 3, -1, -2, 7, 100, 100_000, 10**12, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
FLOATS = (0.0, 1.0, -1.0, 0.5, 1e30, float("inf"), float("nan"))
TEXTS = ("", "x", "linear", "NOTSET", "SAME_UPPER", "ij,jk->ik", "(", "a" * 3000, "é\u202e<&\"'", "\0")
ELEMENT_TYPES = tuple(range(27))
VERSIONS = (0, 1, 6, 7, 9, 10, 11, 13, 16, 18, 21, 22, 23, 99, -1, 2**62)
_COMMON = (1, 1, 1, 7, 7, 6, 9, 11, 10, 16, 8, 2, 3)
_OPSET = 21


def changed(dice: random.Random, proto: ModelProto) -> None:
    """One change that keeps it an ONNX model, though perhaps none that means anything. ``IndexError`` where there is nothing to change."""
    dice.choice(_CHANGES)(dice, proto)


def made(dice: random.Random) -> ModelProto:
    """A small model of operations that are chosen from all that ONNX has."""
    inputs = [_declared(dice, f"x{number}") for number in range(dice.choice((0, 1, 2, 2, 3)))]
    graph = helper.make_graph([], "made", inputs, [])
    for number in range(dice.choice((0, 0, 1, 2))):
        graph.initializer.append(_tensor(dice, f"c{number}"))
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        graph.node.append(_node(dice, graph))
    names = [name for node in graph.node[-2:] for name in node.output]
    graph.output.extend(_declared(dice, name) if dice.random() < 0.4 else onnx.ValueInfoProto(name=name) for name in names[:2])
    opsets = [helper.make_opsetid("", dice.choice((_OPSET, _OPSET, 18, 13, 9)))]
    opsets += [helper.make_opsetid(domain, 1 if domain != "ai.onnx.ml" else 3) for domain in {node.domain for node in graph.node} - {""}]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


# -- pieces -------------------------------------------------------------------------------------------------------


@cache
def _schemas() -> Sequence[Any]:
    return sorted(onnx.defs.get_all_schemas(), key=lambda one: (one.domain, one.name))


def _node(dice: random.Random, graph: GraphProto) -> NodeProto:
    """An operation with inputs from the graph and attributes of the kinds that it has."""
    schema = dice.choice(_schemas())
    least, most = schema.min_input, min(schema.max_input, schema.min_input + 2)
    names = [*_names(graph), ""] if dice.random() < 0.1 else _names(graph) or [""]
    count = dice.randrange(least, most + 1) if most >= least else least
    outputs = [f"y{len(graph.node)}_{number}" for number in range(max(1, dice.randrange(schema.min_output, min(schema.max_output, 3) + 1)))]
    node = NodeProto(op_type=schema.name, domain=schema.domain)
    node.input.extend(dice.choice(names) for _ in range(count))
    node.output.extend(outputs)
    for name, declared in sorted(schema.attributes.items()):
        if declared.required or dice.random() < 0.2:
            node.attribute.append(_attribute(dice, name, int(declared.type), graph))
    return node


def _attribute(dice: random.Random, name: str, kind: int, graph: GraphProto) -> AttributeProto:
    attribute = AttributeProto(name=name, type=kind)
    match kind:
        case AttributeProto.INT:
            attribute.i = dice.choice(NUMBERS) if dice.random() < 0.6 else dice.randrange(4)
        case AttributeProto.FLOAT:
            attribute.f = dice.choice(FLOATS)
        case AttributeProto.STRING:
            attribute.s = dice.choice(TEXTS).encode()
        case AttributeProto.INTS:
            attribute.ints.extend(dice.choice(NUMBERS[:8] if dice.random() < 0.8 else NUMBERS) for _ in range(dice.randrange(5)))
        case AttributeProto.FLOATS:
            attribute.floats.extend(dice.choice(FLOATS) for _ in range(dice.randrange(5)))
        case AttributeProto.STRINGS:
            attribute.strings.extend(dice.choice(TEXTS).encode() for _ in range(dice.randrange(4)))
        case AttributeProto.TENSOR:
            attribute.t.CopyFrom(_tensor(dice, ""))
        case AttributeProto.TYPE_PROTO:
            attribute.tp.CopyFrom(_type(dice))
        case AttributeProto.GRAPH:
            attribute.g.CopyFrom(_body(dice, graph))
        case _:
            attribute.i = 1
    return attribute


def _body(dice: random.Random, graph: GraphProto) -> GraphProto:
    """A subgraph that reads what is outside, and often has the inputs and outputs that a Loop or Scan wants."""
    inputs = [_declared(dice, f"in{number}") for number in range(dice.choice((0, 0, 1, 3)))]
    if len(inputs) == 3:
        inputs[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.INT64, []))
        inputs[1].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.BOOL, []))
    names = [one.name for one in inputs] + _names(graph)
    body = helper.make_graph([], "body", inputs, [])
    for number, name in enumerate(dice.sample(names, min(len(names), dice.choice((1, 2, 2, 3))))):
        body.node.append(helper.make_node("Identity" if dice.random() < 0.8 else "Neg", [name], [f"out{number}"]))
        body.output.append(onnx.ValueInfoProto(name=f"out{number}"))
    return body


def _names(graph: GraphProto) -> list[str]:
    outputs = [name for node in graph.node for name in node.output]
    return [one.name for one in graph.input] + [one.name for one in graph.initializer] + outputs


def _declared(dice: random.Random, name: str) -> onnx.ValueInfoProto:
    info = onnx.ValueInfoProto(name=name)
    info.type.CopyFrom(_type(dice))
    return info


def _type(dice: random.Random, depth: int = 2) -> TypeProto:
    kind = dice.random()
    if depth and kind < 0.08:
        return helper.make_sequence_type_proto(_type(dice, depth - 1))
    if depth and kind < 0.13:
        return helper.make_optional_type_proto(_type(dice, depth - 1))
    if kind < 0.15:
        return helper.make_map_type_proto(dice.choice((7, 8)), _type(dice, 0))
    element = dice.choice(_COMMON) if dice.random() < 0.9 else dice.choice(ELEMENT_TYPES)
    if dice.random() < 0.05:
        return helper.make_tensor_type_proto(element, None)
    lengths = [dice.choice((1, 2, 3, 3, 4, 0, None, "n")) if dice.random() < 0.97 else dice.choice(LENGTHS) for _ in range(_rank(dice))]
    return helper.make_tensor_type_proto(element, lengths)


def _rank(dice: random.Random) -> int:
    return dice.choice((0, 0, 1, 1, 1, 2, 2, 3, 4))


def _tensor(dice: random.Random, name: str) -> TensorProto:
    """A small tensor that is stored soundly, as a rule."""
    kind = dice.choice((1, 1, 6, 7, 7, 7, 9, 8, 10, 11, 16, 2, 17, 22))
    shape = [dice.choice((0, 1, 2, 3)) for _ in range(_rank(dice) if dice.random() < 0.9 else 7)]
    tensor = TensorProto(name=name, data_type=kind, dims=shape)
    count = 1
    for length in shape:
        count *= length
    if kind == TensorProto.STRING:
        tensor.string_data.extend(dice.choice(TEXTS).encode() for _ in range(count))
    elif kind == TensorProto.INT64:
        tensor.int64_data.extend(dice.choice(NUMBERS[:8]) for _ in range(count))
    elif kind == TensorProto.FLOAT:
        tensor.float_data.extend(dice.choice(FLOATS) for _ in range(count))
    else:
        sizes = {6: 4, 9: 1, 10: 2, 11: 8, 16: 2, 2: 1, 17: 1, 22: 1}
        tensor.raw_data = bytes(dice.choice((0, 1, 2, 64)) for _ in range(count * sizes[kind]))
    return tensor


# -- where to change something -------------------------------------------------------------------------------------


def _graphs(proto: ModelProto) -> list[GraphProto]:
    found, waiting = [], [proto.graph]
    while waiting:
        graph = waiting.pop()
        found.append(graph)
        waiting.extend(
            held for node in graph.node for attribute in node.attribute for held in (attribute.g, *attribute.graphs) if held.name
        )
    return found


def _any_graph(dice: random.Random, proto: ModelProto) -> GraphProto:
    return dice.choice(_graphs(proto))


def _any_node(dice: random.Random, proto: ModelProto) -> NodeProto:
    holders: list[Any] = [one for one in (*_graphs(proto), *proto.functions) if one.node]
    return dice.choice(dice.choice(holders).node)


def _any_info(dice: random.Random, proto: ModelProto) -> onnx.ValueInfoProto:
    return dice.choice([one for graph in _graphs(proto) for one in (*graph.input, *graph.output, *graph.value_info)])


def _any_tensor(dice: random.Random, proto: ModelProto) -> TensorProto:
    found: list[TensorProto] = []
    for graph in _graphs(proto):
        found += graph.initializer
        found += [attribute.t for node in graph.node for attribute in node.attribute if attribute.HasField("t")]
    return dice.choice(found)


# -- changes ------------------------------------------------------------------------------------------------------


def _another_operation(dice: random.Random, proto: ModelProto) -> None:
    node = _any_node(dice, proto)
    schema = dice.choice(_schemas())
    node.op_type, node.domain = (
        schema.name,
        schema.domain if dice.random() < 0.9 else dice.choice(("", "own", "ai.onnx.ml", "com.microsoft")),
    )


def _more_nodes(dice: random.Random, proto: ModelProto) -> None:
    """A new node, whose output another one takes."""
    graph = _any_graph(dice, proto)
    node = _node(dice, graph)
    at = dice.randrange(len(graph.node) + 1)
    later = [one for one in list(graph.node)[at:] if one.input]
    rest = [copy.deepcopy(one) for one in graph.node]
    rest.insert(at, node)
    del graph.node[:]
    graph.node.extend(rest)
    if later:
        taker = dice.choice(list(graph.node)[at + 1 :] or [graph.node[-1]])
        if taker.input:
            taker.input[dice.randrange(len(taker.input))] = node.output[0]


def _fewer_nodes(dice: random.Random, proto: ModelProto) -> None:
    graph = _any_graph(dice, proto)
    del graph.node[dice.randrange(len(graph.node))]


def _twice(dice: random.Random, proto: ModelProto) -> None:
    graph = _any_graph(dice, proto)
    graph.node.add().CopyFrom(copy.deepcopy(dice.choice(graph.node)))


def _another_order(dice: random.Random, proto: ModelProto) -> None:
    graph = _any_graph(dice, proto)
    nodes = [copy.deepcopy(one) for one in graph.node]
    dice.shuffle(nodes)
    del graph.node[:]
    graph.node.extend(nodes)


def _another_attribute(dice: random.Random, proto: ModelProto) -> None:
    """Another value, kind or name for an attribute, or one more, or one less."""
    node = _any_node(dice, proto)
    match dice.randrange(5):
        case 0:
            del node.attribute[dice.randrange(len(node.attribute))]
        case 1:
            known = [one for one in _schemas() if one.name == node.op_type and one.attributes]
            name, declared = dice.choice(sorted(dice.choice(known).attributes.items()))
            node.attribute.append(_attribute(dice, name, int(declared.type), proto.graph))
        case 2:
            one = dice.choice(node.attribute)
            one.CopyFrom(_attribute(dice, one.name, dice.choice((1, 2, 3, 4, 5, 6, 7, 8, 13, 0)), proto.graph))
        case 3:
            dice.choice(node.attribute).ref_attr_name = dice.choice(("alpha", "axis", ""))
        case _:
            one = dice.choice(node.attribute)
            one.CopyFrom(_attribute(dice, one.name, int(one.type), proto.graph))


def _another_input(dice: random.Random, proto: ModelProto) -> None:
    """An input from elsewhere, left out, of its own, or one more or less."""
    graph = _any_graph(dice, proto)
    node = dice.choice(graph.node)
    names = [*_names(graph), *_names(proto.graph), "", "nowhere", *node.output]
    if node.input and dice.random() < 0.8:
        node.input[dice.randrange(len(node.input))] = dice.choice(names)
    elif node.input and dice.random() < 0.5:
        del node.input[-1]
    else:
        node.input.append(dice.choice(names))


def _another_output(dice: random.Random, proto: ModelProto) -> None:
    graph = _any_graph(dice, proto)
    node = dice.choice(graph.node)
    if dice.random() < 0.3:
        node.output.append(dice.choice(("more", "", *_names(graph))))
    elif dice.random() < 0.3:
        del node.output[-1]
    else:
        node.output[dice.randrange(len(node.output))] = dice.choice(("", "other", *_names(graph)))


def _another_result(dice: random.Random, proto: ModelProto) -> None:
    """What a graph takes or gives: one more, one less, in another order, another name."""
    graph = _any_graph(dice, proto)
    side = dice.choice((graph.input, graph.output))
    match dice.randrange(4):
        case 0:
            side.append(_declared(dice, dice.choice([*_names(graph), "x0", "new"])))
        case 1:
            del side[dice.randrange(len(side))]
        case 2:
            dice.choice(side).name = dice.choice([*_names(graph), "", "other"])
        case _:
            infos = [copy.deepcopy(one) for one in side]
            dice.shuffle(infos)
            del side[:]
            side.extend(infos)


def _another_type(dice: random.Random, proto: ModelProto) -> None:
    info = _any_info(dice, proto)
    tensor = info.type.tensor_type
    match dice.randrange(5):
        case 0:
            info.type.CopyFrom(_type(dice))
        case 1:
            tensor.elem_type = dice.choice(_COMMON if dice.random() < 0.7 else ELEMENT_TYPES)
        case 2:
            info.ClearField("type")
        case 3:
            dice.choice(tensor.shape.dim).dim_value = dice.choice(LENGTHS)
        case _:
            dimension = tensor.shape.dim.add()
            if dice.random() < 0.6:
                dimension.dim_value = dice.choice((1, 2, 3))


def _another_tensor(dice: random.Random, proto: ModelProto) -> None:
    """Another shape, type, size or store of an initializer or constant."""
    tensor = _any_tensor(dice, proto)
    match dice.randrange(7):
        case 0:
            tensor.data_type = dice.choice(ELEMENT_TYPES)
        case 1:
            tensor.dims[dice.randrange(len(tensor.dims))] = dice.choice(LENGTHS)
        case 2:
            tensor.raw_data = dice.randbytes(dice.choice((0, 1, 3, 4, 8, 13, 24)))
        case 3:
            tensor.int64_data.append(dice.choice(NUMBERS))
        case 4:
            tensor.data_location = TensorProto.EXTERNAL
            entry = tensor.external_data.add()
            entry.key, entry.value = dice.choice(("location", "offset", "length")), dice.choice(("weights.bin", "../x", "", "-1", "9" * 30))
        case 5:
            name = tensor.name
            tensor.CopyFrom(_tensor(dice, name))
        case _:
            if tensor.int64_data:
                tensor.int64_data[dice.randrange(len(tensor.int64_data))] = dice.choice(NUMBERS)
            elif len(tensor.raw_data) >= 8:
                at = dice.randrange(len(tensor.raw_data) // 8) * 8
                number = dice.choice(NUMBERS).to_bytes(8, "little", signed=True)
                tensor.raw_data = tensor.raw_data[:at] + number + tensor.raw_data[at + 8 :]


def _another_body(dice: random.Random, proto: ModelProto) -> None:
    """A subgraph from elsewhere, or none, or a wholly new one."""
    bodies = [attribute for graph in _graphs(proto) for node in graph.node for attribute in node.attribute if attribute.g.name]
    one = dice.choice(bodies)
    match dice.randrange(4):
        case 0:
            one.g.CopyFrom(copy.deepcopy(dice.choice(bodies).g))
        case 1:
            one.g.CopyFrom(copy.deepcopy(dice.choice(_graphs(proto))))
        case 2:
            one.g.CopyFrom(_body(dice, proto.graph))
        case _:
            one.ClearField("g")


def _into_a_region(dice: random.Random, proto: ModelProto) -> None:
    """A node becomes one of control flow."""
    graph = _any_graph(dice, proto)
    node = _any_node(dice, proto)
    node.op_type, node.domain = dice.choice((("Loop", ""), ("If", ""), ("Scan", ""), ("SequenceMap", ""), ("If", "")))
    del node.attribute[:]
    for name in ("then_branch", "else_branch") if node.op_type == "If" else ("body",):
        node.attribute.append(helper.make_attribute(name, _body(dice, graph)))
    if node.op_type == "Scan":
        node.attribute.append(helper.make_attribute("num_scan_inputs", dice.choice((0, 1, 2, -1, 2**62))))


def _a_function(dice: random.Random, proto: ModelProto) -> None:
    """A node becomes the call of a function, which holds it, or calls itself, or another function is changed."""
    if proto.functions and dice.random() < 0.5:
        one = dice.choice(proto.functions)
        match dice.randrange(5):
            case 0:
                one.input.append("more")
            case 1:
                one.output[dice.randrange(len(one.output))] = dice.choice(("nowhere", "", *one.input))
            case 2:
                one.attribute.append(dice.choice(("alpha", "axis")))
            case 3:
                one.opset_import.append(helper.make_opsetid(dice.choice(("", "own")), dice.choice(VERSIONS)))
            case _:
                one.node.add().CopyFrom(NodeProto(op_type=one.name, domain=one.domain, input=list(one.input), output=list(one.output)))
        return
    node = _any_node(dice, proto)
    opsets = [helper.make_opsetid("", _OPSET), *([helper.make_opsetid("own", 1)] if dice.random() < 0.3 else [])]
    inner = copy.deepcopy(node)
    proto.functions.append(helper.make_function("own", f"f{len(proto.functions)}", list(node.input), list(node.output), [inner], opsets))
    node.op_type, node.domain = proto.functions[-1].name, "own"
    proto.opset_import.append(helper.make_opsetid("own", 1))


def _another_opset(dice: random.Random, proto: ModelProto) -> None:
    match dice.randrange(4):
        case 0:
            dice.choice(proto.opset_import).version = dice.choice(VERSIONS)
        case 1:
            proto.opset_import.append(helper.make_opsetid(dice.choice(("", "ai.onnx", "ai.onnx.ml", "own")), dice.choice(VERSIONS)))
        case 2:
            del proto.opset_import[dice.randrange(len(proto.opset_import))]
        case _:
            proto.ir_version = dice.choice((0, 1, 3, 8, 10, 99, -1, 2**62))


def _sparse(dice: random.Random, proto: ModelProto) -> None:
    """A sparse initializer under a name that somebody takes."""
    sparse = proto.graph.sparse_initializer.add()
    sparse.values.CopyFrom(_tensor(dice, dice.choice(_names(proto.graph))))
    sparse.indices.CopyFrom(_tensor(dice, ""))
    sparse.dims.extend(dice.choice(LENGTHS) for _ in range(dice.randrange(3)))


_CHANGES: tuple[Callable[[random.Random, ModelProto], None], ...] = (
    *(_another_operation, _another_attribute, _another_attribute, _another_input, _another_input, _another_type, _another_type),
    *(_another_tensor, _another_tensor, _more_nodes, _more_nodes, _fewer_nodes, _twice, _another_order, _another_output, _another_result),
    *(_another_body, _into_a_region, _a_function, _another_opset, _sparse),
)
