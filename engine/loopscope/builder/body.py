"""The body of a loop under construction: its iteration number and its collected values."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopscope.builder.frame import GraphFrame
from loopscope.builder.graph_builder import Graph, check_name, graph_of
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import SCALAR
from loopscope.ops.declare import Known


class LoopBody(GraphFrame):
    """A body that runs once per iteration."""

    def __init__(self, graph: Graph, parent: GraphFrame, title: str) -> None:
        super().__init__(graph, parent, title)
        self.number: Tensor | None = None
        """Parameter of the iteration number, created on first use."""
        self.collected: list[tuple[Collected, Tensor]] = []
        """Collectors of this loop with the value of one iteration each, in call order."""

    def iteration_number(self, name: str) -> Tensor:
        """Return the iteration number; the first call determines its name."""
        if self.number is None:
            with self.names.unscoped():
                self.number = self.parameter(name, Known(ElementType.I64, SCALAR))
        return self.number

    def drop_unread_number(self) -> None:
        """Remove the Parameter of the iteration number if nothing in the body reads it."""
        if self.number is not None and all(
            edge.from_layer != self.number.source.layer for edge in self.edges
        ):
            self.nodes = [node for node in self.nodes if node.id != self.number.source.layer]
            self.number = None

    def forget(self, nodes: int, edges: int) -> None:
        super().forget(nodes, edges)
        if self.number is not None and self.number.source.layer >= nodes:
            self.number = None
        self.collected = [
            (collector, part) for collector, part in self.collected if part.source.layer < nodes
        ]


def current_iteration(name: str = "iteration") -> Tensor:
    """Return the iteration number of the innermost enclosing loop: an i64 scalar, from 0.

    Use it in bodies of loops that do not pass the number, and in branches inside such bodies.

    ``BuildError`` outside of a loop. ``BuildError`` in the ``cond`` of a ``while_loop``, because
    that is also evaluated before the first iteration.
    """
    graph = graph_of([], "current_iteration")
    body = _innermost(graph, "current_iteration()")
    return graph.frame.bring(body.iteration_number(check_name(name, "current_iteration(): name")))


class Collected:
    """A collector of one value per iteration of a loop, as one tensor.

        squares = builder.Collected("squares")

        def body(i, total):
            squares.append(i * i)
            return total + i * i

        (total,) = builder.for_loop(5, body, [0])
        model = graph.model({"total": total, "squares": squares.tensor})

    It works in the body of every loop: ``while_loop``, ``do_while``, ``for_loop``, ``foldl``, ...
    The loop gets one more output, which concatenates the parts of all iterations.
    """

    def __init__(self, name: str = "collected") -> None:
        self._name = check_name(name, "the name of a Collected")
        self._tensor: Tensor | None = None

    def __repr__(self) -> str:
        return f"<Collected {self._name!r}>"

    @property
    def name(self) -> str:
        """Name of the body's Result."""
        return self._name

    @property
    def tensor(self) -> Tensor:
        """Collected values of all iterations, in order.

        ``BuildError`` before the loop is built.
        """
        if self._tensor is None:
            raise BuildError(
                f"{self!r} is empty: call append() or extend() in the body of a loop, and read it "
                "after the loop"
            )
        return self._tensor

    def append(self, value: Any) -> None:
        """Collect a value per iteration; the values are stacked along a new first axis."""
        self._take(value, "append")

    def extend(self, value: Any) -> None:
        """Collect a part per iteration, of length 1 along its first axis; the parts are
        concatenated along this axis. (OpenVINO refuses longer parts.)
        """
        self._take(value, "extend")

    def fill(self, tensor: Tensor) -> None:
        """Set the tensor. The loop calls this when it is built."""
        self._tensor = tensor

    def _take(self, value: Any, caller: str) -> None:
        method_call = f"{self!r}.{caller}()"
        graph = graph_of([value], method_call)
        body, frame = _innermost(graph, method_call), graph.frame
        if body is not frame:
            raise BuildError(
                f"{method_call} is called in {frame.title}, which does not run in every "
                "iteration: return the value from cond() and collect it"
            )
        if self._tensor is not None or any(collector is self for collector, _ in body.collected):
            raise BuildError(
                f"{method_call} is called a second time, but collects one value per iteration of "
                "one loop: create another Collected"
            )
        part = graph.lift(value, what=f"{method_call}: the value")
        if caller == "append":
            part = graph.apply("Unsqueeze", (part, np.array([0])), {}, name=f"{self._name}_part")[0]
        elif part.rank == 0 or not part.shape.at(0).contains(1):
            raise BuildError(
                f"{method_call}: expected length 1 along the first axis, got {part!r}; append() "
                "accepts values of any shape"
            )
        body.collected.append((self, part))


def _innermost(graph: Graph, caller: str) -> LoopBody:
    frame: GraphFrame | None = graph.frame
    while frame is not None:
        if frame.ahead:
            raise BuildError(
                f"{caller} is called in the cond of {frame.ahead}, which is also evaluated before "
                "the first iteration: call it in body"
            )
        if isinstance(frame, LoopBody):
            return frame
        frame = frame.parent
    raise BuildError(
        f"{caller} is called outside of a loop: call it while the body of a loop is built"
    )
