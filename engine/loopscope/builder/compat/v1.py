"""A session on a graph under construction, as TensorFlow 1 has it: ``with compat.v1.Session() as
session: session.run(tensor)``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from loopscope.builder.graph_builder import Graph, current_graph
from loopscope.builder.operation_handle import GraphOperation
from loopscope.builder.printing import Print
from loopscope.builder.structure import leaves, rebuilt
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError, shorten
from loopscope.ir.model import Model
from loopscope.plugins import RUNNER, plugin

__all__ = ["Print", "Session"]

Variables = dict[str, np.ndarray]
Runner = Callable[
    [Model, Mapping[str, Any], Variables], tuple[tuple[np.ndarray, ...], tuple[str, ...]]
]
"""Runs what a model's outputs need, keeps its variables, and gives the outputs and the lines of
its Prints.
"""


class Session:
    """Runs tensors of a graph, again and again; its variables keep their values from one run to the
    next.

    ``graph``: by default the one that is open, or was made last. What the graph prints goes to the
    standard error, after each run.
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
        """The values of tensors, in the structure in which they are asked for; only what they need
        runs.

        ``fetches``: tensors, or their names (``"Add:0"``); an operation, or its name alone, runs
        and gives None. ``feed_dict``: arrays for tensors of the graph or their names; what computes
        them does not run. ``BuildError`` for what is no tensor of the graph, and for what lives
        inside a body, which may be neither fetched nor fed; errors of the run as those of
        ``loopscope.run``.
        """
        wanted = [self._fetched(leaf.value, "fetches" + leaf.path) for leaf in leaves(fetches)]
        if not wanted:
            return fetches
        model = self.graph.model([tensor for tensor, _ in wanted])
        feeds = {self._fed(one).name: value for one, value in (feed_dict or {}).items()}
        registered = plugin(RUNNER)
        if registered is None:
            raise BuildError(
                "no package registers a runner for compat.v1.Session: install loopscope, which does"
            )
        runner: Runner = registered.load()
        outputs, lines = runner(model, feeds, self.variables)
        sys.stderr.writelines(f"{line}\n" for line in lines)
        values = [
            value if is_value else None
            for value, (_, is_value) in zip(outputs, wanted, strict=True)
        ]
        return rebuilt(fetches, values)

    def _fetched(self, given: Any, what: str) -> tuple[Tensor, bool]:
        """A tensor that has to be computed, and whether its value is asked for."""
        found = self._named(given, what) if isinstance(given, str) else given
        if isinstance(found, GraphOperation) and found.outputs:
            return found.outputs[0], False
        if not isinstance(found, Tensor):
            raise BuildError(
                f"{what} is {shorten(repr(given), 60)}, expected a tensor or an operation of the graph, or a name of one"
            )
        return found, True

    def _fed(self, given: Any) -> Tensor:
        found = self._named(given, "feed_dict") if isinstance(given, str) else given
        if isinstance(found, GraphOperation) and len(found.outputs) == 1:
            found = found.outputs[0]
        if not isinstance(found, Tensor):
            raise BuildError(
                f"feed_dict is for {shorten(repr(given), 60)}, expected a tensor of the graph or a name of one"
            )
        if found.frame.parent is not None:
            raise BuildError(
                f"{found!r} lives in {found.frame.title} and may not be fed: feed what goes into it"
            )
        return found

    def _named(self, name: str, what: str) -> Tensor | GraphOperation:
        """``"Add:0"`` is a tensor, ``"Add"`` an operation, as in TensorFlow."""
        node, colon, number = name.rpartition(":")
        if not colon or not number.isdecimal():
            return self.graph[name]
        outputs = self.graph[node].outputs
        if int(number) >= len(outputs):
            raise BuildError(
                f"{what} is {shorten(name, 60)!r}, and {self.graph[node]!r} has {len(outputs)} outputs"
            )
        return outputs[int(number)]
