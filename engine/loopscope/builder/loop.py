"""Construction of a Loop-5: its inputs, condition, outputs, and shape invariants.

Inputs are carried, sliced or captured; outputs are last values or concatenated.

The shape invariants of its variables are one shape per tensor, from the structure that a user
passes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loopscope.builder.body import LoopBody
from loopscope.builder.graph_builder import Graph, check_shape
from loopscope.builder.structure import pair_parts
from loopscope.builder.tensor import Tensor
from loopscope.checks import region
from loopscope.errors import BuildError
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LOOP, BackEdge, Body, InputMap, LayerId, Node, OutputMap
from loopscope.ir.replace import replace
from loopscope.ir.shape import DYNAMIC, PartialShape, static
from loopscope.ops.declare import Known

BOOLEAN = ElementType.BOOLEAN


@dataclass(frozen=True, slots=True)
class LoopVariable:
    """A value that is carried from one iteration to the next."""

    path: str
    """Name in messages, such as ``loop_vars[1].left``."""
    name: str
    """Name of the Parameter in the body."""
    initial: Tensor
    invariant: PartialShape
    """Shape that includes the shapes of all iterations."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A sliced tensor; each iteration receives a slice of length 1 along the axis."""

    name: str
    whole: Tensor
    axis: int = 0


@dataclass(frozen=True, slots=True)
class Entered:
    """Inputs of the body."""

    variables: Sequence[Tensor]
    parts: Sequence[Tensor]
    body: LoopBody


@dataclass(frozen=True, slots=True)
class Iteration:
    """Outputs of one iteration: the next values, the slices of concatenated outputs, and the
    condition (None: always true).
    """

    variables: Sequence[Tensor]
    joined: Sequence[Tensor] = ()
    again: Callable[[], Tensor] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPlan:
    """Description of a Loop to build."""

    caller: str
    """Name of the function that the user called, for messages."""
    name: str
    trip_count: Tensor
    starts: Tensor
    variables: Sequence[LoopVariable]
    parts: Sequence[Parts] = ()
    joined_axis: int = 0
    """Axis along which the slices of all iterations are concatenated."""
    joined_first: bool = False
    """True if the concatenated outputs of the Loop come before the last values."""
    rt_info: Mapping[str, object] = field(default_factory=dict[str, object])
    """Information for views and other runtimes, without effect on values."""


