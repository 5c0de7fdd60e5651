"""``Print``, which prints values when it is computed, and ``control_dependencies``.

Control dependencies run operations after given tensors without using their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from loopscope.builder.graph_builder import graph_of
from loopscope.builder.structure import leaves
from loopscope.builder.tensor import GraphOperation, Tensor
from loopscope.errors import BuildError, shorten


@contextmanager
def control_dependencies(
    control_inputs: Iterable[Tensor | GraphOperation] | None,
) -> Iterator[None]:
    """Make operations that are built inside wait for ``control_inputs``, and make those run.

            with builder.control_dependencies([counter.assign_add(1)]):
                y = x * 2  # fetching y also counts

    ``control_inputs``: tensors, or operations of the graph. ``builder.constant`` waits too;
    parameters and numbers in an expression do not wait. A nested call adds its inputs to those of
    the outer call; None removes the inputs of the outer calls.
    """
    inputs = [] if control_inputs is None else list(control_inputs)
    awaited: list[Tensor] = []
    for control_input in inputs:
        outputs = (
            control_input.outputs[:1]
            if isinstance(control_input, GraphOperation)
            else (control_input,)
        )
        if not outputs or not isinstance(outputs[0], Tensor):
            raise BuildError(
                "control_dependencies(): expected tensors or operations with an output, got "
                f"{shorten(repr(control_input), 60)}"
            )
        awaited += outputs
    frame = graph_of(awaited, "control_dependencies").frame
    with frame.waiting_for(
        [frame.bring(control_input) for control_input in awaited], reset=control_inputs is None
    ):
        yield


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
