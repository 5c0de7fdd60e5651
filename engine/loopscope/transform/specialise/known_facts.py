"""Facts known before a run: inputs, shapes, iteration counts and branches.

``TakenPaths`` are the counts and branches that earlier runs took. An If is replaced by the branch
that always runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.checks import region, trips
from loopscope.checks.known import scalar_value
from loopscope.checks.propagate import Propagated
from loopscope.errors import InputError, listed, shorten
from loopscope.ir.element_type import INDEX_TYPES, ElementType
from loopscope.ir.model import LOOP, SEQUENCE_MAP, Body, LayerId, Model, Node, OutputRef, Signature
from loopscope.ir.replace import replace
from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import NOTHING_KNOWN, Known
from loopscope.transform.specialise.editable_graph import EditableGraph, ModelNames, constant_node


@dataclass(frozen=True, slots=True)
class TakenPaths:
    """Branches and counts that were equal in all executions of some runs, by address."""

    runs: int = 0
    branches: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """True for the then branch, by the address of the If without iterations."""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Iteration count by the address of the loop without iterations."""
    varying: frozenset[str] = frozenset()
    """Addresses whose branch or count was not always the same."""

    def __or__(self, other: TakenPaths) -> TakenPaths:
        """Return what is true of the runs of both."""
        varying = {*self.varying, *other.varying}
        for left, right in ((self.branches, other.branches), (self.counts, other.counts)):
            varying |= {
                address for address, value in left.items() if right.get(address, value) != value
            }
        return TakenPaths(
            self.runs + other.runs,
            {
                address: value
                for address, value in {**self.branches, **other.branches}.items()
                if address not in varying
            },
            {
                address: value
                for address, value in {**self.counts, **other.counts}.items()
                if address not in varying
            },
            frozenset(varying),
        )

    def agrees(self, run: TakenPaths) -> bool:
        """Return True if a run took these paths, as far as it reached them."""
        return (
            all(
                run.branches.get(address, value) == value
                for address, value in self.branches.items()
            )
            and all(
                run.counts.get(address, value) == value for address, value in self.counts.items()
            )
            and run.varying.isdisjoint({*self.branches, *self.counts})
        )


NO_PATHS = TakenPaths()


def known_count(
    graph: EditableGraph, address: str, layer: LayerId, body_address: str, known: Propagated
) -> int | None:
    """Return the iteration count that propagation proves, or None."""
    node = graph.nodes[layer]
    if node.type == SEQUENCE_MAP:
        return None
    sources = [graph.source(layer, index) for index in range(len(node.inputs))]
    outer = region.with_absent(node, sources, _facts(address, sources, known))
    body = node.bodies[0]
    results = {result.id: known.output(body_address, result.id) for result in body.graph.results}
    count = region.iterations(node, body, outer, results)
    is_sliced = any(entry.axis is not None for entry in body.inputs)
    if node.type == LOOP and is_sliced and trips.of_slices(body, outer).least < count.least:
        return None  # the slices may run out before
    return count.length if count.is_static else None


def _facts(address: str, sources: list[OutputRef | None], known: Propagated) -> list[Known]:
    return [
        NOTHING_KNOWN if source is None else known.output(address, source.layer, source.output)
        for source in sources
    ]


def fix_count(graph: EditableGraph, layer: LayerId, count: int) -> bool:
    """Make a Loop run exactly ``count`` times, without a condition.

    Return False for another operation: slices decide its count.
    """
    node = graph.nodes[layer]
    if node.type != LOOP or len(node.inputs) < 2:
        return False
    limit, condition = node.inputs[:2]
    element_type = limit.element_type if limit.element_type in INDEX_TYPES else ElementType.I64
    shape = (1,) if limit.shape == PartialShape.of([1]) else ()
    constants = [
        graph.insert_constant(
            layer, f"{node.name}_trip_count", np.full(shape, count, element_type.dtype)
        ),
        graph.insert_constant(layer, f"{node.name}_condition", np.array(True)),
    ]
    graph.sources[layer][:2] = constants
    ports = (
        replace(limit, element_type=element_type),
        replace(condition, element_type=ElementType.BOOLEAN),
    )
    body = _always_continuing(node.bodies[0], graph.names)
    graph.put(replace(node, inputs=(*ports, *node.inputs[2:]), bodies=(body,)))
    return True


def _always_continuing(body: Body, names: ModelNames) -> Body:
    """Return the body with true as its execution condition."""
    result = next(
        (entry.internal for entry in body.outputs if entry.purpose == "execution_condition"), None
    )
    if result is None:
        return body
    graph = EditableGraph(body.graph, names)
    node = graph.nodes[result]
    if node.inputs:
        graph.sources[result] = [graph.insert_constant(result, "condition", np.array(True))]
    return replace(body, graph=graph.build())


def is_loop_of_one_body(node: Node) -> bool:
    """Return True for a loop whose body can be copied."""
    return node.is_loop and node.type != SEQUENCE_MAP and len(node.bodies) == 1


