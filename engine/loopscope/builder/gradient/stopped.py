"""``stop_gradient``: an identity without a gradient."""

from __future__ import annotations

from typing import Any

from loopscope.builder.graph_builder import graph_of
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.way_back import NO_WAY_BACK


def stop_gradient(input: Any, name: str | None = None) -> Tensor:  # TensorFlow's name
    """Return ``input`` unchanged; ``gradients`` treats the result as a constant.

    The result is a Convert to the same type, which every runtime supports. Its ``rt_info`` marks
    that it has no gradient.
    """
    graph = graph_of([input], "stop_gradient")
    tensor = graph.lift(input, what="stop_gradient(): input")
    if tensor.element_type is None:
        raise BuildError(
            f"stop_gradient(): input is {tensor!r}, expected a known element type: convert it first"
        )
    to = {"destination_type": str(tensor.element_type)}
    return graph.frame.add(
        "Convert",
        "opset1",
        to,
        (tensor,),
        (tensor.known,),
        name=name or "StopGradient",
        rt_info=NO_WAY_BACK,
    )[0]
