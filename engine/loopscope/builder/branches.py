"""Branches and calls: ``cond``, ``case`` and ``switch_case`` as If-8, and ``function``.

A function is a named subgraph that is called in several places.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from loopscope.builder.frame import GraphFrame
from loopscope.builder.graph_builder import Graph, graph_of
from loopscope.builder.naming import NameScope
from loopscope.builder.structure import Leaf, align_leaves, check_signature, leaves, rebuild
from loopscope.builder.tensor import Tensor
from loopscope.builder.while_loop import check_condition
from loopscope.checks import region
from loopscope.errors import BuildError, shorten
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import IF, NO_ATTRIBUTES, Body, BodyName, InputMap, LayerId, OutputMap
from loopscope.ops.declare import Known

Branch = Callable[[], Any]
_NO_ARGUMENTS = "a branch uses outer tensors directly"


def cond(pred: Any, true_fn: Branch, false_fn: Branch, name: str | None = None) -> Any:
    """Return the result of ``true_fn()`` if ``pred`` is true, and of ``false_fn()`` otherwise; only
    that branch runs.

    ``pred``: a boolean tensor of one element. The functions take no arguments and may use any outer
    tensors. Both return the same structure (tuples, lists, dicts, dataclasses) with the same
    element types. The branches become an If-8.

    ``TypeError`` if a function is not callable. ``BuildError`` if the branches return different
    structures or types.
    """
    check_signature(0, _NO_ARGUMENTS, "cond", true_fn=true_fn, false_fn=false_fn)
    graph = graph_of([pred], "cond")
    with graph.frame.all_or_nothing():
        condition = check_condition(graph.lift(pred, what="cond(): pred"), "cond(): pred is")
        return _build_cond(graph, condition, (true_fn, false_fn), name or "cond")


def _build_cond(graph: Graph, condition: Tensor, functions: Sequence[Branch], caller: str) -> Any:
    frames = [
        GraphFrame(graph, graph.frame, f"the {branch} of cond() {caller!r}")
        for branch in ("true_fn", "false_fn")
    ]
    returned = []
    for frame, function in zip(frames, functions, strict=True):
        with graph.inside(frame):
            returned.append(function())
    pairs = list(
        zip(
            leaves(returned[0]),
            align_leaves(returned[0], returned[1], "cond(): the result of false_fn"),
            strict=True,
        )
    )
    if not pairs:
        raise BuildError("cond(): the branches return no tensors, expected at least one")
    types = [_tensor_types(left, right) for left, right in pairs]
    results = [
        _add_results(graph, frame, [pair[side] for pair in pairs], types)
        for side, frame in enumerate(frames)
    ]
    return rebuild(returned[0], build_if(graph, caller, condition, frames, results))


def _tensor_types(left: Leaf, right: Leaf) -> list[ElementType]:
    """Return the element types of the tensors at this position, which numbers in the other branch
    are converted to.
    """
    return [
        leaf.value.element_type
        for leaf in (left, right)
        if isinstance(leaf.value, Tensor) and leaf.value.element_type is not None
    ]


def _add_results(
    graph: Graph, frame: GraphFrame, values: Sequence[Leaf], types: Sequence[Sequence[ElementType]]
) -> list[tuple[LayerId, Tensor]]:
    with graph.inside(frame):
        results = []
        for leaf, candidates in zip(values, types, strict=True):
            tensor = graph.lift(
                leaf.value, candidates, f"cond(): the result of {frame.title}{leaf.path}"
            )
            results.append((frame.result(tensor, "result"), tensor))
        return results


def build_if(
    graph: Graph,
    caller: str,
    condition: Tensor,
    frames: Sequence[GraphFrame],
    results: Sequence[list[tuple[LayerId, Tensor]]],
    rt_info: Mapping[str, object] = NO_ATTRIBUTES,
) -> tuple[Tensor, ...]:
    """Add an If of two built branches and return its outputs; the first branch runs if the
    condition is true.

    ``results``: the Results of each branch.
    """
    for number, ((_, left), (_, right)) in enumerate(zip(*results, strict=True)):
        if left.element_type is not right.element_type:
            raise BuildError(
                f"cond(): output {number} is {left.element_type} when true and "
                f"{right.element_type} when false: convert one"
            )
    outer = [condition]
    places: dict[object, int] = {}
    bodies: list[Body] = []
    insides: list[region.BodyState] = []
    names: tuple[BodyName, BodyName] = ("then", "else")
    for name, frame, branch_results in zip(names, frames, results, strict=True):
        inputs = []
        for key, (tensor, inner) in frame.captures.items():
            if key not in places:
                places[key] = len(outer)
                outer.append(tensor)
            inputs.append(InputMap(places[key], inner.source.layer))
        outputs = [OutputMap(index, layer) for index, (layer, _) in enumerate(branch_results)]
        bodies.append(Body(name, frame.finished(), tuple(inputs), tuple(outputs)))
        insides.append(
            region.BodyState(
                bodies[-1], {}, {layer: tensor.known for layer, tensor in branch_results}
            )
        )
    output_knowledge: Sequence[Known] = region.chosen([tensor.known for tensor in outer], insides)
    return graph.frame.add(
        IF,
        "opset8",
        {},
        outer,
        output_knowledge,
        name=caller,
        bodies=tuple(bodies),
        rt_info=rt_info,
    )


def case(
    pred_fn_pairs: Sequence[tuple[Any, Branch]], default: Branch, name: str | None = None
) -> Any:
    """Return the result of the function of the first true predicate, or of ``default()`` if none is
    true.

    The branches become a chain of If-8, each in the else branch of the previous one. The errors are
    those of ``cond``.
    """
    pairs = list(pred_fn_pairs)
    if not pairs:
        raise BuildError("case(): pred_fn_pairs is empty, expected at least one pair")
    for number, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise BuildError(
                f"case(): pred_fn_pairs[{number}] is {shorten(repr(pair), 60)}, expected a pair "
                "of a predicate and a function"
            )
        check_signature(
            0, _NO_ARGUMENTS, "case", **{f"the function of pred_fn_pairs[{number}]": pair[1]}
        )
    check_signature(0, _NO_ARGUMENTS, "case", default=default)
    return _chain(pairs, default, name or "case")


def _chain(pairs: Sequence[tuple[Any, Branch]], default: Branch, name: str) -> Any:
    (pred, function), rest = pairs[0], pairs[1:]
    return cond(pred, function, (lambda: _chain(rest, default, name)) if rest else default, name)


def switch_case(
    branch_index: Any,
    branch_fns: Sequence[Branch] | Mapping[int, Branch],
    default: Branch | None = None,
    name: str | None = None,
) -> Any:
    """Return the result of the function with the number ``branch_index``, an integer of one
    element.

    ``branch_fns``: a sequence of functions, or a mapping from numbers to functions. Any other
    number selects ``default``, or the last function without a default, as in tf.switch_case. The
    branches become a chain of If-8. The errors are those of ``cond``.
    """
    functions = dict(branch_fns) if isinstance(branch_fns, Mapping) else dict(enumerate(branch_fns))
    if not functions:
        raise BuildError("switch_case(): branch_fns is empty, expected at least one function")
    for number, function in functions.items():
        if isinstance(number, bool) or not isinstance(number, int):
            raise BuildError(
                f"switch_case(): the number of a branch is {number!r}, expected a whole number"
            )
        check_signature(0, _NO_ARGUMENTS, "switch_case", **{f"branch {number}": function})
    graph = graph_of([branch_index], "switch_case")
    index = graph.lift(branch_index, what="switch_case(): branch_index")
    if index.element_type is None or not index.element_type.is_integer:
        raise BuildError(f"switch_case(): branch_index is {index!r}, expected a whole number")
    if default is None:
        default = functions.pop(max(functions))
    check_signature(0, _NO_ARGUMENTS, "switch_case", default=default)
    if not functions:
        return default()
    caller = name or "switch"
    with graph.within(caller):
        pairs = [(index == number, functions[number]) for number in sorted(functions)]
    return _chain(pairs, default, caller)


Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


@overload
def function(
    fn: Callable[Arguments, Returned], *, name: str = ""
) -> Callable[Arguments, Returned]: ...
@overload
def function(
    fn: None = None, *, name: str = ""
) -> Callable[[Callable[Arguments, Returned]], Callable[Arguments, Returned]]: ...
def function(fn: Any = None, *, name: str = "") -> Any:
    """Make a Python function a named part of graphs. Use it as a decorator, with or without
    ``name=`` (default: the function's name).

    Every call puts its nodes into a separate name scope: ``attention/``, then ``attention_1/``, ...
    The model contains plain nodes and is written as plain IR; its ``rt_info`` lists the calls. A
    view draws the first call open, with the number of calls, and each later call as a box that can
    be opened.
    """
    if fn is None:
        return functools.partial(function, name=name)
    if not callable(fn):
        raise TypeError(f"function(): expected a function, got {fn!r}")
    scope = name or getattr(fn, "__name__", "function").strip("<>")

    @functools.wraps(fn)
    def call_in_scope(*inputs: Any, **keywords: Any) -> Any:
        graph = graph_of([leaf.value for leaf in leaves((inputs, keywords))], scope)
        with graph.within(scope) as scope_name:
            graph.frame.calls.append(NameScope(scope_name, scope))
            return fn(*inputs, **keywords)

    return call_in_scope
