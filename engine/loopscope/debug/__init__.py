"""Running and debugging a model: binding inputs, results, stepping and seeking, breakpoints and
watches.
"""

from __future__ import annotations

from loopscope.debug.breakpoints import Breakpoint, BreakpointKind, Pause
from loopscope.debug.expression import names_in
from loopscope.debug.inputs import convert_input
from loopscope.debug.lookup import value_names
from loopscope.debug.position import Cursor, OpenGraph
from loopscope.debug.progress import model_bytes, run_stopped
from loopscope.debug.result import PrintedLine, Result, RunStopped

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
