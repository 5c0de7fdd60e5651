"""Type and shape propagation through Loop, TensorIterator and If."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.checks import trips
from loopscope.checks.known import declared, may_be_empty, scalar_value, unite, widen
from loopscope.ir.model import (
    LOOP,
    SCAN,
    SEQUENCE_MAP,
    TENSOR_ITERATOR,
    Body,
    InputMap,
    LayerId,
    Node,
    OutputMap,
    OutputRef,
)
from loopscope.ir.replace import replace
from loopscope.ir.shape import DYNAMIC, Dimension, PartialShape, static
from loopscope.ops.declare import NOTHING_KNOWN, Known

_NO_LIMIT, _TRUE = Known.of(np.array(-1)), Known.of(np.array(True))

Bindings = Mapping[LayerId, Known]
"""Knowledge about a body's Parameters or Results, by layer."""


@dataclass(frozen=True, slots=True)
class BodyState:
    """A body with the current knowledge about its Parameters and Results."""

    body: Body
    parameters: Bindings
    results: Bindings


def with_absent(
    node: Node, sources: Sequence[OutputRef | None], known: Sequence[Known]
) -> list[Known]:
    """Return the knowledge about a node's inputs, with defaults for omitted inputs of a Loop.

    In ONNX an omitted trip count means no limit, and an omitted condition means true.
    """
    if node.type != LOOP:
        return list(known)
    first_two = [
        known[index] if index < len(sources) and sources[index] is not None else default
        for index, default in enumerate((_NO_LIMIT, _TRUE))
    ]
    return [*first_two, *known[2:]]


def bindings(
    node: Node, body: Body, outer: Sequence[Known], before: BodyState | None
) -> dict[LayerId, Known]:
    """Return the knowledge about a body's Parameters, widened with that of the previous round."""
    # A Parameter without input is zero, in the shape that the file declares.
    known = {parameter.id: declared(parameter) for parameter in body.graph.parameters}
    for entry in body.inputs:
        if entry.internal in known:
            whole = replace(entry, axis=None) if node.type == SEQUENCE_MAP else entry
            known[entry.internal] = _parameter_value(
                whole, outer, known[entry.internal], stacked=node.type == SCAN
            )
    if node.type == TENSOR_ITERATOR:
        known = {
            parameter.id: _apply_declared_type(known[parameter.id], parameter)
            for parameter in body.graph.parameters
        }
    if before is None:
        return known
    reset_layers = per_iteration_parameters(body)
    for edge in {edge.to_layer: edge for edge in reversed(body.back_edges)}.values():
        if (
            edge.to_layer in known
            and edge.from_layer in before.results
            and edge.to_layer not in reset_layers
        ):
            known[edge.to_layer] = widen(known[edge.to_layer], before.results[edge.from_layer])
    return {layer: widen(before.parameters[layer], new) for layer, new in known.items()}


def per_iteration_parameters(body: Body) -> frozenset[LayerId]:
    """Return the Parameters that receive a slice or the iteration number in every iteration. A back
    edge to such a Parameter has no effect.
    """
    return frozenset(
        entry.internal
        for entry in body.inputs
        if entry.axis is not None or entry.is_iteration_number
    )


def _apply_declared_type(known: Known, parameter: Node) -> Known:
    """Apply the declared element type of a TensorIterator's Parameter, as OpenVINO does. Parameters
    of a Loop adopt the type of their input.
    """
    element_type = declared(parameter).element_type
    return (
        known
        if element_type is None or element_type is known.element_type
        else Known(element_type, known.shape)
    )


def _parameter_value(
    entry: InputMap, outer: Sequence[Known], parameter: Known, *, stacked: bool
) -> Known:
    if entry.is_iteration_number:
        return _iteration_number(parameter)
    if entry.external < 0:
        return parameter
    if entry.external >= len(outer):
        return NOTHING_KNOWN
    known = outer[entry.external]
    return (
        known
        if entry.axis is None
        else Known(known.element_type, _part_shape(known.shape, entry, stacked=stacked))
    )


def _iteration_number(parameter: Known) -> Known:
    """Return a scalar or a tensor of one element, i32 or i64, as the Parameter declares."""
    single = PartialShape.of([1])
    return Known(parameter.element_type, single if parameter.shape == single else PartialShape(()))


