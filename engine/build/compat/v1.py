"""A session on a graph under construction, as TensorFlow 1 has it: ``with compat.v1.Session() as session: session.run(tensor)``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from engine.build.graph_builder import Graph, current_graph
from engine.build.printing import Print
from engine.build.structure import leaves, rebuilt
from engine.build.tensor import Tensor
from engine.errors import BuildError, shorten
from engine.ir.model import Model

__all__ = ["Print", "Session"]

Variables = dict[str, np.ndarray]
Runner = Callable[[Model, Mapping[str, Any], Variables], tuple[tuple[np.ndarray, ...], tuple[str, ...]]]
"""Runs what a model's outputs need, keeps its variables, and gives the outputs and the lines of its Prints."""


class Session:
    """Runs tensors of a graph, again and again; its variables keep their values from one run to the next.

    ``graph``: by default the one that is open, or was made last. What the graph prints goes to the standard error, after each run.
    """

    runner: ClassVar[Runner | None] = None
    """The engine's door sets it, because the builder cannot run what it builds."""

    def __init__(self, graph: Graph | None = None) -> None:
        self.graph = graph if graph is not None else current_graph()
        self.variables: Variables = {}

    def __enter__(self) -> Session:
        self.graph.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.graph.__exit__()

    def run(self, fetches: Any, feed_dict: Mapping[Tensor, Any] | None = None) -> Any:
        """The values of tensors, in the structure in which they are asked for; only what they need runs.

        ``feed_dict``: arrays by parameter. ``BuildError`` for what is no tensor of the graph, or lives inside a body; errors of the run as
        those of ``engine.run``.
        """
        wanted = leaves(fetches)
        if not wanted:
            return fetches
        model = self.graph.model([_tensor(leaf.value, "fetches" + leaf.path) for leaf in wanted])
        feeds = {_tensor(one, "feed_dict").name: value for one, value in (feed_dict or {}).items()}
        assert Session.runner is not None
        outputs, lines = Session.runner(model, feeds, self.variables)
        sys.stderr.writelines(f"{line}\n" for line in lines)
        return rebuilt(fetches, outputs)


def _tensor(given: Any, what: str) -> Tensor:
    if not isinstance(given, Tensor):
        raise BuildError(f"{what} is {shorten(repr(given), 60)}, expected a tensor of the graph")
    return given
