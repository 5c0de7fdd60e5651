"""Values of a sweep's user columns: ``max(abs(main/loop/body/Add))`` reads that value in all
iterations.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from loopscope.debug.expression import Expression, parse
from loopscope.debug.run import Run
from loopscope.errors import ExpressionError, shorten
from loopscope.executor.plan.plan import Program
from loopscope.ir.address import Address

_ADDRESS = re.compile(r"`[^`]*`|\bmain(?:/[\w.:\[\]]+)+")
_MAX_VALUES = 1 << 26


def column_of(text: str) -> Expression:
    """Parse an expression in which addresses do not require backticks, if they contain no signs but
    ``_``, ``.`` and ``:``.

    >>> sorted(column_of("max(abs(main/loop/body/Add)) + 1").names)
    ['main/loop/body/Add']
    """
    return parse(
        _ADDRESS.sub(lambda match: match[0] if match[0].startswith("`") else f"`{match[0]}`", text)
    )


def value_of(run: Run, name: str) -> Any:
    """Return the value at an address, stacked over all executions of its graph if no iteration is
    given; ``ExpressionError`` for an unknown address.
    """
    address = Address.parse(name)
    program = run.plan.program_by_address.get(
        "/".join(segment.label for segment in address.segments[:-1])
    )
    if (
        program is None
        or program.parent is None
        or any("[" in str(part) for part in name.split("/"))
    ):
        return run.value(name)
    label, _, output = name.rpartition("/")[2].partition(":")
    layer = program.layer_of_label.get(label)
    slot = (
        None
        if layer is None
        else program.slots.get(
            (layer, int(output) if output.isdecimal() and len(output) < 10 else 0)
        )
    )
    if slot is None:
        raise ExpressionError(f"there is no {shorten(name, 80)!r} in the model")
    return _stack(
        [
            run.values.get(run.timeline, program, row, slot)
            for row in _rows(run, program)
            if run.has_run(program, row, slot)
        ]
    )


def _rows(run: Run, program: Program) -> range:
    return range(run.timeline.executions.rows[program.index])


def _stack(values: list[Any]) -> Any:
    """Stack values along a new first axis if all have one shape, else join their elements."""
    arrays = [np.asarray(array) for array in values]
    if sum(array.size for array in arrays) > _MAX_VALUES:
        raise ExpressionError(f"all iterations together have more than {_MAX_VALUES} elements")
    if not arrays:
        return np.zeros(0)
    return (
        np.stack(arrays)
        if len({array.shape for array in arrays}) == 1
        else np.concatenate([array.reshape(-1) for array in arrays])
    )
