"""Lowering of nodes to instructions: bound kernels, and inputs and port maps as slots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, get_args

import numpy as np

from loopscope.executor.plan.body_ports import (
    CarriedValue,
    Concatenated,
    Counter,
    Invariant,
    LastValue,
    Sliced,
    Unfed,
)
from loopscope.executor.plan.plan import ABSENT, Branch, LoopKind, LoopRegion, Program
from loopscope.executor.plan.slots import Slot, TableIndex
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import (
    LOOP,
    SCAN,
    SEQUENCE_MAP,
    TENSOR_ITERATOR,
    Body,
    InputMap,
    LayerId,
    ModelGraph,
    Node,
)
from loopscope.ops.declare import Known, Operation, Role, typed
from loopscope.ops.infer import comparison, elementwise


def bound_kernel(operation: Operation, keywords: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the kernel of an operation with its attributes bound."""
    assert operation.kernel is not None
    return partial(operation.kernel, **keywords) if keywords else operation.kernel


def bound_shape_function(
    operation: Operation, attributes: Mapping[str, Any]
) -> Callable[[Sequence[Known]], tuple[Known, ...]] | None:
    """Return the shape function of an operation with its attributes bound; None if none exists."""
    infer = operation.infer
    return None if infer is None else lambda inputs: infer(inputs, attributes)


