"""``control_dependencies``: what is built inside runs after given tensors, also where it does
not use their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from loopscope.builder.graph_builder import graph_of
from loopscope.builder.operation_handle import GraphOperation
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError, shorten


@contextmanager
def control_dependencies(
    control_inputs: Iterable[Tensor | GraphOperation] | None,
) -> Iterator[None]:
    """Operations that are built inside wait for ``control_inputs``, and make them run: tensors, or
    operations of the graph.

        with builder.control_dependencies([counter.assign_add(1)]):
            y = x * 2  # whoever asks for y also counts

    ``builder.constant`` waits too; parameters, and numbers in an expression, wait for nothing.
    Inside of one, another one adds to what is waited for; None means that nothing is.
    """
    given = [] if control_inputs is None else list(control_inputs)
    awaited: list[Tensor] = []
    for one in given:
        outputs = one.outputs[:1] if isinstance(one, GraphOperation) else (one,)
        if not outputs or not isinstance(outputs[0], Tensor):
            raise BuildError(
                f"control_dependencies() gets {shorten(repr(one), 60)}, expected tensors or operations with an output"
            )
        awaited += outputs
    frame = graph_of(awaited, "control_dependencies").frame
    with frame.waiting_for([frame.bring(one) for one in awaited], anew=control_inputs is None):
        yield
