"""How many iterations of a loop may be under way at once, as its ``rt_info`` keeps it."""

from __future__ import annotations

from collections.abc import Mapping

from engine.ir.model import Node

PARALLEL_ITERATIONS = "parallel_iterations"
"""Its name in the rt_info, as in tf.while_loop."""
USUAL_WINDOW = 10
"""As in TensorFlow where nothing is said."""
_MOST_DIGITS = 9


def window_of(loop: Node) -> int:
    """What a loop says, at least 1; the usual window where it says nothing that can be used."""
    said = loop.rt_info.get(PARALLEL_ITERATIONS)
    text = said.get("value") if isinstance(said, Mapping) else said
    if not isinstance(text, str) or not (text.isascii() and text.isdecimal()) or len(text) > _MOST_DIGITS:
        return USUAL_WINDOW
    return max(1, int(text))
