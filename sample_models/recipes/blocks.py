"""Short words for building OpenVINO graphs by hand, with a readable name on every node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import openvino as ov
from openvino import Output
from openvino import opset15 as ops

Value = ov.Node | Output


def parameter(name: str, element_type: str, shape: Sequence[int] = ()) -> ov.Node:
    """An input; -1 stands for any length."""
    node = ops.parameter(ov.PartialShape(list(shape)), getattr(ov.Type, element_type), name=name)
    node.output(0).get_tensor().set_names({name})
    return node


def constant(name: str, value: object, dtype: type[np.generic] | None = None) -> ov.Node:
    return ops.constant(np.asarray(value, dtype), name=name)


def output(value: Value) -> Output:
    return value if isinstance(value, Output) else value.output(0)


def called(name: str, value: ov.Node) -> ov.Node:
    """The node, under that name."""
    value.set_friendly_name(name)
    return value


def model(title: str, outputs: Mapping[str, Value], parameters: Sequence[ov.Node]) -> ov.Model:
    """A whole model; each output's tensor and Result carry its name."""
    results = []
    for name, value in outputs.items():
        output(value).get_tensor().add_names({name})
        results.append(ops.result(output(value), name=name))
    return ov.Model(results, list(parameters), title)


class Iteration:
    """A Loop (or, without trip count and condition, a TensorIterator) in the making: its body's ports first, then its outputs."""

    def __init__(self, name: str, trip_count: Value | None = None, condition: Value | None = None) -> None:
        if trip_count is None or condition is None:
            self.node: Any = ops.tensor_iterator()
        else:
            self.node = ops.loop(output(trip_count), output(condition))
        self.node.set_friendly_name(name)
        self._parameters: list[ov.Node] = []
        self._results: list[ov.Node] = []
        self._bindings: list[tuple[str, ov.Node, Value, dict[str, Any]]] = []
        self._counter = -1

    def counter(self, name: str = "iteration") -> ov.Node:
        self._counter = len(self._parameters)
        return self._add(parameter(name, "i64"))

    def carried(self, name: str, initial: Value, shape: Sequence[int] | None = None) -> ov.Node:
        """A value that goes around; name what it becomes with :meth:`next`. ``shape`` where it changes on the way."""
        return self._bind("merged", name, initial, shape, {})

    def invariant(self, name: str, value: Value) -> ov.Node:
        return self._bind("invariant", name, value, None, {})

    def sliced(self, name: str, value: Value, axis: int = 0, backwards: bool = False) -> ov.Node:
        """One part of ``value`` per iteration, first or last part first."""
        source = output(value).get_partial_shape()
        shape = [1 if index == axis else _length(dimension) for index, dimension in enumerate(source)]
        walk = {"start": -1, "stride": -1, "end": 0} if backwards else {"start": 0, "stride": 1, "end": -1}
        return self._bind("sliced", name, value, shape, {**walk, "part_size": 1, "axis": axis})

    def body(self, condition: Value | None, becomes: Mapping[str, Value], gives: Mapping[str, Value] | None = None) -> None:
        """Closes the body: the condition Result, what each carried value becomes, and what else it gives."""
        results = {f"next_{name}": value for name, value in becomes.items()} | dict(gives or {})
        if condition is not None:
            self._results.append(ops.result(output(condition), name="keep_going_result"))
        self._results += [ops.result(output(value), name=f"{name}_result") for name, value in results.items()]
        self.node.set_function(ov.Model(self._results, self._parameters, f"{self.node.get_friendly_name()}_body"))
        if condition is not None:
            self.node.set_special_body_ports([self._counter, 0])
        self._values = dict(zip(results, self._results[condition is not None :], strict=True))
        for kind, port, value, options in self._bindings:
            if kind == "merged":
                self.node.set_merged_input(port, output(value), self._values[f"next_{port.get_friendly_name()}"].output(0))
            elif kind == "invariant":
                self.node.set_invariant_input(port, output(value))
            else:
                self.node.set_sliced_input(port, output(value), **options)

    def last(self, name: str) -> Output:
        return self.node.get_iter_value(self._values[name].output(0), -1)

    def concatenated(self, name: str, axis: int = 0, backwards: bool = False) -> Output:
        walk = (-1, -1, 1, 0) if backwards else (0, 1, 1, -1)
        return self.node.get_concatenated_slices(self._values[name].output(0), *walk, axis)

    def _bind(self, kind: str, name: str, value: Value, shape: Sequence[int] | None, options: dict[str, Any]) -> ov.Node:
        port = output(value)
        node = parameter(name, port.get_element_type().get_type_name(), shape if shape is not None else _lengths(port))
        self._bindings.append((kind, node, value, options))
        return self._add(node)

    def _add(self, node: ov.Node) -> ov.Node:
        self._parameters.append(node)
        return node


def branch(
    name: str, condition: Value, then_body: ov.Model, else_body: ov.Model, inputs: Sequence[tuple[Value, str | None, str | None]]
) -> list[Output]:
    """An If; each input with the Parameter of the then and of the else body that it feeds. Gives the outputs, by rank."""
    node: Any = ops.if_op(output(condition))
    node.set_friendly_name(name)
    node.set_then_body(then_body)
    node.set_else_body(else_body)
    for value, then_name, else_name in inputs:
        node.set_input(output(value), _named(then_body, then_name), _named(else_body, else_name))
    return [node.set_output(*pair) for pair in zip(then_body.results, else_body.results, strict=True)]


def _named(body: ov.Model, name: str | None) -> ov.Node | None:
    return next((one for one in body.get_parameters() if one.get_friendly_name() == name), None)


def _length(dimension: Any) -> int:
    return dimension.get_length() if dimension.is_static else -1


def _lengths(port: Output) -> list[int]:
    return [_length(dimension) for dimension in port.get_partial_shape()]
