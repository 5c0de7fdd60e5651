"""``stop_gradient``: a tensor as it is, through which no gradient goes."""

from __future__ import annotations

from typing import Any

from loopscope.builder.graph_builder import graph_of
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.gradient_info import NO_WAY_BACK


def stop_gradient(input: Any, name: str | None = None) -> Tensor:  # TensorFlow's name for it
    """Gives ``input`` as it is; for ``gradients`` it is a constant.

    It becomes a Convert to the type that the tensor has, whose ``rt_info`` says that there is no
    way back: every runtime computes it.
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
