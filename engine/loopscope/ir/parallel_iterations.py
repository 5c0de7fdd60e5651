"""Two scheduling hints in ``rt_info``: parallel iterations of a loop and ticks of an operation."""

from __future__ import annotations

from collections.abc import Mapping

from loopscope.ir.model import Node

PARALLEL_ITERATIONS = "parallel_iterations"
"""Key in the rt_info of a loop, named as in tf.while_loop."""
USUAL_WINDOW = 10
"""Number of parallel iterations of a loop without the hint, as in TensorFlow."""
TICKS = "ticks"
"""Key in the rt_info of an operation for its duration in a schedule."""
_MAX_DIGITS = 9


def window_of(loop: Node) -> int:
    """Return the number of iterations of a loop that may run at once, at least 1.

    The default is ``USUAL_WINDOW`` if the rt_info has no valid number.
    """
    return _whole_number(loop, PARALLEL_ITERATIONS, USUAL_WINDOW)


def ticks_of(node: Node) -> int:
    """Return the ticks that an operation takes in a schedule, at least 1.

    The default is 1 if the ``rt_info`` has no valid number.
    """
    return _whole_number(node, TICKS, 1)


def _whole_number(node: Node, name: str, default: int) -> int:
    content = node.rt_info.get(name)
    text = content.get("value") if isinstance(content, Mapping) else content
    if (
        not isinstance(text, str)
        or not (text.isascii() and text.isdecimal())
        or len(text) > _MAX_DIGITS
    ):
        return default
    return max(1, int(text))
