"""``control_dependencies``: operations that run after given tensors without using their values."""

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
