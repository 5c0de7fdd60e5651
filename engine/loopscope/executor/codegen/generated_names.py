"""Identifiers of generated code: synthetic, with the numbers of slots, loops and graphs, never with
text of a model.

``emit_loop.py`` writes these names, and ``deoptimise.py`` reads the local variables by them.
"""

from __future__ import annotations

from dataclasses import dataclass

from loopscope.executor.plan.numbers import ProgramIndex, Slot, TableIndex

RUN, FRAME, VALUES, ROWS, TABLES = "run", "frame", "values", "rows", "tables"
"""Names of the run, the frame of the outermost loop, the slots of the run, the recorded rows and
the loop tables.
"""
LEFT = "left"
"""Name of the number of body executions that may still begin."""
MADE = "made"
"""Name of the value that a kernel has just returned."""
NO_BOUND = "NO_BOUND"


def of_slot(slot: Slot) -> str:
    """Return the variable of a slot."""
    return f"value_{slot}"


def last_of_slot(slot: Slot) -> str:
    """Return the variable of a slot's value in the last iteration, for a slot that a back edge
    overwrites.
    """
    return f"last_{slot}"


def kernel_of(slot: Slot) -> str:
    """Return the name of the kernel of the operation whose first output is the slot."""
    return f"kernel_{slot}"


def constant_of(slot: Slot) -> str:
    """Return the name of a constant number as an array of rank 0."""
    return f"constant_{slot}"


def known_of(slot: Slot) -> str:
    """Return the name of a slot's value that is the same in all runs."""
    return f"known_{slot}"


def branch_of(program: ProgramIndex) -> str:
    """Return the name of a branch, by the number of its graph."""
    return f"branch_{program}"


def record_of(program: ProgramIndex, slot: Slot) -> str:
    """Return the name of the newest recorded values of a slot, by the number of its graph."""
    return f"recorded_{program}_{slot}"


def log_of(table: TableIndex) -> str:
    """Return the name of the branch log of an If."""
    return f"log_{table}"


def if_of(table: TableIndex) -> str:
    """Return the name of an If, by the number of its table."""
    return f"if_{table}"


@dataclass(frozen=True, slots=True)
class LoopNames:
    """Variables of one loop, by the number of its table."""

    table: TableIndex

    @property
    def region(self) -> str:
        """Name of the loop region."""
        return f"loop_{self.table}"

    @property
    def iteration(self) -> str:
        return f"iteration_{self.table}"

    @property
    def bound(self) -> str:
        """Name of the iteration bound."""
        return f"bound_{self.table}"

    @property
    def bound_ending(self) -> str:
        """Name of the ending of the loop if it reaches its bound."""
        return f"bound_ending_{self.table}"

    @property
    def ending(self) -> str:
        """Name of the number of the loop's ending."""
        return f"ending_{self.table}"

    @property
    def chunk(self) -> str:
        """Name of the number of iterations between two safepoints."""
        return f"chunk_{self.table}"

    @property
    def chunk_end(self) -> str:
        """Name of the iteration before which the next safepoint is."""
        return f"chunk_end_{self.table}"

    @property
    def add_count(self) -> str:
        return f"add_count_{self.table}"

    @property
    def add_ending(self) -> str:
        return f"add_ending_{self.table}"

    def sliced(self, number: int) -> str:
        return f"slice_{self.table}_{number}"

    def counter(self, number: int) -> str:
        return f"counter_{self.table}_{number}"

    def output(self, number: int) -> str:
        """Return the name of a concatenated output, by its number among those."""
        return f"output_{self.table}_{number}"

    def pieces(self, number: int) -> str:
        """Return the name of the collected pieces of a concatenated output."""
        return f"pieces_{self.table}_{number}"

    def add_piece(self, number: int) -> str:
        return f"add_piece_{self.table}_{number}"
