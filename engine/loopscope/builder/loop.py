"""The one place that makes a Loop-5: carried, sliced and captured inputs, the condition, last
values and joined outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from loopscope.builder.body import LoopBody
from loopscope.builder.graph_builder import Graph
from loopscope.builder.tensor import Tensor
from loopscope.checks import region
from loopscope.errors import BuildError
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LOOP, BackEdge, Body, InputMap, LayerId, Node, OutputMap
from loopscope.ir.shape import DYNAMIC, PartialShape, static
from loopscope.ops.declare import Known

BOOLEAN = ElementType.BOOLEAN


@dataclass(frozen=True, slots=True)
class LoopVariable:
    """A value that is carried from one iteration to the next."""

    path: str
    """How messages call it: ``loop_vars[1].left``."""
    name: str
    """Of its Parameter in the body."""
    initial: Tensor
    invariant: PartialShape
    """Holds every shape that it ever has."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A tensor of which each iteration gets one part, of length 1 along the first axis."""

    name: str
    whole: Tensor


@dataclass(frozen=True, slots=True)
class Entered:
    """What the body has at hand."""

    variables: Sequence[Tensor]
    parts: Sequence[Tensor]
    body: LoopBody


@dataclass(frozen=True, slots=True)
class Iteration:
    """What one iteration leaves: the next values, the parts of joined outputs, and what says
    whether there is another (None: always).
    """

    variables: Sequence[Tensor]
    joined: Sequence[Tensor] = ()
    again: Callable[[], Tensor] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPlan:
    """A Loop to be made."""

    called: str
    """The function that the user called, for messages."""
    name: str
    trip_count: Tensor
    starts: Tensor
    variables: Sequence[LoopVariable]
    parts: Sequence[Parts] = ()
    rt_info: Mapping[str, object] = field(default_factory=dict[str, object])
    """What the Loop keeps for views and other runtimes; it changes no value."""


def made_loop(
    graph: Graph, plan: LoopPlan, trace: Callable[[Entered], Iteration]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The Loop's last values of the variables, and its joined outputs. ``trace`` builds the body
    from what enters it, once.
    """
    body = LoopBody(graph, graph.frame, f"the body of {plan.called}() {plan.name!r}")
    with graph.inside(body):
        entered = _entered(body, plan)
        left = trace(entered)
        _keep_invariants(plan, left.variables)
        again = left.again() if left.again is not None else graph.constant(True, name="always")
        condition = _result(body, again, "condition")
        kept = [
            _result(body, tensor, f"{one.name}_next")
            for one, tensor in zip(plan.variables, left.variables, strict=True)
        ]
        joined = [
            _result(body, tensor, f"joined_{number}") for number, tensor in enumerate(left.joined)
        ]
        joined += [_result(body, part, collected.name) for collected, part in body.collected]
    body.drop_unread_number()
    captured = list(body.captures.values())
    outer = [
        plan.trip_count,
        plan.starts,
        *(one.initial for one in plan.variables),
        *(one.whole for one in plan.parts),
    ]
    outer += [tensor for tensor, _ in captured]
    outputs = [OutputMap(len(outer) + index, one.layer) for index, one in enumerate(kept)]
    outputs += [
        OutputMap(len(outer) + len(kept) + index, one.layer, axis=0)
        for index, one in enumerate(joined)
    ]
    outputs.append(OutputMap(-1, condition.layer, purpose="execution_condition"))
    edges = tuple(
        BackEdge(one.layer, tensor.source.layer)
        for one, tensor in zip(kept, entered.variables, strict=True)
    )
    finished = Body("body", body.finished(), _inputs(entered, captured), tuple(outputs), edges)
    known = _outputs(body, finished, outer, [condition, *kept, *joined])
    made = graph.frame.add(
        LOOP, "opset5", {}, outer, known, name=plan.name, bodies=(finished,), rt_info=plan.rt_info
    )
    first_collected = len(kept) + len(left.joined)
    for (collected, _), tensor in zip(body.collected, made[first_collected:], strict=True):
        collected.fill(tensor)
    return made[: len(kept)], made[len(kept) : first_collected]


@dataclass(frozen=True, slots=True)
class _Ended:
    """A Result of the body, and what it gets."""

    layer: LayerId
    tensor: Tensor


def _result(body: LoopBody, tensor: Tensor, name: str) -> _Ended:
    brought = body.bring(tensor)
    return _Ended(body.result(brought, name), brought)


def _entered(body: LoopBody, plan: LoopPlan) -> Entered:
    variables = [
        body.parameter(one.name, Known(one.initial.element_type, one.invariant))
        for one in plan.variables
    ]
    parts = [
        body.parameter(one.name, Known(one.whole.element_type, _part_shape(one.whole.shape)))
        for one in plan.parts
    ]
    return Entered(variables, parts, body)


def _inputs(entered: Entered, captured: Sequence[tuple[Tensor, Tensor]]) -> tuple[InputMap, ...]:
    """The port map of the inputs: after trip count and condition the carried, the sliced, the
    captured, and the iteration's number.
    """
    variables, parts, number = entered.variables, entered.parts, entered.body.number
    first_captured = 2 + len(variables) + len(parts)
    inputs = [InputMap(2 + index, tensor.source.layer) for index, tensor in enumerate(variables)]
    inputs += [
        InputMap(2 + len(variables) + index, tensor.source.layer, axis=0)
        for index, tensor in enumerate(parts)
    ]
    inputs += [
        InputMap(first_captured + index, inner.source.layer)
        for index, (_, inner) in enumerate(captured)
    ]
    if number is not None:
        inputs.append(InputMap(-1, number.source.layer, purpose="current_iteration"))
    return tuple(inputs)


def _part_shape(shape: PartialShape) -> PartialShape:
    return DYNAMIC if shape.dimensions is None else PartialShape((static(1), *shape.dimensions[1:]))


def _keep_invariants(plan: LoopPlan, after: Sequence[Tensor]) -> None:
    for variable, tensor in zip(plan.variables, after, strict=True):
        if tensor.element_type is not variable.initial.element_type:
            raise BuildError(
                f"{plan.called}(): {variable.path} begins as {variable.initial.element_type}, and is "
                f"{tensor.element_type or 'of unknown type'} after one iteration: a variable keeps its element type"
            )
        if not allows(variable.invariant, tensor.shape):
            raise BuildError(
                f"{plan.called}(): {variable.path} has the shape invariant {variable.invariant}, and the shape {tensor.shape} after one "
                "iteration: give it a less specific invariant with shape_invariants=, or keep its shape"
            )


def allows(invariant: PartialShape, shape: PartialShape) -> bool:
    """Whether the invariant allows every shape that the partial shape ``shape`` can be."""
    return invariant == DYNAMIC or invariant.unite(shape) == invariant


def _outputs(
    body: LoopBody, finished: Body, outer: Sequence[Tensor], ends: Sequence[_Ended]
) -> Sequence[Known]:
    """What is known of the Loop's outputs, by the very rules by which the checks will look at
    it.
    """
    parameters = {
        node.id: Known(node.outputs[0].element_type, node.outputs[0].shape)
        for node in body.nodes
        if node.type == "Parameter"
    }
    inside = region.BodyState(finished, parameters, {one.layer: one.tensor.known for one in ends})
    return region.iterated(Node(LayerId(0), "", LOOP), [tensor.known for tensor in outer], inside)
