"""Running and debugging a model: inputs in, results out, stepping and seeking, breakpoints and watches."""

from __future__ import annotations

from loopscope.debug.breakpoints import Breakpoint, BreakpointKind, Pause
from loopscope.debug.cursor import Cursor, OpenGraph
from loopscope.debug.expression import names_in
from loopscope.debug.held import model_bytes
from loopscope.debug.inputs import convert_input
from loopscope.debug.names import value_names
from loopscope.debug.printed import Line
from loopscope.debug.result import Result, RunStopped
from loopscope.debug.starting import run_stopped

__all__ = [
    "Breakpoint",
    "BreakpointKind",
    "Cursor",
    "Line",
    "OpenGraph",
    "Pause",
    "Result",
    "RunStopped",
    "convert_input",
    "model_bytes",
    "names_in",
    "run_stopped",
    "value_names",
]
