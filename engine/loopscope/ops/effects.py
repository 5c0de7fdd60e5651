"""Operations of our own for side effects: Print, and After, by which control dependencies fix an
order.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from loopscope.errors import shorten
from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.gradients.movement import unchanged
from loopscope.ops.infer import same

OPSET = "loopscope"
"""What layers of these operations have as their version; no other runtime knows them."""
own = partial(Operation, version=1, opsets=(1, 17), opset=OPSET, page="")
"""An operation of our own."""
_LONGEST = 300
"""Letters of a line."""


def print_line(value: Array, /, *data: Array, message: str, first_n: int, summarize: int) -> str:
    """What one execution of a Print shows, as TensorFlow's Print: the message, and each of ``data``
    in brackets.

    >>> print_line(np.array(1), np.array(7), np.arange(5), message="x:", first_n=-1, summarize=3)
    'x:[7][0 1 2...]'
    """
    texts = [_summary(np.asarray(one), summarize) for one in (data or (value,))]
    return shorten(message + "".join(texts), _LONGEST)


def _summary(array: Array, most: int) -> str:
    flat = array.reshape(-1)
    shown = flat if most < 0 else flat[:most]
    return f"[{' '.join(map(str, shown.tolist()))}{'...' if shown.size < flat.size else ''}]"


def print_values(
    value: Array, /, *data: Array, message: str, first_n: int, summarize: int
) -> Array:
    """The first input as it is; what it shows is ``message`` and the values of the other inputs
    (of the first, when it is alone).
    """
    return value


def after(value: Array, /, *others: Array) -> Array:
    """The first input as it is, but only when all others have been computed."""
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