def build_loop(
    graph: Graph, plan: LoopPlan, trace: Callable[[Entered], Iteration]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Build a Loop and return the last values of its variables and its concatenated outputs.

    ``trace`` is called once and builds the body from its inputs.
    """
    body = LoopBody(graph, graph.frame, f"the body of {plan.caller}() {plan.name!r}")
    with graph.inside(body):
        entered = _body_inputs(body, plan)
        iteration = trace(entered)
        _check_invariants(plan, iteration.variables)
        results = _body_results(graph, body, plan, iteration)
    body.drop_unread_number()
    captured = list(body.captures.values())
    outer = [
        plan.trip_count,
        plan.starts,
        *(item.initial for item in plan.variables),
        *(item.whole for item in plan.parts),
        *(tensor for tensor, _ in captured),
    ]
    edges = tuple(
        BackEdge(item.layer, tensor.source.layer)
        for item, tensor in zip(results.variables, entered.variables, strict=True)
    )
    finished = Body(
        "body",
        body.finished(),
        _inputs(plan, entered, captured),
        _outputs(plan, results, len(outer)),
        edges,
    )
    known = _infer_outputs(
        body, finished, outer, [results.condition, *results.ordered(plan.joined_first)]
    )
    tensors = graph.frame.add(
        LOOP, "opset5", {}, outer, known, name=plan.name, bodies=(finished,), rt_info=plan.rt_info
    )
    last, joined = _separate(tensors, len(results.variables), plan.joined_first)
    for (collected, _), tensor in zip(body.collected, joined[len(iteration.joined) :], strict=True):
        collected.fill(tensor)
    return last, joined[: len(iteration.joined)]


def _separate(
    tensors: tuple[Tensor, ...], variables: int, joined_first: bool
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return the last values of the variables and the concatenated outputs of a Loop."""
    if not joined_first:
        return tensors[:variables], tensors[variables:]
    split = len(tensors) - variables
    return tensors[split:], tensors[:split]


@dataclass(frozen=True, slots=True)
class _BodyResult:
    """A Result of the body with its input tensor."""

    layer: LayerId
    tensor: Tensor


@dataclass(frozen=True, slots=True)
class _BodyResults:
    """The Results of the body, by how the Loop uses them."""

    condition: _BodyResult
    variables: Sequence[_BodyResult]
    joined: Sequence[_BodyResult]

    def ordered(self, joined_first: bool) -> list[_BodyResult]:
        """Return the Results in the order of the outputs of the Loop."""
        if joined_first:
            return [*self.joined, *self.variables]
        return [*self.variables, *self.joined]


def _body_results(
    graph: Graph, body: LoopBody, plan: LoopPlan, iteration: Iteration
) -> _BodyResults:
    """Add the Results of the body: condition, next values, concatenated and collected outputs."""
    again = iteration.again
    condition = graph.constant(True, name="always") if again is None else again()
    return _BodyResults(
        _result(body, condition, "condition"),
        [
            _result(body, tensor, f"{item.name}_next")
            for item, tensor in zip(plan.variables, iteration.variables, strict=True)
        ],
        [
            *(
                _result(body, tensor, f"joined_{number}")
                for number, tensor in enumerate(iteration.joined)
            ),
            *(_result(body, part, collected.name) for collected, part in body.collected),
        ],
    )


def _outputs(plan: LoopPlan, results: _BodyResults, inputs: int) -> tuple[OutputMap, ...]:
    """Return the port map outputs of a Loop with this number of inputs, the condition last."""
    entries = [OutputMap(0, item.layer) for item in results.variables]
    joined = [OutputMap(0, item.layer, axis=plan.joined_axis) for item in results.joined]
    entries = [*joined, *entries] if plan.joined_first else [*entries, *joined]
    condition = OutputMap(-1, results.condition.layer, purpose="execution_condition")
    return (
        *(replace(entry, external=inputs + index) for index, entry in enumerate(entries)),
        condition,
    )


def _result(body: LoopBody, tensor: Tensor, name: str) -> _BodyResult:
    brought = body.bring(tensor)
    return _BodyResult(body.result(brought, name), brought)


def _body_inputs(body: LoopBody, plan: LoopPlan) -> Entered:
    variables = [
        body.parameter(item.name, Known(item.initial.element_type, item.invariant))
        for item in plan.variables
    ]
    parts = [
        body.parameter(
            item.name, Known(item.whole.element_type, _part_shape(item.whole.shape, item.axis))
        )
        for item in plan.parts
    ]
    return Entered(variables, parts, body)


def _inputs(
    plan: LoopPlan, entered: Entered, captured: Sequence[tuple[Tensor, Tensor]]
) -> tuple[InputMap, ...]:
    """Return the port map inputs: after trip count and condition the carried, sliced and captured
    inputs, then the iteration number.
    """
    variables, parts, number = entered.variables, entered.parts, entered.body.number
    first_captured = 2 + len(variables) + len(parts)
    inputs = [InputMap(2 + index, tensor.source.layer) for index, tensor in enumerate(variables)]
    inputs += [
        InputMap(2 + len(variables) + index, tensor.source.layer, axis=item.axis)
        for index, (tensor, item) in enumerate(zip(parts, plan.parts, strict=True))
    ]
    inputs += [
        InputMap(first_captured + index, inner.source.layer)
        for index, (_, inner) in enumerate(captured)
    ]
    if number is not None:
        inputs.append(InputMap(-1, number.source.layer, purpose="current_iteration"))
    return tuple(inputs)


def _part_shape(shape: PartialShape, axis: int) -> PartialShape:
    if shape.dimensions is None:
        return DYNAMIC
    return PartialShape((*shape.dimensions[:axis], static(1), *shape.dimensions[axis + 1 :]))


def _check_invariants(plan: LoopPlan, after: Sequence[Tensor]) -> None:
    for variable, tensor in zip(plan.variables, after, strict=True):
        if tensor.element_type is not variable.initial.element_type:
            raise BuildError(
                f"{plan.caller}(): {variable.path} starts as {variable.initial.element_type}, but "
                "is "
                f"{tensor.element_type or 'of unknown type'} after one iteration: the element "
                "type of a variable must not change"
            )
        if not allows(variable.invariant, tensor.shape):
            raise BuildError(
                f"{plan.caller}(): {variable.path} has the shape invariant {variable.invariant}, "
                f"but the shape {tensor.shape} after one "
                "iteration: pass a less specific invariant in shape_invariants=, or preserve its "
                "shape"
            )


def allows(invariant: PartialShape, shape: PartialShape) -> bool:
    """Return True if the invariant includes every shape that the partial shape ``shape`` can be."""
    return invariant == DYNAMIC or invariant.unite(shape) == invariant


def _infer_outputs(
    body: LoopBody, finished: Body, outer: Sequence[Tensor], ends: Sequence[_BodyResult]
) -> Sequence[Known]:
    """Return the inferred outputs of the Loop, by the same rules as the checks."""
    parameters = {
        node.id: Known(node.outputs[0].element_type, node.outputs[0].shape)
        for node in body.nodes
        if node.type == "Parameter"
    }
    inside = region.BodyState(finished, parameters, {end.layer: end.tensor.known for end in ends})
    return region.iterated(Node(LayerId(0), "", LOOP), [tensor.known for tensor in outer], inside)


class Composite(ABC):
    """A value that consists of several tensors and has one shape invariant for all of them."""

    __slots__ = ()

    @abstractmethod
    def invariants(
        self, invariant: PartialShape | None, what: str
    ) -> Sequence[PartialShape | None]:
        """Return a shape for each tensor, in the order of ``leaves``; None for the initial shape.

        ``BuildError`` for a shape that the value cannot have.
        """


def shapes_of_variables(
    caller: str, loop_vars: Any, shape_invariants: Any
) -> list[PartialShape | None]:
    """Return the shape invariant of each tensor of ``loop_vars``; None for a tensor or structure
    with its initial shapes.
    """
    return list(
        _walk_shapes(
            f"{caller}(): the shape invariant of loop_vars", loop_vars, shape_invariants, ""
        )
    )


def _walk_shapes(what: str, like: Any, invariants: Any, path: str) -> Iterator[PartialShape | None]:
    if isinstance(like, Composite) and (
        invariants is None or not isinstance(invariants, type(like))
    ):
        yield from like.invariants(
            None if invariants is None else check_shape(invariants, what + path), what + path
        )
        return
    pairs = pair_parts(like, like if invariants is None else invariants, path, "shape_invariants")
    if pairs is None:
        yield None if invariants is None else check_shape(invariants, what + path)
        return
    for inner, part, value in pairs:
        yield from _walk_shapes(what, part, None if invariants is None else value, inner)


def shape_of_variable(
    caller: str, path: str, initial: Tensor, invariant: PartialShape | None
) -> PartialShape:
    """Return the invariant of one tensor, or raise ``BuildError`` if it excludes the initial
    shape.
    """
    if invariant is None:
        return initial.shape
    if not allows(invariant, initial.shape):
        raise BuildError(
            f"{caller}(): {path} starts with shape {initial.shape}, which its shape invariant "
            f"{invariant} excludes"
        )
    return invariant
