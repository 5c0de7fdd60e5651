"""Finished graphs: a graph under construction becomes a checked Model, and a finished graph or
model is inserted into a graph under construction.

Tensors replace the Parameters of the inserted graph; ``graph.import_model`` inserts a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loopscope.builder.frame import GraphFrame
from loopscope.builder.mistakes import reject_lost_writes
from loopscope.builder.naming import NameScope
from loopscope.builder.structure import leaves
from loopscope.builder.tensor import Tensor
from loopscope.checks.check import check
from loopscope.checks.order import order
from loopscope.checks.propagate import propagate
from loopscope.errors import BuildError, listed, shorten
from loopscope.ir.address import ROOT, encode, graphs
from loopscope.ir.model import Edge, LayerId, Model, Node, OutputRef, Port, Signature, expect_model
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


def inline_graph(
    frame: GraphFrame, source: FinishedGraph, feeds: Mapping[LayerId, Tensor], what: str
) -> tuple[Tensor, ...]:
    """Add the nodes of ``source`` to a frame, and return the inputs of its Results, in order.

    ``feeds``: a tensor of the frame for each Parameter. Types and shapes are
    inferred again from the feeds. ``BuildError`` if they contradict an operation; its message
    starts with ``what``.
    """
    propagated = propagate(
        Model(source),
        frame.graph.catalogue,
        {layer: tensor.known for layer, tensor in feeds.items()},
    )
    for contradiction in propagated.contradictions:
        where = (
            shorten(source.by_id[contradiction.layer].name)
            if contradiction.graph == ROOT
            else contradiction.graph
        )
        raise BuildError(f"{what}: {where}: {contradiction.message}")
    tensors: dict[OutputRef, Tensor] = {
        OutputRef(layer, 0): tensor for layer, tensor in feeds.items()
    }
    results: dict[LayerId, Tensor] = {}
    for layer in order(source).layers:
        node = source.by_id[layer]
        if layer in feeds:
            continue
        inputs = _inputs(source, node, tensors, what)
        if node.type == "Result":
            results[layer] = inputs[0]
            continue
        known = [propagated.output(ROOT, layer, output) for output in range(len(node.outputs))]
        for output, tensor in enumerate(frame.adopt(node, inputs, known)):
            tensors[OutputRef(layer, output)] = tensor
    return tuple(results[node.id] for node in source.results)


def _inputs(
    source: FinishedGraph, node: Node, computed: Mapping[OutputRef, Tensor], what: str
) -> list[Tensor]:
    tensors = [
        computed.get(source_ref) if source_ref is not None else None
        for source_ref in source.sources[node.id]
    ]
    while tensors and tensors[-1] is None:
        tensors.pop()
    inputs = [source_ref for source_ref in tensors if source_ref is not None]
    if len(inputs) < len(tensors) or (node.type == "Result" and not inputs):
        raise BuildError(f"{what}: an input of {node.type} {shorten(node.name)!r} is not connected")
    return inputs


def values_for_import(
    model: Model, inputs: Mapping[str | int, Any] | Sequence[Any]
) -> Mapping[LayerId, Any]:
    """Return the value for each Parameter of a model that ``Graph.import_model`` inserts, by layer.

    ``BuildError`` for a model of another dialect, and for missing or unknown inputs.
    """
    expect_model(model, "import_model")
    if model.dialect != "openvino":
        raise BuildError(
            f"import_model(): {shorten(model.name)!r} is an ONNX model, but this graph consists "
            "of OpenVINO operations"
        )
    values = dict(_values_by_layer(model, inputs))
    missing = [signature.name for signature in model.inputs if signature.layer not in values]
    if missing:
        raise BuildError(
            f"import_model(): {shorten(model.name)!r} also needs a value for {listed(missing)}"
        )
    return values


def insert_model(
    frame: GraphFrame, model: Model, values: Mapping[LayerId, Any]
) -> tuple[Tensor, ...]:
    """Insert a model into a frame and return its outputs.

    ``BuildError`` if a value, or what is inferred from it, contradicts the model.
    """
    feeds = {}
    for signature in model.inputs:
        candidates = [signature.element_type] if signature.element_type is not None else []
        tensor = frame.graph.lift(
            values[signature.layer], candidates, f"import_model(): input {signature.name!r}"
        )
        differ = tensor.element_type is not signature.element_type and None not in (
            tensor.element_type,
            signature.element_type,
        )
        if differ or signature.shape.intersect(tensor.shape) is None:
            raise BuildError(
                f"import_model(): input {signature.name!r} is "
                f"{signature.element_type}{signature.shape}, got {tensor!r}"
            )
        feeds[signature.layer] = tensor
    return inline_graph(frame, model.graph, feeds, f"import_model() of {shorten(model.name)!r}")


def _values_by_layer(
    model: Model, inputs: Mapping[str | int, Any] | Sequence[Any]
) -> list[tuple[LayerId, Any]]:
    """Return the value for each Parameter's layer."""
    if isinstance(inputs, Mapping):
        return [(_find_input(model, key).layer, value) for key, value in inputs.items()]
    values = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if len(values) > len(model.inputs):
        raise BuildError(
            f"import_model(): {shorten(model.name)!r} has {len(model.inputs)} inputs, got "
            f"{len(values)}"
        )
    return [
        (signature.layer, value) for signature, value in zip(model.inputs, values, strict=False)
    ]


def _find_input(model: Model, key: object) -> Signature:
    for position, signature in enumerate(model.inputs):
        if key in (signature.name, *signature.names) or (
            key == position and isinstance(key, int) and not isinstance(key, bool)
        ):
            return signature
    known = listed([signature.name for signature in model.inputs]) or "none"
    raise BuildError(
        f"import_model(): {shorten(model.name)!r} does not have an input "
        f"{shorten(repr(key), 60)}; its inputs are {known}"
    )
