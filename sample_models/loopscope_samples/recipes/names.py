"""Gives the nodes of an exported model names that a person can read and that do not change from
one export to the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import openvino as ov

_RUNNING_NUMBER = re.compile(r"(\.\d+)+$")
_VARIABLE = re.compile(r"([A-Za-z_]\w*?)(?:_\d+|\.\d+)?")
NO_LIMIT = 2**63 - 1
"""PyTorch's trip count of a ``while``."""
_ANONYMOUS = re.compile(r"([A-Z][A-Za-z]+\d?)_\d+")


def name_ports(model: ov.Model, outputs: tuple[str, ...]) -> ov.Model:
    """Tensor and layer names of the outer graph: inputs without the exporter's running numbers,
    outputs in order.
    """
    for port in model.inputs:
        name = _RUNNING_NUMBER.sub("", port.get_any_name())
        port.get_tensor().set_names({name})
        port.get_node().set_friendly_name(name)
    for result, name in zip(model.get_results(), outputs, strict=True):
        result.input_value(0).get_tensor().add_names({name})
        result.set_friendly_name(name)
    return model


def name_weights(model: ov.Model, weights: Mapping[str, np.ndarray]) -> ov.Model:
    """Constants that hold a program's weights get its names for them, in ``readable``."""
    for graph in _graphs(model):
        for node in graph.get_ordered_ops():
            if node.get_type_name() == "Constant" and node.get_data().size > 1:
                data = node.get_data().ravel()
                same = (
                    name for name, weight in weights.items() if np.array_equal(weight.ravel(), data)
                )
                if (name := next(same, None)) is not None:
                    _speak(node, name)
    return model


def readable(model: ov.Model, names: Mapping[str, str]) -> ov.Model:
    """Names from the table (exported name of a Loop or If -> name), else from the program's
    variables, the body ports, or the type.
    """
    for graph in _graphs(model):
        for node in graph.get_ordered_ops():
            if node.get_type_name() in ("Loop", "TensorIterator", "If"):
                node.set_friendly_name(
                    names.get(node.get_friendly_name(), node.get_friendly_name())
                )
                (_name_branches if node.get_type_name() == "If" else _name_body)(node)
    for graph in _graphs(model):
        taken: dict[str, int] = {}
        for node in sorted(graph.get_ordered_ops(), key=_is_inner):
            wanted = _spoken(node)
            taken[wanted] = taken.get(wanted, 0) + 1
            node.set_friendly_name(wanted if taken[wanted] == 1 else f"{wanted}_{taken[wanted]}")
        if graph is not model:
            _forget_tensor_names(graph)
    return model


def renumbered(model: ov.Model) -> ov.Model:
    """Keeps the exporter's names, but for running numbers, which would differ from one export to
    the next.
    """
    for graph in _graphs(model):
        taken: dict[str, int] = {}
        for node in graph.get_ordered_ops():
            match = _ANONYMOUS.fullmatch(node.get_friendly_name())
            if match:
                taken[match[1]] = taken.get(match[1], 0) + 1
                node.set_friendly_name(f"{match[1]}_{taken[match[1]]}")
    return model


def scoped(model: ov.Model) -> ov.Model:
    """Gives nodes without a name the scope of whatever reads them, as exporters do, and a number
    that does not change.
    """
    for graph in _graphs(model):
        taken: dict[str, int] = {}
        for node in reversed(graph.get_ordered_ops()):
            match = _ANONYMOUS.fullmatch(node.get_friendly_name())
            readers = [
                one.get_node().get_friendly_name()
                for port in node.outputs()
                for one in port.get_target_inputs()
            ]
            if match and node.get_type_name() != "Result":
                scope = next((name.rpartition("/")[0] for name in readers if "/" in name), "")
                wanted = f"{scope}/{match[1]}" if scope else match[1]
                taken[wanted] = taken.get(wanted, 0) + 1
                node.set_friendly_name(f"{wanted}_{taken[wanted]}")
    return model


