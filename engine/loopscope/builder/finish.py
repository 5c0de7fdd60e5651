"""Conversion of a graph under construction to a checked Model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopscope.builder.frame import GraphFrame
from loopscope.builder.mistakes import reject_lost_writes
from loopscope.builder.naming import NameScope
from loopscope.builder.structure import leaves
from loopscope.builder.tensor import Tensor
from loopscope.checks.check import check
from loopscope.errors import BuildError, shorten
from loopscope.ir.address import encode, graphs
from loopscope.ir.model import Edge, LayerId, Model, Node, Port
from loopscope.ir.model import ModelGraph as FinishedGraph
from loopscope.ir.replace import replace


def build_model(frame: GraphFrame, outputs: object) -> Model:
    """Return a model of an outermost graph with these outputs. The graph is unchanged, so that it
    can be extended for another model.
    """
    graph = frame.graph
    named = _named_outputs(outputs)
    if not named:
        raise BuildError("a model needs at least one output")
    nodes, edges = list(frame.nodes), list(frame.edges)
    used_names = {node.name for node in nodes}
    for name, output in named:
        tensor = frame.bring(_require_tensor(name, output))
        same_name = next(
            (node for node in nodes if any(name in port.names for port in node.outputs)), None
        )
        if name and same_name is not None and same_name.id != tensor.source.layer:
            raise BuildError(
                f"output {name!r} has the same name as a tensor of {same_name.type} "
                f"{same_name.name!r}"
            )
        nodes[tensor.source.layer] = _with_tensor_name(
            nodes[tensor.source.layer], tensor.source.output, name or tensor.name
        )
        _add_result(
            nodes,
            edges,
            tensor,
            _unique_name(name or f"{tensor.name.replace(':', '_')}_result", used_names),
        )
    reject_lost_writes(frame.writes, edges, for_good=False)
    finished = FinishedGraph(tuple(frame.kept(nodes, edges)), tuple(edges))
    model = Model(finished, graph.name)
    model = replace(
        model, rt_info=_scope_info(model, {**graph.calls, finished: tuple(frame.calls)})
    )
    report = check(model, graph.catalogue)
    if not report.ok:
        raise BuildError(f"graph {graph.name!r} is not a valid model. {report.summary()}")
    return model


def _scope_info(
    model: Model, scopes: Mapping[FinishedGraph, Sequence[NameScope]]
) -> dict[str, object]:
    """Return ``rt_info`` with the groups of nodes from function calls and scopes, such as
    ``main/norm%2F*``, and the function names.
    """
    groups = {
        f"{place.address}/{encode(f'{scope.name}/')}*": scope.function
        for place in graphs(model)
        for scope in scopes.get(place.graph, ())
        if any(node.name.startswith(f"{scope.name}/") for node in place.graph.nodes)
    }
    calls = {
        f"call_{number}": (group, name)
        for number, (group, name) in enumerate(
            (group, name) for group, name in groups.items() if name
        )
    }
    plain = {
        f"scope_{number}": group
        for number, group in enumerate(group for group, name in groups.items() if not name)
    }
    sections = {
        "functions": {key: group for key, (group, _) in calls.items()},
        "function_names": {key: name for key, (_, name) in calls.items()},
        "scopes": plain,
    }
    non_empty = {key: section for key, section in sections.items() if section}
    return {"loopscope": non_empty} if non_empty else {}


def _named_outputs(outputs: object) -> list[tuple[str, object]]:
    """Return every output with its name.

    Parts of a structure inside a mapping are named by their path; other outputs have an empty name
    and are named after their nodes.
    """
    if not isinstance(outputs, Mapping):
        return [("", leaf.value) for leaf in leaves(outputs)]
    for name in outputs:
        if not isinstance(name, str) or not name or not name.isprintable():
            raise BuildError(f"the name of an output is {shorten(repr(name), 60)}, expected text")
    return [
        (f"{name}{leaf.path}", leaf.value)
        for name, value in outputs.items()
        for leaf in leaves(value)
    ]


def _require_tensor(name: str, output: object) -> Tensor:
    if not isinstance(output, Tensor):
        label = f"output {name!r}" if name else "an output"
        raise BuildError(
            f"{label} is {shorten(repr(output), 60)}, expected a tensor, several, or a mapping "
            "from names to tensors"
        )
    return output


def _with_tensor_name(node: Node, output: int, name: str) -> Node:
    port = node.outputs[output]
    outputs = (
        *node.outputs[:output],
        replace(port, names=tuple(dict.fromkeys((*port.names, name)))),
        *node.outputs[output + 1 :],
    )
    return replace(node, outputs=outputs)


def _unique_name(stem: str, used_names: set[str]) -> str:
    name, number = stem, 1
    while name in used_names:
        name = f"{stem}_{number}"
        number += 1
    used_names.add(name)
    return name


def _add_result(nodes: list[Node], edges: list[Edge], tensor: Tensor, name: str) -> None:
    layer = LayerId(len(nodes))
    port = nodes[tensor.source.layer].outputs[tensor.source.output].id
    nodes.append(
        Node(layer, name, "Result", "opset1", inputs=(Port(0, tensor.element_type, tensor.shape),))
    )
    edges.append(Edge(tensor.source.layer, port, layer, 0))
