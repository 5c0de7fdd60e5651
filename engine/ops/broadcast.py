"""The broadcasting modes of elementwise operations: none, numpy, pdpd."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.ops.declare import Array, Attribute

AUTO_BROADCAST = Attribute("auto_broadcast", "str", "numpy", allowed=("numpy", "none", "pdpd", "explicit"))
"""``explicit`` is what old files call ``none``."""

BinaryKernel = Callable[..., Array]


def check_broadcast(left: Array, right: Array, mode: str) -> None:
    """``ValueError`` when the mode forbids what numpy's rule would do with these shapes.

    pdpd (broadcast-rules): only the second input is stretched, to the shape of the first.
    """
    if mode in ("none", "explicit"):
        if left.shape != right.shape:
            raise ValueError(f"shapes {left.shape} and {right.shape} differ, and auto_broadcast is '{mode}'")
    elif mode == "pdpd" and np.broadcast_shapes(left.shape, right.shape) != left.shape:
        raise ValueError(f"shape {right.shape} cannot be broadcast to {left.shape}, as auto_broadcast 'pdpd' asks")


def binary(function: Callable[[Array, Array], Array], text: str) -> BinaryKernel:
    """A kernel of two tensors with ``auto_broadcast`` from a function with numpy's broadcasting."""

    def kernel(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
        if auto_broadcast != "numpy":
            check_broadcast(left, right, auto_broadcast)
        return function(left, right)

    kernel.__doc__ = text
    kernel.__name__ = kernel.__qualname__ = function.__name__
    return kernel
