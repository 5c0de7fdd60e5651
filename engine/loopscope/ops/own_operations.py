"""Loopscope's own operations: Print, After, and the recorded values of a trace.

After orders nodes by control dependencies. Recorded values are those of a program, by iteration.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from loopscope.errors import shorten
from loopscope.ir.recorded_rows import RECORDED, RECORDED_OPSET, VALUES, ValuesByRow
from loopscope.ops.declare import Array, Attribute, Kernel, Operation
from loopscope.ops.gradients.movement import unchanged
from loopscope.ops.infer import same
from loopscope.ops.values import NO_VALUE

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


def prepare_recorded(attributes: Mapping[str, Any], outputs: int) -> Kernel:
    """Return the kernel of one node.

    Its inputs are the iteration numbers of the enclosing loops, outermost first. It returns the
    empty optional for an iteration in which the program did not record the value.
    """
    rows: ValuesByRow = attributes[VALUES]
    values = rows.values

    def in_one_loop(iteration: Any) -> tuple[object]:
        return (_settled(values[int(iteration)]),)

    def in_nested_loops(*iterations: Any) -> tuple[object]:
        return (_settled(rows.at([int(iteration) for iteration in iterations])),)

    return in_nested_loops if rows.starts or len(values) == 1 else in_one_loop


def _settled(value: Any) -> object:
    """Return a value in the machine's representation, which has scalars instead of rank 0."""
    if value is None:
        return NO_VALUE
    return value if value.ndim else value[()]


RECORDED_VALUE = Operation(
    name=RECORDED,
    version=1,
    opsets=(1, 1),
    opset=RECORDED_OPSET,
    page="",
    prepare=prepare_recorded,
    inputs=(0, None),
    attributes=(Attribute(VALUES, "str", doc="The recorded values, by row."),),
    only_tensors=False,
    pure=False,
    doc="Return the value that a program recorded in an iteration.",
)
"""The only operation of a trace. It is not in the catalogue's tables, because nothing builds it."""
