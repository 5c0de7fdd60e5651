"""Traces: loops of any program, recorded into a file that opens like a run."""

from __future__ import annotations

from loopscope.tracing.recorder import IDLE, SWITCH, IdleTrace, Recorder, Trace, trace
from loopscope.tracing.trace_format import MAGIC
from loopscope.tracing.trace_model import read_trace

__all__ = ["IDLE", "MAGIC", "SWITCH", "IdleTrace", "Recorder", "Trace", "read_trace", "trace"]