def _is_inner(node: ov.Node) -> bool:
    """Ports get their names first: people bind inputs and read outputs by them."""
    return node.get_type_name() not in ("Parameter", "Result")


def _name_body(node: Any) -> None:
    """Body ports: ``total`` and ``next_total``, ``keep_going``; an invariant as it is called
    outside.
    """
    body = node.get_function()
    parameters, results = body.get_parameters(), body.get_results()
    for index, result in enumerate(results):
        result.set_friendly_name(
            f"{_variable(result.input_value(0).get_node()) or f'output_{index}'}_result"
        )
    counter, condition = (
        node.get_special_body_ports() if node.get_type_name() == "Loop" else (-1, -1)
    )
    for description in node.get_input_descriptions():
        port = parameters[description.body_parameter_index]
        name = node.input_value(description.input_index).get_node().get_friendly_name()
        kind = type(description).__name__
        source = node.input_value(description.input_index).get_node()
        port.set_friendly_name(
            name
            if kind == "InvariantInputDescription"
            else _variable(port) or _variable(source) or name
        )
        if kind == "MergedInputDescription":
            _name_result(results[description.body_value_index], f"next_{port.get_friendly_name()}")
            _speak(source, f"initial_{port.get_friendly_name()}")
    if counter >= 0:
        parameters[counter].set_friendly_name(_variable(parameters[counter]) or "iteration")
    if condition >= 0:
        _name_result(results[condition], "keep_going")
        _speak(node.input_value(1).get_node(), "start_at_all")


def _name_branches(node: Any) -> None:
    for number in (0, 1):
        body = node.get_function(number)
        for description in node.get_input_descriptions(number):
            name = node.input_value(description.input_index).get_node().get_friendly_name()
            body.get_parameters()[description.body_parameter_index].set_friendly_name(name)
        for index, result in enumerate(body.get_results()):
            result.set_friendly_name(f"result_{index}" if len(body.get_results()) > 1 else "result")


def _name_result(result: ov.Node, name: str) -> None:
    result.set_friendly_name(f"{name}_result")
    source = result.input_value(0).get_node()
    if source.get_type_name() != "Constant":
        _speak(source, name)


def _speak(node: ov.Node, name: str) -> None:
    if node.get_type_name() not in ("Parameter", "Loop", "If"):
        node.get_rt_info()["spoken_name"] = name


def _variable(node: ov.Node) -> str:
    """The program's variable that the node's first output was: PyTorch writes ``guess.15``, ONNX
    ``guess``.
    """
    names = sorted(node.output(0).get_names()) if node.get_output_size() else []
    return next((match[1] for match in map(_VARIABLE.fullmatch, names) if match), "")


def _spoken(node: Any) -> str:
    kind = node.get_type_name()
    if kind in ("Parameter", "Result", "Loop", "If", "TensorIterator"):
        return str(node.get_friendly_name())
    given = node.get_rt_info()
    if "spoken_name" in given:
        name = str(given["spoken_name"].astype(str))
        del given["spoken_name"]
        return name
    if _variable(node):
        return _variable(node)
    if kind == "Constant":
        return _number(node.get_data()) if node.get_data().size == 1 else "constant"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower()


def _number(data: np.ndarray) -> str:
    return "no_limit" if data.item() == NO_LIMIT else f"{data.item()}".lower()


def _forget_tensor_names(graph: ov.Model) -> None:
    for node in graph.get_ordered_ops():
        for port in node.outputs():
            port.get_tensor().set_names(set())


def _graphs(model: ov.Model) -> Iterator[ov.Model]:
    waiting = [model]
    while waiting:
        graph = waiting.pop()
        yield graph
        for node in graph.get_ordered_ops():
            kind = node.get_type_name()
            if kind in ("Loop", "TensorIterator"):
                waiting.append(node.get_function())
            elif kind == "If":
                waiting += [node.get_function(0), node.get_function(1)]
