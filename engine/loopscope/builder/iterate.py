"""Loops that count or iterate over tensors: ``for_loop``, ``scan``, ``map_fn``, ``foldl``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.builder.graph_builder import Graph, graph_of
from loopscope.builder.loop import Entered, Iteration, LoopPlan, LoopVariable, Parts, build_loop
from loopscope.builder.structure import (
    Leaf,
    align_leaves,
    argument_count,
    argument_names,
    call,
    check_callable,
    check_signature,
    leaves,
    map_leaves,
    rebuild,
)
from loopscope.builder.tensor import Tensor
from loopscope.builder.while_loop import loop_variables, next_values, trip_count
from loopscope.errors import BuildError
from loopscope.ir.shape import Dimension


def for_loop(
    count: Any,
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    name: str | None = None,
) -> Any:
    """Call ``body(i, *loop_vars)`` for i = 0, 1, ... ``count`` - 1 and return the variables after
    the last iteration.

    ``count``: an integer or a scalar tensor. ``loop_vars`` and ``shape_invariants`` are those of
    ``while_loop``. The loop becomes a Loop-5 with a constant true condition. ``TypeError``,
    ``ValueError`` and ``BuildError`` are raised as in ``while_loop``.
    """
    check_callable("for_loop", body=body)
    values = leaves(loop_vars)
    if not values:
        raise BuildError("for_loop(): loop_vars is empty: a loop needs at least one variable")
    check_signature(
        1 + argument_count(loop_vars),
        "the iteration number, and one for each of loop_vars",
        "for_loop",
        body=body,
    )
    graph = graph_of([count, *(leaf.value for leaf in values)], "for_loop")
    with graph.frame.all_or_nothing():
        return _build_for_loop(graph, count, body, loop_vars, shape_invariants, name or "for")


def _build_for_loop(
    graph: Graph,
    count: Any,
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any,
    caller: str,
) -> Any:
    with graph.within(caller):
        variables = loop_variables(graph, "for_loop", loop_vars, shape_invariants, body, skip=1)
        plan = LoopPlan(
            caller="for_loop",
            name=caller,
            trip_count=trip_count(graph, count, "for_loop(): count"),
            starts=graph.constant(True, name="always"),
            variables=variables,
        )

    def trace(entered: Entered) -> Iteration:
        number = entered.body.iteration_number("iteration")
        result = call(lambda *values: body(number, *values), loop_vars, entered.variables)
        return Iteration(next_values(graph, "for_loop", loop_vars, result, variables))

    last, _ = build_loop(graph, plan, trace)
    return rebuild(loop_vars, last)


def map_fn(fn: Callable[..., Any], elems: Any, name: str | None = None) -> Any:
    """Apply ``fn`` to each element along the first axis of ``elems`` and stack the results along a
    new first axis.

    ``elems``: a tensor, or a structure of tensors of one length. ``fn`` receives one element in the
    same structure and may return another structure. The loop becomes a Loop-5 with sliced inputs
    and concatenated outputs.
    """
    check_signature(1, "an element, in the structure of elems", "map_fn", fn=fn)
    graph = _graph_of("map_fn", elems, None)
    with graph.frame.all_or_nothing():
        return _build_map(graph, fn, elems, name or "map")


def _build_map(graph: Graph, fn: Callable[..., Any], elems: Any, name: str) -> Any:
    plan = ElementLoop.through(graph, "map_fn", fn, elems, None, name, folds=False)
    structures: list[Any] = []

    def trace(entered: Entered) -> Iteration:
        structures.append(fn(plan.element(entered)))
        results = [
            graph.lift(leaf.value, what=f"map_fn(): the result of fn{leaf.path}")
            for leaf in leaves(structures[0])
        ]
        if not results:
            raise BuildError("map_fn(): fn returns no tensors, expected at least one")
        return Iteration((), [_as_part(result) for result in results])

    _, joined = build_loop(graph, plan.plan(()), trace)
    return rebuild(structures[0], joined)


def scan(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Return all intermediate values of a fold, stacked along a new first axis: ``fn(accumulated,
    element)`` for each element in order.

    ``elems``: a tensor, or a structure of tensors of one length along the first axis.
    ``initializer``: the first accumulated value (or structure), which is not part of the result.
    Without it the first element is the initial value, and the result starts with it. ``reverse``:
    from the last element to the first; the result is in the order of ``elems``. The loop becomes a
    Loop-5.
    """
    return _fold("scan", fn, elems, initializer, reverse=reverse, name=name or "scan", keep=True)


def foldl(
    fn: Callable[..., Any], elems: Any, initializer: Any = None, name: str | None = None
) -> Any:
    """Return the last value of a fold from the first element to the last: ``fn(accumulated,
    element)``. The arguments are those of ``scan``.
    """
    return _fold("foldl", fn, elems, initializer, reverse=False, name=name or "foldl", keep=False)


def _fold(
    caller: str,
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any,
    *,
    reverse: bool,
    name: str,
    keep: bool,
) -> Any:
    check_signature(
        2, "the accumulated value, and an element in the structure of elems", caller, fn=fn
    )
    graph = _graph_of(caller, elems, initializer)
    with graph.frame.all_or_nothing():
        plan = ElementLoop.through(graph, caller, fn, elems, initializer, name, reverse=reverse)
        return _build_fold(plan, fn, starts_with_element=initializer is None, keep=keep)


