"""``Print``: passes a tensor on, and shows values whenever that happens."""

from __future__ import annotations

from typing import Any

from loopscope.builder.graph_builder import graph_of
from loopscope.builder.structure import leaves
from loopscope.builder.tensor import Tensor


def Print(  # TensorFlow's name for it
    input_: Any,
    data: Any = None,
    message: str = "",
    first_n: int = -1,
    summarize: int = 3,
    name: str | None = None,
) -> Tensor:
    """Gives ``input_`` as it is; whenever it is computed, a line shows ``message`` and the values
    of ``data`` (default: of ``input_``).

    ``first_n``: so many lines (-1: all). ``summarize``: so many elements of each value (-1: all).
    The app shows the lines up to the moment that is looked at, ``loopscope run`` and a
    ``compat.v1.Session`` all of them, and ``loopscope.run(...).printed`` has them. A Print whose
    result nothing needs shows nothing. Only Loopscope runs it: no other runtime knows the
    operation.
    """
    shown = [] if data is None else [leaf.value for leaf in leaves(data)]
    graph = graph_of([input_, *shown], "Print")
    attributes = {"message": message or "", "first_n": first_n, "summarize": summarize}
    return graph.apply(
        "Print",
        (graph.lift(input_, what="Print(): input_"), *map(graph.lift, shown)),
        attributes,
        name or "",
    )[0]
