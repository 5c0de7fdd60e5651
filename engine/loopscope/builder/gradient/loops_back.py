"""Backward loop of a loop: a Loop with the same trip count around the body of ``backward_body``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from loopscope.builder.gradient.backward_body import BackwardBody, Reverse
from loopscope.builder.gradient.backward_ports import (
    BackwardCarried,
    Fed,
    Joined,
    Number,
    Outside,
    Product,
    RecordRequest,
    Span,
    length_of,
)
from loopscope.builder.gradient.forward_values import record
from loopscope.builder.gradient.node_edits import PrunedFrame, drop_unused
from loopscope.builder.gradient.step import BodyTensors, Flow, GradientStep, check_repeatable
from loopscope.builder.tensor import Tensor
from loopscope.checks import region
from loopscope.ir.model import (
    LOOP,
    BackEdge,
    Body,
    InputMap,
    LayerId,
    Node,
    OutputMap,
)
from loopscope.ir.rt_info import walks_back
from loopscope.ir.shape import Dimension
from loopscope.ops.declare import Known


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
    adjoints = {entry: adjoint for entry, adjoint in outputs.items() if adjoint is not None}
    backward = BackwardBody(step, inside, flow, adjoints)
    with step.graph.inside(backward.frame):
        backward.trace(reverse)
    return _Backward(step, inside, backward).build()


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


class _Backward:
    """The backward loop under construction: its body is complete, and the Loop goes around it."""

    def __init__(self, step: GradientStep, inside: BodyTensors, body: BackwardBody) -> None:
        self.step, self.inside, self.body = step, inside, body
        self.graph, self.frame = step.graph, body.frame

    def build(self) -> Mapping[int, Tensor]:
        """Add the Loop to the outer graph, and return the adjoint of each outer input by index."""
        fed, carried = self.body.fed, self.body.carried
        pruned = drop_unused(
            self.frame,
            0,
            [
                *(port.after for port in self.body.adjoints_carried),
                *(port.part for port in self.body.joined),
                *(port.parameter for port in self.body.adjoints_carried),
            ],
            [(port.parameter, port.after) for port in carried],
        )
        check_repeatable(self.graph, self.frame.nodes)
        fed = [port for port in fed if pruned.holds(port.parameter)]
        carried = [port for port in carried if pruned.holds(port.parameter)]
        ports: list[BackwardCarried | Fed] = [*carried, *fed]
        outside = self._outside([record for port in ports for record in port.records])
        loop_outputs = self._node(pruned, fed, carried, outside)
        return self._adjoints_of_inputs(loop_outputs, outside)

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
            else length_of(
                self.graph,
                next(
                    recorded[request]
                    for request in requests
                    if request.form in ("whole", "shape", "count")
                ),
                0,
            )
        )
        return Outside(count, recorded)

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
        joined = self.body.joined
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
        body = Body(
            "body",
            self.frame.finished(),
            _inputs(pruned, carried, fed, [inner for _, inner in captured]),
            (
                *(OutputMap(len(outer) + number, id) for number, (id, _) in enumerate(nexts)),
                *(
                    _output(len(outer) + len(nexts) + number, id, port)
                    for number, ((id, _), port) in enumerate(zip(parts, joined, strict=True))
                ),
                OutputMap(-1, condition[0], purpose="execution_condition"),
            ),
            tuple(
                BackEdge(id, pruned.moved(port.parameter).source.layer)
                for (id, _), port in zip(nexts, carried, strict=True)
            ),
        )
        owners = [
            [item.external for item in self.body.input_adjoints if item.is_made_of(port)]
            for port in (*carried, *joined)
        ]
        loop_outputs = self.graph.frame.add(
            LOOP,
            "opset5",
            {},
            outer,
            _known_outputs(body, outer, dict([condition, *nexts, *parts])),
            name="Loop",
            bodies=(body,),
            rt_info=walks_back(self.step.node, owners),
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

    def _adjoints_of_inputs(
        self, loop_outputs: Mapping[object, Tensor], outside: Outside
    ) -> Mapping[int, Tensor]:
        """Return the adjoint of each outer input: the value carried to the first iteration, the
        sum, or the padded concatenation.
        """
        by_input: dict[int, Tensor] = {}
        for item in self.body.input_adjoints:
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


def _inputs(
    pruned: PrunedFrame,
    carried: Sequence[BackwardCarried],
    fed: Sequence[Fed],
    captured: Sequence[Tensor],
) -> tuple[InputMap, ...]:
    """Map the inputs of the Loop after its trip count and condition to the body's Parameters."""
    first_fed = 2 + len(carried)
    first_captured = first_fed + len(fed)
    return (
        *(
            InputMap(2 + number, pruned.moved(port.parameter).source.layer)
            for number, port in enumerate(carried)
        ),
        *(
            _input(first_fed + number, pruned.moved(port.parameter).source.layer, port)
            for number, port in enumerate(fed)
        ),
        *(
            InputMap(first_captured + number, inner.source.layer)
            for number, inner in enumerate(captured)
        ),
    )


def _input(external: int, internal: LayerId, port: Fed) -> InputMap:
    if port.axis is None:
        return InputMap(external, internal)
    start, end = (0, -1) if port.stride > 0 else (-1, 0)
    return InputMap(external, internal, port.axis, start, end, port.stride, abs(port.stride))


def _output(external: int, internal: LayerId, port: Joined) -> OutputMap:
    start, end = (0, -1) if port.stride > 0 else (-1, 0)
    return OutputMap(external, internal, port.axis, start, end, port.stride, abs(port.stride))


def _known_outputs(
    body: Body, outer: Sequence[Tensor], results: Mapping[LayerId, Tensor]
) -> Sequence[Known]:
    """Return what is known of the Loop's outputs before a run."""
    parameters = {
        node.id: Known(node.outputs[0].element_type, node.outputs[0].shape)
        for node in body.graph.parameters
    }
    inside = region.BodyState(
        body, parameters, {layer: tensor.known for layer, tensor in results.items()}
    )
    return region.iterated(Node(LayerId(0), "", LOOP), [tensor.known for tensor in outer], inside)