def _build_fold(
    plan: ElementLoop, fn: Callable[..., Any], *, starts_with_element: bool, keep: bool
) -> Any:
    """Build the loop of a fold.

    With ``starts_with_element`` the initial value is an element, which the concatenated values
    start with.
    """
    graph, start, caller = plan.graph, plan.start, plan.caller
    names = argument_names([start], fn)
    variables = [
        LoopVariable(f"initializer{leaf.path}", name, leaf.value, leaf.value.shape)
        for leaf, name in zip(leaves(start), names, strict=True)
    ]

    def trace(entered: Entered) -> Iteration:
        result = fn(rebuild(start, entered.variables), plan.element(entered))
        new_values = []
        for leaf, value in zip(
            align_leaves(start, result, f"{caller}(): the result of fn"), variables, strict=True
        ):
            candidates = [value.initial.element_type] if value.initial.element_type else []
            new_values.append(
                graph.lift(leaf.value, candidates, f"{caller}(): the result of fn{leaf.path}")
            )
        return Iteration(new_values, [_as_part(value) for value in new_values] if keep else ())

    last, joined = build_loop(graph, plan.plan(variables), trace)
    if not keep:
        return rebuild(start, last)
    with graph.within(plan.name):
        if starts_with_element:
            parts = [_as_part(value.initial) for value in variables]
            joined = tuple(
                graph.apply("Concat", pair, {"axis": 0})[0]
                for pair in zip(parts, joined, strict=True)
            )
        return rebuild(start, [value[::-1] if plan.reverse else value for value in joined])


@dataclass(frozen=True, slots=True)
class ElementLoop:
    """A loop over elements: its slices, trip count and initial value."""

    caller: str
    name: str
    graph: Graph
    elems: Any
    parts: tuple[Parts, ...]
    count: Tensor
    always: Tensor
    reverse: bool
    start: Any = None
    """Initial value of a fold."""

    @staticmethod
    def through(
        graph: Graph,
        caller: str,
        fn: Callable[..., Any],
        elems: Any,
        initializer: Any,
        name: str,
        *,
        reverse: bool = False,
        folds: bool = True,
    ) -> ElementLoop:
        """Return the plan of a loop over ``elems``.

        ``BuildError`` for elements without a first axis, or of different lengths.
        """
        values = leaves(elems)
        if not values:
            raise BuildError(f"{caller}(): elems is empty, expected at least one tensor")
        with graph.within(name):
            wholes = [
                graph.lift(leaf.value, what=f"{caller}(): elems{leaf.path}") for leaf in values
            ]
            start = (
                None
                if initializer is None
                else _lift_initializer(graph, caller, initializer, wholes)
            )
            _check_lengths(caller, values, wholes)
            if reverse:
                # A reversed tensor instead of a Loop that iterates backwards: OpenVINO reads such
                # Loops, but fails when it simplifies them.
                wholes = [whole[::-1] for whole in wholes]
            if folds and initializer is None:
                start = rebuild(elems, [whole[0] for whole in wholes])
                wholes = [whole[1:] for whole in wholes]
            count, always = _length(graph, wholes[0]), graph.constant(True, name="always")
        names = argument_names([elems], fn, skip=int(folds))
        parts = tuple(
            Parts(name_of_part, whole) for name_of_part, whole in zip(names, wholes, strict=True)
        )
        return ElementLoop(caller, name, graph, elems, parts, count, always, reverse, start)

    def plan(self, variables: Sequence[LoopVariable]) -> LoopPlan:
        """Return the Loop over the slices."""
        return LoopPlan(
            caller=self.caller,
            name=self.name,
            trip_count=self.count,
            starts=self.always,
            variables=variables,
            parts=self.parts,
        )

    def element(self, entered: Entered) -> Any:
        """Return the slices of this iteration without the sliced axis, in the structure of
        ``elems``.
        """
        return rebuild(
            self.elems,
            [self.graph.apply("Squeeze", (part, np.array([0])), {})[0] for part in entered.parts],
        )


def _graph_of(caller: str, elems: Any, initializer: Any) -> Graph:
    return graph_of([leaf.value for leaf in (*leaves(elems), *leaves(initializer))], caller)


def _lift_initializer(graph: Graph, caller: str, initializer: Any, wholes: Sequence[Tensor]) -> Any:
    """Return the initial value of a fold; Python numbers get the types of the elements."""
    types = [whole.element_type for whole in wholes if whole.element_type is not None]

    def lift(value: Any) -> Tensor:
        candidates = [] if isinstance(value, (np.ndarray, np.generic)) else types
        return graph.lift(value, candidates, f"{caller}(): the initializer")

    return map_leaves(initializer, lift)


def _check_lengths(caller: str, values: Sequence[Leaf], wholes: Sequence[Tensor]) -> None:
    common = Dimension()
    for leaf, whole in zip(values, wholes, strict=True):
        if whole.rank == 0:
            raise BuildError(
                f"{caller}(): elems{leaf.path} is {whole!r}, expected at least one axis"
            )
        intersection = common.intersect(whole.shape.at(0))
        if intersection is None:
            raise BuildError(
                f"{caller}(): elems{leaf.path} has {whole.shape.at(0)} elements, but the previous "
                f"tensors have {common}"
            )
        common = intersection


def _length(graph: Graph, whole: Tensor) -> Tensor:
    length = whole.shape.at(0)
    if length.is_static:
        return graph.constant(length.length, name="count")
    lengths = graph.apply("ShapeOf", (whole,), {})[0]
    return graph.apply("Gather", (lengths, np.array(0), np.array(0)), {}, name="count")[0]


def _as_part(tensor: Tensor) -> Tensor:
    return tensor.graph.apply("Unsqueeze", (tensor, np.array([0])), {})[0]
