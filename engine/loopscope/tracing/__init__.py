"""Traces: loops of any program, recorded into a file that opens like a run."""

from __future__ import annotations

from loopscope.tracing.import_dumps import import_dumps
from loopscope.tracing.module_hooks import ModuleTrace, trace_callback, trace_module
from loopscope.tracing.recorder import (
    DEFAULT_BUDGET,
    IDLE,
    SWITCH,
    IdleTrace,
    Recorder,
    Trace,
    trace,
)
from loopscope.tracing.trace_format import MAGIC
from loopscope.tracing.trace_model import read_trace

__all__ = [
    "DEFAULT_BUDGET",
    "IDLE",
    "MAGIC",
    "SWITCH",
    "IdleTrace",
    "ModuleTrace",
    "Recorder",
    "Trace",
    "import_dumps",
    "read_trace",
    "trace",
    "trace_callback",
    "trace_module",
]
