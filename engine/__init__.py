"""Loopscope's engine: read, check, run and explain neural-network graphs with control flow.

This is the door: what README speaks of. ``check`` and ``run`` are functions here and rooms as well: the functions are what
the names mean to those who ``import engine``, and modules of the rooms are imported as always (``from engine.check import text``).
"""

from __future__ import annotations

from engine import build, graph_session, notebook
from engine.check.check import check
from engine.check.diagnostic import InvalidModel
from engine.compare.drift import drift
from engine.debug.debugger import Debugger
from engine.debug.fetches import run
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
from engine.explain.compare import compare
from engine.explain.verdict import verdict
from engine.finite_differences import check_gradient
from engine.ir.model import Model
from engine.notebook import widget
from engine.ops.declare import Operation
from engine.read import read_model
from engine.run.machine.limits import Limits
from engine.run.plan.optimise import Optimise
from engine.run.record.recording import Record
from engine.run_file.loading import load
from engine.run_file.saving import save
from engine.show import show
from engine.sweep.sweep import sweep
from engine.transform.with_gradients import gradients
from engine.write import write_model

Model.drawn = notebook.bundle
Debugger.drawn = notebook.run_bundle
build.compat.v1.Session.runner = graph_session.run

__all__ = [
    # errors
    "AddressError",
    "BuildError",
    # running and looking
    "Debugger",
    "EngineError",
    "ExpressionError",
    "InputError",
    "InvalidModel",
    "Limits",
    # models
    "Model",
    "Operation",
    "Optimise",
    "ReadError",
    "Record",
    "Result",
    "RunStopped",
    "Session",
    "ValueUnavailable",
    "WriteError",
    # building
    "build",
    # explaining
    "check",
    "check_gradient",
    "compare",
    "drift",
    # changing
    "gradients",
    # a run as a file
    "load",
    "read_model",
    "run",
    "save",
    # the app
    "show",
    "sweep",
    "verdict",
    # a notebook's cell
    "widget",
    "write_model",
]
