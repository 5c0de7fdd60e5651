"""The one place that makes a Loop-5: carried, sliced and captured inputs, the condition, last values and joined outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.build.frame import Frame
from engine.build.graph import Graph
from engine.build.tensor import Tensor
from engine.check import region
from engine.errors import BuildError
from engine.ir.element_type import ElementType
from engine.ir.model import LOOP, BackEdge, Body, InputMap, LayerId, Node, OutputMap
from engine.ir.shape import DYNAMIC, SCALAR, PartialShape, static
from engine.ops.declare import Known

I64, BOOLEAN = ElementType.I64, ElementType.BOOLEAN


@dataclass(frozen=True, slots=True)
class Variable:
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
    iteration: Tensor | None


@dataclass(frozen=True, slots=True)
class Iteration:
    """What one iteration leaves: the next values, the parts of joined outputs, and whether there is another one (None: always)."""

    variables: Sequence[Tensor]
    joined: Sequence[Tensor] = ()
    again: Tensor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPlan:
    """A Loop to be made."""

    called: str
    """The function that the user called, for messages."""
    name: str
    trip_count: Tensor
    starts: Tensor
    variables: Sequence[Variable]
    parts: Sequence[Parts] = ()
    counts: bool = False
    """Whether the body gets the number of the iteration."""


def made_loop(graph: Graph, plan: LoopPlan, trace: Callable[[Entered], Iteration]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The Loop's last values of the variables, and its joined outputs. ``trace`` builds the body from what enters it, once."""
    frame = Frame(graph, graph.frame, f"the body of {plan.called}() {plan.name!r}")
    with graph.inside(frame):
        entered = _entered(frame, plan)
        left = trace(entered)
        _keep_invariants(plan, left.variables)
        again = left.again if left.again is not None else graph.constant(True, name="always")
        condition = frame.result(frame.bring(again), "condition")
        kept = [frame.result(frame.bring(tensor), f"{one.name}_next") for one, tensor in zip(plan.variables, left.variables, strict=True)]
        joined = [frame.result(frame.bring(tensor), f"joined_{number}") for number, tensor in enumerate(left.joined)]
    captured = list(frame.captures.values())
    outer = [plan.trip_count, plan.starts, *(one.initial for one in plan.variables), *(one.whole for one in plan.parts)]
    first_captured = len(outer)
    outer += [tensor for tensor, _ in captured]
    inputs = [InputMap(2 + index, tensor.source.layer) for index, tensor in enumerate(entered.variables)]
    inputs += [InputMap(2 + len(plan.variables) + index, tensor.source.layer, axis=0) for index, tensor in enumerate(entered.parts)]
    inputs += [InputMap(first_captured + index, tensor.source.layer) for index, (_, tensor) in enumerate(captured)]
    if entered.iteration is not None:
        inputs.append(InputMap(-1, entered.iteration.source.layer, purpose="current_iteration"))
    first_output = len(outer)
    outputs = [OutputMap(first_output + index, layer) for index, layer in enumerate(kept)]
    outputs += [OutputMap(first_output + len(kept) + index, layer, axis=0) for index, layer in enumerate(joined)]
    outputs.append(OutputMap(-1, condition, purpose="execution_condition"))
    edges = tuple(BackEdge(layer, tensor.source.layer) for layer, tensor in zip(kept, entered.variables, strict=True))
    body = Body("body", frame.finished(), tuple(inputs), tuple(outputs), edges)
    known = _outputs(frame, body, outer, {condition: again, **dict(zip((*kept, *joined), (*left.variables, *left.joined), strict=True))})
    made = graph.frame.add(LOOP, "opset5", {}, outer, known, name=plan.name, bodies=(body,))
    return made[: len(kept)], made[len(kept) :]


def _entered(frame: Frame, plan: LoopPlan) -> Entered:
    variables = [frame.parameter(one.name, Known(one.initial.element_type, one.invariant)) for one in plan.variables]
    parts = [frame.parameter(one.name, Known(one.whole.element_type, _part_shape(one.whole.shape))) for one in plan.parts]
    iteration = frame.parameter("iteration", Known(I64, SCALAR)) if plan.counts else None
    return Entered(variables, parts, iteration)


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
    """Whether every shape that ``shape`` stands for is one that the invariant allows."""
    return invariant == DYNAMIC or invariant.unite(shape) == invariant


def _outputs(frame: Frame, body: Body, outer: Sequence[Tensor], results: Mapping[LayerId, Tensor]) -> Sequence[Known]:
    """What is known of the Loop's outputs, by the very rules by which the checks will look at it."""
    parameters = {node.id: Known(node.outputs[0].element_type, node.outputs[0].shape) for node in frame.nodes if node.type == "Parameter"}
    inside = region.Inside(body, parameters, {layer: tensor.known for layer, tensor in results.items()})
    return region.iterated(Node(LayerId(0), "", LOOP), [tensor.known for tensor in outer], inside)
