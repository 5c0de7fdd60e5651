"""``Print``: an identity that prints values whenever it is computed."""

from __future__ import annotations

from typing import Any

from loopscope.builder.graph_builder import graph_of
from loopscope.builder.structure import leaves
from loopscope.builder.tensor import Tensor


def Print(  # TensorFlow's name
    input_: Any,
    data: Any = None,
    message: str = "",
    first_n: int = -1,
    summarize: int = 3,
    name: str | None = None,
) -> Tensor:
    """Return ``input_`` unchanged. Whenever it is computed, a line with ``message`` and the values
    of ``data`` (default: ``input_``) is printed.

    ``first_n``: maximum number of lines (-1: all). ``summarize``: maximum number of elements per
    value (-1: all). The app shows the lines up to the current moment; ``loopscope run`` and a
    ``compat.v1.Session`` show all lines, and ``loopscope.run(...).printed`` contains them. A Print
    with an unused result prints nothing. Only Loopscope runs this operation; other runtimes do not
    support it.
    """
    values = [] if data is None else [leaf.value for leaf in leaves(data)]
    graph = graph_of([input_, *values], "Print")
    attributes = {"message": message or "", "first_n": first_n, "summarize": summarize}
    return graph.apply(
        "Print",
        (graph.lift(input_, what="Print(): input_"), *map(graph.lift, values)),
        attributes,
        name or "",
    )[0]
