"""Functions: a named subgraph that is called in several places."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

from loopscope.builder.frame import NameScope
from loopscope.builder.graph_builder import graph_of
from loopscope.builder.structure import leaves

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
    """Makes a Python function a named part of graphs; a decorator, with or without ``name=``
    (default: the function's own).

    Every call puts the nodes that it builds into a name scope of its own: ``attention/``, then
    ``attention_1/``, ... A model keeps plain nodes, so that it is written as plain IR; its
    ``rt_info`` lists the calls. A view draws the first one open, with how many there are, and each
    of the others as a box that can be opened.
    """
    if fn is None:
        return functools.partial(function, name=name)
    if not callable(fn):
        raise TypeError(f"function(): {fn!r} is no function")
    scope = name or getattr(fn, "__name__", "function").strip("<>")

    @functools.wraps(fn)
    def called(*inputs: Any, **keywords: Any) -> Any:
        graph = graph_of([leaf.value for leaf in leaves((inputs, keywords))], scope)
        with graph.within(scope) as whole:
            graph.frame.calls.append(NameScope(whole, scope))
            return fn(*inputs, **keywords)

    return called
