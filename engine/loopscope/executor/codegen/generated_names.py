"""The identifiers of generated code: synthetic, with the numbers of slots, loops and graphs. No
text of a model is ever one.

``emit_loop.py`` writes them, and ``deoptimise.py`` finds the local variables again by them.
"""

from __future__ import annotations

from dataclasses import dataclass

from loopscope.executor.plan.numbers import ProgramIndex, Slot, TableIndex

RUN, FRAME, VALUES, ROWS, TABLES = "run", "frame", "values", "rows", "tables"
"""The run, the frame of the outermost loop, the run's slots, what is recorded by graph and by
table.
"""
LEFT = "left"
"""How many executions of bodies may still begin."""
MADE = "made"
"""What a kernel has just given."""
NO_BOUND = "NO_BOUND"


def of_slot(slot: Slot) -> str:
    """The variable that holds a slot."""
    return f"value_{slot}"


def last_of_slot(slot: Slot) -> str:
    """The variable that keeps what a slot held in the last iteration, where the back edge
    overwrites it.
    """
    return f"last_{slot}"


def kernel_of(slot: Slot) -> str:
    """The kernel of the operation whose first output is a slot."""
    return f"kernel_{slot}"


def constant_of(slot: Slot) -> str:
    """A constant number as an array of rank 0."""
    return f"constant_{slot}"


def branch_of(program: ProgramIndex) -> str:
    """A branch, by the number of its graph."""
    return f"branch_{program}"


def record_of(program: ProgramIndex, slot: Slot) -> str:
    """The newest recorded values of a slot, by the number of its graph."""
    return f"recorded_{program}_{slot}"


def log_of(table: TableIndex) -> str:
    """Where the branches of an If are written down."""
    return f"log_{table}"


def if_of(table: TableIndex) -> str:
    """An If, by the number of its table."""
    return f"if_{table}"


@dataclass(frozen=True, slots=True)
class LoopNames:
    """The variables of one loop, by the number of its table."""

    table: TableIndex

    @property
    def region(self) -> str:
        """The loop itself."""
        return f"loop_{self.table}"

    @property
    def iteration(self) -> str:
        return f"iteration_{self.table}"

    @property
    def bound(self) -> str:
        """Iterations at most."""
        return f"bound_{self.table}"

    @property
    def bound_ending(self) -> str:
        """Why it ends when it gets there."""
        return f"bound_ending_{self.table}"

    @property
    def ending(self) -> str:
        """The number of its ending."""
        return f"ending_{self.table}"

    @property
    def chunk(self) -> str:
        """Iterations between two safepoints."""
        return f"chunk_{self.table}"

    @property
    def chunk_end(self) -> str:
        """The iteration before which the next safepoint is."""
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
        """A concatenated output, by its number among those."""
        return f"output_{self.table}_{number}"

    def pieces(self, number: int) -> str:
        """What is collected for it."""
        return f"pieces_{self.table}_{number}"

    def add_piece(self, number: int) -> str:
        return f"add_piece_{self.table}_{number}"
