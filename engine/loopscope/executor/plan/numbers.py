"""Numbers of a plan, each with its own type, so that they are not confused."""

from __future__ import annotations

from typing import NewType

Slot = NewType("Slot", int)
"""Place of one value of one graph in a run."""
ProgramIndex = NewType("ProgramIndex", int)
"""Number of a graph of the plan; 0 is the outermost."""
TableIndex = NewType("TableIndex", int)
"""Number of a Loop, If or function of the plan, and of its table in a recording."""
