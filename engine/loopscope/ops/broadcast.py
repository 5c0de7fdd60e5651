"""The broadcasting modes of elementwise operations: none, numpy, pdpd."""

from __future__ import annotations

from collections.abc import Callable

from loopscope.ops.declare import Array, Attribute

AUTO_BROADCAST = Attribute(
    "auto_broadcast", "str", "numpy", allowed=("numpy", "none", "pdpd", "explicit")
)
"""Broadcasting mode; ``explicit`` is the name of ``none`` in old files."""

BinaryKernel = Callable[..., Array]


def fit_operand(left: Array, right: Array, mode: str) -> Array:
    """Reshape ``right`` so that numpy's broadcasting gives the result of ``mode``.

    Raise ``ValueError`` if the mode does not allow these shapes.

    pdpd (broadcast-rules): only the second input is stretched, to the shape of the first. A file
    cannot name the axis to start at, and OpenVINO then aligns both at the first axis.
    """
    if mode in ("none", "explicit"):
        if left.shape != right.shape:
            raise ValueError(
                f"shapes {list(left.shape)} and {list(right.shape)} differ, and "
                f"auto_broadcast is '{mode}'"
            )
    elif mode == "pdpd":
        lengths = pdpd_lengths(right.shape, left.ndim)
        if len(lengths) > left.ndim or any(
            length not in (1, target) for length, target in zip(lengths, left.shape, strict=True)
        ):
            raise ValueError(
                f"shape {right.shape} cannot be broadcast to {left.shape}, as "
                "auto_broadcast 'pdpd' requires"
            )
        return right.reshape(lengths)
    return right


def pdpd_lengths(lengths: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Append lengths of 1 to a shape.

    >>> pdpd_lengths((2, 3), 4)
    (2, 3, 1, 1)
    """
    return lengths + (1,) * (rank - len(lengths))


def binary(function: Callable[[Array, Array], Array], text: str) -> BinaryKernel:
    """Return a kernel of two tensors with ``auto_broadcast`` from a function with numpy's
    broadcasting.
    """

    def kernel(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
        if auto_broadcast != "numpy":
            right = fit_operand(left, right, auto_broadcast)
        return function(left, right)

    kernel.__doc__ = text
    kernel.__name__ = kernel.__qualname__ = function.__name__
    return kernel
