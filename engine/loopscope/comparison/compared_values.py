"""A pair of values to compare, before any row of it was read."""

from __future__ import annotations

from dataclasses import dataclass

from loopscope.comparison.matching import How
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Program


@dataclass(frozen=True, slots=True, eq=False)
class ComparedValues:
    """A pair of matching values."""

    one: str
    other: str
    how: How
    programs: tuple[Program, Program]
    slots: tuple[Slot, Slot]
    position: int
    """Number of the first run's instruction after which the value is available."""
    at_chunk_ends: bool = True
    """True if the values at the ends of chunks belong together; inner values do not."""
    at_chunk_starts: bool = False
    """True for the states that both loops receive."""