def _part_shape(shape: PartialShape, entry: InputMap, *, stacked: bool) -> PartialShape:
    if (
        shape.dimensions is None
        or entry.axis is None
        or not -len(shape.dimensions) <= entry.axis < len(shape.dimensions)
    ):
        return DYNAMIC
    axis = entry.axis % len(shape.dimensions)
    part = () if stacked else (static(max(entry.part_size, 0)),)
    return PartialShape((*shape.dimensions[:axis], *part, *shape.dimensions[axis + 1 :]))


def iterations(node: Node, body: Body, outer: Sequence[Known], results: Bindings) -> Dimension:
    """Return the range of the trip count of a node's body."""
    if node.type != LOOP:
        return trips.of_tensor_iterator(body, outer)
    condition = next(
        (
            results.get(entry.internal)
            for entry in body.outputs
            if entry.purpose == "execution_condition"
        ),
        None,
    )
    return trips.until_slices_run_out(
        trips.of_loop(outer[0], outer[1], condition), trips.of_slices(body, outer)
    )


def iterated(node: Node, outer: Sequence[Known], inside: BodyState) -> list[Known]:
    """Return the knowledge about the outputs of a Loop or TensorIterator, or of any node with one
    body.
    """
    body = inside.body
    if node.type == SEQUENCE_MAP:
        return [inside.results.get(entry.internal, NOTHING_KNOWN) for entry in body.outer_outputs]
    count = iterations(node, body, outer, inside.results)
    first = {} if count.least > 0 else _first_values(body, outer)
    return [_output_value(entry, inside, first, count) for entry in body.outer_outputs]


def _output_value(
    entry: OutputMap, inside: BodyState, first_values: Bindings, count: Dimension
) -> Known:
    result = inside.results.get(entry.internal, NOTHING_KNOWN)
    if entry.axis is not None:
        return _concatenate(result, entry, count)
    if count.least > 0:
        return result
    first = first_values.get(entry.internal)
    if first is None:
        return may_be_empty(result) if count != static(0) else _without_iterations(result)
    return first if count == static(0) else unite(first, result)


def _first_values(body: Body, outer: Sequence[Known]) -> Bindings:
    """Map each carried Result to its initial value, which is the last-value output after no
    iterations.
    """
    initial_values = {
        entry.internal: outer[entry.external]
        for entry in reversed(body.inputs)
        if entry.axis is None and 0 <= entry.external < len(outer)
    }
    return {
        edge.from_layer: initial_values[edge.to_layer]
        for edge in reversed(body.back_edges)
        if edge.to_layer in initial_values
    }


def _without_iterations(result: Known) -> Known:
    shape = (
        DYNAMIC
        if result.shape.dimensions is None
        else PartialShape.of(result.shape.lengths_or_zeros())
    )
    return Known(result.element_type, shape)


def _concatenate(result: Known, entry: OutputMap, count: Dimension) -> Known:
    """Return the output concatenated along the axis, or stacked along a new axis. Without
    iterations each length that is not fixed is 0.
    """
    shape = (may_be_empty(result) if count.least == 0 else result).shape
    if shape.dimensions is None or entry.axis is None:
        return Known(result.element_type)
    rank = len(shape.dimensions) + (1 if entry.stacked else 0)
    if rank == 0 and entry.axis in (0, -1):
        return Known(result.element_type, PartialShape((count,)))
    if not -rank <= entry.axis < rank:
        return Known(result.element_type)
    axis = entry.axis % rank
    if entry.stacked:
        return Known(
            result.element_type,
            PartialShape((*shape.dimensions[:axis], count, *shape.dimensions[axis:])),
        )
    length = result.shape.at(axis) * count
    return Known(
        result.element_type,
        PartialShape((*shape.dimensions[:axis], length, *shape.dimensions[axis + 1 :])),
    )


def chosen(outer: Sequence[Known], branches: Sequence[BodyState]) -> list[Known]:
    """Return the knowledge about the outputs of an If: of both branches, or of the branch that a
    constant condition selects.
    """
    branch_outputs = [
        [inside.results.get(entry.internal, NOTHING_KNOWN) for entry in inside.body.outer_outputs]
        for inside in branches
    ]
    condition = scalar_value(outer[0]) if outer else None
    if condition is not None:
        branch_name = "then" if condition else "else"
        for inside, outputs in zip(branches, branch_outputs, strict=True):
            if inside.body.name == branch_name:
                return outputs
    united = branch_outputs[0] if branch_outputs else []
    for outputs in branch_outputs[1:]:
        united = [unite(left, right) for left, right in zip(united, outputs, strict=False)]
    return united
