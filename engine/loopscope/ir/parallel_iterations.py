"""The number of iterations of a loop that may be under way at once, and the time of an
operation, as their ``rt_info`` holds them.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopscope.ir.model import Node

PARALLEL_ITERATIONS = "parallel_iterations"
"""Its name in the rt_info, as in tf.while_loop."""
USUAL_WINDOW = 10
"""As in TensorFlow where nothing is said."""
TICKS = "ticks"
"""The name, in the rt_info of an operation, of the time that it takes in a schedule."""
_MOST_DIGITS = 9


def window_of(loop: Node) -> int:
    """What a loop says, at least 1; the usual window where it says nothing that can be used."""
    return _whole_number(loop, PARALLEL_ITERATIONS, USUAL_WINDOW)


def ticks_of(node: Node) -> int:
    """Return the ticks that an operation takes in a schedule, at least 1; 1 where its
    ``rt_info`` does not say it.
    """
    return _whole_number(node, TICKS, 1)


def _whole_number(node: Node, name: str, usual: int) -> int:
    content = node.rt_info.get(name)
    text = content.get("value") if isinstance(content, Mapping) else content
    if (
        not isinstance(text, str)
        or not (text.isascii() and text.isdecimal())
        or len(text) > _MOST_DIGITS
    ):
        return usual
    return max(1, int(text))
