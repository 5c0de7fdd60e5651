"""Running and debugging a model: inputs in, results out, stepping and seeking, breakpoints and watches."""

from __future__ import annotations

from engine.debug.breakpoints import Breakpoint, BreakpointKind, Pause
from engine.debug.cursor import Cursor, OpenGraph
from engine.debug.expression import names_in
from engine.debug.held import model_bytes
from engine.debug.inputs import convert_input
from engine.debug.names import value_names
from engine.debug.printed import Line
from engine.debug.result import Result, RunStopped
from engine.debug.starting import run_stopped

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
