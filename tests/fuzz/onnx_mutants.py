"""ONNX models changed by somebody who knows what they are made of: nodes, names, types,
initializers, subgraphs, functions.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from tests.fuzz.knots import double_names, tie_names
from tests.fuzz.onnx_pieces import (
    COMMON,
    ELEMENT_TYPES,
    LENGTHS,
    NUMBERS,
    OPSET,
    VERSIONS,
    any_attribute,
    any_body,
    any_info,
    any_node,
    any_tensor,
    any_type,
    names_in,
    schemas,
)


def changed(dice: random.Random, proto: ModelProto) -> None:
    """One change that keeps it an ONNX model, though perhaps none that means anything.
    ``IndexError`` where there is nothing to change.
    """
    dice.choice(_CHANGES)(dice, proto)


# -- where to change something
# -------------------------------------------------------------------------------------


def _graphs(proto: ModelProto) -> list[GraphProto]:
    found, waiting = [], [proto.graph]
    while waiting:
        graph = waiting.pop()
        found.append(graph)
        waiting.extend(
            held
            for node in graph.node
            for attribute in node.attribute
            for held in (attribute.g, *attribute.graphs)
            if held.name
        )
    return found


def _chosen_graph(dice: random.Random, proto: ModelProto) -> GraphProto:
    return dice.choice(_graphs(proto))


def _chosen_node(dice: random.Random, proto: ModelProto) -> NodeProto:
    holders: list[Any] = [one for one in (*_graphs(proto), *proto.functions) if one.node]
    node: onnx.NodeProto = dice.choice(dice.choice(holders).node)
    return node


def _chosen_info(dice: random.Random, proto: ModelProto) -> onnx.ValueInfoProto:
    declared: list[onnx.ValueInfoProto] = [
        one for graph in _graphs(proto) for one in (*graph.input, *graph.output, *graph.value_info)
    ]
    return dice.choice(declared)


def _chosen_tensor(dice: random.Random, proto: ModelProto) -> TensorProto:
    found: list[TensorProto] = []
    for graph in _graphs(proto):
        found += graph.initializer
        found += [
            attribute.t
            for node in graph.node
            for attribute in node.attribute
            if attribute.HasField("t")
        ]
    return dice.choice(found)


# -- changes
# ------------------------------------------------------------------------------------------------------


def _another_operation(dice: random.Random, proto: ModelProto) -> None:
    node = _chosen_node(dice, proto)
    schema = dice.choice(schemas())
    node.op_type, node.domain = (
        schema.name,
        schema.domain
        if dice.random() < 0.9
        else dice.choice(("", "own", "ai.onnx.ml", "com.microsoft")),
    )


def _more_nodes(dice: random.Random, proto: ModelProto) -> None:
    """A new node, whose output another one takes."""
    graph = _chosen_graph(dice, proto)
    node = any_node(dice, graph)
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
    graph = _chosen_graph(dice, proto)
    del graph.node[dice.randrange(len(graph.node))]


def _twice(dice: random.Random, proto: ModelProto) -> None:
    graph = _chosen_graph(dice, proto)
    graph.node.add().CopyFrom(copy.deepcopy(dice.choice(graph.node)))


def _another_order(dice: random.Random, proto: ModelProto) -> None:
    graph = _chosen_graph(dice, proto)
    nodes = [copy.deepcopy(one) for one in graph.node]
    dice.shuffle(nodes)
    del graph.node[:]
    graph.node.extend(nodes)


def _another_attribute(dice: random.Random, proto: ModelProto) -> None:
    """Another value, kind or name for an attribute, or one more, or one less."""
    node = _chosen_node(dice, proto)
    match dice.randrange(5):
        case 0:
            del node.attribute[dice.randrange(len(node.attribute))]
        case 1:
            known = [one for one in schemas() if one.name == node.op_type and one.attributes]
            name, declared = dice.choice(sorted(dice.choice(known).attributes.items()))
            node.attribute.append(any_attribute(dice, name, int(declared.type), proto.graph))
        case 2:
            one = dice.choice(node.attribute)
            one.CopyFrom(
                any_attribute(
                    dice, one.name, dice.choice((1, 2, 3, 4, 5, 6, 7, 8, 13, 0)), proto.graph
                )
            )
        case 3:
            dice.choice(node.attribute).ref_attr_name = dice.choice(("alpha", "axis", ""))
        case _:
            one = dice.choice(node.attribute)
            one.CopyFrom(any_attribute(dice, one.name, int(one.type), proto.graph))


def _another_input(dice: random.Random, proto: ModelProto) -> None:
    """An input from elsewhere, left out, of its own, or one more or less."""
    graph = _chosen_graph(dice, proto)
    node = dice.choice(graph.node)
    names = [*names_in(graph), *names_in(proto.graph), "", "nowhere", *node.output]
    if node.input and dice.random() < 0.8:
        node.input[dice.randrange(len(node.input))] = dice.choice(names)
    elif node.input and dice.random() < 0.5:
        del node.input[-1]
    else:
        node.input.append(dice.choice(names))


def _another_output(dice: random.Random, proto: ModelProto) -> None:
    graph = _chosen_graph(dice, proto)
    node = dice.choice(graph.node)
    if dice.random() < 0.3:
        node.output.append(dice.choice(("more", "", *names_in(graph))))
    elif dice.random() < 0.3:
        del node.output[-1]
    else:
        node.output[dice.randrange(len(node.output))] = dice.choice(("", "other", *names_in(graph)))


def _another_result(dice: random.Random, proto: ModelProto) -> None:
    """What a graph takes or gives: one more, one less, in another order, another name."""
    graph = _chosen_graph(dice, proto)
    side = dice.choice((graph.input, graph.output))
    match dice.randrange(4):
        case 0:
            side.append(any_info(dice, dice.choice([*names_in(graph), "x0", "new"])))
        case 1:
            del side[dice.randrange(len(side))]
        case 2:
            dice.choice(side).name = dice.choice([*names_in(graph), "", "other"])
        case _:
            infos = [copy.deepcopy(one) for one in side]
            dice.shuffle(infos)
            del side[:]
            side.extend(infos)


def _another_type(dice: random.Random, proto: ModelProto) -> None:
    info = _chosen_info(dice, proto)
    tensor = info.type.tensor_type
    match dice.randrange(5):
        case 0:
            info.type.CopyFrom(any_type(dice))
        case 1:
            tensor.elem_type = dice.choice(COMMON if dice.random() < 0.7 else ELEMENT_TYPES)
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
    tensor = _chosen_tensor(dice, proto)
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
            entry.key, entry.value = (
                dice.choice(("location", "offset", "length")),
                dice.choice(("weights.bin", "../x", "", "-1", "9" * 30)),
            )
        case 5:
            name = tensor.name
            tensor.CopyFrom(any_tensor(dice, name))
        case _:
            if tensor.int64_data:
                tensor.int64_data[dice.randrange(len(tensor.int64_data))] = dice.choice(NUMBERS)
            elif len(tensor.raw_data) >= 8:
                at = dice.randrange(len(tensor.raw_data) // 8) * 8
                number = dice.choice(NUMBERS).to_bytes(8, "little", signed=True)
                tensor.raw_data = tensor.raw_data[:at] + number + tensor.raw_data[at + 8 :]


def _another_body(dice: random.Random, proto: ModelProto) -> None:
    """A subgraph from elsewhere, or none, or a wholly new one."""
    bodies = [
        attribute
        for graph in _graphs(proto)
        for node in graph.node
        for attribute in node.attribute
        if attribute.g.name
    ]
    one = dice.choice(bodies)
    match dice.randrange(4):
        case 0:
            one.g.CopyFrom(copy.deepcopy(dice.choice(bodies).g))
        case 1:
            one.g.CopyFrom(copy.deepcopy(dice.choice(_graphs(proto))))
        case 2:
            one.g.CopyFrom(any_body(dice, proto.graph))
        case _:
            one.ClearField("g")


def _into_a_region(dice: random.Random, proto: ModelProto) -> None:
    """A node becomes one of control flow."""
    graph = _chosen_graph(dice, proto)
    node = _chosen_node(dice, proto)
    node.op_type, node.domain = dice.choice(
        (("Loop", ""), ("If", ""), ("Scan", ""), ("SequenceMap", ""), ("If", ""))
    )
    del node.attribute[:]
    for name in ("then_branch", "else_branch") if node.op_type == "If" else ("body",):
        node.attribute.append(helper.make_attribute(name, any_body(dice, graph)))
    if node.op_type == "Scan":
        node.attribute.append(
            helper.make_attribute("num_scan_inputs", dice.choice((0, 1, 2, -1, 2**62)))
        )


def _a_function(dice: random.Random, proto: ModelProto) -> None:
    """A node becomes the call of a function, which holds it, or calls itself, or another
    function is changed.
    """
    if proto.functions and dice.random() < 0.5:
        one = dice.choice(proto.functions)
        match dice.randrange(5):
            case 0:
                one.input.append("more")
            case 1:
                one.output[dice.randrange(len(one.output))] = dice.choice(
                    ("nowhere", "", *one.input)
                )
            case 2:
                one.attribute.append(dice.choice(("alpha", "axis")))
            case 3:
                one.opset_import.append(
                    helper.make_opsetid(dice.choice(("", "own")), dice.choice(VERSIONS))
                )
            case _:
                one.node.add().CopyFrom(
                    NodeProto(
                        op_type=one.name,
                        domain=one.domain,
                        input=list(one.input),
                        output=list(one.output),
                    )
                )
        return
    node = _chosen_node(dice, proto)
    opsets = [
        helper.make_opsetid("", OPSET),
        *([helper.make_opsetid("own", 1)] if dice.random() < 0.3 else []),
    ]
    inner = copy.deepcopy(node)
    proto.functions.append(
        helper.make_function(
            "own", f"f{len(proto.functions)}", list(node.input), list(node.output), [inner], opsets
        )
    )
    node.op_type, node.domain = proto.functions[-1].name, "own"
    proto.opset_import.append(helper.make_opsetid("own", 1))


def _another_opset(dice: random.Random, proto: ModelProto) -> None:
    match dice.randrange(4):
        case 0:
            dice.choice(proto.opset_import).version = dice.choice(VERSIONS)
        case 1:
            proto.opset_import.append(
                helper.make_opsetid(
                    dice.choice(("", "ai.onnx", "ai.onnx.ml", "own")), dice.choice(VERSIONS)
                )
            )
        case 2:
            del proto.opset_import[dice.randrange(len(proto.opset_import))]
        case _:
            proto.ir_version = dice.choice((0, 1, 3, 8, 10, 99, -1, 2**62))


def _sparse(dice: random.Random, proto: ModelProto) -> None:
    """A sparse initializer under a name that somebody takes."""
    sparse = proto.graph.sparse_initializer.add()
    sparse.values.CopyFrom(any_tensor(dice, dice.choice(names_in(proto.graph))))
    sparse.indices.CopyFrom(any_tensor(dice, ""))
    sparse.dims.extend(dice.choice(LENGTHS) for _ in range(dice.randrange(3)))


def _knot(dice: random.Random, proto: ModelProto) -> None:
    dice.choice((tie_names, double_names))(dice, _chosen_graph(dice, proto))


_CHANGES: tuple[Callable[[random.Random, ModelProto], None], ...] = (
    *(
        _another_operation,
        _another_attribute,
        _another_attribute,
        _another_input,
        _another_input,
        _another_type,
        _another_type,
    ),
    *(
        _another_tensor,
        _another_tensor,
        _more_nodes,
        _more_nodes,
        _fewer_nodes,
        _twice,
        _another_order,
        _another_output,
        _another_result,
    ),
    *(_another_body, _into_a_region, _a_function, _another_opset, _sparse, _knot),
)
