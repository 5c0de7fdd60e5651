"""The numbers of a plan, each with its own type, so that none is mistaken for another."""

from __future__ import annotations

from typing import NewType

Slot = NewType("Slot", int)
"""Where a run holds one value of one graph."""
ProgramIndex = NewType("ProgramIndex", int)
"""Which graph of the plan; 0 is the outermost."""
TableIndex = NewType("TableIndex", int)
"""Which Loop, If or function of the plan: its table in a recording."""
