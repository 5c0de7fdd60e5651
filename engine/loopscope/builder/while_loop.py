"""``while_loop`` as TensorFlow has it, made into a Loop-5 that tests its condition first;
``do_while``, which tests it last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loopscope.builder.callables import argument_names, call, must_be_callable, must_take, spread
from loopscope.builder.frame import GraphFrame
from loopscope.builder.graph_builder import Graph, graph_of
from loopscope.builder.inline import inlined
from loopscope.builder.loop import BOOLEAN, Entered, Iteration, LoopPlan, LoopVariable, made_loop
from loopscope.builder.shape_invariants import shape_of_variable, shapes_of_variables
from loopscope.builder.structure import aligned, described, leaves, matches, rebuilt
from loopscope.builder.tensor import Tensor
from loopscope.builder.tensor_array import FirstWrite, TensorArray
from loopscope.errors import BuildError, shorten
from loopscope.ir.element_type import INDEX_TYPES
from loopscope.ir.gradient_info import NO_WAY_BACK
from loopscope.ir.model import NO_ATTRIBUTES
from loopscope.ir.model import ModelGraph as FinishedGraph
from loopscope.ir.parallel_iterations import PARALLEL_ITERATIONS, USUAL_WINDOW
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
    """Repeats ``body`` while ``cond`` holds; gives the variables after the last iteration, in the
    structure of ``loop_vars``.

    ``loop_vars``: tuples, named tuples, lists, dicts and dataclasses of tensors, numbers and
    arrays, nested as you like. A whole number of Python's is i64 (TensorFlow: int32), one of
    ``builder.constant`` i32. A tuple or list at the top is spread into the arguments of ``cond``
    and ``body``; anything else is their one argument. ``body`` gives the next values in the same
    structure. The condition is tested before the first iteration too, so that the loop may not run
    at all. Outer tensors that ``cond`` or ``body`` use become invariant inputs of the loop.

    ``shape_invariants``: for each variable a shape that it keeps to, with None for lengths that may
    change; None instead of a shape, or of a whole part of the structure: the first shape. A
    ``SparseTensor`` takes the shape of its ``dense_shape``, ``IndexedSlices`` that of their
    ``values``, a ``TensorArray`` that of its elements. ``parallel_iterations``: how many iterations
    may be under way at once, a whole number of at least 1. A run here goes through them one after
    the other, with the same result for every number; the Loop's ``rt_info`` keeps it for those who
    schedule. ``back_prop``: False: for ``gradients`` the results are constants, as after
    ``stop_gradient``. ``swap_memory``: True or False. It steers TensorFlow's training on GPUs, and
    changes nothing here. ``maximum_iterations``: at most so many iterations, a whole number or a
    scalar tensor.

    It becomes a Loop-5. ``cond`` and ``body`` are called once each, while the graph is built, and
    once more where the first write to a ``TensorArray`` tells its shape. What ``cond`` builds is
    put before the loop, on the first values, and at the end of the body, on the next ones.

    ``TypeError`` when ``cond`` or ``body`` is not callable, or an argument is none of the values
    above; ``ValueError`` when there are no variables, ``BuildError`` (a ``ValueError`` too) when a
    variable changes its type, its structure, or leaves its shape invariant.
    """
    _must_be_positive(parallel_iterations)
    _must_be_boolean(back_prop=back_prop, swap_memory=swap_memory)
    kept = _information(int(parallel_iterations), back_prop)
    return _checked(
        _While(
            "while_loop",
            cond,
            body,
            loop_vars,
            shape_invariants,
            maximum_iterations,
            name or "while",
            kept,
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
    """Calls ``body`` once, and repeats it while ``cond`` holds: ``while_loop`` without the test
    before the first iteration.

    Arguments, result and errors as there. It becomes a Loop-5 that starts with the constant true;
    ``cond`` is called once, on the values that ``body`` gives. ``maximum_iterations`` still comes
    first: where it is 0, even the first iteration does not run.
    """
    return _checked(
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
    """What the user asked for, and by which function."""

    called: str
    cond: Callable[..., Any]
    body: Callable[..., Any]
    loop_vars: Any
    shape_invariants: Any
    most: Any
    name: str
    rt_info: Mapping[str, object] | None = None
    """What the Loop keeps of the other arguments; None for a loop that tests its condition last."""

    def condition(self, graph: Graph, values: Any) -> Tensor:
        """What ``cond`` makes of values of the variables."""
        given = call(self.cond, self.loop_vars, values)
        if given is True:
            return graph.constant(True, name="always")
        given = graph.lift(given, (BOOLEAN,), f"{self.called}(): what cond gives")
        return scalar_condition(given, f"{self.called}(): cond gives")


@dataclass(frozen=True, slots=True)
class _Condition:
    """What ``cond`` has built, apart from the graph: it is put into it before the loop and at
    the end of the body.
    """

    asked: _While
    frame: GraphFrame
    graph: FinishedGraph
    variables: Sequence[Tensor]

    @staticmethod
    def drawn(graph: Graph, asked: _While, variables: Sequence[LoopVariable]) -> _Condition:
        """Calls ``cond``, on values of which nothing is known but the invariants."""
        title = f"{asked.called}() {asked.name!r}"
        frame = GraphFrame(graph, graph.frame, f"the cond of {title}")
        frame.ahead = title
        with graph.inside(frame):
            values = [
                frame.parameter(one.name, Known(one.initial.element_type, one.invariant))
                for one in variables
            ]
            frame.result(frame.bring(asked.condition(graph, values)))
        return _Condition(asked, frame, frame.finished(), values)

    def of(self, graph: Graph, values: Sequence[Tensor]) -> Tensor:
        """The condition for values of the variables, in the graph or body that is being built."""
        feeds = {
            inner.source.layer: value for inner, value in zip(self.variables, values, strict=True)
        }
        feeds |= {
            inner.source.layer: graph.frame.bring(outer)
            for outer, inner in self.frame.captures.values()
        }
        graph.frame.calls += [
            replace(one, name=graph.frame.names.prefix + one.name) for one in self.frame.calls
        ]
        return inlined(graph, self.graph, feeds, f"{self.asked.called}(): cond")[0]


def _information(parallel_iterations: int, back_prop: bool) -> Mapping[str, object]:
    window = {PARALLEL_ITERATIONS: {"version": "0", "value": str(parallel_iterations)}}
    return window if back_prop else {**window, **NO_WAY_BACK}


def _must_be_positive(parallel_iterations: object) -> None:
    given = parallel_iterations
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 1:
        raise TypeError(
            f"while_loop(): parallel_iterations is {shorten(repr(given), 60)}, expected a whole number of at least 1"
        )


def _must_be_boolean(**given: object) -> None:
    for name, value in given.items():
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(
                f"while_loop(): {name} is {shorten(repr(value), 60)}, expected True or False"
            )


def _checked(asked: _While) -> Any:
    must_be_callable(asked.called, cond=asked.cond, body=asked.body)
    values = leaves(asked.loop_vars)
    if not values:
        raise BuildError(
            f"{asked.called}(): loop_vars is empty: a loop needs at least one variable"
        )
    must_take(
        spread(asked.loop_vars),
        "one for each of loop_vars",
        asked.called,
        cond=asked.cond,
        body=asked.body,
    )
    graph = graph_of([*(leaf.value for leaf in values), asked.most], asked.called)
    while True:
        names = graph.frame.names.copied()
        try:
            with graph.frame.all_or_nothing():
                return _made(graph, asked)
        except FirstWrite as first:
            shaped = _with_shape(asked.loop_vars, first)
            if shaped is asked.loop_vars:
                raise
            graph.frame.names = names
            asked = replace(asked, loop_vars=shaped)


def _with_shape(structure: Any, first: FirstWrite) -> Any:
    """Return the structure with the array that was written first in its shape; the very same
    structure if the array is not in it.
    """
    if isinstance(structure, TensorArray):
        found = structure.unshaped is first.array and structure.stacked is first.array.initial
        return first.array.shaped(first.lengths, dynamic=structure.dynamic) if found else structure
    if isinstance(structure, dict):
        changed = {key: _with_shape(value, first) for key, value in structure.items()}
        return (
            changed
            if any(changed[key] is not value for key, value in structure.items())
            else structure
        )
    if isinstance(structure, (tuple, list)):
        values = [_with_shape(value, first) for value in structure]
        if all(one is other for one, other in zip(values, structure, strict=True)):
            return structure
        return (
            type(structure)(*values) if hasattr(structure, "_fields") else type(structure)(values)
        )
    return structure


def _made(graph: Graph, asked: _While) -> Any:
    with graph.within(asked.name):
        variables = loop_variables(
            graph, asked.called, asked.loop_vars, asked.shape_invariants, asked.body
        )
        limit = (
            graph.constant(-1, name="no_limit")
            if asked.most is None
            else trip_count(graph, asked.most, "maximum_iterations")
        )
        if asked.rt_info is None:
            condition, starts = None, graph.constant(True, name="always")
        else:
            condition = _Condition.drawn(graph, asked, variables)
            starts = condition.of(
                graph, [graph.frame.bring(variable.initial) for variable in variables]
            )

    def trace(entered: Entered) -> Iteration:
        given = call(asked.body, asked.loop_vars, entered.variables)
        after = next_values(graph, asked.called, asked.loop_vars, given, variables)
        if condition is None:
            return Iteration(after, again=lambda: asked.condition(graph, after))
        return Iteration(after, again=lambda: condition.of(graph, after))

    kept = asked.rt_info or NO_ATTRIBUTES
    plan = LoopPlan(
        called=asked.called,
        name=asked.name,
        trip_count=limit,
        starts=starts,
        variables=variables,
        rt_info=kept,
    )
    last, _ = made_loop(graph, plan, trace)
    return rebuilt(asked.loop_vars, last)


def scalar_condition(given: Tensor, what: str) -> Tensor:
    """A boolean of one element; ``BuildError`` for any other tensor."""
    if given.element_type is not BOOLEAN:
        raise BuildError(f"{what} {given!r}, expected a boolean: compare it with something")
    if given.shape.rank not in (None, 0) and not (
        given.rank == 1 and given.shape.at(0).contains(1)
    ):
        raise BuildError(
            f"{what} {given!r}, expected one element: say with ops.reduce_logical_and or ops.reduce_logical_or what is meant"
        )
    return given


def trip_count(graph: Graph, given: Any, what: str) -> Tensor:
    """A number of iterations as a scalar tensor; ``BuildError`` when it is none."""
    count = graph.lift(given, what=what)
    if count.element_type not in INDEX_TYPES:
        raise BuildError(
            f"{what} is {given!r}, expected a whole number, or a scalar tensor of i32 or i64"
        )
    if count.shape.rank not in (None, 0) and not (
        count.rank == 1 and count.shape.at(0).contains(1)
    ):
        raise BuildError(f"{what} is {given!r}, expected one number")
    if (
        count.known.value is not None
        and count.known.value.size == 1
        and count.known.value.item() < 0
    ):
        raise BuildError(f"{what} is {count.known.value.item()}, expected at least 0")
    return count


def loop_variables(
    graph: Graph,
    called: str,
    loop_vars: Any,
    shape_invariants: Any,
    body: Callable[..., Any],
    skip: int = 0,
) -> list[LoopVariable]:
    """The variables of a loop: lifted, named after the arguments of ``body`` (without the first
    ``skip``), with their invariants.
    """
    shapes = shapes_of_variables(called, loop_vars, shape_invariants)
    names = argument_names(loop_vars, body, skip)
    variables = []
    for leaf, shape, name in zip(leaves(loop_vars), shapes, names, strict=True):
        path = f"loop_vars{leaf.path}"
        initial = graph.lift(leaf.value, what=f"{called}(): {path}", name=f"{name}_initial")
        variables.append(
            LoopVariable(path, name, initial, shape_of_variable(called, path, initial, shape))
        )
    return variables


def next_values(
    graph: Graph, called: str, loop_vars: Any, given: Any, variables: list[LoopVariable]
) -> list[Tensor]:
    """What the body gave as tensors of the variables' types; one variable alone need not be
    wrapped.
    """
    alone = isinstance(loop_vars, (tuple, list)) and len(loop_vars) == 1
    if alone and not matches(loop_vars, given) and matches(loop_vars[0], given):
        given = type(loop_vars)(given) if hasattr(loop_vars, "_fields") else [given]
    after = aligned(loop_vars, given, f"{called}(): what body gives")
    for leaf in after:
        if not isinstance(leaf.value, Tensor) and any(
            isinstance(one.value, Tensor) for one in leaves(leaf.value)
        ):
            raise BuildError(
                f"{called}(): the next value of loop_vars{leaf.path} is {described(leaf.value)}, expected one tensor"
            )
    types = [variable.initial.element_type for variable in variables]
    return [
        graph.lift(
            leaf.value,
            [kind] if kind else [],
            f"{called}(): the next value of loop_vars{leaf.path}",
        )
        for leaf, kind in zip(after, types, strict=True)
    ]
