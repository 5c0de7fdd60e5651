"""``while_loop`` as TensorFlow has it, made into a Loop-5 that tests its condition first; ``do_while``, which tests it last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.build.callables import argument_names, call, must_be_callable, must_take, spread
from engine.build.graph_builder import Graph, checked_shape, graph_of
from engine.build.loop import BOOLEAN, Entered, Iteration, LoopPlan, Variable, allows, made_loop
from engine.build.structure import aligned, leaves, matches, rebuilt
from engine.build.tensor import Tensor
from engine.errors import BuildError
from engine.ir.element_type import INDEX_TYPES
from engine.ir.shape import PartialShape


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    """Repeats ``body`` while ``cond`` holds; gives the variables after the last iteration, in the structure of ``loop_vars``.

    ``loop_vars``: tuples, named tuples, lists, dicts and dataclasses of tensors, numbers and arrays, nested as you like. A tuple or
    list at the top is spread into the arguments of ``cond`` and ``body``; anything else is their one argument. ``body`` gives the
    next values in the same structure. The condition is tested before the first iteration too, so that the loop may not run at all.
    Outer tensors that ``cond`` or ``body`` use become invariant inputs of the loop.

    ``shape_invariants``: for each variable a shape that it keeps to, None for lengths that may change (default: its first shape).
    ``maximum_iterations``: at most so many iterations, a whole number or a scalar tensor.

    It becomes a Loop-5: ``cond`` and ``body`` are called while the graph is built, ``body`` once, ``cond`` twice (on the first values
    outside of the loop, on the next ones inside). tf.while_loop has more arguments, which only steer TensorFlow's runtime, and there
    is nothing here for them to steer: ``parallel_iterations`` and ``swap_memory`` (iterations run one after the other),
    ``back_prop`` (nothing is trained), ``return_same_structure`` (it always is the same).

    ``TypeError`` when ``cond`` or ``body`` is not callable, ``ValueError`` when there are no variables, ``BuildError`` (a ``ValueError``
    too) when a variable changes its type, its structure, or leaves its shape invariant.
    """
    return _checked(_While("while_loop", cond, body, loop_vars, shape_invariants, maximum_iterations, name or "while", asks_first=True))


def do_while(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    """Calls ``body`` once, and repeats it while ``cond`` holds: ``while_loop`` without the test before the first iteration.

    Arguments, result and errors as there. It becomes a Loop-5 that starts with the constant true; ``cond`` is called once, on the
    values that ``body`` gives. ``maximum_iterations`` still comes first: where it is 0, even the first iteration does not run.
    """
    return _checked(_While("do_while", cond, body, loop_vars, shape_invariants, maximum_iterations, name or "do_while", asks_first=False))


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
    asks_first: bool

    def condition(self, graph: Graph, values: Any) -> Tensor:
        """What ``cond`` makes of values of the variables."""
        given = call(self.cond, self.loop_vars, values)
        if given is True:
            return graph.constant(True, name="always")
        given = graph.lift(given, (BOOLEAN,), f"{self.called}(): what cond gives")
        return scalar_condition(given, f"{self.called}(): cond gives")


def _checked(asked: _While) -> Any:
    must_be_callable(asked.called, cond=asked.cond, body=asked.body)
    values = leaves(asked.loop_vars)
    if not values:
        raise BuildError(f"{asked.called}(): loop_vars is empty: a loop needs at least one variable")
    must_take(spread(asked.loop_vars), "one for each of loop_vars", asked.called, cond=asked.cond, body=asked.body)
    graph = graph_of([*(leaf.value for leaf in values), asked.most], asked.called)
    with graph.frame.all_or_nothing():
        return _made(graph, asked)


def _made(graph: Graph, asked: _While) -> Any:
    with graph.scope(asked.name):
        variables = loop_variables(graph, asked.called, asked.loop_vars, asked.shape_invariants, asked.body)
        limit = graph.constant(-1, name="no_limit") if asked.most is None else trip_count(graph, asked.most, "maximum_iterations")
        if asked.asks_first:
            with graph.frame.ahead_of(f"{asked.called}() {asked.name!r}"):
                starts = asked.condition(graph, [variable.initial for variable in variables])
        else:
            starts = graph.constant(True, name="always")

    def trace(entered: Entered) -> Iteration:
        given = call(asked.body, asked.loop_vars, entered.variables)
        after = next_values(graph, asked.called, asked.loop_vars, given, variables)
        return Iteration(after, again=asked.condition(graph, after))

    plan = LoopPlan(called=asked.called, name=asked.name, trip_count=limit, starts=starts, variables=variables)
    last, _ = made_loop(graph, plan, trace)
    return rebuilt(asked.loop_vars, last)


def scalar_condition(given: Tensor, what: str) -> Tensor:
    """A boolean of one element; ``BuildError`` for any other tensor."""
    if given.element_type is not BOOLEAN:
        raise BuildError(f"{what} {given!r}, expected a boolean: compare it with something")
    if given.shape.rank not in (None, 0) and not (given.rank == 1 and given.shape.at(0).contains(1)):
        raise BuildError(f"{what} {given!r}, expected one element: say with ops.reduce_logical_and or ops.reduce_logical_or what is meant")
    return given


def trip_count(graph: Graph, given: Any, what: str) -> Tensor:
    """A number of iterations as a scalar tensor; ``BuildError`` when it is none."""
    count = graph.lift(given, what=what)
    if count.element_type not in INDEX_TYPES:
        raise BuildError(f"{what} is {given!r}, expected a whole number, or a scalar tensor of i32 or i64")
    if count.shape.rank not in (None, 0) and not (count.rank == 1 and count.shape.at(0).contains(1)):
        raise BuildError(f"{what} is {given!r}, expected one number")
    if count.known.value is not None and count.known.value.size == 1 and count.known.value.item() < 0:
        raise BuildError(f"{what} is {count.known.value.item()}, expected at least 0")
    return count


def loop_variables(
    graph: Graph, called: str, loop_vars: Any, shape_invariants: Any, body: Callable[..., Any], skip: int = 0
) -> list[Variable]:
    """The variables of a loop: lifted, named after the arguments of ``body`` (without the first ``skip``), with their invariants."""
    values = leaves(loop_vars)
    shapes: list[Any] = [None] * len(values)
    if shape_invariants is not None:
        shapes = [leaf.value for leaf in aligned(loop_vars, shape_invariants, "shape_invariants")]
    names = argument_names(loop_vars, body, skip)
    variables = []
    for leaf, shape, name in zip(values, shapes, names, strict=True):
        path = f"loop_vars{leaf.path}"
        initial = graph.lift(leaf.value, what=f"{called}(): {path}", name=f"{name}_initial")
        variables.append(Variable(path, name, initial, _invariant(called, path, initial, shape)))
    return variables


def _invariant(called: str, path: str, initial: Tensor, given: Any) -> PartialShape:
    if given is None:
        return initial.shape
    invariant = checked_shape(given, f"{called}(): the shape invariant of {path}")
    if not allows(invariant, initial.shape):
        raise BuildError(f"{called}(): {path} begins with shape {initial.shape}, which its shape invariant {invariant} does not allow")
    return invariant


def next_values(graph: Graph, called: str, loop_vars: Any, given: Any, variables: list[Variable]) -> list[Tensor]:
    """What the body gave as tensors of the variables' types; one variable alone need not be wrapped."""
    alone = isinstance(loop_vars, (tuple, list)) and len(loop_vars) == 1
    if alone and not matches(loop_vars, given) and matches(loop_vars[0], given):
        given = type(loop_vars)(given) if hasattr(loop_vars, "_fields") else [given]
    after = aligned(loop_vars, given, f"{called}(): what body gives")
    types = [variable.initial.element_type for variable in variables]
    return [
        graph.lift(leaf.value, [kind] if kind else [], f"{called}(): the next value of loop_vars{leaf.path}")
        for leaf, kind in zip(after, types, strict=True)
    ]