def known_condition(
    graph: EditableGraph, address: str, layer: LayerId, known: Propagated
) -> bool | None:
    """Return the condition of an If, or None if propagation does not know it."""
    source = graph.source(layer, 0)
    if source is None:
        return None
    value = scalar_value(known.output(address, source.layer, source.output))
    return None if value is None else bool(value)


def inline_branch(graph: EditableGraph, layer: LayerId, branch: Body) -> bool:
    """Replace an If by the nodes of a branch; return False if a Parameter of it is not fed."""
    node = graph.nodes[layer]
    entries = {entry.internal: entry.external for entry in branch.inputs}
    if any(
        not 0 <= entries.get(parameter.id, -1) < len(node.inputs)
        for parameter in branch.graph.parameters
    ) or len(branch.outer_outputs) < len(node.outputs):
        return False
    bound = {
        parameter.id: graph.source(layer, entries[parameter.id])
        for parameter in branch.graph.parameters
    }
    results = graph.inline(layer, branch.graph, bound)
    for index, entry in enumerate(branch.outer_outputs):
        if index < len(node.outputs):
            graph.keep_names(OutputRef(layer, index))
            graph.redirect(OutputRef(layer, index), results[entry.internal])
    graph.remove(layer)
    return True


def with_values(model: Model, values: Mapping[str, Any]) -> Model:
    """Return the model with a constant in place of each input of ``values``.

    ``InputError`` for an unknown input, and for a value of another type or shape.
    """
    constants: dict[LayerId, np.ndarray] = {}
    for name, value in values.items():
        signature = input_named(model, name)
        constants[signature.layer] = _fitting(signature, name, value)
    return _with_nodes(
        model,
        {layer: _constant(model, layer, array) for layer, array in constants.items()},
    )


def with_shapes(model: Model, shapes: Mapping[str, Sequence[int]]) -> Model:
    """Return the model with static shapes of some inputs.

    ``InputError`` for an unknown input, and for a shape that its declaration excludes.
    """
    nodes: dict[LayerId, Node] = {}
    for name, lengths in shapes.items():
        signature = input_named(model, name)
        shape = PartialShape.of(lengths)
        if signature.shape.intersect(shape) is None:
            raise InputError(
                f"the input {shorten(name, 60)!r} has the shape {signature.shape}, which "
                f"{shape} does not fit"
            )
        node = nodes.get(signature.layer, model.graph.by_id[signature.layer])
        attributes = dict(node.attributes)
        if "shape" in attributes:
            attributes["shape"] = ",".join(map(str, lengths))
        nodes[signature.layer] = replace(
            node, attributes=attributes, outputs=(replace(node.outputs[0], shape=shape),)
        )
    return _with_nodes(model, nodes)


def input_named(model: Model, name: str) -> Signature:
    """Return the input with this name; ``InputError`` if there is none, or several."""
    signatures = model.inputs_called.get(name, ())
    if len(signatures) != 1:
        names = listed([repr(signature.name) for signature in model.inputs])
        raise InputError(
            f"{shorten(name, 60)!r} is not the name of one input, expected one of {names}"
        )
    return signatures[0]


def _fitting(signature: Signature, name: str, value: Any) -> np.ndarray:
    """Return the value in the type of the input; ``InputError`` if it does not fit."""
    array = np.asarray(value)
    element_type = signature.element_type
    if element_type is None or signature.form != "tensor":
        raise InputError(f"the input {shorten(name, 60)!r} has no tensor type, and cannot be set")
    if element_type is ElementType.STRING:
        fitting = array.astype(object)
    else:
        fitting = _converted(array, element_type, name)
    if not signature.shape.contains(fitting.shape):
        raise InputError(
            f"the input {shorten(name, 60)!r} has the shape {signature.shape}, got "
            f"{list(fitting.shape)}"
        )
    return fitting


def _converted(array: np.ndarray, element_type: ElementType, name: str) -> np.ndarray:
    """Return an array in a type; only a float may be rounded."""
    try:
        converted = array.astype(element_type.dtype)
        fits = element_type.is_float or np.array_equal(converted, array)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise InputError(
            f"the input {shorten(name, 60)!r} is {element_type}, which "
            f"{shorten(str(array.tolist()), 60)} does not fit"
        )
    return converted


def _constant(model: Model, layer: LayerId, array: np.ndarray) -> Node:
    parameter = model.graph.by_id[layer]
    node = constant_node(model.dialect, layer, parameter.name, array)
    port = replace(node.outputs[0], names=parameter.outputs[0].names)
    return replace(node, outputs=(replace(port, id=parameter.outputs[0].id),))


def _with_nodes(model: Model, nodes: Mapping[LayerId, Node]) -> Model:
    graph = model.graph
    return replace(
        model,
        graph=replace(graph, nodes=tuple([nodes.get(node.id, node) for node in graph.nodes])),
    )
