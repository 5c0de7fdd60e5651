"""A session on a graph under construction, as in TensorFlow 1: ``with compat.v1.Session() as
session: session.run(tensor)``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from loopscope.builder.graph_builder import Graph, current_graph
from loopscope.builder.stateful import Print
from loopscope.builder.structure import leaves, rebuild
from loopscope.builder.tensor import GraphOperation, Tensor
from loopscope.errors import BuildError, shorten
from loopscope.ir.model import Model
from loopscope.plugins import RUNNER, plugin

__all__ = ["Print", "Session"]

Variables = dict[str, np.ndarray]
Runner = Callable[
    [Model, Mapping[str, Any], Variables], tuple[tuple[np.ndarray, ...], tuple[str, ...]]
]
"""Function that runs a model, updates its variables, and returns the outputs and the lines of its
Prints.
"""


class Session:
    """A session that runs tensors of a graph; its variables are preserved between runs.

    ``graph``: by default the open graph, or the most recent one. Lines of Print go to standard
    error after each run.
    """

    def __init__(self, graph: Graph | None = None) -> None:
        self.graph = graph if graph is not None else current_graph()
        self.variables: Variables = {}

    def __enter__(self) -> Session:
        self.graph.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.graph.__exit__()

    def run(self, fetches: Any, feed_dict: Mapping[Tensor | str, Any] | None = None) -> Any:
        """Return the values of tensors in the structure of ``fetches``; only the required nodes
        run.

        ``fetches``: tensors, or their names (``"Add:0"``). An operation, or its name, runs and
        returns None. ``feed_dict``: arrays for tensors of the graph or their names; the nodes that
        compute these tensors do not run. ``BuildError`` for values that are not tensors of the
        graph, and for tensors inside a body, which cannot be fetched or fed. Errors of the run are
        those of ``loopscope.run``.
        """
        fetched = [self._fetched(leaf.value, "fetches" + leaf.path) for leaf in leaves(fetches)]
        if not fetched:
            return fetches
        model = self.graph.model([tensor for tensor, _ in fetched])
        feeds = {self._fed(key).name: value for key, value in (feed_dict or {}).items()}
        registered = plugin(RUNNER)
        if registered is None:
            raise BuildError(
                "compat.v1.Session needs a package that runs models: install loopscope"
            )
        runner: Runner = registered.load()
        outputs, lines = runner(model, feeds, self.variables)
        sys.stderr.writelines(f"{line}\n" for line in lines)
        values = [
            value if is_value else None
            for value, (_, is_value) in zip(outputs, fetched, strict=True)
        ]
        return rebuild(fetches, values)

    def _fetched(self, fetch: Any, what: str) -> tuple[Tensor, bool]:
        """Return the tensor to compute for a fetch, and whether its value is returned."""
        target = self._named(fetch, what) if isinstance(fetch, str) else fetch
        if isinstance(target, GraphOperation) and target.outputs:
            return target.outputs[0], False
        if not isinstance(target, Tensor):
            raise BuildError(
                f"{what} is {shorten(repr(fetch), 60)}, expected a tensor or an operation of the "
                "graph, or its name"
            )
        return target, True

    def _fed(self, key: Any) -> Tensor:
        target = self._named(key, "feed_dict") if isinstance(key, str) else key
        if isinstance(target, GraphOperation) and len(target.outputs) == 1:
            target = target.outputs[0]
        if not isinstance(target, Tensor):
            raise BuildError(
                f"feed_dict contains {shorten(repr(key), 60)}, expected a tensor of the graph or "
                "its name"
            )
        if target.frame.parent is not None:
            raise BuildError(
                f"{target!r} belongs to {target.frame.title} and cannot be fed: feed a tensor "
                "outside of it"
            )
        return target

    def _named(self, name: str, what: str) -> Tensor | GraphOperation:
        """Return a tensor for ``"Add:0"`` and an operation for ``"Add"``, as in TensorFlow."""
        node, colon, number = name.rpartition(":")
        if not colon or not number.isdecimal():
            return self.graph[name]
        outputs = self.graph[node].outputs
        if int(number) >= len(outputs):
            raise BuildError(
                f"{what} is {shorten(name, 60)!r}, but {self.graph[node]!r} has {len(outputs)} "
                "outputs"
            )
        return outputs[int(number)]
