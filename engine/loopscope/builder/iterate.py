"""Loops that count or go through tensors part by part: ``for_loop``, ``scan``, ``map_fn``,
``foldl``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.builder.callables import argument_names, call, must_be_callable, must_take, spread
from loopscope.builder.graph_builder import Graph, graph_of
from loopscope.builder.loop import Entered, Iteration, LoopPlan, LoopVariable, Parts, made_loop
from loopscope.builder.structure import Leaf, aligned, leaves, mapped, rebuilt
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
    """Calls ``body(i, *loop_vars)`` for i = 0, 1, ... ``count`` - 1; gives the variables after the
    last iteration.

    ``count``: a whole number or a scalar tensor. ``loop_vars`` and ``shape_invariants`` as in
    ``while_loop``. It becomes a Loop-5 whose condition is always true. ``TypeError``,
    ``ValueError`` and ``BuildError`` as there.
    """
    must_be_callable("for_loop", body=body)
    values = leaves(loop_vars)
    if not values:
        raise BuildError("for_loop(): loop_vars is empty: a loop needs at least one variable")
    must_take(
        1 + spread(loop_vars),
        "the number of the iteration, and one for each of loop_vars",
        "for_loop",
        body=body,
    )
    graph = graph_of([count, *(leaf.value for leaf in values)], "for_loop")
    with graph.frame.all_or_nothing():
        return _counted(graph, count, body, loop_vars, shape_invariants, name or "for")


def _counted(
    graph: Graph,
    count: Any,
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any,
    called: str,
) -> Any:
    with graph.within(called):
        variables = loop_variables(graph, "for_loop", loop_vars, shape_invariants, body, skip=1)
        plan = LoopPlan(
            called="for_loop",
            name=called,
            trip_count=trip_count(graph, count, "for_loop(): count"),
            starts=graph.constant(True, name="always"),
            variables=variables,
        )

    def trace(entered: Entered) -> Iteration:
        number = entered.body.numbered("iteration")
        given = call(lambda *values: body(number, *values), loop_vars, entered.variables)
        return Iteration(next_values(graph, "for_loop", loop_vars, given, variables))

    last, _ = made_loop(graph, plan, trace)
    return rebuilt(loop_vars, last)


def map_fn(fn: Callable[..., Any], elems: Any, name: str | None = None) -> Any:
    """``fn`` of each element along the first axis of ``elems``, stacked along a new first axis.

    ``elems``: a tensor, or a structure of tensors of one length; ``fn`` gets one element in the
    same structure and may give another structure. It becomes a Loop-5 with sliced inputs and
    concatenated outputs.
    """
    must_take(1, "an element, in the structure of elems", "map_fn", fn=fn)
    graph = _graph("map_fn", elems, None)
    with graph.frame.all_or_nothing():
        return _mapped(graph, fn, elems, name or "map")


def _mapped(graph: Graph, fn: Callable[..., Any], elems: Any, name: str) -> Any:
    going = Going.through(graph, "map_fn", fn, elems, None, name, folds=False)
    given: list[Any] = []

    def trace(entered: Entered) -> Iteration:
        given.append(fn(going.element(entered)))
        results = [
            graph.lift(leaf.value, what=f"map_fn(): what fn gives{leaf.path}")
            for leaf in leaves(given[0])
        ]
        if not results:
            raise BuildError("map_fn(): fn gives nothing, expected at least one tensor")
        return Iteration((), [_as_part(one) for one in results])

    _, joined = made_loop(graph, going.plan(()), trace)
    return rebuilt(given[0], joined)


def scan(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All intermediate values of a fold, stacked along a new first axis: ``fn(accumulated,
    element)`` for each element in turn.

    ``elems``: a tensor, or a structure of tensors of one length along the first axis.
    ``initializer``: the first accumulated value (or structure), which the result does not hold;
    without it the first element is, and the result begins with it. ``reverse``: from the last
    element to the first; the result stays in the order of ``elems``. It becomes a Loop-5.
    """
    return _fold("scan", fn, elems, initializer, reverse=reverse, name=name or "scan", keep=True)


def foldl(
    fn: Callable[..., Any], elems: Any, initializer: Any = None, name: str | None = None
) -> Any:
    """The last value of a fold from the first element to the last: ``fn(accumulated, element)``;
    arguments as in ``scan``.
    """
    return _fold("foldl", fn, elems, initializer, reverse=False, name=name or "foldl", keep=False)


def _fold(
    called: str,
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any,
    *,
    reverse: bool,
    name: str,
    keep: bool,
) -> Any:
    must_take(2, "what has accumulated, and an element in the structure of elems", called, fn=fn)
    graph = _graph(called, elems, initializer)
    with graph.frame.all_or_nothing():
        going = Going.through(graph, called, fn, elems, initializer, name, reverse=reverse)
        return _folded(going, fn, begins=initializer is None, keep=keep)


