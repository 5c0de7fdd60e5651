"""Steps of a reduction that make tensors smaller or simpler: lengths of axes, weights, inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from loopscope.cases.fault_search import Candidate, ReductionSearch
from loopscope.ir.address import graphs
from loopscope.ir.constant import Constant
from loopscope.ir.model import LayerId, Model, Node, Port
from loopscope.ir.replace import replace
from loopscope.ir.shape import PartialShape, static
from loopscope.transform.extract import constant_node, parameter
from loopscope.transform.graph_edits import with_every_node, with_graph

_MAX_INDICES = 8
"""Maximum number of elements of a constant that may list lengths, such as a new shape."""
_SEED = 0


def shorten_axes(search: ReductionSearch) -> None:
    """Shorten all axes of one length together, the longest first.

    The lengths 1, 2, 3 and half the length are tried in ascending order.
    """
    lengths = sorted(_lengths(search.best), reverse=True)
    for length in lengths:
        for shorter in sorted({1, 2, 3, length // 2} - {0}):
            if shorter < length and search.accepts(_shortened(search.best, length, shorter)):
                break


def _lengths(candidate: Candidate) -> set[int]:
    shapes = [value.shape for value in candidate.inputs if isinstance(value, np.ndarray)]
    shapes += [node.constant.shape for node in _constants(candidate.model)]
    return {length for shape in shapes for length in shape if length > 1}


def _constants(model: Model) -> Iterator[Any]:
    for place in graphs(model):
        yield from (node for node in place.graph.nodes if node.constant is not None)


def _shortened(candidate: Candidate, length: int, shorter: int) -> Candidate:
    """Return the candidate with every axis of a length shortened, in values and declarations."""

    def of_port(port: Port) -> Port:
        dimensions = port.shape.dimensions
        if dimensions is None or static(length) not in dimensions:
            return port
        shape = PartialShape.of(
            static(shorter) if dimension == static(length) else dimension
            for dimension in dimensions
        )
        return replace(port, shape=shape)

    def of_node(node: Node) -> Node:
        if node.constant is not None:
            array = _shorter_constant(node.constant.array(), length, shorter)
            return _with_constant(candidate.model, node, array)
        changed = replace(
            node,
            inputs=tuple(map(of_port, node.inputs)),
            outputs=tuple(map(of_port, node.outputs)),
        )
        if node.type != "Parameter" or changed.outputs == node.outputs:
            return changed
        is_onnx = candidate.model.dialect == "onnx"
        return parameter(node.id, node.name, changed.outputs[0], is_onnx=is_onnx)

    inputs = tuple(
        _shorter_array(value, length, shorter) if isinstance(value, np.ndarray) else value
        for value in candidate.inputs
    )
    return candidate.changed(with_every_node(candidate.model, of_node), inputs)


def _shorter_array(array: np.ndarray, length: int, shorter: int) -> np.ndarray:
    index = tuple(slice(shorter if size == length else None) for size in array.shape)
    return np.ascontiguousarray(array[index]) if index else array


def _shorter_constant(array: np.ndarray, length: int, shorter: int) -> np.ndarray:
    """Return a constant with shorter axes; in a short list of integers, lengths are replaced."""
    array = _shorter_array(array, length, shorter)
    if array.dtype.kind in "iu" and array.ndim == 1 and array.size <= _MAX_INDICES:
        return np.where(array == length, array.dtype.type(shorter), array)
    return array


def _with_constant(model: Model, node: Node, array: np.ndarray) -> Node:
    if not node.outputs:
        return node
    return constant_node(
        node.id, node.name, node.outputs[0], Constant.of(array), is_onnx=model.dialect == "onnx"
    )


def randomise_weights(search: ReductionSearch) -> None:
    """Replace float constants by random numbers of the same magnitude.

    All are replaced together if the fault remains, else one after the other.
    """
    weights = {
        (place.address, node.id): node
        for place in graphs(search.best.model)
        for node in place.graph.nodes
        if node.constant is not None
        and node.constant.elements > 1
        and node.constant.element_type.dtype.kind == "f"
    }
    if not weights or search.accepts(_with_random(search.best, weights)):
        return
    if len(weights) > 1:
        for key, node in weights.items():
            search.accepts(_with_random(search.best, {key: node}))


def _with_random(candidate: Candidate, weights: Mapping[tuple[str, LayerId], Node]) -> Candidate:
    generator = np.random.default_rng(_SEED)
    model = candidate.model
    for (address, layer), node in weights.items():
        assert node.constant is not None
        array = node.constant.array()
        with np.errstate(all="ignore"):
            scale = float(np.nan_to_num(np.abs(array.astype(np.float64)).mean())) or 1.0
        noise = (generator.standard_normal(array.shape) * scale).astype(array.dtype)
        place = next(place for place in graphs(model) if place.address == address)
        changed = {layer: _with_constant(model, node, noise)}
        nodes = tuple(changed.get(each.id, each) for each in place.graph.nodes)
        model = with_graph(model, address, replace(place.graph, nodes=nodes))
    return candidate.changed(model)


def simplify_inputs(search: ReductionSearch) -> None:
    """Replace inputs by small or rounded numbers, where the fault remains."""
    for position, value in enumerate(search.best.inputs):
        if not isinstance(value, np.ndarray) or not value.size:
            continue
        for simpler in _simpler(value):
            if np.array_equal(simpler, value):
                break
            inputs = list(search.best.inputs)
            inputs[position] = simpler
            if search.accepts(search.best.changed(search.best.model, tuple(inputs))):
                break


def _simpler(value: np.ndarray) -> Iterator[np.ndarray]:
    if value.dtype.kind == "f":
        yield (np.arange(value.size) % 9 + 1).reshape(value.shape).astype(value.dtype)
        with np.errstate(all="ignore"):
            yield np.round(value)
            yield np.round(value, 2)
    elif value.dtype.kind in "iu" and value.ndim == 0:
        for number in (1, 2, 3, int(value) // 2):
            if number < value:
                yield np.array(number, value.dtype)
