"""Backward loop of a loop: a Loop with the same trip count, over a copy of the body followed by its
derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.builder.frame import GraphFrame
from loopscope.builder.gradient.backward_ports import (
    BackwardCarried,
    Fed,
    Joined,
    Number,
    Outside,
    Product,
    Products,
    Span,
)
from loopscope.builder.gradient.forward_records import RecordRequest, record
from loopscope.builder.gradient.forward_values import ForwardValues
from loopscope.builder.gradient.node_edits import PrunedFrame, adopt, drop_unused
from loopscope.builder.gradient.rules import filled, zeros
from loopscope.builder.gradient.step import BodyTensors, Flow, GradientStep, check_repeatable
from loopscope.builder.tensor import Tensor
from loopscope.checks import region
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import (
    LOOP,
    SCAN,
    BackEdge,
    Body,
    InputMap,
    LayerId,
    Node,
    OutputMap,
    OutputRef,
)
from loopscope.ir.rt_info import walks_back
from loopscope.ir.shape import Dimension, PartialShape, static
from loopscope.ops.declare import Known

Reverse = Callable[[Sequence[tuple[Tensor, Tensor]], Sequence[Tensor]], list[Tensor | None]]
"""Function from targets with their adjoints to the adjoints of sources, all in the current graph or
body.
"""


def back_through_loop(step: GradientStep, reverse: Reverse) -> Mapping[int, Tensor]:
    """Return the adjoints of a loop's inputs by index.

    ``ValueError`` if the loop cannot be differentiated.
    """
    body = step.node.bodies[0]
    inside = BodyTensors.of(step, body)
    outputs = {entry: step.adjoints[number] for number, entry in enumerate(body.outer_outputs)}
    target_results = {entry.internal for entry, adjoint in outputs.items() if adjoint is not None}
    active = {entry.internal for entry in body.inputs if entry.external in step.active}
    flow = Flow.of(inside, active, target_results)
    if not flow.parameters:
        return {}
    if _iterations(step, inside).most == 0:
        return _adjoints_without_iterations(step, body)
    return _Backward(
        step,
        inside,
        flow,
        {entry: adjoint for entry, adjoint in outputs.items() if adjoint is not None},
    ).build(reverse)


def _iterations(step: GradientStep, inside: BodyTensors) -> Dimension:
    """Return the trip count as far as it is known before a run."""
    results = {result.id: inside.known(result.id) for result in inside.body.graph.results}
    outer = region.with_absent(
        step.node, [None if tensor is None else tensor.source for tensor in step.fed], step.known
    )
    return region.iterations(step.node, inside.body, outer, results)


def _adjoints_without_iterations(step: GradientStep, body: Body) -> Mapping[int, Tensor]:
    """Return the adjoints of a loop that never runs: its outputs are its initial values. OpenVINO
    refuses a loop that is known to run no iterations.
    """
    by_input: dict[int, Tensor] = {}
    for adjoint, output in zip(step.adjoints, body.outer_outputs, strict=False):
        edge = next((edge for edge in body.back_edges if edge.from_layer == output.internal), None)
        entry = next(
            (item for item in body.inputs if edge is not None and item.internal == edge.to_layer),
            None,
        )
        if (
            adjoint is not None
            and output.axis is None
            and entry is not None
            and entry.external in step.active
        ):
            by_input[entry.external] = (
                by_input[entry.external] + adjoint if entry.external in by_input else adjoint
            )
    return by_input


@dataclass(frozen=True, slots=True, eq=False)
class _Returned:
    """Adjoint of an input: a last value, concatenated slices, or a product."""

    external: int
    entry: InputMap
    port: BackwardCarried | Joined | Product

    @property
    def joined(self) -> tuple[Joined, ...]:
        """Ports that are concatenated over the iterations for this adjoint."""
        match self.port:
            case Joined() as one:
                return (one,)
            case Product(left, right):
                return left, right
            case BackwardCarried():
                return ()

    def is_made_of(self, port: object) -> bool:
        """Return True if an output of the backward loop contributes to this adjoint."""
        return port is self.port or port in self.joined


class _Backward:
    """The backward loop under construction."""

    def __init__(
        self,
        step: GradientStep,
        inside: BodyTensors,
        flow: Flow,
        adjoints: Mapping[OutputMap, Tensor],
    ) -> None:
        self.step, self.inside, self.flow, self.adjoints = step, inside, flow, adjoints
        self.graph, self.body = step.graph, inside.body
        self.frame = GraphFrame(
            self.graph, self.graph.frame, f"the backward loop of {step.node.name!r}"
        )
        self.values = ForwardValues(step, inside, self.frame)
        self.fed: list[Fed] = []
        self.carried: list[BackwardCarried] = []
        self.of_state: dict[LayerId, Tensor] = {}
        """Adjoint of each carried Parameter, from the following forward iteration."""
        self.initial: dict[LayerId, Tensor | None] = {}
        """Adjoint of each carried value after the last iteration."""
        self.returned: list[_Returned] = []
        self.products = Products(self.frame)

    def build(self, reverse: Reverse) -> Mapping[int, Tensor]:
        with self.graph.inside(self.frame):
            self._trace(reverse)
        fed, carried = [*self.values.fed, *self.fed], [*self.carried, *self.values.carried]
        results = [item.after for item in self.carried]
        results += [port.part for port in self._joined()]
        pruned = drop_unused(
            self.frame,
            0,
            [*results, *(item.parameter for item in self.carried)],
            [(item.parameter, item.after) for item in carried],
        )
        check_repeatable(self.graph, self.frame.nodes)
        fed = [item for item in fed if pruned.holds(item.parameter)]
        carried = [item for item in carried if pruned.holds(item.parameter)]
        records = [item for port in carried for item in port.records] + [
            item for port in fed for item in port.records
        ]
        outside = self._outside(records)
        return self._returned(self._node(pruned, fed, carried, outside), outside, carried)

    # -- the body
    # ----

    def _trace(self, reverse: Reverse) -> None:
        """Build the forward body with its values in this iteration, and the derivatives of its
        nodes.
        """
        graph = self.body.graph
        bound = {parameter.id: self.values.of(parameter) for parameter in graph.parameters}
        copies = adopt(self.frame, graph, self.inside.known, bound)
        incoming = self._incoming(copies)
        seeds = [
            (copies[source], adjoint)
            for layer, parts in incoming.items()
            if (source := self.inside.source(layer)) is not None
            for adjoint in parts
        ]
        layers = [node.id for node in graph.parameters if node.id in self.flow.parameters]
        with self.graph.within("backward"):
            input_adjoints = reverse(seeds, [bound[layer] for layer in layers])
            for layer, adjoint in zip(layers, input_adjoints, strict=True):
                self._leave(layer, bound[layer], adjoint)

    def _incoming(self, copies: Mapping[OutputRef, Tensor]) -> dict[LayerId, list[Tensor]]:
        """Return the adjoint of each Result in this iteration, as summands."""
        parts: dict[LayerId, list[Tensor]] = {layer: [] for layer in self.flow.results}
        last = {
            entry.internal: adjoint
            for entry, adjoint in self.adjoints.items()
            if entry.axis is None
        }
        for edge in self.body.back_edges:
            if edge.to_layer in self.flow.parameters and not self._is_given_anew(edge.to_layer):
                known = self.inside.known(edge.to_layer)
                name = f"adjoint_of_{self.body.graph.by_id[edge.to_layer].name}"
                parameter = self.frame.parameter(name, Known(known.element_type, known.shape))
                self.of_state[edge.to_layer] = parameter
                self.initial[edge.to_layer] = last.pop(edge.from_layer, None)
                parts.setdefault(edge.from_layer, []).append(parameter)
        for layer, adjoint in last.items():
            if layer in parts:
                parts[layer].append(self._only_in_the_last(layer, adjoint))
        for entry, adjoint in self.adjoints.items():
            if entry.axis is not None and entry.internal in parts:
                source = self.inside.source(entry.internal)
                assert source is not None
                parts[entry.internal].append(self._part_of(entry, adjoint, copies[source]))
        return parts

    def _is_given_anew(self, layer: LayerId) -> bool:
        return any(
            entry.internal == layer and (entry.axis is not None or entry.is_iteration_number)
            for entry in self.body.inputs
        )

    def _only_in_the_last(self, layer: LayerId, adjoint: Tensor) -> Tensor:
        """Return the adjoint of a last value that is not carried: it is nonzero in the last forward
        iteration, which is the first backward one.
        """
        name = f"adjoint_of_{self.body.graph.by_id[layer].name}"
        parameter = self.frame.parameter(name, Known(adjoint.element_type, adjoint.shape))
        self.carried.append(
            BackwardCarried(parameter, lambda _: adjoint, filled(self.graph, 0, parameter))
        )
        return parameter

    def _part_of(self, entry: OutputMap, adjoint: Tensor, joined: Tensor) -> Tensor:
        """Return this iteration's slice of the adjoint of a concatenated output; ``joined`` is the
        forward slice.
        """
        known = self.inside.known(entry.internal)
        result = self.body.graph.by_id[entry.internal]
        rank = known.shape.rank
        if rank is None or entry.axis is None:
            raise ValueError(f"the rank of the concatenated value {result.name!r} is not known")
        adds_axis = entry.stacked or rank == 0
        axis = entry.axis % (rank + 1 if adds_axis else rank)
        dimensions = known.shape.dimensions or ()
        if adds_axis:
            dimensions = (*dimensions[:axis], static(1), *dimensions[axis:])
        elif not dimensions[axis].is_static:
            return self._part_of_any_length(entry, adjoint, joined, axis)
        size = dimensions[axis].length
        part = self.frame.parameter(
            f"adjoint_of_{result.name}_part", Known(adjoint.element_type, PartialShape(dimensions))
        )
        self.fed.append(Fed(part, lambda _: adjoint, axis, -size if entry.stride > 0 else size))
        return self.graph.apply("Squeeze", (part, np.array([axis])), {})[0] if adds_axis else part

    def _part_of_any_length(
        self, entry: OutputMap, adjoint: Tensor, joined: Tensor, axis: int
    ) -> Tensor:
        """Return this iteration's slice of an adjoint whose slices have different lengths.

        The position in the concatenated tensor is carried, and each slice moves it by its length.
        """
        name = f"adjoint_of_{self.body.graph.by_id[entry.internal].name}"
        whole = self.frame.parameter(f"{name}_all", adjoint.known)
        self.fed.append(Fed(whole, lambda _: adjoint))
        place = self.frame.parameter(f"{name}_place", Known(ElementType.I64, PartialShape.of([1])))
        length = self._length(joined, axis)
        # The last iteration runs first in the backward loop. Its slice is the last one, or the
        # first one if the slices are concatenated backwards.
        moved = place - length if entry.stride > 0 else place + length
        begin, end = (moved, place) if entry.stride > 0 else (place, moved)
        first = (
            (lambda _: self._length(adjoint, axis))
            if entry.stride > 0
            else (lambda _: self.graph.constant(np.array([0])))
        )
        self.carried.append(BackwardCarried(place, first, moved))
        return self.graph.apply("Slice", (whole, begin, end, np.array([1]), np.array([axis])), {})[
            0
        ]

    def _leave(self, layer: LayerId, value: Tensor, contribution: Tensor | None) -> None:
        """Pass on a Parameter's adjoint of this iteration: carry it to the previous forward
        iteration, add it to a sum, or concatenate it.
        """
        adjoint = filled(self.graph, 0, value) if contribution is None else contribution
        entry = next((item for item in self.body.inputs if item.internal == layer), None)
        if layer in self.of_state:
            port = self._carried_adjoint(layer, adjoint)
            self.carried.append(port)
            if entry is not None and entry.external in self.step.active:
                self.returned.append(_Returned(entry.external, entry, port))
        elif entry is None or entry.external not in self.step.active:
            return
        elif entry.axis is not None:
            self._join(entry, adjoint)
        elif contribution is not None:
            outer = self.step.fed[entry.external]
            assert outer is not None
            product = self.products.of(contribution)
            if product is not None:
                self.returned.append(_Returned(entry.external, entry, product))
                return
            total = self.frame.parameter(
                f"gradient_of_{self.body.graph.by_id[layer].name}",
                Known(outer.element_type, outer.shape),
            )
            if adjoint.element_type is not outer.element_type:
                adjoint = self.graph.apply(
                    "Convert", (adjoint,), {"destination_type": outer.element_type}
                )[0]
            port = BackwardCarried(total, lambda _: self._zeros_like(outer), total + adjoint)
            self.carried.append(port)
            self.returned.append(_Returned(entry.external, entry, port))

    def _joined(self) -> list[Joined]:
        """Return all concatenated ports, each once."""
        return list(dict.fromkeys(port for item in self.returned for port in item.joined))

    def _join(self, entry: InputMap, adjoint: Tensor) -> None:
        outer = self.step.fed[entry.external]
        assert outer is not None
        assert outer.rank is not None
        assert entry.axis is not None
        axis = entry.axis % outer.rank
        if self.step.node.type == SCAN:
            adjoint = self.graph.apply("Unsqueeze", (adjoint, np.array([axis])), {})[0]
        port = Joined(adjoint, axis, -entry.part_size if entry.stride > 0 else entry.part_size)
        self.returned.append(_Returned(entry.external, entry, port))

    # -- outside
    # ----

    def _zeros_like(self, outer: Tensor) -> Tensor:
        return filled(self.graph, 0, outer)

    def _carried_adjoint(self, layer: LayerId, after: Tensor) -> BackwardCarried:
        """Return the port of a carried adjoint. It starts with the adjoint of the last-value
        output, or with zeros of that shape.
        """
        first, known = self.initial[layer], self.inside.known(layer)
        if first is not None:
            return BackwardCarried(self.of_state[layer], lambda _: first, after)
        if known.shape.is_static:
            return BackwardCarried(self.of_state[layer], lambda _: zeros(self.graph, known), after)
        edge = next(edge for edge in self.body.back_edges if edge.to_layer == layer)
        last = RecordRequest("last", edge.from_layer, known)
        return BackwardCarried(
            self.of_state[layer],
            lambda outside: self._zeros_like(outside.recorded[last]),
            after,
            (last,),
        )

    def _outside(self, records: Sequence[RecordRequest]) -> Outside:
        """Add the records that the body needs, and determine the trip count."""
        known = _iterations(self.step, self.inside)
        requests = list(dict.fromkeys(records))
        if not known.is_static and not any(
            request.form in ("whole", "shape") for request in requests
        ):
            requests.append(RecordRequest("count", None, Known()))
        recorded = (
            dict(
                zip(
                    requests,
                    record(self.graph.frame, self.step.node.id, requests, known),
                    strict=True,
                )
            )
            if requests
            else {}
        )
        count: Number = (
            known.length
            if known.is_static
            else self._length(
                next(
                    recorded[request]
                    for request in requests
                    if request.form in ("whole", "shape", "count")
                ),
                0,
            )
        )
        return Outside(count, recorded)

    def _length(self, tensor: Tensor, axis: int) -> Tensor:
        """Return the length of an axis as an i64 vector of one element."""
        lengths = self.graph.apply("ShapeOf", (tensor,), {})[0]
        return self.graph.apply("Gather", (lengths, np.array([axis]), np.array(0)), {})[0]

    def _node(
        self,
        pruned: PrunedFrame,
        fed: Sequence[Fed],
        carried: Sequence[BackwardCarried],
        outside: Outside,
    ) -> Mapping[object, Tensor]:
        """Add the Loop, and return the output of each carried and each concatenated port."""
        count = outside.count
        outer = [
            self.graph.constant(np.array(count), name="count")
            if isinstance(count, int)
            else self.graph.apply("Squeeze", (count, np.array([0])), {}, name="count")[0],
            self.graph.constant(True, name="always"),
            *(port.initial(outside) for port in carried),
            *(port.outer(outside) for port in fed),
        ]
        joined = self._joined()
        with self.graph.inside(self.frame):
            condition = self._result(self.graph.constant(True, name="always"), "condition")
            sliced = bool(fed or joined)
            nexts = [
                self._result(
                    self._carried_on(pruned, port, sliced=sliced), f"{port.parameter.name}_next"
                )
                for port in carried
            ]
            parts = [
                self._result(pruned.moved(port.part), f"gradient_part_{number}")
                for number, port in enumerate(joined)
            ]
        captured = list(self.frame.captures.values())
        outer += [tensor for tensor, _ in captured]
        inputs = [
            InputMap(2 + number, pruned.moved(port.parameter).source.layer)
            for number, port in enumerate(carried)
        ]
        first = 2 + len(carried)
        inputs += [
            _input(first + number, pruned.moved(port.parameter).source.layer, port)
            for number, port in enumerate(fed)
        ]
        first += len(fed)
        inputs += [
            InputMap(first + number, inner.source.layer)
            for number, (_, inner) in enumerate(captured)
        ]
        outputs = [
            OutputMap(len(outer) + number, result) for number, (result, _) in enumerate(nexts)
        ]
        outputs += [
            _output(len(outer) + len(nexts) + number, result, port)
            for number, ((result, _), port) in enumerate(zip(parts, joined, strict=True))
        ]
        outputs.append(OutputMap(-1, condition[0], purpose="execution_condition"))
        edges = tuple(
            BackEdge(result, pruned.moved(port.parameter).source.layer)
            for (result, _), port in zip(nexts, carried, strict=True)
        )
        finished = Body("body", self.frame.finished(), tuple(inputs), tuple(outputs), edges)
        known = self._known(finished, outer, dict([condition, *nexts, *parts]))
        owners = [
            [item.external for item in self.returned if item.is_made_of(port)]
            for port in (*carried, *joined)
        ]
        rt_info = walks_back(self.step.node, owners)
        loop_outputs = self.graph.frame.add(
            LOOP, "opset5", {}, outer, known, name="Loop", bodies=(finished,), rt_info=rt_info
        )
        return dict(zip([*carried, *joined], loop_outputs, strict=True))

    def _carried_on(self, pruned: PrunedFrame, port: BackwardCarried, *, sliced: bool) -> Tensor:
        """Return the next value of a carried port; an unchanged adjoint goes through an operation.

        OpenVINO 2026.4 rebuilds a loop that carries an unchanged value, and then refuses slices in
        reverse order.
        """
        parameter, after = pruned.moved(port.parameter), pruned.moved(port.after)
        if not sliced or after.source != parameter.source or not _is_float(after):
            return after
        return self.graph.apply("Maximum", (after, after), {}, name="as_it_was")[0]

    def _result(self, tensor: Tensor, name: str) -> tuple[LayerId, Tensor]:
        return self.frame.result(tensor, name), tensor

    def _known(
        self, finished: Body, outer: Sequence[Tensor], results: Mapping[LayerId, Tensor]
    ) -> Sequence[Known]:
        parameters = {
            node.id: Known(node.outputs[0].element_type, node.outputs[0].shape)
            for node in finished.graph.parameters
        }
        inside = region.BodyState(
            finished, parameters, {layer: tensor.known for layer, tensor in results.items()}
        )
        return region.iterated(
            Node(LayerId(0), "", LOOP), [tensor.known for tensor in outer], inside
        )

    def _returned(
        self,
        loop_outputs: Mapping[object, Tensor],
        outside: Outside,
        carried: Sequence[BackwardCarried],
    ) -> Mapping[int, Tensor]:
        """Return the adjoint of each outer input: the value carried to the first iteration, the
        sum, or the padded concatenation.
        """
        by_input: dict[int, Tensor] = {}
        for item in self.returned:
            outer = self.step.fed[item.external]
            assert outer is not None
            if isinstance(item.port, Product):
                factors = loop_outputs[item.port.left], loop_outputs[item.port.right]
                adjoint = self.graph.apply("MatMul", factors, item.port.transposes)[0]
            else:
                adjoint = loop_outputs[item.port]
            if isinstance(item.port, Joined):
                span = Span.of(self.graph, self.step.node.type, item.entry, outer, outside.count)
                adjoint = span.padded(
                    self.graph, self._in_the_lengths_of(span, outer, adjoint), outer.rank or 0
                )
            if outer.element_type is not None and adjoint.element_type is not outer.element_type:
                adjoint = self.graph.apply(
                    "Convert", (adjoint,), {"destination_type": outer.element_type}
                )[0]
            by_input[item.external] = (
                by_input[item.external] + adjoint if item.external in by_input else adjoint
            )
        return by_input

    def _in_the_lengths_of(self, span: Span, outer: Tensor, joined: Tensor) -> Tensor:
        """Reshape a concatenation to the lengths of the sliced tensor. Without iterations, lengths
        that are unknown before the run are 0.
        """
        dimensions = outer.shape.dimensions or ()
        if all(length.is_static for axis, length in enumerate(dimensions) if axis != span.axis):
            return joined
        lengths = self.graph.apply("ShapeOf", (span.cut(self.graph, outer),), {})[0]
        return self.graph.apply("Reshape", (joined, lengths), {"special_zero": False})[0]


def _is_float(tensor: Tensor) -> bool:
    return tensor.element_type is None or tensor.element_type.is_float


def _input(external: int, internal: LayerId, port: Fed) -> InputMap:
    if port.axis is None:
        return InputMap(external, internal)
    start, end = (0, -1) if port.stride > 0 else (-1, 0)
    return InputMap(external, internal, port.axis, start, end, port.stride, abs(port.stride))


def _output(external: int, internal: LayerId, port: Joined) -> OutputMap:
    start, end = (0, -1) if port.stride > 0 else (-1, 0)
    return OutputMap(external, internal, port.axis, start, end, port.stride, abs(port.stride))
