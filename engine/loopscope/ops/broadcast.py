"""The broadcasting modes of elementwise operations: none, numpy, pdpd."""

from __future__ import annotations

from collections.abc import Callable

from loopscope.ops.declare import Array, Attribute

AUTO_BROADCAST = Attribute(
    "auto_broadcast", "str", "numpy", allowed=("numpy", "none", "pdpd", "explicit")
)
"""``explicit`` is what old files call ``none``."""

BinaryKernel = Callable[..., Array]


def fitted(left: Array, right: Array, mode: str) -> Array:
    """``right`` as numpy's rule broadcasts it to what ``mode`` asks; ``ValueError`` when the mode
    forbids these shapes.

    pdpd (broadcast-rules): only the second input is stretched, to the shape of the first. A file
    cannot say along which axis, and OpenVINO then lets them begin with the same one.
    """
    if mode in ("none", "explicit"):
        if left.shape != right.shape:
            raise ValueError(
                f"shapes {list(left.shape)} and {list(right.shape)} differ, and auto_broadcast is '{mode}'"
            )
    elif mode == "pdpd":
        lengths = pdpd_lengths(right.shape, left.ndim)
        if len(lengths) > left.ndim or any(
            one not in (1, other) for one, other in zip(lengths, left.shape, strict=True)
        ):
            raise ValueError(
                f"shape {right.shape} cannot be broadcast to {left.shape}, as auto_broadcast 'pdpd' asks"
            )
        return right.reshape(lengths)
    return right


def pdpd_lengths(lengths: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """A shape filled up with 1 behind.

    >>> pdpd_lengths((2, 3), 4)
    (2, 3, 1, 1)
    """
    return lengths + (1,) * (rank - len(lengths))


def binary(function: Callable[[Array, Array], Array], text: str) -> BinaryKernel:
    """A kernel of two tensors with ``auto_broadcast`` from a function with numpy's broadcasting."""

    def kernel(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
        if auto_broadcast != "numpy":
            right = fitted(left, right, auto_broadcast)
        return function(left, right)

    kernel.__doc__ = text
    kernel.__name__ = kernel.__qualname__ = function.__name__
    return kernel
