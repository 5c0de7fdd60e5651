"""Loop, TensorIterator and If as Loop and If of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from loopscope.errors import WriteError, shorten
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import (
    LOOP,
    BackEdge,
    Body,
    BodyName,
    InputMap,
    LayerId,
    ModelGraph,
    Node,
    OutputMap,
)
from loopscope.ir.shape import PartialShape
from loopscope.write.onnx.openvino.translated_graph import (
    BOOLEAN,
    I64,
    OnnxTensor,
    Request,
    TranslatedGraph,
)

TranslateGraph = Callable[
    [ModelGraph, TranslatedGraph, Mapping[LayerId, OnnxTensor]], Mapping[LayerId, OnnxTensor]
]
"""Function that translates the nodes of a graph, and returns the tensor of each Result."""
_SCALAR = PartialShape(())
_NO_LIMIT = 2**63 - 1


@dataclass(slots=True)
class _BodyDraft:
    """A body under construction."""

    graph: TranslatedGraph
    outer_inputs: list[OnnxTensor | None]
    """Inputs of the node, to which captures are appended."""
    entries: list[InputMap] = field(default_factory=list[InputMap])
    outputs: list[OutputMap] = field(default_factory=list[OutputMap])
    back_edges: list[BackEdge] = field(default_factory=list[BackEdge])

    def capture(self, outer: OnnxTensor, name: str) -> OnnxTensor:
        """Return the outer tensor inside the body."""
        inner = self.graph.parameter(self.graph.unique(name), outer.element_type, outer.shape)
        self.entries.append(InputMap(len(self.outer_inputs), inner.ref.layer))
        self.outer_inputs.append(outer)
        return inner

    def finish(self, name: BodyName, graph_name: str) -> Body:
        return Body(
            name,
            self.graph.build(graph_name),
            tuple(self.entries),
            tuple(self.outputs),
            tuple(self.back_edges),
        )


def translate_if(request: Request, translate: TranslateGraph) -> Sequence[OnnxTensor]:
    """Return the outputs of an If."""
    inputs: list[OnnxTensor | None] = [_as_scalar(request, request.inputs[0])]
    bodies: list[Body] = []
    outputs: list[OnnxTensor] = []
    for body in request.node.bodies:
        draft = _BodyDraft(TranslatedGraph(request.graph.used_names), inputs)
        by_id = body.graph.by_id
        bound = {
            entry.internal: draft.capture(
                request.inputs[entry.external], by_id[entry.internal].name
            )
            for entry in body.inputs
        }
        _expect_fed(request, body, bound)
        results = translate(body.graph, draft.graph, bound)
        outputs = [results[entry.internal] for entry in body.outer_outputs]
        for index, tensor in enumerate(outputs):
            layer = draft.graph.result(tensor, f"{request.node.name} output {index}")
            draft.outputs.append(OutputMap(index, layer))
        bodies.append(draft.finish(body.name, f"{request.node.name} {body.name}"))
    ports = request.node.outputs
    return request.graph.add(
        "If",
        inputs,
        request.node.name,
        [
            (port.element_type or tensor.element_type, port.shape)
            for port, tensor in zip(ports, outputs, strict=True)
        ],
        bodies,
    )


def translate_loop(request: Request, translate: TranslateGraph) -> Sequence[OnnxTensor]:
    """Return the outputs of a Loop or TensorIterator, as a Loop of ONNX."""
    return _LoopTranslation(request, request.node.bodies[0], translate).outputs()


@dataclass(slots=True)
class _LoopTranslation:
    request: Request
    body: Body
    translate: TranslateGraph
    draft: _BodyDraft = field(init=False)
    iteration: OnnxTensor = field(init=False)
    states: dict[LayerId, int] = field(default_factory=dict[LayerId, int])
    """Output number of the ONNX Loop by the Result of a carried value."""

    def outputs(self) -> Sequence[OnnxTensor]:
        inner = TranslatedGraph(self.request.graph.used_names)
        self.iteration = inner.parameter(inner.unique("iteration"), I64, _SCALAR)
        condition = inner.parameter(inner.unique("condition"), BOOLEAN, _SCALAR)
        start = self._start()
        self.draft = _BodyDraft(inner, [self._trip_count(), start])
        self.draft.entries += [
            InputMap(-1, self.iteration.ref.layer, purpose="current_iteration"),
            InputMap(1, condition.ref.layer),
        ]
        bound, carried = self._bind_carried()
        extra = self._bind_unread_states(carried)
        self._bind_others(bound)
        _expect_fed(self.request, self.body, bound)
        results = self.translate(self.body.graph, inner, bound)
        layer = self._condition_result(results)
        self.draft.outputs.append(OutputMap(-1, layer, purpose="execution_condition"))
        self.draft.back_edges.append(BackEdge(layer, condition.ref.layer))
        return self._close(results, [*carried, *extra])

    def _start(self) -> OnnxTensor:
        if self.request.node.type == LOOP:
            return _as_scalar(self.request, self.request.inputs[1])
        return self.request.graph.constant(np.array(True))

    def _trip_count(self) -> OnnxTensor:
        """Return the limit of iterations: a negative one is none, and slices may run out."""
        request = self.request
        limits = [self._parts(entry) for entry in self.body.inputs if entry.axis is not None]
        if request.node.type == LOOP:
            count = request.cast(_as_scalar(request, request.inputs[0]), I64)
            if count.value is not None:
                number = int(count.value)
                count = request.graph.constant(np.array(number if number >= 0 else _NO_LIMIT))
            else:
                zero, no_limit = (request.graph.constant(np.array(n)) for n in (0, _NO_LIMIT))
                is_negative = request.add("Less", [count, zero], BOOLEAN)
                count = request.add("Where", [is_negative, no_limit, count], I64, _SCALAR)
            limits.insert(0, count)
        if not limits:
            return request.graph.constant(np.array(1))
        if len(limits) == 1:
            return limits[0]
        return request.add("Min", limits, I64, _SCALAR)

    def _parts(self, entry: InputMap) -> OnnxTensor:
        """Return the number of slices of an input."""
        request = self.request
        if {entry.start, entry.end} != {0, -1} or entry.axis is None:
            raise request.refusal(f"its input {entry.external} is sliced with bounds")
        length = _length(request, request.graph, request.inputs[entry.external], entry.axis)
        if entry.part_size == 1:
            return length
        size = request.graph.constant(np.array(entry.part_size))
        return request.add("Div", [length, size], I64, _SCALAR)

    def _bind_carried(
        self,
    ) -> tuple[dict[LayerId, OnnxTensor], list[tuple[OnnxTensor, LayerId]]]:
        """Return the tensors of carried Parameters, and each with the Result that feeds it."""
        by_id = self.body.graph.by_id
        entries = {
            entry.internal: entry
            for entry in self.body.inputs
            if entry.axis is None and not entry.is_iteration_number
        }
        bound: dict[LayerId, OnnxTensor] = {}
        carried: list[tuple[OnnxTensor, LayerId]] = []
        for edge in self.body.back_edges:
            entry = entries.get(edge.to_layer)
            if entry is None or edge.to_layer in bound:
                raise self.request.refusal("a carried value of it has no initial value")
            initial = self.request.inputs[entry.external]
            port = by_id[edge.to_layer].outputs[0]
            tensor = self.draft.graph.parameter(
                self.draft.graph.unique(by_id[edge.to_layer].name),
                port.element_type or initial.element_type,
                port.shape,
            )
            bound[edge.to_layer] = tensor
            carried.append((tensor, edge.from_layer))
            self._add_state(tensor, initial)
            self.states.setdefault(edge.from_layer, len(carried) - 1)
        return bound, carried

    def _add_state(self, tensor: OnnxTensor, initial: OnnxTensor) -> None:
        self.draft.entries.append(InputMap(len(self.draft.outer_inputs), tensor.ref.layer))
        self.draft.outer_inputs.append(initial)

    def _bind_unread_states(
        self, carried: Sequence[tuple[OnnxTensor, LayerId]]
    ) -> list[tuple[OnnxTensor, LayerId]]:
        """Add a state for each last value that is not carried: only states are last values."""
        extra: list[tuple[OnnxTensor, LayerId]] = []
        for index, entry in enumerate(self.body.outer_outputs):
            if entry.axis is not None or entry.internal in self.states:
                continue
            port = self.request.node.outputs[index]
            result = self.body.graph.by_id[entry.internal].inputs[0]
            element_type = port.element_type or result.element_type
            if element_type is None:
                raise self.request.refusal(f"the element type of its output {index} is not known")
            lengths = [
                length.length if length.is_static else 0 for length in port.shape.dimensions or ()
            ]
            zeros = self.request.graph.constant(np.zeros(lengths, element_type.dtype))
            tensor = self.draft.graph.parameter(
                self.draft.graph.unique("previous"), element_type, port.shape
            )
            self.states[entry.internal] = len(carried) + len(extra)
            extra.append((tensor, entry.internal))
            self._add_state(tensor, zeros)
        return extra

    def _bind_others(self, bound: dict[LayerId, OnnxTensor]) -> None:
        """Bind the iteration number, invariant values and slices."""
        by_id = self.body.graph.by_id
        for entry in self.body.inputs:
            if entry.internal in bound:
                continue
            parameter = by_id[entry.internal]
            if entry.is_iteration_number:
                bound[entry.internal] = self._counter(parameter)
                continue
            if entry.external < 0:
                raise self.request.refusal(f"nothing feeds {shorten(parameter.name, 60)!r}")
            outer = self.request.inputs[entry.external]
            captured = self.draft.capture(outer, parameter.name)
            bound[entry.internal] = (
                captured if entry.axis is None else self._slice(captured, entry, parameter)
            )

    def _inner(self) -> Request:
        """Return a request that adds nodes to the body."""
        return Request(self.draft.graph, self.request.node, self.request.inputs)

    def _counter(self, parameter: Node) -> OnnxTensor:
        port, inner = parameter.outputs[0], self._inner()
        number = inner.cast(self.iteration, port.element_type or I64)
        if port.shape.rank == 0 or port.shape.rank is None:
            return number
        shape = self.draft.graph.constant(np.array([1] * port.shape.rank))
        return inner.add("Reshape", [number, shape], number.element_type, port.shape)

    def _slice(self, captured: OnnxTensor, entry: InputMap, parameter: Node) -> OnnxTensor:
        """Return the part of this iteration."""
        graph, inner, axis = self.draft.graph, self._inner(), entry.axis or 0
        size = graph.constant(np.array(entry.part_size))
        begin = inner.add("Mul", [self.iteration, size], I64, _SCALAR)
        if entry.stride < 0:
            length = _length(inner, graph, captured, axis)
            following = inner.add("Add", [begin, size], I64, _SCALAR)
            begin = inner.add("Sub", [length, following], I64, _SCALAR)
        end = inner.add("Add", [begin, size], I64, _SCALAR)
        vector = graph.constant(np.array([1]))
        bounds = [inner.add("Reshape", [bound, vector], I64) for bound in (begin, end)]
        axes = graph.constant(np.array([axis]))
        return inner.add(
            "Slice", [captured, *bounds, axes], captured.element_type, parameter.outputs[0].shape
        )

    def _condition_result(self, results: Mapping[LayerId, OnnxTensor]) -> LayerId:
        layer = next(
            (
                entry.internal
                for entry in self.body.outputs
                if entry.purpose == "execution_condition"
            ),
            None,
        )
        graph = self.draft.graph
        value = (
            graph.constant(np.array(True))
            if layer is None
            else _as_scalar(self._inner(), results[layer])
        )
        return graph.result(value, "continues")

    def _close(
        self, results: Mapping[LayerId, OnnxTensor], states: Sequence[tuple[OnnxTensor, LayerId]]
    ) -> Sequence[OnnxTensor]:
        """Add the Loop, and join the parts of its concatenated outputs."""
        graph, node = self.draft.graph, self.request.node
        types: list[tuple[ElementType | None, PartialShape]] = []
        for index, (tensor, result) in enumerate(states):
            layer = graph.result(results[result], f"state {index}")
            self.draft.outputs.append(OutputMap(index, layer))
            self.draft.back_edges.append(BackEdge(layer, tensor.ref.layer))
            types.append((results[result].element_type, PartialShape(None)))
        scans: dict[int, int] = {}
        for index, entry in enumerate(self.body.outer_outputs):
            if entry.axis is None:
                continue
            part = results[entry.internal]
            layer = graph.result(part, f"part {index}")
            scans[index] = len(states) + len(scans)
            self.draft.outputs.append(OutputMap(scans[index], layer, axis=0, stacked=True))
            rank = part.shape.rank
            shape = PartialShape(None) if rank is None else PartialShape.unknown(rank + 1)
            types.append((part.element_type, shape))
        body = self.draft.finish("body", f"{node.name} body")
        tensors = self.request.graph.add(
            "Loop",
            self.draft.outer_inputs,
            node.name,
            types,
            (body,),
        )
        return [
            tensors[self.states[entry.internal]]
            if entry.axis is None
            else self._joined(tensors[scans[index]], entry, results[entry.internal])
            for index, entry in enumerate(self.body.outer_outputs)
        ]

    def _joined(self, stacked: OnnxTensor, entry: OutputMap, part: OnnxTensor) -> OnnxTensor:
        """Return the concatenation of stacked parts along their axis."""
        request, graph, rank = self.request, self.request.graph, part.shape.rank
        if rank is None:
            raise request.refusal("the rank of the parts of an output is not known")
        if {entry.start, entry.end} != {0, -1}:
            raise request.refusal("an output of it is concatenated with bounds")
        kind = stacked.element_type
        if entry.stride < 0:
            bounds = [graph.constant(np.array([n])) for n in (-1, -_NO_LIMIT, 0, -1)]
            stacked = request.add("Slice", [stacked, *bounds], kind, stacked.shape)
        if rank == 0:
            return stacked
        axis = (entry.axis or 0) % rank
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
        moved = request.add("Transpose", [stacked], kind, stacked.shape, perm=tuple(order))
        lengths = request.add("Shape", [moved], I64, PartialShape.of([rank + 1]))
        pieces = []
        for first, last in ((0, axis), (axis, axis + 2), (axis + 2, rank + 1)):
            if first == last:
                continue
            ends = [graph.constant(np.array([n])) for n in (first, last)]
            piece = request.add("Slice", [lengths, *ends], I64, PartialShape.of([last - first]))
            if first == axis and last == axis + 2:
                zero = graph.constant(np.array([0]))
                piece = request.add("ReduceProd", [piece, zero], I64, PartialShape.of([1]))
            pieces.append(piece)
        target = request.add("Concat", pieces, I64, PartialShape.of([rank]), axis=0)
        return request.add(
            "Reshape", [moved, target], kind, PartialShape.unknown(rank), allowzero=1
        )


def _expect_fed(request: Request, body: Body, bound: Mapping[LayerId, OnnxTensor]) -> None:
    """Raise ``WriteError`` for a Parameter without an input: OpenVINO fills it with zeros."""
    for parameter in body.graph.parameters:
        if parameter.id not in bound:
            raise request.refusal(f"nothing feeds {shorten(parameter.name, 60)!r}")


def _as_scalar(request: Request, tensor: OnnxTensor) -> OnnxTensor:
    """Return a tensor of one element as a scalar."""
    if tensor.shape.rank == 0:
        return tensor
    if tensor.value is not None and tensor.value.size == 1:
        return request.graph.constant(tensor.value.reshape(()))
    shape = request.graph.constant(np.array([], np.int64))
    return request.add("Reshape", [tensor, shape], tensor.element_type, _SCALAR)


def _length(request: Request, graph: TranslatedGraph, tensor: OnnxTensor, axis: int) -> OnnxTensor:
    """Return the length of a tensor along an axis, as a scalar."""
    rank = tensor.shape.rank
    if rank is None:
        raise WriteError(
            f"{shorten(request.node.name, 60)!r} ({request.node.type}) cannot be written as ONNX: "
            "the rank of a sliced input is not known"
        )
    length = tensor.shape.at(axis % rank)
    if length.is_static:
        return graph.constant(np.array(length.length))
    lengths = request.add("Shape", [tensor], I64, PartialShape.of([rank]))
    index = graph.constant(np.array(axis % rank))
    return request.add("Gather", [lengths, index], I64, _SCALAR, axis=0)
