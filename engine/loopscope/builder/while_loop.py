"""``while_loop`` as in TensorFlow, built as a Loop-5, and ``do_while``, which tests its condition
after each iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loopscope.builder.finished_graphs import inline_graph
from loopscope.builder.frame import GraphFrame
from loopscope.builder.graph_builder import Graph, graph_of
from loopscope.builder.loop import (
    BOOLEAN,
    Entered,
    Iteration,
    LoopPlan,
    LoopVariable,
    build_loop,
    shape_of_variable,
    shapes_of_variables,
)
from loopscope.builder.structure import (
    align_leaves,
    argument_count,
    argument_names,
    call,
    check_callable,
    check_signature,
    describe,
    leaves,
    matches,
    rebuild,
)
from loopscope.builder.tensor import Tensor
from loopscope.builder.tensor_array import FirstWrite, TensorArray
from loopscope.errors import BuildError, shorten
from loopscope.ir.element_type import INDEX_TYPES
from loopscope.ir.model import NO_ATTRIBUTES
from loopscope.ir.model import ModelGraph as FinishedGraph
from loopscope.ir.rt_info import NO_WAY_BACK, PARALLEL_ITERATIONS, USUAL_WINDOW
from loopscope.ops.declare import Known


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = USUAL_WINDOW,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    """Repeat ``body`` while ``cond`` is true and return the final variables, in the structure of
    ``loop_vars``.

    ``loop_vars``: nested tuples, named tuples, lists, dicts and dataclasses of tensors, numbers and
    arrays. A Python integer is i64 (int32 in TensorFlow), and one of ``builder.constant`` is i32. A
    tuple or list at the top is unpacked into the arguments of ``cond`` and ``body``; any other
    structure is their only argument. ``body`` returns the next values in the same structure. The
    condition is also tested before the first iteration, so the loop may run no iterations. Outer
    tensors that ``cond`` or ``body`` use become invariant inputs of the loop.

    ``shape_invariants``: a shape for each variable that includes the shapes of all iterations, with
    None for lengths that may change. None instead of a shape, or of a part of the structure, means
    the initial shape. A ``SparseTensor`` takes the shape of its ``dense_shape``, ``IndexedSlices``
    that of their ``values``, a ``TensorArray`` that of its elements.

    ``parallel_iterations``: the number of iterations that may overlap, an integer of at least 1.
    Loopscope runs them in sequence, with the same result for every number; the Loop's ``rt_info``
    stores the number for schedulers. ``back_prop``: with False, ``gradients`` treats the results as
    constants, as after ``stop_gradient``. ``swap_memory``: True or False. It affects TensorFlow's
    training on GPUs and has no effect here. ``maximum_iterations``: the maximum number of
    iterations, an integer or a scalar tensor.

    The loop becomes a Loop-5. ``cond`` and ``body`` are called once each, while the graph is built,
    and once more if the first write to a ``TensorArray`` determines its shape. The nodes of
    ``cond`` are inserted before the loop, for the initial values, and at the end of the body, for
    the next values.

    ``TypeError`` if ``cond`` or ``body`` is not callable, or an argument has another type than
    described. ``ValueError`` without variables. ``BuildError`` (also a ``ValueError``) if a
    variable changes its type or structure, or violates its shape invariant.
    """
    _check_positive(parallel_iterations)
    _check_boolean(back_prop=back_prop, swap_memory=swap_memory)
    rt_info = _loop_info(int(parallel_iterations), back_prop)
    return _build(
        _While(
            "while_loop",
            cond,
            body,
            loop_vars,
            shape_invariants,
            maximum_iterations,
            name or "while",
            rt_info,
        )
    )


def do_while(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    """Call ``body`` once and repeat it while ``cond`` is true: ``while_loop`` without the test
    before the first iteration.

    Arguments, result and errors are those of ``while_loop``. The loop becomes a Loop-5 with a
    constant true initial condition. ``cond`` is called once, on the values that ``body`` returns.
    ``maximum_iterations`` is tested first: if it is 0, no iteration runs.
    """
    return _build(
        _While(
            "do_while",
            cond,
            body,
            loop_vars,
            shape_invariants,
            maximum_iterations,
            name or "do_while",
        )
    )


@dataclass(frozen=True, slots=True)
class _While:
    """Arguments of a loop function, and the name of that function."""

    caller: str
    cond: Callable[..., Any]
    body: Callable[..., Any]
    loop_vars: Any
    shape_invariants: Any
    limit: Any
    name: str
    rt_info: Mapping[str, object] | None = None
    """Information about other arguments for the Loop; None for a loop that tests its condition
    last.
    """

    def condition(self, graph: Graph, values: Any) -> Tensor:
        """Call ``cond`` on values of the variables and return the condition."""
        result = call(self.cond, self.loop_vars, values)
        if result is True:
            return graph.constant(True, name="always")
        result = graph.lift(result, (BOOLEAN,), f"{self.caller}(): the result of cond")
        return check_condition(result, f"{self.caller}(): cond returns")


@dataclass(frozen=True, slots=True)
class _Condition:
    """The nodes of ``cond``, built separately. They are inserted before the loop and at the end of
    the body.
    """

    request: _While
    frame: GraphFrame
    graph: FinishedGraph
    variables: Sequence[Tensor]

    @staticmethod
    def drawn(graph: Graph, request: _While, variables: Sequence[LoopVariable]) -> _Condition:
        """Call ``cond`` on values of which only the invariants are known."""
        title = f"{request.caller}() {request.name!r}"
        frame = GraphFrame(graph, graph.frame, f"the cond of {title}")
        frame.ahead = title
        with graph.inside(frame):
            values = [
                frame.parameter(
                    variable.name, Known(variable.initial.element_type, variable.invariant)
                )
                for variable in variables
            ]
            frame.result(frame.bring(request.condition(graph, values)))
        return _Condition(request, frame, frame.finished(), values)

    def of(self, graph: Graph, values: Sequence[Tensor]) -> Tensor:
        """Insert the condition for values of the variables into the current graph or body and
        return it.
        """
        feeds = {
            inner.source.layer: value for inner, value in zip(self.variables, values, strict=True)
        }
        feeds |= {
            inner.source.layer: graph.frame.bring(outer)
            for outer, inner in self.frame.captures.values()
        }
        graph.frame.calls += [
            replace(scope, name=graph.frame.names.prefix + scope.name) for scope in self.frame.calls
        ]
        return inline_graph(graph.frame, self.graph, feeds, f"{self.request.caller}(): cond")[0]


def _loop_info(parallel_iterations: int, back_prop: bool) -> Mapping[str, object]:
    window = {PARALLEL_ITERATIONS: {"version": "0", "value": str(parallel_iterations)}}
    return window if back_prop else {**window, **NO_WAY_BACK}


def _check_positive(parallel_iterations: object) -> None:
    value = parallel_iterations
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise TypeError(
            f"while_loop(): parallel_iterations is {shorten(repr(value), 60)}, expected a whole "
            "number of at least 1"
        )


def _check_boolean(**flags: object) -> None:
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(
                f"while_loop(): {name} is {shorten(repr(value), 60)}, expected True or False"
            )


def _build(request: _While) -> Any:
    check_callable(request.caller, cond=request.cond, body=request.body)
    values = leaves(request.loop_vars)
    if not values:
        raise BuildError(
            f"{request.caller}(): loop_vars is empty: a loop needs at least one variable"
        )
    check_signature(
        argument_count(request.loop_vars),
        "one for each of loop_vars",
        request.caller,
        cond=request.cond,
        body=request.body,
    )
    graph = graph_of([*(leaf.value for leaf in values), request.limit], request.caller)
    while True:
        names = graph.frame.names.copied()
        try:
            with graph.frame.all_or_nothing():
                return _build_once(graph, request)
        except FirstWrite as first:
            shaped = _with_shape(request.loop_vars, first)
            if shaped is request.loop_vars:
                raise
            graph.frame.names = names
            request = replace(request, loop_vars=shaped)


def _with_shape(structure: Any, first: FirstWrite) -> Any:
    """Return the structure with the array of the first write in its final shape; the identical
    structure if it does not contain the array.
    """
    if isinstance(structure, TensorArray):
        is_array = structure.unshaped is first.array and structure.stacked is first.array.initial
        return (
            first.array.shaped(first.lengths, dynamic=structure.dynamic) if is_array else structure
        )
    if isinstance(structure, dict):
        changed = {key: _with_shape(value, first) for key, value in structure.items()}
        return (
            changed
            if any(changed[key] is not value for key, value in structure.items())
            else structure
        )
    if isinstance(structure, (tuple, list)):
        values = [_with_shape(value, first) for value in structure]
        if all(left is right for left, right in zip(values, structure, strict=True)):
            return structure
        return (
            type(structure)(*values) if hasattr(structure, "_fields") else type(structure)(values)
        )
    return structure


def _build_once(graph: Graph, request: _While) -> Any:
    with graph.within(request.name):
        variables = loop_variables(
            graph, request.caller, request.loop_vars, request.shape_invariants, request.body
        )
        limit = (
            graph.constant(-1, name="no_limit")
            if request.limit is None
            else trip_count(graph, request.limit, "maximum_iterations")
        )
        if request.rt_info is None:
            condition, starts = None, graph.constant(True, name="always")
        else:
            condition = _Condition.drawn(graph, request, variables)
            starts = condition.of(
                graph, [graph.frame.bring(variable.initial) for variable in variables]
            )

    def trace(entered: Entered) -> Iteration:
        result = call(request.body, request.loop_vars, entered.variables)
        new_values = next_values(graph, request.caller, request.loop_vars, result, variables)
        if condition is None:
            return Iteration(new_values, again=lambda: request.condition(graph, new_values))
        return Iteration(new_values, again=lambda: condition.of(graph, new_values))

    rt_info = request.rt_info or NO_ATTRIBUTES
    plan = LoopPlan(
        caller=request.caller,
        name=request.name,
        trip_count=limit,
        starts=starts,
        variables=variables,
        rt_info=rt_info,
    )
    last, _ = build_loop(graph, plan, trace)
    return rebuild(request.loop_vars, last)


def check_condition(tensor: Tensor, what: str) -> Tensor:
    """Return a boolean tensor of one element, or raise ``BuildError`` for any other tensor."""
    if tensor.element_type is not BOOLEAN:
        raise BuildError(f"{what} {tensor!r}, expected a boolean: use a comparison")
    if tensor.shape.rank not in (None, 0) and not (
        tensor.rank == 1 and tensor.shape.at(0).contains(1)
    ):
        raise BuildError(
            f"{what} {tensor!r}, expected one element: use ops.reduce_logical_and or "
            "ops.reduce_logical_or"
        )
    return tensor


def trip_count(graph: Graph, value: Any, what: str) -> Tensor:
    """Return a trip count as a scalar tensor, or raise ``BuildError`` if it is invalid."""
    count = graph.lift(value, what=what)
    if count.element_type not in INDEX_TYPES:
        raise BuildError(
            f"{what} is {value!r}, expected a whole number, or a scalar tensor of i32 or i64"
        )
    if count.shape.rank not in (None, 0) and not (
        count.rank == 1 and count.shape.at(0).contains(1)
    ):
        raise BuildError(f"{what} is {value!r}, expected one number")
    if (
        count.known.value is not None
        and count.known.value.size == 1
        and count.known.value.item() < 0
    ):
        raise BuildError(f"{what} is {count.known.value.item()}, expected at least 0")
    return count


def loop_variables(
    graph: Graph,
    caller: str,
    loop_vars: Any,
    shape_invariants: Any,
    body: Callable[..., Any],
    skip: int = 0,
) -> list[LoopVariable]:
    """Return the variables of a loop as tensors with their invariants, named after the arguments of
    ``body`` after the first ``skip``.
    """
    shapes = shapes_of_variables(caller, loop_vars, shape_invariants)
    names = argument_names(loop_vars, body, skip)
    variables = []
    for leaf, shape, name in zip(leaves(loop_vars), shapes, names, strict=True):
        path = f"loop_vars{leaf.path}"
        initial = graph.lift(leaf.value, what=f"{caller}(): {path}", name=f"{name}_initial")
        variables.append(
            LoopVariable(path, name, initial, shape_of_variable(caller, path, initial, shape))
        )
    return variables


def next_values(
    graph: Graph, caller: str, loop_vars: Any, result: Any, variables: list[LoopVariable]
) -> list[Tensor]:
    """Return the result of the body as tensors of the variables' types. A single variable may be
    returned without its list.
    """
    is_single = isinstance(loop_vars, (tuple, list)) and len(loop_vars) == 1
    if is_single and not matches(loop_vars, result) and matches(loop_vars[0], result):
        result = type(loop_vars)(result) if hasattr(loop_vars, "_fields") else [result]
    aligned_leaves = align_leaves(loop_vars, result, f"{caller}(): the result of body")
    for leaf in aligned_leaves:
        if not isinstance(leaf.value, Tensor) and any(
            isinstance(inner.value, Tensor) for inner in leaves(leaf.value)
        ):
            raise BuildError(
                f"{caller}(): the next value of loop_vars{leaf.path} is {describe(leaf.value)}, "
                "expected one tensor"
            )
    types = [variable.initial.element_type for variable in variables]
    return [
        graph.lift(
            leaf.value,
            [kind] if kind else [],
            f"{caller}(): the next value of loop_vars{leaf.path}",
        )
        for leaf, kind in zip(aligned_leaves, types, strict=True)
    ]
