"""Functions: named subgraphs that are called in several places."""

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
