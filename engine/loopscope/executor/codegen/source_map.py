"""Map from the lines and variables of a generated function back to the plan.

Identifiers are synthetic, with the numbers of slots, loops and graphs, never with text of a model.
``emit_loop.py`` writes these names, and ``tiering.py`` reads the local variables by them.
"""

from __future__ import annotations

import linecache
import weakref
from dataclasses import dataclass
from itertools import count
from types import CodeType, FunctionType
from typing import Any, Literal

import numpy as np

from loopscope.executor.machine.state import Frame, RunState
from loopscope.executor.plan.plan import Branch, LoopRegion, Program
from loopscope.executor.plan.slots import ProgramIndex, Slot, TableIndex
from loopscope.executor.record.recording import ENDINGS, LoopEnding

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
        """Return the name of a concatenated output, by its number among these outputs."""
        return f"output_{self.table}_{number}"

    def pieces(self, number: int) -> str:
        """Return the name of the collected pieces of a concatenated output."""
        return f"pieces_{self.table}_{number}"

    def add_piece(self, number: int) -> str:
        return f"add_piece_{self.table}_{number}"


PlaceKind = Literal["operation", "begin", "boundary", "join"]
"""An operation, the begin of an iteration, the boundary between two iterations, or the join of
outputs after the last.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """One open graph at a line of the generated code, with its position in the enclosing graph."""

    program: Program
    region: LoopRegion | None
    branch: Branch | None
    outer: Context | None
    owner: int


@dataclass(frozen=True, slots=True)
class CodePlace:
    """Meaning of a line of generated code: instruction ``position`` of a context, or a place
    between instructions.
    """

    context: Context
    position: int
    kind: PlaceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedBranch:
    """An If of which generated code logs only the branch that is taken less often."""

    program: ProgramIndex
    """Number of the enclosing loop body."""
    position: int
    """Position of the If among the instructions of the body."""
    table: TableIndex
    """Number of the branch log of the If."""
    branch: int
    """1 if the logged branch is ``then``, 0 if it is ``else``."""


@dataclass(eq=False)
class Loop:
    """Function of one loop nest, with the map from its lines and locals back to the plan."""

    function: FunctionType
    text: str
    places: list[CodePlace | None]
    """Meaning of each line of the text, from index 1; None for a line outside of the plan."""
    names: dict[Slot, str]
    """Variable or constant of each slot."""
    inlined: set[Slot]
    """Slots without a local variable."""
    scalars: tuple[tuple[ProgramIndex, Slot, np.dtype], ...] = ()
    """Recorded slots that hold numbers of one type in every row, with the numbers of their
    programs.
    """
    logged: tuple[LoggedBranch, ...] = ()

    def __call__(self, machine: RunState, frame: Frame) -> tuple[int, LoopEnding, int]:
        """Run the loop. Return its iteration count, its ending, and how many body executions may
        still begin.
        """
        count, ending, left = self.function(machine, frame)
        return count, ENDINGS[ending], left

    @property
    def annotated(self) -> str:
        """Text of the function for display. Each line that begins an operation is followed by the
        operation's address.
        """
        lines, before = list[str](), ""
        for line, place in zip(self.text.splitlines(), self.places[1:], strict=False):
            address = _address(place)
            lines.append(
                f"{line:<{_ADDRESS_COLUMN}}  # {address}\n"
                if address not in ("", before)
                else f"{line}\n"
            )
            before = address
        return "".join(lines)


_ADDRESS_COLUMN = 80
_NUMBERS = count()


def compiled(
    text: str,
    constants: dict[str, Any],
    places: list[CodePlace | None],
    names: dict[Slot, str],
    inlined: set[Slot],
) -> Loop:
    """Return the function of a text. Python tracebacks and debuggers show its lines while the
    function exists.
    """
    file = f"<generated loop {next(_NUMBERS)}>"
    code = next(
        constant
        for constant in compile(text, file, "exec").co_consts
        if isinstance(constant, CodeType)
    )
    loop = Loop(FunctionType(code, constants), text, places, names, inlined)
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    weakref.finalize(loop, linecache.cache.pop, file, None)
    return loop


def _address(place: CodePlace | None) -> str:
    if (
        place is None
        or place.kind != "operation"
        or place.position == len(place.context.program.instructions)
    ):
        return ""
    program = place.context.program
    return f"{program.address}/{program.instructions[place.position].label}"
