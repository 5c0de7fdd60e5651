"""Running and debugging a model: binding inputs, results, stepping and seeking, breakpoints and
watches.
"""

from __future__ import annotations

from loopscope.debug.breakpoints import Breakpoint, BreakpointKind, Pause
from loopscope.debug.cursor import Cursor, OpenGraph
from loopscope.debug.expression import names_in
from loopscope.debug.inputs import convert_input
from loopscope.debug.progress import model_bytes
from loopscope.debug.result import PrintedLine, Result, RunStopped
from loopscope.debug.start_state import run_stopped
from loopscope.debug.suggestions import value_names

__all__ = [
    "Breakpoint",
    "BreakpointKind",
    "Cursor",
    "OpenGraph",
    "Pause",
    "PrintedLine",
    "Result",
    "RunStopped",
    "convert_input",
    "model_bytes",
    "names_in",
    "run_stopped",
    "value_names",
]
