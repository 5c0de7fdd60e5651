"""ONNX models and their pieces, chosen from all that ONNX has: nodes, attributes, types,
tensors, subgraphs.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper

LENGTHS = (0, 1, 2, 3, 3, 4, 7, 65_536, 2**31 - 1, 2**31, 2**62, -1, -(2**63))
NUMBERS = (0, 1, 2, 3, -1, -2, 7, 100, 100_000, 10**12, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
FLOATS = (0.0, 1.0, -1.0, 0.5, 1e30, float("inf"), float("nan"))
TEXTS = (
    "",
    "x",
    "linear",
    "NOTSET",
    "SAME_UPPER",
    "ij,jk->ik",
    "(",
    "a" * 3000,
    "é\u202e<&\"'",
    "\0",
)
ELEMENT_TYPES = tuple(range(27))
VERSIONS = (0, 1, 6, 7, 9, 10, 11, 13, 16, 18, 21, 22, 23, 99, -1, 2**62)
COMMON = (1, 1, 1, 7, 7, 6, 9, 11, 10, 16, 8, 2, 3)
OPSET = 21


def made(dice: random.Random) -> ModelProto:
    """A small model of operations that are chosen from all that ONNX has."""
    inputs = [any_info(dice, f"x{number}") for number in range(dice.choice((0, 1, 2, 2, 3)))]
    graph = helper.make_graph([], "made", inputs, [])
    for number in range(dice.choice((0, 0, 1, 2))):
        graph.initializer.append(any_tensor(dice, f"c{number}"))
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        graph.node.append(
            fitting_node(dice, graph) if dice.random() < 0.7 else any_node(dice, graph)
        )
    names = [name for node in graph.node[-2:] for name in node.output]
    graph.output.extend(
        any_info(dice, name) if dice.random() < 0.4 else onnx.ValueInfoProto(name=name)
        for name in names[:2]
    )
    opsets = [helper.make_opsetid("", dice.choice((OPSET, OPSET, 18, 13, 9)))]
    opsets += [
        helper.make_opsetid(domain, 1 if domain != "ai.onnx.ml" else 3)
        for domain in {node.domain for node in graph.node} - {""}
    ]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


@cache
def schemas() -> Sequence[Any]:
    return sorted(onnx.defs.get_all_schemas(), key=lambda one: (one.domain, one.name))


def any_node(dice: random.Random, graph: GraphProto) -> NodeProto:
    """An operation with inputs from the graph and attributes of the kinds that it has."""
    schema = dice.choice(schemas())
    least, most = schema.min_input, min(schema.max_input, schema.min_input + 2)
    names = [*names_in(graph), ""] if dice.random() < 0.1 else names_in(graph) or [""]
    count = dice.randrange(least, most + 1) if most >= least else least
    outputs = [
        f"y{len(graph.node)}_{number}"
        for number in range(
            max(1, dice.randrange(schema.min_output, min(schema.max_output, 3) + 1))
        )
    ]
    node = NodeProto(op_type=schema.name, domain=schema.domain)
    node.input.extend(dice.choice(names) for _ in range(count))
    node.output.extend(outputs)
    for name, declared in sorted(schema.attributes.items()):
        if declared.required or dice.random() < 0.2:
            node.attribute.append(any_attribute(dice, name, int(declared.type), graph))
    return node


def fitting_node(dice: random.Random, graph: GraphProto) -> NodeProto:
    """An operation with inputs of the very types that it takes, which the graph gets for it: as
    inputs, or as constants.
    """
    node = any_node(dice, graph)
    del node.input[:]
    schema = onnx.defs.get_schema(node.op_type, node.domain)
    allowed = {one.type_param_str: one.allowed_type_strs for one in schema.type_constraints}
    chosen: dict[str, str] = {}
    shape = [dice.choice((1, 2, 3, 3, 4)) for _ in range(_rank(dice))]
    for formal in schema.inputs:
        kinds = formal.option
        if kinds is _OPTION.Optional and dice.random() < 0.6:
            node.input.append("")
            continue
        for _ in range(dice.choice((1, 2, 3)) if kinds is _OPTION.Variadic else 1):
            text = chosen.setdefault(
                formal.type_str,
                dice.choice(sorted(allowed.get(formal.type_str, [formal.type_str]))),
            )
            node.input.append(_given(dice, graph, text, shape))
    return node


_OPTION = onnx.defs.OpSchema.FormalParameterOption


def _given(dice: random.Random, graph: GraphProto, text: str, shape: Sequence[int]) -> str:
    """The name of an input of a type such as ``seq(tensor(float))``, or of a constant of small
    numbers.
    """
    name = f"g{len(graph.input) + len(graph.initializer)}"
    alike = shape if dice.random() < 0.6 else [dice.choice((1, 2, 3)) for _ in range(_rank(dice))]
    if text == "tensor(int64)" and dice.random() < 0.6:
        numbers = [dice.choice((0, 1, 1, 2, 3, -1)) for _ in range(dice.choice((1, 1, 2, 4)))]
        graph.initializer.append(
            helper.make_tensor(name, TensorProto.INT64, [len(numbers)], numbers)
        )
    else:
        graph.input.append(onnx.ValueInfoProto(name=name, type=_type_of(text, alike)))
    return name


def _type_of(text: str, shape: Sequence[int]) -> TypeProto:
    kind, _, inside = text.removesuffix(")").partition("(")
    match kind:
        case "seq":
            return helper.make_sequence_type_proto(_type_of(inside, shape))
        case "optional":
            return helper.make_optional_type_proto(_type_of(inside, shape))
        case "map":
            key, _, value = inside.partition(",")
            return helper.make_map_type_proto(
                TensorProto.DataType.Value(key.strip().upper()), _type_of(value.strip(), shape)
            )
        case "tensor":
            return helper.make_tensor_type_proto(TensorProto.DataType.Value(inside.upper()), shape)
        case _:
            return helper.make_tensor_type_proto(TensorProto.DataType.Value(kind.upper()), shape)


def any_attribute(dice: random.Random, name: str, kind: int, graph: GraphProto) -> AttributeProto:
    attribute = AttributeProto(name=name, type=AttributeProto.AttributeType.Name(kind))
    match kind:
        case AttributeProto.INT:
            attribute.i = dice.choice(NUMBERS) if dice.random() < 0.6 else dice.randrange(4)
        case AttributeProto.FLOAT:
            attribute.f = dice.choice(FLOATS)
        case AttributeProto.STRING:
            attribute.s = dice.choice(TEXTS).encode()
        case AttributeProto.INTS:
            attribute.ints.extend(
                dice.choice(NUMBERS[:8] if dice.random() < 0.8 else NUMBERS)
                for _ in range(dice.randrange(5))
            )
        case AttributeProto.FLOATS:
            attribute.floats.extend(dice.choice(FLOATS) for _ in range(dice.randrange(5)))
        case AttributeProto.STRINGS:
            attribute.strings.extend(dice.choice(TEXTS).encode() for _ in range(dice.randrange(4)))
        case AttributeProto.TENSOR:
            attribute.t.CopyFrom(any_tensor(dice, ""))
        case AttributeProto.TYPE_PROTO:
            attribute.tp.CopyFrom(any_type(dice))
        case AttributeProto.GRAPH:
            attribute.g.CopyFrom(any_body(dice, graph))
        case _:
            attribute.i = 1
    return attribute


def any_body(dice: random.Random, graph: GraphProto) -> GraphProto:
    """A subgraph that reads what is outside, and often has the inputs and outputs that a Loop or
    Scan wants.
    """
    inputs = [any_info(dice, f"in{number}") for number in range(dice.choice((0, 0, 1, 3)))]
    if len(inputs) == 3:
        inputs[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.INT64, []))
        inputs[1].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.BOOL, []))
    names = [one.name for one in inputs] + names_in(graph)
    body = helper.make_graph([], "body", inputs, [])
    for number, name in enumerate(dice.sample(names, min(len(names), dice.choice((1, 2, 2, 3))))):
        body.node.append(
            helper.make_node("Identity" if dice.random() < 0.8 else "Neg", [name], [f"out{number}"])
        )
        body.output.append(onnx.ValueInfoProto(name=f"out{number}"))
    return body


def names_in(graph: GraphProto) -> list[str]:
    outputs = [name for node in graph.node for name in node.output]
    return [one.name for one in graph.input] + [one.name for one in graph.initializer] + outputs


def any_info(dice: random.Random, name: str) -> onnx.ValueInfoProto:
    info = onnx.ValueInfoProto(name=name)
    info.type.CopyFrom(any_type(dice))
    return info


def any_type(dice: random.Random, depth: int = 2) -> TypeProto:
    kind = dice.random()
    if depth and kind < 0.08:
        return helper.make_sequence_type_proto(any_type(dice, depth - 1))
    if depth and kind < 0.13:
        return helper.make_optional_type_proto(any_type(dice, depth - 1))
    if kind < 0.15:
        return helper.make_map_type_proto(dice.choice((7, 8)), any_type(dice, 0))
    element = dice.choice(COMMON) if dice.random() < 0.9 else dice.choice(ELEMENT_TYPES)
    if dice.random() < 0.05:
        return helper.make_tensor_type_proto(element, None)
    lengths = [
        dice.choice((1, 2, 3, 3, 4, 0, None, "n")) if dice.random() < 0.97 else dice.choice(LENGTHS)
        for _ in range(_rank(dice))
    ]
    return helper.make_tensor_type_proto(element, lengths)


def _rank(dice: random.Random) -> int:
    return dice.choice((0, 0, 1, 1, 1, 2, 2, 3, 4))


def any_tensor(dice: random.Random, name: str) -> TensorProto:
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
