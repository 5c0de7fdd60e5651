"""Loopscope's engine: read, check, run and explain neural-network graphs with control flow."""

from __future__ import annotations

from engine import build, notebook
from engine.check.diagnostic import InvalidModel
from engine.debug.cursor import Cursor
from engine.debug.debugger import Debugger
from engine.debug.fetches import run
from engine.debug.overrides import Changed
from engine.debug.result import Result, RunStopped
from engine.debug.session import Session
from engine.errors import (
    AddressError,
    BuildError,
    EngineError,
    ExpressionError,
    InputError,
    ReadError,
    ValueUnavailable,
    WriteError,
)
from engine.ir.element_type import ElementType
from engine.ir.model import Model
from engine.ir.shape import PartialShape
from engine.read import read_model
from engine.run.machine.limits import Limits
from engine.run.record.recording import Record
from engine.show import show
from engine.trace.control_flow import ControlFlowRecord
from engine.write import write_model

Model.drawn = notebook.bundle

__all__ = [
    # errors
    "AddressError",
    "BuildError",
    # debugging and running
    "Changed",
    "ControlFlowRecord",
    "Cursor",
    "Debugger",
    # models
    "ElementType",
    "EngineError",
    "ExpressionError",
    "InputError",
    "InvalidModel",
    "Limits",
    "Model",
    "PartialShape",
    "ReadError",
    "Record",
    "Result",
    "RunStopped",
    "Session",
    "ValueUnavailable",
    "WriteError",
    # building
    "build",
    "read_model",
    "run",
    # the app
    "show",
    "write_model",
]
