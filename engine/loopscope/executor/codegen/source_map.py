"""Generated function with the map from its lines and local variables back to the plan."""

from __future__ import annotations

import linecache
import weakref
from dataclasses import dataclass
from itertools import count
from types import CodeType, FunctionType
from typing import Any, Literal

import numpy as np

from loopscope.executor.machine.state import Frame, RunState
from loopscope.executor.plan.numbers import ProgramIndex, Slot, TableIndex
from loopscope.executor.plan.plan import Branch, LoopRegion, Program
from loopscope.executor.record.endings import ENDINGS, LoopEnding

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
    """An If of which generated code logs only one branch."""

    program: ProgramIndex
    """Number of the enclosing loop body."""
    position: int
    """Position of the If among the instructions of the body."""
    table: TableIndex
    branch: int


@dataclass(eq=False)
class Loop:
    """Function of one loop nest, with the map from its lines and locals back to the plan."""

    function: FunctionType
    text: str
    places: list[CodePlace | None]
    names: dict[Slot, str]
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