def _folded(going: Going, fn: Callable[..., Any], *, begins: bool, keep: bool) -> Any:
    """``begins``: the start is an element itself, with which the joined values begin."""
    graph, start, called = going.graph, going.start, going.called
    names = argument_names([start], fn)
    variables = [
        LoopVariable(f"initializer{leaf.path}", name, leaf.value, leaf.value.shape)
        for leaf, name in zip(leaves(start), names, strict=True)
    ]

    def trace(entered: Entered) -> Iteration:
        given = fn(rebuilt(start, entered.variables), going.element(entered))
        after = []
        for leaf, one in zip(
            aligned(start, given, f"{called}(): what fn gives"), variables, strict=True
        ):
            wanted = [one.initial.element_type] if one.initial.element_type else []
            after.append(graph.lift(leaf.value, wanted, f"{called}(): what fn gives{leaf.path}"))
        return Iteration(after, [_as_part(one) for one in after] if keep else ())

    last, joined = made_loop(graph, going.plan(variables), trace)
    if not keep:
        return rebuilt(start, last)
    with graph.within(going.name):
        if begins:
            parts = [_as_part(one.initial) for one in variables]
            joined = tuple(
                graph.apply("Concat", pair, {"axis": 0})[0]
                for pair in zip(parts, joined, strict=True)
            )
        return rebuilt(start, [one[::-1] if going.reverse else one for one in joined])


@dataclass(frozen=True, slots=True)
class Going:
    """What a loop over elements goes through."""

    called: str
    name: str
    graph: Graph
    elems: Any
    parts: tuple[Parts, ...]
    count: Tensor
    always: Tensor
    reverse: bool
    start: Any = None
    """What a fold begins with."""

    @staticmethod
    def through(
        graph: Graph,
        called: str,
        fn: Callable[..., Any],
        elems: Any,
        initializer: Any,
        name: str,
        *,
        reverse: bool = False,
        folds: bool = True,
    ) -> Going:
        """``BuildError`` for elements without a first axis, or of different lengths."""
        values = leaves(elems)
        if not values:
            raise BuildError(f"{called}(): elems is empty: there is nothing to go through")
        with graph.within(name):
            wholes = [
                graph.lift(leaf.value, what=f"{called}(): elems{leaf.path}") for leaf in values
            ]
            start = None if initializer is None else _lifted(graph, called, initializer, wholes)
            _must_agree(called, values, wholes)
            if reverse:
                # Not by a Loop that walks backwards: OpenVINO reads such Loops, and fails when it
                # simplifies them.
                wholes = [whole[::-1] for whole in wholes]
            if folds and initializer is None:
                start = rebuilt(elems, [whole[0] for whole in wholes])
                wholes = [whole[1:] for whole in wholes]
            count, always = _length(graph, wholes[0]), graph.constant(True, name="always")
        names = argument_names([elems], fn, skip=int(folds))
        parts = tuple(Parts(one, whole) for one, whole in zip(names, wholes, strict=True))
        return Going(called, name, graph, elems, parts, count, always, reverse, start)

    def plan(self, variables: Sequence[LoopVariable]) -> LoopPlan:
        """The Loop over the parts."""
        return LoopPlan(
            called=self.called,
            name=self.name,
            trip_count=self.count,
            starts=self.always,
            variables=variables,
            parts=self.parts,
        )

    def element(self, entered: Entered) -> Any:
        """The parts that entered the body, without the axis along which they were taken, in the
        structure of ``elems``.
        """
        return rebuilt(
            self.elems,
            [self.graph.apply("Squeeze", (part, np.array([0])), {})[0] for part in entered.parts],
        )


def _graph(called: str, elems: Any, initializer: Any) -> Graph:
    return graph_of([leaf.value for leaf in (*leaves(elems), *leaves(initializer))], called)


def _lifted(graph: Graph, called: str, initializer: Any, wholes: Sequence[Tensor]) -> Any:
    """What a fold begins with; Python's numbers become what the elements are."""
    types = [whole.element_type for whole in wholes if whole.element_type is not None]

    def lift(value: Any) -> Tensor:
        wanted = [] if isinstance(value, (np.ndarray, np.generic)) else types
        return graph.lift(value, wanted, f"{called}(): the initializer")

    return mapped(initializer, lift)


def _must_agree(called: str, values: Sequence[Leaf], wholes: Sequence[Tensor]) -> None:
    agreed = Dimension()
    for leaf, whole in zip(values, wholes, strict=True):
        if whole.rank == 0:
            raise BuildError(
                f"{called}(): elems{leaf.path} is {whole!r}, and a scalar has no elements to go through"
            )
        both = agreed.intersect(whole.shape.at(0))
        if both is None:
            raise BuildError(
                f"{called}(): elems{leaf.path} has {whole.shape.at(0)} elements, those before it {agreed}"
            )
        agreed = both


def _length(graph: Graph, whole: Tensor) -> Tensor:
    length = whole.shape.at(0)
    if length.is_static:
        return graph.constant(length.length, name="count")
    lengths = graph.apply("ShapeOf", (whole,), {})[0]
    return graph.apply("Gather", (lengths, np.array(0), np.array(0)), {}, name="count")[0]


def _as_part(tensor: Tensor) -> Tensor:
    return tensor.graph.apply("Unsqueeze", (tensor, np.array([0])), {})[0]