def print_fields(operation: Operation, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an instruction about the lines that its executions print."""
    if operation.shows is None:
        return {}
    return {
        "shows": partial(operation.shows, **keywords),
        "shows_first": keywords.get("first_n", -1),
    }


def broadcasts_inputs(operation: Operation) -> bool:
    """Return True if the operation broadcasts its inputs against each other."""
    return operation.broadcasts or operation.infer in (elementwise, comparison)


def initial_value(operation: Operation, node: Node) -> Callable[[], np.ndarray] | None:
    """Return the initial value of a variable without one: zeros of its declared type and shape,
    with length 0 for dynamic dimensions.
    """
    if operation.role != Role.READ_VALUE or node.inputs or operation.infer is None:
        return None
    (declared,) = operation.infer((), typed(operation, node.attributes))
    return partial(
        np.zeros,
        declared.shape.lengths_or_zeros(),
        (declared.element_type or ElementType.F32).dtype,
    )


LOOP_KINDS: Mapping[str, LoopKind] = {kind: kind for kind in get_args(LoopKind)}


def source_slot(
    graph: ModelGraph, slots: Mapping[tuple[LayerId, int], Slot], node: Node, index: int
) -> Slot:
    """Return the slot of an input of a node; ``ABSENT`` for an input that is left out."""
    sources = graph.sources[node.id]
    source = sources[index] if index < len(sources) else None
    return ABSENT if source is None else slots[source.layer, source.output]


def branch(body: Body, program: Program, inputs: tuple[Slot, ...]) -> Branch:
    fed = {
        entry.internal: inputs[entry.external]
        for entry in body.inputs
        if entry.external != -1 and entry.internal in program.parameters
    }
    bindings = tuple((program.parameters[layer], slot) for layer, slot in fed.items())
    unfed = tuple(
        Unfed(slot, layer) for layer, slot in program.parameters.items() if layer not in fed
    )
    return Branch(
        body.name,
        program,
        bindings,
        unfed,
        tuple(program.results[entry.internal] for entry in body.outer_outputs),
    )


@dataclass(slots=True, eq=False)
class _BodyInputs:
    """Parameters of a loop's body, by how they get their values."""

    invariants: list[Invariant] = field(default_factory=list[Invariant])
    carried: list[CarriedValue] = field(default_factory=list[CarriedValue])
    sliced: list[Sliced] = field(default_factory=list[Sliced])
    counters: list[Counter] = field(default_factory=list[Counter])
    unfed: list[Unfed] = field(default_factory=list[Unfed])

    @classmethod
    def of(cls, node: Node, body: Body, program: Program, inputs: tuple[Slot, ...]) -> _BodyInputs:
        # Of several back edges into one Parameter the first counts, as in OpenVINO.
        result_of = {
            edge.to_layer: edge.from_layer
            for edge in reversed(body.back_edges)
            if edge.to_layer in program.parameters
        }
        entries = {entry.internal: entry for entry in body.inputs}
        ports = cls()
        for layer, slot in program.parameters.items():
            entry = entries.get(layer)
            outer = inputs[entry.external] if entry is not None and entry.external != -1 else None
            if entry is not None and entry.is_iteration_number:
                ports.counters.append(_counter(body.graph.by_id[layer], slot))
            elif entry is not None and outer is not None and entry.axis is not None:
                ports.sliced.append(_sliced(node, entry, slot, outer, entry.axis))
            elif layer in result_of:
                result = result_of[layer]
                ports.carried.append(
                    CarriedValue(
                        parameter=slot,
                        initial=outer,
                        result=program.results[result],
                        layer=layer,
                        result_layer=result,
                    )
                )
            elif outer is not None:
                ports.invariants.append(Invariant(slot, outer))
            else:
                ports.unfed.append(Unfed(slot, layer))
        return ports


def loop(
    node: Node,
    body: Body,
    program: Program,
    inputs: tuple[Slot, ...],
    outputs: tuple[Slot, ...],
    table: TableIndex,
) -> LoopRegion:
    is_loop = node.type == LOOP
    ports = _BodyInputs.of(node, body, program, inputs)
    carried = tuple(ports.carried)
    condition = next(
        (entry.internal for entry in body.outputs if entry.purpose == "execution_condition"), None
    )
    return LoopRegion(
        kind=LOOP_KINDS[node.type],
        program=program,
        trip_count=inputs[0] if is_loop and inputs[0] != ABSENT else None,
        condition=inputs[1] if is_loop and inputs[1] != ABSENT else None,
        condition_result=None if condition is None else program.results[condition],
        invariants=tuple(ports.invariants),
        carried=carried,
        sliced=tuple(ports.sliced),
        counters=tuple(ports.counters),
        unfed=tuple(ports.unfed),
        outputs=_loop_outputs(
            body, program, carried, outputs, into_sequence=node.type == SEQUENCE_MAP
        ),
        table=table,
        declared=_declared_types(body, program) if node.type == TENSOR_ITERATOR else {},
    )


def _sliced(node: Node, entry: InputMap, parameter: Slot, source: Slot, axis: int) -> Sliced:
    return Sliced(
        parameter=parameter,
        source=source,
        axis=axis,
        start=entry.start,
        end=entry.end,
        stride=entry.stride,
        part_size=entry.part_size,
        layer=entry.internal,
        whole_parts=node.type not in (SCAN, SEQUENCE_MAP),
    )


def _declared_types(body: Body, program: Program) -> dict[Slot, ElementType]:
    types = {
        slot: body.graph.by_id[layer].outputs[0].element_type
        for layer, slot in program.parameters.items()
    }
    return {slot: element_type for slot, element_type in types.items() if element_type is not None}


def _loop_outputs(
    body: Body,
    program: Program,
    carried: tuple[CarriedValue, ...],
    outputs: tuple[Slot, ...],
    *,
    into_sequence: bool,
) -> tuple[LastValue | Concatenated, ...]:
    ports: list[LastValue | Concatenated] = []
    for slot, entry in zip(outputs, body.outer_outputs, strict=False):
        result = program.results[entry.internal]
        if entry.axis is None:
            state = next((value for value in carried if value.result_layer == entry.internal), None)
            initial = state.initial if state else None
            zeros = state.parameter if state and state.initial is None else None
            ports.append(
                LastValue(
                    slot=slot,
                    result=result,
                    initial=initial,
                    carried_without_initial=zeros,
                    layer=entry.internal,
                )
            )
        else:
            ports.append(
                Concatenated(
                    slot=slot,
                    result=result,
                    axis=entry.axis,
                    reverse=entry.stride < 0,
                    stacked=entry.stacked,
                    layer=entry.internal,
                    part_size=entry.part_size,
                    start=entry.start,
                    end=entry.end,
                    into_sequence=into_sequence,
                )
            )
    return tuple(ports)


def _counter(node: Node, slot: Slot) -> Counter:
    port = node.outputs[0]
    shape = port.shape.lengths if port.shape.is_static else ()
    return Counter(slot, port.element_type or ElementType.I64, shape, node.id)
