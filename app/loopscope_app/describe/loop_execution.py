"""One execution of a loop in a run: its iteration count, its branches, and values over it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

import loopscope
from loopscope.errors import EngineError
from loopscope.executor import LoopRegion
from loopscope.explain import branch_history, region_at
from loopscope.ir import IF, Address
from loopscope_app.describe import tensor_summary

_PATTERN = re.compile(r"(.*)\[(\d+)\]([^\[]*)")


@dataclass(frozen=True, slots=True)
class PlaceInLoop:
    """An address, split at its innermost iteration."""

    loop: str
    """Concrete address of the loop."""
    iteration: int
    rest: str

    def at(self, iteration: int) -> str:
        """Return the address in another iteration."""
        return f"{self.loop}[{iteration}]{self.rest}"


def place_in_loop(address: str) -> PlaceInLoop | None:
    """Return the innermost loop and iteration of an address; None outside loops.

    >>> place_in_loop("main/a[1]/body/b[2]/body/c").at(0)
    'main/a[1]/body/b[0]/body/c'
    """
    match = _PATTERN.fullmatch(address)
    return PlaceInLoop(match[1], int(match[2]), match[3]) if match else None


def iteration_count(run: loopscope.Debugger, loop: str) -> int:
    """Return the number of iterations that an execution of a loop began; 0 if it did not run."""
    rows = _rows(run, loop)
    return rows[1] - rows[0] if rows else 0


def branches(run: loopscope.Debugger, loop: str) -> Mapping[str, np.ndarray]:
    """Return the branch of each iteration for each If of a loop's body: 1 then, 0 else.

    Ifs inside other branches are left out, because they do not run in each iteration.
    """
    rows = _rows(run, loop)
    if rows is None:
        return {}
    _, instruction = region_at(run.plan, Address.parse(loop).static)
    assert isinstance(instruction.region, LoopRegion)
    body = instruction.region.program
    names = [entry.label for entry in body.instructions if entry.node.type == IF]
    static = f"{Address.parse(loop).static}/body"
    return {name: branch_history(run, f"{static}/{name}").taken[slice(*rows)] for name in names}


def _rows(run: loopscope.Debugger, loop: str) -> tuple[int, int] | None:
    """Return the first row of an execution in the loop's body, and the row after its last."""
    try:
        parsed = Address.parse(loop)
        _, row = run.rows_of(parsed)
        _, instruction = region_at(run.plan, parsed.static)
        region = instruction.region
        if not isinstance(region, LoopRegion):
            return None
        if row >= len(run.timeline.executions.loop_starts(region)):
            return None
        return run.timeline.executions.rows_of(region, row)
    except (EngineError, ValueError):
        return None


def number_at(run: loopscope.Debugger, address: str) -> float | None:
    """Return a value with one element as a number; None for any other value."""
    try:
        array = np.asarray(run.value(address))
    except EngineError:
        return None
    return as_number(array)


def as_number(array: np.ndarray) -> float | None:
    """Return a finite array of one element as a number; None for any other array."""
    numbers = tensor_summary.numbers(array) if array.size == 1 else None
    if numbers is None or not numbers.size:
        return None
    number = float(numbers.reshape(-1)[0])
    return number if math.isfinite(number) else None
