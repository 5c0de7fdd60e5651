"""Loopscope's own operations with side effects: Print, and After, which orders nodes by control
dependencies.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from loopscope.errors import shorten
from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.gradients.movement import unchanged
from loopscope.ops.infer import same

OPSET = "loopscope"
"""Version of these operations in layers; other runtimes do not know them."""
own = partial(Operation, version=1, opsets=(1, 17), opset=OPSET, page="")
"""Constructor of Loopscope's own operations."""
_MAX_LETTERS = 300
"""Maximum number of letters in a line."""


def print_line(value: Array, /, *data: Array, message: str, first_n: int, summarize: int) -> str:
    """Return the line that one execution of a Print shows, as in TensorFlow: the message, and each
    of ``data`` in brackets.

    >>> print_line(np.array(1), np.array(7), np.arange(5), message="x:", first_n=-1, summarize=3)
    'x:[7][0 1 2...]'
    """
    texts = [_summary(np.asarray(values), summarize) for values in (data or (value,))]
    return shorten(message + "".join(texts), _MAX_LETTERS)


def _summary(array: Array, limit: int) -> str:
    flat = array.reshape(-1)
    prefix = flat if limit < 0 else flat[:limit]
    return f"[{' '.join(map(str, prefix.tolist()))}{'...' if prefix.size < flat.size else ''}]"


def print_values(
    value: Array, /, *data: Array, message: str, first_n: int, summarize: int
) -> Array:
    """Return the first input unchanged.

    The printed line is ``message`` and the values of the other inputs (of the first, if it is the
    only one).
    """
    return value


def after(value: Array, /, *others: Array) -> Array:
    """Return the first input unchanged, after all other inputs have been computed."""
    return value


OPERATIONS: tuple[Operation, ...] = (
    own(
        name="Print",
        kernel=print_values,
        infer=same,
        inputs=(1, None),
        attributes=(
            Attribute("message", "str", default=""),
            Attribute("first_n", "int", default=-1),
            Attribute("summarize", "int", default=3),
        ),
        shows=print_line,
        gradient=unchanged,
    ),
    own(name="After", kernel=after, infer=same, inputs=(1, None), gradient=unchanged),
)
